//! `xcpnet router`: what is asked for becomes a plan of `xcp_linux::kept`; `show` prints what is
//! there.

mod show;

use std::io::Read as _;

use xcp_engine::PolicerConfig;
use xcp_law::typed;
use xcp_law::{Input, Key, Preset, RouterConfig, Takes};
use xcp_linux::kept::{self, RouterPlan, Shaping};
use xcp_linux::namespace::Namespace;
use xcp_linux::police::{Police, PoliceBy};
use xcp_linux::qdisc::{Limit, Others, Shaper};
use xcp_linux::router::Hook;
use xcp_model as model;
use xcp_report::human;

pub(super) use self::show::readings;
use self::show::{notes, queue, shown};
use super::{namespace, need_root, watched};
use crate::cli::router::{RouterArguments, RouterCommand, Settings, law_keys, number};
use crate::failure::Failure;
use crate::output::Printer;

/// Packets that may wait where nothing is said, as the scenario file has it.
const DEFAULT_LIMIT: u64 = xcp_scenario::DEFAULT_LIMIT_PACKETS;
/// What `bdp` reckons with where no RTT is given.
const DEFAULT_RTT_NS: u64 = 100_000_000;
/// The longest control interval where nothing is said, unless four times the `rtt` given is longer.
/// The senders of a real network are strangers, and one that claims 65 s, which is what the law
/// itself allows, keeps the router from looking for as long. `rtt` is the longest path's with empty
/// queues; with a queue of 2bdp it is three times that.
const MAX_INTERVAL_NS: u64 = 1_000_000_000;
/// The law where none is named and nothing is asked for that it does not have.
const DEFAULT_LAW: Preset = Preset::Robust;
/// What `police` takes.
const POLICE: &[(&str, bool)] = &[("on", true), ("off", false)];
/// Full frames, for targets given in packets.
const FRAME_BYTES: u32 = 1514;

/// Does what was asked.
pub fn router(arguments: &RouterArguments, printer: &mut Printer) -> Result<(), Failure> {
    match &arguments.command {
        RouterCommand::Add { settings, netns, config: _ } => {
            add(&settings.0, netns.as_deref(), printer)
        }
        RouterCommand::Change { settings, netns } => change(&settings.0, netns.as_deref(), printer),
        RouterCommand::Del { dev, netns } => {
            need_root()?;
            kept::delete(dev, &namespace(netns.as_deref())?)?;
            printer.line(&format!("{dev}: router removed"))
        }
        RouterCommand::Show { dev, netns, json, watch } => {
            need_root()?;
            let netns = namespace(netns.as_deref())?;
            watched(*watch, printer, || {
                let routers = match dev {
                    Some(device) => vec![kept::need(device, &netns)?],
                    None => kept::list(&netns)?,
                };
                shown(&routers, netns.called(), *json)
            })
        }
    }
}

fn device(settings: &Settings) -> &str {
    settings.text("dev").unwrap_or_default()
}

fn capacity(text: &str) -> Result<u64, String> {
    match typed::rate(text)? {
        0..8 => Err(format!("{text} is not a capacity; write one like 10mbit")),
        bps => Ok(bps),
    }
}

fn round_trip(text: &str) -> Result<u64, String> {
    match typed::time(text)? {
        0 => Err(format!("{text} is not a round trip; write one like 600ms")),
        nanos => Ok(nanos),
    }
}

/// The queue's limit as the kernel takes it.
fn limit(settings: &Settings, capacity_bps: u64) -> Result<Option<Limit>, Failure> {
    let rtt = settings.read("rtt", round_trip)?.unwrap_or(DEFAULT_RTT_NS);
    let limit = settings.read("limit", |text| typed::limit(text, capacity_bps, rtt))?;
    let small = |n: u64| {
        u32::try_from(n).map_err(|_| {
            Failure::new(format!(
                "limit: {n} is more than the kernel accepts; write a smaller \
                number"
            ))
        })
    };
    limit
        .map(|limit| match limit {
            model::Limit::Packets(n) => small(n).map(Limit::Packets),
            model::Limit::Bytes(n) => small(n).map(Limit::Bytes),
        })
        .transpose()
}

