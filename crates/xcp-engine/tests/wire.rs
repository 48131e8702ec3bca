//! Words and options: every code of both formats, published vectors, and blocks that somebody else
//! wrote.

use proptest::prelude::*;
use xcp_engine::{
    EXTENDED_LENGTH_MAX, ExtendedOption, ForwardHeader, ReturnHeader, RobustSender, Rounding,
    Sendable, WAIT_MAX, WireFormat, find_options, flags, read_classic_forward, read_classic_return,
    read_extended, write_classic_forward, write_classic_return, write_extended,
};

const EXTENDED: WireFormat = WireFormat::Extended;
const CLASSIC: WireFormat = WireFormat::Classic;

#[test]
fn extended_codes_are_fixed_points_in_order() {
    let mut last = 0;
    for code in 1..=u16::MAX {
        let ns = EXTENDED.decode_rtt(code).expect("known");
        assert!(ns > last);
        assert_eq!(EXTENDED.encode_rtt(ns), code);
        last = ns;
    }
    let mut last = 0.0;
    for code in 1024..=u16::MAX {
        let packets = EXTENDED.decode_window(code).expect("known");
        assert!(packets > last);
        assert_eq!(EXTENDED.encode_window(packets), code);
        last = packets;
    }
    assert!((0..1024).all(|code| EXTENDED.decode_window(code).is_none()));
    let mut last = -1.0;
    for code in 0..=0x7fff {
        let rate = EXTENDED.decode_feedback(code);
        if rate >= 4.3e12 {
            break; // decoding saturates
        }
        assert!(rate > last);
        for rounding in [Rounding::TowardsZero, Rounding::Nearest, Rounding::Random(u64::MAX)] {
            assert_eq!(EXTENDED.encode_feedback(rate, rounding), code);
            assert_eq!(
                EXTENDED.encode_feedback(-rate, rounding),
                if code == 0 { 0 } else { code | 0x8000 }
            );
        }
        assert_eq!(EXTENDED.decode_feedback(code | 0x8000), -rate);
        last = rate;
    }
}

#[test]
fn classic_codes_are_what_the_2005_study_says() {
    for code in 0..=u16::MAX {
        // bits 15..3 two's complement, bits 2..0 exponent
        let (m, e) = (i64::from(code as i16 >> 3), i32::from(code & 7));
        let packets = m as f64 * 16f64.powi(e - 3);
        assert_eq!(CLASSIC.decode_feedback(code), packets);
        let smallest =
            (0..8).find(|e| (packets * 16f64.powi(3 - e)).abs().round() <= 4095.0).unwrap_or(7);
        let again = CLASSIC.encode_feedback(packets, Rounding::Nearest);
        if m == -4096 && e == 7 {
            // the encoder's range is symmetric
            assert_eq!(CLASSIC.decode_feedback(again), -4095.0 * 65536.0);
            continue;
        }
        assert_eq!(i32::from(again & 7), if m == 0 { 0 } else { smallest });
        // the value survives where its mantissa can be held by the exponent chosen; -4096 * 16^e
        // moves up and stays exact
        assert_eq!(CLASSIC.decode_feedback(again), packets, "code {code:#06x}");
    }
}

#[test]
fn classic_vectors() {
    for (packets, code) in [
        (0.0, 0x0000u16),
        (1.0 / 4096.0, 0x0008),
        (-1.0 / 4096.0, 0xfff8),
        (0.25, 0x2000),
        (1.0, 0x0801),
        (-1.0, 0xf801),
        (4095.0 / 4096.0, 0x7ff8),
        (1.5, 0x0c01),
        (1000.0, 0x1f43),
        (-1000.0, 0xe0c3),
        (4095.0 * 65536.0, 0x7fff),
        (1e12, 0x7fff),
        (-1e12, 0x800f),
    ] {
        assert_eq!(CLASSIC.encode_feedback(packets, Rounding::Nearest), code, "{packets}");
    }
    let h = ForwardHeader {
        flags: flags::PRESENT | flags::CLASSIC,
        ..ForwardHeader::encode(CLASSIC, 500_000_000, 416.0, -1.5)
    };
    assert_eq!(write_classic_forward(&h), [14, 8, 0xf4, 0x01, 0x01, 0xf4, 0x01, 0xa0]);
    assert_eq!(read_classic_forward(&write_classic_forward(&h)), h);
    let r = ReturnHeader::encode(CLASSIC, 1.5, false);
    assert_eq!(write_classic_return(&r), [15, 4, 0x0c, 0x01]);
    assert_eq!(read_classic_return(&write_classic_return(&r)), r);
}

