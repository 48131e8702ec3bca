//! The keys of links, their queues, laws, losses and outages.

use super::{DELAY_CHANGES, Key, Kind, QUEUES, RATE_CHANGES, REQUIRED, Spec, key};
use crate::law;

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
             other links that name it: stations contend for it and collide as on an Ethernet hub. \
             All of these links have one `rate`, in both directions, which does not change.",
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
            "reorder",
            Kind::Table(&REORDER),
            "none",
            "{ probability = 0.01, most = \"5ms\" }",
            "Packets that take longer on the way than the others, which overtake them.",
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
        key(
            "reorder",
            Kind::Table(&REORDER),
            "the link's",
            "{ probability = 0, most = \"1ms\" }",
            "Its overtaking; `direction` is not allowed here.",
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
            "yields",
            Kind::Bool,
            "`false`",
            "true",
            "On a `medium`: after each packet it waits for a slot time (512 bits) before it tries \
             again, so that whoever has been waiting gets a turn. Otherwise whoever has won the \
             medium tends to win it again.",
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

/// `reorder`.
pub(crate) static REORDER: Spec = Spec {
    name: "reorder",
    doc: "Packets that fall back. On their way they take longer than `delay`, and whatever is sent \
        within that time overtakes them; none is ever early.",
    keys: &[
        key(
            "probability",
            Kind::Number { min: 0.0, max: 1.0 },
            REQUIRED,
            "0.01",
            "The probability that a packet falls back.",
        ),
        key(
            "most",
            Kind::Length,
            REQUIRED,
            "\"5ms\"",
            "By how much at most: each that falls back draws its own time, and anything up to \
             this is equally likely.",
        ),
        key(
            "direction",
            Kind::Choice(DIRECTIONS),
            "`\"both\"`",
            "\"forward\"",
            "`forward` is the direction in which `between` is written.",
        ),
    ],
};
