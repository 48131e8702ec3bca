//! Every key of the scenario file in one table: name, what it takes, default, meaning, an example.
//! The reader, the JSON schema and the tables of `docs/scenario.md` all follow from it, so they
//! cannot disagree.

use crate::law;

/// What a key takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// A name: not empty, without `.`, `"`, `*` and control characters.
    Name,
    /// `true` or `false`.
    Bool,
    /// `"10mbit"`, not zero.
    Rate,
    /// `"250ms"`, zero included.
    Time,
    /// `"250ms"`, not zero.
    Length,
    /// `"64kb"` or a number of bytes, within bounds.
    Size { min: u64, max: u64 },
    /// As `Size`, or `"unlimited"`.
    Buffer { min: u64 },
    /// A whole number within bounds.
    Integer { min: u64, max: u64 },
    /// A number within bounds.
    Number { min: f64, max: f64 },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of [`CONGESTIONS`], or the name of one of the kernel's.
    Congestion,
    /// `"100p"`, 100, `"64kb"` or `"2bdp"`, not zero.
    Limit,
    /// As `Limit`, or `"33%"` of it.
    Threshold,
    /// As `Limit`, or a time the queue takes to drain; zero included.
    Standing,
    /// A time, or `"10x"` the true one.
    ClaimedTime,
    /// Packets, `"10p"`, or `"10x"` the true window.
    ClaimedWindow,
    /// `"10x"`.
    Factor,
    /// A time, `"rtt"` or `"off"`.
    Sample,
    /// A pair of names.
    Pair,
    /// A list of names.
    Names,
    /// A name or a list of names.
    NameOrNames,
    /// A list of `[time, rate]`.
    RateSteps,
    /// The same, or the name of a trace.
    RateChanges,
    /// A list of `[time, time]`, or the name of a trace.
    DelayChanges,
    /// A table of paths and values.
    Paths,
    /// How many seeds, or a list of them.
    Seeds,
    /// `"median"`, `"all"`, or a share of seeds.
    OverSeeds,
    /// A table with these keys.
    Table(&'static Spec),
    /// A list of such tables (`[[name]]`).
    Tables(&'static Spec),
    /// A table, or only the value of its key `short`.
    Short { short: &'static str, table: &'static Spec },
    /// A list of tables, or one of them, or only the value of its key `short`.
    ShortList { short: &'static str, table: &'static Spec },
}

/// A table of the file.
#[derive(Debug)]
pub(crate) struct Spec {
    /// As it is written.
    pub name: &'static str,
    /// What it describes.
    pub doc: &'static str,
    /// Its keys, in the order of the documentation.
    pub keys: &'static [Key],
}

/// A key of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub name: &'static str,
    pub kind: Kind,
    /// What holds in its absence; `required` where there is no such thing.
    pub default: &'static str,
    pub doc: &'static str,
    /// As TOML.
    pub example: &'static str,
}

impl Key {
    pub fn required(&self) -> bool {
        self.default == REQUIRED
    }
}

impl Spec {
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|k| k.name == name)
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.keys.iter().map(|k| k.name)
    }
}

/// Marks keys without a default.
pub(crate) const REQUIRED: &str = "required";
/// Steps of a link, or the name of a trace that has them.
pub(crate) const DURATION: &str = "duration";
pub(crate) const RATE_CHANGES: &str = "rate-changes";
pub(crate) const DELAY_CHANGES: &str = "delay-changes";

const fn key(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    example: &'static str,
    doc: &'static str,
) -> Key {
    Key { name, kind, default, doc, example }
}

/// The kinds of queue that a scenario can name.
pub const QUEUES: &[&str] = &["drop-tail", "red", "xcp"];
/// The congestion controls that a scenario can name; the simulator has all of them.
pub const CONGESTIONS: &[&str] =
    &["xcp", "xcp-robust", "reno", "newreno", "sack", "cubic", "vegas"];
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
/// Keys of a law, which `queue.KEY` reaches through the queue.
pub(crate) fn is_law_key(name: &str) -> bool {
    LAW.key(name).is_some()
}

