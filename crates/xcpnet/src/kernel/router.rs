//! `xcpnet router`.

use std::io::Read as _;

use serde_json::json;
use xcp_engine::{Gain, Interval, Preset, RouterConfig};
use xcp_linux::kept::{self, KeptRouter, RouterPlan, Shaping};
use xcp_linux::qdisc::{Limit, Shaper};
use xcp_linux::router::{Hook, RouterStatus};
use xcp_report::human;
use xcp_scenario::model;
use xcp_scenario::typed;

use super::words::Words;
use super::{namespace, need_root, watched};
use crate::cli::{RouterArguments, RouterCommand};
use crate::failure::Failure;
use crate::output::Printer;

const ADD: &str = "dev capacity law limit rtt shaper overhead target alpha beta gamma interval gain input pools hook seed";
const CHANGE: &str = "dev capacity limit rtt";
/// Packets that may wait where nothing is said, as the scenario file has it.
const DEFAULT_LIMIT: u64 = xcp_scenario::DEFAULT_LIMIT_PACKETS;
/// What `bdp` reckons with where no RTT is given.
const DEFAULT_RTT_NS: u64 = 100_000_000;
/// Full frames, for targets given in packets.
const FRAME_BYTES: u32 = 1514;

/// Does what was asked.
pub fn router(arguments: &RouterArguments, printer: &mut Printer) -> Result<(), Failure> {
    match &arguments.command {
        RouterCommand::Add { words, netns } => add(words, netns.as_deref(), printer),
        RouterCommand::Change { words, netns } => change(words, netns.as_deref(), printer),
        RouterCommand::Del { words, netns } => {
            need_root()?;
            let words = Words::new(words, "dev")?;
            let device = device(&words)?;
            kept::delete(device, &namespace(netns.as_deref())?)?;
            printer.line(&format!("{device}: router removed"))
        }
        RouterCommand::Show { words, netns, json, watch } => {
            need_root()?;
            let words = Words::new(words, "dev")?;
            let netns = namespace(netns.as_deref())?;
            let only = words.text("dev").map(ToOwned::to_owned);
            watched(*watch, printer, || {
                let routers = match &only {
                    Some(device) => vec![kept::need(device, &netns)?],
                    None => kept::list(&netns)?,
                };
                shown(&routers, *json)
            })
        }
    }
}

fn device(words: &Words) -> Result<&str, Failure> {
    words.text("dev").ok_or_else(|| Failure::new("which device? write `dev NAME`"))
}

fn capacity(text: &str) -> Result<u64, String> {
    match typed::rate(text)? {
        0..8 => Err(format!("a capacity of {text} is none; write one like 10mbit")),
        bps => Ok(bps),
    }
}

/// The queue's limit as the kernel takes it.
fn limit(words: &Words, capacity_bps: u64) -> Result<Option<Limit>, Failure> {
    let rtt = words.read("rtt", typed::time)?.unwrap_or(DEFAULT_RTT_NS);
    let limit = words.read("limit", |text| typed::limit(text, capacity_bps, rtt))?;
    let small = |n: u64| u32::try_from(n).map_err(|_| Failure::new(format!("limit: {n} is more than the kernel takes; write less")));
    limit
        .map(|limit| match limit {
            model::Limit::Packets(n) => small(n).map(Limit::Packets),
            model::Limit::Bytes(n) => small(n).map(Limit::Bytes),
        })
        .transpose()
}

