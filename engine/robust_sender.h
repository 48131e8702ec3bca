/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A sender whose state is its rate, for routers that rely on being obeyed (robust.h), and that
 * bounds itself by delay where a queue without a router is the narrow one. docs/robust.md says
 * what each part is for.
 *
 * It stands on sender.h, which writes the headers, asks, and makes of feedback a change of the
 * window. Where it differs:
 *
 *   1. The window W that is told, asked for and moved is the rate times `base`, the least
 *      round-trip time seen; `base` is also the RTT in the header, and packets are spread over it.
 *      (The handshake's packets are small, and a slow link takes longer for full ones: what the
 *      first answer to data took replaces the handshake's time, if it is longer by less than a
 *      quarter.) A queue changes neither W nor the rate, so a router gets what it granted. What may
 *      be in flight is twice W, or half as much again as the RTT makes of it, if that is more; only
 *      W until the first window has been answered whole, for it may have filled a queue by itself.
 *      And only W, as with any sender of XCP, where a router on the path does not rely on its rate
 *      being kept (XCP_KEEPS comes back cleared), for there nothing else damps what it was given
 *      too much; but three packets, where they are closer together than a receiver waits for a
 *      second one (11): on a short path W, which has nothing of the time that packets take to be
 *      sent, may be less than one.
 *   2. A decrease leaves no gap: nobody waits until in flight is below W.
 *   3. Feedback without a router's mark counts for nothing, nor does that of packets sent before
 *      the last timeout. No increase goes beyond eight times what the last round delivered, once
 *      there was one; nor, where that is known, beyond twice what the peer takes. What a router on
 *      the same host lends (bpf/endpoint_start.h) is W's at once.
 *   4. A bound B on what is in flight, in packets of the RTT there is. FREE: none. Three rounds
 *      running in which even the least RTT is tau longer than base, while the routers took next to
 *      nothing away, are a queue that no router governs: B becomes what was delivered in a base RTT
 *      (DELAY). So does heavy loss, but not of what was under way at a timeout: a quarter of a
 *      round, or a twentieth where RTTs were tau / 2 longer, in this round on average or in all of
 *      the one before; of what an acknowledgement skips at once four packets count (18). (What
 *      links lose at random would be heavy, too, if the smoothed RTT told of queues: it has what
 *      acknowledgements waited for, the more the slower a flow is.) tau is the largest of 10 ms, a
 *      tenth of base and 1.5 times the mean spread of RTTs within a round.
 *   5. DELAY cuts by base / RTT in each second round that is tau too long, and grows, where W has
 *      come up to B, by sqrt(B) / 8 and half a packet a round: the less of itself, the larger it
 *      is, which is what makes the shares of those who are cut together equal. After eight rounds
 *      it grows by twice as much, three times, and so on. It asks for no more than B will let it
 *      take, as a sender with a small buffer does.
 *   6. A queue that has not emptied in six rounds is tried: for two rounds B is half of what a cut
 *      leaves. If it is the queue of others who go by delay, they do so at about the same time; it
 *      empties, and B is what the cut left. If it does not, or has not moved by a sixteenth in four
 *      rounds, whatever was cut, it is others' who do not go by delay, or none. COMPETE: B is
 *      CUBIC's window (cubic.h). An emptied queue leads back to DELAY.
 *   7. W below B in three rounds running in which routers add nothing, that is, what was asked for
 *      has not come and is not coming: the routers are the tighter bound, FREE. In between W is
 *      tied to B and what was added in the round. Where that was CUBIC's B, which grows
 *      until a queue overflows, no queue is tighter than the routers: RTTs that are longer all the
 *      same are the path's, which has become longer, and base is their least. (There rounds count,
 *      too, in which RTTs stay as they are: a queue's do not.) What is in flight stays.
 *   8. Without marks there is no router: COMPETE, from what was delivered, or from slow start where
 *      there never was one, which ends in DELAY where RTTs have grown; losses count (18). The first
 *      mark is heard again at once.
 *   9. A timeout that came while routers were content gives W back with the first fresh answer;
 *      where none has been heard of, none was. It is the path that has gone, not a queue that has
 *      overflowed, so until anything comes back the retransmission timer need not wait for more
 *      than a second, with which RFC 6298 §2.1 has everyone begin (by §5.5 and §2.5 it backs off to
 *      a minute at least). The first expiry decides; after the second one any answer is a fresh
 *      one.
 *  10. W may fall below one packet, to a 32nd; the header says an RTT of base / W and a window of
 *      one then. A round takes as long, and until its answer comes W falls to a half at most, or to
 *      one packet from above: what decides is what routers say for several rounds, not for a part.
 *  11. An acknowledgement of one packet, where packets are further apart than a receiver waits for
 *      a second one, or where there is no second one, has waited, and that is no queue's: 40 ms at
 *      least, Linux's TCP_DELACK_MIN (RFC 1122 §4.2.3.2 allows half a second); where there is never
 *      a second one, a round trip, but 200 ms at most (TCP_DELACK_MAX). Only in COMPETE, where it
 *      would be taken for an emptied queue, no more than the least.
 *  12. Where the pacer is late, that is, does not move a packet that waits when the rate changes, a
 *      change is felt half a gap later. The header says so: an RTT longer by base / 2W, and half a
 *      packet more, at the same rate.
 *  13. Where the path's length jumps all the time (jumps.h), RTTs say nothing of a queue: no round
 *      is evidence of one, DELAY goes on as COMPETE, and no empty queue ends that. What routers
 *      grant comes sooner or later than they expect, so W follows slowly: it grows by a sixteenth
 *      or a packet a round at most, asks for no more, and falls by an eighth at most. But a router
 *      that takes more than all that is left has not been heard: what it takes beyond that counts
 *      at once. What is in flight may be half as much again as W makes of any RTT.
 *  14. A window of a few packets is too rarely answered to see a path jump. What it does see, in
 *      DELAY, is a queue of more than 2 tau that is gone a round later, which a cut that takes no
 *      more than half of what is in flight hardly does. From then on twelve rounds make evidence,
 *      not three, until the RTT has been base for 128 rounds without that.
 *  15. The first window is no more than routers have said in the SYN's answer (robust_first.h), but
 *      for one packet.
 *  16. A router looks for what it has given a base later. Where answers take longer than twice
 *      that (and 40 ms more than it at least: difference 11), it has given again what it has not
 *      seen, so an increase counts as much less as its answer took longer. A queue without a router
 *      can run full and empty in turn then, so that no three rounds running are without a short
 *      RTT: a round whose mean is that long is evidence of a queue, too, whatever its least RTT.
 *  17. What an acknowledgement waited for on its way (way_back.h) is no queue that its sender can
 *      do anything about, so it is taken off all RTTs. To routers, whose answers come with it, it
 *      is a part of the round trip, so the header's is base and that, at the same rate; twice what
 *      W makes of it may be in flight besides, and answers are late (16) only beyond that. While it
 *      grows by more than a quarter of base in a round, answers come later than was said, and W
 *      follows slowly, as in 13, which looks for jumps in whole RTTs. And it is a receiver that
 *      says so, who may say so of a queue. So nothing is taken off for 128 rounds where a quarter
 *      is lost (as in 4) though by its clock no queue has grown, and where losses that count (18)
 *      say so.
 *  18. A queue may be too short to be seen: what is lost there, is lost though RTTs say nothing. So
 *      losses count as they do for TCP, RTTs do not, and the sender goes on in COMPETE, where
 *      something is lost while RTTs were tau longer neither in this round nor in the last one.
 *      Links lose some at random: where routers answer, it takes eight packets and a fortieth of
 *      the last few rounds, and of what an acknowledgement skips at once, whenever that is found
 *      lost, four count, for a link that is gone for a moment is no queue. Then a loss is answered
 *      at once, what is lost within a round of that with it, and nothing grows while something is
 *      missing; in slow start, where it is a round late, B is halved. Once RTTs are 2 tau longer
 *      and nothing is lost, they count again, in DELAY; and where routers answer, FREE as in 7. If
 *      a loss comes more than four rounds after the one before, or there is no router, and
 *      acknowledgements wait, it may be the clock that hides a queue (17); without a router RTTs
 *      say nothing then, either. A timeout is TCP's, too, and no outage (9).
 *  19. Where routers answer, it is tried whether that was right: FREE, where W grows by half a
 *      round at most for sixteen rounds. It was not, if losses do not count again within 1024. Cuts
 *      do nothing for what is lost at random, so it is tried after six of them, each within four
 *      rounds of the one before; then losses count from twice as many on as there were. Losses that
 *      are rare look like a queue's to whoever answers each: it is tried after 32 cuts in any case,
 *      and after twice as many each time that it was right.
 *  20. Where TCP has filled the queue of a router that steers it, answers say how long their
 *      packets waited there. That queue is the router's, which leaves XCP what is XCP's, so it is
 *      taken off the RTTs that tell of others. While it is longer than a queue that matters, RTTs
 *      that rise suddenly are no jumps of the path (13), for such a queue grows by a slow start;
 *      and losses happen there, because of TCP, and do not count. But it is a receiver that says
 *      so: after losses in eight such rounds it is not believed for 128 rounds, and neither is its
 *      clock (17), and a single further one is enough the next time. Sixteen rounds in which it
 *      says nothing make up for one.
 *
 * Windows in 2^-32 packets, times in ns. RTT samples are of the newest segment that an
 * acknowledgement covers, as the kernel's rate_sample has them.
 */
