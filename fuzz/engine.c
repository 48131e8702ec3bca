/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Feeds hostile bytes to engine/: option blocks, headers, laws, times and sizes. With libFuzzer:
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Iengine \
 *       fuzz/engine.c -o /tmp/fuzz-engine &&
 * /tmp/fuzz-engine
 *
 * Without it (-DXCP_STANDALONE) main() makes its own bytes from a seed;
 * crates/xcp-engine/tests/compile.rs runs that under the sanitizers. What must hold whatever comes
 * in is checked with CHECK; everything undefined is the sanitizers' business.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xcp.h"

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                             \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Bytes as they come; zeros when they run out. */
struct input {
    const uint8_t *at;
    size_t left;
};

static uint64_t take(struct input *in, size_t n) {
    uint64_t v = 0;
    while (n--) {
        v = v << 8 | (in->left ? *in->at : 0);
        if (in->left) {
            in->at++;
            in->left--;
        }
    }
    return v;
}

/* 64 bits, small values and extreme ones as likely as others. */
static uint64_t word(struct input *in) {
    uint8_t how = (uint8_t)take(in, 1);
    if (how < 96)
        return take(in, 8) >> (how & 63);
    if (how < 128)
        return ~0ULL << (how & 63);
    return take(in, 1 + (how & 7));
}

static void forward(struct input *in, struct xcp_forward *h) {
    h->rtt = (uint16_t)take(in, 2);
    h->window = (uint16_t)take(in, 2);
    h->feedback = (uint16_t)take(in, 2);
    h->flags = (uint8_t)take(in, 1);
    h->wait = (uint8_t)take(in, 1);
    h->bottleneck_id = h->next_bottleneck_id = 0;
}

static void fuzz_options(struct input *in) {
    uint32_t length = (uint32_t)take(in, 1) % 48, i;
    uint8_t *block = malloc(
        length ? length : 1); /* exactly as long: the address sanitizer sees one byte too many */
    struct xcp_options found;
    for (i = 0; i < length; i++)
        block[i] = (uint8_t)take(in, 1);
    xcp_options_find(block, length, &found);
    if (found.extended != XCP_NOT_FOUND) {
        uint8_t again[XCP_EXTENDED_LENGTH_MAX];
        struct xcp_extended e;
        uint32_t n;
        xcp_extended_read(block + found.extended, &e);
        n = xcp_extended_write(again, &e.forward, &e.returned, e.ids);
        CHECK(n == block[found.extended + 1]);
        CHECK(e.forward.flags == 0 || memcmp(again + 6, block + found.extended + 6, 6) == 0);
    }
    if (found.classic_forward != XCP_NOT_FOUND) {
        uint8_t again[XCP_CLASSIC_FORWARD_LENGTH];
        struct xcp_forward h;
        xcp_classic_read_forward(block + found.classic_forward, &h);
        xcp_classic_write_forward(again, &h);
        CHECK(memcmp(again, block + found.classic_forward, sizeof(again)) == 0);
    }
    if (found.classic_return != XCP_NOT_FOUND) {
        struct xcp_return h;
        xcp_classic_read_return(block + found.classic_return, &h);
    }
    free(block);
}

static int64_t value(uint16_t feedback, uint8_t flags) {
    return flags & XCP_CLASSIC ? xcp_classic_feedback_decode(feedback)
                               : xcp_extended_feedback_decode(feedback);
}

