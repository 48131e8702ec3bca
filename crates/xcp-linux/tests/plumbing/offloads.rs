//! Offloads of a virtual Ethernet device, which has them all.

use xcp_linux::offload::{self, Offload};

use crate::wire;

#[test]
fn each_is_switched_off_and_on_again() {
    let Some(wire) = wire("offloads") else { return };
    wire.left
        .run(|| {
            let switch = |offload: Offload, on: bool| {
                offload::set("left", offload, on).unwrap();
                assert_eq!(offload::get("left", offload).unwrap(), on, "{}", offload.name());
            };
            Offload::ALL.into_iter().for_each(|offload| switch(offload, false));
            assert_eq!(
                Offload::ALL.map(|offload| offload::get("left", offload).unwrap()),
                [false; 4]
            );
            let refused = offload::set("left", Offload::Tso, true).unwrap_err().to_string();
            assert!(
                refused.contains("tcp-segmentation-offload on") && refused.contains("ethtool -k"),
                "{refused}"
            );
            Offload::ALL.into_iter().rev().for_each(|offload| switch(offload, true));
            assert_eq!(
                Offload::ALL.map(|offload| offload::get("left", offload).unwrap()),
                [true; 4]
            );
        })
        .unwrap();
}

#[test]
fn a_device_that_is_not_there_is_named() {
    for name in ["", "no-such-device", "a-name-that-is-too-long"] {
        let text = offload::get(name, Offload::Tso).unwrap_err().to_string();
        assert!(text.contains(&format!("\"{name}\"")) && text.contains("ip link"), "{text}");
    }
}
