//! How much it is: what runs of a file cost, that large files are read, how small a flow is.

use xcp_model::packet_hops;

use crate::one;

/// What runs cost: four flows fill the narrow link whatever the wide one could take; each packet
/// crosses both, half as many come back.
#[test]
fn cost() {
    let text = |flow: &str| {
        format!(
            "duration = \"60s\"\n[[link]]\nbetween = [\"S\", \"R\"]\nrate = \"100mbit\"\ndelay \
                = \"1ms\"\n\
             [[link]]\nbetween = [\"R\", \"D\"]\nrate = \"12mbit\"\ndelay \
                = \"1ms\"\n[[flow]]\nfrom = \"S\"\nto = \"D\"\n{flow}"
        )
    };
    for (flow, expected) in [
        ("congestion = \"xcp\"\ncount = 4", 60_000.0 * 3.0),
        ("congestion = \"xcp\"\nstart = \"30s\"\ndelayed-ack = false", 30_000.0 * 4.0),
        ("congestion = \"xcp\"\nbytes = 150000", 100.0 * 3.0),
        ("udp = { rate = \"1.2mbit\" }", 6000.0 * 2.0),
        ("udp = { rate = \"24mbit\" }", 60_000.0 * 2.0),
        (
            "udp = { pattern = \"on-off\", rate = \"12mbit\", on = \"1s\", off = \"3s\" }",
            15_000.0 * 2.0,
        ),
        (
            "udp = { pattern = \"schedule\", steps = [[\"0s\", \"0bit\"], [\"45s\", \"12mbit\"]] }",
            15_000.0 * 2.0,
        ),
    ] {
        let hops = packet_hops(&one(&text(flow)));
        assert!((hops / expected - 1.0).abs() < 0.01, "{flow}: {hops}, not {expected}");
    }
}

/// A thousand links in a row and a hundred thousand flows: reading takes no more than a moment (a
/// quadratic step would take minutes).
#[test]
fn large_files() {
    let mut text = "duration = \"1s\"\nsample = \"off\"\n".to_string();
    for i in 0..1000 {
        text += &format!(
            "[[link]]\nbetween = [\"n{i}\", \"n{}\"]\nrate = \"1gbit\"\ndelay = \"1ms\"\nqueue = \
                {{ limit = \"1bdp\" }}\n",
            i + 1
        );
    }
    for i in 0..1000 {
        text += &format!(
            "[[flow]]\nname = \"f{i}\"\ncount = 100\nfrom = \"n{i}\"\nto = \"n{}\"\ncongestion \
                = \"xcp\"\n",
            (i + 7) % 1001
        );
    }
    let s = one(&text);
    assert_eq!((s.links.len(), s.flows.len()), (1000, 100_000));
}

/// What each of a million flows takes beside its group.
#[test]
fn flows_are_small() {
    assert!(size_of::<xcp_model::Flow>() <= 32);
    assert!(size_of::<xcp_model::run::FlowSummary>() <= 112);
}