static void fuzz_router(struct input *in) {
    static struct xcp_router r; /* static: what init forgets to set would be seen */
    static struct xcp_policer policer;
    struct xcp_policed_set table[4];
    struct xcp_law law;
    uint64_t now = word(in);
    uint8_t how = (uint8_t)take(in, 1);
    int wrong;
    xcp_law_xcp(&law, word(in));
    if (how & 1) {
        law.min_interval_ns = word(in);
        law.max_interval_ns = word(in);
        law.queue_target = word(in);
        law.alpha = (uint32_t)word(in);
        law.beta = (uint32_t)word(in);
        law.gamma = (uint32_t)word(in);
        law.overhead = (uint32_t)word(in);
    }
    law.interval = how >> 1 & 1;
    law.gain = how >> 2 & 1;
    law.input = how >> 3 & 1;
    law.pools = how >> 4 & 1;
    law.shuffle = how >> 5 & 1;
    law.capacity_for_xcp = how >> 6 & 1;
    law.spare =
        (how >> 7) + (how >> 5 & 1); /* scaled with either shuffle, limited with the one it needs */
    wrong = xcp_router_init(&r, &law, now, word(in));
    CHECK(wrong || !law.capacity_for_xcp || law.input);
    if (wrong) {
        law.capacity = law.capacity % XCP_CAPACITY_MAX + 1;
        law.min_interval_ns = 1 + law.min_interval_ns % XCP_INTERVAL_LIMIT;
        if (law.max_interval_ns < law.min_interval_ns || law.max_interval_ns > XCP_INTERVAL_LIMIT)
            law.max_interval_ns = XCP_INTERVAL_LIMIT;
        law.queue_target %= XCP_CAPACITY_MAX;
        law.alpha |= 1;
        law.overhead %= XCP_OVERHEAD_MAX;
        law.capacity_for_xcp &= law.input;
        CHECK(xcp_router_init(&r, &law, now, word(in)) == XCP_LAW_OK);
    }
    xcp_policer_init(&policer, &r, 1 + word(in) % XCP_INTERVAL_LIMIT, now);
    __builtin_memset(table, 0, sizeof(table));
    while (in->left) {
        uint64_t backlog = word(in);
        uint32_t size = (uint32_t)word(in);
        struct xcp_forward h;
        uint8_t what = (uint8_t)take(in, 1);
        now = what & 0x80 ? word(in) : now + word(in) % (1 + r.interval_ns);
        switch (what & 7) {
        case 0:
            xcp_router_other_arrival(&r, now, size, what & 8, backlog);
            break;
        case 1:
            xcp_router_other_departure(&r, now, size, what & 8, backlog);
            break;
        case 2:
            xcp_router_set_capacity(&r, word(in));
            break;
        case 3:
            if (what & 8) { /* a million packets at once */
                forward(in, &h);
                r.sum_x.hi += word(in) >> 2;
                r.input += word(in);
            }
            break;
        default: {
            uint16_t before;
            forward(in, &h);
            if (what & 16) {
                h.flags |= XCP_IDS;
                h.bottleneck_id = what & 32 ? r.id : 0;
            }
            if (what & 64) {
                uint64_t hash = xcp_policer_hash(&policer, what & 32 ? word(in) : 1);
                uint32_t segments = 1 + (uint32_t)take(in, 1) * 256;
                xcp_router_tick(&r, now, backlog);
                if (xcp_policer_packet(&policer, &r, &table[xcp_policer_place(hash, 4)],
                                       (uint32_t)hash, now, size, segments, &h))
                    break;
                CHECK(r.believed_rtt_ns >= 1 && r.believed_rtt_ns <= XCP_INTERVAL_LIMIT &&
                      policer.cost.m);
            }
            xcp_router_arrival(&r, now, size, &h, backlog);
            before = h.feedback;
            xcp_router_departure(&r, now, size, &h, backlog);
            CHECK(value(h.feedback, h.flags) <= value(before, h.flags));
        }
        }
        CHECK(r.pool_pos <= XCP_Q20_MAX && r.pool_neg <= XCP_Q20_MAX);
        CHECK(r.interval_ns >= 1 && r.queue_period_ns >= 1);
        CHECK(r.limited.pool_hp <= XCP_Q20_MAX && r.limited.pool_hn <= XCP_Q20_MAX);
        CHECK(r.d.m >> 31 == 1);
    }
}

