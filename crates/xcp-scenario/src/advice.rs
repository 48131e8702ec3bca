//! What somebody who wrote a scenario may not have meant, though it is allowed: said with the
//! results.

use crate::model::{Congestion, Scenario, Traffic};

/// Notes on a scenario, each a sentence without its full stop.
pub(crate) fn advice(scenario: &Scenario) -> Vec<String> {
    let mut notes = Vec::new();
    let queue = |direction: &usize| &scenario.links[direction / 2].directions[direction % 2].queue;
    let routed = |direction: &usize| queue(direction).router().is_some();
    for flows in scenario.groups() {
        let group = &flows[0].group;
        let explicit =
            matches!(&group.traffic, Traffic::Tcp(tcp) if tcp.congestion == Congestion::Xcp);
        if explicit && !group.route.iter().any(routed) {
            notes.push(format!(
                "flow \"{}\" speaks XCP and crosses no XCP queue: it goes on as an ordinary TCP",
                group.name
            ));
        }
    }
    for link in scenario.links.iter().filter(|link| link.medium.is_some()) {
        let believes = |direction: &crate::model::Direction| {
            direction.queue.router().is_some_and(|router| router.law.capacity_bps.is_none())
        };
        if link.directions.iter().any(believes) {
            notes.push(format!(
                "link \"{}\": its XCP queue believes in the whole rate of a medium that it \
                    shares; a `capacity` \
                 in its law says what it may fill",
                link.name
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::advice;
    use crate::{Overrides, load};

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
        assert!(
            told(tail, "", "xcp")[0].starts_with("flow \"f\" speaks XCP and crosses no XCP queue")
        );
        let medium = "medium = \"air\"";
        assert!(
            told(xcp, medium, "xcp")[0]
                .starts_with("link \"l\": its XCP queue believes in the whole rate")
        );
        let told_capacity = "{ kind = \"xcp\", limit = 9, law = { capacity = \"500kbit\" } }";
        assert!(
            told(told_capacity, medium, "xcp").is_empty() && told(tail, medium, "cubic").is_empty()
        );
    }
}
