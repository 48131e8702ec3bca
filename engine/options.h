/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finding XCP's options in a raw TCP option block, reading them and writing them.
 *
 * Rules for what others send us, the same as Linux's own parser where it has one:
 *   1. A length of 0 or 1, or one that reaches past the block, ends the search; what was found
 *      before stands.
 *   2. Of several options of one sort the first counts.
 *   3. An extended option whose length is not the one its flags imply, or of another version, or
 *      with another ExID, is not ours: skipped. So is a kind 14 or 15 whose length is not the
 *      classic one (RFC 1146 used these kinds with others).
 *   4. End-of-list ends the search; no-operation is one byte.
 *   5. Beside a signature (TCP-AO, RFC 5925 §5.1; MD5, RFC 2385) nothing is found: TCP-AO's covers
 *      the options, so that who rewrites one makes the segment a forgery. (MD5's does not; its
 *      segments have no room for ours.) Offsets are returned so that a router can rewrite words in
 *      place.
 */
#ifndef XCP_OPTIONS_H
#define XCP_OPTIONS_H

#include "wire_classic.h"
#include "wire_extended.h"

#define XCP_OPTIONS_MAX 40 /* RFC 9293: 15 words of header less the fixed 5 */

#define XCP_NOT_FOUND 0xff

#define XCP_OPTION_MD5 19
#define XCP_OPTION_AO 29
#define XCP_OPTION_SIGNATURE_MIN 4 /* the shortest of them: RFC 5925 §2.2 */

/* Where the options begin in the block, or XCP_NOT_FOUND. */
struct xcp_options {
    xcp_u8 extended;
    xcp_u8 classic_forward;
    xcp_u8 classic_return;
    xcp_u8 malformed; /* the search met rule 1 */
};

/* 1 << at where different is 0, else 0: a comparison without a branch. */
XCP_INLINE xcp_u64 xcp_options_same(xcp_u64 different, xcp_u32 at) {
    XCP_OPAQUE(different);
    return ((different - 1) >> 63) << at;
}

/* Where the lowest bit of a set is, or XCP_NOT_FOUND; no branch either. */
XCP_INLINE xcp_u8 xcp_options_first(xcp_u64 set) {
    xcp_u64 none = xcp_options_same(set, 0);
    return (xcp_u8)((63 - (xcp_u32)xcp_clz((set & (0 - set)) | none)) |
                    XCP_NOT_FOUND * (xcp_u32)none);
}

/* A block of options, in a buffer that is as long as the longest. */
struct xcp_options_block {
    xcp_u8 bytes[XCP_OPTIONS_MAX];
};

/* What has been found so far: sets of places in the block. */
struct xcp_options_sets {
    xcp_u64 starts; /* where options start */
    xcp_u64 extended;
    xcp_u64 forward;
    xcp_u64 returned;
    xcp_u64 malformed; /* the search met rule 1 */
    xcp_u64 signature; /* rule 5 */
};

/*
 * Looks at one byte of a block of length bytes; returns whether the search is over. A part of its
 * own for the verifier, which would otherwise go through it for each of the forty places it can be
 * at, with all that could be known by then.
 */
XCP_PART xcp_options_look(const struct xcp_options_block *block, xcp_u32 length, xcp_u32 at,
                          struct xcp_options_sets *sets) {
    xcp_u32 kind, size, single, next;
    XCP_PART_NEEDS(block && sets);
    if (at >= length || at >= XCP_OPTIONS_MAX)
        return 1;
    if (!((sets->starts >> at) & 1))
        return 0;
    kind = block->bytes[at];
    if (kind == 0)
        return 1;
    /* 0 is malformed */
    size = at + 1 < length && at + 1 < XCP_OPTIONS_MAX ? block->bytes[at + 1] : 0;
    single = (xcp_u32)xcp_options_same(kind ^ 1, 0);
    next = at + single + (1 - single) * size;
    if (!single && (size < 2 || size > length - at)) {
        sets->malformed = 1;
        return 1;
    }
    sets->starts |= 1ULL << (next & 63);
    sets->signature |=
        xcp_options_same(kind ^ XCP_OPTION_MD5, at) | xcp_options_same(kind ^ XCP_OPTION_AO, at);
    sets->forward |= xcp_options_same(
        (kind ^ XCP_CLASSIC_FORWARD_KIND) | (size ^ XCP_CLASSIC_FORWARD_LENGTH), at);
    sets->returned |=
        xcp_options_same((kind ^ XCP_CLASSIC_RETURN_KIND) | (size ^ XCP_CLASSIC_RETURN_LENGTH), at);
    if (kind == XCP_EXTENDED_KIND && size >= XCP_EXTENDED_OFFER_LENGTH) {
        xcp_u64 here = at;
        const xcp_u8 *option;
        xcp_u32 flags, exid;
        /* The compiler knows that the option lies far enough from the end, verifiers do not: and
         * those before 6.18 only of the register that was compared. */
        XCP_OPAQUE(here);
        if (here > XCP_OPTIONS_MAX - XCP_EXTENDED_OFFER_LENGTH)
            return 0;
        option = block->bytes + here;
        flags = option[XCP_EXTENDED_AT_FLAGS];
        exid = xcp_get16(option + XCP_EXTENDED_AT_EXID);
        sets->extended |= xcp_options_same(
            (exid ^ XCP_EXTENDED_EXID) | ((flags & XCP_WIRE_VERSION_MASK) ^ XCP_WIRE_VERSION) |
                (size ^ xcp_extended_length((xcp_u8)flags)),
            at);
    }
    return 0;
}

