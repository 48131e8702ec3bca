//! Seeds as they are typed: `--seeds 1..20`.

use std::ops::RangeInclusive;

/// Seeds in ascending order, without repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeds(Vec<RangeInclusive<u64>>);

/// The greatest seed a scenario takes.
pub const MAX_SEED: u64 = i64::MAX as u64;

impl Seeds {
    /// Reads `7`, `1..20` (both ends included), `1,5,9` or several of these.
    ///
    /// # Errors
    /// What is typed wrongly, and what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (from, to) = part.split_once("..").unwrap_or((part, part));
            let number = |s: &str| s.trim().parse::<u64>().ok().filter(|&n| n <= MAX_SEED);
            let (Some(from), Some(to)) = (number(from), number(to)) else {
                let what = if text.trim().is_empty() {
                    "there are no seeds".to_owned()
                } else {
                    format!("\"{part}\" is not a seed (0 to {MAX_SEED})")
                };
                return Err(format!("{what}; write 7, 1..20 (both ends included) or 1,5,9"));
            };
            if from > to {
                return Err(format!("the seeds {part} descend; write {to}..{from}"));
            }
            match ranges.last() {
                Some(before) if *before.end() >= from => {
                    return Err(format!(
                        "seeds must be in ascending order without repetition; \
                         {part} is not above those before it"
                    ));
                }
                _ => ranges.push(from..=to),
            }
        }
        Ok(Self(ranges))
    }

    /// Number of seeds.
    pub fn count(&self) -> u128 {
        self.0.iter().map(|r| u128::from(r.end() - r.start()) + 1).sum()
    }

    /// The `i`-th; there must be so many.
    pub fn at(&self, mut i: u64) -> u64 {
        for range in &self.0 {
            let length = range.end() - range.start() + 1;
            if i < length {
                return range.start() + i;
            }
            i -= length;
        }
        unreachable!("asked for a seed beyond the last")
    }
}

impl std::fmt::Display for Seeds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let one = |r: &RangeInclusive<u64>| {
            if r.start() == r.end() {
                r.start().to_string()
            } else {
                format!("{}..{}", r.start(), r.end())
            }
        };
        f.write_str(&self.0.iter().map(one).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn wrong_seeds_say_why() {
        for (text, word) in [
            ("", "no seeds"),
            ("x", "not a seed"),
            ("-1", "not a seed"),
            ("1..", "not a seed"),
            ("20..1", "write 1..20"),
            ("5,3", "ascend"),
            ("1..5,5", "ascend"),
            ("9223372036854775808", "not a seed"),
        ] {
            let error = Seeds::parse(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in ".{0,40}") {
            let _ = Seeds::parse(&text);
        }

        #[test]
        fn seeds_are_those_written(mut list in prop::collection::btree_set(0u64..60, 1..20)) {
            let text = list.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
            let seeds = Seeds::parse(&text).unwrap();
            prop_assert_eq!(seeds.count(), list.len() as u128);
            for i in 0..list.len() {
                prop_assert_eq!(Some(seeds.at(i as u64)), list.pop_first());
            }
            prop_assert_eq!(seeds.to_string(), text);
        }
    }
}
