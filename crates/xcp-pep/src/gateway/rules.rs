//! Diverting connections: a packet-filter table that this process owns, and a routing rule for what
//! it marks.
//!
//! 1. Only segments that open a connection are diverted, and those of connections whose socket is
//!    here. Connections that were there before pass as they did.
//! 2. From the LAN only what leaves by the long link, from the long link only what does not:
//!    nothing that goes back where it came from, so no loop.
//! 3. Listeners are at loopback addresses: no packet on the network is for them, and none is taken
//!    for one of theirs.
//! 4. Both legs have the same addresses and ports, so connection tracking would take them for one
//!    connection; it leaves them alone.
//! 5. ICMP about a connection whose socket is here is for that socket.
//! 6. Where clients are to be confirmed, what would be diverted as a new connection first waits in
//!    a queue (`confirm`). It comes back with a mark: of one that is to go on, through the same
//!    rules, or of how it is to be answered.
//! 7. The table vanishes with this process's socket. Marks are then set no more, so the routing
//!    rule, if it stays, does nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use xcp_linux::netlink::nftables::{Chain, OwnedTable, Place, Spelling, Term, Version};
use xcp_linux::{Error, Result};

use super::slot::Slot;
pub use super::slot::{QUEUE, TABLE};
use crate::confirm::answer;
use crate::options::Exclude;
use crate::settings::Kind;

/// Before connection tracking.
const RAW: i32 = -300;

/// What the rules depend on.
#[derive(Debug, Clone)]
pub struct Diverted {
    /// Numbers of tables, marks and queues that this proxy uses.
    pub slot: Slot,
    /// Device of the long link.
    pub wan: String,
    /// Devices of clients and servers.
    pub lan: Vec<String>,
    /// Connections that are left alone (`--exclude`).
    pub exclude: Vec<Exclude>,
    /// Kinds and addresses of the listeners.
    pub listeners: Vec<(Kind, SocketAddr)>,
    /// Whether new connections are held until their server has answered, and how the kernel is
    /// told.
    pub hold: Option<Spelling>,
}

const VERSIONS: [Version; 2] = [Version::V4, Version::V6];

/// Where a listener for diverted connections is, but for its port.
#[must_use]
pub fn listener_address(version: Version) -> IpAddr {
    match version {
        Version::V4 => Ipv4Addr::LOCALHOST.into(),
        Version::V6 => Ipv6Addr::LOCALHOST.into(),
    }
}

fn divert(slot: Slot, mut terms: Vec<Term>) -> Vec<Term> {
    terms.extend([Term::NoTrack, Term::Mark(slot.diverted()), Term::Accept]);
    terms
}

/// Answers to openings whose server cannot be reached, by the marks that they come back with.
fn answers(slot: Slot) -> Vec<Vec<Term>> {
    // None of these is for a segment of a connection.
    let mut rules = vec![
        vec![Term::Tcp, Term::Continues, Term::Accept],
        vec![Term::Tcp, Term::Marked(slot.refused()), Term::Reset],
    ];
    for version in VERSIONS {
        rules.extend(answer::sent(version == Version::V4).map(|code| {
            vec![
                Term::Tcp,
                Term::Version(version),
                Term::Marked(slot.unreachable(code)),
                Term::Refuse(code),
            ]
        }));
    }
    rules
}

