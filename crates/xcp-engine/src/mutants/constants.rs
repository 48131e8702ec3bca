//! The robust law and sender with one constant half or twice as large, or as near to that as
//! makes sense. Edits as in [`list`](super::list).

use super::edits::{
    AGREEING, ANOTHER, CAP, FILLS, FIRST, FLIGHT, FLOOR, HEAVY, OFTEN, OTHERS, PATIENCE, QUEUED,
    RIGHT, SHOWS, STANDS, STANDS_SO_LONG, TRIED, VANISHED, bound, jumps, kept, one, opening, part,
    sender, state, way_back,
};
use super::list::Mutant;

const MISSED: &str = "s->missed >= XCP_ROBUST_MISSED + xcp_robust_parts_of(s)";
const PART: &str = "(xcp_u64)s->came * s->parts / XCP_ROBUST_PART_OF";
const CUTS: &str = "s->cuts >= XCP_ROBUST_CUTS && s->parts == XCP_ROBUST_PART";
const SOON: &str = "s->since > XCP_ROBUST_SOON";
const TRIAL: &str = "s->holds = XCP_ROBUST_TRIAL;";
const LASTS: &str = "XCP_ROBUST_STAYS << s->tries";
const GENTLE: &str = "s->holds > XCP_ROBUST_TRIAL - XCP_ROBUST_GENTLE";
const AT_ONCE: &str = "segments > XCP_ROBUST_AT_ONCE ? segments - XCP_ROBUST_AT_ONCE : 0";
const ALPHA: &str = "r->law.alpha";
const PARTS: &str = "r->d_ns / XCP_ROBUST_PARTS";
const PACKETS: &str = "XCP_ROBUST_PACKETS * XCP_ROBUST_PACKET * XCP_NS_PER_S / r->capacity";
const LEAST_PART: &str = "500000ULL";
const TARGET: &str = "2 * XCP_ROBUST_PACKET";
const GAMMA: &str = "xcp_mul_fraction(xcp_robust_rate(w->here, w->elapsed), r->law.gamma)";
const HEADROOM: &str = "xcp_mul_fraction(r->capacity << 20, XCP_HEADROOM)";
const BY_WINDOW: &str = "w.e + 48 - 4";
const DROP_LEAST: &str = "281474976ULL";
const DROP_MOST: &str = "56294995342131ULL";
const STEERED: &str = "xcp_scale(n.m, n.e + 32, 1U << 31)";
const COUNTING: &str = "1000000000ULL";
const TAU: &str = "xcp_robust_more(xcp_robust_matters(s), s->spread_ns + (s->spread_ns >> 1))";
const FEW: &str = "4ULL";
const HALF: &str = "xcp_robust_carries(r->capacity, r->d_ns) >> 1";
const DRAINED: &str = "xcp_robust_carries(r->capacity, now - r->begun_ns) >> 1";
const GAP: &str = "(w->x / w->packets) >> 8";
const SEEKS: &str = "c += xcp_mul_fraction(c, st);";
const AGAIN: &str = "c = r->capacity + xcp_mul_fraction(r->capacity, st);";
const ROUNDS: &str = "s->vanished ? XCP_ROBUST_EVIDENCE_VANISHED : XCP_ROBUST_EVIDENCE";
const GONE: &str = "s->last_infl_ns > 2 * q.tau";
const SUDDEN: &str = "sent - j->sent < rise";
const MIDDLE: &str = "rtt - rise / 2";
const STAYS: &str = "++j->stays >= XCP_JUMPS_STAYS";
const JUMP_ROUNDS: &str = "j->count < XCP_JUMPS_MOST - XCP_JUMPS_ROUNDS \
    ? j->count + XCP_JUMPS_ROUNDS : XCP_JUMPS_MOST";
