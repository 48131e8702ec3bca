//! The keys of flows and of what they send.

use super::{Kind, REQUIRED, Spec, key};

/// Keys of a flow that mean nothing to datagrams.
pub(crate) const TCP_ONLY: &[&str] = &[
    "congestion",
    "recovery",
    "loss-response",
    "paced",
    "wire",
    "bytes",
    "receive-buffer",
    "receive-buffer-changes",
    "receive-window",
    "send-buffer",
    "window-scaling",
    "delayed-ack",
    "handshake",
    "initial-window",
    "rto-min",
    "rto",
    "honest-window",
    "access-id",
];

/// `[[flow]]`.
pub(crate) static FLOW: Spec = Spec {
    name: "flow",
    doc: "A transfer of data, or with `udp` a source of datagrams; with `count` a group of them.",
    keys: &[
        key("name", Kind::Name, "`flow`", "\"web\"", "Its name, unique."),
        key(
            "count",
            Kind::Integer { min: 1, max: 1_000_000 },
            "a single flow; with `arrivals` as many as arrive",
            "4",
            "Makes a group of this many flows, named `NAME-1`, `NAME-2`, ...; without `count` the \
             flow is named `NAME`. With `arrivals` it is the upper limit.",
        ),
        key("from", Kind::Name, REQUIRED, "\"S\"", "The node that sends."),
        key("to", Kind::Name, REQUIRED, "\"D\"", "The node that receives."),
        key(
            "via",
            Kind::Names,
            "none",
            "[\"R\"]",
            "Nodes to pass through, in this order; acknowledgements pass through them in reverse.",
        ),
        key("start", Kind::Time, "`\"0s\"`", "\"2s\"", "When it starts."),
        key("stop", Kind::Time, "never", "\"50s\"", "When it stops sending new data."),
        key(
            "start-jitter",
            Kind::Time,
            "`\"0s\"`",
            "\"100ms\"",
            "The start is delayed by a random time less than this, drawn from the seed.",
        ),
        key(
            "stagger",
            Kind::Time,
            "`\"0s\"`",
            "\"10s\"",
            "Each member of a group starts this much later than the one before it.",
        ),
        key(
            "arrivals",
            Kind::Length,
            "together",
            "\"15ms\"",
            "Members of a group arrive as a Poisson process, with gaps of this mean: the first \
             starts one gap after `start`, each later one a gap after the one before it. No \
             member arrives at or after `stop` or the end of the run. Cannot be combined with \
             `stagger`.",
        ),
        key(
            "packet",
            Kind::Size { min: 64, max: 65_535 },
            "1500",
            "1000",
            "Size of a full packet on the wire, headers included.",
        ),
        key(
            "congestion",
            Kind::Congestion,
            REQUIRED,
            "\"cubic\"",
            "Congestion control. `reno`, `newreno` and `sack` are Reno's window with the loss \
             recovery of that name; all others come with SACK. With `--on linux` any of the \
             kernel's own is allowed too, such as `bbr`. Not allowed with `udp`.",
        ),
        key(
            "recovery",
            Kind::Choice(&[
                "reno",
                "reno-ns2",
                "newreno",
                "newreno-slow-but-steady",
                "sack",
                "sack-linux",
            ]),
            "by `congestion`",
            "\"newreno\"",
            "Loss recovery: RFC 5681; the same as implemented in ns-2, without a second fast \
             retransmit in one window; RFC 6582 in its Impatient or Slow-but-Steady variant; RFC \
             6675; RFC 6675 with what Linux has had since 2001: lost retransmissions are also \
             detected before the timeout.",
        ),
        key(
            "loss-response",
            Kind::Choice(&["none", "halve"]),
            "`\"none\"`",
            "\"halve\"",
            "xcp: what three duplicate acknowledgements do to the window. Either way the loss is \
                repaired.",
        ),
        key(
            "paced",
            Kind::Bool,
            "`true` for xcp, else `false`",
            "false",
            "Whether packets are spread over the round trip instead of being sent as \
             acknowledgements come in.",
        ),
        key(
            "wire",
            Kind::Choice(&["extended", "classic", "classic-integer"]),
            "`\"extended\"`",
            "\"classic\"",
            "xcp: the header format: ours; the 2005 Linux study's; the study's with feedback \
             rounded to the nearest whole packet, which loses everything below half a packet.",
        ),
        key(
            "bytes",
            Kind::Short { short: "mean", table: &BYTES },
            "without end",
            "\"10mb\"",
            "How much to transfer: a size, or a distribution from which each member's size is \
             drawn.",
        ),
        key(
            "receive-buffer",
            Kind::Buffer { min: 1 },
            "`\"unlimited\"`",
            "\"64kb\"",
            "The receiver's buffer; it limits the advertised window.",
        ),
        key(
            "receive-buffer-changes",
            Kind::Tables(&BUFFER_CHANGE),
            "none",
            "[{ at = \"60s\", size = \"640kb\" }]",
            "Other sizes that the receiver's buffer takes later, as when memory becomes scarce or \
             is available again. What has been advertised is not taken back (RFC 7323 §2.4). Only \
             in the simulator.",
        ),
        key(
            "receive-window",
            Kind::Choice(&["open", "two-per-ack", "feedback"]),
            "`\"open\"`",
            "\"feedback\"",
            "How the advertised window reaches the size of the receiver's buffer: it has that \
             size from the start; it grows from 4 packets by 2 with each acknowledgement, as \
             Linux's did in 2005; or it grows from 4 packets by the feedback that the \
             acknowledgement returns, in whole packets, which is the 2005 Linux study's remedy \
             and needs a `wire` that counts packets. Only in the simulator.",
        ),
        key(
            "send-buffer",
            Kind::Buffer { min: 1 },
            "`\"unlimited\"`",
            "\"64kb\"",
            "The sender's buffer; it limits the data in flight.",
        ),
        key(
            "window-scaling",
            Kind::Bool,
            "`true`",
            "false",
            "Without it the advertised window cannot exceed 65535 bytes.",
        ),
        key(
            "delayed-ack",
            Kind::Bool,
            "`true`",
            "false",
            "Whether acknowledgements are sent for every second segment (or when a timer expires) \
             instead of for every segment.",
        ),
        key(
            "handshake",
            Kind::Bool,
            "`true`",
            "false",
            "Whether the connection opens with SYN and SYN-ACK.",
        ),
        key(
            "initial-window",
            Kind::Integer { min: 1, max: 1_000_000 },
            "10",
            "2",
            "The first window in packets; the default is RFC 6928's; with `xcp-robust`, routers may \
             say less.",
        ),
        key(
            "rto-min",
            Kind::Length,
            "`\"200ms\"`",
            "\"1s\"",
            "Lower bound of the retransmission timeout; the default is Linux's, whereas RFC 6298 \
             recommends 1 s.",
        ),
        key(
            "rto",
            Kind::Choice(&["back-off", "fixed"]),
            "`\"back-off\"`",
            "\"fixed\"",
            "Whether the timeout doubles when it expires again (RFC 6298, up to 60 s) or stays \
             the same. In an outage `xcp-robust` waits for a second at most \
             ([robust.md](robust.md)).",
        ),
        key(
            "honest-window",
            Kind::Bool,
            "`true`",
            "false",
            "xcp: whether the sender tells the routers the lower of cwnd and what the buffers let \
             it send; `false` is the 2005 Linux study's sender, whose window runs away when a \
             buffer limits it.",
        ),
        key(
            "access-id",
            Kind::Bool,
            "`false`",
            "true",
            "xcp, if a router on the path asks for bottleneck ids: what packets name until a \
             router has claimed the flow: its first link, as in the iXCP paper (`true`), or none \
             (`false`).",
        ),
        key(
            "udp",
            Kind::Table(&UDP),
            "TCP",
            "{ pattern = \"constant\", rate = \"2mbit\" }",
            "Send datagrams, regardless of the state of the network, instead of TCP.",
        ),
        key(
            "lies",
            Kind::Table(&LIES),
            "none",
            "{ window = \"0.1x\" }",
            "xcp and udp: how the flow cheats routers, senders or both; it does everything else \
             as it should. Only in the simulator.",
        ),
    ],
};

