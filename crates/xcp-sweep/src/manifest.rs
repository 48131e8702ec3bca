//! Which sweep a directory of shards is of, and how it is cut: `manifest.json`. Everybody who does
//! a shard reads it, and nobody changes it.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use xcp_report::human::plural;

use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::sweep::{Description, Sweep};

/// The file's name, in a directory or an object store.
pub const NAME: &str = "manifest.json";

/// How parts and markers are laid out. Another number is another layout.
const SCHEMA: u32 = 1;

/// More shards than this burden those who hand them out.
pub const MOST_SHARDS: u64 = 100_000;

/// Stretches of the grid whose work is estimated apart.
const STRETCHES: u64 = 256;

/// What a run costs beside its packets, in packets times links: reading its scenario, its rows.
const OVERHEAD: f64 = 2_000.0;

/// Packets times links that a processor does in a second, roughly: what seconds of work are
/// reckoned by. Being wrong makes shards longer or shorter, nothing else.
const SPEED: f64 = 4e6;

/// A sweep cut into shards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the manifest's layout.
    pub schema: u32,
    /// Tells apart manifests: two are the same if and only if their digests are.
    pub digest: String,
    /// The first run of each shard, and behind the last one the number of runs.
    pub cuts: Vec<u64>,
    /// Description of the sweep.
    pub sweep: Description,
}

/// How many shards a sweep is cut into.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shards {
    /// So many.
    Number(u64),
    /// As many as give each about so many seconds of one processor's work, at most 2000.
    Seconds(f64),
}

impl Manifest {
    /// Cuts a sweep into shards of about equal work.
    ///
    /// # Errors
    /// There are to be more shards than runs.
    pub fn new(sweep: &Sweep, shards: Shards) -> Result<Self, Error> {
        let runs = sweep.description.runs;
        // One shard is all of it, whatever work that is.
        let stretches = if shards == Shards::Number(1) { 1 } else { STRETCHES };
        let work: Vec<(u64, f64)> = sweep
            .scenarios()
            .work(stretches)
            .into_iter()
            .map(|(count, each)| (count, each + OVERHEAD))
            .collect();
        let all: f64 = work.iter().map(|(count, each)| *count as f64 * each).sum();
        let number = match shards {
            Shards::Number(number) => number,
            Shards::Seconds(seconds) => {
                ((all / SPEED / seconds.max(1e-3)).ceil() as u64).clamp(1, runs.clamp(1, 2000))
            }
        };
        if number == 0 || number > runs || number > MOST_SHARDS {
            let possible = match runs.min(MOST_SHARDS) {
                1 => "there can only be 1".to_owned(),
                most => format!("write a number from 1 to {most}"),
            };
            return Err(Error::refused(format!(
                "{} cannot be cut into {}; {possible}",
                plural(runs, "run"),
                plural(number, "shard")
            )));
        }
        let cuts = cuts(&work, runs, number);
        let mut made =
            Self { schema: SCHEMA, digest: String::new(), cuts, sweep: sweep.description.clone() };
        made.digest = made.reckoned();
        Ok(made)
    }

    /// Reads one.
    ///
    /// # Errors
    /// It is none, or of another layout, or was changed.
    pub fn read(text: &str) -> Result<Self, Error> {
        let value: serde_json::Value = serde_json::from_str(text)
            .map_err(|e| Error::refused(format!("{NAME} is not a manifest of a sweep: {e}")))?;
        if value["schema"] != SCHEMA {
            return Err(Error::refused(format!(
                "{NAME} has layout {}, but this version of xcpnet knows {SCHEMA}; use the version \
                 that wrote it",
                value["schema"]
            )));
        }
        let read: Self = serde_json::from_value(value)
            .map_err(|e| Error::refused(format!("{NAME} is not a manifest of a sweep: {e}")))?;
        let ends = (read.cuts.first(), read.cuts.last());
        let right = read.digest == read.reckoned()
            && ends == (Some(&0), Some(&read.sweep.runs))
            && read.cuts.is_sorted_by(|a, b| a < b);
        if !right {
            return Err(Error::refused(format!(
                "{NAME} was changed after it was written; start the sweep again in another place"
            )));
        }
        Ok(read)
    }

    /// As it is written.
    ///
    /// # Panics
    /// Never: all of it can be written as JSON.
    #[must_use]
    pub fn text(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("lists, texts and numbers");
        format!("{text}\n")
    }

    fn reckoned(&self) -> String {
        let bare = Self { digest: String::new(), ..self.clone() };
        let mut hash = Fingerprint::new();
        hash.add(bare.text().as_bytes());
        hash.hex()
    }

    /// How many shards there are.
    #[must_use]
    pub fn shards(&self) -> u64 {
        self.cuts.len() as u64 - 1
    }