/// The file.
pub(crate) static FILE: Spec = Spec {
    name: "the file",
    doc: "One scenario, or one for each variant.",
    keys: &[
        key(
            "title",
            Kind::Text,
            "the file's name",
            "\"Four flows\"",
            "One line for tables and charts.",
        ),
        key("description", Kind::Text, "none", "\"Why this is run.\"", "Free text."),
        key(DURATION, Kind::Length, REQUIRED, "\"60s\"", "How long the run lasts."),
        key(
            "seed",
            Kind::Integer { min: 0, max: i64::MAX as u64 },
            "1",
            "7",
            "The seed of everything random; the same seed gives the same run.",
        ),
        key(
            "seeds",
            Kind::Seeds,
            "`seed` alone",
            "8",
            "The seeds with which `xcpnet reproduce` runs the file: this many, starting from \
             `seed`, or those of a list. Other commands use `seed`.",
        ),
        key(
            "measure",
            Kind::Table(&MEASURE),
            "the whole run",
            "{ from = \"20s\", to = \"60s\" }",
            "The period that the summary covers.",
        ),
        key(
            "sample",
            Kind::Sample,
            "at least 600 samples",
            "\"100ms\"",
            "How often the series are sampled: a time; `\"rtt\"` for the largest base RTT of the \
                flows; `\"off\"` for a summary without series. \
             If absent, the largest of 1, 2, 5, 10, ... ms that gives at least 600 samples (at \
                least 1 ms).",
        ),
        key(
            "link",
            Kind::Tables(&LINK),
            REQUIRED,
            "",
            "The links, at least one. A node exists if a link names it.",
        ),
        key("flow", Kind::Tables(&FLOW), REQUIRED, "", "The flows, at least one."),
        key(
            "variant",
            Kind::Tables(&VARIANT),
            "none",
            "",
            "Runs of the same file that differ in some settings.",
        ),
        key("expect", Kind::Tables(&EXPECT), "none", "", "What is expected of the result."),
        key(
            "quick",
            Kind::Table(&QUICK),
            "see [`quick`](#quick)",
            "{ variants = [\"xcp\"], set = { duration = \"20s\" } }",
            "The part of the file that `xcpnet reproduce --quick` runs.",
        ),
    ],
};

/// `measure`.
pub(crate) static MEASURE: Spec = Spec {
    name: "measure",
    doc: "The measured period, within the run.",
    keys: &[
        key("from", Kind::Time, "`\"0s\"`", "\"20s\"", "Its beginning."),
        key("to", Kind::Time, "`duration`", "\"60s\"", "Its end."),
    ],
};

