//! Reads `lies` of a flow, and refuses what its kind of traffic could not mean by it. What liars do
//! on the wire is for the backends.

use crate::fields::Fields;
use crate::spec::LIES;
use xcp_model::{Claim, Congestion, Lies, Tcp, Traffic, WireFormat, XcpSender};

/// What datagrams may say.
const OF_DATAGRAMS: &[&str] = &["rtt", "window", "asks", "link", "forged"];
/// What connections may.
const OF_CONNECTIONS: &[&str] = &[
    "rtt",
    "window",
    "asks",
    "link",
    "cwnd",
    "increases",
    "decreases",
    "returns",
    "hides",
    "blames",
];

/// How a flow lies, `None` where it has no `lies` or an empty one; `kernel`: it is to run on one.
pub(crate) fn lies(flow: &Fields<'_>, traffic: &Traffic, kernel: bool) -> Option<Lies> {
    let item = flow.item("lies")?;
    let fields = Fields::of(flow.faults, &LIES, item)?;
    if fields.table.entries.is_empty() {
        return None;
    }
    let refuse = |what: &str, help: &str| flow.faults.add(item.span, what, help);
    if kernel {
        refuse(
            "flows can lie only in the simulator",
            "take `lies` out, or run it without --on linux",
        );
    }
    let lies = Lies {
        rtt: fields.claimed_time("rtt"),
        window: fields.claimed_window("window"),
        asks_bps: fields.number("asks"),
        link: fields.integer("link").and_then(|n| u32::try_from(n).ok()),
        cwnd: fields.integer("cwnd").and_then(|n| u32::try_from(n).ok()),
        increases: fields.factor("increases").unwrap_or(1.0),
        decreases: fields.factor("decreases").unwrap_or(1.0),
        returns_bps: fields.rate("returns"),
        hides: fields.bool("hides").unwrap_or(false),
        blames: fields.bool("blames").unwrap_or(false),
        forged: fields.bool("forged").unwrap_or(false),
    };
    match traffic {
        Traffic::Udp(_) => of_datagrams(&fields, &lies),
        Traffic::Tcp(Tcp {
            congestion: Congestion::Xcp,
            wire: WireFormat::Extended,
            xcp_sender,
            ..
        }) => {
            of_connection(&fields, &lies);
            if *xcp_sender == XcpSender::Robust && lies.cwnd.is_some() {
                fields.faults.add(
                    fields.span_of("cwnd"),
                    "a robust sender keeps a rate and has no `cwnd` to hold on to",
                    "write congestion = \"xcp\", or take `cwnd` out",
                );
            }
            for (key, what) in [
                ("hides", "the time on acknowledgements"),
                ("blames", "what acknowledgements say of TCP's queue"),
            ] {
                if *xcp_sender != XcpSender::Robust && fields.item(key).is_some() {
                    fields.faults.add(
                        fields.span_of(key),
                        format!("only a robust sender looks at {what}"),
                        format!("write congestion = \"xcp-robust\", or take `{key}` out"),
                    );
                }
            }
        }
        Traffic::Tcp(Tcp { congestion: Congestion::Xcp, .. }) => {
            refuse(
                "a flow with a classic header cannot lie",
                "write wire = \"extended\" or leave it out",
            );
        }
        Traffic::Tcp(_) => refuse(
            "`lies` is about XCP's headers, but this flow has none",
            "write congestion = \"xcp\", or take `lies` out",
        ),
    }
    Some(lies)
}

fn of_datagrams(fields: &Fields<'_>, lies: &Lies) {
    fields.only(OF_DATAGRAMS, "datagrams");
    for (key, example) in [("rtt", "\"65s\""), ("window", "\"1p\"")]
        .into_iter()
        .filter(|(key, _)| fields.item(key).is_none())
    {
        fields.faults.add(
            fields.span,
            format!("the header of these datagrams has no `{key}`"),
            format!("add {key} = {example}"),
        );
    }
    let refuse = |key: &str, help: &str| {
        let what = format!("datagrams have no true `{key}` to multiply");
        fields.faults.add(fields.span_of(key), what, help);
    };
    if matches!(lies.rtt, Some(Claim::Times(_))) {
        refuse("rtt", "write what they claim, like rtt = \"65s\"");
    }
    if matches!(lies.window, Some(Claim::Times(_))) {
        refuse("window", "write what they claim, like window = \"1p\"");
    }
}

fn of_connection(fields: &Fields<'_>, lies: &Lies) {
    fields.only(OF_CONNECTIONS, "a connection");
    if lies.cwnd.is_some() {
        for key in ["increases", "decreases", "returns"]
            .into_iter()
            .filter(|key| fields.item(key).is_some())
        {
            let what = format!("`{key}` has no effect on a sender that keeps its `cwnd`");
            fields.faults.add(fields.span_of(key), what, "leave out one of the two");
        }
    }
}