#ifndef XCP_ROBUST_SENDER_H
#define XCP_ROBUST_SENDER_H

#include "opening.h"
#include "robust_bound.h"

/* An acknowledgement, and what it says. All zero: nothing. */
struct xcp_robust_answer {
    xcp_u64 now;
    xcp_u64 sent_ns; /* when what it answers was sent */
    /* of the newest segment that it covers; 0: unknown, for that was sent again, or something is
     * under repair */
    xcp_u64 rtt_ns;
    xcp_u64 srtt_ns; /* with that */
    struct xcp_return returned;
    xcp_u32 answers;   /* of the segments it answers, the header is so many's; 0: there is none */
    xcp_u32 covered;   /* segments that were not acknowledged before; a SYN is one */
    xcp_u32 delivered; /* segments that it says are in, and none before it said so */
    /* So many more are between the newest that is in now and the newest before; and all before the
     * newest that are not in yet, without which what was skipped had only been overtaken. */
    xcp_u32 skipped;
    xcp_u32 missing;
    xcp_u32 lost;     /* found with it, of what was sent first since the last timeout */
    xcp_u32 stamp_ms; /* the receiver's time on it, if it is stamped */
    xcp_u8 stamped;
    xcp_u8 limited; /* the window, or pacing, is all that holds the sender back */
    xcp_u8 unused[2];
};