/// `[[link]]`.
pub(crate) static LINK: Spec = Spec {
    name: "link",
    doc: "A link between two nodes, full duplex unless it is on a `medium`. What is written here \
        holds for both directions, unless `reverse` says otherwise.",
    keys: &[
        key("name", Kind::Name, "`A-B` as in `between`", "\"bottleneck\"", "Its name, unique."),
        key(
            "between",
            Kind::Pair,
            REQUIRED,
            "[\"S\", \"R\"]",
            "Its two ends. `NAME` is the direction as written, `NAME.reverse` the other one.",
        ),
        key("rate", Kind::Rate, REQUIRED, "\"10mbit\"", "The rate of each direction."),
        key(
            RATE_CHANGES,
            Kind::RateChanges,
            "none",
            "[[\"10s\", \"5mbit\"], [\"20s\", \"20mbit\"]]",
            "Rates that replace it during the run; what is already on the line continues at the \
             new rate. An XCP queue learns of it at once if its law has no `capacity`, otherwise \
             not at all. `bdp` and RED's weight remain those of `rate`. May be the name of a \
             [trace](#traces).",
        ),
        key("delay", Kind::Time, REQUIRED, "\"249ms\"", "Propagation delay, one way."),
        key(
            DELAY_CHANGES,
            Kind::DelayChanges,
            "none",
            "[[\"15s\", \"20ms\"], [\"30s\", \"45ms\"]]",
            "Delays that replace it during the run, for what is sent from then on. Packets keep \
             their order: what is sent after the path has become shorter arrives behind what was \
             already on it. `bdp` and `sample = \"rtt\"` remain those of `delay`. May be the name \
             of a [trace](#traces).",
        ),
        key(
            "medium",
            Kind::Name,
            "a line for each direction",
            "\"hub\"",
            "Name of a medium that both directions transmit on, one packet at a time, with all \
                other links that name it: stations contend for it and collide as on \
             an Ethernet hub.",
        ),
        key(
            "framing",
            Kind::Size { min: 0, max: 1000 },
            "0",
            "38",
            "Bytes that each packet takes on the line in addition to its own (preamble, checksum, \
             gap). Neither the queue nor the router knows of them, and they do not count towards \
             utilisation: see the law's `overhead`.",
        ),
        key(
            "queue",
            Kind::Short { short: "kind", table: &QUEUE },
            "`\"drop-tail\"`",
            "{ kind = \"xcp\", limit = \"2bdp\" }",
            "The queue in front of each transmitter.",
        ),
        key(
            "loss",
            Kind::ShortList { short: "probability", table: &LOSS },
            "none",
            "0.01",
            "Random losses: a probability, a table or a list of tables.",
        ),
        key(
            "blackout",
            Kind::ShortList { short: "", table: &BLACKOUT },
            "none",
            "{ from = \"20s\", to = \"21s\" }",
            "Periods in which everything that is sent is lost: a table or a list of tables.",
        ),
        key(
            "reverse",
            Kind::Table(&REVERSE),
            "as written",
            "{ rate = \"1mbit\" }",
            "What is different in the direction from the second node to the first.",
        ),
    ],
};

/// `reverse` of a link.
pub(crate) static REVERSE: Spec = Spec {
    name: "reverse",
    doc: "What differs in the direction from the second node of `between` to the first. A key \
        given here replaces the link's whole value for that direction.",
    keys: &[
        key("rate", Kind::Rate, "the link's", "\"1mbit\"", "Its rate, which does not change."),
        key(
            RATE_CHANGES,
            Kind::RateChanges,
            "the link's",
            "[[\"10s\", \"2mbit\"]]",
            "Rates that replace it.",
        ),
        key("delay", Kind::Time, "the link's", "\"20ms\"", "Its delay, which does not change."),
        key(
            DELAY_CHANGES,
            Kind::DelayChanges,
            "the link's",
            "[[\"15s\", \"30ms\"]]",
            "Delays that replace it.",
        ),
        key("framing", Kind::Size { min: 0, max: 1000 }, "the link's", "24", "Its framing."),
        key(
            "queue",
            Kind::Short { short: "kind", table: &QUEUE },
            "the link's",
            "\"drop-tail\"",
            "Its queue.",
        ),
        key(
            "loss",
            Kind::ShortList { short: "probability", table: &LOSS },
            "the link's",
            "0",
            "Its losses; `direction` is not allowed here.",
        ),
        key(
            "blackout",
            Kind::ShortList { short: "", table: &BLACKOUT },
            "the link's",
            "[]",
            "Its blackouts; `direction` is not allowed here.",
        ),
    ],
};

