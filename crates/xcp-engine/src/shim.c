/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine/ as functions that Rust can call. ffi.rs declares them; nothing here decides anything. */

#include "xcp.h"

/* Sizes that ffi.rs reserves, in 64-bit words. */
_Static_assert(sizeof(struct xcp_router) == 58 * 8, "ffi.rs: ROUTER_WORDS");
_Static_assert(sizeof(struct xcp_policer) == 16 * 8, "ffi.rs: POLICER_WORDS");
_Static_assert(sizeof(struct xcp_policed_set) == 14 * 8, "ffi.rs: POLICED_SET_WORDS");
_Static_assert(sizeof(struct xcp_law) == 64, "ffi.rs: Law");
_Static_assert(sizeof(struct xcp_sender) == 10 * 8, "ffi.rs: SENDER_WORDS");
_Static_assert(__builtin_offsetof(struct xcp_sender, cwnd) == 0, "ffi.rs: SENDER_CWND");
_Static_assert(sizeof(struct xcp_receiver) == 2 * 8, "ffi.rs: RECEIVER_WORDS");
_Static_assert(sizeof(struct xcp_robust) == 689 * 8, "ffi.rs: ROBUST_WORDS");
_Static_assert(sizeof(struct xcp_robust_sender) == 51 * 8, "ffi.rs: ROBUST_SENDER_WORDS");
_Static_assert(__builtin_offsetof(struct xcp_robust_sender, xcp) == 0, "ffi.rs: SENDER_CWND");
_Static_assert(__builtin_offsetof(struct xcp_robust_sender, base_ns) == 10 * 8,
               "ffi.rs: SENDER_BASE");
_Static_assert(__builtin_offsetof(struct xcp_robust_sender, bound) <= 2 * 64,
               "robust_sender_state.h: what a header needs, in two cache lines");
_Static_assert(sizeof(struct xcp_robust_answer) == 72 &&
                   __builtin_offsetof(struct xcp_robust_answer, limited) == 69,
               "robust_sender.rs: Answer");
_Static_assert(XCP_PRESENT == 0x01 && XCP_CLASSIC == 0x02 && XCP_MARK == 0x04 && XCP_IDS == 0x08 &&
                   XCP_SHARED == 0x10 && XCP_KEEPS == 0x20 && XCP_OPENS == 0x40,
               "header.rs: flags");
_Static_assert(XCP_WAIT_MAX == 15, "header.rs: WAIT_MAX");
_Static_assert(XCP_OTHER_UNKNOWN == 0 && XCP_OTHER_ACK == 1 && XCP_OTHER_TCP == 2,
               "robust.rs: Other::code");
_Static_assert(XCP_ROBUST_FREE == 0 && XCP_ROBUST_DELAY == 1 && XCP_ROBUST_COMPETE == 2,
               "robust_sender.rs: state");
_Static_assert(sizeof(struct xcp_forward) == 16, "header.rs: ForwardHeader");
_Static_assert(sizeof(struct xcp_return) == 8, "header.rs: ReturnHeader");

/* A router's state for display and tests: every number as mantissa and exponent or as an
 * integer. */
struct xcp_shim_view {
    xcp_u64 start_ns, interval_ns, elapsed_ns, input, sum_x_hi, sum_x_lo, sum_xr_hi, sum_xr_lo;
    xcp_u64 queue, queue_period_ns, min_queue, pool_pos, pool_neg, y, shuffled, intervals,
        rtt_known, capacity;
    xcp_s64 f;
    xcp_u64 cp_m, cn_m, d_m, x_m;
    xcp_s64 cp_e, cn_e, d_e, x_e;
    xcp_u64 id, pool_hp, pool_hn;
    xcp_u64 min_interval_ns, max_interval_ns;
    struct xcp_num hp, hn, fp, gp, gn, cap;
};

/* What comes to a policer. */
struct xcp_passage {
    xcp_u64 now, key, bytes, backlog;
    xcp_u64 segments;
};

struct xcp_shim_policer_view {
    xcp_u64 share, flows, refused, refused_bytes, corrected, crowded;
};

void xcp_shim_law_preset(struct xcp_law *law, xcp_u32 preset, xcp_u64 capacity) {
    xcp_law_preset(law, preset, capacity);
}