/* The whole packets of a window, at least one. */
XCP_INLINE xcp_u32 xcp_robust_whole(xcp_u64 window) {
    xcp_u64 packets = window >> 32;
    return packets ? (xcp_u32)packets : 1;
}

/* Between two packets, ns. */
XCP_INLINE xcp_u64 xcp_robust_gap(const struct xcp_robust_sender *s) {
    return (s->base_ns << 16) / xcp_robust_more(xcp_robust_window(s) >> 16, 1);
}

/* How many packets may be in flight. */
XCP_INLINE xcp_u32 xcp_robust_sender_limit(const struct xcp_robust_sender *s) {
    xcp_u64 w, rtt = xcp_robust_srtt(s), back = xcp_robust_back(s);
    if (s->bound != XCP_ROBUST_UNBOUNDED)
        return xcp_robust_whole(xcp_robust_times(s->bound, rtt + back, rtt));
    w = xcp_robust_more(xcp_robust_more(s->top, s->last_top), s->xcp.cwnd);
    if (!s->relied || s->rounds < XCP_ROBUST_FIRST_ROUNDS) {
        w = xcp_robust_times(w, s->base_ns + back, s->base_ns);
        if (!s->relied && xcp_robust_gap(s) < XCP_ROBUST_WAIT)
            w = xcp_robust_more(w, XCP_ROBUST_LEAST_FLIGHT);
        return xcp_robust_whole(w);
    }
    if (!xcp_jumps_often(&s->jumps))
        rtt = xcp_robust_less(rtt, s->base_ns + (s->base_ns >> 1));
    rtt = xcp_robust_more(2 * s->base_ns, rtt + (rtt >> 1)) + 2 * back;
    w = xcp_robust_more(w, XCP_ROBUST_ONE);
    if (XCP_LIKELY(rtt == 2 * s->base_ns)) /* what is usual needs no division, nor rounds */
        w = xcp_robust_less(2 * w, XCP_ROBUST_WINDOW_MOST);
    else
        w = xcp_robust_times(w, rtt, s->base_ns);
    return xcp_robust_whole(w + XCP_ROBUST_ONE);
}

