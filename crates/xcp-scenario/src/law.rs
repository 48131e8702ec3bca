//! The table `law`. Its words, ranges and what they mean are `xcp-law`'s, what the choices do
//! `engine/`'s.

use xcp_law::{KEYS, Preset, RouterConfig, Takes};

use xcp_model::Law;

use crate::fields::Fields;
use crate::spec::{Key, Kind};

/// The row of the file's table for a key of the law.
pub(crate) const fn spec_key(key: &xcp_law::Key) -> Key {
    let kind = match key.takes {
        Takes::Preset => Kind::Choice(Preset::WORDS),
        Takes::Capacity => Kind::Rate,
        Takes::Queue => Kind::Standing,
        Takes::Fraction(_) => Kind::Number { min: 0.0, max: 1.0 },
        Takes::Bool(_) => Kind::Bool,
        Takes::Bytes { most, .. } => Kind::Size { min: 0, max: most as u64 },
        Takes::Count(_) => Kind::Integer { min: 1, max: u8::MAX as u64 },
        Takes::Time(_) => Kind::Length,
        Takes::Word { words, .. } => Kind::Choice(words),
    };
    Key { name: key.name, kind, default: key.default, example: key.example, doc: key.doc }
}

/// Reads a `law`; its queue target is known once the flows are.
pub(crate) fn read(fields: &Fields<'_>) -> Law {
    let mut law = Law::xcp();
    for key in KEYS {
        let to = &mut law.config;
        match key.takes {
            Takes::Preset => {
                law = fields.choice(key.name).and_then(Preset::named).map_or(law, Law::preset);
            }
            Takes::Capacity => law.capacity_bps = fields.rate(key.name),
            Takes::Queue => {}
            Takes::Fraction(set) => given(fields.number(key.name), |v| set(to, v)),
            Takes::Bool(set) => given(fields.bool(key.name), |on| set(to, on)),
            Takes::Bytes { set, .. } => given(fields.size(key.name), |n| set(to, n as u32)),
            Takes::Count(set) => given(fields.integer(key.name), |n| set(to, n as u8)),
            Takes::Time(set) => given(fields.time(key.name), |ns| set(to, ns)),
            Takes::Word { set, .. } => given(fields.choice(key.name), |word| {
                let known = set(to, word);
                debug_assert!(known, "{}: \"{word}\" is among its words", key.name);
            }),
        }
    }
    // The rate of the link is judged where it is read.
    if let Err(wrong) = (RouterConfig { capacity_bytes_per_sec: 1, ..law.config.clone() }).check() {
        let written = wrong.keys().iter().find(|key| fields.item(key).is_some());
        let at = fields.span_of(written.unwrap_or(&wrong.keys()[0]));
        fields.faults.add(at, wrong.to_string(), wrong.remedy());
    }
    law
}

fn given<T>(value: Option<T>, set: impl FnOnce(T)) {
    if let Some(value) = value {
        set(value);
    }
}

const _: () = assert!(matches!(KEYS[0].takes, Takes::Preset), "all others change what it sets");
