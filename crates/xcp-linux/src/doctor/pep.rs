//! What the proxy needs of the packet filter and of sockets beside endpoint and router, tried in a
//! network namespace of its own; and advice.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use rustix::thread::CapabilitySet;

use super::machine::Machine;
use super::network::{netlink_failed, nowhere};
use super::remedies::{failed, option};
use super::report::Group::Pep;
use super::report::{Check, Remedy, Topic};
use crate::netlink::nfqueue::Queue;
use crate::netlink::nftables::{Chain, OwnedTable, Place, Spelling, Term, Version};
use crate::netlink::qdiscs::{ROOT, Wanted};
use crate::netlink::{self, Netlink, sockets};
use crate::sysctl;

/// The loopback device, in every network namespace.
const LOOPBACK: u32 = 1;
const LOOPBACK_NAME: &str = "lo";
/// Before connection tracking.
const RAW: i32 = -300;
/// Any number will do in a network namespace of one's own.
const NUMBER: u16 = 1;

/// What came of trying.
pub(super) struct Tried {
    tables: netlink::Result<()>,
    tproxy: netlink::Result<()>,
    queue: netlink::Result<()>,
    reject: netlink::Result<()>,
    end: io::Result<()>,
    fq: netlink::Result<()>,
}

impl Tried {
    #[cfg(test)]
    pub fn nothing_lacking() -> Self {
        Self {
            tables: Ok(()),
            tproxy: Ok(()),
            queue: Ok(()),
            reject: Ok(()),
            end: Ok(()),
            fq: Ok(()),
        }
    }
}

/// A table of rules that is there while it is made.
fn table(place: Place, rules: Vec<Vec<Term>>) -> netlink::Result<()> {
    OwnedTable::new("xcpnet_doctor", &[Chain { name: "tried", place, priority: RAW, rules }])
        .map(drop)
}

/// In that namespace. The rules are those of a gateway (xcp-pep, gateway/rules.rs), as far as
/// expressions of the kernel go.
pub(super) fn attempts(netlink: &mut Netlink) -> Tried {
    let listener = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let came = || Term::CameBy(LOOPBACK_NAME.to_owned());
    let queue =
        |spelling| table(Place::Prerouting, vec![vec![Term::Tcp, Term::Queue(NUMBER, spelling)]]);
    Tried {
        tables: table(Place::Output, vec![vec![Term::Tcp, Term::Accept]]),
        tproxy: table(
            Place::Prerouting,
            vec![
                vec![
                    came(),
                    Term::Tcp,
                    Term::TransparentSocket,
                    Term::NoTrack,
                    Term::Mark(1),
                    Term::Accept,
                ],
                vec![
                    came(),
                    Term::Version(Version::V4),
                    Term::Tcp,
                    Term::NotLocal,
                    Term::GoesBy(LOOPBACK_NAME.to_owned(), true),
                    Term::ToListener(listener),
                ],
            ],
        ),
        queue: queue(Spelling::Expression)
            .or_else(|_| queue(Spelling::Target))
            .and_then(|()| Queue::bind(NUMBER, 1).map(drop)),
        reject: table(
            Place::Prerouting,
            vec![
                vec![Term::Tcp, Term::Reset],
                vec![Term::Tcp, Term::Version(Version::V4), Term::Refuse(1)],
            ],
        ),
        end: sockets::can_end(),
        fq: netlink.set_qdisc(
            &Wanted { index: LOOPBACK, handle: 0x20 << 16, parent: ROOT, kind: "fq" },
            |_| {},
        ),
    }
}

pub(super) fn checks(machine: &Machine, tried: Option<&Tried>) -> Vec<Check> {
    vec![
        tables(machine, tried),
        tproxy(machine, tried),
        confirming(
            Topic {
                name: "nft_queue",
                title: "Packets held (queue)",
                groups: &[Pep],
                purpose: "`pep --confirm` keeps a client's SYN until the server has answered",
            },
            machine,
            tried,
            &["CONFIG_NFT_QUEUE", "CONFIG_NETFILTER_NETLINK_QUEUE"],
            "nft_queue",
            |tried| &tried.queue,
        ),
        confirming(
            Topic {
                name: "nft_reject_inet",
                title: "Refusals (reject)",
                groups: &[Pep],
                purpose: "`pep --confirm` gives a client the server's refusal",
            },
            machine,
            tried,
            &["CONFIG_NFT_REJECT_INET"],
            "nft_reject_inet",
            |tried| &tried.reject,
        ),
        end(machine, tried),
        fq(machine, tried),
        bbr(machine),
    ]
}