int xcp_shim_router_init(struct xcp_router *r, const struct xcp_law *law, xcp_u64 now,
                         xcp_u64 seed) {
    return xcp_router_init(r, law, now, seed);
}

int xcp_shim_router_set_law(struct xcp_router *r, const struct xcp_law *law) {
    return xcp_router_set_law(r, law);
}

xcp_u32 xcp_shim_router_id(xcp_u64 seed) {
    return xcp_router_id(seed);
}

void xcp_shim_router_set_capacity(struct xcp_router *r, xcp_u64 capacity) {
    xcp_router_set_capacity(r, capacity);
}

void xcp_shim_router_arrival(struct xcp_router *r, xcp_u64 now, xcp_u32 size,
                             const struct xcp_forward *h, xcp_u64 backlog) {
    xcp_router_arrival(r, now, size, h, backlog);
}

void xcp_shim_router_other_arrival(struct xcp_router *r, xcp_u64 now, xcp_u32 size, xcp_u32 is_xcp,
                                   xcp_u64 backlog) {
    xcp_router_other_arrival(r, now, size, is_xcp, backlog);
}

void xcp_shim_router_departure(struct xcp_router *r, xcp_u64 now, xcp_u32 size,
                               struct xcp_forward *h, xcp_u64 backlog) {
    xcp_router_departure(r, now, size, h, backlog);
}

void xcp_shim_router_other_departure(struct xcp_router *r, xcp_u64 now, xcp_u32 size,
                                     xcp_u32 is_xcp, xcp_u64 backlog) {
    xcp_router_other_departure(r, now, size, is_xcp, backlog);
}

void xcp_shim_router_pass(struct xcp_router *r, xcp_u64 now, xcp_u32 size, struct xcp_forward *h) {
    xcp_router_pass(r, now, size, h);
}

void xcp_shim_router_burst(struct xcp_router *r, xcp_u64 now, xcp_u64 bytes, xcp_u32 segments,
                           struct xcp_forward *h, xcp_u64 backlog) {
    xcp_router_tick(r, now, backlog);
    xcp_router_burst(r, now, bytes, segments, h);
}

void xcp_shim_policer_init(struct xcp_policer *p, struct xcp_router *r, xcp_u64 longest_rtt_ns,
                           xcp_u64 seed) {
    xcp_policer_init(p, r, longest_rtt_ns, seed);
}

xcp_u32 xcp_shim_policer_packet(struct xcp_policer *p, struct xcp_router *r,
                                struct xcp_policed_set *table, xcp_u32 sets,
                                const struct xcp_passage *packet, struct xcp_forward *h) {
    xcp_u64 hash = xcp_policer_hash(p, packet->key);
    xcp_router_tick(r, packet->now, packet->backlog);
    return xcp_policer_packet(p, r, &table[xcp_policer_place(hash, sets)], (xcp_u32)hash,
                              packet->now, packet->bytes, packet->segments, h);
}

xcp_u64 xcp_shim_policer_join(const struct xcp_policer *p, xcp_u64 key, xcp_u64 word) {
    return xcp_policer_join(p, key, word);
}

void xcp_shim_policer_view(const struct xcp_policer *p, struct xcp_shim_policer_view *v) {
    struct xcp_shim_policer_view view = {p->share,         p->flows,     p->refused,
                                         p->refused_bytes, p->corrected, p->crowded};
    *v = view;
}

void xcp_shim_router_withhold(struct xcp_forward *h) {
    xcp_router_withhold(h);
}

void xcp_shim_router_others(struct xcp_router *r, xcp_u64 bytes, xcp_u64 packets,
                            xcp_u64 returned_bytes, xcp_u64 returned, xcp_u64 least_backlog) {
    xcp_router_others(r, bytes, packets, returned_bytes, returned, least_backlog);
}

void xcp_shim_router_other_pass(struct xcp_router *r, xcp_u64 now, xcp_u32 size, xcp_u32 is_xcp) {
    xcp_router_other_pass(r, now, size, is_xcp);
}

void xcp_shim_router_law(const struct xcp_router *r, struct xcp_law *law) {
    *law = r->law;
}