const SIXTEENTH: &str = "xcp_robust_more(w / 16, XCP_ROBUST_ONE)";
const EIGHTH: &str = "w - w / 8";
const TELLING: &str = "s->acked >= XCP_ROBUST_TELLING";
const CONTENT: &str = "xcp_mul_fraction(q->flight, XCP_ROBUST_TENTH)";
const SEVEN_TENTHS: &str = "3006477107U";
const ROOT: &str = "(xcp_isqrt(w) << 16) >> 3";
const STEP: &str = "(XCP_ROBUST_ONE >> 1)";
const QUARTER: &str = "w >> 2";
const GROWN: &str = "grown > 8 ? grown - 7 : 1";
const TWICE: &str = "s->base_ns + xcp_robust_more(s->base_ns, XCP_ROBUST_WAIT)";
const WAIT: &str = " 40000000ULL";
const LONGEST_WAIT: &str = "200000000ULL";
const COMING: &str = "s->fb > (xcp_s64)(flight / 50)";
const LONGER: &str = "by > xcp_robust_matters(s) / 4";
const TRIED_WITH: &str = "xcp_robust_share(s, q) >> 1";
const FOUND_EMPTY: &str = "xcp_robust_less(2 * s->bound, s->before)";
const FLAT: &str = "moved < q.infl >> 4";
const OVER: &str = "s->over >= 3";
const LEAST_WINDOW: &str = "XCP_ROBUST_ONE >> 5";
const AGREE: &str = "off <= r->left_rate >> 3";
const RESTORE: &str = "2000000000ULL";

