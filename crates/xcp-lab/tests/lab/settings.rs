//! Flows' settings on the kernel's sockets.

use crate::{flow, lab, link, scenario};

fn text(link: &str, flow: &str) -> String {
    format!(
        "duration = \"2s\"\n[[link]]\nname = \"l\"\nbetween = [\"S\", \"D\"]\nrate \
            = \"20mbit\"\ndelay = \"25ms\"\n{link}\n\
         [[flow]]\nname = \"f\"\nfrom = \"S\"\nto = \"D\"\n{flow}\n"
    )
}

#[test]
fn transfers_are_completed_and_timed() {
    let flow_text = "congestion = \"reno\"\nrecovery = \"sack\"\nbytes = 20000\nstart \
        = \"100ms\"\n\
                     [[flow]]\nname = \"g\"\nfrom = \"D\"\nto = \"S\"\ncongestion \
        = \"cubic\"\nbytes = 1";
    let Some(run) = lab("transfers", &text("", flow_text)) else { return };
    // SYN, ten packets, five more: three round trips.
    let f = flow(&run, "f");
    assert!(
        f.completion_time.is_some_and(|t| t >= 0.15) && f.completed_at.is_some_and(|t| t >= 0.25),
        "{f:?}"
    );
    let g = flow(&run, "g");
    assert!(g.completion_time.is_some_and(|t| t >= 0.1), "{g:?}");
    let payload = f.goodput * (f.completed_at.unwrap() - 0.1) / 8.0;
    assert!((payload - 20_000.0).abs() < 1.0, "all of it was read: {payload}");
}

#[test]
fn buffers_bound_what_is_on_the_way() {
    // 20 packets a round trip of 50 ms; the link would carry 83.
    for (name, buffer) in
        [("receive-buffer", "receive-buffer = 30000"), ("send-buffer", "send-buffer = 30000")]
    {
        let Some(run) = lab(name, &text("", &format!("congestion = \"cubic\"\n{buffer}"))) else {
            return;
        };
        let most = 20.0 * 1434.0 * 8.0 / 0.05;
        let f = flow(&run, "f");
        assert!(f.goodput < 1.02 * most, "{name}: {f:?}");
        assert!(f.goodput > 0.5 * most, "{name}: {f:?}");
    }
    let Some(run) = lab(
        "window-scaling",
        &text("", "congestion = \"cubic\"\nwindow-scaling = false").replace("20mbit", "100mbit"),
    ) else {
        return;
    };
    let f = flow(&run, "f");
    assert!(f.goodput < 1.02 * 65535.0 * 8.0 / 0.05, "{f:?}");
}

#[test]
fn a_flow_stops_when_it_is_told_to() {
    let Some(run) =
        lab("stop", &text("queue = { limit = 50 }\n", "congestion = \"cubic\"\nstop = \"1s\""))
    else {
        return;
    };
    let last = run.series.iter().find(|s| format!("{:?}", s.quantity) == "Goodput").unwrap();
    let after: Vec<f64> = last
        .times
        .iter()
        .zip(last.values.iter())
        .filter(|(t, _)| **t > 1_500_000_000)
        .map(|(_, v)| v)
        .collect();
    assert!(!after.is_empty() && after.iter().all(|&v| v == 0.0), "{after:?}");
    assert!(flow(&run, "f").goodput > 1e6);
}

#[test]
fn what_linux_does_in_its_own_way_is_noted() {
    let settings = "congestion = \"newreno\"\nrto = \"fixed\"\nhandshake = false\npaced = \
        true\ndelayed-ack = false\ninitial-window = 2\nrto-min = \"1s\"";
    let Some(run) = lab("notes", &text("", settings)) else { return };
    for word in ["slow but steady", "doubles the timeout", "before the flow starts", "120 %"] {
        assert!(
            run.summary.notes.iter().any(|n| n.contains(word)),
            "{word}: {:?}",
            run.summary.notes
        );
    }
    // Each of its packets is acknowledged.
    let (there, back) = (link(&run, "l").packets as f64, link(&run, "l.reverse").packets as f64);
    assert!(back > 0.9 * there, "{back} acknowledgements of {there} packets");
}

#[test]
fn whatever_the_kernel_has_can_be_named() {
    let known = xcp_lab::congestions().unwrap();
    let Some(name) = known.iter().find(|name| !["reno", "cubic", "xcp"].contains(&name.as_str()))
    else {
        xcp_skip::skipped!(
            "kernel",
            "the kernel's own congestion controls: it has only {}",
            known.join(", ")
        );
        return;
    };
    let Some(run) =
        lab("a congestion control of the kernel's", &text("", &format!("congestion = \"{name}\"")))
    else {
        return;
    };
    assert!(flow(&run, "f").goodput > 1e6);
    assert!(
        xcp_sim::simulate(&scenario(&text("", &format!("congestion = \"{name}\""))), &mut ())
            .is_err()
    );
}

/// A flow that stops is given little to send at a time (TCP_NOTSENT_LOWAT), so that its end is
/// its end. A robust sender must not take that for all there is: it had a fifth of this link.
#[test]
fn an_application_that_waits_for_room_has_more_to_send() {
    let Some(run) = lab(
        "an_application_that_waits_for_room_has_more_to_send",
        "duration = \"12s\"\nmeasure = { from = \"8s\", to = \"11s\" }\n[[link]]\nname = \
         \"l\"\nbetween = [\"S\", \"D\"]\nrate = \"20mbit\"\ndelay = \"300ms\"\nqueue = { kind = \
         \"xcp\", law = \"robust\", limit = \"2bdp\" }\n[[flow]]\nname = \"f\"\nfrom = \"S\"\nto = \
         \"D\"\ncongestion = \"xcp-robust\"\nstop = \"11500ms\"\n",
    ) else {
        return;
    };
    assert!(link(&run, "l").utilisation > 0.8, "{:?}", run.summary.links);
}

/// A gap's packets are found lost over a quarter of a round trip where others have been overtaken
/// before (RACK's reordering window). Taken for those of a queue, they left a robust sender with
/// CUBIC's window at one loss in a thousand, a third of this link at best.
#[test]
fn a_short_gap_on_a_path_that_loses_some_is_no_queue() {
    let Some(run) = lab(
        "a_short_gap_on_a_path_that_loses_some_is_no_queue",
        "duration = \"12s\"\nmeasure = { from = \"7s\" }\n[[link]]\nname = \"l\"\nbetween = [\"S\", \
         \"D\"]\nrate = \"40mbit\"\ndelay = \"40ms\"\nloss = 0.001\nblackout = [{ from = \"5s\", to \
         = \"5.05s\" }]\nreorder = { probability = 0.01, most = \"2ms\" }\nqueue = { kind = \
         \"xcp\", law = \"robust\", limit = \"2bdp\" }\n[[flow]]\nname = \"f\"\nfrom = \"S\"\nto = \
         \"D\"\ncongestion = \"xcp-robust\"\n",
    ) else {
        return;
    };
    assert!(link(&run, "l").utilisation > 0.9, "{:?}", run.summary.links);
}