    /// The runs of a shard, from 0.
    ///
    /// # Errors
    /// There is no such shard.
    pub fn runs(&self, shard: u64) -> Result<Range<u64>, Error> {
        match self.cuts.get(shard as usize..=shard as usize + 1) {
            Some(&[first, end]) => Ok(first..end),
            _ => Err(Error::refused(format!(
                "there is no shard {}: the sweep has {}",
                shard + 1,
                self.shards()
            ))),
        }
    }

    /// Refuses a manifest that is not this one, in words; `place` is where it was found.
    ///
    /// # Errors
    /// What is different.
    pub fn same_as(&self, there: &Self, place: &str) -> Result<(), Error> {
        if self.digest == there.digest {
            return Ok(());
        }
        let mut what = there.sweep.differences(&self.sweep);
        if what.is_empty() {
            what.push("cut into different shards");
        }
        Err(Error::refused(format!(
            "{place} holds another sweep ({}); choose another place, or delete what is there",
            what.join("; ")
        )))
    }

    /// The sweep, if this build may do a part of it.
    ///
    /// # Errors
    /// It was begun by another build.
    pub fn to_do(&self) -> Result<Sweep, Error> {
        let build = crate::BUILD;
        if self.sweep.build != build {
            return Err(Error::refused(format!(
                "this sweep was started by another build of xcpnet ({}, {}), whose numbers may \
                 differ; this is {build}. Install the same build on every machine, or start again \
                 in another place",
                self.sweep.program, self.sweep.build
            )));
        }
        Sweep::described(&self.sweep)
    }
}

/// Cuts runs into so many shards of about equal work; none is empty.
fn cuts(work: &[(u64, f64)], runs: u64, shards: u64) -> Vec<u64> {
    let all: f64 = work.iter().map(|(count, each)| *count as f64 * each).sum();
    let mut cuts = vec![0];
    let mut stretches = work.iter().copied().peekable();
    // Runs and work before the stretch.
    let (mut before, mut done) = (0, 0.0);
    for shard in 1..shards {
        let goal = all * shard as f64 / shards as f64;
        while let Some((count, each)) =
            stretches.next_if(|(count, each)| done + *count as f64 * each < goal)
        {
            before += count;
            done += count as f64 * each;
        }
        let within = stretches.peek().map_or(0, |(_, each)| ((goal - done) / each).round() as u64);
        let least = cuts[shard as usize - 1] + 1;
        cuts.push((before + within).clamp(least, runs - (shards - shard)));
    }
    cuts.push(runs);
    cuts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every run is in one shard, no shard is empty, and none has much more than its share
        /// where runs are small beside it.
        #[test]
        fn shards_are_all_the_runs(work in prop::collection::vec((1u64..50, 1.0f64..1e6), 1..40), of in 0.0f64..1.0) {
            let runs: u64 = work.iter().map(|(count, _)| count).sum();
            let shards = 1 + (of * (runs - 1) as f64) as u64;
            let cuts = cuts(&work, runs, shards);
            prop_assert_eq!(cuts.len() as u64, shards + 1);
            prop_assert!(cuts.is_sorted_by(|a, b| a < b));
            prop_assert_eq!((cuts[0], cuts[shards as usize]), (0, runs));
        }

        #[test]
        fn equal_runs_are_cut_equally(each in 1u64..1000, shards in 1u64..50) {
            let cuts = cuts(&[(each * shards, 3.0)], each * shards, shards);
            prop_assert!(cuts.windows(2).all(|pair| pair[1] - pair[0] == each), "{cuts:?}");
        }
    }

    #[test]
    fn what_was_changed_or_is_of_another_build_is_refused() {
        let text = "duration = \"1s\"\n";
        let sweep = Sweep::typed("s.toml".as_ref(), text, &[], Some("1..9"), &[]).unwrap();
        let mut made = Manifest {
            schema: SCHEMA,
            digest: String::new(),
            cuts: vec![0, 4, 9],
            sweep: sweep.description,
        };
        made.digest = made.reckoned();
        let read = Manifest::read(&made.text()).unwrap();
        assert_eq!(read, made);
        assert!(read.to_do().is_ok());
        assert_eq!(read.runs(1).unwrap(), 4..9);
        assert!(read.runs(2).is_err());
        let told = |text: &str| Manifest::read(text).unwrap_err().to_string();
        assert!(told(&made.text().replace("4,", "5,")).contains("was changed"));
        assert!(told(&made.text().replace("1..9", "1..8")).contains("was changed"));
        assert!(told("{}").contains("layout"));
        assert!(told("a diary").contains("not a manifest"));
        let mut other = made.clone();
        other.sweep.build = "0".into();
        other.digest = other.reckoned();
        assert!(other.to_do().unwrap_err().to_string().contains("another build"));
        let told = made.same_as(&other, "here").unwrap_err().to_string();
        assert!(told.contains("here holds another sweep (another build"), "{told}");
    }
}