#[test]
fn ends_of_ranges_saturate() {
    assert_eq!((EXTENDED.encode_rtt(0), EXTENDED.decode_rtt(0)), (0, None));
    assert_eq!(EXTENDED.encode_rtt(u64::MAX), 0xffff);
    assert_eq!(
        (EXTENDED.encode_window(0.0), EXTENDED.encode_window(f64::INFINITY)),
        (1024, 0xffff)
    );
    assert_eq!(EXTENDED.encode_feedback(f64::INFINITY, Rounding::Nearest), 0x7fff);
    assert_eq!(EXTENDED.encode_feedback(f64::NEG_INFINITY, Rounding::Nearest), 0xffff);
    assert_eq!(
        (CLASSIC.encode_rtt(0), CLASSIC.encode_rtt(1), CLASSIC.encode_rtt(u64::MAX)),
        (0, 1, 0xffff)
    );
    assert_eq!((CLASSIC.encode_window(0.1), CLASSIC.encode_window(1e9)), (1, 0xffff));
}

fn header(ids: bool) -> impl Strategy<Value = ForwardHeader> {
    (any::<(u16, u16, u16, u32, u32, bool, bool)>(), 0..=WAIT_MAX).prop_map(
        move |((rtt, window, feedback, a, b, mark, keeps), wait)| ForwardHeader {
            rtt,
            window,
            feedback,
            flags: flags::PRESENT
                | if mark { flags::MARK } else { 0 }
                | if keeps { flags::KEEPS } else { 0 }
                | if ids { flags::IDS } else { 0 },
            wait,
            bottleneck_id: if ids { a } else { 0 },
            next_bottleneck_id: if ids { b } else { 0 },
        },
    )
}

fn returned(ids: bool) -> impl Strategy<Value = ReturnHeader> {
    (any::<(u16, u32, bool, bool)>(), 0..=WAIT_MAX).prop_map(
        move |((feedback, id, mark, keeps), wait)| ReturnHeader {
            feedback,
            flags: flags::PRESENT
                | if mark { flags::MARK } else { 0 }
                | if keeps { flags::KEEPS } else { 0 }
                | if ids { flags::IDS } else { 0 },
            wait,
            next_bottleneck_id: if ids { id } else { 0 },
        },
    )
}

fn option() -> impl Strategy<Value = ExtendedOption> {
    any::<(bool, bool, bool)>().prop_flat_map(|(f, r, ids)| {
        let forward = if f { header(ids).boxed() } else { Just(ForwardHeader::default()).boxed() };
        let returned =
            if r { returned(ids).boxed() } else { Just(ReturnHeader::default()).boxed() };
        (forward, returned).prop_map(move |(forward, mut returned)| {
            if f {
                returned.flags &= !flags::KEEPS; // K is the forward header's
            }
            ExtendedOption { forward, returned, ids }
        })
    })
}

/// The bit that says that a packet was sent at once is another one's in whoever answers, and in a SYN
/// nobody's.
#[test]
fn only_data_that_answer_nothing_say_that_they_were_sent_at_once() {
    let says = |rtt_ns: u64, answers: bool| {
        let mut forward = ForwardHeader::encode(EXTENDED, rtt_ns, 8.0, 0.0);
        forward.flags |= flags::OPENS;
        let returned = ReturnHeader::encode(EXTENDED, 0.0, false);
        let none = ReturnHeader::default();
        let option =
            ExtendedOption { forward, returned: if answers { returned } else { none }, ids: false };
        let mut buffer = [0; EXTENDED_LENGTH_MAX];
        let n = write_extended(&mut buffer, &option);
        let read = read_extended(&buffer[..n]).expect("what was written");
        assert_eq!(read.returned.flags & flags::MARK, 0);
        read.forward.flags & flags::OPENS != 0
    };
    assert!(says(80_000_000, false));
    assert!(!says(80_000_000, true), "then it is the answer's mark");
    assert!(!says(0, false), "a SYN says so by its flags");
}

/// What a TCP stack puts around: no-ops, MSS, SACK, timestamps.
fn other() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(vec![1]),
        Just(vec![2, 4, 5, 180]),
        Just(vec![8, 10, 0, 0, 0, 1, 0, 0, 0, 2]),
        any::<u8>().prop_map(|kind| vec![kind.clamp(30, 253), 3, 7]),
        Just(vec![254, 4, 0xf9, 0x89]), // another experiment
        Just(vec![14, 3, 1]),           // RFC 1146
    ]
}

