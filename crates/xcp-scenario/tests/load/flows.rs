//! What flows send by: congestion controls and other settings of TCP, patterns of datagrams.

use std::path::Path;

use xcp_model::{Congestion, Recovery, Traffic, UdpPattern, WireFormat};
use xcp_scenario::{Overrides, load};

use crate::{one, small};

fn tcp(text: &str) -> xcp_model::Tcp {
    match one(text).flows.remove(0).traffic() {
        Traffic::Tcp(tcp) => tcp,
        Traffic::Udp(_) => panic!("not TCP"),
    }
}

fn udp(pattern: &str) -> UdpPattern {
    let text = small("", "", "").replace("congestion = \"reno\"", &format!("udp = {pattern}"));
    match one(&text).flows.remove(0).traffic() {
        Traffic::Udp(pattern) => pattern,
        Traffic::Tcp(_) => panic!("not UDP"),
    }
}

#[test]
fn a_kernels_congestion_controls_are_for_scenarios_that_run_on_it() {
    let text = small("", "", "").replace("\"reno\"", "\"bbr\"");
    let kernel = |names: &[&str]| {
        Overrides::none().on_kernel(names.iter().map(|n| (*n).to_owned()).collect())
    };
    let told = |overrides: &Overrides| {
        load(Path::new("x.toml"), &text, overrides).unwrap_err().problems()[0].clone()
    };
    let Traffic::Tcp(tcp) =
        load(Path::new("x.toml"), &text, &kernel(&["cubic", "bbr"])).unwrap()[0].flows[0].traffic()
    else {
        panic!()
    };
    assert_eq!(
        (tcp.congestion, tcp.recovery, tcp.paced),
        (Congestion::Named("bbr".into()), Recovery::Sack, false)
    );
    assert_eq!(told(&Overrides::none()).what, "the simulator has no congestion control \"bbr\"");
    let absent = told(&kernel(&["cubic", "bbr2"]));
    assert_eq!(absent.what, "this kernel has no congestion control \"bbr\"");
    let help = absent.help.unwrap();
    assert!(help.starts_with("did you mean `bbr2`?"), "{help}");
    assert!(help.contains("The known ones are `xcp`, `xcp-robust`, `cubic` and `bbr2`;"), "{help}");
}

#[test]
fn congestion_brings_its_recovery() {
    for (name, congestion, recovery, paced) in [
        ("xcp", Congestion::Xcp, Recovery::Sack, true),
        ("reno", Congestion::Reno, Recovery::Reno, false),
        ("newreno", Congestion::Reno, Recovery::NewRenoImpatient, false),
        ("sack", Congestion::Reno, Recovery::Sack, false),
        ("cubic", Congestion::Cubic, Recovery::Sack, false),
    ] {
        let text = small("", "", "").replace("reno", name);
        let tcp = tcp(&text);
        assert_eq!(
            (tcp.congestion, tcp.recovery, tcp.paced),
            (congestion, recovery, paced),
            "{name}"
        );
        assert_eq!(
            self::tcp(&format!("{text}recovery = \"newreno-slow-but-steady\"")).recovery,
            Recovery::NewRenoSlowButSteady
        );
        assert_eq!(self::tcp(&format!("{text}paced = {}", !paced)).paced, !paced);
    }
}

#[test]
fn every_setting_of_tcp() {
    use xcp_model::{LossResponse, RtoPolicy};
    let lines = "loss-response = \"halve\"\nwire = \"classic\"\nbytes = \"10mb\"\nreceive-buffer \
        = \"64kb\"\nsend-buffer = 1000\nwindow-scaling = false\n\
                 delayed-ack = false\nhandshake = false\ninitial-window = 2\nrto-min \
        = \"1s\"\nrto = \"fixed\"\nhonest-window = false";
    let tcp = tcp(&small("", lines, ""));
    assert_eq!(
        (tcp.loss_response, tcp.wire, tcp.bytes),
        (LossResponse::Halve, WireFormat::Classic, Some(10 << 20))
    );
    assert_eq!((tcp.receive_buffer, tcp.send_buffer), (Some(65_536), Some(1000)));
    assert_eq!(
        (tcp.window_scaling, tcp.delayed_ack, tcp.handshake, tcp.honest_window),
        (false, false, false, false)
    );
    assert_eq!(
        (tcp.initial_window, tcp.rto_min, tcp.rto_policy),
        (2, 1_000_000_000, RtoPolicy::Fixed)
    );
    assert_eq!(self::tcp(&small("", "receive-buffer = \"unlimited\"", "")).receive_buffer, None);
}

#[test]
fn patterns_of_datagrams() {
    assert_eq!(udp("{ rate = \"2mbit\" }"), UdpPattern::Constant { rate_bps: 2_000_000 });
    assert_eq!(
        udp("{ pattern = \"poisson\", rate = \"2mbit\" }"),
        UdpPattern::Poisson { rate_bps: 2_000_000 }
    );
    assert_eq!(
        udp(
            "{ pattern = \"on-off\", rate = \"2mbit\", on = \"1s\", off = \"500ms\", random = true }"
        ),
        UdpPattern::OnOff {
            rate_bps: 2_000_000,
            on: 1_000_000_000,
            off: 500_000_000,
            random: true
        }
    );
    assert_eq!(
        udp("{ pattern = \"schedule\", steps = [[\"0s\", \"1mbit\"], [\"10s\", \"0bit\"]] }"),
        UdpPattern::Schedule { steps: vec![(0, 1_000_000), (10_000_000_000, 0)] }
    );
}