static void fuzz_ends(struct input *in) {
    static struct xcp_sender s;
    static struct xcp_receiver r;
    uint32_t classic = (uint32_t)take(in, 1) & 1;
    xcp_sender_init(&s, classic, (uint32_t)word(in), word(in), word(in), word(in),
                    (uint32_t)take(in, 1) & 1);
    xcp_receiver_init(&r, classic);
    while (in->left) {
        struct xcp_forward h;
        struct xcp_return back;
        uint64_t now = word(in), srtt = word(in);
        switch (take(in, 1) & 7) {
        case 0:
            xcp_sender_timeout(&s);
            break;
        case 1:
            xcp_sender_halve(&s);
            break;
        case 2:
            back.feedback = (uint16_t)take(in, 2);
            back.flags = (uint8_t)take(in, 1);
            back.wait = 0;
            back.next_bottleneck_id = 0;
            xcp_sender_feedback(&s, now, &back, srtt, (uint32_t)take(in, 1) & 1,
                                (uint32_t)take(in, 1));
            break;
        case 3:
            forward(in, &h);
            xcp_receiver_data(&r, &h, (uint32_t)word(in));
            break;
        case 4:
            back = xcp_receiver_return(&r, (uint32_t)take(in, 1));
            xcp_sender_feedback(&s, now, &back, srtt, 1, 1);
            break;
        default:
            xcp_sender_header(&s, now, srtt, (uint32_t)word(in), &h);
            xcp_receiver_data(&r, &h, 1);
        }
        CHECK(s.cwnd >= s.min_window && s.cwnd <= s.max_window && xcp_sender_cwnd(&s) >= 1);
        CHECK(r.sum <= XCP_SUM_MAX && r.sum >= -XCP_SUM_MAX);
    }
}

static void fuzz_numbers(struct input *in) {
    while (in->left) {
        struct xcp_num a = xcp_num_scaled(word(in), (int16_t)take(in, 2)),
                       b = xcp_num_scaled(word(in), (int16_t)take(in, 2));
        struct xcp_acc acc = {word(in) >> 1, word(in)};
        int32_t e = (int16_t)take(in, 2);
        uint64_t dither = word(in), m = word(in);
        xcp_num_mul(a, b);
        xcp_num_div(a, b);
        xcp_num_less(a, b);
        xcp_num_q20(a);
        xcp_acc_add(&acc, m, e);
        CHECK(acc.hi >> 63 == 0);
        xcp_acc_num(&acc, -64);
        xcp_extended_feedback_encode(m >> 1, e, (uint32_t)dither & 1, dither);
        xcp_extended_window_encode(m, e);
        xcp_extended_rtt_encode(m);
        xcp_classic_feedback_encode(m >> 1, e, (uint32_t)dither & 1, dither);
        xcp_classic_rtt_encode(m);
        xcp_classic_window_encode(m);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input in = {data, size};
    switch (take(&in, 1) & 3) {
    case 0:
        fuzz_options(&in);
        break;
    case 1:
        fuzz_router(&in);
        break;
    case 2:
        fuzz_ends(&in);
        break;
    default:
        fuzz_numbers(&in);
    }
    return 0;
}

#ifdef XCP_STANDALONE
/* main SEED ROUNDS */
int main(int argc, char **argv) {
    uint64_t state = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    long rounds = argc > 2 ? atol(argv[2]) : 10000, i;
    static const uint8_t likely[] = {0,    1,    6,    8,    12,   14,   15,   26,  254,
                                     0x58, 0x43, 0x60, 0x70, 0x78, 0xff, 0x80, 0x7f};
    static uint8_t data[1024];
    for (i = 0; i < rounds; i++) {
        size_t size = (size_t)(xcp_dither_next(&state) >> 40) % sizeof(data), k;
        for (k = 0; k < size; k++) {
            uint64_t v = xcp_dither_next(&state) >> 32;
            data[k] = v & 3 ? (uint8_t)(v >> 8) : likely[(v >> 8) % sizeof(likely)];
        }
        if (i % 3 == 0 && size > 48) { /* a block that begins with a plausible option */
            static const uint8_t start[] = {0, 40, 1, 1, 254, 12, 0x58, 0x43, 0x60};
            memcpy(data, start, sizeof(start));
            data[5] = likely[data[20] % sizeof(likely)];
            data[8] = (uint8_t)(0x40 | (data[21] & 0x3f));
        }
        LLVMFuzzerTestOneInput(data, size);
    }
    printf("%ld rounds\n", rounds);
    return 0;
}
#endif
