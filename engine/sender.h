/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sender's part: what it tells the routers, what it asks of them, and what it makes of their
 * answer.
 *
 * draft-falk-xcp-spec-03 §3.2 and §3.4 with the remedies Zhang & Henderson (2005) call for. Where
 * it differs, and why:
 *
 *   1. The window in the header is the least of cwnd and what buffers and the application let the
 *      sender use: what will really be sent.
 *   2. A request is what brings the window to its limit within one round trip, divided over the
 *      packets of a window; where nothing limits it, the most the format can say.
 *   3. Until a router's mark has come back nobody may be lowering requests, and the sender is an
 *      ordinary TCP (RFC 5681 §3.1, §3.2): it asks for no more than one packet per packet below a
 *      slow-start threshold and one packet per window from there on; a loss halves the window
 *      whatever the connection's answer to losses is; loss and timeout set the threshold. Answers
 *      come a round trip late, when the threshold may have been passed or a loss answered, and
 *      extended ones are worth more where the RTT has grown meanwhile; so no acknowledgement raises
 *      the window by more than two packets would ask for now. RFC 5681 allows one packet's worth;
 *      two are what a delayed acknowledgement answers. The threshold comes from cwnd, not from
 *      FlightSize, every timeout sets it, and the window grows in recovery too. The first mark ends
 *      all this, for as long as routers are heard.
 *   4. The classic format has no mark. There a router is known by feedback smaller than any
 *      request, or negative where it may be a part of a sum (XCP_SHARED).
 *   5. Positive feedback is ignored while the window is not what limits the sender, and a window
 *      unused for a round trip moves half-way to what was used (the draft's p = 0.5), once per
 *      round trip.
 *   6. Bottleneck ids, where asked for (iXCP §3): every packet names the link that the newest
 *      answer said limits the flow, and the sender's own access link for routers to overwrite. As
 *      its own the sender may give 0: then packets name no link until one has claimed the flow, nor
 *      while none does because the sender limits itself (limited.h).
 *   7. Routers may leave a path, and what was asked for comes home unlowered then. An increase that
 *      no router has marked is ignored, and after a round trip without a mark the sender is an
 *      ordinary TCP again, in congestion avoidance from the window that it has, until the next
 *      mark. In the classic format this is seen only where all there is was asked for and comes
 *      back; other requests are bounded by what limits the sender (2), and so is what becomes of
 *      them.
 *   8. With honest = 0 none of this: the 2005 study's sender, which advertises cwnd and asks for
 *      all there is, whatever limits it. For comparison only.
 */
#ifndef XCP_SENDER_H
#define XCP_SENDER_H

#include "num.h"
#include "wire_classic.h"
#include "wire_extended.h"

#define XCP_NO_LIMIT 0xffffffffU
/* struct xcp_sender.classic where feedback is in whole packets (wire_classic.h). */
#define XCP_SENDER_WHOLE 2

/* One connection's state. Windows in 2^-32 packets. */
struct xcp_sender {
    xcp_u64 cwnd;
    xcp_u64 min_window;
    xcp_u64 max_window;
    xcp_u64 threshold; /* slow start's, until marked; all ones before the first loss */
    /* most that could be used since epoch_ns; all ones where the window was the limit at least
     * once */
    xcp_u64 used;
    xcp_u64 epoch_ns;      /* when ageing was last weighed */
    struct xcp_num packet; /* bytes per packet * 10^9 */
    struct xcp_num recip;  /* 1 / packet */
    /* smallest request so far, encoded (classic: how a router is recognised) */
    xcp_u16 asked;
    xcp_u8 classic;
    xcp_u8 honest;
    xcp_u8 marked; /* a router has been heard of, and still was within the last two round trips */
    /* 0, or 1 and the round trips that ended since an answer came without a router's mark */
    xcp_u8 silent;
    /* extended, honest, marked, no max_window: the common case, see xcp_sender_is_usual */
    xcp_u8 usual;
    xcp_u8 ids;     /* whether packets carry bottleneck ids */
    xcp_u32 own_id; /* the access link's; 0 for none */
    xcp_u32 limited_by;
};

/* Round trips to be over before a sender believes that the routers are gone: what is left of one,
 * and a whole one. */
#define XCP_SENDER_SILENT 2

XCP_INLINE int xcp_sender_is_unbounded(const struct xcp_sender *s) {
    return s->max_window >= (xcp_u64)XCP_NO_LIMIT << 32;
}

/* Brings `usual` up to date with what it is made of. */
XCP_INLINE void xcp_sender_prepare(struct xcp_sender *s) {
    s->usual = !s->classic && s->honest && s->marked && !s->silent && xcp_sender_is_unbounded(s);
}

/* Whether the host takes the code for the common case, in one piece and without calls, as for a
 * router (router.h). */
XCP_INLINE int xcp_sender_is_usual(const struct xcp_sender *s, xcp_u64 srtt_ns) {
    return s->usual && srtt_ns >= 4096 && srtt_ns >> 32 == 0;
}

/* Window w * 2^-32 packets, bounded. */
XCP_INLINE xcp_u64 xcp_sender_bounded(const struct xcp_sender *s, xcp_u64 w) {
    return w < s->min_window ? s->min_window : w > s->max_window ? s->max_window : w;
}

/* The size of a full packet on the wire has become another one: what feedback in bytes/s is worth
 * in packets changes, not the window. */
XCP_INLINE void xcp_sender_set_packet(struct xcp_sender *s, xcp_u32 packet_bytes) {
    struct xcp_num one = {1U << 31, -31};
    s->packet = xcp_num_mul(xcp_num_of(packet_bytes ? packet_bytes : 1), xcp_num_of(XCP_NS_PER_S));
    s->recip = xcp_num_div(one, s->packet);
}

/* All windows in 2^-32 packets; min_window is raised to 2^22 (2^-10 packets, the least the format
 * can say) and max_window to min_window. */
XCP_INLINE void xcp_sender_init(struct xcp_sender *s, xcp_u32 classic, xcp_u32 packet_bytes,
                                xcp_u64 initial, xcp_u64 min_window, xcp_u64 max_window,
                                xcp_u32 honest) {
    __builtin_memset(s, 0, sizeof(*s));
    s->min_window = min_window < (1 << 22) ? 1 << 22 : min_window;
    s->max_window = max_window < s->min_window ? s->min_window : max_window;
    s->cwnd = xcp_sender_bounded(s, initial);
    s->threshold = ~0ULL;
    xcp_sender_set_packet(s, packet_bytes);
    s->classic = classic != 0;
    s->honest = honest != 0;
    s->asked = classic ? XCP_CLASSIC_FEEDBACK_MAX : XCP_EXTENDED_FEEDBACK_MAX;
}

/* From now on a classic sender's headers ask for feedback in whole packets. */
XCP_INLINE void xcp_sender_set_whole(struct xcp_sender *s) {
    if (s->classic)
        s->classic = XCP_SENDER_WHOLE;
}

/* Packets carry bottleneck ids from now on. own: the access link's, or 0. */
XCP_INLINE void xcp_sender_use_ids(struct xcp_sender *s, xcp_u32 own) {
    s->ids = 1;
    s->own_id = s->limited_by = own;
    xcp_sender_prepare(s);
}

/* Whole packets that may be in flight: at least 1. */
XCP_INLINE xcp_u32 xcp_sender_cwnd(const struct xcp_sender *s) {
    xcp_u32 whole = (xcp_u32)(s->cwnd >> 32);
    return whole ? whole : 1;
}

/* Bytes/s on the wire that the window comes to at this round-trip time (not 0): what a paced sender
 * sends. */
XCP_INLINE xcp_u64 xcp_sender_rate(const struct xcp_sender *s, xcp_u64 srtt_ns) {
    struct xcp_num window = xcp_num_scaled(s->cwnd, -32);
    return xcp_num_u64(xcp_num_div(xcp_num_mul(window, s->packet), xcp_num_of(srtt_ns)),
                       1ULL << 62);
}

/* What an ordinary TCP's window grows by for each packet: one packet in slow start, then one packet
 * per window. */
XCP_INLINE struct xcp_num xcp_sender_growth(const struct xcp_sender *s) {
    struct xcp_num one = {1U << 31, -31};
    struct xcp_num one_q32 = {1U << 31, 1};
    return s->cwnd < s->threshold ? one : xcp_num_div(one_q32, xcp_num_of(s->cwnd));
}

/* A request that something bounds: by what brings the window to `most`, above it, in one round
 * trip, or by an ordinary TCP's growth. */
XCP_COLD xcp_u16 xcp_sender_bounded_request(const struct xcp_sender *s, xcp_u64 srtt_ns,
                                            xcp_u64 most) {
    struct xcp_num n; /* packets of window per packet */
    if (most != ~0ULL) {
        n = xcp_num_div(xcp_num_of(most - s->cwnd), xcp_num_of(s->cwnd));
        if (!s->marked) {
            struct xcp_num growth = xcp_sender_growth(s);
            if (!xcp_num_less(n, growth))
                n = growth;
        }
    } else {
        n = xcp_sender_growth(s);
    }
    if (s->classic)
        return s->classic == XCP_SENDER_WHOLE ? xcp_classic_feedback_encode_whole(n.m, n.e, 0)
                                              : xcp_classic_feedback_encode(n.m, n.e, 0, XCP_DOWN);
    n = xcp_num_div(xcp_num_mul(n, s->packet), xcp_num_of(srtt_ns)); /* bytes/s per packet */
    return xcp_extended_feedback_encode(n.m, n.e, 0, XCP_DOWN);
}

/* The request, encoded; limit: the most that could be used, XCP_NO_LIMIT for no limit. */
XCP_INLINE xcp_u16 xcp_sender_request(const struct xcp_sender *s, xcp_u64 srtt_ns, xcp_u32 limit) {
    xcp_u64 most = limit == XCP_NO_LIMIT ? ~0ULL : (xcp_u64)limit << 32;
    xcp_u16 all = s->classic ? XCP_CLASSIC_FEEDBACK_MAX : XCP_EXTENDED_FEEDBACK_MAX;
    if (!s->honest)
        return all;
    if (srtt_ns == 0)
        return 0; /* no router gives anything to a packet without RTT */
    if (most > s->max_window && !xcp_sender_is_unbounded(s))
        most = s->max_window;
    if (most <= s->cwnd)
        return 0;
    if (most == ~0ULL && s->marked)
        return all;
    return xcp_sender_bounded_request(s, srtt_ns, most);
}

XCP_INLINE void xcp_sender_write(struct xcp_sender *s, xcp_u64 now, xcp_u64 srtt_ns, xcp_u32 limit,
                                 struct xcp_forward *h, xcp_u32 usual) {
    xcp_u64 window = s->cwnd;
    if (usual || s->honest) {
        /* a packet is being sent, so one fits */
        xcp_u64 most = (xcp_u64)(limit ? limit : 1) << 32;
        if (!usual && most < window)
            window = most;
        else
            most = ~0ULL;
        if (most > s->used)
            s->used = most;
        if (XCP_UNLIKELY(s->epoch_ns == 0))
            s->epoch_ns = now;
    }
    if (!usual && s->classic) {
        h->flags = s->classic == XCP_SENDER_WHOLE ? XCP_PRESENT | XCP_CLASSIC | XCP_WHOLE
                                                  : XCP_PRESENT | XCP_CLASSIC;
        h->feedback = xcp_sender_request(s, srtt_ns, limit);
        h->rtt = xcp_classic_rtt_encode(srtt_ns);
        h->window = xcp_classic_window_encode(window);
        if (xcp_classic_feedback_decode(h->feedback) < xcp_classic_feedback_decode(s->asked))
            s->asked = h->feedback;
    } else {
        h->flags = XCP_PRESENT;
        h->feedback = usual ? XCP_EXTENDED_FEEDBACK_MAX : xcp_sender_request(s, srtt_ns, limit);
        h->rtt = xcp_extended_rtt_encode(srtt_ns);
        h->window = xcp_extended_window_encode(window, -32);
    }
    h->wait = 0;
    h->bottleneck_id = 0;
    h->next_bottleneck_id = 0;
    if (s->ids) {
        h->flags |= XCP_IDS;
        h->bottleneck_id = s->limited_by;
        h->next_bottleneck_id = s->own_id;
    }
}

XCP_COLD void xcp_sender_write_any(struct xcp_sender *s, xcp_u64 now, xcp_u64 srtt_ns,
                                   xcp_u32 limit, struct xcp_forward *h) {
    xcp_sender_write(s, now, srtt_ns, limit, h, 0);
}

/* The header of a packet sent now. srtt_ns: 0 while unknown. limit: packets that buffers and
 * application allow in flight, or XCP_NO_LIMIT. */
XCP_INLINE void xcp_sender_header(struct xcp_sender *s, xcp_u64 now, xcp_u64 srtt_ns, xcp_u32 limit,
                                  struct xcp_forward *h) {
    if (XCP_SPLIT && XCP_LIKELY(xcp_sender_is_usual(s, srtt_ns) && limit == XCP_NO_LIMIT))
        xcp_sender_write(s, now, srtt_ns, XCP_NO_LIMIT, h, 1);
    else
        xcp_sender_write_any(s, now, srtt_ns, limit, h);
}

/* Changes the window by m * 2^e packets. The sign is random: no branch. */
XCP_INLINE void xcp_sender_move(struct xcp_sender *s, struct xcp_num by, xcp_u32 negative) {
    xcp_u64 q32 = xcp_scale(by.m, by.e + 32, 1ULL << 63);
    xcp_u64 up = s->cwnd + q32, down = s->cwnd - q32;
    up = up < q32 ? ~0ULL : up;
    down = q32 < s->cwnd ? down : 0;
    s->cwnd = xcp_sender_bounded(s, negative ? down : up);
}

/* What classic feedback changes the window by, packets. */
XCP_COLD struct xcp_num xcp_sender_change_classic(xcp_u16 feedback) {
    xcp_s64 value = xcp_classic_feedback_decode(feedback);
    return xcp_num_scaled(value < 0 ? -(xcp_u64)value : (xcp_u64)value, -12);
}

/* Whether a router speaks in an answer: 1; or none did: 0. In the classic format less than what was
 * asked for names one, and all there is none; what lies between tells nothing: -1. */
XCP_COLD int xcp_sender_hears(const struct xcp_sender *s, const struct xcp_return *h) {
    xcp_s64 value;
    if (!s->classic)
        return (h->flags & XCP_MARK) != 0;
    value = xcp_classic_feedback_decode(h->feedback);
    if (value < 0 || (!(h->flags & XCP_SHARED) && value < xcp_classic_feedback_decode(s->asked)))
        return 1;
    return h->feedback == XCP_CLASSIC_FEEDBACK_MAX ? 0 : -1;
}

/* Takes note of it. */
XCP_COLD void xcp_sender_heed(struct xcp_sender *s, const struct xcp_return *h) {
    int heard = xcp_sender_hears(s, h);
    if (heard > 0)
        s->marked = 1;
    if (heard)
        s->silent = 0;
    else if (s->marked && s->honest && !s->silent)
        s->silent = 1;
}

/* A round trip is over: the routers may have been silent for all of it. */
XCP_COLD void xcp_sender_listen(struct xcp_sender *s) {
    if (!s->silent || s->silent++ < XCP_SENDER_SILENT)
        return;
    s->silent = 0;
    s->marked = 0;
    s->threshold = s->cwnd;
}

/* What extended feedback changes the window by, packets: bytes/s * ns / (bytes per packet *
 * 10^9). */
XCP_INLINE struct xcp_num xcp_sender_change(const struct xcp_sender *s, xcp_u16 feedback,
                                            xcp_u64 srtt_ns) {
    struct xcp_num srtt = {(xcp_u32)srtt_ns, 0};
    xcp_s32 e;
    xcp_u32 m = xcp_extended_feedback_parts(feedback, &e);
    if (XCP_UNLIKELY(srtt_ns >> 32))
        srtt = xcp_num_of(srtt_ns);
    return xcp_num_mul(xcp_num_scaled((xcp_u64)m * srtt.m, e + srtt.e), s->recip);
}

XCP_INLINE void xcp_sender_take(struct xcp_sender *s, xcp_u64 now, const struct xcp_return *h,
                                xcp_u64 srtt_ns, xcp_u32 cwnd_limited, xcp_u32 segments,
                                xcp_u32 usual) {
    struct xcp_num by;
    xcp_u32 negative = h->feedback >> 15; /* in both formats */
    if (!usual)
        xcp_sender_heed(s, h);
    if (!usual && s->classic)
        by = xcp_sender_change_classic(h->feedback);
    else
        by = xcp_sender_change(s, h->feedback, srtt_ns);
    if (!usual && segments > 1)
        by = xcp_num_mul(by, xcp_num_of(segments));
    if (!usual && s->honest && !s->marked && !negative) {
        struct xcp_num most = xcp_sender_growth(s);
        most.e += 1; /* two packets */
        if (xcp_num_less(most, by))
            by = most;
    }
    if (XCP_UNLIKELY(!cwnd_limited) && !negative && (usual || s->honest))
        by.m = 0;
    if (!usual && s->silent && !negative)
        by.m = 0;
    if (by.m)
        xcp_sender_move(s, by, negative);
    if ((usual || (s->honest && srtt_ns)) && xcp_passed(now, s->epoch_ns, srtt_ns)) {
        if (s->used && s->used < s->cwnd)
            s->cwnd = xcp_sender_bounded(s, s->used + ((s->cwnd - s->used) >> 1));
        s->used = 0;
        s->epoch_ns = now;
        if (!usual)
            xcp_sender_listen(s);
    }
    if (s->ids && h->flags & XCP_IDS)
        s->limited_by = h->next_bottleneck_id;
}

XCP_COLD void xcp_sender_take_any(struct xcp_sender *s, xcp_u64 now, const struct xcp_return *h,
                                  xcp_u64 srtt_ns, xcp_u32 cwnd_limited, xcp_u32 segments) {
    if (!(h->flags & XCP_PRESENT) || !(h->flags & XCP_CLASSIC) != !s->classic)
        return;
    xcp_sender_take(s, now, h, srtt_ns, cwnd_limited, segments, 0);
    xcp_sender_prepare(s);
}

/* A return header came back. srtt_ns as above. cwnd_limited: whether the window, not buffers or the
 * application, is what holds the sender back. segments: how many of those that the header was sent
 * in this packet stands for (receive coalescing), usually 1. */
XCP_INLINE void xcp_sender_feedback(struct xcp_sender *s, xcp_u64 now, const struct xcp_return *h,
                                    xcp_u64 srtt_ns, xcp_u32 cwnd_limited, xcp_u32 segments) {
    if (XCP_SPLIT && XCP_LIKELY(segments <= 1 &&
                                (h->flags & (XCP_PRESENT | XCP_CLASSIC | XCP_MARK)) ==
                                    (XCP_PRESENT | XCP_MARK) &&
                                xcp_sender_is_usual(s, srtt_ns)))
        xcp_sender_take(s, now, h, srtt_ns, cwnd_limited, 1, 1);
    else
        xcp_sender_take_any(s, now, h, srtt_ns, cwnd_limited, segments);
}

/* What feedback has raised beyond `most`, 2^-32 packets, is taken back; `before`: the window of
 * before. */
XCP_INLINE void xcp_sender_hold(struct xcp_sender *s, xcp_u64 before, xcp_u64 most) {
    if (s->cwnd > most && s->cwnd > before)
        s->cwnd = xcp_sender_bounded(s, before > most ? before : most);
}

/* Until marked: slow start's threshold becomes half the window, at least two packets (RFC 5681 §3.1
 * (4)). */
XCP_INLINE void xcp_sender_lower_threshold(struct xcp_sender *s) {
    xcp_u64 half = s->cwnd >> 1;
    s->threshold = half < 2ULL << 32 ? 2ULL << 32 : half;
}

/* A retransmission timeout: back to one packet. */
XCP_INLINE void xcp_sender_timeout(struct xcp_sender *s) {
    xcp_sender_lower_threshold(s);
    s->cwnd = xcp_sender_bounded(s, 1ULL << 32);
}

/* Halves the window; until marked to no less than two packets, from where slow start does not go
 * on. */
XCP_INLINE void xcp_sender_halve(struct xcp_sender *s) {
    xcp_u64 half = s->cwnd >> 1;
    if (s->honest && !s->marked) {
        xcp_sender_lower_threshold(s);
        half = s->threshold;
    }
    s->cwnd = xcp_sender_bounded(s, half);
}

/* The timeout or loss answered last was none (RFC 4015): the window and the threshold of before it
 * come back. Routers correct a window that is no longer right within a round trip. */
XCP_INLINE void xcp_sender_restore(struct xcp_sender *s, xcp_u64 cwnd, xcp_u64 threshold) {
    if (s->cwnd < cwnd)
        s->cwnd = xcp_sender_bounded(s, cwnd);
    if (s->threshold < threshold)
        s->threshold = threshold;
}

/* A loss (three duplicate ACKs). halve_when_marked: whether the connection halves its window then
 * although routers govern it; where none has been heard of, an honest sender does in any case. */
XCP_INLINE void xcp_sender_loss(struct xcp_sender *s, xcp_u32 halve_when_marked) {
    if (halve_when_marked || (s->honest && !s->marked))
        xcp_sender_halve(s);
}

#endif
