//! The network of these tests: S and D joined by a router R, and a control group for all sockets.

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::net::{AddressFamily, SocketType, socket};
use xcp_linux::endpoint::{Ask, Endpoint, EndpointConfig, Give, Shown};
use xcp_linux::namespace::Namespace;
use xcp_linux::netlink::Netlink;
use xcp_linux::offload::{self, Offload};
use xcp_linux::police::Police;
use xcp_linux::qdisc::{self, Limit, Others, QdiscStats, Shaper, Whose};
use xcp_linux::rehearsal::{Middlebox, Mischief};
use xcp_linux::router::{Hook, Router, RouterConfig};
use xcp_linux::{cgroup, sysctl};

/// Where S sends with less than the truth in its headers (`xcp_lie` of bpf/testing.bpf.c).
pub const LIE_PORT: u16 = 7863;

/// A process is in one control group: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

pub struct Site {
    pub s: Namespace,
    pub r: Namespace,
    pub d: Namespace,
    /// The router's devices, towards S and towards D.
    r0: u32,
    r1: u32,
    devices: [(usize, u32); 2],
    group: PathBuf,
    before: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

impl Site {
    /// Builds it; `None`, said aloud, where that is not permitted.
    pub fn new() -> Option<Self> {
        if !xcp_linux::error::is_root() {
            xcp_skip::skipped!("root", "connections through the endpoint and a router: needs root");
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let [s, r, d] = [(); 3].map(|()| Namespace::new().unwrap());
        let mut nets = [&s, &r, &d].map(|n| Netlink::open_in(n).unwrap());
        nets[0].add_veth("s0", "r0", &r).unwrap();
        nets[1].add_veth("r1", "d0", &d).unwrap();
        let mut index = |at: usize, name: &str, addresses: [&str; 2]| {
            let index = nets[at].index_of(name).unwrap().unwrap();
            nets[at].add_address(index, ip(addresses[0]), 24).unwrap();
            nets[at].add_address(index, ip(addresses[1]), 64).unwrap();
            nets[at].set_up(index).unwrap();
            index
        };
        let s0 = index(0, "s0", ["10.7.1.1", "fd07:1::1"]);
        let r0 = index(1, "r0", ["10.7.1.2", "fd07:1::2"]);
        let r1 = index(1, "r1", ["10.7.2.2", "fd07:2::2"]);
        let d0 = index(2, "d0", ["10.7.2.1", "fd07:2::1"]);
        for (at, index) in [(0, s0), (1, r0), (1, r1), (2, d0)] {
            nets[at].wait_until_it_sends(index).unwrap();
        }
        nets[0].add_route(ip("10.7.2.0"), 24, Some(ip("10.7.1.2")), s0).unwrap();
        nets[0].add_route(ip("fd07:2::"), 64, Some(ip("fd07:1::2")), s0).unwrap();
        nets[2].add_route(ip("10.7.1.0"), 24, Some(ip("10.7.2.2")), d0).unwrap();
        nets[2].add_route(ip("fd07:1::"), 64, Some(ip("fd07:2::2")), d0).unwrap();
        r.run(|| {
            // Behind the routers packets are cut up and get their checksums: else nobody would see
            // a wrong one.
            for device in ["r0", "r1"] {
                Offload::ALL
                    .into_iter()
                    .for_each(|offload| offload::set(device, offload, false).unwrap());
            }
            sysctl::write("net.ipv4.ip_forward", "1").unwrap();
            sysctl::write("net.ipv6.conf.all.forwarding", "1").unwrap();
        })
        .unwrap();
        let before = cgroup::current().unwrap();
        let group =
            cgroup::mount_point().unwrap().join(format!("xcpnet-test-{}", std::process::id()));
        cgroup::make(&group).unwrap();
        cgroup::enter(&group).unwrap();
        Some(Self { s, r, d, r0, r1, devices: [(0, s0), (2, d0)], group, before, _alone: alone })
    }

    /// The hosts' devices hand over single segments.
    pub fn cut_up_at_hosts(&self) {
        for (host, device) in [(&self.s, "s0"), (&self.d, "d0")] {
            host.run(|| {
                Offload::ALL
                    .into_iter()
                    .for_each(|offload| offload::set(device, offload, false).unwrap())
            })
            .unwrap();
        }
    }

    /// The hosts put nothing together that comes: what the router cut up stays so.
    pub fn join_nothing(&self) {
        for (host, device) in [(&self.s, "s0"), (&self.d, "d0")] {
            host.run(|| offload::set(device, Offload::Gro, false).unwrap()).unwrap();
        }
    }

    pub fn address(&self, six: bool) -> IpAddr {
        ip(if six { "fd07:2::1" } else { "10.7.2.1" })
    }

    /// The control group.
    pub fn group(&self) -> OwnedFd {
        cgroup::open(&self.group).unwrap().into()
    }

    /// S's address.
    pub fn address_of_s(&self) -> std::net::Ipv4Addr {
        std::net::Ipv4Addr::new(10, 7, 1, 1)
    }

    pub fn shape(&self, rate_bps: u64, limit: Limit) {
        self.shape_on(self.r1, rate_bps, limit);
    }

    fn shape_on(&self, device: u32, rate_bps: u64, limit: Limit) {
        qdisc::install(
            &mut Netlink::open_in(&self.r).unwrap(),
            device,
            Whose::Router,
            Shaper::Htb,
            rate_bps,
            limit,
        )
        .unwrap();
    }

    pub fn router(&self, rate_bps: u64, hook: Hook) -> Router {
        self.router_with(rate_bps, hook, 0)
    }

    pub fn router_with(&self, rate_bps: u64, hook: Hook, target_bytes: u64) -> Router {
        let mut law = xcp_engine::RouterConfig::xcp(rate_bps / 8);
        law.input = xcp_engine::Input::All;
        law.queue_target_bytes = target_bytes;
        self.router_of(rate_bps, hook, law)
    }

    pub fn router_of(&self, rate_bps: u64, hook: Hook, law: xcp_engine::RouterConfig) -> Router {
        self.router_on(self.r1, rate_bps, hook, law, None)
    }

    pub fn router_policed(
        &self,
        rate_bps: u64,
        hook: Hook,
        law: xcp_engine::RouterConfig,
        police: Option<Police>,
    ) -> Router {
        self.router_on(self.r1, rate_bps, hook, law, police)
    }

    pub fn router_with_classes(
        &self,
        rate_bps: u64,
        hook: Hook,
        law: xcp_engine::RouterConfig,
        others: Others,
    ) -> Router {
        let mut netlink = Netlink::open_in(&self.r).unwrap();
        qdisc::install_classes(&mut netlink, self.r1, rate_bps, Limit::Bytes(400_000), others)
            .unwrap();
        let config = RouterConfig {
            law,
            seed: 1,
            link_bytes: 14,
            hook,
            police: None,
            classes: Some(1000),
            urgent: false,
        };
        self.r.run(|| Router::attach(self.r1, &config)).unwrap().unwrap()
    }

    /// What the queues of a router with classes have counted.
    pub fn class_stats(&self) -> Option<[QdiscStats; 2]> {
        let mut netlink = Netlink::open_in(&self.r).unwrap();
        let there = qdisc::root(&mut netlink, self.r1).unwrap().others.is_some();
        there.then(|| qdisc::class_stats(&mut netlink, self.r1).unwrap())
    }

    /// A router for what goes back, too.
    pub fn router_back(&self, rate_bps: u64) -> Router {
        self.router_back_of(rate_bps, xcp_engine::RouterConfig::xcp(rate_bps / 8))
    }

    pub fn router_back_of(&self, rate_bps: u64, law: xcp_engine::RouterConfig) -> Router {
        self.router_on(self.r0, rate_bps, Hook::Any, law, None)
    }

    fn router_on(
        &self,
        device: u32,
        rate_bps: u64,
        hook: Hook,
        law: xcp_engine::RouterConfig,
        police: Option<Police>,
    ) -> Router {
        self.shape_on(device, rate_bps, Limit::Packets(400));
        let config = RouterConfig {
            law,
            seed: 1,
            link_bytes: 14,
            hook,
            police,
            classes: None,
            urgent: false,
        };
        self.r.run(|| Router::attach(device, &config)).unwrap().unwrap()
    }

    /// The router's way out.
    pub fn out(&self) -> u32 {
        self.r1
    }

    /// A program before all others at the router's way out.
    pub fn first_middlebox(&self, mischief: Mischief) -> Middlebox {
        self.r.run(|| Middlebox::attach_first(self.r1, mischief)).unwrap().unwrap()
    }

    /// Whom the router comes after.
    pub fn behind(&self, router: &Router) -> Vec<String> {
        self.r.run(|| router.behind(self.r1)).unwrap()
    }

    /// Packets that wait at the router's way out.
    pub fn waiting(&self) -> u32 {
        qdisc::stats(&mut Netlink::open_in(&self.r).unwrap(), self.r1).unwrap().qlen
    }

    pub fn dropped(&self) -> usize {
        self.dropped_on(self.r1)
    }

    pub fn dropped_back(&self) -> usize {
        self.dropped_on(self.r0)
    }

    fn dropped_on(&self, device: u32) -> usize {
        qdisc::stats(&mut Netlink::open_in(&self.r).unwrap(), device).unwrap().drops as usize
    }

    /// Whether the router's device has a clsact hook, as `tc` sees it.
    pub fn has_clsact(&self) -> bool {
        let shown = self
            .r
            .run(|| std::process::Command::new("tc").args(["qdisc", "show", "dev", "r1"]).output())
            .unwrap();
        match shown {
            Ok(shown) => String::from_utf8_lossy(&shown.stdout).contains("clsact"),
            Err(e) => {
                xcp_skip::skipped!("iproute2", "whether a clsact hook is left behind: tc: {e}");
                false
            }
        }
    }

    /// A middlebox on the way from S to D, or back.
    pub fn middlebox(&self, back: bool, mischief: Mischief) -> Middlebox {
        let device = Netlink::open_in(&self.r)
            .unwrap()
            .index_of(if back { "r0" } else { "r1" })
            .unwrap()
            .unwrap();
        self.r.run(|| Middlebox::attach(device, mischief)).unwrap().unwrap()
    }

    /// S lies to whoever listens at [`LIE_PORT`]; after the endpoint's own programs there.
    pub fn liar(&self) -> Middlebox {
        self.s.run(|| Middlebox::attach(self.devices[0].1, Mischief::Lie)).unwrap().unwrap()
    }

    /// No segment came with a wrong checksum: RFC 4022's InCsumErrors of both hosts.
    pub fn assert_checksums(&self) {
        for host in [&self.s, &self.d] {
            let text =
                host.run(|| fs::read_to_string("/proc/thread-self/net/snmp").unwrap()).unwrap();
            let mut tcp = text.lines().filter(|l| l.starts_with("Tcp:"));
            let (names, values) = (tcp.next().unwrap(), tcp.next().unwrap());
            let errors = names
                .split(' ')
                .zip(values.split(' '))
                .find(|(name, _)| *name == "InCsumErrors")
                .unwrap()
                .1;
            assert_eq!(errors, "0");
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // What was closed with data unsent has nowhere to send them to any more. It would try for a
        // minute and a half, and keep the endpoint's programs for as long.
        for host in [&self.s, &self.d] {
            for name in ["net.ipv4.tcp_orphan_retries", "net.ipv4.tcp_fin_timeout"] {
                let _ = host.run(|| sysctl::write(name, "1"));
            }
        }
        let _ = cgroup::enter(&self.before);
        let _ = cgroup::remove(&self.group);
    }
}

/// The endpoint's connections at both hosts, of however many namespaces this kernel lists them.
pub fn connections(site: &Site, endpoint: &Endpoint) -> Vec<Shown> {
    if endpoint.sees_everywhere() {
        return endpoint.connections().unwrap();
    }
    let of = |host: &Namespace| host.run(|| endpoint.connections()).unwrap().unwrap();
    [&site.s, &site.d].into_iter().flat_map(of).collect()
}

/// An endpoint for the sockets of these tests, under a name of its own, with room beside SACK at
/// both hosts.
pub fn endpoint(site: &Site, give: Give) -> Endpoint {
    endpoint_asking(site, give, Ask::default())
}

/// The same with a wish for sockets that have none.
pub fn endpoint_asking(site: &Site, give: Give, ask: Ask) -> Endpoint {
    let config = EndpointConfig {
        name: format!("xt{}", std::process::id()),
        fallback: "reno".into(),
        give,
        ask,
        ..EndpointConfig::default()
    };
    attached(site, Endpoint::load(&config).unwrap())
}

/// The same on a kernel that refuses the programs that make room.
pub fn endpoint_without_room(site: &Site) -> Endpoint {
    let config = EndpointConfig {
        name: format!("xt{}", std::process::id()),
        fallback: "reno".into(),
        ..EndpointConfig::default()
    };
    attached(site, xcp_linux::rehearsal::endpoint_without_room(&config).unwrap())
}

/// The same on a kernel that refuses to iterate over the storage of sockets.
pub fn endpoint_that_sees_here(site: &Site) -> Endpoint {
    let config = EndpointConfig {
        name: format!("xt{}", std::process::id()),
        give: Give::All,
        ..EndpointConfig::default()
    };
    attached(site, xcp_linux::rehearsal::endpoint_that_sees_here(&config).unwrap())
}

fn attached(site: &Site, mut endpoint: Endpoint) -> Endpoint {
    for (host, index) in site.devices {
        let host = if host == 0 { &site.s } else { &site.d };
        host.run(|| endpoint.make_room(index, true)).unwrap().unwrap();
    }
    endpoint.attach(cgroup::open(&site.group).unwrap().as_fd()).unwrap();
    endpoint
}

/// Connects with a socket that asks for XCP first.
pub fn connect_asking(to: SocketAddr, endpoint: &Endpoint, ask: &Ask) -> TcpStream {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket: OwnedFd = socket(family, SocketType::STREAM, None).unwrap();
    endpoint.ask(socket.as_fd(), ask).unwrap();
    rustix::net::sockopt::set_tcp_congestion(&socket, endpoint.name()).unwrap();
    rustix::net::connect(&socket, &to).unwrap();
    socket.into()
}
