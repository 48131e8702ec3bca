//! `xcpnet endpoint`.

use std::net::IpAddr;

use serde_json::json;
use xcp_law::Preset;
use xcp_linux::endpoint::{Agreement, Ask, EndpointConfig, Give, NoRoom, ONLY_HERE, Shown};
use xcp_linux::kept::{self, Enabled, EndpointPlan};
use xcp_report::human;

use super::{namespace, need_root, watched};
use crate::cli::{EndpointArguments, EndpointCommand, EndpointEnable};
use crate::failure::Failure;
use crate::output::Printer;

/// Does what was asked.
pub fn endpoint(arguments: &EndpointArguments, printer: &mut Printer) -> Result<(), Failure> {
    match &arguments.command {
        EndpointCommand::Enable(enable) => switch_on(enable, printer),
        EndpointCommand::Disable => {
            need_root()?;
            printer.line(if kept::disable()? {
                "endpoint disabled"
            } else {
                "the endpoint was not enabled"
            })
        }
        EndpointCommand::Show { json, watch, all } => {
            need_root()?;
            watched(*watch, printer, || shown(*json, *all))
        }
    }
}

/// `10.0.0.0/8`, or a single address.
fn prefix(text: &str) -> Result<(IpAddr, u8), Failure> {
    let wrong = || {
        Failure::new(format!(
            "--to: \"{text}\" is not an address or prefix; write one like 10.0.0.0/8 or \
                2001:db8::/32"
        ))
    };
    let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = length.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
    if length > most { Err(wrong()) } else { Ok((address, length)) }
}

/// Whether connections have the robust sender: they do where nothing is asked for that it lacks.
fn is_robust(enable: &EndpointEnable) -> Result<bool, Failure> {
    let lacks = [(enable.classic, "--classic"), (enable.no_pacing, "--no-pacing")];
    let lacks = lacks.iter().find(|(asked, _)| *asked);
    match (enable.sender.as_deref(), lacks) {
        (None, lacks) => Ok(lacks.is_none()),
        (Some(named), None) => Ok(named == Preset::Robust.name()),
        (Some(named), Some((_, flag))) if named == Preset::Robust.name() => Err(Failure::new(
            format!("--sender: the robust sender does not go with {flag}; leave one of them out"),
        )),
        (Some(_), Some(_)) => Ok(false),
    }
}

/// The connections that have XCP, in words.
fn who(give: &Give) -> String {
    match give {
        Give::Nobody => {
            "connections that ask for it with setsockopt(TCP_CONGESTION, \"xcp\")".to_owned()
        }
        Give::All => "every connection that does not choose another congestion control".to_owned(),
        Give::Listed { ports, prefixes } => {
            let ports = match ports.len() {
                0 => None,
                n => Some(human::plural(n as u64, "port")),
            };
            let prefixes = match prefixes.len() {
                0 => None,
                1 => Some("1 prefix".to_owned()),
                n => Some(format!("{n} prefixes")),
            };
            let those: Vec<String> = ports.into_iter().chain(prefixes).collect();
            format!("connections of {}", those.join(" and "))
        }
    }
}

fn switch_on(enable: &EndpointEnable, printer: &mut Printer) -> Result<(), Failure> {
    let prefixes = enable.to.iter().map(|text| prefix(text)).collect::<Result<Vec<_>, _>>()?;
    let give = match (enable.only_asked, enable.ports.is_empty() && prefixes.is_empty()) {
        (true, _) => Give::Nobody,
        (false, true) => Give::All,
        (false, false) => Give::Listed { ports: enable.ports.clone(), prefixes },
    };
    let defaults = EndpointConfig::default();
    let robust = is_robust(enable)?;
    let config = EndpointConfig {
        fallback: enable.fallback.clone(),
        give: give.clone(),
        ask: Ask {
            classic: enable.classic,
            paced: !enable.no_pacing,
            initial_window: enable.initial_window,
            ids: enable.ids.then_some(0),
            robust,
            ..Ask::default()
        },
        receive_window: enable.receive_window.unwrap_or(defaults.receive_window),
        ..defaults
    };
    need_root()?;
    let plan =
        EndpointPlan { config, cgroup: enable.cgroup.clone(), devices: enable.devices.clone() };
    let Enabled { cgroup, devices, no_room, deaf } =
        kept::enable(&plan, &namespace(enable.netns.as_deref())?)?;
    let names: Vec<&str> = devices.iter().map(|d| d.name.as_str()).collect();
    let room = match no_room {
        Some(why) => none_here(why),
        None if names.is_empty() => "on no device".to_owned(),
        None => format!("on {}", names.join(", ")),
    };
    printer.line(&format!(
        "endpoint enabled for {} (sender {}): {}; room beside SACK: {room}",
        cgroup.display(),
        if robust { Preset::Robust } else { Preset::Xcp }.name(),
        who(&give),
    ))?;
    if deaf > 0 {
        let sockets = human::plural(deaf as u64, "socket");
        printer.line(&format!(
            "{sockets} that already listen do not answer with XCP until their services are \
             restarted: this kernel is older than 6.12"
        ))?;
    }
    Ok(())
}

/// Why there is no room beside SACK, and what that costs.
fn none_here(why: NoRoom) -> String {
    format!("not on this kernel ({}): {}", why.reason(), NoRoom::COST)
}

/// What became of a connection, in a word or two.
fn agreement(of: Agreement) -> &'static str {
    match of {
        Agreement::Untouched => "untouched",
        Agreement::Offered => "offered",
        Agreement::Agreed => "xcp",
        Agreement::FallenPeer => "fallback: the peer does not speak XCP",
        Agreement::FallenSilent => "fallback: feedback stopped",
        Agreement::FallenLate => "fallback: chosen too late",
    }
}

