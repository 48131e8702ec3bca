//! What a run says of a scenario that can hardly be meant so.

use xcp_model::advice;
use xcp_scenario::{Overrides, load};

fn told(queue: &str, medium: &str, congestion: &str) -> Vec<String> {
    let text = format!(
        "duration = \"1s\"\n[[link]]\nname = \"l\"\nbetween = [\"A\", \"B\"]\nrate \
            = \"1mbit\"\ndelay = \"1ms\"\n{medium}\n\
         queue = {queue}\n[[flow]]\nname = \"f\"\nfrom = \"A\"\nto = \"B\"\ncongestion \
            = \"{congestion}\"\n"
    );
    let scenarios = load(std::path::Path::new("x.toml"), &text, &Overrides::none());
    advice(&scenarios.unwrap_or_else(|e| panic!("{e}"))[0])
}

#[test]
fn what_was_hardly_meant_is_told() {
    let (xcp, tail) = ("{ kind = \"xcp\", limit = 9 }", "{ kind = \"drop-tail\", limit = 9 }");
    assert!(
        told(xcp, "", "xcp").is_empty()
            && told(tail, "", "cubic").is_empty()
            && told(xcp, "", "cubic").is_empty()
    );
    let unrouted = "flow \"f\" speaks XCP but crosses no XCP queue";
    assert_eq!(told(tail, "", "xcp"), [format!("{unrouted}: it behaves like an ordinary TCP")]);
    assert_eq!(told(tail, "", "xcp-robust"), [format!("{unrouted}: it limits itself by delay")]);
    let medium = "medium = \"air\"";
    assert!(
        told(xcp, medium, "xcp")[0]
            .starts_with("link \"l\": its XCP queue assumes that it has the whole rate")
    );
    let xcp_until = |changes| told(xcp, changes, "xcp");
    assert_eq!(
        xcp_until("rate-changes = [[\"1s\", \"2mbit\"]]\ndelay-changes = [[\"2s\", \"2ms\"]]"),
        ["rate", "delay"]
            .map(|what| format!("link \"l\": its {what} does not change before the run ends"))
    );
    assert_eq!(
        xcp_until("blackout = { from = \"1.5s\", to = \"2s\" }"),
        ["link \"l\": the run ends before its blackout at 1.5s"]
    );
    assert!(xcp_until("rate-changes = [[\"0.9s\", \"2mbit\"], [\"2s\", \"3mbit\"]]").is_empty());
    let members = "xcp\"\ncount = 3\nstagger = \"0.5s\"\nstart-jitter = \"0s";
    assert_eq!(
        told(xcp, "", members),
        ["flow \"f\": the run ends before 1 of its 3 members have started"]
    );
    let told_capacity = "{ kind = \"xcp\", limit = 9, law = { capacity = \"500kbit\" } }";
    let yields = "{ kind = \"xcp\", limit = 9, yields = true }";
    assert!(told(yields, medium, "xcp")[0].contains("assumes that it has the whole rate"));
    let robust = yields.replace("limit", "law = \"robust\", limit");
    assert!(told(&robust, medium, "xcp-robust").is_empty());
    assert!(
        told(told_capacity, medium, "xcp").is_empty() && told(tail, medium, "cubic").is_empty()
    );
}
