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
    let told_capacity = "{ kind = \"xcp\", limit = 9, law = { capacity = \"500kbit\" } }";
    assert!(
        told(told_capacity, medium, "xcp").is_empty() && told(tail, medium, "cubic").is_empty()
    );
}
