//! Devices, addresses, routes and neighbours: set, seen to be set, and refused with a reason.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use xcp_linux::netlink::{Netlink, VethOptions};
use xcp_linux::sysctl;

use crate::{LEFT_MAC, RIGHT, RIGHT_MAC, RIGHT6, namespace, wire};

#[test]
fn a_pair_is_as_it_was_asked_for_at_both_ends() {
    let (Some(here), Some(there)) = (namespace("veth"), namespace("veth")) else { return };
    let (mut near, mut far) = (Netlink::open_in(&here).unwrap(), Netlink::open_in(&there).unwrap());
    let options = VethOptions {
        mtu: 9000,
        tx_queue_len: 77,
        queues: 1,
        mac: Some(LEFT_MAC),
        peer_mac: Some(RIGHT_MAC),
    };
    near.add_veth_with("a", "b", &there, &options).unwrap();
    for (nl, name, mac) in [(&mut near, "a", LEFT_MAC), (&mut far, "b", RIGHT_MAC)] {
        let index = nl.index_of(name).unwrap().unwrap();
        let device = nl.link(index).unwrap();
        assert_eq!(
            (device.name.as_str(), device.mtu, device.tx_queue_len, device.tx_queues),
            (name, 9000, 77, 1)
        );
        assert_eq!(
            (device.kind.as_deref(), device.mac, device.up, device.loopback),
            (Some("veth"), Some(mac), false, false)
        );
        assert_eq!(nl.links().unwrap().into_iter().find(|d| d.index == index), Some(device));
        nl.set_mtu(index, 1400).unwrap();
        nl.set_up(index).unwrap();
        assert_eq!(nl.link(index).map(|d| (d.mtu, d.up)).unwrap(), (1400, true));
    }
    let index = near.index_of("a").unwrap().unwrap();
    assert!(near.link(index).unwrap().running);
    near.set_down(index).unwrap();
    assert!(!near.link(index).unwrap().up);
    near.delete_link(index).unwrap();
    assert_eq!((near.index_of("a").unwrap(), far.index_of("b").unwrap()), (None, None));
}

#[test]
fn many_devices_are_listed() {
    let (Some(here), Some(there)) = (namespace("links"), namespace("links")) else { return };
    let mut nl = Netlink::open_in(&here).unwrap();
    // More than fit into one datagram.
    for i in 0..60 {
        nl.add_veth(&format!("a{i}"), &format!("b{i}"), &there).unwrap();
    }
    let names: Vec<String> = nl
        .links()
        .unwrap()
        .into_iter()
        .filter(|d| d.kind.as_deref() == Some("veth"))
        .map(|d| d.name)
        .collect();
    assert_eq!(names, (0..60).map(|i| format!("a{i}")).collect::<Vec<_>>());
}