/// `receive-buffer-changes` of a flow.
pub(crate) static BUFFER_CHANGE: Spec = Spec {
    name: "receive-buffer-changes",
    doc: "The sizes that a receiver's buffer takes during the run, in order of time.",
    keys: &[
        key("at", Kind::Time, REQUIRED, "\"60s\"", "When."),
        key("size", Kind::Buffer { min: 1 }, REQUIRED, "\"640kb\"", "The size from then on."),
    ],
};

/// `lies` of a flow.
pub(crate) static LIES: Spec = Spec {
    name: "lies",
    doc: "How a flow lies; `{}` is an honest flow. An XCP flow must have `wire = \"extended\"`. \
        With `udp`, datagrams carry XCP's forward header: `rtt`, `window`, `asks` and `link` are \
        what it says, `forged` is for them alone, and the other keys have no effect on them.",
    keys: &[
        key(
            "rtt",
            Kind::ClaimedTime,
            "the truth; required with `udp`",
            "\"10x\"",
            "What headers say about the round-trip time: a multiple of the true one, or a time, \
             with `\"0s\"` for unknown. A value that a header cannot express becomes the nearest \
             one that it can.",
        ),
        key(
            "window",
            Kind::ClaimedWindow,
            "the truth; required with `udp`",
            "\"0.1x\"",
            "What headers say about the window: a multiple of the true one, or packets and \
             fractions of packets (`\"0.01p\"`).",
        ),
        key(
            "asks",
            Kind::Number { min: -1e13, max: 1e13 },
            "the truth; with `udp` the most",
            "-1e9",
            "What headers ask for, bit/s, instead of what the sender wants; below 0: that the flow \
             gives up that much.",
        ),
        key(
            "link",
            Kind::Integer { min: 0, max: 4_294_967_295 },
            "the truth; with `udp` none",
            "12345",
            "The link that headers name as the one that limits the flow; 0 names none.",
        ),
        key(
            "cwnd",
            Kind::Integer { min: 1, max: 1_000_000 },
            "by feedback",
            "80",
            "The window, in packets, that the sender keeps regardless of feedback and losses. It \
             asks for the most that a header can express. Not with `xcp-robust`, whose state is a \
             rate.",
        ),
        key(
            "increases",
            Kind::Factor,
            "`\"1x\"`",
            "\"10x\"",
            "The multiple of positive feedback that the sender applies.",
        ),
        key(
            "decreases",
            Kind::Factor,
            "`\"1x\"`",
            "\"0x\"",
            "The multiple of negative feedback that the sender applies; `\"0x\"` ignores it.",
        ),
        key(
            "returns",
            Kind::Rate,
            "what routers say",
            "\"1mbit\"",
            "What the receiver writes into every acknowledgement instead of the feedback that \
             arrived: an increase in throughput by this rate. The sender believes it.",
        ),
        key(
            "hides",
            Kind::Bool,
            "the truth",
            "true",
            "Whether the time on acknowledgements hides queues on the way to the receiver: they seem \
             to have waited on the way back. Only `xcp-robust` looks at it.",
        ),
        key(
            "blames",
            Kind::Bool,
            "the truth",
            "true",
            "Whether acknowledgements say that all data have waited behind TCP, for as long as can \
             be said, as if a router that steers TCP had said so. Only `xcp-robust` looks at it.",
        ),
        key(
            "forged",
            Kind::Bool,
            "`false`",
            "true",
            "udp: whether each datagram belongs to a different flow, as if its addresses were \
             forged; otherwise all belong to one flow.",
        ),
    ],
};

