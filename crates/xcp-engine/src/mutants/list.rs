//! What is wrong with each mutant: lines of `engine/` and what stands in their place. Every right
//! text occurs exactly once in its file, so that no mutant outlives the line that it spoils: an
//! expression, or a statement with its semicolon. Of several mutants of one text each names all of
//! it. A test holds the list against the files.

/// A law or an end that is wrong.
#[derive(Debug)]
pub struct Mutant {
    /// A word for the command line.
    pub name: &'static str,
    /// What is wrong, for the table.
    pub what: &'static str,
    /// The edits that make it.
    pub edits: &'static [Edit],
}

/// A text of a file of `engine/` and what the mutant has instead.
#[derive(Debug)]
pub struct Edit {
    /// Name of the source file that is edited.
    pub file: &'static str,
    /// As it stands there.
    pub right: &'static str,
    /// As the mutant has it; a statement may be nothing.
    pub wrong: &'static str,
}

const fn law(right: &'static str, wrong: &'static str) -> Edit {
    Edit { file: "law.h", right, wrong }
}

const fn router(right: &'static str, wrong: &'static str) -> Edit {
    Edit { file: "router.h", right, wrong }
}

const fn interval(right: &'static str, wrong: &'static str) -> Edit {
    Edit { file: "router_interval.h", right, wrong }
}

const fn limited(right: &'static str, wrong: &'static str) -> Edit {
    Edit { file: "limited.h", right, wrong }
}

const fn sender(right: &'static str, wrong: &'static str) -> Edit {
    Edit { file: "sender.h", right, wrong }
}

const fn one(name: &'static str, what: &'static str, edits: &'static [Edit]) -> Mutant {
    Mutant { name, what, edits }
}

const CAPACITY: &str = "xcp_mul_fraction(r->law.capacity << 20, r->law.alpha)";
const INPUT: &str = "xcp_mul_fraction(y, r->law.alpha)";
const QUEUE: &str = "xcp_mul_fraction(xcp_num_q20(per_d), r->law.beta)";
const GAP: &str = "r->queue > r->law.queue_target ? r->queue - r->law.queue_target : \
    r->law.queue_target - r->queue";
const TURNOVER: &str = "xcp_mul_fraction(y, r->law.gamma)";
const TURNOVER_OWN: &str = "xcp_mul_fraction(xcp_rate(l->input, r->elapsed_ns), r->law.gamma)";
const LESS_F: &str = "turnover > f ? turnover - f : 0";
const D: &str = "r->law.interval == XCP_INTERVAL_MAX ? xcp_num_of(r->longest_rtt) : \
    xcp_num_div(xcp_acc_num(&r->sum_xr, -32), sum_x)";
const INTERVAL: &str = "xcp_num_u64(r->d, r->law.max_interval_ns)";
const NEXT: &str = "r->next_ns = (queue_end - end) >> 63 ? queue_end : end;";
const PERIOD: &str = "d > drain ? (d - drain) >> 1 : 0";
const MINIMUM: &str = "r->queue = r->min_queue;";
const MOVE: &str = "xcp_sender_move(s, by, negative);";
const ROUNDING: &str = "return *state;";
const CLASSIC_RTT: &str = "xcp_classic_rtt_encode(srtt_ns)";
const EXTENDED_RTT: &str = "xcp_extended_rtt_encode(srtt_ns)";
const LOSS: &str = "halve_when_marked || (s->honest && !s->marked)";