/// What `endpoint show --json` prints.
pub(super) fn reading() -> Result<serde_json::Value, Failure> {
    serde_json::from_str(&shown(true, false)?).map_err(|e| Failure::new(e.to_string()))
}

fn shown(as_json: bool, all: bool) -> Result<String, Failure> {
    let Some(endpoint) = kept::endpoint()? else {
        return if as_json {
            Ok("{\"enabled\":false}\n".into())
        } else {
            Ok("the endpoint is not enabled\n".into())
        };
    };
    let (about, counts) = (endpoint.about()?, endpoint.counts()?);
    let mut connections = endpoint.connections()?;
    connections.retain(|c| all || c.connection.agreement != Agreement::Untouched);
    connections.sort_by_key(|c| (c.local, c.remote));
    if as_json {
        let room = json!({"missing": endpoint.no_room(), "devices": endpoint.rooms()});
        let all = json!({"enabled": true, "about": about, "room_beside_sack": room, "counts": counts, "all_namespaces": endpoint.sees_everywhere(), "group_gone": endpoint.has_lost_its_group(), "connections": connections});
        return Ok(format!("{all}\n"));
    }
    let room = match endpoint.no_room() {
        Some(why) => none_here(why),
        None => format!("on {}", human::plural(endpoint.rooms() as u64, "device")),
    };
    let mut out = format!(
        "endpoint \"{}\" for {}, falls back to {}\n  agreed {}, fallen back: {} (peer), {} \
            (silence), {} (too late); malformed options {}\n  \
         room beside SACK: {room}\n",
        about.name,
        about.cgroup,
        about.fallback,
        counts.agreed,
        counts.fallen_peer,
        counts.fallen_silent,
        counts.fallen_late,
        counts.malformed
    );
    if !endpoint.sees_everywhere() {
        out.push_str(&format!("  {ONLY_HERE}\n"));
    }
    if endpoint.has_lost_its_group() {
        out.push_str(
            "  that control group is gone, and no socket is served, not even where one of the same \
             name has been made since: `xcpnet endpoint disable`, then `enable` it again\n",
        );
    }
    for connection in &connections {
        out.push_str(&row(connection));
    }
    Ok(out)
}

fn row(shown: &Shown) -> String {
    let c = &shown.connection;
    let mut out = format!("{} -> {}  {}\n", shown.local, shown.remote, agreement(c.agreement));
    if c.sending {
        let unit = |x: f64| {
            if c.classic { format!("{} packets", human::number(x)) } else { human::rate(x) }
        };
        out.push_str(&format!(
            "  sends: cwnd {}, srtt {}, {}; feedback last {}, sum {}; {} recoveries, {} timeouts\n",
            human::number(c.cwnd_packets),
            human::nanos(c.srtt_ns),
            match c.bottleneck_id {
                Some(id) => format!("link {id:08x} limits it"),
                None => if c.marked { "a router answers" } else { "no router detected" }.to_owned(),
            },
            unit(c.last_feedback),
            unit(c.feedback_sum),
            c.losses,
            c.timeouts,
        ));
    }
    if let Some(robust) = c.robust.as_ref().filter(|_| c.sending) {
        out.push_str(&format!(
            "  robust: base RTT {}, limited by {}{}; limited itself {} times, competed with other traffic {} times\n",
            human::nanos(robust.base_rtt_ns),
            robust.bound,
            robust
                .bound_packets
                .map_or(String::new(), |most| format!(" to {} packets", human::number(most))),
            robust.binds,
            robust.competes,
        ));
    }
    if c.receiving {
        out.push_str(&format!(
            "  receives: {} segments with headers, {} packets made room beside SACK\n",
            c.received, c.trimmed
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    #[test]
    fn what_there_is_none_of_is_not_counted() {
        let prefix = (IpAddr::from([10, 0, 0, 0]), 8);
        for (ports, prefixes, told) in [
            (vec![80], vec![], "connections of 1 port"),
            (vec![], vec![prefix], "connections of 1 prefix"),
            (vec![80, 443], vec![prefix; 2], "connections of 2 ports and 2 prefixes"),
        ] {
            assert_eq!(who(&Give::Listed { ports, prefixes }), told);
        }
    }

    /// The sender is the robust one but where something is asked for that it lacks.
    #[test]
    fn the_sender_goes_with_what_else_is_asked() {
        let of = |words: &str| {
            let line = format!("xcpnet endpoint enable {words}");
            let cli =
                Cli::try_parse_from(line.split_whitespace()).unwrap_or_else(|e| panic!("{e}"));
            let Command::Endpoint(EndpointArguments { command: EndpointCommand::Enable(enable) }) =
                cli.command
            else {
                panic!("{words}")
            };
            is_robust(&enable)
        };
        for (words, robust) in [
            ("", true),
            ("--ids --initial-window 4", true),
            ("--sender robust", true),
            ("--sender xcp", false),
            ("--classic", false),
            ("--no-pacing --sender xcp", false),
        ] {
            assert_eq!(of(words).unwrap(), robust, "{words}");
        }
        for flag in ["--classic", "--no-pacing"] {
            let error = of(&format!("--sender robust {flag}")).unwrap_err().to_string();
            assert!(error.contains(&format!("does not go with {flag}")), "{error}");
        }
    }

    #[test]
    fn what_is_missing_is_told_with_its_reason_and_its_cost() {
        for (why, reason) in [(NoRoom::Refused, "rejects the programs"), (NoRoom::NoTcx, "6.6")] {
            let told = none_here(why);
            assert!(told.starts_with("not on this kernel (") && told.contains(reason), "{told}");
            assert!(told.contains("waits for a later acknowledgement"), "{told}");
        }
    }
}
