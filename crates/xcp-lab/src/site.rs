//! Builds what a plan says: namespaces, cables, addresses, routes, queues. All of it is held by
//! descriptors of this process and nothing else, so that it is gone when the process is, however
//! that ends.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use xcp_linux::namespace::Namespace;
use xcp_linux::netlink::{Netlink, RouteOptions, VethOptions};
use xcp_linux::offload::{self, Offload};
use xcp_linux::{qdisc, sysctl};
use xcp_model::Limit;

use crate::LabError;
use crate::plan::{DeviceId, Family, Plan, Role, Space, SpaceId};

/// Buffers that no connection of a lab fills.
const BUFFER: u64 = 64 << 20;
/// The kernel's own first receive buffer.
const FIRST_BUFFER: u64 = 128 << 10;

/// The built network.
#[derive(Debug)]
pub(crate) struct Site {
    pub spaces: Vec<Arc<Namespace>>,
    /// Of each namespace.
    pub netlinks: Vec<Netlink>,
    /// By device of the plan, its number in its namespace.
    pub indices: Vec<u32>,
}

/// Whoever is at the other end of a cable: every device has its own neighbour of this address.
fn neighbour(family: Family) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::new(169, 254, 0, 1).into(),
        Family::V6 => Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1).into(),
    }
}

/// The Ethernet address of a device; its own in all of the lab.
fn mac(device: DeviceId) -> [u8; 6] {
    let [high, low] = (device as u16).to_be_bytes();
    [0x02, b'x', b'c', b'p', high, low]
}

impl Site {
    /// Builds it.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn build(plan: &Plan) -> Result<Self, LabError> {
        let mut site =
            Self { spaces: Vec::new(), netlinks: Vec::new(), indices: vec![0; plan.devices.len()] };
        for space in &plan.spaces {
            let step = || format!("make a namespace for {}", space.name);
            let namespace = Namespace::new().map_err(|why| LabError::failed(step(), why))?;
            namespace
                .run(|| settings(plan, space))
                .and_then(|set| set)
                .map_err(|why| LabError::failed(step(), why))?;
            let netlink =
                Netlink::open_in(&namespace).map_err(|why| LabError::failed(step(), why))?;
            site.netlinks.push(netlink);
            site.spaces.push(Arc::new(namespace));
        }
        let whole = |why: xcp_linux::netlink::Error| LabError::failed("build its network", why);
        site.cables(plan).map_err(whole)?;
        site.frames(plan)?;
        site.routes(plan).and_then(|()| site.queues(plan)).map_err(whole)?;
        Ok(site)
    }

    fn cables(&mut self, plan: &Plan) -> xcp_linux::netlink::Result<()> {
        for &[one, other] in &plan.cables {
            let [a, b] = [one, other].map(|device| &plan.devices[device]);
            let options = VethOptions {
                mtu: plan.mtu,
                mac: Some(mac(one)),
                peer_mac: Some(mac(other)),
                ..VethOptions::default()
            };
            self.netlinks[a.space].add_veth_with(
                &a.name,
                &b.name,
                &self.spaces[b.space],
                &options,
            )?;
            for (id, device) in [(one, a), (other, b)] {
                let netlink = &mut self.netlinks[device.space];
                let index = netlink.index_of(&device.name)?.unwrap_or(0);
                netlink.set_up(index)?;
                self.indices[id] = index;
            }
        }
        let mut made = plan.cables.iter().flatten();
        made.try_for_each(|&id| {
            self.netlinks[plan.devices[id].space].wait_until_it_sends(self.indices[id])
        })
    }

    /// Lets devices carry frames and nothing larger, as wires do; where the plan allows a few
    /// segments in one packet, only those that lead into a line, or out of a queue that is to cut
    /// them up.
    fn frames(&mut self, plan: &Plan) -> Result<(), LabError> {
        let Some(segments) = plan.segments else { return Ok(()) };
        let into_lines: Vec<DeviceId> = plan
            .cables
            .iter()
            .filter(|cable| {
                cable
                    .iter()
                    .any(|&device| plan.spaces[plan.devices[device].space].role == Role::Wire)
            })
            .flatten()
            .copied()
            .collect();
        for (space, namespace) in self.spaces.iter().enumerate() {
            let devices: Vec<(DeviceId, &str, u32)> = plan
                .devices
                .iter()
                .zip(&self.indices)
                .enumerate()
                .filter(|(_, (d, _))| d.space == space)
                .map(|(id, (d, i))| (id, d.name.as_str(), *i))
                .collect();
            let cuts =
                |id: &DeviceId| plan.cut && plan.shapers.iter().any(|shaper| shaper.device == *id);
            let whole = |id: &DeviceId| segments == 1 || into_lines.contains(id) || cuts(id);
            let off = || {
                devices.iter().try_for_each(|(id, name, _)| {
                    let what = if whole(id) {
                        &Offload::ALL[..]
                    } else if plan.cut {
                        &[Offload::Gro][..]
                    } else {
                        &[][..]
                    };
                    what.iter().try_for_each(|o| offload::set(name, *o, false))
                })
            };
            namespace
                .run(off)
                .and_then(|done| done)
                .map_err(|why| LabError::failed("build its network", why))?;
            for (id, _, index) in &devices {
                let netlink = &mut self.netlinks[space];
                netlink
                    .set_gso_max_segments(*index, if whole(id) { 1 } else { segments })
                    .map_err(|why| LabError::failed("build its network", why))?;
            }
        }
        Ok(())
    }

    fn queues(&mut self, plan: &Plan) -> xcp_linux::netlink::Result<()> {
        for shaper in &plan.shapers {
            let (space, index) = self.device(plan, shaper.device);
            // The kernel's limits have 32 bits: a queue of that many is never full.
            let most = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
            let limit = match shaper.limit {
                // Several segments in a packet: a limit in packets would hold more.
                Limit::Packets(n) if plan.segments != Some(1) => {
                    qdisc::Limit::Bytes(most(n.saturating_mul(plan.frame_bytes().into())))
                }
                Limit::Packets(n) => qdisc::Limit::Packets(most(n)),
                Limit::Bytes(n) => qdisc::Limit::Bytes(most(n)),
            };
            let netlink = &mut self.netlinks[space];
            let rate_bps = shaper.rates.at(0);
            match shaper.others {
                None => qdisc::install(
                    netlink,
                    index,
                    qdisc::Whose::Router,
                    qdisc::Shaper::Htb,
                    rate_bps,
                    limit,
                )?,
                Some(others) => qdisc::install_classes(netlink, index, rate_bps, limit, others)?,
            }
        }
        Ok(())
    }

    fn routes(&mut self, plan: &Plan) -> xcp_linux::netlink::Result<()> {
        let next = neighbour(plan.family);
        let whole = if plan.family == Family::V4 { 32 } else { 128 };
        for &(device, peer) in &plan.neighbours {
            let space = plan.devices[device].space;
            self.netlinks[space].add_neighbour(self.indices[device], next, mac(peer))?;
        }
        for (space, address) in plan.ways.iter().flat_map(|way| [way.source, way.destination]) {
            let netlink = &mut self.netlinks[space];
            let lo = netlink.index_of("lo")?.unwrap_or(1);
            netlink.add_address(lo, address, whole)?;
        }
        for route in &plan.routes {
            let options = RouteOptions {
                on_link: true,
                initial_window: route.initial_window,
                quick_ack: route.quick_ack,
            };
            self.netlinks[route.space].add_route_with(
                route.to,
                whole,
                Some(next),
                self.indices[route.device],
                options,
            )?;
        }
        Ok(())
    }

    /// The number of a device in its namespace, and that.
    pub fn device(&self, plan: &Plan, device: DeviceId) -> (SpaceId, u32) {
        (plan.devices[device].space, self.indices[device])
    }
}