/* What it will take in the next round trip, for the request: what the bound will let it use, or how
 * far it will follow where it follows slowly. */
XCP_INLINE xcp_u32 xcp_robust_sender_ask(const struct xcp_robust_sender *s) {
    xcp_u64 w;
    if (!s->routed)
        return XCP_NO_LIMIT;
    if (xcp_robust_follows_slowly(s)) {
        w = s->xcp.cwnd + xcp_robust_slowly(s->xcp.cwnd);
    } else if (s->mode == XCP_ROBUST_DELAY && s->bound != XCP_ROBUST_UNBOUNDED) {
        w = xcp_robust_times(s->bound, s->base_ns, xcp_robust_srtt(s));
        w += 2 * xcp_robust_growth(w, s->grown + 1) + XCP_ROBUST_ONE;
    } else {
        return XCP_NO_LIMIT;
    }
    return (xcp_u32)xcp_robust_less((w >> 32) + 1, XCP_NO_LIMIT - 1);
}

/* Whether a packet says W and the base RTT as they are, and asks for all there is: the common case,
 * which the host has in one piece and without calls (sender.h). */
XCP_INLINE int xcp_robust_is_plain(const struct xcp_robust_sender *s, xcp_u32 limit, xcp_u32 late) {
    return s->xcp.cwnd >= XCP_ROBUST_ONE && !late && s->back == 0 && limit == XCP_NO_LIMIT &&
           s->mode == XCP_ROBUST_FREE && !xcp_robust_follows_slowly(s) &&
           xcp_sender_is_usual(&s->xcp, s->base_ns);
}

XCP_COLD void xcp_robust_sender_header_any(struct xcp_robust_sender *s, xcp_u64 now, xcp_u32 limit,
                                           xcp_u32 late, struct xcp_forward *h) {
    xcp_u32 ask = xcp_robust_sender_ask(s);
    xcp_u64 w = s->xcp.cwnd, told = w + (late ? XCP_ROBUST_ONE / 2 : 0), rtt, trip;
    if (w < XCP_ROBUST_ONE && s->base_ns)
        told = XCP_ROBUST_ONE;
    rtt = xcp_robust_times(s->base_ns, told, w);
    trip = rtt ? rtt + xcp_robust_back(s) : 0; /* difference 17: the same rate */
    s->xcp.cwnd = xcp_robust_times(told, trip, rtt);
    if (ask != XCP_NO_LIMIT)
        ask = (xcp_u32)xcp_robust_less(xcp_robust_times(ask, trip, rtt), XCP_NO_LIMIT - 1);
    xcp_sender_header(&s->xcp, now, trip, limit < ask ? limit : ask, h);
    h->flags |= XCP_KEEPS;
    s->xcp.cwnd = w;
}

/* The header of a packet sent now; limit as for xcp_sender_header. late: difference 12. */
XCP_INLINE void xcp_robust_sender_header(struct xcp_robust_sender *s, xcp_u64 now, xcp_u32 limit,
                                         xcp_u32 late, struct xcp_forward *h) {
    if (XCP_SPLIT && XCP_LIKELY(xcp_robust_is_plain(s, limit, late))) {
        xcp_sender_write(&s->xcp, now, s->base_ns, XCP_NO_LIMIT, h, 1);
        h->flags |= XCP_KEEPS;
    } else {
        xcp_robust_sender_header_any(s, now, limit, late, h);
    }
}

/* The header of a SYN. limit: as for xcp_sender_header. */
XCP_INLINE void xcp_robust_sender_open(const struct xcp_robust_sender *s, xcp_u32 limit,
                                       struct xcp_forward *h) {
    xcp_opening_write(xcp_robust_less(s->xcp.cwnd, (xcp_u64)limit << 32), h);
}

/* How long an acknowledgement of one packet has waited for a second one, ns: difference 11. */
XCP_INLINE xcp_u64 xcp_robust_waited(const struct xcp_robust_sender *s) {
    xcp_u64 most = XCP_ROBUST_WAIT, gap = xcp_robust_gap(s);
    if (s->mode != XCP_ROBUST_COMPETE)
        most = xcp_robust_less(xcp_robust_more(s->base_ns, most), XCP_ROBUST_WAIT_MOST);
    if (s->bound < 2 * XCP_ROBUST_ONE || gap >= most)
        return most;
    return gap > XCP_ROBUST_WAIT ? XCP_ROBUST_WAIT : 0;
}

