//! The keys that set a law: name, what each takes, what holds without it, an example, its meaning,
//! and what it sets. Scenario files and `xcpnet router add` read by this table.

use crate::choice::{
    CapacityForXcp, CapacityKnown, Control, Gain, Input, Interval, Preset, Shuffle, Spare, Tcp,
};
use crate::config::RouterConfig;

/// A key of a law.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What it takes, and what that sets.
    pub takes: Takes,
    /// What holds without it, for people.
    pub default: &'static str,
    /// An example value, written as TOML.
    pub example: &'static str,
    /// What it means, in a sentence for users.
    pub doc: &'static str,
}

/// What a key takes; where that alone says what is set, the function that sets it.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// The name of a law, which all other keys change.
    Preset,
    /// The capacity that the router believes in. Whoever knows the link sets it.
    Capacity,
    /// A queue, in bytes, packets, time, or bandwidth-delay products. Whoever knows the link and
    /// its paths sets [`RouterConfig::queue_target_bytes`].
    Queue,
    /// A number from 0 to 1; [`RouterConfig::check`] knows which ends belong to it.
    Fraction(fn(&mut RouterConfig, f64)),
    /// Yes or no.
    Bool(fn(&mut RouterConfig, bool)),
    /// Bytes, up to a most.
    Bytes {
        /// The most.
        most: u32,
        /// Sets it.
        set: fn(&mut RouterConfig, u32),
    },
    /// A whole number from 1 to 255.
    Count(fn(&mut RouterConfig, u8)),
    /// A time in nanoseconds, longer than 0.
    Time(fn(&mut RouterConfig, u64)),
    /// One of some words.
    Word {
        /// The words.
        words: &'static [&'static str],
        /// Sets what a word stands for; `false`, and nothing is set, for a word that is not there.
        set: fn(&mut RouterConfig, &str) -> bool,
    },
}

/// A key for a choice: its words and their meaning are the choice's.
macro_rules! choice {
    ($name:literal, $choice:ident, $field:ident, $default:literal, $example:literal) => {
        Key {
            name: $name,
            takes: Takes::Word {
                words: $choice::WORDS,
                set: |law, word| match $choice::named(word) {
                    Some(value) => {
                        law.$field = value;
                        true
                    }
                    None => false,
                },
            },
            default: $default,
            example: $example,
            doc: $choice::DOC.trim_ascii_start(),
        }
    };
}

/// All keys, in the order of the documentation.
pub const KEYS: &[Key] = &[
    Key {
        name: "preset",
        takes: Takes::Preset,
        default: "`\"xcp\"`",
        example: "\"xcp\"",
        doc: Preset::DOC.trim_ascii_start(),
    },
    Key {
        name: "alpha",
        takes: Takes::Fraction(|law, v| law.alpha = v),
        default: "the preset's; 0.4",
        example: "0.2",
        doc: "Gain on spare bandwidth, above 0 and below 1. Stable below 0.555 (π/(4√2)); for `robust`, see \
              `control`.",
    },
    Key {
        name: "beta",
        takes: Takes::Fraction(|law, v| law.beta = v),
        default: "the preset's; 0.226",
        example: "0.05",
        doc: "Gain on the persistent queue, below 1; α²√2 at the default.",
    },
    Key {
        name: "gamma",
        takes: Takes::Fraction(|law, v| law.gamma = v),
        default: "0.1",
        example: "0.2",
        doc: "Share of the traffic, below 1, that is shuffled between the flows in every control \
              interval.",
    },
    Key {
        name: "overhead",
        takes: Takes::Bytes { most: 65535, set: |law, n| law.overhead_bytes = n },
        default: "0",
        example: "38",
        doc: "Bytes added to each packet's size for framing that the router cannot see (Ethernet: \
              38; in the kernel, where the header is seen, 24).",
    },
    Key {
        name: "pools",
        takes: Takes::Bool(|law, on| law.pools = on),
        default: "`true`",
        example: "false",
        doc: "Whether feedback is charged to residue pools, so that no control interval hands out \
            more than it has.",
    },
    Key {
        name: "capacity",
        takes: Takes::Capacity,
        default: "the link's rate",
        example: "\"9.5mbit\"",
        doc: "The capacity that the router assumes. `robust` takes it for the most that there can be.",
    },
    Key {
        name: "target",
        takes: Takes::Queue,
        default: "0",
        example: "\"5ms\"",
        doc: "The queue that may stand (XCP-IR's Q_T): the router applies `beta` only to the part \
            of the persistent queue above it, and asks for more traffic if the queue is shorter.",
    },
    choice!(
        "input",
        Input,
        input,
        "the preset's; `\"all\"`; with `others` in a queue of their own `\"xcp\"`",
        "\"xcp\""
    ),
    choice!("interval", Interval, interval, "the preset's; `\"mean\"`", "\"max\""),
    Key {
        name: "min-interval",
        takes: Takes::Time(|law, ns| law.min_interval_ns = ns),
        default: "`\"100us\"`",
        example: "\"1ms\"",
        doc: "The shortest control interval. A d below it is still used as the divisor.",
    },
    Key {
        name: "max-interval",
        takes: Takes::Time(|law, ns| law.max_interval_ns = ns),
        default: "`\"65.536s\"`",
        example: "\"1s\"",
        doc: "The longest control interval, and the longest RTT that is believed: a longer one \
            counts as this. A sender that claims a long RTT slows the router down for everybody; \
            if you know the longest RTT of the paths and do not trust the senders, set it here. A \
            value below the true RTTs raises the gain: `\"1s\"` with RTTs of 2 s doubles it.",
    },
    choice!(
        "capacity-for-xcp",
        CapacityForXcp,
        capacity_for_xcp,
        "the preset's; `\"configured\"`",
        "\"minus-other\""
    ),
    choice!("shuffle", Shuffle, shuffle, "the preset's; `\"all\"`", "\"matching\""),
    choice!("spare", Spare, spare, "the preset's; `\"all\"`", "\"scaled\""),
    Key {
        name: "spare-most",
        takes: Takes::Count(|law, n| law.spare_most = n),
        default: "8",
        example: "2",
        doc: "The upper limit of N/N_b when `spare` is scaled by it.",
    },
    choice!("gain", Gain, gain, "the preset's; `\"uniform\"`", "\"own-rtt\""),
    choice!("control", Control, control, "the preset's; `\"draft\"`", "\"draft\""),
    choice!("tcp", Tcp, tcp, "the preset's; `\"left\"`", "\"left\""),
    choice!("capacity-known", CapacityKnown, capacity_known, "`\"given\"`", "\"given\""),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Every key sets something, and no two set the same.
    #[test]
    fn a_key_sets_what_no_other_sets() {
        let mut changed: Vec<RouterConfig> = vec![RouterConfig::xcp(1000)];
        for key in KEYS {
            let mut law = changed[0].clone();
            match key.takes {
                Takes::Preset | Takes::Capacity | Takes::Queue => continue,
                Takes::Fraction(set) => set(&mut law, 0.77),
                Takes::Bool(set) => set(&mut law, false),
                Takes::Bytes { set, .. } => set(&mut law, 7),
                Takes::Count(set) => set(&mut law, 7),
                Takes::Time(set) => set(&mut law, 7_000_000),
                Takes::Word { words, set } => {
                    assert!(words.iter().all(|word| set(&mut law, word)), "{}", key.name);
                    let before = law.clone();
                    assert!(!set(&mut law, "nothing-of-the-kind") && law == before);
                }
            }
            assert!(!changed.contains(&law), "{} sets what another key sets", key.name);
            changed.push(law);
        }
    }
}
