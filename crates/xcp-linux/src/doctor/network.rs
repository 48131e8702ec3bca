//! What is tried in a network namespace of its own: where programs hang on a device's way out,
//! queueing disciplines, veth, and such namespaces themselves. What comes of it concerns the router
//! and the lab, and the endpoint beside SACK.

use std::io;
use std::os::fd::AsFd as _;

use libbpf_rs::{TC_EGRESS, TcHookBuilder};
use rustix::thread::CapabilitySet;

use super::machine::Machine;
use super::remedies::{
    BPF_RIGHTS, as_root, bpf_failed, failed, newer_kernel_or, not_taken, not_tried, option,
    reasoned,
};
use super::report::Group::{Endpoint, Lab, Pep, Router};
use super::report::{Check, Remedy, Status, Topic};
use super::{pep, scratch};
use crate::link::{Link, Position, Target};
use crate::namespace::Namespace;
use crate::netlink::qdiscs::{ROOT, Wanted};
use crate::netlink::{self, Netlink};
use crate::object::overhear;
use crate::qdisc::{self, Limit, Shaper, Whose};
use crate::rehearsal::Rehearsal;

/// To make a network namespace, and to configure it.
const RIGHTS: CapabilitySet = CapabilitySet::SYS_ADMIN.union(CapabilitySet::NET_ADMIN);

/// The loopback device's number in every network namespace.
const LOOPBACK: u32 = 1;
/// Any rate and length will do.
const RATE_BPS: u64 = 8_000_000;
const LENGTH: u32 = 100_000;

/// What came of trying.
struct Tried {
    tcx: io::Result<()>,
    /// libbpf-rs says in words why not.
    clsact: Result<(), String>,
    htb: netlink::Result<()>,
    tbf: netlink::Result<()>,
    pfifo: netlink::Result<()>,
    bfifo: netlink::Result<()>,
    veth: netlink::Result<()>,
    pep: pep::Tried,
}

/// Of the lab, network namespaces and veth; of the router, its program and queueing disciplines; of
/// all, the way out of a device.
pub(super) struct Checks {
    pub way_out: Check,
    /// Whether TCX takes programs; nothing where it could not be tried.
    pub tcx: Option<bool>,
    pub router: Vec<Check>,
    pub lab: Vec<Check>,
    pub pep: Vec<Check>,
}

pub(super) fn checks(machine: &Machine) -> Checks {
    let (tried, _) = overhear(|| {
        Namespace::new().and_then(|namespace| namespace.run(|| attempts(&namespace))).flatten()
    });
    let tried = tried.as_ref();
    let program = program(machine);
    let way_out = way_out(machine, tried, program.status);
    let mut router = vec![program];
    router.extend(qdiscs(machine, tried));
    Checks {
        way_out,
        tcx: tried.ok().map(|tried| tried.tcx.is_ok()),
        router,
        lab: vec![namespaces(machine, tried), veth(machine, tried)],
        pep: pep::checks(machine, tried.ok().map(|tried| &tried.pep)),
    }
}

/// In that namespace.
fn attempts(namespace: &Namespace) -> io::Result<Tried> {
    let mut netlink = Netlink::open()?;
    let mut alone = |limit: Limit| {
        // As a shaper's queue is made (crate::qdisc), but without a shaper; the number tells it
        // from the one before.
        let (kind, minor) =
            if matches!(limit, Limit::Packets(_)) { ("pfifo", 1) } else { ("bfifo", 2) };
        let wanted = Wanted { index: LOOPBACK, handle: (0x10 + minor) << 16, parent: ROOT, kind };
        netlink.set_qdisc(&wanted, |request| {
            request.plain(&LENGTH.to_ne_bytes());
        })
    };
    let (pfifo, bfifo) = (alone(Limit::Packets(LENGTH)), alone(Limit::Bytes(LENGTH)));
    Ok(Tried {
        tcx: tcx(),
        clsact: clsact(),
        htb: qdisc::install(
            &mut netlink,
            LOOPBACK,
            Whose::Router,
            Shaper::Htb,
            RATE_BPS,
            Limit::Packets(LENGTH),
        ),
        tbf: qdisc::install(
            &mut netlink,
            LOOPBACK,
            Whose::Router,
            Shaper::Tbf,
            RATE_BPS,
            Limit::Packets(LENGTH),
        ),
        pfifo,
        bfifo,
        veth: netlink.add_veth("doctor0", "doctor1", namespace),
        pep: pep::attempts(&mut netlink),
    })
}

fn tcx() -> io::Result<()> {
    // TCX_NEXT
    let program = scratch::program(libbpf_sys::BPF_PROG_TYPE_SCHED_CLS, -1)?;
    Link::new(program.as_fd(), Target::Egress(LOOPBACK, Position::First)).map(drop)
}

