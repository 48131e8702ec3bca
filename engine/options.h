/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finding XCP's options in a raw TCP option block, reading them and writing them.
 *
 * Rules for what others send us, the same as Linux's own parser where it has one:
 *   1. A length of 0 or 1, or one that reaches past the block, ends the search; what was found before stands.
 *   2. Of several options of one sort the first counts.
 *   3. An extended option whose length is not the one its flags imply, or of another version, or with another ExID, is not ours: skipped.
 *      So is a kind 14 or 15 whose length is not the classic one (RFC 1146 used these kinds with others).
 *   4. End-of-list ends the search; no-operation is one byte.
 * Offsets are returned so that a router can rewrite words in place.
 */
#ifndef XCP_OPTIONS_H
#define XCP_OPTIONS_H

#include "wire_classic.h"
#include "wire_extended.h"

#define XCP_OPTIONS_MAX 40 /* RFC 9293: 15 words of header less the fixed 5 */

#define XCP_NOT_FOUND 0xff

/* Where the options begin in the block, or XCP_NOT_FOUND. */
struct xcp_options {
    xcp_u8 extended;
    xcp_u8 classic_forward;
    xcp_u8 classic_return;
    xcp_u8 malformed; /* the search met rule 1 */
};

/*
 * Looks through length bytes (at most XCP_OPTIONS_MAX are looked at). In BPF the block must be a buffer of XCP_OPTIONS_MAX bytes, whatever
 * length says: the verifier wants every index bounded by a constant.
 */
XCP_INLINE void xcp_options_find(const xcp_u8 *block, xcp_u32 length, struct xcp_options *found) {
    xcp_u32 at = 0, step;
    found->extended = XCP_NOT_FOUND;
    found->classic_forward = XCP_NOT_FOUND;
    found->classic_return = XCP_NOT_FOUND;
    found->malformed = 0;
    if (length > XCP_OPTIONS_MAX)
        length = XCP_OPTIONS_MAX;
    for (step = 0; step < XCP_OPTIONS_MAX; step++) {
        xcp_u32 kind, size;
        if (at >= length || at >= XCP_OPTIONS_MAX)
            return;
        kind = block[at];
        if (kind == 0)
            return;
        if (kind == 1) {
            at++;
            continue;
        }
        if (at + 1 >= length || at + 1 >= XCP_OPTIONS_MAX) {
            found->malformed = 1;
            return;
        }
        size = block[at + 1];
        if (size < 2 || size > length - at) {
            found->malformed = 1;
            return;
        }
        if (kind == XCP_EXTENDED_KIND && size >= XCP_EXTENDED_OFFER_LENGTH && at + 4 < XCP_OPTIONS_MAX &&
            found->extended == XCP_NOT_FOUND) {
            xcp_u8 flags = block[at + XCP_EXTENDED_AT_FLAGS];
            if (block[at + 2] == XCP_EXTENDED_EXID >> 8 && block[at + 3] == (XCP_EXTENDED_EXID & 0xff) &&
                (flags & XCP_WIRE_VERSION_MASK) == XCP_WIRE_VERSION && size == xcp_extended_length(flags))
                found->extended = (xcp_u8)at;
        } else if (kind == XCP_CLASSIC_FORWARD_KIND && size == XCP_CLASSIC_FORWARD_LENGTH && found->classic_forward == XCP_NOT_FOUND) {
            found->classic_forward = (xcp_u8)at;
        } else if (kind == XCP_CLASSIC_RETURN_KIND && size == XCP_CLASSIC_RETURN_LENGTH && found->classic_return == XCP_NOT_FOUND) {
            found->classic_return = (xcp_u8)at;
        }
        at += size;
    }
}

/* What an extended option says; parts it does not have stay without XCP_PRESENT. An offer (SYN) has neither part. */
struct xcp_extended {
    struct xcp_forward forward;
    struct xcp_return returned;
    xcp_u8 ids; /* the option carries ids, or, as an offer, its sender understands them */
};

/* Reads an option that xcp_options_find found: option is its first byte, xcp_extended_length(flags) bytes are readable. */
XCP_INLINE void xcp_extended_read(const xcp_u8 *option, struct xcp_extended *out) {
    struct xcp_extended zero = {{0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0}, 0};
    xcp_u8 flags = option[XCP_EXTENDED_AT_FLAGS], hops = option[XCP_EXTENDED_AT_HOPS];
    xcp_u8 ids = flags & XCP_WIRE_IDS ? XCP_IDS : 0;
    *out = zero;
    out->ids = ids != 0;
    if (flags & XCP_WIRE_FORWARD) {
        out->forward.rtt = xcp_get16(option + XCP_EXTENDED_AT_RTT);
        out->forward.window = xcp_get16(option + XCP_EXTENDED_AT_WINDOW);
        out->forward.feedback = xcp_get16(option + XCP_EXTENDED_AT_FEEDBACK);
        out->forward.flags = (xcp_u8)(XCP_PRESENT | ids | (flags & XCP_WIRE_MARK ? XCP_MARK : 0));
        out->forward.hops = hops >> 4;
    }
    if (flags & XCP_WIRE_RETURN) {
        out->returned.feedback = xcp_get16(option + (flags & XCP_WIRE_FORWARD ? 12 : 6));
        out->returned.flags = (xcp_u8)(XCP_PRESENT | ids | (flags & XCP_WIRE_MARK_RETURNED ? XCP_MARK : 0));
        out->returned.hops = hops & 15;
    }
    if (ids) {
        const xcp_u8 *at = option + 6;
        if (flags & XCP_WIRE_FORWARD)
            at += 6;
        if (flags & XCP_WIRE_RETURN)
            at += 2;
        if (flags & XCP_WIRE_FORWARD) {
            out->forward.bottleneck_id = xcp_get32(at);
            out->forward.next_bottleneck_id = xcp_get32(at + 4);
            at += 8;
        }
        if (flags & XCP_WIRE_RETURN)
            out->returned.next_bottleneck_id = xcp_get32(at);
    }
}