void xcp_shim_router_view(const struct xcp_router *r, struct xcp_shim_view *v) {
    struct xcp_shim_view view = {
        r->start_ns,
        r->interval_ns,
        r->elapsed_ns,
        r->input,
        r->sum_x.hi,
        r->sum_x.lo,
        r->sum_xr.hi,
        r->sum_xr.lo,
        r->queue,
        r->queue_period_ns,
        r->min_queue,
        r->pool_pos,
        r->pool_neg,
        r->y,
        r->shuffled,
        r->intervals,
        r->rtt_known,
        r->law.capacity,
        r->f,
        r->cp.m,
        r->cn.m,
        r->d.m,
        r->closed_sum_x.m,
        r->cp.e,
        r->cn.e,
        r->d.e,
        r->closed_sum_x.e,
        r->id,
        r->limited.pool_hp,
        r->limited.pool_hn,
        r->law.min_interval_ns,
        r->law.max_interval_ns,
        r->limited.hp,
        r->limited.hn,
        r->limited.fp,
        r->limited.gp,
        r->limited.gn,
        r->limited.cap,
    };
    *v = view;
}

void xcp_shim_sender_init(struct xcp_sender *s, xcp_u32 classic, xcp_u32 packet_bytes,
                          xcp_u64 initial, xcp_u64 min_window, xcp_u64 max_window, xcp_u32 honest) {
    xcp_sender_init(s, classic, packet_bytes, initial, min_window, max_window, honest);
}

void xcp_shim_sender_set_whole(struct xcp_sender *s) {
    xcp_sender_set_whole(s);
}

void xcp_shim_sender_use_ids(struct xcp_sender *s, xcp_u32 own) {
    xcp_sender_use_ids(s, own);
}

xcp_u32 xcp_shim_sender_limited_by(const struct xcp_sender *s) {
    return s->ids ? s->limited_by : 0;
}

xcp_u32 xcp_shim_sender_marked(const struct xcp_sender *s) {
    return s->marked;
}

void xcp_shim_sender_header(struct xcp_sender *s, xcp_u64 now, xcp_u64 srtt_ns, xcp_u32 limit,
                            struct xcp_forward *h) {
    xcp_sender_header(s, now, srtt_ns, limit, h);
}

void xcp_shim_sender_feedback(struct xcp_sender *s, xcp_u64 now, const struct xcp_return *h,
                              xcp_u64 srtt_ns, xcp_u32 cwnd_limited, xcp_u32 segments) {
    xcp_sender_feedback(s, now, h, srtt_ns, cwnd_limited, segments);
}

void xcp_shim_sender_timeout(struct xcp_sender *s) {
    xcp_sender_timeout(s);
}

void xcp_shim_sender_restore(struct xcp_sender *s, const struct xcp_sender *before) {
    xcp_sender_restore(s, before->cwnd, before->threshold);
}

void xcp_shim_sender_loss(struct xcp_sender *s, xcp_u32 halve_when_marked) {
    xcp_sender_loss(s, halve_when_marked);
}

void xcp_shim_receiver_init(struct xcp_receiver *r, xcp_u32 classic) {
    xcp_receiver_init(r, classic);
}

void xcp_shim_receiver_data(struct xcp_receiver *r, const struct xcp_forward *h, xcp_u32 segments) {
    xcp_receiver_data(r, h, segments);
}

struct xcp_return xcp_shim_receiver_answer(struct xcp_receiver *r, const struct xcp_forward *h) {
    return xcp_receiver_answer(r, h);
}

struct xcp_return xcp_shim_receiver_return(struct xcp_receiver *r, xcp_u32 segments) {
    return xcp_receiver_return(r, segments);
}

xcp_u16 xcp_shim_extended_rtt_encode(xcp_u64 ns) {
    return xcp_extended_rtt_encode(ns);
}

xcp_u64 xcp_shim_extended_rtt_decode(xcp_u16 code) {
    xcp_s32 e;
    xcp_u32 m = xcp_extended_rtt_decode(code, &e);
    return (xcp_u64)m << e;
}

xcp_u16 xcp_shim_extended_window_encode(xcp_u64 m, xcp_s32 e) {
    return xcp_extended_window_encode(m, e);
}

xcp_u32 xcp_shim_extended_window_decode(xcp_u16 code, xcp_s32 *e) {
    return xcp_extended_window_decode(code, e);
}

xcp_u16 xcp_shim_extended_feedback_encode(xcp_u64 m, xcp_s32 e, xcp_u32 negative, xcp_u64 dither) {
    return xcp_extended_feedback_encode(m, e, negative, dither);
}