/// `bytes` of a flow.
pub(crate) static BYTES: Spec = Spec {
    name: "bytes",
    doc: "Sizes of transfers. `bytes = \"10mb\"` is short for `bytes = { mean = \"10mb\" }`: all \
        have the same size.",
    keys: &[
        key(
            "mean",
            Kind::Size { min: 1, max: xcp_law::quantity::MAX_BYTES },
            REQUIRED,
            "\"30kb\"",
            "The size, or the mean of the sizes.",
        ),
        key(
            "distribution",
            Kind::Choice(DISTRIBUTIONS),
            "`\"fixed\"`",
            "\"pareto\"",
            "All the same size; exponentially distributed; or Pareto distributed, where a few \
             large transfers have most of the bytes.",
        ),
        key(
            "shape",
            Kind::Number { min: 1.01, max: 100.0 },
            "required for pareto",
            "1.2",
            "pareto: a size exceeds x with probability (x0/x)^shape. The smallest size x0 is mean \
             x (shape - 1) / shape. Below 2 the variance is infinite.",
        ),
        key(
            "max",
            Kind::Size { min: 1, max: xcp_law::quantity::MAX_BYTES },
            "no bound",
            "\"10mb\"",
            "exponential and pareto: larger sizes are cut to this one, which makes the mean \
             smaller than `mean`.",
        ),
    ],
};

/// Known distributions of sizes.
const DISTRIBUTIONS: &[&str] = &["fixed", "exponential", "pareto"];

/// `udp`.
pub(crate) static UDP: Spec = Spec {
    name: "udp",
    doc: "When datagrams are sent. Rates are on the wire.",
    keys: &[
        key(
            "pattern",
            Kind::Choice(&["constant", "poisson", "on-off", "schedule"]),
            "`\"constant\"`",
            "\"on-off\"",
            "Evenly spaced; with exponential gaps; in bursts, starting with one; or at a given \
             rate for each stretch of time.",
        ),
        key(
            "rate",
            Kind::Rate,
            "required, except for schedule",
            "\"2mbit\"",
            "constant and on-off: the rate (while on); poisson: the mean rate.",
        ),
        key(
            "on",
            Kind::Length,
            "required for on-off",
            "\"500ms\"",
            "on-off: the length of a burst. Every datagram that begins in it is sent whole, so that \
             bursts of few datagrams send more than their part of the rate, by half a datagram \
             each on average.",
        ),
        key(
            "off",
            Kind::Length,
            "required for on-off",
            "\"500ms\"",
            "on-off: the length of a silence.",
        ),
        key(
            "random",
            Kind::Bool,
            "`false`",
            "true",
            "on-off: whether both lengths are exponentially distributed with these means.",
        ),
        key(
            "steps",
            Kind::RateSteps,
            "required for schedule",
            "[[\"0s\", \"1mbit\"], [\"10s\", \"0bit\"]]",
            "schedule: `[from, rate]` in order of time, counted from the start of the run; the \
             rate `\"0bit\"` is silence.",
        ),
    ],
};
