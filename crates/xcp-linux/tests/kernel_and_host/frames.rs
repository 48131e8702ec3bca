//! What is shown to both sides: any law that the engine takes, and random and hostile frames.

use proptest::prelude::*;
use xcp_engine::{
    CapacityForXcp, ForwardHeader, Gain, Input, Interval, Preset, RouterConfig, Shuffle, Spare,
    Tcp, WireFormat,
};

use crate::host::{Found, Packet, find_ip, find_tcp, folded, sum};
use crate::{MS, id};

/// Any law without a calendar that the engine takes.
pub fn law() -> impl Strategy<Value = RouterConfig> {
    let choices = (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        0..3u8,
        1..=255u8,
    );
    let preset = prop::sample::select(Preset::DRAFT.to_vec());
    let mixed = (choices, preset, any::<bool>()).prop_map(
        |((own, longest, other, minus, matching, spare, most), preset, mix)| {
            let law = RouterConfig::preset(preset, 1);
            if !mix {
                return law;
            }
            RouterConfig {
                gain: if own { Gain::OwnRtt } else { Gain::Uniform },
                interval: if longest { Interval::Max } else { Interval::Mean },
                input: if other { Input::All } else { Input::Xcp },
                capacity_for_xcp: if minus && !other {
                    CapacityForXcp::MinusOther
                } else {
                    CapacityForXcp::Configured
                },
                shuffle: if matching { Shuffle::Matching } else { Shuffle::All },
                spare: match spare {
                    1 => Spare::Scaled,
                    2 if matching => Spare::Limited,
                    _ => Spare::All,
                },
                spare_most: most,
                ..law
            }
        },
    );
    let capacity = prop_oneof![10_000..2_000_000_000u64, 10_000..1_000_000u64];
    (mixed, capacity, 0..100u32, any::<bool>(), prop_oneof![Just(0u64), 0..1_000_000u64]).prop_map(
        |(law, capacity_bytes_per_sec, overhead_bytes, pools, queue_target_bytes)| RouterConfig {
            capacity_bytes_per_sec,
            overhead_bytes,
            pools,
            queue_target_bytes,
            ..law
        },
    )
}

/// Any law with one.
pub fn robust_law() -> impl Strategy<Value = RouterConfig> {
    let capacity = prop_oneof![10_000..2_000_000_000u64, 10_000..1_000_000u64];
    let target = prop_oneof![Just(0u64), 0..1_000_000u64];
    (capacity, 0..100u32, target, 1..1000u32, any::<bool>()).prop_map(
        |(capacity, overhead_bytes, queue_target_bytes, alpha, steered)| RouterConfig {
            overhead_bytes,
            // as long as it may be with a calendar, at most
            queue_target_bytes: queue_target_bytes % ((capacity / 200).max(3000) + 1),
            alpha: f64::from(alpha) / 1000.0,
            tcp: if steered { Tcp::Steered } else { Tcp::Left },
            ..RouterConfig::preset(Preset::Robust, capacity)
        },
    )
}