/// The obvious way to read a block, for comparison: (extended, forward, return, malformed).
fn slow_find(block: &[u8]) -> (Option<usize>, Option<usize>, Option<usize>, bool) {
    let (mut ext, mut fwd, mut ret, mut signed, mut broken) = (None, None, None, false, false);
    let block = &block[..block.len().min(40)];
    let mut at = 0;
    while at < block.len() {
        let rest = &block[at..];
        match rest {
            [0, ..] => break,
            [1, ..] => at += 1,
            [kind, size, ..] if (2..=rest.len()).contains(&usize::from(*size)) => {
                let option = &rest[..usize::from(*size)];
                match (*kind, option) {
                    (254, [_, size, 0x58, 0x43, f, _, ..]) if f >> 6 == 1 => {
                        let ids = f & 8 != 0;
                        let want = 6
                            + if f & 32 != 0 { if ids { 14 } else { 6 } } else { 0 }
                            + if f & 16 != 0 { if ids { 6 } else { 2 } } else { 0 };
                        if *size == want {
                            ext = ext.or(Some(at));
                        }
                    }
                    (14, [_, 8, ..]) => fwd = fwd.or(Some(at)),
                    (15, [_, 4, ..]) => ret = ret.or(Some(at)),
                    (19 | 29, _) => signed = true,
                    _ => {}
                }
                at += option.len();
            }
            _ => {
                broken = true;
                break;
            }
        }
    }
    if signed { (None, None, None, broken) } else { (ext, fwd, ret, broken) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_found_and_read(o in option(), before in prop::collection::vec(other(), 0..4), after in prop::collection::vec(other(), 0..3)) {
        let mut buffer = [0xaa; EXTENDED_LENGTH_MAX];
        let n = write_extended(&mut buffer, &o);
        prop_assert!(buffer[n..].iter().all(|b| *b == 0xaa));
        prop_assert!(n <= 28 && n.is_multiple_of(2));
        let before = before.concat();
        let block = [&before[..], &buffer[..n], &after.concat()].concat();
        prop_assume!(before.len() + n <= 40);
        let found = find_options(&block);
        prop_assert_eq!(found.extended, Some(before.len()));
        prop_assert_eq!(read_extended(&block), Some(o));
        // in place: a word rewritten at its offset is the word read
        if o.forward.is_present() {
            let mut block = block;
            block[before.len() + 10..][..2].copy_from_slice(&[0x12, 0x34]);
            prop_assert_eq!(read_extended(&block).map(|o| o.forward.feedback), Some(0x1234));
        }
    }

    /// Random blocks, and blocks made of plausible pieces with errors in them.
    #[test]
    fn any_block(block in prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60),
        prop::collection::vec(prop_oneof![
            other(),
            (prop::sample::select(vec![14u8, 15, 254, 0, 1]), 0..30u8).prop_map(|(k, n)| vec![k, n]),
            prop::sample::select(vec![vec![29u8, 16, 1, 1], vec![19, 18], vec![29, 4, 1, 1]]),
            (prop::sample::select(vec![6u8, 12, 8, 14, 26, 20]), any::<u8>()).prop_map(|(n, f)| vec![254, n, 0x58, 0x43, f & 0x3f | 0x40, 0x11]),
            prop::collection::vec(any::<u8>(), 0..12),
        ], 0..8).prop_map(|pieces| pieces.concat()),
    ]) {
        let found = find_options(&block);
        prop_assert_eq!((found.extended, found.classic_forward, found.classic_return, found.malformed), slow_find(&block));
        if let Some(at) = found.extended {
            prop_assert!(at + usize::from(block[at + 1]) <= block.len().min(40));
            prop_assert!(read_extended(&block).is_some());
        }
    }
}

/// Beside a signature nothing is ours: whoever rewrote an option that TCP-AO signs would make a
/// forgery of the segment.
#[test]
fn signed_segments_are_left_alone() {
    for (_, option) in examples() {
        let mut buffer = [0; EXTENDED_LENGTH_MAX];
        let n = write_extended(&mut buffer, &option);
        for signature in [[29, 4, 1, 1], [19, 4, 0, 0]] {
            let (after, before) =
                ([&buffer[..n], &signature].concat(), [&signature, &buffer[..n]].concat());
            assert!(find_options(&buffer[..n]).extended.is_some());
            assert!(
                find_options(&after).extended.is_none() && find_options(&before).extended.is_none()
            );
        }
    }
}