fn add(words: &[String], netns: Option<&str>, printer: &mut Printer) -> Result<(), Failure> {
    let words = Words::new(words, ADD)?;
    let device = device(&words)?.to_owned();
    let capacity_bps =
        words.read("capacity", capacity)?.ok_or_else(|| Failure::new("what capacity? write `capacity RATE`, e.g. capacity 10mbit"))?;
    let presets = Preset::ALL.map(|preset| (preset.name(), preset));
    let mut law = RouterConfig::preset(words.choice("law", &presets)?.unwrap_or_default(), capacity_bps / 8);
    let rtt = words.read("rtt", typed::time)?.unwrap_or(DEFAULT_RTT_NS);
    if let Some(target) = words.read("target", |text| typed::standing(text, capacity_bps, rtt, FRAME_BYTES))? {
        law.queue_target_bytes = target;
    }
    law.overhead_bytes = words.number("overhead")?.unwrap_or(law.overhead_bytes);
    law.alpha = words.number("alpha")?.unwrap_or(law.alpha);
    law.beta = words.number("beta")?.unwrap_or(law.beta);
    law.gamma = words.number("gamma")?.unwrap_or(law.gamma);
    law.interval = words.choice("interval", &[("mean", Interval::Mean), ("max", Interval::Max)])?.unwrap_or(law.interval);
    law.gain = words.choice("gain", &[("uniform", Gain::Uniform), ("own-rtt", Gain::OwnRtt)])?.unwrap_or(law.gain);
    law.count_other = words.choice("input", &[("all", true), ("xcp", false)])?.unwrap_or(law.count_other);
    law.pools = words.choice("pools", &[("on", true), ("off", false)])?.unwrap_or(true);
    let given = limit(&words, capacity_bps)?;
    let shaper = words.choice("shaper", &[("htb", Some(Shaper::Htb)), ("tbf", Some(Shaper::Tbf)), ("none", None)])?;
    let shaping = match shaper.unwrap_or(Some(Shaper::Htb)) {
        Some(shaper) => Shaping::Ours(shaper, given.unwrap_or(Limit::Packets(DEFAULT_LIMIT as u32))),
        None if given.is_some() => return Err(Failure::new("limit: with `shaper none` the queue is not xcpnet's to limit; leave it out")),
        None => Shaping::None,
    };
    let hook = words.choice("hook", &[("tcx", Hook::Tcx), ("clsact", Hook::Clsact)])?.unwrap_or(Hook::Any);
    let seed = match words.number("seed")? {
        Some(seed) => seed,
        None => random()?,
    };
    need_root()?;
    let made = kept::add(&RouterPlan { device, law, shaping, hook, seed }, &namespace(netns)?)?;
    printer.line(&format!("{}: router with {} added ({})", made.device.name, human::rate(capacity_bps as f64), queue(&made)))?;
    if made.behind.is_empty() { Ok(()) } else { printer.line(&behind(&made.behind)) }
}

/// What it means that programs of others come first.
fn behind(names: &[String]) -> String {
    let names: Vec<&str> = names.iter().map(|name| if name.is_empty() { "one without a name" } else { name }).collect();
    format!("programs of others see packets first (TCX), and what they decide on does not get here: {}", names.join(", "))
}

/// A seed of which two routers do not have the same: their links' ids follow from it.
fn random() -> Result<u64, Failure> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut f| f.read_exact(&mut bytes))
        .map_err(|e| Failure::new(format!("no random numbers from /dev/urandom ({e}); write `seed N`, another one for each router")))?;
    Ok(u64::from_ne_bytes(bytes))
}

fn change(words: &[String], netns: Option<&str>, printer: &mut Printer) -> Result<(), Failure> {
    let words = Words::new(words, CHANGE)?;
    let device = device(&words)?;
    let wanted = words.read("capacity", capacity)?;
    if wanted.is_none() && words.text("limit").is_none() {
        return Err(Failure::new("what is to change? write `capacity RATE` or `limit LENGTH`"));
    }
    need_root()?;
    let netns = namespace(netns)?;
    let reckon = match wanted {
        Some(capacity) => capacity,
        None => kept::need(device, &netns)?.router.status()?.state.capacity_bps as u64,
    };
    let made = kept::change(device, wanted, limit(&words, reckon)?, &netns)?;
    printer.line(&format!("{device}: router changed to {} ({})", human::rate(reckon as f64), queue(&made)))
}