/// `queue`.
pub(crate) static QUEUE: Spec = Spec {
    name: "queue",
    doc: "A queue. `queue = \"red\"` is short for `queue = { kind = \"red\" }`.",
    keys: &[
        key(
            "kind",
            Kind::Choice(QUEUES),
            "`\"drop-tail\"`",
            "\"xcp\"",
            "Its discipline. `drop-tail`: what finds it full is dropped. `red`: random early \
             detection. `xcp`: an XCP router.",
        ),
        key(
            "limit",
            Kind::Limit,
            "1000 packets",
            "\"2bdp\"",
            "How much it holds in addition to the packet being sent: packets (`100` or \
             `\"100p\"`), bytes (`\"64kb\"`) or bandwidth-delay products (`\"2bdp\"`: rate x the \
             largest base RTT of the flows that cross this direction, or twice the link's delay \
             if there are none; at least one packet). The default is Linux's `txqueuelen`.",
        ),
        key(
            "min",
            Kind::Threshold,
            "a third of `limit`",
            "\"33%\"",
            "red: lower threshold of the average queue, written like `limit` or as a percentage \
             of it.",
        ),
        key(
            "max",
            Kind::Threshold,
            "two thirds of `limit`",
            "\"67%\"",
            "red: upper threshold of the average queue.",
        ),
        key(
            "probability",
            Kind::Number { min: 0.0, max: 1.0 },
            "0.1",
            "0.1",
            "red: drop probability at the upper threshold.",
        ),
        key(
            "weight",
            Kind::Number { min: 0.0, max: 1.0 },
            "from the rate, as ns-2",
            "0.002",
            "red: weight of the newest sample in the average.",
        ),
        key(
            "gentle",
            Kind::Bool,
            "`true`",
            "false",
            "red: between one and two times `max` the probability continues to rise to 1 instead \
             of jumping there.",
        ),
        key(
            "law",
            Kind::Short { short: "preset", table: &LAW },
            "`\"xcp\"`",
            "\"xcp\"",
            "xcp: the router's law, a preset's name or a table.",
        ),
        key(
            "others",
            Kind::Choice(&["shared", "first", "last", "fair", "split"]),
            "`\"shared\"`",
            "\"fair\"",
            "xcp: where packets that are not XCP's wait: in the same queue, or in one of their \
             own (with the same `limit`), which is served first, last, or in turn with XCP's so \
             that each gets its share while both have packets. `\"split\"` is like `\"fair\"`, \
             but the law's `capacity`, unless given, is XCP's share of the rate. With a queue of \
             their own, the law looks at XCP's queue only, and only XCP's packets are its input, \
             unless its `input` says otherwise.",
        ),
        key(
            "share",
            Kind::Number { min: 0.01, max: 0.99 },
            "0.5",
            "0.7",
            "xcp: XCP's share of the rate if `others` is `\"fair\"` or `\"split\"`.",
        ),
        key(
            "police",
            Kind::Short { short: "on", table: &POLICE },
            "`false`",
            "true",
            "xcp: a policer in front of the law, which takes away whatever lying senders would \
             gain.",
        ),
        key(
            "law-changes",
            Kind::Tables(&LAW_CHANGE),
            "none",
            "[{ at = \"10s\", law = \"max-rtt\" }]",
            "xcp: laws that replace it during the run, in order of time. Only in the simulator.",
        ),
    ],
};