/// A limit of bytes has to hold a full frame of the device, or nothing but short packets passes:
/// what is given as `bdp` is at least that, as in the scenario file.
fn with_room(
    limit: Limit,
    settings: &Settings,
    device: &str,
    netns: &Namespace,
) -> Result<Limit, Failure> {
    let Limit::Bytes(bytes) = limit else { return Ok(limit) };
    let frame = kept::full_frame(device, netns)?;
    let text = settings.text("limit").unwrap_or_default();
    if bytes >= frame {
        Ok(limit)
    } else if text.ends_with("bdp") {
        Ok(Limit::Bytes(frame))
    } else {
        Err(Failure::new(format!(
            "limit: a queue of {text} does not hold one full frame of {device}, which has {frame} \
             bytes; write at least {frame}b, or packets (100p)"
        )))
    }
}

fn add(settings: &Settings, netns: Option<&str>, printer: &mut Printer) -> Result<(), Failure> {
    let device = device(settings).to_owned();
    let capacity_bps = settings.read("capacity", capacity)?.unwrap_or_default();
    let others = others(settings)?;
    let (preset, law) = law(settings, capacity_bps)?;
    let given = limit(settings, capacity_bps)?;
    let shaper = settings.choice(
        "shaper",
        &[("htb", Some(Shaper::Htb)), ("tbf", Some(Shaper::Tbf)), ("none", None)],
    );
    let mut shaping = match (shaper.unwrap_or(Some(Shaper::Htb)), others) {
        (Some(Shaper::Htb), Some((others, law_share))) => Shaping::Classes {
            others,
            limit: given.unwrap_or(Limit::Packets(DEFAULT_LIMIT as u32)),
            law_share,
        },
        (_, Some(_)) => {
            return Err(Failure::new("others: only htb has two queues; leave out `shaper`"));
        }
        (Some(shaper), None) => {
            Shaping::Ours(shaper, given.unwrap_or(Limit::Packets(DEFAULT_LIMIT as u32)))
        }
        (None, None) if given.is_some() => {
            return Err(Failure::new(
                "limit: with `shaper none` xcpnet does not control the queue's limit; leave it out",
            ));
        }
        (None, None) => Shaping::None,
    };
    let hook = settings
        .choice("hook", &[("tcx", Hook::Tcx), ("clsact", Hook::Clsact)])
        .unwrap_or(Hook::Any);
    let seed = match settings.number("seed")? {
        Some(seed) => seed,
        None => random()?,
    };
    let police = police(settings, law.max_interval_ns)?;
    need_root()?;
    let netns = namespace(netns)?;
    if let Some(limit) = shaping.limit_mut() {
        *limit = with_room(*limit, settings, &device, &netns)?;
    }
    let made = kept::add(&RouterPlan { device, law, shaping, hook, seed, police }, &netns)?;
    printer.line(&format!(
        "{}: router with {} added (law {}, {})",
        made.device.name,
        human::rate(capacity_bps as f64),
        preset.name(),
        queue(&made)
    ))?;
    notes(&made, netns.called()).iter().try_for_each(|note| printer.line(note))
}

/// The law that was asked for; where none is named, the first of two that goes with what else was.
fn law(settings: &Settings, capacity_bps: u64) -> Result<(Preset, RouterConfig), Failure> {
    let of = |preset| law_of(settings, preset, capacity_bps).map(|law| (preset, law));
    match settings.text("law").and_then(Preset::named) {
        Some(preset) => of(preset),
        None => of(DEFAULT_LAW).or_else(|_| of(Preset::Xcp)),
    }
}

/// A preset with what was set of it.
fn law_of(settings: &Settings, preset: Preset, capacity_bps: u64) -> Result<RouterConfig, Failure> {
    let given_rtt = settings.read("rtt", round_trip)?;
    let classes = others(settings)?.is_some();
    let mut law = RouterConfig {
        max_interval_ns: longest_interval(given_rtt),
        ..RouterConfig::preset(preset, capacity_bps / 8)
    };
    if classes {
        // What waits in another queue is none of the law's.
        law.input = Input::Xcp;
    }
    for key in law_keys() {
        let queue = |text: &str| {
            typed::standing(text, capacity_bps, given_rtt.unwrap_or(DEFAULT_RTT_NS), FRAME_BYTES)
        };
        settings.read(key.name, |text| set(&mut law, key, text, queue))?;
    }
    let policed = settings.choice("police", POLICE) == Some(true);
    xcp_linux::router::check(&law, policed, classes)?;
    law.check().map_err(|wrong| {
        let keys = wrong.keys();
        let key = keys.iter().find(|key| settings.text(key).is_some()).unwrap_or(&keys[0]);
        Failure::new(format!("{key}: {wrong}; {}", as_typed(wrong.remedy())))
    })?;
    Ok(law)
}