xcp_s64 xcp_shim_extended_feedback_decode(xcp_u16 code) {
    return xcp_extended_feedback_decode(code);
}

xcp_u16 xcp_shim_classic_rtt_encode(xcp_u64 ns) {
    return xcp_classic_rtt_encode(ns);
}

xcp_u16 xcp_shim_classic_window_encode(xcp_u64 q32) {
    return xcp_classic_window_encode(q32);
}

xcp_u16 xcp_shim_classic_feedback_encode(xcp_u64 m, xcp_s32 e, xcp_u32 negative, xcp_u64 dither) {
    return xcp_classic_feedback_encode(m, e, negative, dither);
}

xcp_s64 xcp_shim_classic_feedback_decode(xcp_u16 code) {
    return xcp_classic_feedback_decode(code);
}

void xcp_shim_path(const struct xcp_forward *h, struct xcp_path *p) {
    xcp_path_read(h, p);
}

/* What the router would grant now: fb, e, below, pos_q, neg_q. */
void xcp_shim_router_grant(const struct xcp_router *r, xcp_u32 size, const struct xcp_forward *h,
                           struct xcp_grant *g) {
    struct xcp_path p;
    xcp_path_read(h, &p);
    struct xcp_router copy = *r; /* whose pools are charged */
    if (r->law.shuffle == XCP_SHUFFLE_MATCHING) {
        g->size = xcp_law_size(&r->law, size);
        g->segments = 1;
        xcp_limited_grant(&copy, &p, h, g);
    } else {
        xcp_router_grant(&copy, &p, xcp_law_size(&r->law, size), 1, g, 0);
    }
}

/* The ways for all packets, where the functions above take a shorter one for the usual ones: 0
 * arrival, 1 departure, 2 both. */
void xcp_shim_router_any(struct xcp_router *r, xcp_u32 what, xcp_u64 now, xcp_u32 size,
                         struct xcp_forward *h, xcp_u64 backlog) {
    if (what == 0)
        xcp_router_arrive_any(r, now, size, h, backlog);
    else if (what == 1)
        xcp_router_depart_any(r, now, size, h, backlog);
    else
        xcp_router_pass_any(r, now, size, h);
}

void xcp_shim_sender_header_any(struct xcp_sender *s, xcp_u64 now, xcp_u64 srtt_ns, xcp_u32 limit,
                                struct xcp_forward *h) {
    xcp_sender_write_any(s, now, srtt_ns, limit, h);
}

void xcp_shim_sender_feedback_any(struct xcp_sender *s, xcp_u64 now, const struct xcp_return *h,
                                  xcp_u64 srtt_ns, xcp_u32 cwnd_limited, xcp_u32 segments) {
    xcp_sender_take_any(s, now, h, srtt_ns, cwnd_limited, segments);
}

void xcp_shim_recip16(xcp_u32 v, struct xcp_num *n) {
    xcp_s32 e;
    xcp_u64 m = xcp_recip16(v, &e);
    *n = xcp_num_scaled(m, e);
}

void xcp_shim_num(xcp_u32 op, const struct xcp_num *a, const struct xcp_num *b,
                  struct xcp_num *out) {
    *out = op == 0 ? xcp_num_mul(*a, *b) : xcp_num_div(*a, *b);
}

void xcp_shim_num_scaled(xcp_u64 m, xcp_s32 e, struct xcp_num *out) {
    *out = xcp_num_scaled(m, e);
}

xcp_s32 xcp_shim_clz(xcp_u64 v, xcp_u32 halving) {
    return halving ? xcp_clz_halving(v) : xcp_clz(v);
}

xcp_u64 xcp_shim_scale(xcp_u64 m, xcp_s32 e, xcp_u64 max) {
    return xcp_scale(m, e, max);
}

xcp_u64 xcp_shim_mul_fraction(xcp_u64 v, xcp_u32 f) {
    return xcp_mul_fraction(v, f);
}

void xcp_shim_acc_add(struct xcp_acc *acc, xcp_u64 m, xcp_s32 e) {
    xcp_acc_add(acc, m, e);
}

void xcp_shim_options_find(const xcp_u8 *block, xcp_u32 length, struct xcp_options *found) {
    xcp_options_find(block, length, found);
}

