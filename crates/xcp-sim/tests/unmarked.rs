//! XCP senders where no router speaks XCP: they are to load the path as TCP would.

use std::path::Path;

use xcp_model::run::Summary;
use xcp_scenario::{Overrides, load};

/// One flow over 10 Mbit/s and 40 ms with a queue of 100 packets that drops what does not fit.
fn drop_tail(loss: &str, flow: &str) -> Summary {
    let text = format!(
        r#"
        title = "no XCP router"
        duration = "60s"
        [[link]]
        name = "line"
        between = ["A", "B"]
        rate = "10mbit"
        delay = "20ms"
        queue = {{ kind = "drop-tail", limit = 100 }}
        loss = {loss}
        [[flow]]
        name = "f"
        from = "A"
        to = "B"
        {flow}
        "#
    );
    let mut variants = load(Path::new("test.toml"), &text, &Overrides::default())
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(variants.len(), 1);
    xcp_sim::simulate(&variants.remove(0), &mut ()).unwrap_or_else(|e| panic!("{e}")).summary
}

#[test]
fn xcp_without_routers_loads_the_path_as_tcp_does() {
    for loss in ["0.0", "0.001", "0.02"] {
        let sack = drop_tail(loss, "congestion = \"sack\"");
        for wire in ["extended", "classic"] {
            for response in ["none", "halve"] {
                let xcp = drop_tail(
                    loss,
                    &format!(
                        "congestion = \"xcp\"\nwire = \"{wire}\"\nloss-response = \"{response}\""
                    ),
                );
                let figures = |s: &Summary| {
                    let (flow, link) = (&s.flows[0], &s.links["line"]);
                    [flow.cwnd_mean, flow.goodput, flow.retransmits as f64, link.drops as f64]
                };
                let (got, want) = (figures(&xcp), figures(&sack));
                for (got, want) in got.into_iter().zip(want) {
                    assert!(
                        got <= 2.0 * want && 2.0 * got >= want,
                        "loss {loss}, {wire}, {response}: {got}, sack {want}"
                    );
                }
            }
        }
    }
}