impl Diverted {
    /// Rules for what comes; without `fresh` none for connections that are not here yet.
    fn prerouting(&self, fresh: bool) -> Chain {
        let devices = || std::iter::once(&self.wan).chain(&self.lan);
        // A SYN may find the socket of an earlier connection between the same ends, in TIME_WAIT;
        // TPROXY gives it to the listener instead.
        let which = if fresh { Term::Continues } else { Term::Tcp };
        let segments =
            devices().map(|device| vec![Term::CameBy(device.clone()), Term::Tcp, which.clone()]);
        let errors = devices().flat_map(|device| {
            VERSIONS.map(|version| vec![Term::CameBy(device.clone()), Term::Icmp(version)])
        });
        // Segments first: nearly all that comes is one.
        let mut rules: Vec<Vec<Term>> = segments
            .chain(errors)
            .map(|mut terms| {
                terms.push(Term::TransparentSocket);
                divert(self.slot, terms)
            })
            .collect();
        if fresh {
            if self.hold.is_some() {
                rules.extend(answers(self.slot));
            }
            rules.extend(self.exclude.iter().flat_map(|exclude| match *exclude {
                Exclude::Network(address, length) => vec![
                    vec![Term::Tcp, Term::To(address, length), Term::Accept],
                    vec![Term::Tcp, Term::From(address, length), Term::Accept],
                ],
                Exclude::Port(port) => {
                    vec![vec![Term::Tcp, Term::ToPort(port), Term::Accept]]
                }
            }));
            for (kind, listener) in &self.listeners {
                let here = |device: &String, leaves: bool| {
                    let new = [
                        Term::CameBy(device.clone()),
                        Term::Version(Version::of(&listener.ip())),
                        Term::Tcp,
                        Term::Opens,
                        Term::NotLocal,
                        Term::GoesBy(self.wan.clone(), leaves),
                    ];
                    let hold = self.hold.map(|spelling| {
                        [
                            &new[..],
                            &[
                                Term::NotMarked(self.slot.confirmed()),
                                Term::Queue(self.slot.queue(), spelling),
                            ],
                        ]
                        .concat()
                    });
                    hold.into_iter().chain([divert(
                        self.slot,
                        [&new[..], &[Term::ToListener(*listener)]].concat(),
                    )])
                };
                match kind {
                    Kind::FromLan => {
                        rules.extend(self.lan.iter().flat_map(|device| here(device, true)))
                    }
                    Kind::FromWan => rules.extend(here(&self.wan, false)),
                    Kind::FromTrunk | Kind::Explicit => {}
                }
            }
        }
        Chain { name: "prerouting", place: Place::Prerouting, priority: RAW, rules }
    }

    /// For what this machine sends. That a neighbour is silent it tells itself by ICMP; of a leg of
    /// ours, to the client, whose address that has.
    fn output(&self) -> Chain {
        let mut rules = Vec::new();
        if let Some(spelling) = self.hold {
            rules.extend(VERSIONS.map(|version| {
                vec![Term::Unreachable(version), Term::Queue(self.slot.queue(), spelling)]
            }));
        }
        rules.push(vec![Term::Marked(self.slot.own()), Term::NoTrack, Term::Accept]);
        Chain { name: "output", place: Place::Output, priority: RAW, rules }
    }

    /// Puts the rules up. From then on connections are diverted.
    ///
    /// # Errors
    /// Another one is there; a kernel that lacks something.
    pub fn raise(&mut self) -> Result<OwnedTable> {
        let name = self.slot.table();
        let table = match OwnedTable::new(&name, &[self.prerouting(true), self.output()]) {
            Err(e) if e.errno() == Some(libc::ENOENT) && self.hold.is_some() => {
                self.hold = Some(Spelling::Target);
                // What is missing may be something else: then the first words were right.
                OwnedTable::new(&name, &[self.prerouting(true), self.output()]).map_err(|_| e)
            }
            other => other,
        };
        table.map_err(Error::told_by)
    }

    /// Puts these rules into the place of others.
    ///
    /// # Errors
    /// What the kernel refuses; then nothing changes.
    pub fn change(&self, table: &mut OwnedTable) -> Result<()> {
        table.replace(&self.prerouting(true)).map_err(Error::told_by)
    }

    /// New connections pass untouched from now on; those that are here stay.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn drain(&self, table: &mut OwnedTable) -> Result<()> {
        table.replace(&self.prerouting(false)).map_err(Error::told_by)
    }
}