fn tables(machine: &Machine, tried: Option<&Tried>) -> Check {
    let topic = Topic {
        name: "nf_tables",
        title: "nf_tables",
        groups: &[Pep],
        purpose: "diverts connections to the proxy (pep --wan)",
    };
    let Some(tried) = tried else { return nowhere(&topic, machine) };
    match &tried.tables {
        Ok(()) => topic.ok("a table was made, and removed"),
        Err(e) => netlink_failed(
            &topic,
            machine,
            e,
            option(machine, &["CONFIG_NF_TABLES", "CONFIG_NF_TABLES_INET"], Some("nf_tables")),
        ),
    }
}

fn tproxy(machine: &Machine, tried: Option<&Tried>) -> Check {
    let topic = Topic {
        name: "nft_tproxy",
        title: "Transparent proxying",
        groups: &[Pep],
        purpose: "lets the proxy stand between two hosts with their own addresses (pep --wan)",
    };
    let Some(tried) = tried else { return nowhere(&topic, machine) };
    let options =
        ["CONFIG_NFT_TPROXY", "CONFIG_NFT_SOCKET", "CONFIG_NFT_FIB_INET", "CONFIG_NFT_CT"];
    match &tried.tproxy {
        Ok(()) => topic.ok("rules that divert were made, and removed"),
        Err(e) => netlink_failed(&topic, machine, e, option(machine, &options, Some("nft_tproxy"))),
    }
}

/// What only `--confirm` needs: the proxy works without.
fn confirming(
    topic: Topic,
    machine: &Machine,
    tried: Option<&Tried>,
    options: &[&str],
    module: &str,
    came: fn(&Tried) -> &netlink::Result<()>,
) -> Check {
    let Some(tried) = tried else { return nowhere(&topic, machine) };
    match came(tried) {
        Ok(()) => topic.ok("tried, and removed"),
        Err(e) => {
            let remedy =
                option(machine, options, Some(module)).and("Until then, leave out `--confirm`.");
            match e.errno() {
                Some(libc::EPERM | libc::EACCES) => netlink_failed(&topic, machine, e, remedy),
                _ => topic.degraded(e.to_string(), remedy),
            }
        }
    }
}

fn end(machine: &Machine, tried: Option<&Tried>) -> Check {
    let topic = Topic {
        name: "inet_diag_destroy",
        title: "Closing of sockets",
        groups: &[Pep],
        purpose: "when the proxy ends, lingering connections are removed at once, instead \
            of after a minute in which the same addresses and ports do not get through",
    };
    let Some(tried) = tried else { return nowhere(&topic, machine) };
    match &tried.end {
        Ok(()) => topic.ok("the kernel accepts the request"),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => failed(
            &topic,
            machine,
            CapabilitySet::NET_ADMIN,
            e,
            option(machine, &["CONFIG_INET_DIAG_DESTROY"], None),
        ),
        Err(e) => topic.degraded(
            format!("the kernel answers: {e}"),
            option(machine, &["CONFIG_INET_DIAG_DESTROY"], None),
        ),
    }
}

fn fq(machine: &Machine, tried: Option<&Tried>) -> Check {
    let topic = Topic {
        name: "fq",
        title: "Queue fq",
        groups: &[Pep],
        purpose: "paces packets at a gateway's local side; without it TCP uses a timer for each \
            connection",
    };
    let Some(tried) = tried else { return nowhere(&topic, machine) };
    match &tried.fq {
        Ok(()) => topic.ok("installed, and removed"),
        Err(e) => {
            let remedy = option(machine, &["CONFIG_NET_SCH_FQ"], Some("sch_fq"));
            match e.errno() {
                Some(libc::EPERM | libc::EACCES) => netlink_failed(&topic, machine, e, remedy),
                _ => topic.degraded(e.to_string(), remedy),
            }
        }
    }
}

/// Read off and not tried: to try it would load a module that stays.
fn bbr(machine: &Machine) -> Check {
    let topic = Topic {
        name: "bbr",
        title: "bbr",
        groups: &[Pep],
        purpose: "another congestion control for `--fallback`, and for comparison",
    };
    let available = sysctl::read("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    if available.split_whitespace().any(|name| name == "bbr") {
        return topic.ok("available");
    }
    let remedy = match machine.module("tcp_bbr") {
        Some(_) => {
            Remedy::new("Its module is installed but has to be loaded.").command("modprobe tcp_bbr")
        }
        None => option(machine, &["CONFIG_TCP_CONG_BBR"], Some("tcp_bbr")),
    };
    topic.degraded("not available; only needed if it is named", remedy)
}