/// `police` of a queue.
pub(crate) static POLICE: Spec = Spec {
    name: "police",
    doc: "A policer in front of an XCP router's law: what a header claims is believed only as far \
        as the time that has passed allows, and no flow gets more through than the law would \
        leave it. Packets with a forward header are policed, each flow separately.",
    keys: &[
        key("on", Kind::Bool, "`true`", "true", "Whether there is a policer."),
        key(
            "flows",
            Kind::Integer { min: 1, max: 1 << 20 },
            "4096",
            "1000",
            "How many flows its table can hold at a time, rounded up to a power of two; each \
             takes 112 bytes.",
        ),
        key(
            "longest-rtt",
            Kind::Length,
            "`\"1s\"`",
            "\"2s\"",
            "The longest round-trip time of any path; no claim beyond it is believed.",
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

/// `law-changes` of a queue.
pub(crate) static LAW_CHANGE: Spec = Spec {
    name: "law-changes",
    doc: "Laws that replace the current one: what its last control interval decided still holds \
        for the rest of the current interval.",
    keys: &[
        key("at", Kind::Time, REQUIRED, "\"10s\"", "When."),
        key(
            "law",
            Kind::Short { short: "preset", table: &LAW },
            REQUIRED,
            "\"xcp\"",
            "The law from then on.",
        ),
    ],
};

/// `law`: the table is `xcp-law`'s.
pub(crate) static LAW: Spec = Spec {
    name: "law",
    doc: "The choices that make up a router's law, starting from a preset.",
    keys: &LAW_KEYS,
};

const LAW_KEYS: [Key; xcp_law::KEYS.len()] = {
    let mut keys = [law::spec_key(&xcp_law::KEYS[0]); xcp_law::KEYS.len()];
    let mut at = 1;
    while at < keys.len() {
        keys[at] = law::spec_key(&xcp_law::KEYS[at]);
        at += 1;
    }
    keys
};

/// `loss`.
pub(crate) static LOSS: Spec = Spec {
    name: "loss",
    doc: "Random losses. `loss = 0.01` is short for `loss = { probability = 0.01 }`.",
    keys: &[
        key(
            "probability",
            Kind::Number { min: 0.0, max: 1.0 },
            REQUIRED,
            "0.01",
            "The probability that a packet is lost.",
        ),
        key(
            "place",
            Kind::Choice(&["before-queue", "after-queue"]),
            "`\"after-queue\"`",
            "\"before-queue\"",
            "Whether the packet is lost before the queue, so that an XCP router there never sees \
                it, or after transmission.",
        ),
        key(
            "direction",
            Kind::Choice(DIRECTIONS),
            "`\"both\"`",
            "\"forward\"",
            "`forward` is the direction in which `between` is written.",
        ),
        key("from", Kind::Time, "`\"0s\"`", "\"10s\"", "Begin."),
        key("to", Kind::Time, "`duration`", "\"20s\"", "End."),
    ],
};

const DIRECTIONS: &[&str] = &["both", "forward", "reverse"];

/// `blackout`.
pub(crate) static BLACKOUT: Spec = Spec {
    name: "blackout",
    doc: "A period in which the link accepts packets but delivers none.",
    keys: &[
        key("from", Kind::Time, REQUIRED, "\"20s\"", "Begin."),
        key("to", Kind::Time, REQUIRED, "\"21s\"", "End."),
        key(
            "direction",
            Kind::Choice(DIRECTIONS),
            "`\"both\"`",
            "\"reverse\"",
            "`forward` is the direction in which `between` is written.",
        ),
    ],
};

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
            "The first window in packets; the default is RFC 6928's.",
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
            "xcp, if a router on the path asks for bottleneck ids: whether packets name the \
             flow's first link, as in the iXCP paper, instead of none, until a router has claimed \
             the flow, or always if none does.",
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
            "What headers ask for, bit/s, whatever the sender wants; below 0 they say that the \
             flow gives up as much.",
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
             asks for the most that a header can express.",
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
pub(crate) const DISTRIBUTIONS: &[&str] = &["fixed", "exponential", "pareto"];

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
            "required but for schedule",
            "\"2mbit\"",
            "constant and on-off: the rate (while on); poisson: the mean rate.",
        ),
        key(
            "on",
            Kind::Length,
            "required for on-off",
            "\"500ms\"",
            "on-off: the length of a \
            burst.",
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

/// `[[variant]]`.
pub(crate) static VARIANT: Spec = Spec {
    name: "variant",
    doc: "A run of the file with some settings replaced.",
    keys: &[
        key("name", Kind::Name, REQUIRED, "\"newreno\"", "Its name, unique."),
        key(
            "set",
            Kind::Paths,
            "none",
            "{ \"flow.congestion\" = \"newreno\" }",
            "Paths and their values; see Paths below.",
        ),
        key("without", Kind::NameOrNames, "none", "[\"udp\"]", "Flows (or groups) to leave out."),
    ],
};

/// `[[expect]]`.
pub(crate) static EXPECT: Spec = Spec {
    name: "expect",
    doc: "A claim about the result: a band for one number.",
    keys: &[
        key(
            "metric",
            Kind::Text,
            REQUIRED,
            "\"links.bottleneck.utilisation\"",
            "Which number it is about; see Metrics below.",
        ),
        key(
            "min",
            Kind::Number { min: f64::MIN, max: f64::MAX },
            "no bound",
            "0.95",
            "Smallest value inside the band. `min` or `max` must be given.",
        ),
        key(
            "max",
            Kind::Number { min: f64::MIN, max: f64::MAX },
            "no bound",
            "1",
            "Largest value inside the band.",
        ),
        key(
            "than",
            Kind::Short { short: "variant", table: &THAN },
            "none",
            "\"integer\"",
            "Another number, of which `min` and `max` are then multiples. `min = 1.1` and `than = \
             \"integer\"` mean at least a tenth more than in the variant `integer`.",
        ),
        key(
            "from",
            Kind::Time,
            "`measure`'s",
            "\"8s\"",
            "The beginning of the part of the run that is looked at; with `from` or `to` the \
             number is taken from the series.",
        ),
        key("to", Kind::Time, "`measure`'s", "\"8.5s\"", "Its end."),
        key("variant", Kind::NameOrNames, "all", "\"newreno\"", "The variants that it is about."),
        key("claim", Kind::Text, "the metric", "\"XCP fills the link\"", "The claim in words."),
        key(
            "source",
            Kind::Text,
            "none",
            "\"Katabi et al. 2002, Fig. 5\"",
            "Whose claim it is; shown in brackets after the claim.",
        ),
        key(
            "seeds",
            Kind::OverSeeds,
            "`\"median\"`",
            "0.8",
            "With several seeds, what must be inside the band: the median over the seeds, \
                `\"all\"` of them, or this share of them.",
        ),
        key("quick", Kind::Bool, "`true`", "false", "Whether `--quick` checks it."),
    ],
};

/// `than` of an expectation.
pub(crate) static THAN: Spec = Spec {
    name: "than",
    doc: "The number with which an expectation's is compared. `than = \"integer\"` is short for \
        `than = { variant = \"integer\" }`. A claim about all variants (no `variant`) is made \
        about all others.",
    keys: &[
        key(
            "variant",
            Kind::Name,
            "the same run",
            "\"integer\"",
            "The variant from whose run it comes.",
        ),
        key(
            "preceding",
            Kind::Bool,
            "`false`",
            "true",
            "Instead, the number comes from the run of the preceding variant in the expectation's \
             list `variant`. `max = 1` means that the numbers do not rise along the list.",
        ),
        key("metric", Kind::Text, "the same", "\"links.first.drops\"", "Which number."),
        key(
            "from",
            Kind::Time,
            "the expectation's",
            "\"8s\"",
            "The beginning of the part of the run that is looked at.",
        ),
        key("to", Kind::Time, "the expectation's", "\"8.5s\"", "Its end."),
    ],
};

/// `quick`.
pub(crate) static QUICK: Spec = Spec {
    name: "quick",
    doc: "What `xcpnet reproduce --quick` runs: less than the whole file, but enough that the \
        claims still mean something.",
    keys: &[
        key("variants", Kind::NameOrNames, "all", "[\"xcp\"]", "Run only these variants."),
        key("seeds", Kind::Seeds, "`seed` alone", "2", "Run these seeds, as `seeds` of the file."),
        key(
            "set",
            Kind::Paths,
            "none",
            "{ duration = \"20s\" }",
            "Paths and their values, applied after those of the variant.",
        ),
        key("skip", Kind::Bool, "`false`", "true", "Run nothing from this file."),
    ],
};

/// All tables, in the order of the documentation.
pub(crate) static ALL: &[&Spec] = &[
    &FILE,
    &MEASURE,
    &LINK,
    &REVERSE,
    &QUEUE,
    &LAW,
    &POLICE,
    &LAW_CHANGE,
    &LOSS,
    &BLACKOUT,
    &FLOW,
    &BUFFER_CHANGE,
    &BYTES,
    &UDP,
    &LIES,
    &VARIANT,
    &EXPECT,
    &THAN,
    &QUICK,
];
