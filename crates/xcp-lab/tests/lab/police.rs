//! The `police` of a queue is the kernel router's.

use crate::{lab, link};

/// A policer that believes no RTT beyond a millisecond leaves flows of fifty no burst: it refuses
/// packets, and what it refuses is among the drops. The queue, which is long enough, drops none.
#[test]
fn what_the_policer_refuses_is_counted() {
    let text = |police: &str| {
        format!(
            r#"
            title = "policed"
            duration = "4s"
            link = [{{ name = "l", between = ["a", "b"], rate = "10mbit", delay = "25ms", queue = {{ kind = "xcp", limit = 2000, police = {police} }} }}]
            flow = [{{ name = "f", count = 3, from = "a", to = "b", congestion = "xcp", stagger = "1s" }}]
            "#
        )
    };
    let Some(run) = lab("a policer in the lab", &text("{ longest-rtt = \"1ms\" }")) else { return };
    let refused = link(&run, "l").refused;
    assert!(refused > 0 && link(&run, "l").drops == refused, "{:?}", link(&run, "l"));
    let Some(run) = lab("a policer in the lab", &text("false")) else { return };
    assert_eq!((link(&run, "l").refused, link(&run, "l").drops), (0, 0));
}