/* Whether the first data took longer than the handshake's small packets because a link is slow:
 * difference 1. */
XCP_INLINE xcp_u32 xcp_robust_is_longer(const struct xcp_robust_sender *s, xcp_u64 rtt_ns,
                                        xcp_u32 segments) {
    xcp_u64 by = rtt_ns - s->base_ns;
    return segments && s->acked == 0 && s->rounds == 0 && by > xcp_robust_matters(s) / 4 &&
           by < s->base_ns / 4;
}

/* What of a round trip its acknowledgement waited for on its way, ns, by the receiver's time on it.
 */
XCP_INLINE xcp_u64 xcp_robust_stamped(struct xcp_robust_sender *s,
                                      const struct xcp_robust_answer *a) {
    xcp_u64 most = s->base_ns ? a->rtt_ns - xcp_robust_less(a->rtt_ns, s->base_ns) : 0;
    if (a->rtt_ns == 0)
        return 0;
    return xcp_robust_less(xcp_way_back_waited(&s->way_back, a->now, a->stamp_ms, most), most);
}

/* What an answer says of TCP's queue: difference 20. */
XCP_INLINE void xcp_robust_hear(struct xcp_robust_sender *s, const struct xcp_return *h) {
    s->wait = h->flags & XCP_MARK && !s->doubted ? h->wait & XCP_WAIT_MAX : 0;
    s->said |= s->wait > 0;
}

/* A round trip, or that there is none that counts, by an acknowledgement of what is new. */
XCP_INLINE void xcp_robust_sample(struct xcp_robust_sender *s, const struct xcp_robust_answer *a) {
    xcp_u64 rtt_ns = a->rtt_ns, back_ns = a->stamped ? xcp_robust_stamped(s, a) : 0;
    s->srtt_ns = a->srtt_ns;
    if (s->base_ns && rtt_ns) {
        if (s->doubted)
            back_ns = 0;
        s->back += (xcp_u32)(back_ns >> 13) - s->back / 8;
        s->back_last = (xcp_u16)xcp_robust_less(back_ns >> 20, 0xffff);
        rtt_ns -= back_ns;
        if (s->wait && rtt_ns > s->base_ns)
            rtt_ns -= xcp_robust_less(rtt_ns - s->base_ns, xcp_extended_wait_decode(s->wait));
    }
    if (a->covered == 1 && s->base_ns && rtt_ns > s->base_ns)
        rtt_ns =
            xcp_robust_more(rtt_ns - xcp_robust_less(rtt_ns, xcp_robust_waited(s)), s->base_ns);
    if (rtt_ns == 0 || a->sent_ns < s->timeout_ns || (s->outage && a->sent_ns < s->round_ns))
        return;
    if (s->base_ns == 0 || rtt_ns < s->base_ns || xcp_robust_is_longer(s, rtt_ns, a->covered)) {
        if (rtt_ns > s->base_ns) /* the round begins with data: the handshake's is below base now */
            xcp_robust_forget_samples(s);
        if (s->base_ns) { /* the rate stays */
            s->explicit_window = xcp_robust_times(s->explicit_window, rtt_ns, s->base_ns);
            s->saved = xcp_robust_times(s->saved, rtt_ns, s->base_ns);
            if (xcp_robust_follows_slowly(s)) { /* and so do its limits in this round */
                s->floor = xcp_robust_times(s->floor, rtt_ns, s->base_ns);
                s->cap = xcp_robust_times(s->cap, rtt_ns, s->base_ns);
            }
        }
        s->base_ns = rtt_ns;
    }
    if (a->covered > 1 && !xcp_robust_is_steered(s))
        xcp_jumps_sample(&s->jumps, a->sent_ns, a->rtt_ns, xcp_robust_matters(s),
                         xcp_robust_gap(s));
    else
        xcp_jumps_shorter(&s->jumps, a->rtt_ns);
    s->least_ns = xcp_robust_less(s->least_ns, rtt_ns);
    s->most_ns = xcp_robust_more(s->most_ns, rtt_ns);
    s->sum_ns += rtt_ns;
    s->samples++;
}