/// Each of them half and twice as large.
pub const CONSTANTS: &[Mutant] = &[
    one("alpha-half", "gain 0.35, not 0.7", &[part(ALPHA, "r->law.alpha >> 1")]),
    one("alpha-more", "gain 1, not 0.7", &[part(ALPHA, "~0U")]),
    one(
        "few-half",
        "windows of less than two packets follow less closely, not four",
        &[state(FEW, "2ULL")],
    ),
    one(
        "few-twice",
        "windows of less than eight packets follow less closely, not four",
        &[state(FEW, "8ULL")],
    ),
    one(
        "beginners-half",
        "first windows are together a quarter of what the link holds, not half",
        &[
            opening(HALF, "xcp_robust_carries(r->capacity, r->d_ns) >> 2"),
            opening(DRAINED, "xcp_robust_carries(r->capacity, now - r->begun_ns) >> 2"),
        ],
    ),
    one(
        "beginners-twice",
        "first windows are together what the link holds, not half",
        &[
            opening(HALF, "xcp_robust_carries(r->capacity, r->d_ns)"),
            opening(DRAINED, "xcp_robust_carries(r->capacity, now - r->begun_ns)"),
        ],
    ),
    one(
        "unkept-half",
        "senders that do not keep their rates are given half of XCP's alpha",
        &[part("XCP_ALPHA", "XCP_ALPHA >> 1")],
    ),
    one("unkept-double", "twice XCP's alpha", &[part("XCP_ALPHA", "XCP_ALPHA << 1")]),
    one("parts-half", "five parts of d, not ten", &[part(PARTS, "r->d_ns / 5")]),
    one("parts-more", "sixteen parts of d, not ten", &[part(PARTS, "r->d_ns / 16")]),
    one(
        "packets-half",
        "at least twenty packets in a part, not forty",
        &[part(PACKETS, "20ULL * XCP_ROBUST_PACKET * XCP_NS_PER_S / r->capacity")],
    ),
    one(
        "packets-double",
        "at least eighty, not forty",
        &[part(PACKETS, "80ULL * XCP_ROBUST_PACKET * XCP_NS_PER_S / r->capacity")],
    ),
    one(
        "hearing-half",
        "a part of half the time between two packets of a flow",
        &[part(GAP, "(w->x / w->packets) >> 9")],
    ),
    one("hearing-double", "of twice that time", &[part(GAP, "(w->x / w->packets) >> 7")]),
    one(
        "seeks-half",
        "a measured C that nothing contradicts grows by half of itself in a d, and does not double",
        &[part(SEEKS, "c += xcp_mul_fraction(c / 2, st);")],
    ),
    one("seeks-double", "it triples", &[part(SEEKS, "c += xcp_mul_fraction(2 * c, st);")]),
    one(
        "again-half",
        "after a queue, C grows by half of itself in a d towards what was told, and does not double",
        &[part(AGAIN, "c = r->capacity + xcp_mul_fraction(r->capacity / 2, st);")],
    ),
    one(
        "again-double",
        "it triples",
        &[part(AGAIN, "c = r->capacity + xcp_mul_fraction(2 * r->capacity, st);")],
    ),
    one(
        "first-half",
        "in flight twice W after the first answer",
        &[sender(FIRST, "s->rounds < 1")],
    ),
    one(
        "first-double",
        "after four rounds",
        &[
            sender(FIRST, "s->rounds < 4"),
            bound("s->rounds < XCP_ROBUST_FIRST_ROUNDS", "s->rounds < 4"),
        ],
    ),
    one("least-part-half", "parts of at least 0.25 ms, not 0.5", &[state(LEAST_PART, "250000ULL")]),
    one("least-part-double", "of at least 1 ms, not 0.5", &[state(LEAST_PART, "1000000ULL")]),
    one(
        "target-half",
        "a target of one packet, not two",
        &[state(TARGET, "1 * XCP_ROBUST_PACKET")],
    ),
    one("target-double", "of four packets, not two", &[state(TARGET, "4 * XCP_ROBUST_PACKET")]),
    one(
        "stands-half",
        "no promise while an eighth of C d stands, not a quarter",
        &[part(STANDS, "!(how & XCP_ROBUST_FALLS) && backlog > carried >> 3")],
    ),
    one(
        "stands-double",
        "while half of C d stands, not a quarter",
        &[part(STANDS, "!(how & XCP_ROBUST_FALLS) && backlog > carried >> 1")],
    ),
    one(
        "gamma-half",
        "a twentieth shuffled, not a tenth",
        &[part(GAMMA, "xcp_mul_fraction(xcp_robust_rate(w->here, w->elapsed), r->law.gamma) >> 1")],
    ),
    one(
        "gamma-double",
        "a fifth shuffled, not a tenth",
        &[part(GAMMA, "2 * xcp_mul_fraction(xcp_robust_rate(w->here, w->elapsed), r->law.gamma)")],
    ),
    one(
        "headroom-half",
        "headroom for flows limited elsewhere a twentieth of C, not a tenth",
        &[part(HEADROOM, "xcp_mul_fraction(r->capacity << 20, XCP_HEADROOM) >> 1")],
    ),
    one(
        "headroom-double",
        "a fifth of C, not a tenth",
        &[part(HEADROOM, "2 * xcp_mul_fraction(r->capacity << 20, XCP_HEADROOM)")],
    ),
    one(
        "right-half",
        "XCP keeps an eighth of its right beside TCP, not a quarter",
        &[part(RIGHT, "right / 8")],
    ),
    one("right-double", "half, not a quarter", &[part(RIGHT, "right / 2")]),
    one(
        "by-window-half",
        "TCP's probability begins at a 32nd of what its windows need, not a 16th",
        &[part(BY_WINDOW, "w.e + 48 - 5")],
    ),
    one("by-window-double", "an eighth, not a 16th", &[part(BY_WINDOW, "w.e + 48 - 3")]),
    one("new-half", "at least so for a second, not two", &[part("XCP_ROBUST_NEW", "1")]),
    one("new-double", "four seconds, not two", &[part("XCP_ROBUST_NEW", "4")]),
    one(
        "drop-least-half",
        "TCP's probability of a drop at least 0.5e-6, not 1e-6",
        &[state(DROP_LEAST, "140737488ULL")],
    ),
    one("drop-least-double", "at least 2e-6, not 1e-6", &[state(DROP_LEAST, "562949953ULL")]),
    one("drop-most-half", "at most 0.1, not 0.2", &[state(DROP_MOST, "28147497671065ULL")]),
    one("drop-most-double", "at most 0.4, not 0.2", &[state(DROP_MOST, "112589990684262ULL")]),
    one(
        "steering-half",
        "TCP's probability moved half as fast",
        &[part(STEERED, "xcp_scale(n.m, n.e + 32, 1U << 31) >> 1")],
    ),
    one("steering-double", "twice as fast", &[part(STEERED, "xcp_scale(n.m, n.e + 33, 1U << 31)")]),
    one(
        "counting-half",
        "TCP's flows counted each half second, not each second",
        &[state(COUNTING, "500000000ULL")],
    ),
    one(
        "counting-double",
        "each two seconds, not each second",
        &[state(COUNTING, "2000000000ULL")],
    ),
    one(
        "tau-half",
        "a queue is 5 ms, not 10",
        &[bound(
            TAU,
            "xcp_robust_more(xcp_robust_more(XCP_ROBUST_TAU / 2, s->base_ns / 10), \
         s->spread_ns + (s->spread_ns >> 1))",
        )],
    ),
    one(
        "tau-double",
        "20 ms, not 10",
        &[bound(
            TAU,
            "xcp_robust_more(xcp_robust_more(XCP_ROBUST_TAU * 2, s->base_ns / 10), \
         s->spread_ns + (s->spread_ns >> 1))",
        )],
    ),
    one(
        "tau-share-half",
        "a queue is base / 20, not base / 10",
        &[bound(
            TAU,
            "xcp_robust_more(xcp_robust_more(XCP_ROBUST_TAU, s->base_ns / 20), \
         s->spread_ns + (s->spread_ns >> 1))",
        )],
    ),
    one(
        "tau-share-double",
        "base / 5, not base / 10",
        &[bound(
            TAU,
            "xcp_robust_more(xcp_robust_more(XCP_ROBUST_TAU, s->base_ns / 5), \
         s->spread_ns + (s->spread_ns >> 1))",
        )],
    ),
    one(
        "spread-half",
        "a queue is 0.75 times the spread of round trips, not 1.5 times",
        &[bound(
            TAU,
            "xcp_robust_more(xcp_robust_more(XCP_ROBUST_TAU, s->base_ns / 10), \
         (s->spread_ns >> 1) + (s->spread_ns >> 2))",
        )],
    ),
    one(
        "spread-double",
        "3 times, not 1.5 times",
        &[bound(
            TAU,
            "xcp_robust_more(xcp_robust_more(XCP_ROBUST_TAU, s->base_ns / 10), 3 * s->spread_ns)",
        )],
    ),
    one(
        "flight-half",
        "in flight 1.5 W or 1.25 times what the RTT makes of it, not 2 and 1.5",
        &[sender(
            FLIGHT,
            "xcp_robust_more(s->base_ns + (s->base_ns >> 1), rtt + (rtt >> 2)) + 2 * back",
        )],
    ),
    one(
        "flight-double",
        "3 W or twice what the RTT makes of it",
        &[sender(FLIGHT, "xcp_robust_more(3 * s->base_ns, 2 * rtt) + 2 * back")],
    ),
    one(
        "cap-half",
        "increase up to 4 times what was delivered, not 8",
        &[bound(CAP, "((xcp_robust_is_gentle(s) ? 3ULL : 8ULL) * s->acked / 2 + 4) << 32")],
    ),
    one(
        "cap-double",
        "up to 16 times, not 8",
        &[bound(CAP, "((xcp_robust_is_gentle(s) ? 3ULL : 32ULL) * s->acked / 2 + 4) << 32")],
    ),
    one(
        "rounds-half",
        "two rounds tell of a queue, not three",
        &[bound(ROUNDS, "s->vanished ? XCP_ROBUST_EVIDENCE_VANISHED : 2")],
    ),
    one(
        "rounds-double",
        "six rounds, not three",
        &[bound(ROUNDS, "s->vanished ? XCP_ROBUST_EVIDENCE_VANISHED : 6")],
    ),
    one(
        "telling-half",
        "a round of two segments tells, not of four",
        &[bound(TELLING, "s->acked >= 2")],
    ),
    one("telling-double", "of eight segments, not of four", &[bound(TELLING, "s->acked >= 8")]),
    one(
        "content-half",
        "a router that takes a twentieth is not content, not a tenth",
        &[bound(CONTENT, "xcp_mul_fraction(q->flight, XCP_ROBUST_TENTH / 2)")],
    ),
    one(
        "content-double",
        "one that takes a fifth, not a tenth",
        &[bound(CONTENT, "xcp_mul_fraction(q->flight, 2 * XCP_ROBUST_TENTH)")],
    ),
    one(
        "heavy-half",
        "loss is heavy from an eighth, not a quarter",
        &[bound(
            HEAVY,
            "s->lost >= 3 && (8ULL * s->lost > sum || (20ULL * s->lost > sum && queued))",
        )],
    ),
    one(
        "heavy-double",
        "from a half, not a quarter",
        &[bound(
            HEAVY,
            "s->lost >= 3 && (2ULL * s->lost > sum || (20ULL * s->lost > sum && queued))",
        )],
    ),
    one(
        "heavy-queue-half",
        "where there is a queue, from a fortieth, not a twentieth",
        &[bound(
            HEAVY,
            "s->lost >= 3 && (4ULL * s->lost > sum || (40ULL * s->lost > sum && queued))",
        )],
    ),
    one(
        "heavy-queue-double",
        "where there is a queue, from a tenth, not a twentieth",
        &[bound(
            HEAVY,
            "s->lost >= 3 && (4ULL * s->lost > sum || (10ULL * s->lost > sum && queued))",
        )],
    ),
    one(
        "queued-half",
        "there is a queue from a quarter of tau, not half of it",
        &[bound(QUEUED, "q.mean - s->base_ns > q.tau >> 2 || s->last_infl_ns > q.tau >> 2")],
    ),
    one(
        "queued-double",
        "from tau",
        &[bound(QUEUED, "q.mean - s->base_ns > q.tau || s->last_infl_ns > q.tau")],
    ),
    one("cut-more", "loss leaves 0.4 of B, not 0.7", &[kept(SEVEN_TENTHS, "1717986918U")]),
    one("cut-half", "loss leaves 0.85 of B, not 0.7", &[kept(SEVEN_TENTHS, "3650722201U")]),
    one(
        "growth-half",
        "B grows by a sixteenth of its root, not an eighth",
        &[bound(ROOT, "(xcp_isqrt(w) << 16) >> 4")],
    ),
    one(
        "growth-double",
        "by a quarter of its root, not an eighth",
        &[bound(ROOT, "(xcp_isqrt(w) << 16) >> 2")],
    ),
    one(
        "step-half",
        "and by a quarter of a packet, not half",
        &[kept(STEP, "(XCP_ROBUST_ONE >> 2)")],
    ),
    one("step-double", "and by a packet, not half", &[kept(STEP, "XCP_ROBUST_ONE")]),
    one(
        "quarter-half",
        "by no more than an eighth of B, not a quarter",
        &[bound(QUARTER, "w >> 3")],
    ),
    one("quarter-double", "by no more than half of B, not a quarter", &[bound(QUARTER, "w >> 1")]),
    one(
        "grown-half",
        "faster after four rounds, not eight",
        &[bound(GROWN, "grown > 4 ? grown - 3 : 1")],
    ),
    one(
        "grown-double",
        "faster after sixteen rounds, not eight",
        &[bound(GROWN, "grown > 16 ? grown - 15 : 1")],
    ),
    one(
        "twice-half",
        "answers are late after half as much again as a round trip, not twice",
        &[kept(TWICE, "s->base_ns + xcp_robust_more(s->base_ns / 2, XCP_ROBUST_WAIT)")],
    ),
    one(
        "twice-double",
        "after three",
        &[kept(TWICE, "s->base_ns + xcp_robust_more(2 * s->base_ns, XCP_ROBUST_WAIT)")],
    ),
    one(
        "fills-half",
        "the way back fills by an eighth of base in a round, not a quarter",
        &[bound(FILLS, "s->back_last > s->back_then + (s->base_ns >> 23)")],
    ),
    one(
        "fills-double",
        "by half of base",
        &[bound(FILLS, "s->back_last > s->back_then + (s->base_ns >> 21)")],
    ),
    one(
        "forgets-half",
        "the way back's least is forgotten by 58 parts in a million, not 116",
        &[way_back("now >> XCP_WAY_BACK_FORGETS", "now >> 34")],
    ),
    one("forgets-double", "by 233", &[way_back("now >> XCP_WAY_BACK_FORGETS", "now >> 32")]),
    one(
        "missed-half",
        "where routers answer, losses count from four packets on, not from eight",
        &[bound(MISSED, "s->missed >= 4 + xcp_robust_parts_of(s)")],
    ),
    one(
        "missed-double",
        "from sixteen on",
        &[bound(MISSED, "s->missed >= 16 + xcp_robust_parts_of(s)")],
    ),
    one(
        "unseen-half",
        "from an eightieth on, not from a fortieth",
        &[bound(PART, "(xcp_u64)s->came * s->parts / 480")],
    ),
    one(
        "unseen-double",
        "from a twentieth on",
        &[bound(PART, "(xcp_u64)s->came * s->parts / 120")],
    ),
    one(
        "shows-half",
        "RTTs count again from tau on, not 2 tau",
        &[bound(SHOWS, "q->infl > q->tau && !s->lost")],
    ),
    one("shows-double", "from 4 tau on", &[bound(SHOWS, "q->infl > 4 * q->tau && !s->lost")]),
    one(
        "cuts-half",
        "three cuts, not six, tell of random losses",
        &[bound(CUTS, "s->cuts >= 3 && s->parts == XCP_ROBUST_PART")],
    ),
    one("cuts-double", "twelve", &[bound(CUTS, "s->cuts >= 12 && s->parts == XCP_ROBUST_PART")]),
    one("soon-half", "each within two rounds, not four", &[bound(SOON, "s->since > 2")]),
    one("soon-double", "within eight", &[bound(SOON, "s->since > 8")]),
    one(
        "tried-after-half",
        "whether there is a queue is tried after 16 cuts, not 32",
        &[bound(LASTS, "16 << s->tries")],
    ),
    one("tried-after-double", "after 64", &[bound(LASTS, "64 << s->tries")]),
    one(
        "gentle-half",
        "W grows by half at most for eight rounds of a trial, not sixteen",
        &[bound(GENTLE, "s->holds > XCP_ROBUST_TRIAL - 8")],
    ),
    one("gentle-double", "for 32", &[bound(GENTLE, "s->holds > XCP_ROBUST_TRIAL - 32")]),
    one("trial-half", "a trial takes 512 rounds, not 1024", &[bound(TRIAL, "s->holds = 512;")]),
    one("trial-double", "2048", &[bound(TRIAL, "s->holds = 2048;")]),
    one(
        "at-once-half",
        "of what is missed at once two packets count, not four",
        &[sender(AT_ONCE, "segments > 2 ? segments - 2 : 0")],
    ),
    one("at-once-double", "eight", &[sender(AT_ONCE, "segments > 8 ? segments - 8 : 0")]),
    one("wait-half", "a receiver waits for 20 ms, not 40", &[kept(WAIT, " 20000000ULL")]),
    one("wait-double", "for 80 ms, not 40", &[kept(WAIT, " 80000000ULL")]),
    one(
        "longest-wait-half",
        "a receiver waits for 100 ms at most, not 200",
        &[kept(LONGEST_WAIT, "100000000ULL")],
    ),
    one(
        "longest-wait-double",
        "for 400 ms at most, not 200",
        &[kept(LONGEST_WAIT, "400000000ULL")],
    ),
    one(
        "coming-half",
        "routers are adding from a hundredth of what is in flight on, not a fiftieth",
        &[bound(COMING, "s->fb > (xcp_s64)(flight / 100)")],
    ),
    one(
        "coming-double",
        "from a 25th on, not a fiftieth",
        &[bound(COMING, "s->fb > (xcp_s64)(flight / 25)")],
    ),
    one(
        "others-half",
        "four rounds of queue tell of others, not eight",
        &[
            bound(STANDS_SO_LONG, "s->stuck == 2"),
            bound(TRIED, "s->stuck > 2"),
            bound(OTHERS, "s->stuck > 4 || s->flat > 3"),
        ],
    ),
    one(
        "others-double",
        "sixteen rounds, not eight",
        &[
            bound(STANDS_SO_LONG, "s->stuck == 14"),
            bound(TRIED, "s->stuck > 14"),
            bound(OTHERS, "s->stuck > 16 || s->flat > 3"),
        ],
    ),
    one(
        "trying-half",
        "a queue is tried with all that a cut leaves, not with half of it",
        &[bound(TRIED_WITH, "xcp_robust_share(s, q)"), bound(FOUND_EMPTY, "s->bound")],
    ),
    one(
        "trying-double",
        "with a quarter",
        &[
            bound(TRIED_WITH, "xcp_robust_share(s, q) >> 2"),
            bound(FOUND_EMPTY, "xcp_robust_less(4 * s->bound, s->before)"),
        ],
    ),
    one(
        "tried-half",
        "for one round, not two",
        &[bound(OTHERS, "s->stuck > XCP_ROBUST_STANDS + 1 || s->flat > 3")],
    ),
    one(
        "tried-double",
        "for four",
        &[
            bound(OTHERS, "s->stuck > XCP_ROBUST_STANDS + 4 || s->flat > 3"),
            bound("s->skip = 2;", "s->skip = 4;"),
        ],
    ),
    one(
        "flat-half",
        "two rounds of a queue that does not move tell of others, not four",
        &[bound(OTHERS, "s->stuck > XCP_ROBUST_OTHERS || s->flat > 1")],
    ),
    one(
        "flat-double",
        "eight such rounds, not four",
        &[bound(OTHERS, "s->stuck > XCP_ROBUST_OTHERS || s->flat > 7")],
    ),
    one(
        "longer-half",
        "the first data may make the round trip longer by an eighth, not by a quarter",
        &[sender("by < s->base_ns / 4", "by < s->base_ns / 8")],
    ),
    one("longer-double", "by half", &[sender("by < s->base_ns / 4", "by < s->base_ns / 2")]),
    one(
        "longer-least-half",
        "from an eighth of a queue that matters on, not a quarter",
        &[sender(LONGER, "by > xcp_robust_matters(s) / 8")],
    ),
    one(
        "longer-least-double",
        "from half of it on",
        &[sender(LONGER, "by > xcp_robust_matters(s) / 2")],
    ),
    one(
        "moves-half",
        "a queue does not move within a 32nd, not a 16th",
        &[bound(FLAT, "moved < q.infl >> 5")],
    ),
    one("moves-double", "within an eighth, not a 16th", &[bound(FLAT, "moved < q.infl >> 3")]),
    one(
        "over-half",
        "two rounds of W below B make FREE, not three",
        &[bound(OVER, "s->over >= 2")],
    ),
    one("over-double", "six rounds, not three", &[bound(OVER, "s->over >= 6")]),
    one(
        "floor-half",
        "W falls to a quarter in a round, not to half",
        &[bound(FLOOR, "xcp_robust_more(s->explicit_window >> 2, XCP_ROBUST_LEAST_WINDOW)")],
    ),
    one(
        "floor-more",
        "to three quarters, not to half",
        &[bound(
            FLOOR,
            "xcp_robust_more(s->explicit_window - (s->explicit_window >> 2), XCP_ROBUST_LEAST_WINDOW)",
        )],
    ),
    one(
        "least-half",
        "W is a 64th at least, not a 32nd",
        &[kept(LEAST_WINDOW, "XCP_ROBUST_ONE >> 6")],
    ),
    one(
        "least-double",
        "W is a 16th at least, not a 32nd",
        &[kept(LEAST_WINDOW, "XCP_ROBUST_ONE >> 4")],
    ),
    one(
        "agreeing-half",
        "two packets that agree are a rate, not four",
        &[part(AGREEING, "r->agreeing >= 2")],
    ),
    one("agreeing-double", "eight packets, not four", &[part(AGREEING, "r->agreeing >= 8")]),
    one(
        "agreement-half",
        "packets agree within a 16th, not an eighth",
        &[part(AGREE, "off <= r->left_rate >> 4")],
    ),
    one(
        "agreement-double",
        "within a quarter, not an eighth",
        &[part(AGREE, "off <= r->left_rate >> 2")],
    ),
    one(
        "another-half",
        "C has changed where it is off by an eighth, not by a quarter",
        &[part(ANOTHER, "off > r->capacity >> 3")],
    ),
    one(
        "another-double",
        "by a half, not by a quarter",
        &[part(ANOTHER, "off > r->capacity >> 1")],
    ),
    one(
        "excused-half",
        "losses behind TCP excused in four rounds, not eight",
        &[bound(
            "s->excused + XCP_ROBUST_EXCUSE < XCP_ROBUST_EXCUSES",
            "s->excused + XCP_ROBUST_EXCUSE < 64",
        )],
    ),
    one(
        "excused-double",
        "in sixteen, not eight",
        &[bound(
            "s->excused + XCP_ROBUST_EXCUSE < XCP_ROBUST_EXCUSES",
            "s->excused + XCP_ROBUST_EXCUSE < 256",
        )],
    ),
    one(
        "behind-tcp-half",
        "half of what is said to be waited behind TCP taken off RTTs",
        &[sender("xcp_extended_wait_decode(s->wait)", "xcp_extended_wait_decode(s->wait) / 2")],
    ),
    one(
        "behind-tcp-double",
        "twice as much",
        &[sender("xcp_extended_wait_decode(s->wait)", "2 * xcp_extended_wait_decode(s->wait)")],
    ),
    one(
        "vanished-evidence-half",
        "six rounds are evidence where a queue has vanished, not twelve",
        &[bound(ROUNDS, "s->vanished ? 6 : XCP_ROBUST_EVIDENCE")],
    ),
    one(
        "vanished-evidence-double",
        "24 rounds, not twelve",
        &[bound(ROUNDS, "s->vanished ? 24 : XCP_ROBUST_EVIDENCE")],
    ),
    one(
        "vanished-half",
        "queues are believed after 64 quiet rounds, not 128",
        &[bound(VANISHED, "s->vanished = 64;")],
    ),
    one("vanished-double", "after 255, not 128", &[bound(VANISHED, "s->vanished = 255;")]),
    one(
        "gone-half",
        "a queue of tau that is gone a round later has vanished, not one of 2 tau",
        &[bound(GONE, "s->last_infl_ns > q.tau")],
    ),
    one(
        "gone-double",
        "a queue of 4 tau, not of 2 tau",
        &[bound(GONE, "s->last_infl_ns > 4 * q.tau")],
    ),
    one(
        "sudden-half",
        "a rise in less than half its time is a jump, not in less than all of it",
        &[jumps(SUDDEN, "sent - j->sent < rise / 2")],
    ),
    one(
        "sudden-double",
        "in less than twice its time",
        &[jumps(SUDDEN, "sent - j->sent < 2 * rise")],
    ),
    one(
        "middle-half",
        "RTTs stay within an upper quarter of the rise, not half of it",
        &[jumps(MIDDLE, "rtt - rise / 4")],
    ),
    one("middle-double", "anywhere above where it began", &[jumps(MIDDLE, "rtt - rise")]),
    one("stays-half", "until one round has ended, not two", &[jumps(STAYS, "++j->stays >= 1")]),
    one("stays-double", "until four have ended, not two", &[jumps(STAYS, "++j->stays >= 4")]),
    one(
        "jump-rounds-half",
        "a jump counts for 32 rounds, not for 64",
        &[jumps(JUMP_ROUNDS, "j->count < 255 - 32 ? j->count + 32 : 255")],
    ),
    one(
        "jump-rounds-double",
        "for 128 rounds, not for 64",
        &[jumps(JUMP_ROUNDS, "j->count < 255 - 128 ? j->count + 128 : 255")],
    ),
    one(
        "often-half",
        "a path jumps while more than 32 rounds are on the count, not 64",
        &[jumps(OFTEN, "j->count > 32")],
    ),
    one("often-double", "while more than 128 are, not 64", &[jumps(OFTEN, "j->count > 128")]),
    one(
        "sixteenth-half",
        "where the path jumps, W grows by a 32nd or half a packet, not twice that",
        &[bound(SIXTEENTH, "xcp_robust_more(w / 32, XCP_ROBUST_ONE / 2)")],
    ),
    one(
        "sixteenth-double",
        "by an eighth or two packets, not half that",
        &[bound(SIXTEENTH, "xcp_robust_more(w / 8, 2 * XCP_ROBUST_ONE)")],
    ),
    one(
        "jumps-fall-half",
        "there W falls by a sixteenth at most, not an eighth",
        &[bound(EIGHTH, "w - w / 16")],
    ),
    one("jumps-fall-double", "by a quarter, not an eighth", &[bound(EIGHTH, "w - w / 4")]),
    one(
        "restore-half",
        "a window comes back once a second, not each two seconds",
        &[kept(RESTORE, "1000000000ULL")],
    ),
    one("restore-double", "each four seconds, not each two", &[kept(RESTORE, "4000000000ULL")]),
    one(
        "patience-half",
        "in an outage the timer waits half a second at most, not one",
        &[kept(PATIENCE, "500000000ULL")],
    ),
    one("patience-double", "two seconds at most, not one", &[kept(PATIENCE, "2000000000ULL")]),
];
