//! Every key of the scenario file in one table: name, what it takes, default, meaning, an example.
//! The JSON schema, the tables of `docs/scenario.md` and what the reader takes all follow from it,
//! so they cannot disagree. What holds in a key's absence the reader says itself; a test compares
//! that with the default as it is written here.

mod claims;
#[cfg(test)]
mod defaults;
mod flows;
mod links;

use xcp_law::text::suggest;

pub(crate) use claims::{EXPECT, THAN};
pub(crate) use flows::{BUFFER_CHANGE, BYTES, FLOW, LIES, TCP_ONLY, UDP};
pub(crate) use links::{BLACKOUT, LAW, LAW_CHANGE, LINK, LOSS, POLICE, QUEUE, REORDER, REVERSE};

/// What a key takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// A name: not empty, without `.`, `"`, `*` and control characters.
    Name,
    /// `true` or `false`.
    Bool,
    /// `"10mbit"`, not zero.
    Rate,
    /// `"250ms"`, zero included.
    Time,
    /// `"250ms"`, not zero.
    Length,
    /// `"64kb"` or a number of bytes, within bounds.
    Size { min: u64, max: u64 },
    /// As `Size`, or `"unlimited"`.
    Buffer { min: u64 },
    /// A whole number within bounds.
    Integer { min: u64, max: u64 },
    /// A number within bounds.
    Number { min: f64, max: f64 },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of [`CONGESTIONS`], or the name of one of the kernel's.
    Congestion,
    /// `"100p"`, 100, `"64kb"` or `"2bdp"`, not zero.
    Limit,
    /// As `Limit`, or `"33%"` of it.
    Threshold,
    /// As `Limit`, or a time the queue takes to drain; zero included.
    Standing,
    /// A time, or `"10x"` the true one.
    ClaimedTime,
    /// Packets, `"10p"`, or `"10x"` the true window.
    ClaimedWindow,
    /// `"10x"`.
    Factor,
    /// A time, `"rtt"` or `"off"`.
    Sample,
    /// A pair of names.
    Pair,
    /// A list of names.
    Names,
    /// A name or a list of names.
    NameOrNames,
    /// A list of `[time, rate]`.
    RateSteps,
    /// The same, or the name of a trace.
    RateChanges,
    /// A list of `[time, time]`, or the name of a trace.
    DelayChanges,
    /// A table of paths and values.
    Paths,
    /// How many seeds, or a list of them.
    Seeds,
    /// `"median"`, `"all"`, or a share of seeds.
    OverSeeds,
    /// A table with these keys.
    Table(&'static Spec),
    /// A list of such tables (`[[name]]`).
    Tables(&'static Spec),
    /// A table, or only the value of its key `short`.
    Short { short: &'static str, table: &'static Spec },
    /// A list of tables, or one of them, or only the value of its key `short`.
    ShortList { short: &'static str, table: &'static Spec },
}

/// A table of the file.
#[derive(Debug)]
pub(crate) struct Spec {
    /// As it is written.
    pub name: &'static str,
    /// What it describes.
    pub doc: &'static str,
    /// Its keys, in the order of the documentation.
    pub keys: &'static [Key],
}

/// A key of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub name: &'static str,
    pub kind: Kind,
    /// What holds in its absence; `required` where there is no such thing.
    pub default: &'static str,
    pub doc: &'static str,
    /// As TOML.
    pub example: &'static str,
}

impl Key {
    pub fn required(&self) -> bool {
        self.default == REQUIRED
    }
}

impl Spec {
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|k| k.name == name)
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.keys.iter().map(|k| k.name)
    }
}

/// Marks keys without a default.
pub(crate) const REQUIRED: &str = "required";
/// How long the run lasts; also where a trace ends.
pub(crate) const DURATION: &str = "duration";
/// Steps of a link, or the name of a trace that has them.
pub(crate) const RATE_CHANGES: &str = "rate-changes";
/// The same for its delay.
pub(crate) const DELAY_CHANGES: &str = "delay-changes";

const fn key(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    example: &'static str,
    doc: &'static str,
) -> Key {
    Key { name, kind, default, doc, example }
}

/// The kinds of queue that a scenario can name.
pub const QUEUES: &[&str] = &["drop-tail", "red", "xcp"];
/// The congestion controls that a scenario can name; the simulator has all of them.
pub const CONGESTIONS: &[&str] =
    &["xcp", "xcp-robust", "reno", "newreno", "sack", "cubic", "vegas"];
/// The kernel's congestion control that stands for one of these, or for one of its own; `None`: it
/// is ours.
pub(crate) fn kernels_name(name: &str) -> Option<&str> {
    match name {
        "xcp" | "xcp-robust" => None,
        "newreno" | "sack" => Some("reno"),
        own => Some(own),
    }
}

/// Keys of a law, which `queue.KEY` reaches through the queue.
pub(crate) fn is_law_key(name: &str) -> bool {
    LAW.key(name).is_some()
}