void xcp_shim_extended_read(const xcp_u8 *option, struct xcp_extended *out) {
    xcp_extended_read(option, out);
}

xcp_u32 xcp_shim_extended_write(xcp_u8 *option, const struct xcp_forward *f,
                                const struct xcp_return *r, xcp_u32 ids) {
    return xcp_extended_write(option, f, r, ids != 0);
}

void xcp_shim_classic_read_forward(const xcp_u8 *option, struct xcp_forward *out) {
    xcp_classic_read_forward(option, out);
}

void xcp_shim_classic_write_forward(xcp_u8 *option, const struct xcp_forward *f) {
    xcp_classic_write_forward(option, f);
}

void xcp_shim_classic_read_return(const xcp_u8 *option, struct xcp_return *out) {
    xcp_classic_read_return(option, out);
}

void xcp_shim_classic_write_return(xcp_u8 *option, const struct xcp_return *r) {
    xcp_classic_write_return(option, r);
}

int xcp_shim_robust_init(struct xcp_robust *r, const struct xcp_law *law, xcp_u64 now,
                         xcp_u64 seed) {
    return xcp_robust_init(r, law, now, seed);
}

void xcp_shim_robust_set_capacity(struct xcp_robust *r, xcp_u64 capacity) {
    xcp_robust_set_capacity(r, capacity);
}

void xcp_shim_robust_arrival(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                             const struct xcp_forward *h, xcp_u64 backlog) {
    xcp_robust_arrival(r, now, size, h, backlog);
}

void xcp_shim_robust_departure(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                               struct xcp_forward *h, xcp_u64 backlog) {
    xcp_robust_departure(r, now, size, h, backlog);
}

xcp_u32 xcp_shim_robust_other_arrival(struct xcp_robust *r, xcp_u64 now, xcp_u32 size, xcp_u32 kind,
                                      xcp_u64 flow, xcp_u64 backlog) {
    return (xcp_u32)xcp_robust_other_arrival(r, now, size, kind, flow, backlog);
}

void xcp_shim_robust_other_departure(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                     xcp_u64 backlog) {
    xcp_robust_other_departure(r, now, size, backlog);
}

void xcp_shim_robust_pass(struct xcp_robust *r, xcp_u64 now, xcp_u32 size, struct xcp_forward *h) {
    xcp_robust_pass(r, now, size, h);
}

xcp_u32 xcp_shim_robust_other_pass(struct xcp_robust *r, xcp_u64 now, xcp_u32 size, xcp_u32 kind,
                                   xcp_u64 flow) {
    return (xcp_u32)xcp_robust_other_pass(r, now, size, kind, flow);
}

/* As xcp_shim_router_any. */
void xcp_shim_robust_any(struct xcp_robust *r, xcp_u32 what, xcp_u64 now, xcp_u32 size,
                         struct xcp_forward *h, xcp_u64 backlog) {
    if (what == 0)
        xcp_robust_arrive_any(r, now, size, h, backlog);
    else if (what == 1)
        xcp_robust_depart_any(r, now, size, h, backlog);
    else
        xcp_robust_pass_any(r, now, size, h);
}

void xcp_shim_robust_burst(struct xcp_robust *r, xcp_u64 now, xcp_u64 bytes, xcp_u32 segments,
                           struct xcp_forward *h, xcp_u64 backlog) {
    xcp_robust_tick(r, now, backlog);
    xcp_robust_burst(r, now, bytes, segments, h);
}

xcp_u32 xcp_shim_robust_other_burst(struct xcp_robust *r, xcp_u64 now, xcp_u64 bytes,
                                    xcp_u32 segments, xcp_u32 kind, xcp_u64 flow, xcp_u64 backlog) {
    xcp_robust_tick(r, now, backlog);
    return (xcp_u32)xcp_robust_other_burst(r, bytes, segments, kind, flow);
}

/* A robust router's state for display and tests; rates in q20. */
struct xcp_shim_robust_view {
    xcp_u64 start_ns, interval_ns, elapsed_ns, d_ns, queue, pool_fp, pool_n, y, shuffled, intervals,
        told, capacity, min_interval_ns, max_interval_ns, drop, tcp_flows, id;
    xcp_s64 f, owed;
    struct xcp_num flows;
};