fn option() -> impl Strategy<Value = Vec<u8>> {
    let extended = (any::<u8>(), any::<u8>(), prop::collection::vec(any::<u8>(), 20), 0..8u8)
        .prop_map(|(flags, wait, words, lie)| {
            let flags = if lie == 0 { flags } else { flags & 0x3f | 0x40 };
            let (f, r, i) = (
                usize::from(flags >> 5 & 1),
                usize::from(flags >> 4 & 1),
                usize::from(flags >> 3 & 1),
            );
            let length = 6 + 6 * f + 2 * r + i * (8 * f + 4 * r);
            let mut option = vec![254, length as u8, 0x58, 0x43, flags, wait];
            option.extend(&words[..length - 6]);
            if lie == 1 {
                option[1] ^= 4;
            }
            option
        });
    // Values as real senders have them, so that the law has something to do.
    let usual = (1_000_000..300_000_000u64, 1.0..1000.0f64, any::<bool>(), 0..5u8, 0..3u8)
        .prop_map(|(rtt, window, asks, limited_by, keeps)| {
            let code = |v: u16| v.to_be_bytes();
            // With ids: of no link, of this one, of another.
            let ids = [0, id(), 77].get(usize::from(limited_by)).copied();
            let mut option = vec![254, 12, 0x58, 0x43, 0x60 | u8::from(keeps > 0), 0];
            option.extend(code(WireFormat::Extended.encode_rtt(rtt)));
            option.extend(code(WireFormat::Extended.encode_window(window)));
            option.extend(code(if asks { 0x7fff } else { 0x1234 }));
            if let Some(id) = ids {
                option[1] = 20;
                option[4] |= 0x08;
                option.extend(id.to_be_bytes());
                option.extend([0, 0, 0, 0]);
            }
            option
        });
    let classic = (any::<u16>(), any::<u16>(), any::<u16>(), 0..3u8).prop_map(
        |(feedback, rtt, window, which)| {
            let mut option = vec![14, 8];
            option.extend(feedback.to_be_bytes());
            option.extend((rtt % 1000).to_be_bytes());
            option.extend((window % 1000).to_be_bytes());
            if which == 2 { vec![15, 4, option[2], option[3]] } else { option }
        },
    );
    prop_oneof![
        6 => usual,
        3 => extended,
        2 => classic,
        2 => Just(vec![1]),
        1 => Just(vec![0]),
        2 => Just(vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]),
        1 => (1..4u8).prop_map(|n| { let mut o = vec![1, 1, 5, 2 + 8 * n]; o.extend(vec![7; 8 * usize::from(n)]); o }),
        1 => prop::collection::vec(any::<u8>(), 1..6),
    ]
}

fn options() -> impl Strategy<Value = Vec<u8>> {
    let linux = (option(), any::<bool>()).prop_map(|(mut ours, two)| {
        let mut all = vec![1, 1, 8, 10, 9, 8, 7, 6, 5, 4, 3, 2];
        if two {
            all.extend([1, 1, 5, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
        }
        all.append(&mut ours);
        all
    });
    let any = prop::collection::vec(option(), 0..4).prop_map(|o| o.concat());
    prop_oneof![2 => linux, 2 => any].prop_map(|mut block| {
        while block.len() % 4 != 0 {
            block.push(1);
        }
        block.truncate(40);
        block
    })
}

/// A frame of a kind, with its lengths and checksums right; `hostile` bytes are then overwritten.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let header = (
        options(),
        prop_oneof![1 => Just(0usize), 4 => 0..1400usize],
        0..3usize,
        prop_oneof![4 => Just(0u8), 1 => 1..12u8],
        prop_oneof![9 => Just(6u8), 1 => any::<u8>()],
    );
    let hostile = prop_oneof![6 => Just(vec![]), 1 => prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)];
    let cut = prop_oneof![9 => Just(None), 1 => any::<prop::sample::Index>().prop_map(Some)];
    let padding = prop_oneof![2 => Just(0usize), 1 => 1..20usize];
    (header, any::<bool>(), 0..8u8, hostile, cut, padding).prop_map(
        |((options, payload, tags, extra, protocol), six, offset, hostile, cut, padding)| {
            let mut frame = vec![2; 12];
            for _ in 0..tags {
                frame.extend([0x81, 0, 0, 7]);
            }
            let mut tcp =
                vec![0, 80, 0x9c, 0x40, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0x18, 1, 0, 0, 0, 0, 0];
            tcp[12] = (((20 + options.len()) / 4) << 4) as u8;
            tcp.extend(&options);
            tcp.extend((0..payload).map(|i| i as u8));
            let ends: Vec<u8> = (0..if six { 32 } else { 8 }).collect();
            let checksum = !folded(sum(&tcp) + sum(&ends) + u64::from(protocol) + tcp.len() as u64);
            tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
            if six {
                frame.extend([0x86, 0xdd]);
                let mut chain = vec![];
                for n in 0..extra % 4 {
                    chain.extend([
                        if n + 1 == extra % 4 { protocol } else { 60 },
                        0,
                        0,
                        0,
                        0,
                        0,
                        0,
                        0,
                    ]);
                }
                let length = (chain.len() + tcp.len()) as u16;
                frame.extend([
                    0x60,
                    0,
                    0,
                    0,
                    (length >> 8) as u8,
                    length as u8,
                    if chain.is_empty() { protocol } else { 0 },
                    64,
                ]);
                frame.extend(&ends);
                frame.extend(chain);
            } else {
                frame.extend([8, 0]);
                let words = 5 + usize::from(extra) % 11;
                let length = (words * 4 + tcp.len()) as u16;
                let fragment = if offset == 7 { 0x20 } else { 0x40 };
                frame.extend([
                    0x40 | words as u8,
                    0,
                    (length >> 8) as u8,
                    length as u8,
                    0,
                    1,
                    fragment,
                    0,
                    64,
                    protocol,
                    0,
                    0,
                ]);
                frame.extend(&ends);
                frame.extend(vec![1; words * 4 - 20]);
            }
            frame.extend(tcp);
            frame.resize(frame.len() + padding, 0);
            for (index, byte) in hostile {
                let at = 12 + index.index(frame.len() - 12);
                frame[at] = byte;
            }
            if let Some(cut) = cut {
                // a test run wants a whole IP header; 54 is the shortest frame
                frame.truncate(54 + cut.index(frame.len() - 53));
            }
            frame
        },
    )
}