/// A remedy in the words of the command line: what a scenario's file has as `preset = "robust"` is
/// `law robust` here.
fn as_typed(remedy: &str) -> String {
    remedy.replace(" = ", " ").replace('"', "").replace("preset", "law")
}

/// Sets what a key of the law is given; `queue` reads the length of one.
fn set(
    law: &mut RouterConfig,
    key: &Key,
    text: &str,
    queue: impl Fn(&str) -> Result<u64, String>,
) -> Result<(), String> {
    match key.takes {
        Takes::Preset | Takes::Capacity => {}
        Takes::Queue => law.queue_target_bytes = queue(text)?,
        Takes::Fraction(set) => {
            let fraction = text.parse();
            set(law, fraction.map_err(|_| format!("\"{text}\" is not a number like 0.5"))?)
        }
        Takes::Bool(set) => set(law, text == "on"),
        Takes::Bytes { set, .. } => set(law, number(text)?),
        Takes::Count(set) => set(law, number(text)?),
        Takes::Time(set) => set(law, typed::time(text)?),
        Takes::Word { words, set } => {
            if !set(law, text) {
                return Err(format!("\"{text}\" is not one of {}", words.join(", ")));
            }
        }
    }
    Ok(())
}

/// The longest control interval where none is given, by the RTT that is.
fn longest_interval(rtt_ns: Option<u64>) -> u64 {
    rtt_ns
        .unwrap_or(0)
        .saturating_mul(4)
        .clamp(MAX_INTERVAL_NS, RouterConfig::xcp(1).max_interval_ns)
}

/// How XCP's packets and all others are to be kept apart, and the thousandths of the capacity that
/// the law may then hand out.
fn others(settings: &Settings) -> Result<Option<(Others, u16)>, Failure> {
    let share = settings.read("share", |text| match text.parse() {
        Ok(share) if (0.01..=0.99).contains(&share) => Ok(share),
        _ => Err(format!("\"{text}\" is not a number from 0.01 to 0.99")),
    })?;
    let fair = Others::fair(share.unwrap_or(0.5));
    let Others::Fair(thousandths) = fair else { return Ok(None) };
    let choices = [
        ("shared", None),
        ("first", Some((Others::First, 1000))),
        ("last", Some((Others::Last, 1000))),
        ("fair", Some((fair, 1000))),
        ("split", Some((fair, thousandths))),
    ];
    let others = settings.choice("others", &choices).flatten();
    if share.is_some() && !others.is_some_and(|(others, _)| others == fair) {
        return Err(Failure::new("share: it needs `others fair` or `others split`"));
    }
    Ok(others)
}

/// The policer that was asked for. What the law does not believe of round trips, it does not
/// either.
fn police(settings: &Settings, longest_rtt_ns: u64) -> Result<Option<Police>, Failure> {
    let on = settings.choice("police", POLICE).unwrap_or(false);
    if let Some(key) = ["police-flows", "police-by", "police-prefix"]
        .into_iter()
        .find(|key| !on && settings.text(key).is_some())
    {
        return Err(Failure::new(format!("{key}: there is no policer; add `police on`")));
    }
    let prefix = settings.read("police-prefix", prefix)?;
    let by = match settings.choice(
        "police-by",
        &[("flow", PoliceBy::Flow), ("address", PoliceBy::ADDRESS), ("prefix", PoliceBy::PREFIX)],
    ) {
        Some(PoliceBy::PREFIX) => prefix.unwrap_or(PoliceBy::PREFIX),
        _ if prefix.is_some() => {
            return Err(Failure::new("police-prefix: add `police-by prefix`"));
        }
        by => by.unwrap_or(PoliceBy::Flow),
    };
    let flows = settings.read("police-flows", |text| match text.parse() {
        Ok(flows @ 1..=PolicerConfig::FLOWS_MAX) => Ok(flows),
        _ => Err(format!("\"{text}\" is not a number from 1 to {}", PolicerConfig::FLOWS_MAX)),
    })?;
    let seed = if on { random()? } else { 0 };
    let config = PolicerConfig {
        flows: flows.unwrap_or(PolicerConfig::DEFAULT.flows),
        longest_rtt_ns,
        seed,
    };
    Ok(on.then_some(Police { config, by }))
}

