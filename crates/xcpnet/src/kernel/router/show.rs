//! `xcpnet router show`: what is kept of routers, in words and as JSON.

use serde_json::json;
use xcp_engine::PolicerConfig;
use xcp_linux::kept::{self, KeptRouter};
use xcp_linux::namespace::{Called, Namespace};
use xcp_linux::netlink::Device;
use xcp_linux::police::Policing;
use xcp_linux::qdisc::{Limit, Others, QdiscStats};
use xcp_linux::router::{Calendar, RouterCounts, RouterStatus};
use xcp_report::human;

use crate::failure::Failure;

/// The queue in a few settings.
pub(super) fn queue(router: &KeptRouter) -> String {
    let mut words = vec![router.qdisc.kind.clone()];
    match router.qdisc.limit {
        Some(Limit::Packets(n)) => words.push(format!("limit {n}p")),
        Some(Limit::Bytes(n)) => words.push(format!("limit {n}b")),
        None => {}
    }
    if router.qdisc.overhead > 0 {
        words.push(format!("overhead {}", router.qdisc.overhead));
    }
    match router.qdisc.others {
        Some(Others::First) => words.push("others first".into()),
        Some(Others::Last) => words.push("others last".into()),
        Some(Others::Fair(xcp)) => {
            let split = router.router.law_share().is_ok_and(|law| law < 1000);
            words.push(format!(
                "others {}, XCP's share {}",
                if split { "split" } else { "fair" },
                f64::from(xcp) / 1000.0
            ));
        }
        None => {}
    }
    if !router.is_ours() {
        words.push("not xcpnet's".into());
    }
    words.push(router.router.hook().into());
    words.join(", ")
}

/// What `router show` prints.
pub(super) fn shown(routers: &[KeptRouter], netns: &Called, json: bool) -> Result<String, Failure> {
    let mut out = String::new();
    if json {
        return Ok(format!("{}\n", all_as_json(routers)?));
    }
    if routers.is_empty() {
        return Ok("no routers in this network namespace\n".into());
    }
    for router in routers {
        let status = router.router.status()?;
        out.push_str(&as_text(router, &status));
        if let Some([xcp, others]) = &router.class_stats {
            out.push_str(&format!(
                "  {}\n  {}\n",
                class("XCP's", xcp),
                class("the others'", others)
            ));
        }
        out.push_str(&status.policing.as_ref().map(policing).unwrap_or_default());
        out.push_str(
            &status
                .calendar
                .map(|it| calendar(&it, status.state.capacity_bps, &status.counts))
                .unwrap_or_default(),
        );
        for note in notes(router, netns) {
            out.push_str(&format!("  {note}\n"));
        }
    }
    Ok(out)
}

fn all_as_json(routers: &[KeptRouter]) -> Result<serde_json::Value, Failure> {
    Ok(serde_json::Value::Array(routers.iter().map(as_json).collect::<Result<_, _>>()?))
}

/// What `router show --json` prints.
pub(in crate::kernel) fn readings(namespace: &Namespace) -> Result<serde_json::Value, Failure> {
    all_as_json(&kept::list(namespace)?)
}

/// Input over capacity in the interval closed last: more than 1 while the queue grows.
fn input_share(status: &RouterStatus) -> f64 {
    let state = &status.state;
    if state.capacity_bps > 0.0 { state.input_traffic_bps / state.capacity_bps } else { 0.0 }
}

/// As much of it as can be sent.
fn utilisation(status: &RouterStatus) -> f64 {
    input_share(status).min(1.0)
}