void xcp_shim_robust_view(const struct xcp_robust *r, struct xcp_shim_robust_view *v) {
    struct xcp_shim_robust_view view = {r->start_ns,
                                        r->interval_ns,
                                        r->elapsed_ns,
                                        r->d_ns,
                                        r->queue,
                                        r->pool_fp,
                                        r->pool_n,
                                        r->y,
                                        r->shuffled,
                                        r->intervals,
                                        r->law.capacity,
                                        r->capacity,
                                        r->law.min_interval_ns,
                                        r->law.max_interval_ns,
                                        r->drop,
                                        r->tcp_flows,
                                        r->id,
                                        r->f,
                                        r->owed,
                                        r->flows};
    *v = view;
}

void xcp_shim_robust_sender_init(struct xcp_robust_sender *s, xcp_u32 packet_bytes, xcp_u64 initial,
                                 xcp_u32 ids, xcp_u32 own) {
    xcp_robust_sender_init(s, packet_bytes, initial);
    if (ids)
        xcp_sender_use_ids(&s->xcp, own);
}

void xcp_shim_robust_sender_header(struct xcp_robust_sender *s, xcp_u64 now, xcp_u32 limit,
                                   xcp_u32 late, struct xcp_forward *h) {
    xcp_robust_sender_header(s, now, limit, late, h);
}

void xcp_shim_robust_sender_header_any(struct xcp_robust_sender *s, xcp_u64 now, xcp_u32 limit,
                                       xcp_u32 late, struct xcp_forward *h) {
    xcp_robust_sender_header_any(s, now, limit, late, h);
}

void xcp_shim_robust_sender_answered(struct xcp_robust_sender *s,
                                     const struct xcp_robust_answer *answer) {
    xcp_robust_sender_answered(s, answer);
}

void xcp_shim_robust_sender_open(const struct xcp_robust_sender *s, xcp_u32 limit,
                                 struct xcp_forward *h) {
    xcp_robust_sender_open(s, limit, h);
}

void xcp_shim_robust_sender_opened(struct xcp_robust_sender *s,
                                   const struct xcp_robust_answer *answer) {
    xcp_robust_sender_opened(s, answer);
}

void xcp_shim_robust_sender_lent(struct xcp_robust_sender *s, xcp_u64 now, xcp_u32 packets) {
    xcp_robust_sender_lent(s, now, packets);
}

void xcp_shim_robust_sender_hold(struct xcp_robust_sender *s, xcp_u32 packets) {
    xcp_robust_sender_hold(s, (xcp_u64)packets << 32);
}

void xcp_shim_robust_sender_timeout(struct xcp_robust_sender *s, xcp_u64 now) {
    xcp_robust_sender_timeout(s, now);
}

xcp_u64 xcp_shim_robust_sender_patience(const struct xcp_robust_sender *s) {
    return xcp_robust_sender_patience(s);
}

xcp_u32 xcp_shim_robust_sender_limit(const struct xcp_robust_sender *s) {
    return xcp_robust_sender_limit(s);
}

/* For display and tests. */
struct xcp_shim_robust_sender_view {
    xcp_u64 window, bound, base_ns, explicit_window;
    xcp_u32 mode, routed, binds, competes, jumps;
};

void xcp_shim_robust_sender_view(const struct xcp_robust_sender *s,
                                 struct xcp_shim_robust_sender_view *v) {
    struct xcp_shim_robust_sender_view view = {
        s->xcp.cwnd, s->bound, s->base_ns,  s->explicit_window,        s->mode,
        s->routed,   s->binds, s->competes, xcp_jumps_often(&s->jumps)};
    *v = view;
}

xcp_u64 xcp_shim_root(xcp_u64 v, xcp_u32 cube) {
    return cube ? xcp_icbrt(v) : xcp_isqrt(v);
}

xcp_u32 xcp_shim_log2_q16(xcp_u32 v) {
    return xcp_log2_q16(v);
}

void xcp_shim_cubic(struct xcp_cubic *c, xcp_u32 what, xcp_u64 window, xcp_u64 now, xcp_u64 srtt_ns,
                    xcp_u32 segments) {
    if (what == 0)
        xcp_cubic_start(c, window);
    else if (what == 1)
        xcp_cubic_acked(c, now, srtt_ns, (xcp_u64)segments << 32, 1);
    else
        xcp_cubic_lost(c, window);
}