/// All mutants, in the order of the tables.
pub const MUTANTS: &[Mutant] = &[
    one(
        "alpha-doubled",
        "alpha twice what it should be",
        &[
            interval(CAPACITY, "2 * xcp_mul_fraction(r->law.capacity << 20, r->law.alpha)"),
            interval(INPUT, "2 * xcp_mul_fraction(y, r->law.alpha)"),
        ],
    ),
    one(
        "alpha-halved",
        "alpha half of what it should be",
        &[
            interval(CAPACITY, "xcp_mul_fraction(r->law.capacity << 20, r->law.alpha) >> 1"),
            interval(INPUT, "xcp_mul_fraction(y, r->law.alpha) >> 1"),
        ],
    ),
    one(
        "beta-doubled",
        "beta twice what it should be",
        &[interval(QUEUE, "xcp_mul_fraction(xcp_num_q20(per_d), r->law.beta) << 1")],
    ),
    one(
        "beta-halved",
        "beta half of what it should be",
        &[interval(QUEUE, "xcp_mul_fraction(xcp_num_q20(per_d), r->law.beta) >> 1")],
    ),
    one("beta-zero", "no queue term", &[interval(QUEUE, "0")]),
    one(
        "queue-term-flipped",
        "the queue term with the other sign",
        &[interval("minus = xcp_q20_add(minus, term);", "plus = xcp_q20_add(plus, term);")],
    ),
    one(
        "gamma-doubled",
        "gamma twice what it should be",
        &[
            interval(TURNOVER, "xcp_mul_fraction(y, r->law.gamma) << 1"),
            limited(
                TURNOVER_OWN,
                "xcp_mul_fraction(xcp_rate(l->input, r->elapsed_ns), r->law.gamma) << 1",
            ),
        ],
    ),
    one(
        "gamma-halved",
        "gamma half of what it should be",
        &[
            interval(TURNOVER, "xcp_mul_fraction(y, r->law.gamma) >> 1"),
            limited(
                TURNOVER_OWN,
                "xcp_mul_fraction(xcp_rate(l->input, r->elapsed_ns), r->law.gamma) >> 1",
            ),
        ],
    ),
    one(
        "gamma-zero",
        "nothing is shuffled",
        &[interval(TURNOVER, "0"), limited(TURNOVER_OWN, "0")],
    ),
    one(
        "shuffle-whole",
        "F is not taken off the shuffle",
        &[interval(LESS_F, "turnover"), limited(LESS_F, "turnover")],
    ),
    one(
        "capacity-2-low",
        "2 % less capacity than there is",
        &[interval(CAPACITY, "xcp_mul_fraction((r->law.capacity << 20) / 100 * 98, r->law.alpha)")],
    ),
    one(
        "capacity-2-high",
        "2 % more capacity than there is",
        &[interval(
            CAPACITY,
            "xcp_mul_fraction((r->law.capacity << 20) / 100 * 102, r->law.alpha)",
        )],
    ),
    one(
        "capacity-5-high",
        "5 % more capacity than there is",
        &[interval(
            CAPACITY,
            "xcp_mul_fraction((r->law.capacity << 20) / 100 * 105, r->law.alpha)",
        )],
    ),
    one(
        "no-pools",
        "no residue pools",
        &[interval(
            NEXT,
            "r->law.pools = 0; r->next_ns = (queue_end - end) >> 63 ? queue_end : end;",
        )],
    ),
    one(
        "no-dithering",
        "feedback rounded to the nearest",
        &[Edit { file: "dither.h", right: ROUNDING, wrong: "return XCP_NEAREST;" }],
    ),
    one(
        "rounding-down",
        "feedback rounded towards zero",
        &[Edit { file: "dither.h", right: ROUNDING, wrong: "return XCP_DOWN;" }],
    ),
    one(
        "instantaneous-queue",
        "the queue of the moment instead of the persistent one",
        &[interval(MINIMUM, "r->queue = backlog;")],
    ),
    one("queue-over-d", "the persistent queue over all of d", &[interval(PERIOD, "d")]),
    one(
        "target-ignored",
        "no queue target (Q_T of XCP-IR)",
        &[interval(GAP, "r->queue"), interval("(r->queue > r->law.queue_target)", "1")],
    ),
    one(
        "others-ignored",
        "other traffic not taken off the capacity (XCP-IR)",
        &[interval("xcp_q20_add(y, xcp_rate(r->others, elapsed))", "y")],
    ),
    one(
        "d-50-ms",
        "d is 50 ms whatever the round trips are",
        &[interval(D, "xcp_num_of(50000000)")],
    ),
    one(
        "d-longest",
        "d is the longest round trip where it should be the mean",
        &[interval(D, "xcp_num_of(r->longest_rtt)")],
    ),
    one(
        "d-mean",
        "d is the mean where it should be the longest round trip",
        &[interval(D, "xcp_num_div(xcp_acc_num(&r->sum_xr, -32), sum_x)")],
    ),
    one(
        "interval-doubled",
        "control intervals of 2 d",
        &[interval(INTERVAL, "xcp_num_u64(r->d, r->law.max_interval_ns) << 1")],
    ),
    one(
        "no-decrease",
        "no negative feedback",
        &[interval("negative ? xcp_q20_add(shuffle, f) : shuffle", "0")],
    ),
    one(
        "spare-unscaled",
        "N / N_b ignored (P-XCP)",
        &[interval(
            "negative || r->law.spare != XCP_SPARE_SCALED ? f : xcp_router_scaled(r, f, sum_x)",
            "f",
        )],
    ),
    one(
        "lines-26-27",
        "pools not charged where another router gives less (draft, lines 26 and 27)",
        &[
            router("r->pool_pos -= (pos < most_pos ? pos : most_pos) * segments;", ""),
            router("r->pool_neg -= neg * segments;", ""),
        ],
    ),
    one(
        "last-router-wins",
        "a router writes its feedback over a smaller one",
        &[
            router("asked > granted", "1"),
            router("theirs > xcp_classic_feedback_decode(to->code)", "1"),
        ],
    ),
    one(
        "shuffle-everybody",
        "iXCP shuffles everybody",
        &[interval(
            NEXT,
            "r->law.shuffle = XCP_SHUFFLE_ALL; r->next_ns = (queue_end - end) >> 63 ? queue_end : \
                end;",
        )],
    ),
    one(
        "own-gain-ignored",
        "no gain by a flow's own round trip",
        &[router("!p->known || !xcp_router_slower(r, p, &gain)", "1")],
    ),
    one(
        "overhead-ignored",
        "bytes for framing not added",
        &[law(
            "(size < XCP_SIZE_MAX ? size : XCP_SIZE_MAX) + law->overhead",
            "size < XCP_SIZE_MAX ? size : XCP_SIZE_MAX",
        )],
    ),
    one(
        "input-everything",
        "other traffic counts as XCP's (XCP-IR)",
        &[router("r->law.input == XCP_INPUT_ALL || is_xcp", "1")],
    ),
    one(
        "feedback-twice",
        "a sender takes feedback twice",
        &[sender(MOVE, "xcp_sender_move(s, by, negative); xcp_sender_move(s, by, negative);")],
    ),
    one(
        "feedback-half",
        "a sender takes half of the feedback",
        &[sender(MOVE, "by.e -= 1; xcp_sender_move(s, by, negative);")],
    ),
    one(
        "negative-ignored",
        "a sender ignores negative feedback",
        &[sender(MOVE, "if (!negative) xcp_sender_move(s, by, negative);")],
    ),
    one(
        "dishonest",
        "a sender's header says cwnd whatever limits it, and asks for all there is",
        &[sender("honest != 0", "0")],
    ),
    one(
        "header-cwnd",
        "the header says cwnd although buffers limit",
        &[sender("window = most;", "")],
    ),
    one("no-ageing", "an unused window is kept", &[sender("s->used && s->used < s->cwnd", "0")]),
    one(
        "rtt-halved",
        "the header says half the round trip",
        &[
            sender(CLASSIC_RTT, "xcp_classic_rtt_encode(srtt_ns >> 1)"),
            sender(EXTENDED_RTT, "xcp_extended_rtt_encode(srtt_ns >> 1)"),
        ],
    ),
    one(
        "always-halving",
        "a loss halves the window whatever the answer should be",
        &[sender(LOSS, "1")],
    ),
    one("never-halving", "a loss never halves the window", &[sender(LOSS, "0")]),
    one(
        "timeout-ignored",
        "a timeout leaves the window as it is",
        &[sender("s->cwnd = xcp_sender_bounded(s, 1ULL << 32);", "")],
    ),
    one(
        "sums-forgotten",
        "a receiver that answers several packets returns the last one's feedback",
        &[Edit {
            file: "receiver.h",
            right: "r->sum + (value < 0 ? -(xcp_s64)magnitude : (xcp_s64)magnitude)",
            wrong: "value < 0 ? -(xcp_s64)magnitude : (xcp_s64)magnitude",
        }],
    ),
];