/// The filter goes with the namespace.
fn clsact() -> Result<(), String> {
    let program =
        scratch::program(libbpf_sys::BPF_PROG_TYPE_SCHED_CLS, -1).map_err(|e| e.to_string())?;
    let mut hook = TcHookBuilder::new(program.as_fd())
        .ifindex(LOOPBACK as i32)
        .handle(1)
        .priority(1)
        .hook(TC_EGRESS);
    hook.create().and_then(|mut hook| hook.attach()).map(drop).map_err(|e| e.to_string())
}

/// Where there is no network namespace to try something in.
pub(super) fn nowhere(topic: &Topic, machine: &Machine) -> Check {
    if machine.may(RIGHTS) {
        topic.unknown(
            "not tried: no network namespace to try it in",
            Remedy::new("First resolve the entry on network namespaces."),
        )
    } else {
        topic.unknown(not_tried(machine), as_root(machine))
    }
}

/// program: what came of loading the router's.
fn way_out(machine: &Machine, tried: Result<&Tried, &io::Error>, program: Status) -> Check {
    let topic = Topic {
        name: "tcx",
        title: "Egress of a device",
        groups: &[Endpoint, Router, Lab, Pep],
        purpose: "where the router's program attaches (TCX, otherwise clsact), and the endpoint's \
            program that makes room beside SACK (TCX only)",
    };
    let Ok(tried) = tried else { return nowhere(&topic, machine) };
    match (&tried.tcx, &tried.clsact) {
        (Ok(()), Ok(())) => topic.ok("TCX; clsact as well"),
        (Ok(()), Err(_)) => topic.ok("TCX"),
        // That is said of the program already: nothing can be said of where it hangs.
        (Err(e), Err(_))
            if e.kind() == io::ErrorKind::PermissionDenied
                || e.raw_os_error() == Some(libc::ENOSYS) =>
        {
            bpf_failed(&topic, machine, e, newer_kernel_or(machine, &["CONFIG_NET_XGRESS"]))
        }
        (Err(_), Ok(())) => {
            // Where it could hang is no promise that it does.
            let refused = if program == Status::Missing {
                "; and the router program is rejected, so that nothing is attached there"
            } else {
                ""
            };
            topic.degraded(
                format!("clsact only: no TCX, which came with 6.6{refused}"),
                newer_kernel_or(machine, &["CONFIG_NET_XGRESS"]),
            )
        }
        (Err(tcx), Err(clsact)) => {
            let options = ["CONFIG_NET_CLS_ACT", "CONFIG_NET_SCH_INGRESS", "CONFIG_NET_CLS_BPF"];
            topic.missing(
                format!("neither TCX ({tcx}) nor clsact ({clsact})"),
                option(machine, &options, Some("cls_bpf")),
            )
        }
    }
}

fn program(machine: &Machine) -> Check {
    let topic = Topic {
        name: "router_program",
        title: "Router program",
        groups: &[Router, Lab, Pep],
        purpose: "runs XCP in front of a device's queue",
    };
    if !machine.may(BPF_RIGHTS) {
        return topic.unknown(not_tried(machine), as_root(machine));
    }
    if let Err(e) = scratch::map() {
        return bpf_failed(&topic, machine, &e, not_taken(machine));
    }
    match overhear(|| Rehearsal::load(true)) {
        (Ok(_), _) => topic.ok("loaded, and removed"),
        (Err(e), log) => topic.missing(reasoned(e.what(), &log), not_taken(machine)),
    }
}

fn qdiscs(machine: &Machine, tried: Result<&Tried, &io::Error>) -> Vec<Check> {
    let check = |topic: Topic,
                 option_name: &str,
                 module: &str,
                 came: fn(&Tried) -> &netlink::Result<()>,
                 instead: Option<Instead>| {
        let Ok(tried) = tried else {
            let mut check = nowhere(&topic, machine);
            if let Some(how) = machine.module(module) {
                check.found = format!("{}; {module} is {how}", check.found);
            }
            return check;
        };
        let Err(e) = came(tried) else { return topic.ok("installed, and removed") };
        let remedy = option(machine, &[option_name], Some(module));
        match instead {
            Some((name, works, hint)) if works(tried).is_ok() => {
                topic.degraded(format!("{}; {name} is available instead", why(e)), remedy.and(hint))
            }
            _ => netlink_failed(&topic, machine, e, remedy),
        }
    };
    let topic = |name, title, purpose| Topic { name, title, groups: &[Router, Lab, Pep], purpose };
    let of_routers = |topic: Topic| Topic { groups: &[Router, Lab], ..topic };
    let rate = "limits a device to a rate";
    vec![
        check(
            topic("htb", "Shaper htb", rate),
            "CONFIG_NET_SCH_HTB",
            "sch_htb",
            |tried| &tried.htb,
            Some((
                "tbf",
                |tried| &tried.tbf,
                "Until then, use `shaper tbf` with `xcpnet router add`.",
            )),
        ),
        check(
            of_routers(topic("tbf", "Shaper tbf", rate)),
            "CONFIG_NET_SCH_TBF",
            "sch_tbf",
            |tried| &tried.tbf,
            Some((
                "htb",
                |tried| &tried.htb,
                "It is only needed if `xcpnet router add` is used with `shaper tbf`.",
            )),
        ),
        check(
            of_routers(topic("pfifo", "Queue pfifo", "limits a queue in packets")),
            "CONFIG_NET_SCHED",
            "sch_fifo",
            |tried| &tried.pfifo,
            None,
        ),
        check(
            topic("bfifo", "Queue bfifo", "limits a queue in bytes"),
            "CONFIG_NET_SCHED",
            "sch_fifo",
            |tried| &tried.bfifo,
            None,
        ),
    ]
}

