//! Whatever is in the files that the proxy reads, its options and what it wrote down to take back:
//! they are understood or refused in words that name the place, never a panic. `fuzz/` does the
//! same guided by coverage; what clients say is in parsers.rs.

use std::io::Write as _;
use std::path::Path;

use proptest::prelude::*;
use xcp_pep::gateway::state::{State, start_time};
use xcp_pep::options::Options;

/// Every key, as in packaging and docs.
const GOOD: &str = r#"wan = "eth1"
lan = ["eth0", "eth2"]
rate = "20mbit"
rate-in = "50mbit"
rtt = "600ms"
mss = 1360
law = "p-xcp"
share = "prefix/28/56"
urgent = "ef,cs5:10%"
exclude = ["port 22", "10.9.0.0/16", "2001:db8::/32", "192.0.2.1"]
listen = ["127.0.0.1:1080", "[::1]:1080"]
allow = ["10.0.0.0/8"]
allow-target = ["127.0.0.1"]
metrics = "127.0.0.1:9999"
no-early = true
confirm = false
trunk = "192.0.2.2"
trunk-listen = "192.0.2.1:22595"
trunk-warm = 32
trunk-encrypt = true
secret-file = "/etc/xcpnet/secret"
workers = 2
connections = 8000
memory = "64mib"
held = "256kib"
idle = "0s"
keepalive = "60s"
rto-max = "1s"
drain = "30s"
fallback = "cubic"
initial-window = 10
user = "nobody"
log = "info"
log-json = true
"#;

const STATE: &str = r#"{"pid":4242,"start":99,"diverts":true,"shaper":3,"sysctls":[["net.ipv4.tcp_fastopen","1","3"]],"cgroup":"/x/y","log":"/run/z"}"#;

/// What is put in the place of something else: the edges of every kind of value.
const WORDS: &[&str] = &[
    "0",
    "-1",
    "65536",
    "4294967296",
    "18446744073709551616",
    "1e308",
    "nan",
    "true",
    "[]",
    "{}",
    "[[]]",
    "null",
    "\"\"",
    "\"\\u0000\"",
    "\"é\"",
    "\"0bit\"",
    "\"7bit\"",
    "\"999999999999999tbit\"",
    "\"18446744073709551615s\"",
    "\"1e30s\"",
    "\"-1s\"",
    "\"99999999999999999999gib\"",
    "\"1 mb\"",
    "\"mb\"",
    "\"port\"",
    "\"port -1\"",
    "\"port 65536\"",
    "\"10.0.0.0/33\"",
    "\"::/129\"",
    "\"1.2.3.4/\"",
    "\"/\"",
    "[\"port 1\"]",
    "[\"::/0\"]",
    "\"127.0.0.1\"",
    "\"[::1]:0\"",
    "1979-05-27",
    "\n",
    "=",
    "\"",
];

/// Returns whether there was nothing to object to.
fn options(text: &str) -> bool {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let options = match Options::load(file.path()) {
        Ok(options) => options,
        Err(e) => {
            assert!(e.to_string().contains(&file.path().display().to_string()), "{e}");
            return false;
        }
    };
    let said: Vec<String> = [
        options.rate_bps().err(),
        options.rate_in_bps().err(),
        options.rtt_ns().err(),
        options.memory().err(),
        options.workers().err(),
        options.drain().err(),
        options.excludes().err(),
        options.settings(Some("xcp"), 1).err(),
    ]
    .into_iter()
    .flatten()
    .map(|e| e.to_string())
    .collect();
    for error in &said {
        let key = error.split(':').next().unwrap();
        assert!(GOOD.contains(&format!("{key} = ")), "no key is named: {error}");
    }
    if let Ok(windows) = options.windows() {
        assert!(
            [windows.send, windows.receive]
                .iter()
                .all(|window| (128 << 10..=256 << 20).contains(window))
        );
    }
    assert!(options.differences(&options).is_empty());
    assert_eq!(options.clone().over(Options::default()), options);
    assert_eq!(Options::default().over(options.clone()), options);
    said.is_empty()
}

fn state(text: &[u8]) {
    let Ok(state) = serde_json::from_slice::<State>(text) else { return };
    let again: State = serde_json::from_slice(&serde_json::to_vec(&state).unwrap()).unwrap();
    assert_eq!(format!("{state:?}"), format!("{again:?}"));
    // A number that would mean everybody to kill(2) is no process.
    assert!((1..=i32::MAX as u32).contains(&state.pid) || start_time(state.pid).is_none());
}

/// Cuts a text at the characters nearest to a place and a length.
fn cut(text: &str, at: usize, length: usize) -> [&str; 3] {
    let near =
        |n: usize| (n.min(text.len())..=text.len()).find(|i| text.is_char_boundary(*i)).unwrap();
    let (a, b) = (near(at % (text.len() + 1)), near(at % (text.len() + 1) + length));
    [&text[..a], &text[a..b], &text[b..]]
}

