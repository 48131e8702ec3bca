//! The defaults of the tables are those of the reader, which has them as numbers.

use std::path::Path;

use super::ALL;
use crate::{Overrides, load, plan};

/// A file with every table of the format, each with what it must have. Keys are tried where its
/// name stands.
const EVERYTHING: &str = r#"
duration = "10s"
#: the file
[measure]
#: measure
[quick]
#: quick

[[link]]
between = ["A", "B"]
rate = "10mbit"
delay = "10ms"
#: link
[[link.loss]]
probability = 0.01
#: loss
[[link.blackout]]
from = "2s"
to = "3s"
#: blackout
[link.reorder]
probability = 0.01
most = "5ms"
#: reorder

[[link]]
between = ["B", "C"]
rate = "10mbit"
delay = "10ms"
[link.queue]
#: queue

[[link]]
between = ["C", "D"]
rate = "10mbit"
delay = "10ms"
[link.queue]
kind = "red"
#: queue

[[link]]
between = ["D", "E"]
rate = "10mbit"
delay = "10ms"
[link.queue]
kind = "xcp"
#: queue
[link.queue.law]
#: law
[link.queue.police]
#: police

[[link]]
between = ["E", "F"]
rate = "10mbit"
delay = "10ms"
[link.queue]
kind = "xcp"
#: queue

[[link]]
between = ["F", "G"]
rate = "10mbit"
delay = "10ms"
[link.queue]
kind = "xcp"
others = "fair"
#: queue

[[flow]]
name = "xcp"
count = 2
from = "A"
to = "G"
congestion = "xcp"
#: flow
[flow.bytes]
mean = "1mb"
#: bytes
[flow.lies]
rtt = "2x"
#: lies

[[flow]]
name = "reno"
from = "A"
to = "G"
congestion = "reno"
#: flow

[[flow]]
name = "datagrams"
from = "A"
to = "G"
#: flow
[flow.udp]
pattern = "on-off"
rate = "1mbit"
on = "1s"
off = "1s"
#: udp

[[flow]]
name = "blast"
from = "A"
to = "G"
[flow.udp]
rate = "1mbit"
#: udp
[flow.lies]
rtt = "1s"
window = "1p"
#: lies

[[variant]]
name = "one"
#: variant

[[variant]]
name = "other"

[[expect]]
metric = "links.A-B.utilisation"
min = 0.1
#: expect
[expect.than]
variant = "one"
#: than
"#;

/// The value that a default says there is, as TOML; `None` for what is told in words.
fn value(default: &str) -> Option<String> {
    let text = default.strip_prefix("the preset's; ").unwrap_or(default);
    let text = text.split("; ").next().unwrap_or(text);
    let text = text.strip_suffix(" packets").unwrap_or(text);
    let text = text.strip_prefix('`').and_then(|t| t.strip_suffix('`')).unwrap_or(text);
    toml::de::DeValue::parse(text).is_ok().then(|| text.to_owned())
}

#[test]
fn a_default_as_written_is_what_holds_without_it() {
    let path = Path::new("everything.toml");
    let read = |text: &str| {
        let quick = Overrides { quick: true, ..Overrides::none() };
        let scenarios = [Overrides::none(), quick].map(|o| load(path, text, &o));
        let [all, quick] = scenarios;
        Ok::<_, crate::ScenarioError>((all?, quick?, plan(path, text)?))
    };
    let absent = read(EVERYTHING).unwrap();
    let mut tried = 0;
    for spec in ALL {
        let mark = format!("#: {}\n", spec.name);
        for (key, value) in spec.keys.iter().filter_map(|k| Some((k, value(k.default)?))) {
            let setting = format!("{} = {value}\n", key.name);
            let written = EVERYTHING
                .match_indices(&mark)
                .map(|(at, _)| format!("{}{setting}{}", &EVERYTHING[..at], &EVERYTHING[at..]));
            // Some keys are for some kinds of flows and queues only.
            let taken: Vec<_> = written.filter_map(|text| read(&text).ok()).collect();
            assert!(!taken.is_empty(), "no {} takes {setting}", spec.name);
            for given in taken {
                assert!(given == absent, "{setting} in {} is not what holds without it", spec.name);
            }
            tried += 1;
        }
    }
    assert!(tried > 40, "{tried}");
}

#[test]
fn values_are_told_from_words() {
    let told = |default| value(default).unwrap_or_default();
    assert_eq!(told("`\"200ms\"`"), "\"200ms\"");
    assert_eq!(told("the preset's; 0.4"), "0.4");
    assert_eq!(told("1000 packets"), "1000");
    for words in ["none", "`duration`", "`seed` alone", "`true` for xcp, else `false`", "required"]
    {
        assert_eq!(value(words), None, "{words}");
    }
}
