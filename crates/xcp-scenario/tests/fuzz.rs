//! Whatever a file holds, reading it ends with scenarios or with an error that says something:
//! never with a panic.

use std::path::Path;

use proptest::prelude::*;
use xcp_scenario::{Overrides, load, load_with_origins};

const SEEDS: [&str; 3] = [
    include_str!("files/good/four-flows.toml"),
    include_str!("files/good/everything.toml"),
    include_str!("files/good/variants.toml"),
];

/// What is put in the place of something else: the edges of every kind of value.
const WORDS: &[&str] = &[
    "0",
    "-1",
    "1e308",
    "nan",
    "-inf",
    "\"\"",
    "\"0s\"",
    "\"1s\"",
    "\"100000000s\"",
    "\"0.000000001s\"",
    "\"8tbit\"",
    "\"1bit\"",
    "\"999999999999999p\"",
    "\"1p\"",
    "\"99999999bdp\"",
    "\"64b\"",
    "true",
    "[]",
    "{}",
    "[[]]",
    "[{}]",
    "\"xcp\"",
    "\"red\"",
    "\"rtt\"",
    "\"S\"",
    "\"é\"",
    "\"\\u0000\"",
    "1979-05-27",
    "99999999999999999999",
    "\"unlimited\"",
    "\n",
    "=",
    "[[flow]]\n",
    "[[link]]\n",
    "\"flow.*.x\"",
    "count = 3\n",
    "queue",
    "65535",
    "3",
];

fn try_it(text: &str) {
    match load_with_origins(Path::new("fuzz.toml"), text, &Overrides::none()) {
        Ok(all) => {
            for l in all {
                assert!(xcp_scenario::footprint(&l.scenario).bytes > 0);
                let _ =
                    xcp_scenario::check(&l.scenario, &l.origins, 1000).map_err(|e| e.to_string());
            }
        }
        Err(e) => {
            assert!(!e.problems().is_empty());
            assert!(e.to_string().starts_with("error: "));
        }
    }
}

/// Cuts a text at the characters nearest to fractions of its length.
fn cut(text: &str, a: usize, b: usize) -> (&str, &str, &str) {
    let at =
        |n: usize| (n % (text.len() + 1)..=text.len()).find(|i| text.is_char_boundary(*i)).unwrap();
    let (a, b) = (at(a).min(at(b)), at(a).max(at(b)));
    (&text[..a], &text[a..b], &text[b..])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Stretches removed, repeated, replaced.
    #[test]
    fn mutated_texts(seed in 0..SEEDS.len(), edits in prop::collection::vec((any::<usize>(), 0usize..40, 0..WORDS.len() + 2), 1..4)) {
        let mut text = SEEDS[seed].to_string();
        for (at, length, word) in edits {
            let at = at % (text.len() + 1);
            let (before, within, after) = cut(&text, at, at + length);
            let middle = match word.checked_sub(2) {
                None if word == 0 => String::new(),
                None => within.repeat(2),
                Some(word) => WORDS[word].to_string(),
            };
            text = format!("{before}{middle}{after}");
        }
        try_it(&text);
    }

    /// Values replaced: the text stays TOML, so that the reader behind the parser gets its share.
    #[test]
    fn mutated_values(seed in 0..SEEDS.len(), edits in prop::collection::vec((any::<usize>(), 0..WORDS.len()), 1..4)) {
        let mut lines: Vec<String> = SEEDS[seed].lines().map(str::to_string).collect();
        for (at, word) in edits {
            let at = at % lines.len();
            if let Some((key, _)) = lines[at].clone().split_once('=') {
                lines[at] = format!("{key}= {}", WORDS[word]);
            }
        }
        try_it(&lines.join("\n"));
    }

    /// Settings from outside.
    #[test]
    fn any_override(path in "((flow|link|queue|measure|variant|expect|S-R|bottleneck|law|loss|rate|kind|reverse|udp|\"|\\.|x)\\.?){0,4}", word in 0..WORDS.len(), raw in ".{0,12}", use_raw: bool) {
        let value = if use_raw { raw.as_str() } else { WORDS[word] };
        if let Err(e) = load(Path::new("fuzz.toml"), SEEDS[1], &Overrides::none().with(path, value)) {
            prop_assert!(!e.problems().is_empty());
            prop_assert!(!e.to_string().is_empty());
        }
    }

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        try_it(&text);
    }
}