#[test]
fn refusals_name_the_thing_and_the_reason() {
    let Some(here) = namespace("netlink errors") else { return };
    let mut nl = Netlink::open_in(&here).unwrap();
    nl.add_veth("twice", "peer", &here).unwrap();
    let twice = nl.add_veth("twice", "other", &here).unwrap_err();
    assert_eq!(twice.errno(), Some(libc::EEXIST));
    let index = nl.index_of("twice").unwrap().unwrap();
    let unreachable =
        nl.add_route([10, 9, 0, 0].into(), 16, Some([10, 1, 2, 3].into()), index).unwrap_err();
    let absent = nl.set_up(9999).unwrap_err();
    let long = nl.index_of("a-name-of-16-let").unwrap_err();
    let slash = nl.add_veth("a/b", "c", &here).unwrap_err();
    let mtu = nl.set_mtu(index, 10).unwrap_err();
    for (error, words) in [
        (twice, &["\"twice\"", "exists"][..]),
        // The kernel's own words, which come as an extended acknowledgement.
        (unreachable, &["10.9.0.0/16 via 10.1.2.3", "the kernel says:"]),
        (absent, &["9999", "No such device", "ip link"]),
        (long, &["more than 15 characters"]),
        (slash, &["a/b", "cannot contain a slash"]),
        (mtu, &["MTU", "10"]),
    ] {
        let text = error.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
    assert_eq!(nl.index_of("nobody").unwrap(), None);
}

#[test]
fn packets_go_over_the_wire_at_once_and_nobody_is_asked_for_an_address() {
    let Some(wire) = wire("traffic over a veth") else { return };
    let mut addresses: Vec<IpAddr> = vec![RIGHT.into()];
    if wire
        .left
        .run(|| sysctl::read("net.ipv6.conf.left.disable_ipv6"))
        .unwrap()
        .is_ok_and(|v| v == "0")
    {
        addresses.push(RIGHT6.into());
    }
    for address in addresses {
        let server = wire.right.run(|| TcpListener::bind((address, 0))).unwrap().unwrap();
        let to = server.local_addr().unwrap();
        let mut client = wire
            .left
            .run(|| TcpStream::connect_timeout(&to, Duration::from_secs(10)))
            .unwrap()
            .unwrap();
        client.write_all(b"over the wire").unwrap();
        drop(client);
        let mut text = String::new();
        server.accept().unwrap().0.read_to_string(&mut text).unwrap();
        assert_eq!(text, "over the wire");
    }
    let table =
        wire.left.run(|| std::fs::read_to_string("/proc/thread-self/net/arp")).unwrap().unwrap();
    let entry = table
        .lines()
        .find(|line| line.starts_with("10.0.0.2 "))
        .unwrap_or_else(|| panic!("{table}"));
    assert!(entry.contains("0x6"), "permanent and complete: {entry}");
}

#[test]
fn routes_lead_where_they_were_set_to() {
    let Some(wire) = wire("routes") else { return };
    let beyond = Ipv4Addr::new(10, 7, 0, 1);
    let mut right = Netlink::open_in(&wire.right).unwrap();
    let lo = right.index_of("lo").unwrap().unwrap();
    right.add_address(lo, beyond.into(), 32).unwrap();
    let server = wire.right.run(|| UdpSocket::bind((beyond, 0))).unwrap().unwrap();
    server.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let to: SocketAddr = server.local_addr().unwrap();
    let client = wire.left.run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    assert!(client.send_to(b"x", to).is_err(), "without a route");
    let mut left = Netlink::open_in(&wire.left).unwrap();
    left.add_route([10, 7, 0, 0].into(), 16, Some(RIGHT.into()), wire.left_index).unwrap();
    left.add_route([10, 8, 0, 0].into(), 16, None, wire.left_index).unwrap();
    // A device that has just come up drops packets until the kernel has noticed that its peer is
    // up, too.
    let arrives = |_| {
        client.send_to(b"x", to).is_ok() && server.recv(&mut [0; 8]).is_ok_and(|bytes| bytes == 1)
    };
    assert!((0..100).any(arrives), "nothing arrives within ten seconds");
    let twice = left.add_route([10, 8, 0, 0].into(), 16, None, wire.left_index).unwrap_err();
    assert_eq!(twice.errno(), Some(libc::EEXIST));
}

#[test]
fn a_router_is_known_before_anything_is_sent_to_it() {
    let Some(wire) = wire("asking for neighbours") else { return };
    let router = Ipv4Addr::new(10, 0, 0, 7);
    let mut right = Netlink::open_in(&wire.right).unwrap();
    let index = right.index_of("right").unwrap().unwrap();
    right.add_address(index, router.into(), 24).unwrap();
    let mut left = Netlink::open_in(&wire.left).unwrap();
    for third in [7, 8] {
        left.add_route([10, third, 0, 0].into(), 16, Some(router.into()), wire.left_index).unwrap();
    }
    left.add_route([10, 9, 0, 0].into(), 16, None, wire.left_index).unwrap();
    assert_eq!(left.routers(wire.left_index).unwrap(), [IpAddr::from(router)]);
    let lo = left.index_of("lo").unwrap().unwrap();
    assert_eq!(left.routers(lo).unwrap(), [] as [IpAddr; 0]);
    let is_known = || {
        let table = wire.left.run(|| std::fs::read_to_string("/proc/thread-self/net/arp"));
        let table = table.unwrap().unwrap();
        table.lines().any(|line| line.starts_with("10.0.0.7 ") && line.contains("0x2"))
    };
    assert!(!is_known(), "nobody has asked yet");
    left.ask_for_neighbour(wire.left_index, router.into()).unwrap();
    let mut waits = (0..100).map(|_| std::thread::sleep(Duration::from_millis(100)));
    assert!(waits.any(|()| is_known()), "no answer within ten seconds");
    // Once more is no error, nor for one that it knows for good.
    left.ask_for_neighbour(wire.left_index, router.into()).unwrap();
    left.ask_for_neighbour(wire.left_index, RIGHT.into()).unwrap();
    assert!(left.ask_for_neighbour(9_999, router.into()).is_err(), "there is no such device");
}