/*
 * Looks through length bytes (at most XCP_OPTIONS_MAX are looked at). In BPF the block must be a
 * buffer of XCP_OPTIONS_MAX bytes, whatever length says: the verifier wants every index bounded by
 * a constant.
 *
 * Every byte is visited, and sets say at which of them an option starts and of what sort it is.
 * Stepping from option to option and noting the first of each sort would be the obvious way, but
 * the verifier keeps book of every position that can be stepped to or noted, and gives up.
 */
XCP_INLINE void xcp_options_find(const xcp_u8 *block, xcp_u32 length, struct xcp_options *found) {
    const struct xcp_options_block *whole = (const struct xcp_options_block *)block;
    struct xcp_options_sets sets = {1, 0, 0, 0, 0, 0};
    xcp_u64 clean;
    xcp_u32 at;
    if (length > XCP_OPTIONS_MAX)
        length = XCP_OPTIONS_MAX;
    for (at = 0; at < XCP_OPTIONS_MAX; at++) {
        if (xcp_options_look(whole, length, at, &sets))
            break;
    }
    clean = 0 - xcp_options_same(sets.signature, 0); /* all ones where there is none */
    found->extended = xcp_options_first(sets.extended & clean);
    found->classic_forward = xcp_options_first(sets.forward & clean);
    found->classic_return = xcp_options_first(sets.returned & clean);
    found->malformed = sets.malformed != 0;
}

/* What an extended option says; parts it does not have stay without XCP_PRESENT. An offer (SYN) has
 * neither part. */
struct xcp_extended {
    struct xcp_forward forward;
    struct xcp_return returned;
    xcp_u8 ids; /* the option carries ids, or, as an offer, its sender understands them */
};

/* Reads the forward header of an option that has one, ids apart: XCP_EXTENDED_FORWARD_END bytes are
 * readable. */
XCP_INLINE void xcp_extended_read_forward(const xcp_u8 *option, struct xcp_forward *out) {
    struct xcp_forward zero = {0, 0, 0, 0, 0, 0, 0};
    *out = zero;
    out->rtt = xcp_get16(option + XCP_EXTENDED_AT_RTT);
    out->window = xcp_get16(option + XCP_EXTENDED_AT_WINDOW);
    out->feedback = xcp_get16(option + XCP_EXTENDED_AT_FEEDBACK);
    out->flags =
        (xcp_u8)(XCP_PRESENT | (option[XCP_EXTENDED_AT_FLAGS] & XCP_WIRE_MARK ? XCP_MARK : 0) |
                 (option[XCP_EXTENDED_AT_FLAGS] & XCP_WIRE_KEEPS ? XCP_KEEPS : 0));
    if ((option[XCP_EXTENDED_AT_FLAGS] & (XCP_WIRE_RETURN | XCP_WIRE_AT_ONCE)) ==
            XCP_WIRE_AT_ONCE &&
        out->rtt)
        out->flags |= XCP_OPENS;
    out->wait = option[XCP_EXTENDED_AT_WAIT] >> 4;
}

/* Where the ids of an option with a forward header are: two words of 32 bits. */
XCP_INLINE xcp_u32 xcp_extended_ids_at(xcp_u8 flags) {
    return XCP_EXTENDED_FORWARD_END + ((xcp_u32)flags >> 4 & 1) * 2;
}

/* Their values, for a header that has been read; ids: where they are. */
XCP_INLINE void xcp_extended_read_ids(const xcp_u8 *ids, struct xcp_forward *out) {
    out->flags |= XCP_IDS;
    out->bottleneck_id = xcp_get32(ids);
    out->next_bottleneck_id = xcp_get32(ids + 4);
}

/* What a router changes of such an option, written in place, the next id apart: the mark, whether
 * the sender's keeping its rate is of use, the wait, the feedback. */