/// What to write instead of a key that a table does not have.
pub(crate) fn instead(key: &str, spec: &'static Spec) -> String {
    if std::ptr::eq(spec, &QUEUE) && is_law_key(key) {
        return format!(
            "it is a key of the law: law = {{ {key} = ... }}, or queue.law.{key} in a path"
        );
    }
    suggest(key, spec.names(), "known keys")
}

/// The file.
pub(crate) static FILE: Spec = Spec {
    name: "the file",
    doc: "One scenario, or one for each variant.",
    keys: &[
        key(
            "title",
            Kind::Text,
            "the file's name",
            "\"Four flows\"",
            "One line for tables and charts.",
        ),
        key("description", Kind::Text, "none", "\"Why this is run.\"", "Free text."),
        key(DURATION, Kind::Length, REQUIRED, "\"60s\"", "How long the run lasts."),
        key(
            "seed",
            Kind::Integer { min: 0, max: i64::MAX as u64 },
            "1",
            "7",
            "The seed of everything random; the same seed gives the same run.",
        ),
        key(
            "seeds",
            Kind::Seeds,
            "`seed` alone",
            "8",
            "The seeds with which `xcpnet reproduce` runs the file: this many, starting from \
             `seed`, or those of a list. Other commands use `seed`.",
        ),
        key(
            "measure",
            Kind::Table(&MEASURE),
            "the whole run",
            "{ from = \"20s\", to = \"60s\" }",
            "The period that the summary covers.",
        ),
        key(
            "sample",
            Kind::Sample,
            "at least 600 samples",
            "\"100ms\"",
            "How often the series are sampled: a time; `\"rtt\"` for the largest base RTT of the \
                flows; `\"off\"` for a summary without series. \
             If absent, the largest of 1, 2, 5, 10, ... ms that gives at least 600 samples (at \
                least 1 ms).",
        ),
        key(
            "link",
            Kind::Tables(&LINK),
            REQUIRED,
            "",
            "The links, at least one. A node exists if a link names it.",
        ),
        key("flow", Kind::Tables(&FLOW), REQUIRED, "", "The flows, at least one."),
        key(
            "variant",
            Kind::Tables(&VARIANT),
            "none",
            "",
            "Runs of the same file that differ in some settings.",
        ),
        key("expect", Kind::Tables(&EXPECT), "none", "", "What is expected of the result."),
        key(
            "quick",
            Kind::Table(&QUICK),
            "see [`quick`](#quick)",
            "{ variants = [\"xcp\"], set = { duration = \"20s\" } }",
            "The part of the file that `xcpnet reproduce --quick` runs.",
        ),
    ],
};

/// `measure`.
pub(crate) static MEASURE: Spec = Spec {
    name: "measure",
    doc: "The measured period, within the run.",
    keys: &[
        key("from", Kind::Time, "`\"0s\"`", "\"20s\"", "Its beginning."),
        key("to", Kind::Time, "`duration`", "\"60s\"", "Its end."),
    ],
};

/// `[[variant]]`.
pub(crate) static VARIANT: Spec = Spec {
    name: "variant",
    doc: "A run of the file with some settings replaced.",
    keys: &[
        key("name", Kind::Name, REQUIRED, "\"newreno\"", "Its name, unique."),
        key(
            "set",
            Kind::Paths,
            "none",
            "{ \"flow.congestion\" = \"newreno\" }",
            "Paths and their values; see Paths below.",
        ),
        key("without", Kind::NameOrNames, "none", "[\"udp\"]", "Flows (or groups) to leave out."),
    ],
};

/// `quick`.
pub(crate) static QUICK: Spec = Spec {
    name: "quick",
    doc: "What `xcpnet reproduce --quick` runs: less than the whole file, but enough that the \
        claims still mean something.",
    keys: &[
        key("variants", Kind::NameOrNames, "all", "[\"xcp\"]", "Run only these variants."),
        key("seeds", Kind::Seeds, "`seed` alone", "2", "Run these seeds, as `seeds` of the file."),
        key(
            "set",
            Kind::Paths,
            "none",
            "{ duration = \"20s\" }",
            "Paths and their values, applied after those of the variant.",
        ),
        key("skip", Kind::Bool, "`false`", "true", "Run nothing from this file."),
    ],
};

/// All tables, in the order of the documentation.
pub(crate) static ALL: &[&Spec] = &[
    &FILE,
    &MEASURE,
    &LINK,
    &REVERSE,
    &QUEUE,
    &LAW,
    &POLICE,
    &LAW_CHANGE,
    &LOSS,
    &BLACKOUT,
    &REORDER,
    &FLOW,
    &BUFFER_CHANGE,
    &BYTES,
    &UDP,
    &LIES,
    &VARIANT,
    &EXPECT,
    &THAN,
    &QUICK,
];