/*
 * Writes an extended option into a buffer of XCP_EXTENDED_LENGTH_MAX bytes and returns its length. A header without XCP_PRESENT is left
 * out; both left out make an offer. Ids are written if ids is not 0.
 */
XCP_INLINE xcp_u32 xcp_extended_write(xcp_u8 *option, const struct xcp_forward *forward, const struct xcp_return *returned, int ids) {
    xcp_u8 flags = XCP_WIRE_VERSION, hops = 0;
    xcp_u8 *at = option + 6;
    if (forward->flags & XCP_PRESENT) {
        flags |= XCP_WIRE_FORWARD | (forward->flags & XCP_MARK ? XCP_WIRE_MARK : 0);
        hops |= (xcp_u8)((forward->hops > XCP_HOPS_MAX ? XCP_HOPS_MAX : forward->hops) << 4);
        xcp_put16(option + XCP_EXTENDED_AT_RTT, forward->rtt);
        xcp_put16(option + XCP_EXTENDED_AT_WINDOW, forward->window);
        xcp_put16(option + XCP_EXTENDED_AT_FEEDBACK, forward->feedback);
        at += 6;
    }
    if (returned->flags & XCP_PRESENT) {
        flags |= XCP_WIRE_RETURN | (returned->flags & XCP_MARK ? XCP_WIRE_MARK_RETURNED : 0);
        hops |= returned->hops > XCP_HOPS_MAX ? XCP_HOPS_MAX : returned->hops;
        xcp_put16(at, returned->feedback);
        at += 2;
    }
    if (ids) {
        flags |= XCP_WIRE_IDS;
        if (forward->flags & XCP_PRESENT) {
            xcp_put32(at, forward->bottleneck_id);
            xcp_put32(at + 4, forward->next_bottleneck_id);
            at += 8;
        }
        if (returned->flags & XCP_PRESENT)
            xcp_put32(at, returned->next_bottleneck_id);
    }
    option[0] = XCP_EXTENDED_KIND;
    option[1] = (xcp_u8)xcp_extended_length(flags);
    xcp_put16(option + XCP_EXTENDED_AT_EXID, XCP_EXTENDED_EXID);
    option[XCP_EXTENDED_AT_FLAGS] = flags;
    option[XCP_EXTENDED_AT_HOPS] = hops;
    return option[1];
}

/* Reads a classic forward option (kind 14). */
XCP_INLINE void xcp_classic_read_forward(const xcp_u8 *option, struct xcp_forward *out) {
    struct xcp_forward zero = {0, 0, 0, 0, 0, 0, 0};
    *out = zero;
    out->feedback = xcp_get16(option + XCP_CLASSIC_AT_FEEDBACK);
    out->rtt = xcp_get16(option + XCP_CLASSIC_AT_RTT);
    out->window = xcp_get16(option + XCP_CLASSIC_AT_WINDOW);
    out->flags = XCP_PRESENT | XCP_CLASSIC;
}

/* Writes XCP_CLASSIC_FORWARD_LENGTH bytes. */
XCP_INLINE void xcp_classic_write_forward(xcp_u8 *option, const struct xcp_forward *forward) {
    option[0] = XCP_CLASSIC_FORWARD_KIND;
    option[1] = XCP_CLASSIC_FORWARD_LENGTH;
    xcp_put16(option + XCP_CLASSIC_AT_FEEDBACK, forward->feedback);
    xcp_put16(option + XCP_CLASSIC_AT_RTT, forward->rtt);
    xcp_put16(option + XCP_CLASSIC_AT_WINDOW, forward->window);
}

/* Reads a classic return option (kind 15). */
XCP_INLINE void xcp_classic_read_return(const xcp_u8 *option, struct xcp_return *out) {
    struct xcp_return zero = {0, 0, 0, 0};
    *out = zero;
    out->feedback = xcp_get16(option + XCP_CLASSIC_AT_FEEDBACK);
    out->flags = XCP_PRESENT | XCP_CLASSIC;
}

/* Writes XCP_CLASSIC_RETURN_LENGTH bytes. */
XCP_INLINE void xcp_classic_write_return(xcp_u8 *option, const struct xcp_return *returned) {
    option[0] = XCP_CLASSIC_RETURN_KIND;
    option[1] = XCP_CLASSIC_RETURN_LENGTH;
    xcp_put16(option + XCP_CLASSIC_AT_FEEDBACK, returned->feedback);
}

#endif