fn as_json(router: &KeptRouter) -> Result<serde_json::Value, Failure> {
    let status = router.router.status()?;
    let (state, counts) = (&status.state, &status.counts);
    let class = |stats: &QdiscStats| json!({"queue": stats.qlen, "backlog": stats.backlog_bytes, "drops": stats.drops, "packets": stats.packets, "bytes": stats.bytes});
    let classes = router
        .class_stats
        .as_ref()
        .map(|[xcp, others]| json!({"xcp": class(xcp), "others": class(others)}));
    Ok(json!({
        "dev": router.device.name, "law": status.law.map(|law| law.name()), "qdisc": router.qdisc.kind, "hook": router.router.hook(),
        "behind": router.behind,
        "limit": match router.qdisc.limit {
            Some(Limit::Packets(n)) => json!({"packets": n}),
            Some(Limit::Bytes(n)) => json!({"bytes": n}),
            None => serde_json::Value::Null,
        },
        "overhead": router.qdisc.overhead, "drops_beyond": router.drops_beyond(),
        "capacity": state.capacity_bps, "input_traffic": state.input_traffic_bps, "utilisation": utilisation(&status),
        "control_interval": state.control_interval_s, "mean_rtt": state.mean_rtt_s,
        "min_interval": state.min_interval_s, "max_interval": state.max_interval_s, "flows_estimated": state.flows_estimated,
        "phi": state.phi_bps, "shuffled": state.shuffled_bps, "residue_pos": state.residue_pos_bps, "residue_neg": state.residue_neg_bps,
        "persistent_queue": state.persistent_queue_bytes, "backlog": router.qdisc_stats.backlog_bytes, "queue": router.qdisc_stats.qlen,
        "drops": router.qdisc_stats.drops, "classes": classes, "intervals": state.intervals, "packets": counts,
        "police": status.policing.map(|police| json!({
            "by": police.by.to_string(), "flows": police.flows, "share": police.state.share_bps, "flows_seen": police.state.flows,
            "refused": police.state.refused, "refused_bytes": police.state.refused_bytes, "corrected": police.state.corrected,
            "crowded": police.state.crowded,
        })),
        "calendar": status.calendar.map(|it| json!({
            "capacity": it.capacity_bps, "promised": it.promised_bps, "tcp_flows": it.tcp_flows, "tcp_drop_probability": it.drop_probability,
        })),
    }))
}

/// One of two queues.
fn class(whose: &str, stats: &QdiscStats) -> String {
    format!(
        "{whose} queue {} packets, {} bytes; {} sent, {} dropped",
        stats.qlen, stats.backlog_bytes, stats.packets, stats.drops
    )
}

/// What a law with a calendar knows besides.
fn calendar(calendar: &Calendar, told_bps: f64, counts: &RouterCounts) -> String {
    let &Calendar { capacity_bps, promised_bps, tcp_flows, drop_probability } = calendar;
    // A packet more or less in a few dozen is no other capacity.
    let less = if capacity_bps < 0.95 * told_bps {
        format!(
            "  only {} left while packets waited; the law reckons with that\n",
            human::rate(capacity_bps)
        )
    } else {
        String::new()
    };
    let now = if drop_probability > 0.0 {
        format!(", now one in {}", human::number(drop_probability.recip()))
    } else {
        String::new()
    };
    let flows = match human::number(tcp_flows).as_str() {
        "1" => "1 TCP flow".to_owned(),
        many => format!("{many} TCP flows"),
    };
    let promised = if promised_bps < 0.0 { "taken back" } else { "promised" };
    format!(
        "{less}  {promised} but not seen yet {}; {flows} without XCP, {} of their packets dropped \
         to steer them{now}\n",
        human::rate(promised_bps.abs()),
        counts.steered,
    )
}

/// What the policer does, and whether its table is too small.
fn policing(police: &Policing) -> String {
    let state = &police.state;
    let mut text = format!(
        "  policer by {}, table for {} flows: {} flows, a share is {}; refused {} ({} bytes), \
            corrected {}\n",
        police.by,
        police.flows,
        human::number(state.flows),
        human::rate(state.share_bps),
        state.refused,
        state.refused_bytes,
        state.corrected,
    );
    if state.crowded > 0 {
        let more = if police.flows < PolicerConfig::FLOWS_MAX {
            format!(
                "; add the router again with `police-flows {}`, or with `police-by address`",
                police.flows.saturating_mul(2)
            )
        } else {
            String::new()
        };
        text.push_str(&format!(
            "  {} packets found no place in the policer's table and were not believed{more}\n",
            state.crowded
        ));
    }
    text
}

/// What keeps a router from doing what it was added for, a line each; and what to do about it.
pub(super) fn notes(router: &KeptRouter, netns: &Called) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(router.drops_beyond().map(|longest| drops_beyond(router, netns, longest)));
    notes.extend(unshaped(router, netns));
    notes.extend(held_back(router));
    notes.extend(passed_by(router));
    notes.extend((!router.behind.is_empty()).then(|| behind(&router.behind)));
    notes
}

/// What to know where nothing waits at the device: the router sees no queue then, and nothing holds
/// the traffic to its capacity.
fn unshaped(router: &KeptRouter, netns: &Called) -> Option<String> {
    (router.qdisc.kind == "noqueue").then(|| {
        format!(
            "nothing holds {0} to the capacity: its queueing discipline is noqueue; `xcpnet router \
             del dev {0}{1}` and `add` put a shaper there",
            router.device.name,
            netns.option()
        )
    })
}