fn packet() -> impl Strategy<Value = Packet> {
    let segments = prop_oneof![3 => Just(0u32), 2 => 1..45u32];
    let after = prop_oneof![6 => 0..2 * MS, 1 => 0..2_000 * MS];
    let backlog = prop_oneof![2 => Just(0u32), 1 => 0..200_000u32];
    (frame(), after, backlog, segments, 0..2000u32).prop_map(
        |(frame, after_ns, backlog, segments, extra)| {
            let extra_wire = if segments > 1 { extra } else { 0 };
            Packet { frame, after_ns, backlog, extra_wire, segments }
        },
    )
}

/// Senders that a stream has.
const SENDERS: u8 = 12;

/// A packet of one of a few senders: the source address's last bits and the source port differ.
pub fn sent() -> impl Strategy<Value = Packet> {
    (packet(), 0..SENDERS).prop_map(|(mut packet, sender)| {
        if let (Found::Tcp(tcp, _), Some((_, ip))) =
            (find_tcp(&packet.frame), find_ip(&packet.frame))
        {
            let last = if packet.frame[ip] >> 4 == 4 { ip + 15 } else { ip + 23 };
            packet.frame[last] = sender >> 1;
            packet.frame[tcp + 1] = sender & 1;
        }
        packet
    })
}

/// A frame from one of two ports with options of TCP and so many bytes of data.
pub fn tcp(port: bool, options: &[u8], data: usize) -> Vec<u8> {
    let length = ((40 + options.len() + data) as u16).to_be_bytes();
    let offset = (((20 + options.len()) / 4) << 4) as u8;
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, length[0], length[1], 0, 1, 0x40, 0, 64, 6, 0, 0]);
    frame.extend([1, 2, 3, 4, 5, 6, 7, 8]);
    frame.extend([0, 80 + u8::from(port), 0x9c, 0x40, 0, 0, 0, 1, 0, 0, 0, 2]);
    frame.extend([offset, 0x10, 1, 0, 0, 0, 0, 0]);
    frame.extend(options);
    frame.resize(frame.len() + data, 7);
    frame
}

/// A frame of 1514 bytes with data, from one of two ports, that claims an RTT of 10 ms and a
/// window.
pub fn claim(port: bool, window: f64) -> Vec<u8> {
    let header = ForwardHeader::encode(WireFormat::Extended, 10 * MS, window, f64::INFINITY);
    let mut option = vec![254, 12, 0x58, 0x43, 0x60, 0];
    option.extend([header.rtt, header.window, header.feedback].map(u16::to_be_bytes).concat());
    tcp(port, &option, 1514 - 54 - option.len())
}