/// The settings of a namespace, from within it.
fn settings(plan: &Plan, space: &Space) -> std::io::Result<()> {
    let set = |name: &str, value: &str| sysctl::write(name, value);
    match plan.family {
        Family::V4 => {
            // No neighbour discovery or multicast reports on links whose packets are counted; a
            // kernel without IPv6 has none anyway.
            if sysctl::read("net.ipv6.conf.all.disable_ipv6").is_ok() {
                set("net.ipv6.conf.all.disable_ipv6", "1")?;
                set("net.ipv6.conf.default.disable_ipv6", "1")?;
            }
        }
        Family::V6 => {
            for scope in ["all", "default"] {
                set(&format!("net.ipv6.conf.{scope}.accept_ra"), "0")?;
                set(&format!("net.ipv6.conf.{scope}.accept_dad"), "0")?;
                set(&format!("net.ipv6.conf.{scope}.router_solicitations"), "0")?;
                // No addresses that the plan does not know.
                set(&format!("net.ipv6.conf.{scope}.addr_gen_mode"), "1")?;
            }
        }
    }
    if space.role == Role::Wire {
        // Frames pass through it, packets do not.
        return Ok(());
    }
    for scope in ["all", "default"] {
        // Paths there and back differ where the scenario says so.
        set(&format!("net.ipv4.conf.{scope}.rp_filter"), "0")?;
        set(&format!("net.ipv4.conf.{scope}.send_redirects"), "0")?;
    }
    match plan.family {
        Family::V4 => set("net.ipv4.ip_forward", "1")?,
        Family::V6 => set("net.ipv6.conf.all.forwarding", "1")?,
    }
    // Paths may be longer than the usual 64 hops.
    set("net.ipv4.ip_default_ttl", "255")?;
    if plan.family == Family::V6 {
        set("net.ipv6.conf.default.hop_limit", "255")?;
        set("net.ipv6.conf.all.hop_limit", "255")?;
    }
    let Some(sack) = space.sack else { return Ok(()) };
    set("net.ipv4.tcp_sack", if sack { "1" } else { "0" })?;
    set("net.ipv4.tcp_timestamps", "1")?;
    set("net.ipv4.tcp_window_scaling", "1")?;
    set("net.ipv4.tcp_ecn", "0")?;
    // No flow learns from the one before it.
    set("net.ipv4.tcp_no_metrics_save", "1")?;
    set("net.ipv4.tcp_slow_start_after_idle", "0")?;
    // What bounds a window is in the scenario, or it is cwnd. The window offered is about half of
    // the buffer, and twice what can be on the way leaves room for what waits for a retransmission.
    // Not more from the beginning: as long as the window still grows towards the buffer's half,
    // every segment is acknowledged at once (tcp_grow_window).
    let first = space.in_flight.saturating_mul(4).clamp(FIRST_BUFFER, BUFFER);
    set("net.ipv4.tcp_rmem", &format!("4096 {first} {BUFFER}"))?;
    set("net.ipv4.tcp_wmem", &format!("4096 {} {BUFFER}", BUFFER / 16))
}