/// docs/wire-format.md shows examples; they are what the code writes.
#[test]
fn documented_examples_hold() {
    let page = include_str!("../../../docs/wire-format.md");
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ");
    let mut expected = vec![];
    for (name, option) in examples() {
        let mut buffer = [0; EXTENDED_LENGTH_MAX];
        let n = write_extended(&mut buffer, &option);
        expected.push(format!("| {name} | {n} | `{}` |", hex(&buffer[..n])));
    }
    for ns in [1u64, 10_000, 500_000_000, 65_000_000_000] {
        let code = EXTENDED.encode_rtt(ns);
        expected.push(format!(
            "| rtt | {ns} ns | `{code:04x}` | {} ns |",
            EXTENDED.decode_rtt(code).expect("known")
        ));
    }
    for packets in [0.001, 1.0, 416.5, 1e8] {
        let code = EXTENDED.encode_window(packets);
        expected.push(format!(
            "| window | {packets} | `{code:04x}` | {} |",
            EXTENDED.decode_window(code).expect("known")
        ));
    }
    for rate in [0.0, 0.001, -1.0, 3000.0, -312_500.0, 1e12] {
        let code = EXTENDED.encode_feedback(rate, Rounding::Nearest);
        expected.push(format!(
            "| feedback | {rate} bytes/s | `{code:04x}` | {} bytes/s |",
            EXTENDED.decode_feedback(code)
        ));
    }
    for packets in [0.0, 1.0, -1.0, 0.25, -1.5, 1000.0] {
        let code = CLASSIC.encode_feedback(packets, Rounding::Nearest);
        expected.push(format!(
            "| classic feedback | {packets} packets | `{code:04x}` | {} packets |",
            CLASSIC.decode_feedback(code)
        ));
    }
    let missing: Vec<_> = expected.iter().filter(|row| !page.contains(row.as_str())).collect();
    assert!(
        missing.is_empty(),
        "docs/wire-format.md should have these rows:\n{}",
        missing.iter().map(|r| format!("{r}\n")).collect::<String>()
    );
}

fn examples() -> Vec<(&'static str, ExtendedOption)> {
    let forward = ForwardHeader::encode(EXTENDED, 500_000_000, 104.0, f64::INFINITY);
    let mut passed =
        ForwardHeader { feedback: EXTENDED.encode_feedback(-312.5, Rounding::Nearest), ..forward };
    passed.flags |= flags::MARK;
    let returned = ReturnHeader::encode(EXTENDED, -312.5, true);
    let with_ids = ForwardHeader {
        bottleneck_id: 0x0102_0304,
        next_bottleneck_id: 0x0506_0708,
        flags: passed.flags | flags::IDS,
        ..passed
    };
    let returned_ids = ReturnHeader {
        next_bottleneck_id: 0x0506_0708,
        flags: returned.flags | flags::IDS,
        ..returned
    };
    let kept = ForwardHeader { flags: forward.flags | flags::KEEPS, ..forward };
    let at_once = ForwardHeader { flags: kept.flags | flags::OPENS, ..kept };
    let kept_returned = ReturnHeader { flags: returned.flags | flags::KEEPS, ..returned };
    let behind = ForwardHeader { wait: 9, ..passed };
    let none = ExtendedOption::default();
    let mut asking = ForwardHeader::default();
    RobustSender::new(1500, 10, None)
        .write_opening(&Sendable { window_limit: u32::MAX }, &mut asking);
    vec![
        ("offer (SYN)", none),
        ("SYN that asks for ten packets", ExtendedOption { forward: asking, ..none }),
        ("data, as sent", ExtendedOption { forward, ..none }),
        ("data of a sender that keeps its rate", ExtendedOption { forward: kept, ..none }),
        ("the same, sent at once", ExtendedOption { forward: at_once, ..none }),
        ("data, after a router", ExtendedOption { forward: passed, ..none }),
        ("the same, behind 70 ms of TCP", ExtendedOption { forward: behind, ..none }),
        ("pure ACK", ExtendedOption { returned, ..none }),
        ("pure ACK to data that kept K", ExtendedOption { returned: kept_returned, ..none }),
        ("data and ACK", ExtendedOption { forward: passed, returned, ..none }),
        ("both with ids", ExtendedOption { forward: with_ids, returned: returned_ids, ids: true }),
    ]
}
