//! What sets up the network around the kernel programs, tried in network namespaces that are thrown
//! away. Needs root; says so where it is not there.

mod cgroups;
mod measure;
mod namespaces;
mod netlink;
mod nftables;
mod offloads;
mod qdisc;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use xcp_linux::namespace::Namespace;
use xcp_linux::netlink::{Netlink, VethOptions};

/// A new namespace; `None`, and the reason printed, where none can be had.
fn namespace(test: &str) -> Option<Namespace> {
    match Namespace::new() {
        Ok(namespace) => Some(namespace),
        Err(e) => {
            xcp_skip::skipped!("root", "{test}: {e}");
            None
        }
    }
}

/// Two namespaces with a wire between them: devices `left` (10.0.0.1, fd00::1) and `right`
/// (10.0.0.2, fd00::2), each other's neighbours known.
struct Wire {
    left: Namespace,
    right: Namespace,
    left_index: u32,
}

const LEFT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const LEFT6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const RIGHT6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
const LEFT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const RIGHT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn wire(test: &str) -> Option<Wire> {
    let (left, right) = (namespace(test)?, namespace(test)?);
    let mut nl = Netlink::open_in(&left).unwrap();
    let options =
        VethOptions { mac: Some(LEFT_MAC), peer_mac: Some(RIGHT_MAC), ..VethOptions::default() };
    if let Err(e) = nl.add_veth_with("left", "right", &right, &options) {
        xcp_skip::skipped!("root", "{test}: {e}");
        return None;
    }
    let set = |nl: &mut Netlink, name: &str, own: [IpAddr; 2], other: [IpAddr; 2], mac: [u8; 6]| {
        let index = nl.index_of(name).unwrap().unwrap();
        nl.set_up(index).unwrap();
        for ((own, other), prefix_len) in own.into_iter().zip(other).zip([24, 64]) {
            match nl.add_address(index, own, prefix_len) {
                Ok(()) => nl.add_neighbour(index, other, mac).unwrap(),
                Err(e) if own.is_ipv6() => xcp_skip::skipped!("ipv6", "{test}: IPv6: {e}"),
                Err(e) => panic!("{e}"),
            }
        }
        index
    };
    let (lefts, rights) = ([LEFT.into(), LEFT6.into()], [RIGHT.into(), RIGHT6.into()]);
    let left_index = set(&mut nl, "left", lefts, rights, RIGHT_MAC);
    set(&mut Netlink::open_in(&right).unwrap(), "right", rights, lefts, LEFT_MAC);
    Some(Wire { left, right, left_index })
}