/// What does instead: its name, what came of trying it, how to use it.
type Instead = (&'static str, fn(&Tried) -> &netlink::Result<()>, &'static str);

/// A request that failed: refused, or not known to this kernel.
pub(super) fn netlink_failed(
    topic: &Topic,
    machine: &Machine,
    error: &netlink::Error,
    remedy: Remedy,
) -> Check {
    match error.errno() {
        Some(libc::EPERM | libc::EACCES) => {
            failed(topic, machine, RIGHTS, &io::ErrorKind::PermissionDenied.into(), remedy)
        }
        _ => topic.missing(why(error), remedy),
    }
}

/// The kernel says by "no such file" that it has no such kind, and by "not supported" that it does
/// not know what is asked.
fn why(error: &netlink::Error) -> String {
    match error.errno() {
        Some(libc::ENOENT | libc::EOPNOTSUPP) => "this kernel has none".into(),
        _ => error.to_string(),
    }
}

fn namespaces(machine: &Machine, tried: Result<&Tried, &io::Error>) -> Check {
    let topic = Topic {
        name: "netns",
        title: "Network namespaces",
        groups: &[Lab],
        purpose: "stand for the hosts and routers of a scenario",
    };
    match tried {
        Ok(_) => topic.ok("one was made, and removed"),
        Err(e) if e.kind() == io::ErrorKind::StorageFull => topic.missing(
            "the maximum number already exists",
            Remedy::new("Allow more.").command("sysctl -w user.max_net_namespaces=10000"),
        ),
        Err(e) => failed(&topic, machine, RIGHTS, e, option(machine, &["CONFIG_NET_NS"], None)),
    }
}

fn veth(machine: &Machine, tried: Result<&Tried, &io::Error>) -> Check {
    let topic = Topic {
        name: "veth",
        title: "veth devices",
        groups: &[Lab],
        purpose: "stand for the links of a scenario",
    };
    let Ok(tried) = tried else { return nowhere(&topic, machine) };
    match &tried.veth {
        Ok(()) => topic.ok("a pair was made, and removed"),
        Err(e) => {
            netlink_failed(&topic, machine, e, option(machine, &["CONFIG_VETH"], Some("veth")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Status;
    use super::*;

    fn tried(htb: Option<i32>, tbf: Option<i32>) -> Tried {
        let came = |errno: Option<i32>| {
            errno.map_or(Ok(()), |errno| {
                Err(netlink::Error::new(
                    "set a queueing discipline",
                    io::Error::from_raw_os_error(errno),
                ))
            })
        };
        Tried {
            tcx: Ok(()),
            clsact: Ok(()),
            htb: came(htb),
            tbf: came(tbf),
            pfifo: Ok(()),
            bfifo: Ok(()),
            veth: Ok(()),
            pep: pep::Tried::nothing_lacking(),
        }
    }

    #[test]
    fn a_way_out_is_no_promise_where_the_program_is_refused() {
        let tried =
            Tried { tcx: Err(io::Error::from_raw_os_error(libc::EINVAL)), ..tried(None, None) };
        for (program, said) in [(Status::Missing, true), (Status::Ok, false)] {
            let check = way_out(&Machine::look(), Ok(&tried), program);
            assert_eq!(
                (check.status, check.found.contains("router program is rejected")),
                (Status::Degraded, said),
                "{check:?}"
            );
        }
    }

    #[test]
    fn one_shaper_does_for_the_other() {
        let none = Some(libc::ENOENT);
        for (htb, tbf, expected) in [
            (None, None, [Status::Ok, Status::Ok]),
            (none, None, [Status::Degraded, Status::Ok]),
            (None, none, [Status::Ok, Status::Degraded]),
            (none, none, [Status::Missing, Status::Missing]),
            (Some(libc::EINVAL), Some(libc::EINVAL), [Status::Missing, Status::Missing]),
        ] {
            let tried = tried(htb, tbf);
            let checks = qdiscs(&Machine::look(), Ok(&tried));
            assert_eq!(
                checks.iter().map(|check| check.status).collect::<Vec<_>>()[..2],
                expected,
                "{checks:?}"
            );
            assert!(checks[2..].iter().all(|check| check.status == Status::Ok), "{checks:?}");
        }
    }

    #[test]
    fn where_nothing_can_be_tried_nothing_is_missing() {
        let denied = io::Error::from(io::ErrorKind::Other);
        for check in qdiscs(&Machine::look(), Err(&denied)) {
            assert_eq!(check.status, Status::Unknown, "{check:?}");
        }
    }
}