/* The least that routers can make of W by now: the round's floor, and where the path jumps
 * (difference 13) less by what they take beyond that, below one packet, too, where a round lasts
 * base / W. It never raises W, except to the packet of difference 10. */
XCP_INLINE xcp_u64 xcp_robust_lowest(const struct xcp_robust_sender *s) {
    xcp_u64 taken = s->fb < 0 ? -(xcp_u64)s->fb : 0;
    xcp_u64 beyond = taken - xcp_robust_less(taken, s->floor);
    xcp_u64 lowest =
        xcp_robust_less(s->floor - xcp_robust_less(s->floor, beyond), s->explicit_window);
    xcp_u64 least = xcp_robust_less(s->floor, XCP_ROBUST_ONE);
    if (xcp_robust_follows_slowly(s))
        least = xcp_robust_more(least / 2, XCP_ROBUST_LEAST_WINDOW);
    return xcp_robust_more(lowest, least);
}

/* What counts of an increase whose answer took so many ns: difference 16. */
XCP_INLINE xcp_u64 xcp_robust_in_time(const struct xcp_robust_sender *s, xcp_u64 increase,
                                      xcp_u64 took_ns) {
    xcp_u64 most = xcp_robust_twice(s) + xcp_robust_back(s);
    return took_ns > most && s->base_ns ? xcp_robust_times(increase, most, took_ns) : increase;
}

/* What feedback came to before, and now that a window of before is one of after. Claims of a
 * receiver that lies do not run over, for that would look as if routers took. */
XCP_INLINE xcp_s64 xcp_robust_also(xcp_s64 fb, xcp_u64 before, xcp_u64 after) {
    const xcp_s64 most = XCP_ROBUST_WINDOW_MOST >> 4;
    fb += (xcp_s64)xcp_robust_less(after, most) - (xcp_s64)xcp_robust_less(before, most);
    return fb < -most ? -most : fb < most ? fb : most;
}

/* W grows no further than this in this round, 2^-32 packets: what the peer takes is known. */
XCP_INLINE void xcp_robust_sender_hold(struct xcp_robust_sender *s, xcp_u64 most) {
    s->cap = xcp_robust_less(s->cap, most);
}

/* A return header came back. */
XCP_INLINE void xcp_robust_feedback(struct xcp_robust_sender *s,
                                    const struct xcp_robust_answer *a) {
    const struct xcp_return *h = &a->returned;
    xcp_u64 before, after, w;
    if (!(h->flags & XCP_MARK) || !(h->flags & XCP_PRESENT)) {
        s->unmarked += s->unmarked < 255;
        xcp_robust_settle_window(s, a->now);
        return;
    }
    if (!s->routed) { /* a router has appeared; the bound stays until it is not the tighter one */
        s->routed = 1;
        s->cuts = 0;
        s->explicit_window = xcp_robust_less(
            xcp_robust_times(s->bound, s->base_ns, xcp_robust_srtt(s)), XCP_ROBUST_WINDOW_MOST);
    }
    s->marked = 1;
    s->ever = 1;
    if (!(h->flags & XCP_SHARED)) /* else it does not say so */
        s->relied = (h->flags & XCP_KEEPS) != 0;
    before = s->xcp.cwnd;
    xcp_sender_feedback(&s->xcp, a->now, h, s->base_ns, a->limited, a->answers);
    after = s->xcp.cwnd;
    if (after > before)
        after = before + xcp_robust_in_time(s, after - before, a->now - a->sent_ns);
    if (a->sent_ns >= s->timeout_ns) {
        w = s->explicit_window;
        if (after > before) {
            w = xcp_robust_less(w + (after - before), xcp_robust_more(w, s->cap));
            s->added = xcp_robust_less(s->added + (after - before), XCP_ROBUST_WINDOW_MOST);
        } else {
            w = w > before - after ? w - (before - after) : 0;
        }
        s->fb = xcp_robust_also(s->fb, before, after);
        s->explicit_window =
            xcp_robust_more(xcp_robust_less(w, XCP_ROBUST_WINDOW_MOST), xcp_robust_lowest(s));
    }
    xcp_robust_settle_window(s, a->now);
}