/// The queue in a few words.
fn queue(router: &KeptRouter) -> String {
    let mut words = vec![router.qdisc.kind.clone()];
    match router.qdisc.limit {
        Some(Limit::Packets(n)) => words.push(format!("limit {n}p")),
        Some(Limit::Bytes(n)) => words.push(format!("limit {n}b")),
        None => {}
    }
    if !router.qdisc.ours {
        words.push("not xcpnet's".into());
    }
    words.push(router.router.hook().into());
    words.join(", ")
}

fn shown(routers: &[KeptRouter], json: bool) -> Result<String, Failure> {
    let mut out = String::new();
    if json {
        let all = routers.iter().map(as_json).collect::<Result<Vec<_>, _>>()?;
        return Ok(format!("{}\n", serde_json::Value::Array(all)));
    }
    if routers.is_empty() {
        return Ok("no routers in this network namespace\n".into());
    }
    for router in routers {
        out.push_str(&as_text(router, &router.router.status()?));
        if !router.behind.is_empty() {
            out.push_str(&format!("  {}\n", behind(&router.behind)));
        }
    }
    Ok(out)
}

/// Input over capacity in the interval closed last, at the most 1: what is sent cannot be more.
fn utilisation(status: &RouterStatus) -> f64 {
    let state = &status.state;
    if state.capacity_bps > 0.0 { (state.input_traffic_bps / state.capacity_bps).min(1.0) } else { 0.0 }
}

fn as_json(router: &KeptRouter) -> Result<serde_json::Value, Failure> {
    let status = router.router.status()?;
    let (state, counts) = (&status.state, &status.counts);
    Ok(json!({
        "dev": router.device.name, "qdisc": router.qdisc.kind, "hook": router.router.hook(),
        "behind": router.behind,
        "limit": match router.qdisc.limit {
            Some(Limit::Packets(n)) => json!({"packets": n}),
            Some(Limit::Bytes(n)) => json!({"bytes": n}),
            None => serde_json::Value::Null,
        },
        "capacity": state.capacity_bps, "input_traffic": state.input_traffic_bps, "utilisation": utilisation(&status),
        "control_interval": state.control_interval_s, "mean_rtt": state.mean_rtt_s, "flows_estimated": state.flows_estimated,
        "phi": state.phi_bps, "shuffled": state.shuffled_bps, "residue_pos": state.residue_pos_bps, "residue_neg": state.residue_neg_bps,
        "persistent_queue": state.persistent_queue_bytes, "backlog": router.qdisc_stats.backlog_bytes, "queue": router.qdisc_stats.qlen,
        "drops": router.qdisc_stats.drops, "intervals": state.intervals, "packets": counts,
    }))
}

fn as_text(router: &KeptRouter, status: &RouterStatus) -> String {
    let (s, c, q) = (&status.state, &status.counts, &router.qdisc_stats);
    let name = &router.device.name;
    format!(
        "{name}: xcp, capacity {}, {}\n\
         \x20 input {} ({}), {} flows, d {}, {} control intervals\n\
         \x20 phi {}, shuffled {}, left to give {}, to take {}\n\
         \x20 queue {} packets, {} bytes; persistent {} bytes; {} dropped\n\
         \x20 processed {} ({} lowered), acknowledgements {}, other {} ({} bytes)\n\
         \x20 not read: fragments {}, malformed {}, unreadable {}, contended {}\n",
        human::rate(s.capacity_bps),
        queue(router),
        human::rate(s.input_traffic_bps),
        human::percent(utilisation(status)),
        human::number(s.flows_estimated),
        human::seconds(s.mean_rtt_s),
        s.intervals,
        human::rate(s.phi_bps),
        human::rate(s.shuffled_bps),
        human::rate(s.residue_pos_bps),
        human::rate(s.residue_neg_bps),
        q.qlen,
        q.backlog_bytes,
        s.persistent_queue_bytes,
        q.drops,
        c.processed,
        c.lowered,
        c.returned,
        c.other,
        c.other_bytes,
        c.fragments,
        c.malformed,
        c.unreadable,
        c.contended,
    )
}