fn drops_beyond(router: &KeptRouter, netns: &Called, longest_bytes: u32) -> String {
    let Device { name, mtu, .. } = &router.device;
    let by_the_queue = router.holds_no_more_than() == Some(longest_bytes);
    let what = if by_the_queue { "queue" } else { "tbf" };
    let remedy = match (router.is_ours(), by_the_queue) {
        (true, true) => {
            let full = router.device.full_frame();
            let netns = netns.option();
            format!("`xcpnet router change dev {name} limit {full}b{netns}`, or more, mends that")
        }
        (true, false) => {
            format!("`xcpnet router change dev {name} capacity RATE{}` adapts it", netns.option())
        }
        (false, true) => format!("give it a larger limit ({})", netns.command("tc")),
        (false, false) => format!("give it a larger burst ({})", netns.command("tc")),
    };
    format!(
        "the {what} drops frames of more than {longest_bytes} bytes, and the MTU is {mtu}: {remedy}"
    )
}

/// What to know where packets wait at the device though it is not busy: who tries a router out may
/// have netem make the distance.
fn held_back(router: &KeptRouter) -> Option<String> {
    (router.qdisc.kind == "netem").then(|| {
        format!(
            "packets that the netem of {} holds back are a queue to the router; delay them at \
             another device, e.g. the one at the other end of the link",
            router.device.name
        )
    })
}

/// What to know where the device has traffic that the router does not see.
fn passed_by(router: &KeptRouter) -> Option<String> {
    router.is_passed_by().then(|| {
        format!(
            "{} is a bridge: the router does not see what it passes from one port to another; for \
             that, add a router at the port",
            router.device.name
        )
    })
}

fn as_text(router: &KeptRouter, status: &RouterStatus) -> String {
    let (s, c, q) = (&status.state, &status.counts, &router.qdisc_stats);
    let name = &router.device.name;
    format!(
        "{name}: {}capacity {}, {}\n\
         \x20 input {} ({}), {} flows, d {}, {} control intervals of {} to {}\n\
         \x20 phi {}, shuffled {}, left to give {}, to take {}\n\
         \x20 queue {} packets, {} bytes; persistent {} bytes; {} dropped\n\
         \x20 processed {} ({} lowered), acknowledgements {}, other {} ({} bytes)\n\
         \x20 not read: fragments {}, malformed {}, unreadable {}, contended {}\n",
        status.law.map(|law| format!("{}, ", law.name())).unwrap_or_default(),
        human::rate(s.capacity_bps),
        queue(router),
        human::rate(s.input_traffic_bps),
        human::percent(input_share(status)),
        human::number(s.flows_estimated),
        human::seconds(s.mean_rtt_s),
        s.intervals,
        human::seconds(s.min_interval_s),
        human::seconds(s.max_interval_s),
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

/// What it means that programs of others come first.
fn behind(names: &[String]) -> String {
    let names: Vec<&str> = names
        .iter()
        .map(|name| if name.is_empty() { "one without a name" } else { name })
        .collect();
    format!(
        "other programs see packets first (TCX), and packets that they decide on do not get here: \
         {}",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use xcp_linux::police::PoliceBy;

    use super::*;

    /// That less leaves than was told is worth a line, a packet more or less is not.
    #[test]
    fn a_capacity_told_too_high_is_shown() {
        let counts = RouterCounts::default();
        let line = |capacity_bps| {
            let it =
                Calendar { capacity_bps, promised_bps: 0.0, tcp_flows: 0.0, drop_probability: 0.0 };
            calendar(&it, 30e6, &counts)
        };
        let text = line(20e6);
        assert!(text.starts_with("  only 20 Mbit/s left while packets waited"), "{text}");
        assert_eq!(text.lines().count(), 2, "{text}");
        assert_eq!(line(29.5e6).lines().count(), 1);
    }

    #[test]
    fn one_flow_is_one() {
        for (tcp_flows, told) in [(1.0, "; 1 TCP flow without XCP"), (1.5, "; 1.5 TCP flows w")] {
            let it =
                Calendar { capacity_bps: 1e6, promised_bps: 0.0, tcp_flows, drop_probability: 0.0 };
            let text = calendar(&it, 1e6, &RouterCounts::default());
            assert!(text.contains(told), "{text}");
        }
    }

    #[test]
    fn a_table_that_is_too_small_is_told_with_its_remedy() {
        let state = xcp_engine::PolicerState { crowded: 12, ..Default::default() };
        let told = |flows| policing(&Policing { by: PoliceBy::Flow, flows, state });
        assert!(
            told(64).contains("12 packets found no place")
                && told(64).contains("`police-flows 128`"),
            "{}",
            told(64)
        );
        assert!(!told(PolicerConfig::FLOWS_MAX).contains("police-flows"));
        let state = xcp_engine::PolicerState::default();
        assert!(!policing(&Policing { by: PoliceBy::Flow, flows: 64, state }).contains("no place"));
    }
}