/* The SYN's answer came back, and its round trip is known: difference 15. */
XCP_COLD void xcp_robust_sender_opened(struct xcp_robust_sender *s,
                                       const struct xcp_robust_answer *a) {
    const struct xcp_return *h = &a->returned;
    struct xcp_num first;
    if (!xcp_is_opened(h) || s->base_ns == 0) {
        xcp_robust_feedback(s, a);
        return;
    }
    s->marked = 1;
    s->ever = 1;
    s->xcp.marked = 1;
    xcp_sender_prepare(&s->xcp);
    first = xcp_sender_change(&s->xcp, h->feedback, s->base_ns);
    s->explicit_window = xcp_robust_less(
        s->explicit_window,
        xcp_robust_more(xcp_scale(first.m, first.e + 32, ~0ULL >> 2), XCP_ROBUST_ONE));
    xcp_robust_settle_window(s, a->now);
}

/* What an acknowledgement skips, of so many that are missing: difference 18. */
XCP_INLINE void xcp_robust_skipped(struct xcp_robust_sender *s, xcp_u32 segments, xcp_u32 missing) {
    xcp_u64 gap = segments > XCP_ROBUST_AT_ONCE ? segments - XCP_ROBUST_AT_ONCE : 0;
    gap = xcp_robust_less(s->gap + gap, missing);
    s->gap = (xcp_u16)xcp_robust_less(gap, 0xffff);
}

/* So many segments were lost: what was under way at a timeout, which may have been lost with the
 * path, is not among them. */
XCP_INLINE void xcp_robust_lost(struct xcp_robust_sender *s, xcp_u32 segments) {
    xcp_u32 of_gap = segments < s->gap ? segments : s->gap;
    s->gap -= (xcp_u16)of_gap;
    segments -= of_gap;
    if (xcp_robust_is_steered(s)) {
        s->excuses |= segments > 0;
        return;
    }
    s->lost += segments;
    s->missed += segments; /* a timeout forgets only this round's */
}

/* Of what was acknowledged, the part that is a window's, which is what is in flight without what
 * acknowledgements wait for. */
XCP_INLINE xcp_u64 xcp_robust_in_a_trip(const struct xcp_robust_sender *s, xcp_u64 acked) {
    xcp_u64 srtt = xcp_robust_srtt(s);
    return xcp_robust_times(acked, srtt, srtt + xcp_robust_back(s));
}

/* Segments are in that were not before. */
XCP_INLINE void xcp_robust_acked(struct xcp_robust_sender *s, const struct xcp_robust_answer *a) {
    if (s->acked == 0)
        s->first_ns = a->now;
    s->acked += a->delivered;
    s->limited |= a->limited != 0;
    /* the first fresh answer after a timeout */
    if (s->saved && (a->sent_ns >= s->timeout_ns || s->outage == XCP_ROBUST_OUTAGE_LASTS)) {
        if (s->bound != XCP_ROBUST_UNBOUNDED) { /* it is B that governs, and B has been cut */
            s->explicit_window = xcp_robust_more(s->explicit_window, s->bound);
        } else if (s->routed) {
            /* no more: whoever comes first is offered what the others are about to take again */
            if (s->outage != XCP_ROBUST_CONGESTION || s->explicit_window < s->saved)
                s->explicit_window = s->saved;
            s->restored_ns = a->now;
        }
        s->saved = 0;
    }
    s->outage = 0;
    if (s->mode == XCP_ROBUST_COMPETE) {
        xcp_cubic_acked(&s->cubic, a->now, xcp_robust_srtt(s),
                        xcp_robust_in_a_trip(s, (xcp_u64)a->delivered << 32),
                        a->limited && xcp_robust_has_come(s) &&
                            !(s->lost && xcp_robust_heeds_losses(s)));
        s->bound = s->cubic.cwnd;
    }
    if (s->samples && (a->sent_ns >= s->round_ns || xcp_robust_cuts_at_once(s)))
        xcp_robust_round_ends(s, a->now);
    xcp_robust_settle_window(s, a->now);
}

/* What it says of the path. */
XCP_STEP xcp_robust_take_time(struct xcp_robust_sender *s, const struct xcp_robust_answer *a) {
    XCP_PART_NEEDS(s && a);
    if (a->answers)
        xcp_robust_hear(s, &a->returned);
    if (a->covered)
        xcp_robust_sample(s, a);
    return 0;
}