fn mutate(text: &str, edits: &[(usize, usize, usize)]) -> String {
    edits.iter().fold(text.to_owned(), |text, (at, length, word)| {
        let [before, within, after] = cut(&text, *at, *length);
        let middle = match word.checked_sub(2) {
            None if *word == 0 => String::new(),
            None => within.repeat(2),
            Some(word) => WORDS[word].to_owned(),
        };
        format!("{before}{middle}{after}")
    })
}

fn edits() -> impl Strategy<Value = Vec<(usize, usize, usize)>> {
    prop::collection::vec((any::<usize>(), 0usize..30, 0..WORDS.len() + 2), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mutated_files(edits in edits()) {
        options(&mutate(GOOD, &edits));
        state(mutate(STATE, &edits).as_bytes());
    }

    /// Values replaced: the text stays TOML, so that what is behind the parser gets its share.
    #[test]
    fn mutated_values(changes in prop::collection::vec((any::<usize>(), 0..WORDS.len()), 1..4)) {
        let mut lines: Vec<String> = GOOD.lines().map(str::to_owned).collect();
        for (at, word) in changes {
            let at = at % lines.len();
            let key = lines[at].split(" = ").next().unwrap_or_default();
            lines[at] = format!("{key} = {}", WORDS[word]);
        }
        options(&lines.join("\n"));
    }

    /// Any value of any key that takes a text.
    #[test]
    fn any_words(key in "rate|rtt|memory|held|idle|keepalive|rto-max|drain", number in "[0-9]{0,22}(\\.[0-9]{0,3})?(e[0-9]{1,3})?", unit in "[a-zA-Zµ ]{0,6}") {
        options(&format!("{key} = \"{number}{unit}\"\n"));
        options(&format!("exclude = [\"{number}{unit}\", \"port \
            {number}\", \"10.0.0.0/{number}\"]\n"));
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        options(&String::from_utf8_lossy(&bytes));
        state(&bytes);
    }
}

#[test]
fn what_is_mutated_is_good_to_begin_with() {
    assert!(options(GOOD));
    assert!(serde_json::from_str::<State>(STATE).is_ok());
    assert!(
        Options::load(Path::new("/nonexistent")).unwrap_err().to_string().contains("/nonexistent")
    );
}

/// Every file of Rust below a directory, as one text.
fn sources(directory: &Path) -> String {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| match path.extension() {
            None => sources(&path),
            Some(end) if end == "rs" => std::fs::read_to_string(&path).unwrap(),
            Some(_) => String::new(),
        })
        .collect()
}

/// An option that nobody reads would be taken and do nothing. This sees one whose row is in the
/// table and whose name is nowhere else; what reading it comes to is for the tests of its effect.
#[test]
fn every_option_is_read_somewhere() {
    // The command reads what is about its own log.
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let sources = sources(&crates.join("xcp-pep/src")) + &sources(&crates.join("xcpnet/src"));
    let joined: String = sources.lines().map(str::trim).collect();
    let is_read = |name: &str| {
        ["self", "options"].iter().any(|whose| {
            let reading = format!("{whose}.{name}");
            joined.match_indices(&reading).any(|(at, _)| {
                let next = joined[at + reading.len()..].chars().next();
                !next.is_some_and(|c| c.is_alphanumeric() || c == '_')
            })
        })
    };
    assert!(!is_read("no_such_option"));
    for name in Options::NAMES {
        assert!(is_read(name), "{name} is in the table of options, and nothing reads it");
    }
}

/// The example knows every option, and what is commented out in it can be said.
#[test]
fn the_example_has_every_option() {
    let example = include_str!("../../../packaging/pep.toml");
    let key = |line: &str| line.split_once(" = ").map(|(key, _)| key.to_owned());
    let is_key = |word: &String| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    let said: String = example
        .lines()
        .map(|line| {
            line.strip_prefix("# ")
                .filter(|rest| key(rest).is_some_and(|k| is_key(&k)))
                .unwrap_or(line)
                .to_owned()
                + "\n"
        })
        .collect();
    assert!(options(example) && options(&said), "{said}");
    for name in Options::NAMES {
        let start = name.replace('_', "-") + " = ";
        for (file, text) in [("packaging/pep.toml", said.as_str()), ("GOOD", GOOD)] {
            assert!(text.lines().any(|line| line.starts_with(&start)), "{file} has no {start}");
        }
    }
    for lists in [
        "lan = \"eth0\"",
        "exclude = \"port 22\"",
        "listen = \"127.0.0.1:1080\"",
        "listen = \"127.0.0.1:1080\"\nallow = \"10.0.0.0/8\"",
    ] {
        assert!(options(lists), "{lists}: a list of one needs no brackets");
    }
    assert!(!options("lan = 7"));
}
