//! Flows that lie: every kind of lie, and where one may.

use std::path::Path;

use xcp_model::{Claim, Lies};
use xcp_scenario::{Overrides, load};

use crate::{one, small};

fn lies(table: &str, kind: &str) -> Lies {
    let text =
        small("", "", "").replace("congestion = \"reno\"", &format!("{kind}\nlies = {table}"));
    one(&text).flows[0].group.lies.expect("the flow lies")
}

#[test]
fn lies_of_every_kind() {
    let xcp = |table: &str| lies(table, "congestion = \"xcp\"");
    let honest = Lies {
        asks_bps: None,
        link: None,
        rtt: None,
        window: None,
        cwnd: None,
        increases: 1.0,
        decreases: 1.0,
        returns_bps: None,
        hides: false,
        blames: false,
        forged: false,
    };
    for honest in ["", "lies = {}"] {
        assert_eq!(one(&small("", honest, "")).flows[0].group.lies, None);
    }
    for (written, meant) in [
        ("{ rtt = \"2x\" }", Lies { rtt: Some(Claim::Times(2.0)), ..honest }),
        ("{ rtt = \"65s\" }", Lies { rtt: Some(Claim::Is(65_000_000_000)), ..honest }),
        ("{ rtt = \"0s\" }", Lies { rtt: Some(Claim::Is(0)), ..honest }),
        ("{ window = \"0.001x\" }", Lies { window: Some(Claim::Times(0.001)), ..honest }),
        ("{ window = \"0.25p\" }", Lies { window: Some(Claim::Is(0.25)), ..honest }),
        ("{ window = \"20 packets\" }", Lies { window: Some(Claim::Is(20.0)), ..honest }),
        ("{ cwnd = 83 }", Lies { cwnd: Some(83), ..honest }),
        (
            "{ increases = \"10x\", decreases = \"0x\" }",
            Lies { increases: 10.0, decreases: 0.0, ..honest },
        ),
        ("{ returns = \"100kbit\" }", Lies { returns_bps: Some(100_000), ..honest }),
    ] {
        assert_eq!(xcp(written), meant, "{written}");
    }
    let robust = lies("{ hides = true, blames = true }", "congestion = \"xcp-robust\"");
    assert_eq!(robust, Lies { hides: true, blames: true, ..honest });
    let flood =
        lies("{ rtt = \"65s\", window = \"1p\", forged = true }", "udp = { rate = \"5280bit\" }");
    assert_eq!(
        flood,
        Lies {
            rtt: Some(Claim::Is(65_000_000_000)),
            window: Some(Claim::Is(1.0)),
            forged: true,
            ..honest
        }
    );
}

#[test]
fn flows_lie_in_the_simulator_only() {
    let text = small("", "lies = { window = \"0.1x\" }", "").replace("\"reno\"", "\"xcp\"");
    let problem =
        load(Path::new("x.toml"), &text, &Overrides::none().on_kernel(vec!["cubic".into()]))
            .unwrap_err()
            .problems()[0]
            .clone();
    assert_eq!(problem.what, "flows can lie only in the simulator");
    assert!(problem.help.unwrap().contains("without --on linux"));
    assert!(one(&text).flows[0].group.lies.is_some());
}