/* What routers say. */
XCP_STEP xcp_robust_take_feedback(struct xcp_robust_sender *s, const struct xcp_robust_answer *a) {
    XCP_PART_NEEDS(s && a);
    if (a->answers)
        xcp_robust_feedback(s, a);
    return 0;
}

/* What has become of what was sent. */
XCP_STEP xcp_robust_take_news(struct xcp_robust_sender *s, const struct xcp_robust_answer *a) {
    XCP_PART_NEEDS(s && a);
    xcp_robust_skipped(s, a->skipped, a->missing);
    xcp_robust_lost(s, a->lost);
    if (a->delivered)
        xcp_robust_acked(s, a);
    return 0;
}

/* An acknowledgement came. */
XCP_INLINE void xcp_robust_sender_answered(struct xcp_robust_sender *s,
                                           const struct xcp_robust_answer *a) {
    xcp_robust_take_time(s, a);     /* of a router's queue that it tells of, RTTs say nothing */
    xcp_robust_take_feedback(s, a); /* in terms of the base there is now */
    xcp_robust_take_news(s, a);     /* which may end the round */
}

/* What is free is known where the router is on this host, and this connection gets so many packets
 * of it at once. */
XCP_INLINE void xcp_robust_sender_lent(struct xcp_robust_sender *s, xcp_u64 now, xcp_u32 packets) {
    xcp_u64 by = xcp_robust_less((xcp_u64)packets << 32, XCP_ROBUST_WINDOW_MOST);
    if (s->explicit_window < XCP_ROBUST_WINDOW_MOST)
        s->explicit_window = xcp_robust_less(s->explicit_window + by, XCP_ROBUST_WINDOW_MOST);
    xcp_robust_settle_window(s, now);
}

/* The most that the retransmission timer need wait for, ns; 0: no bound. */
XCP_INLINE xcp_u64 xcp_robust_sender_patience(const struct xcp_robust_sender *s) {
    return s->outage && s->outage != XCP_ROBUST_CONGESTION ? XCP_ROBUST_PATIENCE_NS : 0;
}

/* The retransmission timer expired. */
XCP_COLD void xcp_robust_sender_timeout(struct xcp_robust_sender *s, xcp_u64 now) {
    xcp_u64 w = xcp_robust_window(s), flight = xcp_robust_flight(s);
    xcp_u32 again = s->outage != 0;
    xcp_u32 good = s->ever && s->calm && s->last_infl_ns < xcp_robust_matters(s) &&
                   (s->restored_ns == 0 || now - s->restored_ns > XCP_ROBUST_RESTORE_NS);
    s->saved = xcp_robust_more(
        s->saved, good && w != XCP_ROBUST_UNBOUNDED ? w : xcp_robust_less(w, XCP_ROBUST_ONE));
    s->over = 0;
    if (!xcp_robust_sender_patience(s)) /* in an outage what was sent since it began is fresh */
        s->timeout_ns = now;
    if (s->outage == 0)
        s->outage = good && s->routed && !s->unseen ? XCP_ROBUST_OUTAGE : XCP_ROBUST_CONGESTION;
    else if (s->outage == XCP_ROBUST_OUTAGE)
        s->outage = XCP_ROBUST_OUTAGE_LASTS;
    s->top = s->last_top = 0;
    s->wait = 0;
    if (xcp_robust_heeds_losses(s)) {
        s->mode = XCP_ROBUST_COMPETE;
        if (!again)
            xcp_cubic_timeout(&s->cubic, flight);
        s->slow_start = 1;
        s->bound = XCP_ROBUST_ONE;
        s->saved = 0;
        s->lost = 0;
    } else {
        s->explicit_window = xcp_robust_more(xcp_robust_less(s->explicit_window, XCP_ROBUST_ONE),
                                             xcp_robust_less(s->floor, XCP_ROBUST_ONE));
        if (s->mode == XCP_ROBUST_COMPETE) {
            xcp_cubic_lost(&s->cubic, s->saved);
            s->bound = s->cubic.cwnd;
        } else if (s->mode == XCP_ROBUST_DELAY) {
            s->bound = xcp_robust_more(xcp_mul_fraction(s->bound, XCP_ROBUST_SEVEN_TENTHS),
                                       XCP_ROBUST_ONE);
        }
    }
    s->round_ns = now;
    xcp_robust_forget_samples(s);
    xcp_robust_settle_window(s, now);
}

#endif