/// Bits of an IPv4 and of an IPv6 address: `24,64`.
fn prefix(text: &str) -> Result<PoliceBy, String> {
    let both = text.split_once(',').and_then(|(v4, v6)| Some((v4.parse().ok()?, v6.parse().ok()?)));
    match both {
        Some((v4 @ 0..=32, v6 @ 0..=128)) => Ok(PoliceBy::Source { v4, v6 }),
        _ => Err(format!(
            "\"{text}\" does not give the number of bits of an IPv4 and of an IPv6 address; write \
             e.g. 24,64"
        )),
    }
}

/// A seed of which two routers do not have the same: their links' ids follow from it.
pub(super) fn random() -> Result<u64, Failure> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut bytes)).map_err(
        |e| {
            Failure::new(format!(
                "no random numbers from /dev/urandom ({e}); write `seed N`, with a different \
                 number for each router"
            ))
        },
    )?;
    Ok(u64::from_ne_bytes(bytes))
}

fn change(settings: &Settings, netns: Option<&str>, printer: &mut Printer) -> Result<(), Failure> {
    let device = device(settings);
    let wanted = settings.read("capacity", capacity)?;
    if wanted.is_none() && settings.text("limit").is_none() {
        return Err(Failure::new("nothing to change: write `capacity RATE` or `limit LENGTH`"));
    }
    need_root()?;
    let netns = namespace(netns)?;
    let reckon = match wanted {
        Some(capacity) => capacity,
        None => {
            let kept = kept::need(device, &netns)?;
            match kept.qdisc.rate_bps {
                Some(rate_bps) if kept.is_ours() => rate_bps,
                _ => kept.router.status()?.state.capacity_bps as u64,
            }
        }
    };
    let limit = limit(settings, reckon)?
        .map(|limit| with_room(limit, settings, device, &netns))
        .transpose()?;
    let made = kept::change(device, wanted, limit, &netns)?;
    printer.line(&format!(
        "{device}: router changed to {} ({})",
        human::rate(reckon as f64),
        queue(&made)
    ))?;
    notes(&made, netns.called()).iter().try_for_each(|note| printer.line(note))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::router::tests::add as settings;
    use xcp_law::Control;

    /// A router of the kernel takes every key that a scenario's takes.
    #[test]
    fn every_key_of_the_law_is_taken() {
        for key in law_keys() {
            let value = match key.takes {
                Takes::Bool(_) => "off",
                _ => key.example.trim_matches('"'),
            };
            let read = settings(&format!("{} {value}", key.name));
            // What to do with TCP only a law with a calendar is asked.
            let preset = if key.name == "tcp" { Preset::Robust } else { Preset::Xcp };
            let before = RouterConfig::preset(preset, 1_250_000);
            let mut law = before.clone();
            let queue = |text: &str| typed::standing(text, 10_000_000, 100_000_000, FRAME_BYTES);
            set(&mut law, key, read.text(key.name).unwrap(), queue).unwrap();
            assert_ne!(law, before, "{} {value}", key.name);
        }
    }

    /// Where no law is named, `robust`, but for what it does not have.
    #[test]
    fn the_law_is_the_first_that_goes_with_what_else_is_asked() {
        let of = |text: &str| law(&settings(text), 10_000_000);
        for (words, preset) in [
            ("", Preset::Robust),
            ("rtt 600ms limit 2bdp overhead 4 gamma 0.2 max-interval 2s", Preset::Robust),
            ("target 5ms alpha 0.5", Preset::Robust),
            ("others shared police off tcp left", Preset::Robust),
            ("police on", Preset::Xcp),
            ("others fair", Preset::Xcp),
            ("gain own-rtt", Preset::Xcp),
            ("input xcp", Preset::Xcp),
            ("beta 0.1", Preset::Xcp),
            ("spare-most 2", Preset::Xcp),
            ("pools off", Preset::Xcp),
            ("law xcp", Preset::Xcp),
            ("law p-xcp police on", Preset::PXcp),
        ] {
            let (named, law) = of(words).unwrap_or_else(|e| panic!("{words}: {e}"));
            assert_eq!(named, preset, "{words}");
            let calendar = law.control == Control::Calendar;
            assert_eq!(calendar, preset == Preset::Robust, "{words}");
        }
        for (wrong, why) in [
            ("law robust police on", "police: the law `robust` has no policer"),
            ("law robust others fair", "others: the law `robust` steers TCP in its own queue"),
            ("law robust gain own-rtt", "gain: a router with a calendar allows only"),
            ("law robust spare-most 2", "spare-most: a router with a calendar allows only"),
            ("law robust beta 0.1", "beta: a router with a calendar allows only"),
            ("police on tcp steered", "tcp: this requires a router with a calendar"),
            ("alpha 2", "alpha: 2 is out of range"),
            (
                "overhead -4",
                "overhead: \"-4\" is not possible here; write a whole number, 0 or more",
            ),
            (
                "overhead 99999999999",
                "overhead: \"99999999999\" is not possible here; this is too l",
            ),
            ("max-interval soon", "max-interval: "),
        ] {
            let error = of(wrong).expect_err(wrong).to_string();
            assert!(error.starts_with(why), "{wrong}: {error}");
        }
        let twice = of("capacity-for-xcp minus-other input all").unwrap_err().to_string();
        assert!(twice.ends_with("write input xcp with capacity-for-xcp minus-other"), "{twice}");
    }

    #[test]
    fn the_longest_interval_follows_the_longest_path() {
        let second = 1_000_000_000;
        for (rtt, longest) in [
            (None, second),
            (Some(second / 10), second),
            (Some(second / 4), second),
            (Some(6 * second / 10), 24 * second / 10),
            (Some(20 * second), 65_536_000_000),
            (Some(u64::MAX), 65_536_000_000),
        ] {
            assert_eq!(longest_interval(rtt), longest, "{rtt:?}");
        }
    }

    #[test]
    fn queues_as_they_are_asked_for() {
        let of = |text: &str| others(&settings(text));
        for (text, wanted) in [
            ("", None),
            ("others shared", None),
            ("others first", Some((Others::First, 1000))),
            ("others last", Some((Others::Last, 1000))),
            ("others fair", Some((Others::Fair(500), 1000))),
            ("others fair share 0.7", Some((Others::Fair(700), 1000))),
            ("share 0.7 others split", Some((Others::Fair(700), 700))),
        ] {
            assert_eq!(of(text).unwrap(), wanted, "{text}");
        }
        for (wrong, why) in [
            ("share 0.7", "others fair"),
            ("others first share 0.7", "others fair"),
            ("others fair share 1", "0.01 to 0.99"),
            ("others fair share NaN", "0.01 to 0.99"),
        ] {
            let error = of(wrong).unwrap_err().to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    fn police_of(text: &str) -> Result<Option<Police>, Failure> {
        let settings = settings(text);
        police(&settings, longest_interval(settings.read("rtt", typed::time)?))
    }

    #[test]
    fn policers_as_they_are_asked_for() {
        assert_eq!(police_of("").unwrap(), None);
        assert_eq!(police_of("police off").unwrap(), None);
        let plain = police_of("police on").unwrap().unwrap();
        assert_eq!(
            (plain.by, plain.config.flows, plain.config.longest_rtt_ns),
            (PoliceBy::Flow, 4096, 1_000_000_000)
        );
        assert_ne!(
            plain.config.seed,
            police_of("police on").unwrap().unwrap().config.seed,
            "a secret is drawn anew"
        );
        let long =
            police_of("police on rtt 600ms police-flows 20 police-by prefix police-prefix 20,56")
                .unwrap()
                .unwrap();
        assert_eq!((long.by, long.config.flows), (PoliceBy::Source { v4: 20, v6: 56 }, 20));
        assert_eq!(long.config.longest_rtt_ns, 2_400_000_000);
        for (wrong, why) in [
            ("police-by flow", "police on"),
            ("police on police-prefix 24,64", "police-by prefix"),
            ("police on police-by prefix police-prefix 33,64", "24,64"),
            ("police on police-flows 0", "1 to 1048576"),
        ] {
            let error = police_of(wrong).unwrap_err().to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
