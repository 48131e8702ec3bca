//! The robust law and sender with one part left out: what each is for shows in the rows of
//! `experiments/failures/` that become worse. Edits as in [`list`](super::list).

use super::edits::{
    AGREEING, ANOTHER, CAP, FILLS, FIRST, FLIGHT, FLOOR, HEAVY, OFTEN, OTHERS, PATIENCE, QUEUED,
    RIGHT, SHOWS, STANDS, STANDS_SO_LONG, TRIED, VANISHED, bound, calendar, jumps, kept, one,
    opening, part, router, sender,
};
use super::list::Mutant;

const UNSEEN: &str = "q->infl < q->tau && s->last_infl_ns < q->tau";
const EVIDENT: &str = "s->limited && evident";
const ONCE: &str = "rose && j->rose == XCP_JUMPS_WATCHED";
const BEYOND: &str = "taken - xcp_robust_less(taken, s->floor)";
const WAITED: &str = "a->covered == 1 && s->base_ns && rtt_ns > s->base_ns";
const RESTORED: &str = "s->saved && \
    (a->sent_ns >= s->timeout_ns || s->outage == XCP_ROBUST_OUTAGE_LASTS)";

/// First what is left out at the router, then at the sender.
pub const PARTS: &[Mutant] = &[
    one(
        "without-calendar",
        "promises on their way forgotten: O = 0",
        &[part("r->owed = look.owed;", "look.owed = 0; r->owed = 0;")],
    ),
    one(
        "without-outlook",
        "the queue as it is, not as it will be: Q' = Q",
        &[part(
            "r->drain = look.drain;",
            "r->drain = look.drain = xcp_robust_rate(r->queue, r->d_ns);",
        )],
    ),
    one(
        "without-old-promises",
        "promises that the measurement shows in part counted as shown",
        &[calendar(
            "xcp_robust_part_of(due, xcp_robust_fraction(hidden, l->over_ns))",
            "(xcp_s64)(0 * hidden)",
        )],
    ),
    one(
        "without-noise-floor",
        "every gap believed, however few packets measured it",
        &[part("sure.m == 0 || sure.e + 31 < 0", "0")],
    ),
    one(
        "without-silence",
        "a gap after silence weighed as any other",
        &[part("how & XCP_ROBUST_SILENCE", "0 * how")],
    ),
    one("without-trust", "every sender is held to keep its rate", &[part("!r->loose", "1")]),
    one(
        "without-distrust-after-silence",
        "after silence a sender that does not keep its rate is offered the whole gap",
        &[part("r->wary ? f : gap", "gap")],
    ),
    one(
        "without-long-measure",
        "traffic of senders that do not keep their rates is measured over two parts",
        &[part("xcp_mul_fraction(r->d_ns, r->loose)", "0 * r->d_ns")],
    ),
    one(
        "without-lower-bound",
        "more taken than there is",
        &[part("result > least ? result : least", "result")],
    ),
    one("without-upper-bound", "promises made whatever waits", &[part(STANDS, "0")]),
    one(
        "without-returns",
        "what a packet does not take of its offer is lost",
        &[router("(xcp_u64)taken < most", "0"), router("taken <= 0", "0")],
    ),
    one(
        "without-askers",
        "increase divided by all flows limited here, not by those that ask",
        &[part("xcp_num_less(asking, open) ? asking : open", "open")],
    ),
    one(
        "without-limited",
        "increase offered to all flows, wherever they are limited",
        &[router("h->flags & XCP_IDS ? h->bottleneck_id : r->id", "r->id + 0 * h->flags")],
    ),
    one("without-headroom", "flows limited elsewhere gain nothing here", &[router("r->gp.m", "0")]),
    one("without-shuffle", "no shuffled traffic", &[part("shuffle > f ? shuffle - f : 0", "0")]),
    one(
        "without-long-parts",
        "a tenth of d, however few packets come in it",
        &[part("part > least ? part : least ? least : 1", "part ? part : 1")],
    ),
    one(
        "without-haste",
        "another capacity takes effect at the end of the part",
        &[router("capacity != r->law.capacity", "0"), part(ANOTHER, "0")],
    ),
    one(
        "without-leaving",
        "a decrease is divided among all that come, not among what leaves",
        &[part("xcp_num_less(leave, come) ? leave : come", "come")],
    ),
    one(
        "without-agreement",
        "a measured rate is smoothed, however well the packets agree",
        &[part(AGREEING, "0")],
    ),
    one(
        "without-what-left",
        "a capacity told too high is believed",
        &[part("r->told_for <= r->measured_parts", "1")],
    ),
    one(
        "gives-way",
        "XCP gives way to TCP that takes more than its right",
        &[part("r->tcp_right == 0 || (r->tcp_rate <= r->tcp_right && tcp <= r->tcp_right)", "1")],
    ),
    one(
        "drains-altogether",
        "where TCP has filled the queue, XCP gives way altogether to drain it",
        &[part(RIGHT, "0 * right")],
    ),
    one(
        "without-return",
        "XCP keeps a quarter of its right, but is not given it again",
        &[part("right && has < floor ? floor - has : 0", "0")],
    ),
    one(
        "counts-late",
        "a flow of TCP counts when its second is over",
        &[part("over || flows > r->tcp_flows", "over")],
    ),
    one(
        "not-by-window",
        "TCP's probability begins at its least, whatever TCP's flows would need",
        &[part("!r->tcp_new || !r->rtt_known", "1")],
    ),
    one(
        "target-steers",
        "TCP is steered by the queue that is meant to stand, too",
        &[part("r->drain < target ? r->drain : target", "0")],
    ),
    one(
        "without-own-drain",
        "XCP drains what TCP queues, and TCP is not steered by it",
        &[
            part("own = ~xcp_robust_fraction(r->tcp_right, r->capacity << 20);", "own = ~0U;"),
            part(
                "r->tcp_rate + xcp_mul_fraction(r->drain, xcp_robust_fraction(right, capacity))",
                "r->tcp_rate",
            ),
        ],
    ),
    one(
        "without-left-drain",
        "XCP drains nothing of what TCP leaves of its right",
        &[part("drain += tcp > beyond ? tcp - beyond : 0;", "(void)beyond;")],
    ),
    one(
        "without-waits",
        "senders are not told how long packets wait behind TCP",
        &[router("xcp_extended_wait_add(h->wait & XCP_WAIT_MAX, r->tcp_wait)", "h->wait")],
    ),
    one(
        "waits-of-all",
        "where TCP is in the queue, all that waits is TCP's",
        &[part("xcp_robust_fraction(tcp, r->capacity << 20)", "~0U")],
    ),
    one(
        "waits-without-tcp",
        "they are told how long packets wait, whether or not that is TCP's doing",
        &[
            part("(r->tcp_right == 0)", "(0)"),
            part("xcp_robust_fraction(tcp, r->capacity << 20)", "~0U"),
        ],
    ),
    one(
        "dropped-counts",
        "what is dropped of TCP counts as input",
        &[router(
            "r->drop && xcp_dither_next(&r->random) >> 16 < r->drop * segments",
            "r->drop && xcp_dither_next(&r->random) >> 16 < r->drop * segments && \
             (r->now.tcp += bytes, r->now.all += bytes, r->now.others += segments, 1)",
        )],
    ),
    one(
        "without-reach",
        "after a long silence the calendar begins before it",
        &[part("now - (m->elapsed < half ? m->elapsed : half)", "now - m->elapsed")],
    ),
    one(
        "without-steering",
        "TCP in the queue left alone",
        &[router("r->law.tcp == XCP_TCP_STEERED", "0")],
    ),
    one(
        "without-base",
        "the header tells the smoothed round trip",
        &[sender(
            "xcp_robust_times(s->base_ns, told, w)",
            "xcp_robust_times(xcp_robust_srtt(s), told, w)",
        )],
    ),
    one(
        "without-freshness",
        "answers to what was sent before a timeout count",
        &[
            sender("(a->sent_ns >= s->timeout_ns)", "1"),
            sender("a->now - a->sent_ns", "a->now - xcp_robust_more(a->sent_ns, s->timeout_ns)"),
        ],
    ),
    one(
        "without-cap",
        "increase without regard to what the last round delivered",
        &[bound(CAP, "XCP_ROBUST_UNBOUNDED")],
    ),
    one("without-delay", "longer round trips are no evidence of a queue", &[bound(EVIDENT, "0")]),
    one("without-loss", "heavy loss is no evidence of a queue", &[bound(HEAVY, "0")]),
    one(
        "without-request",
        "the bound is not told to routers",
        &[sender("(xcp_u32)xcp_robust_less((w >> 32) + 1, XCP_NO_LIMIT - 1)", "XCP_NO_LIMIT")],
    ),
    one(
        "without-what-it-becomes",
        "routers are told what the bound is, not what it becomes",
        &[sender("2 * xcp_robust_growth(w, s->grown + 1)", "0")],
    ),
    one(
        "without-waiting",
        "the bound grows although W has not come up to it",
        &[bound("s->limited && xcp_robust_has_come(s)", "s->limited")],
    ),
    one(
        "without-the-wait",
        "a receiver's wait for a second packet is taken for a queue",
        &[sender(WAITED, "0")],
    ),
    one(
        "without-how-long",
        "a round's deliveries count in full, however long it lasted",
        &[bound("xcp_robust_more(now - s->first_ns, s->base_ns)", "s->base_ns")],
    ),
    one(
        "without-the-queue-before",
        "where much is lost, only the mean RTT of the same round tells of a queue",
        &[bound(QUEUED, "q.mean - s->base_ns > q.tau >> 1")],
    ),
    one(
        "without-what-is-coming",
        "W below B makes FREE, whether or not routers are still adding",
        &[bound("s->routed && !coming", "s->routed")],
    ),
    one(
        "without-leaving-by-loss",
        "a first slow start that ends with a loss goes on as CUBIC",
        &[bound(
            "s->slow_start && (s->lost || (!s->unseen && q->infl > q->tau))",
            "(s->lost ? (s->slow_start = 0) : s->slow_start && !s->unseen && q->infl > q->tau)",
        )],
    ),
    one(
        "without-doubt",
        "the longest wait counts in COMPETE, too",
        &[sender("s->mode != XCP_ROBUST_COMPETE", "1")],
    ),
    one("without-competing", "nobody else is ever held to fill the queue", &[bound(OTHERS, "0")]),
    one(
        "without-flat",
        "only a queue that was tried tells that others fill it",
        &[bound(OTHERS, "s->stuck > XCP_ROBUST_OTHERS")],
    ),
    one(
        "without-trying",
        "a queue that stands is not tried",
        &[bound(STANDS_SO_LONG, "0"), bound(TRIED, "0")],
    ),
    one(
        "without-tie",
        "W runs away from B",
        &[bound("s->bound != XCP_ROBUST_UNBOUNDED && s->routed", "0")],
    ),
    one(
        "without-in-time",
        "an increase counts whenever its answer came",
        &[sender("took_ns > most && s->base_ns", "0")],
    ),
    one(
        "without-slow-rounds",
        "only the least RTT of a round is evidence of a queue",
        &[bound("!q.jumps && q.mean > xcp_robust_twice(s)", "0")],
    ),
    one(
        "without-longer-path",
        "a path that became longer is taken for a queue",
        &[bound("s->base_ns = s->least_ns;", "")],
    ),
    one(
        "without-restoring",
        "a timeout is congestion whatever routers say",
        &[sender(RESTORED, "0")],
    ),
    one(
        "without-patience",
        "the retransmission timer backs off in an outage",
        &[kept(PATIENCE, "0xffffffffffffULL")],
    ),
    one(
        "without-any-answer",
        "in an outage, too, only what was sent since the last timeout is fresh",
        &[
            sender("!xcp_robust_sender_patience(s)", "1"),
            sender(RESTORED, "s->saved && a->sent_ns >= s->timeout_ns"),
        ],
    ),
    one("without-small-windows", "no window below one packet", &[bound(FLOOR, "XCP_ROBUST_ONE")]),
    one(
        "without-floor",
        "W falls as low as routers say within a round",
        &[bound("s->floor = xcp_robust_floor(s);", "s->floor = XCP_ROBUST_LEAST_WINDOW;")],
    ),
    one(
        "without-jumps",
        "a path that jumps is taken for a queue as soon as any other",
        &[jumps(OFTEN, "0")],
    ),
    one(
        "without-once",
        "RTTs that rise suddenly one after the other are jumps, too",
        &[jumps(ONCE, "0"), jumps("rose && !j->rose", "rose")],
    ),
    one(
        "without-gap",
        "what packets of all others may add between two of one's own is a jump, too",
        &[jumps("rise > gap_ns >> 10", "1")],
    ),
    one(
        "without-full",
        "what has grown when a queue overflows is a jump, too",
        &[bound(
            "xcp_jumps_round_ends(&s->jumps, q.heavy);",
            "xcp_jumps_round_ends(&s->jumps, 0);",
        )],
    ),
    one(
        "without-slow-links",
        "the handshake's round trip counts, however small its packets are",
        &[sender("xcp_robust_is_longer(s, rtt_ns, a->covered)", "0")],
    ),
    one(
        "without-vanished",
        "a queue that has vanished is believed like any other",
        &[bound(VANISHED, "s->vanished = 0;")],
    ),
    one(
        "without-following-slowly",
        "W follows what routers say at once where the path jumps",
        &[kept("s->fills || xcp_jumps_often(&s->jumps)", "s->fills")],
    ),
    one(
        "without-asking-slowly",
        "and does not say how far it will follow",
        &[sender("s->xcp.cwnd + xcp_robust_slowly(s->xcp.cwnd)", "(xcp_u64)XCP_NO_LIMIT << 32")],
    ),
    one(
        "without-hearing-all-taken",
        "where the path jumps, what routers take beyond all of W does not count",
        &[sender(BEYOND, "0")],
    ),
    one(
        "without-flight-at-jumps",
        "no more in flight than at an RTT of 1.5 base where the path jumps",
        &[sender("!xcp_jumps_often(&s->jumps)", "1")],
    ),
    one(
        "without-competing-at-jumps",
        "where the path jumps, DELAY stays what it is",
        &[bound("q.jumps && s->mode == XCP_ROBUST_DELAY", "0")],
    ),
    one(
        "without-hearing-all",
        "a part may be shorter than the time between two packets of a flow",
        &[part("least < r->apart", "0")],
    ),
    one("hearing-at-once", "that of the last window alone", &[part("r->apart > r->gap", "1")]),
    one(
        "without-following-less",
        "windows of few packets follow as closely as any",
        &[part("r->gain = xcp_mul_fraction(r->gain, xcp_robust_few(r));", "")],
    ),
    one(
        "without-the-mean-queue",
        "windows of few packets, too, see the least queue only",
        &[part("!xcp_robust_are_few(r) || mean <= r->queue", "1")],
    ),
    one(
        "without-first-windows",
        "a SYN is told nothing, and ten packets are the first window",
        &[router("xcp_is_opening(h)", "0")],
    ),
    one(
        "without-first-bound",
        "all who begin may have the whole link, however many they are",
        &[opening("asked > left", "0")],
    ),
    one(
        "without-at-once",
        "what is sent at once is measured as all else is",
        &[router("h->flags & XCP_OPENS && p->known", "0")],
    ),
    one(
        "with-first-windows-booked",
        "first windows are booked",
        &[router(
            "of->granted = (xcp_s64)(rate < XCP_Q20_MAX ? rate : XCP_Q20_MAX);",
            "of->granted = (xcp_s64)(rate < XCP_Q20_MAX ? rate : XCP_Q20_MAX); \
                { xcp_u64 most = xcp_robust_rate(asked, r->d_ns); \
                xcp_robust_promise(r, of->now + xcp_robust_wait(r) + r->d_ns, \
                (xcp_s64)(rate < most ? rate : most), 1); }",
        )],
    ),
    one(
        "waits-in-rtts",
        "what is waited for behind TCP stays in RTTs",
        &[sender("s->wait && rtt_ns > s->base_ns", "0")],
    ),
    one(
        "losses-behind-tcp",
        "what is lost there counts",
        &[sender("(xcp_robust_is_steered(s))", "(0)")],
    ),
    one(
        "jumps-behind-tcp",
        "RTTs that rise there may be jumps of the path",
        &[sender("!xcp_robust_is_steered(s)", "1")],
    ),
    one(
        "without-finding-out",
        "whoever says so is believed whatever is lost",
        &[bound("s->excused + XCP_ROBUST_EXCUSE < XCP_ROBUST_EXCUSES", "1")],
    ),
    one(
        "without-the-way-back",
        "what acknowledgements wait for is taken for a queue",
        &[sender("(s->doubted)", "(1)")],
    ),
    one(
        "without-telling-the-way-back",
        "and routers are told of a round trip without it",
        &[sender("rtt ? rtt + xcp_robust_back(s) : 0", "rtt")],
    ),
    one(
        "without-room-for-the-way-back",
        "no more is in flight for it",
        &[sender(FLIGHT, "xcp_robust_more(2 * s->base_ns, rtt + (rtt >> 1))")],
    ),
    one(
        "without-a-rate-for-the-way-back",
        "a bound is one on what is in flight on the way back, too",
        &[kept("s->srtt_ns - xcp_robust_less(s->srtt_ns, xcp_robust_back(s))", "s->srtt_ns")],
    ),
    one(
        "without-following-what-fills",
        "W follows at once while the way back fills",
        &[bound(FILLS, "0")],
    ),
    one(
        "without-time-for-the-way-back",
        "what comes over a way back that is full is late",
        &[sender("xcp_robust_twice(s) + xcp_robust_back(s)", "xcp_robust_twice(s)")],
    ),
    one(
        "without-doubts",
        "a clock is believed while what it hides drops",
        &[bound("q.heavy && q.waits && !queued", "0")],
    ),
    one(
        "without-losses",
        "what is lost where RTTs show no queue counts for nothing",
        &[bound(UNSEEN, "0")],
    ),
    one(
        "without-losses-at-routers",
        "where routers answer, it counts for nothing",
        &[bound("s->missed >= XCP_ROBUST_MISSED + xcp_robust_parts_of(s)", "0")],
    ),
    one(
        "without-random-losses",
        "losses are never held to be random",
        &[bound("s->cuts >= XCP_ROBUST_CUTS && s->parts == XCP_ROBUST_PART", "0")],
    ),
    one(
        "without-trials",
        "it is never tried whether rare losses are a queue's",
        &[bound("XCP_ROBUST_STAYS << s->tries", "0xffff")],
    ),
    one(
        "without-gentleness",
        "in a trial W grows as ever",
        &[bound("s->holds > XCP_ROBUST_TRIAL - XCP_ROBUST_GENTLE", "0")],
    ),
    one(
        "without-twice",
        "what is lost at random counts no more than before",
        &[bound("xcp_robust_more(twice, XCP_ROBUST_PART + 1)", "255")],
    ),
    one(
        "without-gaps",
        "all that is missed at once counts",
        &[sender("segments > XCP_ROBUST_AT_ONCE ? segments - XCP_ROBUST_AT_ONCE : 0", "0")],
    ),
    one(
        "without-filled-gaps",
        "what is lost after a gap that was filled is still taken for the gap's",
        &[sender("xcp_robust_less(s->gap + gap, missing)", "s->gap + gap")],
    ),
    one("without-showing-again", "RTTs never count again where losses did", &[bound(SHOWS, "0")]),
    one(
        "without-cutting-at-once",
        "a loss that counts is answered when the round ends",
        &[sender("xcp_robust_cuts_at_once(s)", "0")],
    ),
    one(
        "without-halving",
        "slow start that a loss has ended goes on with seven tenths",
        &[bound("flight / 7 * 5", "flight")],
    ),
    one(
        "without-a-part-of-a-trip",
        "what is acknowledged counts for CUBIC however long acknowledgements wait",
        &[sender("xcp_robust_times(acked, srtt, srtt + xcp_robust_back(s))", "acked")],
    ),
    one(
        "without-a-threshold",
        "a timeout without a router forgets what was in flight",
        &[sender("xcp_cubic_timeout(&s->cubic, flight)", "xcp_cubic_timeout(&s->cubic, s->saved)")],
    ),
    one(
        "without-first-window",
        "in flight twice W before the first window has been answered",
        &[sender(FIRST, "s->base_ns == 0")],
    ),
];