XCP_INLINE void xcp_extended_rewrite(xcp_u8 *option, const struct xcp_forward *forward) {
    xcp_u8 flags = option[XCP_EXTENDED_AT_FLAGS] & (xcp_u8)~XCP_WIRE_KEEPS;
    flags |= (xcp_u8)(forward->flags & XCP_MARK ? XCP_WIRE_MARK : 0);
    flags |= (xcp_u8)(forward->flags & XCP_KEEPS ? XCP_WIRE_KEEPS : 0);
    option[XCP_EXTENDED_AT_FLAGS] = flags;
    option[XCP_EXTENDED_AT_WAIT] =
        (xcp_u8)(forward->wait << 4 | (option[XCP_EXTENDED_AT_WAIT] & 15));
    xcp_put16(option + XCP_EXTENDED_AT_FEEDBACK, forward->feedback);
}

/* Reads an option that xcp_options_find found: option is its first byte, xcp_extended_length(flags)
 * bytes are readable. */
XCP_INLINE void xcp_extended_read(const xcp_u8 *option, struct xcp_extended *out) {
    struct xcp_extended zero = {{0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0}, 0};
    xcp_u8 flags = option[XCP_EXTENDED_AT_FLAGS], wait = option[XCP_EXTENDED_AT_WAIT];
    xcp_u8 ids = flags & XCP_WIRE_IDS ? XCP_IDS : 0;
    *out = zero;
    out->ids = ids != 0;
    if (flags & XCP_WIRE_FORWARD) {
        xcp_extended_read_forward(option, &out->forward);
        out->forward.flags |= ids;
    }
    if (flags & XCP_WIRE_RETURN) {
        xcp_u32 at =
            flags & XCP_WIRE_FORWARD ? XCP_EXTENDED_FORWARD_END : XCP_EXTENDED_OFFER_LENGTH;
        /* else what is even is or-ed with 1, and the verifier wants addresses added to */
        XCP_OPAQUE(at);
        out->returned.feedback = xcp_get16(option + at);
        out->returned.flags =
            (xcp_u8)(XCP_PRESENT | ids | (flags & XCP_WIRE_MARK_RETURNED ? XCP_MARK : 0));
        /* beside a forward header it is that one's */
        if (!(flags & XCP_WIRE_FORWARD))
            out->returned.flags |= (xcp_u8)(flags & XCP_WIRE_KEEPS ? XCP_KEEPS : 0);
        out->returned.wait = wait & 15;
    }
    if (ids) {
        const xcp_u8 *at = option + 6;
        if (flags & XCP_WIRE_FORWARD)
            at += 6;
        if (flags & XCP_WIRE_RETURN)
            at += 2;
        if (flags & XCP_WIRE_FORWARD) {
            xcp_extended_read_ids(at, &out->forward);
            at += 8;
        }
        if (flags & XCP_WIRE_RETURN)
            out->returned.next_bottleneck_id = xcp_get32(at);
    }
}

/*
 * Writes an extended option into a buffer of XCP_EXTENDED_LENGTH_MAX bytes and returns its length.
 * A header without XCP_PRESENT is left out; both left out make an offer. Ids are written if ids is
 * not 0.
 */
XCP_INLINE xcp_u32 xcp_extended_write(xcp_u8 *option, const struct xcp_forward *forward,
                                      const struct xcp_return *returned, int ids) {
    xcp_u8 flags = XCP_WIRE_VERSION, wait = 0;
    xcp_u8 *at = option + 6;
    if (forward->flags & XCP_PRESENT) {
        flags |= XCP_WIRE_FORWARD | (forward->flags & XCP_MARK ? XCP_WIRE_MARK : 0) |
                 (forward->flags & XCP_KEEPS ? XCP_WIRE_KEEPS : 0);
        if (!(returned->flags & XCP_PRESENT) && forward->rtt)
            flags |= forward->flags & XCP_OPENS ? XCP_WIRE_AT_ONCE : 0;
        wait |= (xcp_u8)((forward->wait > XCP_WAIT_MAX ? XCP_WAIT_MAX : forward->wait) << 4);
        xcp_put16(option + XCP_EXTENDED_AT_RTT, forward->rtt);
        xcp_put16(option + XCP_EXTENDED_AT_WINDOW, forward->window);
        xcp_put16(option + XCP_EXTENDED_AT_FEEDBACK, forward->feedback);
        at += 6;
    }
    if (returned->flags & XCP_PRESENT) {
        flags |= XCP_WIRE_RETURN | (returned->flags & XCP_MARK ? XCP_WIRE_MARK_RETURNED : 0);
        if (!(flags & XCP_WIRE_FORWARD))
            flags |= returned->flags & XCP_KEEPS ? XCP_WIRE_KEEPS : 0;
        wait |= returned->wait > XCP_WAIT_MAX ? XCP_WAIT_MAX : returned->wait;
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
    option[XCP_EXTENDED_AT_WAIT] = wait;
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
