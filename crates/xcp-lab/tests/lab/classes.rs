//! The `others` of a queue are the kernel router's.

use xcp_model::run::Run;

use crate::{lab, link};

/// Datagrams at twice the link's rate beside XCP: in a queue of their own they have their share and
/// XCP has its. In one queue with them XCP has next to nothing.
#[test]
fn datagrams_keep_to_their_share() {
    let text = |others: &str, rate: &str| {
        format!(
            r#"
            title = "classes"
            duration = "6s"
            measure = {{ from = "3s" }}
            link = [{{ name = "l", between = ["a", "b"], rate = "10mbit", delay = "10ms", queue = {{ kind = "xcp", limit = "2bdp", {others} }} }}]
            flow = [
                {{ name = "x", count = 2, from = "a", to = "b", congestion = "xcp" }},
                {{ name = "u", from = "a", to = "b", udp = {{ rate = "{rate}" }} }},
            ]
            "#
        )
    };
    let xcps = |run: &Run| -> f64 {
        run.summary
            .flows
            .iter()
            .filter(|f| f.name.to_string().starts_with('x'))
            .map(|f| f.goodput / 1e7)
            .sum()
    };
    let Some(run) = lab("classes in the lab", &text(r#"others = "fair", share = 0.7"#, "20mbit"))
    else {
        return;
    };
    assert!(
        (0.55..0.7).contains(&xcps(&run)) && link(&run, "l").drops > 100,
        "{}: {:?}",
        xcps(&run),
        link(&run, "l")
    );
    let Some(run) = lab("classes in the lab", &text(r#"others = "shared""#, "20mbit")) else {
        return;
    };
    assert!(xcps(&run) < 0.3, "{}", xcps(&run));
    // What they leave is XCP's, unless the link is split.
    let Some(run) = lab("classes in the lab", &text(r#"others = "fair", share = 0.7"#, "1mbit"))
    else {
        return;
    };
    assert!(xcps(&run) > 0.75, "{}", xcps(&run));
    let Some(run) = lab("classes in the lab", &text(r#"others = "split", share = 0.7"#, "1mbit"))
    else {
        return;
    };
    assert!((0.55..0.7).contains(&xcps(&run)), "{}", xcps(&run));
}
