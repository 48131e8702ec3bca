//! The router programs in the kernel against the host's build of the same engine: random and
//! hostile frames, one after another, must leave the same bytes, the same state and the same
//! counters, without a policer and with one, and by the law that remembers its promises. What lies
//! around the engine, headers and checksums, is written here a second time.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use xcp_engine::{
    CapacityForXcp, ForwardHeader, Gain, Input, Interval, Other, Passage, Policer, PolicerConfig,
    PolicerState, Preset, RobustRouter, Router, RouterConfig, Shuffle, Spare, Tcp, WireFormat,
    bottleneck_id, find_options, flags, read_classic_forward, read_extended,
};
use xcp_linux::police::{Police, PoliceBy};
use xcp_linux::rehearsal::{Rehearsal, Sight};
use xcp_linux::router::RouterCounts;

const MS: u64 = 1_000_000;

/// The frame, and what is told about it.
#[derive(Debug, Clone)]
struct Packet {
    frame: Vec<u8>,
    after_ns: u64,
    backlog: u32,
    extra_wire: u32,
    segments: u32,
}

/// The one's complement sum of RFC 1071.
fn sum(bytes: &[u8]) -> u64 {
    bytes
        .chunks(2)
        .map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u64::from(*b)))
        .sum()
}

fn folded(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Where a frame's TCP header is, and whether it is all there.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Found {
    /// Offset and length of the header.
    Tcp(usize, usize),
    Other,
    Fragment,
    Broken,
    Beyond,
}

/// The protocol behind the VLAN tags, and where it begins.
fn find_ip(frame: &[u8]) -> Option<(u16, usize)> {
    let word = |at: usize| frame.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]));
    let mut at = 14;
    let mut protocol = word(12)?;
    for _ in 0..2 {
        if protocol == 0x8100 || protocol == 0x88a8 {
            protocol = word(at + 2)?;
            at += 4;
        }
    }
    Some((protocol, at))
}

fn find_tcp(frame: &[u8]) -> Found {
    let word = |at: usize| frame.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]));
    let Some((protocol, mut at)) = find_ip(frame) else { return Found::Beyond };
    if protocol != 0x0800 && protocol != 0x86dd {
        return Found::Other;
    }
    if frame.len() < at + 20 {
        return Found::Beyond;
    }
    let tcp = match frame[at] >> 4 {
        4 => {
            if frame[at + 9] != 6 {
                return Found::Other;
            }
            if word(at + 6).unwrap() & 0x3fff != 0 {
                return Found::Fragment;
            }
            let header = usize::from(frame[at] & 15) * 4;
            if header < 20 {
                return Found::Broken;
            }
            at + header
        }
        6 => {
            if frame.len() < at + 40 {
                return Found::Beyond;
            }
            let mut next = frame[at + 6];
            at += 40;
            for _ in 0..4 {
                match next {
                    6 => break,
                    44 => return Found::Fragment,
                    0 | 43 | 60 => {
                        if frame.len() < at + 8 {
                            return Found::Beyond;
                        }
                        next = frame[at];
                        at += (usize::from(frame[at + 1]) + 1) * 8;
                    }
                    _ => return Found::Other,
                }
            }
            if next != 6 {
                return Found::Other;
            }
            at
        }
        _ => return Found::Other,
    };
    if frame.len() < tcp + 20 {
        return Found::Beyond;
    }
    let length = usize::from(frame[tcp + 12] >> 4) * 4;
    if length < 20 {
        return Found::Broken;
    }
    if frame.len() < tcp + length { Found::Beyond } else { Found::Tcp(tcp, length) }
}

/// What tells a packet's sender from others, as words of memory.
fn whose(frame: &[u8], tcp: usize, by: PoliceBy) -> Vec<u64> {
    let at = find_ip(frame).unwrap().1;
    let word = |at: usize| u64::from_ne_bytes(frame[at..at + 8].try_into().unwrap());
    let half = |at: usize| u64::from(u32::from_ne_bytes(frame[at..at + 4].try_into().unwrap()));
    let four = frame[at] >> 4 == 4;
    match by {
        PoliceBy::Flow if four => vec![word(at + 12), half(tcp)],
        PoliceBy::Flow => {
            vec![word(at + 8), word(at + 16), word(at + 24), word(at + 32), half(tcp)]
        }
        PoliceBy::Source { v4, .. } if four => {
            let address = u32::from_be_bytes(frame[at + 12..at + 16].try_into().unwrap());
            let kept = u32::try_from(u64::from(address) >> (32 - v4) << (32 - v4)).unwrap();
            vec![u64::from(u32::from_ne_bytes(kept.to_be_bytes()))]
        }
        PoliceBy::Source { v6, .. } => {
            let mut address: [u8; 16] = frame[at + 8..at + 24].try_into().unwrap();
            for bit in usize::from(v6)..128 {
                address[bit / 8] &= !(0x80 >> (bit % 8));
            }
            [&address[..8], &address[8..]]
                .map(|half| u64::from_ne_bytes(half.try_into().unwrap()))
                .to_vec()
        }
    }
}

/// A hash of whose a TCP packet is: of its addresses and ports as they lie in memory, joined by
/// Knuth's MMIX generator.
fn flow(frame: &[u8], tcp: usize) -> u64 {
    whose(frame, tcp, PoliceBy::Flow)
        .into_iter()
        .reduce(|key, word| {
            key.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
                ^ word
        })
        .unwrap()
}

/// A law's state of either kind.
enum Law {
    Draft(Box<Router>),
    Robust(RobustRouter),
}

impl Law {
    fn words(&self) -> &[u64] {
        match self {
            Self::Draft(router) => router.words(),
            Self::Robust(router) => router.words(),
        }
    }
}

/// The host's side: the router, its counters, and what has passed that it has not heard of.
struct Host {
    law: Law,
    counts: RouterCounts,
    unheard: Unheard,
    policer: Option<(Policer, PoliceBy)>,
}

#[derive(Default)]
struct Unheard {
    packets: u64,
    bytes: u64,
    returned: u64,
    returned_bytes: u64,
    least_backlog: Option<u64>,
}

impl Host {
    fn new(law: Law, policer: Option<(Policer, PoliceBy)>) -> Self {
        Self { law, counts: RouterCounts::default(), unheard: Unheard::default(), policer }
    }

    /// The frame as it leaves, `None` if it is refused; state and counters are brought up to date.
    fn pass(&mut self, packet: &Packet, now: u64) -> Option<Vec<u8>> {
        let mut frame = packet.frame.clone();
        let bytes = frame.len() as u64 + u64::from(packet.extra_wire);
        let segments = u64::from(packet.segments.max(1));
        let backlog = u64::from(packet.backlog);
        let found = find_tcp(&frame);
        let mut forward = None;
        let mut returned = false;
        let mut malformed = found == Found::Broken;
        if let Found::Tcp(tcp, length) = found {
            let from = tcp + 20;
            let block = frame[from..tcp + length].to_vec();
            let options = find_options(&block);
            // Where ours is what comes first, or right after what Linux puts before it, the program
            // looks no further.
            let mut first =
                if block.len() > 12 && block.starts_with(&[1, 1, 8, 10]) { 12 } else { 0 };
            if block.len() >= first + 12 && block[first..].starts_with(&[1, 1, 5]) {
                first += 2 + usize::from(block[first + 3]);
            }
            // After ours it looks only for a signature (TCP-AO's, or MD5's), which takes four bytes
            // at the least.
            let ours = options.extended == Some(first)
                && block.len() < first + usize::from(block[first + 1]) + 4;
            let unseen = first == block.len() || ours || block.is_empty();
            malformed |= options.malformed && !unseen;
            if let (Some(at), Some(option)) = (options.extended, read_extended(&block)) {
                returned = option.returned.is_present();
                if option.forward.is_present() {
                    forward = Some((from + at, option.forward, WireFormat::Extended, tcp));
                }
            } else if let Some(at) = options.classic_forward {
                let option: &[u8; 8] = block[at..at + 8].try_into().unwrap();
                forward = Some((from + at, read_classic_forward(option), WireFormat::Classic, tcp));
            } else {
                returned = options.classic_return.is_some();
            }
        }
        let counts = &mut self.counts;
        counts.malformed += if malformed { segments } else { 0 };
        // A forward header on a packet without data is not believed.
        let empty = matches!(found, Found::Tcp(tcp, length) if frame.len() == tcp + length);
        if forward.is_none() || empty {
            let unheard = &mut self.unheard;
            unheard.packets += segments;
            unheard.bytes += bytes;
            unheard.least_backlog = Some(unheard.least_backlog.unwrap_or(u64::MAX).min(backlog));
            if returned && forward.is_none() {
                counts.returned += segments;
                counts.returned_bytes += bytes;
                unheard.returned += segments;
                unheard.returned_bytes += bytes;
            } else {
                counts.other += segments;
                counts.other_bytes += bytes;
            }
            counts.fragments += if found == Found::Fragment { segments } else { 0 };
            counts.unreadable += if found == Found::Beyond { segments } else { 0 };
            if let Law::Robust(router) = &mut self.law {
                let what = match found {
                    Found::Tcp(tcp, _) if !empty && forward.is_none() => {
                        Other::Tcp(flow(&frame, tcp))
                    }
                    _ if returned && forward.is_none() => Other::Ack,
                    _ => Other::Unknown,
                };
                if !router.other_burst(now, bytes, segments as u16, what, backlog) {
                    counts.steered += segments;
                    return None;
                }
            }
        }
        let Some((at, mut header, format, tcp)) = forward else { return Some(frame) };
        let before = frame.clone();
        if empty {
            Router::withhold(&mut header);
        } else {
            let asked = header.feedback;
            match &mut self.law {
                Law::Robust(router) => {
                    router.burst(now, bytes, segments as u16, &mut header, backlog)
                }
                Law::Draft(router) => {
                    let unheard = std::mem::take(&mut self.unheard);
                    if let Some(least) = unheard.least_backlog {
                        router.others(
                            unheard.bytes,
                            unheard.packets,
                            unheard.returned_bytes,
                            unheard.returned,
                            least,
                        );
                    }
                    if let Some((policer, by)) = &mut self.policer {
                        let key = policer.key(&whose(&frame, tcp, *by));
                        let passage = Passage {
                            now_ns: now,
                            key,
                            bytes,
                            segments: segments as u32,
                            queue_bytes: backlog,
                        };
                        if !policer.admits(router, &passage, &mut header) {
                            return None;
                        }
                    }
                    router.burst(now, bytes, segments as u16, &mut header, backlog);
                }
            }
            counts.processed += segments;
            counts.processed_bytes += bytes;
            counts.lowered += if header.feedback == asked { 0 } else { segments };
            counts.backlog = backlog;
            counts.backlog_max = counts.backlog_max.max(backlog);
        }
        if format == WireFormat::Extended {
            frame[at + 4] |= 0x04;
            frame[at + 5] = header.hops << 4 | frame[at + 5] & 15;
            frame[at + 8..at + 10].copy_from_slice(&header.window.to_be_bytes());
            frame[at + 10..at + 12].copy_from_slice(&header.feedback.to_be_bytes());
            if header.flags & flags::IDS != 0 {
                let next = at + if frame[at + 4] & 0x10 != 0 { 18 } else { 16 };
                frame[next..next + 4].copy_from_slice(&header.next_bottleneck_id.to_be_bytes());
            }
        } else {
            frame[at + 2..at + 4].copy_from_slice(&header.feedback.to_be_bytes());
            frame[at + 6..at + 8].copy_from_slice(&header.window.to_be_bytes());
        }
        // Whatever the checksum was off by before, right or wrong, it is off by afterwards: the
        // sums over all words agree.
        let words =
            |frame: &[u8]| u32::from(folded(sum(&frame[tcp..tcp + 60.min(frame.len() - tcp)])));
        let difference = (words(&before) + 0xffff - words(&frame)) % 0xffff;
        let checksum = u16::from_be_bytes([frame[tcp + 16], frame[tcp + 17]]);
        let mended = (u32::from(checksum) + difference) % 0xffff;
        frame[tcp + 16..tcp + 18].copy_from_slice(&(mended as u16).to_be_bytes());
        Some(frame)
    }
}

/// Checksums are equal modulo 0xffff: 0 and 0xffff are the same number.
fn same(a: &[u8], b: &[u8], tcp: Option<usize>) -> bool {
    let Some(tcp) = tcp else { return a == b };
    let (mut a, mut b) = (a.to_vec(), b.to_vec());
    for frame in [&mut a, &mut b] {
        if frame[tcp + 16..tcp + 18] == [0xff, 0xff] {
            frame[tcp + 16..tcp + 18].fill(0);
        }
    }
    a == b
}

/// Of all routers here.
const SEED: u64 = 42;

/// Their link's.
fn id() -> u32 {
    bottleneck_id(SEED)
}

/// Any law without a calendar that the engine takes.
fn law() -> impl Strategy<Value = RouterConfig> {
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
fn robust_law() -> impl Strategy<Value = RouterConfig> {
    let capacity = prop_oneof![10_000..2_000_000_000u64, 10_000..1_000_000u64];
    let target = prop_oneof![Just(0u64), 0..1_000_000u64];
    (capacity, 0..100u32, target, 1..1000u32, any::<bool>()).prop_map(
        |(capacity, overhead_bytes, queue_target_bytes, alpha, steered)| RouterConfig {
            overhead_bytes,
            queue_target_bytes,
            alpha: f64::from(alpha) / 1000.0,
            tcp: if steered { Tcp::Steered } else { Tcp::Left },
            ..RouterConfig::preset(Preset::Robust, capacity)
        },
    )
}

fn option() -> impl Strategy<Value = Vec<u8>> {
    let extended = (any::<u8>(), any::<u8>(), prop::collection::vec(any::<u8>(), 20), 0..8u8)
        .prop_map(|(flags, hops, words, lie)| {
            let flags = if lie == 0 { flags } else { flags & 0x3e | 0x40 };
            let (f, r, i) = (
                usize::from(flags >> 5 & 1),
                usize::from(flags >> 4 & 1),
                usize::from(flags >> 3 & 1),
            );
            let length = 6 + 6 * f + 2 * r + i * (8 * f + 4 * r);
            let mut option = vec![254, length as u8, 0x58, 0x43, flags, hops];
            option.extend(&words[..length - 6]);
            if lie == 1 {
                option[1] ^= 4;
            }
            option
        });
    // Values as real senders have them, so that the law has something to do.
    let usual = (1_000_000..300_000_000u64, 1.0..1000.0f64, any::<bool>(), 0..5u8).prop_map(
        |(rtt, window, asks, limited_by)| {
            let code = |v: u16| v.to_be_bytes();
            // With ids: of no link, of this one, of another.
            let ids = [0, id(), 77].get(usize::from(limited_by)).copied();
            let mut option = vec![254, 12, 0x58, 0x43, 0x60, 0];
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
        },
    );
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
    (header, any::<bool>(), 0..8u8, hostile, cut).prop_map(
        |((options, payload, tags, extra, protocol), six, offset, hostile, cut)| {
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
fn sent() -> impl Strategy<Value = Packet> {
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

/// The program, or why it is not here.
fn loaded(police: Option<&Police>) -> Option<Rehearsal> {
    here(Rehearsal::load_policed(false, police))
}

fn here(program: xcp_linux::Result<Rehearsal>) -> Option<Rehearsal> {
    match program {
        Ok(kernel) => Some(kernel),
        // A program that the verifier refuses must not pass for a kernel that has no BPF.
        Err(e) if xcp_linux::error::is_root() && e.to_string().contains("router program") => {
            panic!("{e}")
        }
        Err(e) => {
            xcp_skip::skipped!("root", "the kernel's build of the router against the host's: {e}");
            None
        }
    }
}

/// Shows both the same packets, `cases` times anew; what the policer did in all of them. A
/// processor that is emulated (scripts/kernels) does a part of them: `XCPNET_CASES_DIVIDED_BY` = 10
/// is a tenth.
fn same_bits(kernel: &Rehearsal, police: Option<&Police>, cases: u32) -> PolicerState {
    let all = Cell::new(PolicerState::default());
    same_bits_of(cases, law(), |law, packets| {
        let mut router = Router::new(&law, 0, SEED).unwrap();
        let policer = police.map(|police| (Policer::new(&police.config, &mut router), police.by));
        kernel
            .begin_policed(
                law.capacity_bytes_per_sec,
                &router,
                policer.as_ref().map(|(policer, _)| policer),
            )
            .unwrap();
        let mut host = Host::new(Law::Draft(Box::new(router)), policer);
        alike(kernel, &mut host, &packets, || {
            let (state, counts) = kernel.read()?;
            Ok((state.words().to_vec(), counts))
        })?;
        if let Some((policer, _)) = &host.policer {
            let (words, table) =
                kernel.read_policer().map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(&words, policer.words());
            prop_assert_eq!(&table[..], policer.table());
            let (was, more) = (all.get(), policer.state());
            all.set(PolicerState {
                refused: was.refused + more.refused,
                corrected: was.corrected + more.corrected,
                crowded: was.crowded + more.crowded,
                ..more
            });
        }
        Ok(())
    });
    all.get()
}

/// Tries laws of a kind with random packets. Returns how often.
fn same_bits_of(
    cases: u32,
    laws: impl Strategy<Value = RouterConfig>,
    show: impl Fn(RouterConfig, Vec<Packet>) -> Result<(), TestCaseError>,
) -> u32 {
    let part: u32 = std::env::var("XCPNET_CASES_DIVIDED_BY")
        .ok()
        .and_then(|part| part.parse().ok())
        .unwrap_or(1);
    let cases = (cases / part.max(1)).max(10);
    let packets = prop::collection::vec(sent(), 1..200);
    // Without persistence: failures show themselves with their seed, and the tree stays clean.
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&(laws, packets), |(law, packets)| show(law, packets));
    if let Err(e) = outcome {
        panic!("{e}");
    }
    cases
}

/// Shows both the same packets; `read`: the kernel's state and counters.
fn alike(
    kernel: &Rehearsal,
    host: &mut Host,
    packets: &[Packet],
    read: impl Fn() -> xcp_linux::Result<(Vec<u64>, RouterCounts)>,
) -> Result<(), TestCaseError> {
    let mut now = 1_000;
    for packet in packets {
        now += packet.after_ns;
        let wire_bytes = packet.frame.len() as u32 + packet.extra_wire;
        let sight = Sight {
            frame: &packet.frame,
            now_ns: now,
            backlog: packet.backlog,
            wire_bytes,
            segments: packet.segments,
        };
        let left = kernel.admit(&sight).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let should = host.pass(packet, now);
        prop_assert_eq!(
            left.is_some(),
            should.is_some(),
            "whether it passes: {:02x?}",
            packet.frame
        );
        if let (Some(left), Some(should)) = (left, should) {
            let tcp =
                if let Found::Tcp(tcp, _) = find_tcp(&packet.frame) { Some(tcp) } else { None };
            prop_assert!(
                same(&left, &should, tcp),
                "frame {:02x?}\nleft  {:02x?}\nshould {:02x?}",
                packet.frame,
                left,
                should
            );
        }
        let (state, counted) = read().map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(counted, host.counts);
        prop_assert_eq!(&state[..], host.law.words());
    }
    Ok(())
}

#[test]
fn the_same_bits_in_the_kernel_and_on_the_host() {
    let Some(kernel) = loaded(None) else { return };
    same_bits(&kernel, None, 1000);
}

/// Over many parts of a control interval, so that promises come due and the calendar's slots change
/// their length.
#[test]
fn the_same_bits_by_the_law_that_remembers() {
    let Some(kernel) = here(Rehearsal::load_robust(false)) else { return };
    let parts = Cell::new(0);
    let cases = same_bits_of(300, robust_law(), |law, packets| {
        let router = RobustRouter::new(&law, 0, SEED).unwrap();
        kernel.begin_robust(law.capacity_bytes_per_sec, &router).unwrap();
        let mut host = Host::new(Law::Robust(router), None);
        alike(&kernel, &mut host, &packets, || {
            let (state, counts) = kernel.read_robust()?;
            Ok((state.words().to_vec(), counts))
        })?;
        if let Law::Robust(router) = &host.law {
            parts.set(parts.get() + router.state().intervals);
        }
        Ok(())
    });
    assert!(parts.get() > 3 * u64::from(cases), "{} parts in {cases} cases", parts.get());
}

/// Two flows of TCP send three times the link's rate, whatever they lose, and one of XCP's sends a
/// tenth: the law has TCP's packets dropped, the same ones in the kernel and on the host.
#[test]
fn the_same_packets_of_tcp_are_dropped() {
    let capacity = 1_250_000;
    let Some(kernel) = here(Rehearsal::load_robust(false)) else { return };
    let law = RouterConfig::preset(Preset::Robust, capacity);
    let router = RobustRouter::new(&law, 0, SEED).unwrap();
    kernel.begin_robust(capacity, &router).unwrap();
    let mut host = Host::new(Law::Robust(router), None);
    for i in 0..25_000u64 {
        let mut frame = claim(i % 2 == 0, 8.0);
        if i % 30 != 0 {
            frame[54..66].fill(1); // no option of ours
        }
        let now = 1_000 + i * 400_000;
        let packet = Packet { frame, after_ns: 0, backlog: 0, extra_wire: 0, segments: 1 };
        let wire_bytes = packet.frame.len() as u32;
        let sight =
            Sight { frame: &packet.frame, now_ns: now, backlog: 0, wire_bytes, segments: 1 };
        let (left, should) = (kernel.admit(&sight).unwrap(), host.pass(&packet, now));
        assert_eq!(left.is_some(), should.is_some(), "packet {i}");
    }
    let (state, counts) = kernel.read_robust().unwrap();
    assert_eq!(&state.words()[..], host.law.words());
    assert_eq!(counts, host.counts);
    let (_, flows) = state.tcp();
    assert!(counts.steered > 100 && (1.5..2.5).contains(&flows), "{flows} flows, {counts:?}");
}

/// Few places for the senders, so that they take them from each other, too.
#[test]
fn the_same_bits_where_senders_are_policed() {
    for by in [PoliceBy::Flow, PoliceBy::ADDRESS, PoliceBy::Source { v4: 31, v6: 127 }] {
        let config =
            PolicerConfig { flows: 2, longest_rtt_ns: 400 * MS, seed: 0x1234_5678_9abc_def0 };
        let police = Police { config, by };
        let Some(kernel) = loaded(Some(&police)) else { return };
        let done = same_bits(&kernel, Some(&police), 400);
        assert!(done.corrected > 0, "{by}: nobody was corrected: {done:?}");
        assert!(by != PoliceBy::Flow || done.crowded > 0, "{by}: there was room for all: {done:?}");
    }
}

/// Two senders, one of which sends four times the link's rate whatever it is told: it is refused
/// packets, the same ones in the kernel and on the host.
#[test]
fn the_same_packets_are_refused() {
    let capacity = 1_250_000;
    let police = Police {
        config: PolicerConfig { flows: 16, longest_rtt_ns: 1_000 * MS, seed: 9 },
        by: PoliceBy::Flow,
    };
    for law in [Preset::Xcp, Preset::OwnRtt] {
        let Some(kernel) = loaded(Some(&police)) else { return };
        let mut router = Router::new(&RouterConfig::preset(law, capacity), 0, SEED).unwrap();
        let policer = Policer::new(&police.config, &mut router);
        kernel.begin_policed(capacity, &router, Some(&policer)).unwrap();
        let policer = Some((policer, police.by));
        let mut host = Host::new(Law::Draft(Box::new(router)), policer);
        let mut refused = [0, 0];
        for i in 0..40_000u64 {
            // Every tenth packet is the honest one's; RTT 10 ms, a window of five packets and of
            // forty.
            let honest = i % 10 == 0;
            let frame = claim(!honest, if honest { 5.0 } else { 40.0 });
            let now = 1_000 + i * 300_000;
            let packet = Packet { frame, after_ns: 0, backlog: 0, extra_wire: 0, segments: 1 };
            let wire_bytes = packet.frame.len() as u32;
            let sight =
                Sight { frame: &packet.frame, now_ns: now, backlog: 0, wire_bytes, segments: 1 };
            let (left, should) = (kernel.admit(&sight).unwrap(), host.pass(&packet, now));
            assert_eq!(left.is_some(), should.is_some(), "packet {i}");
            refused[usize::from(!honest)] += u32::from(left.is_none());
        }
        let (words, _) = kernel.read_policer().unwrap();
        assert_eq!(Some(&words), host.policer.as_ref().map(|(policer, _)| policer.words()));
        assert!(refused[0] == 0 && refused[1] > 10_000, "{law:?}: {refused:?}");
    }
}

/// A frame of 1514 bytes with data, from one of two ports, that claims an RTT of 10 ms and a
/// window.
fn claim(port: bool, window: f64) -> Vec<u8> {
    let header = ForwardHeader::encode(WireFormat::Extended, 10 * MS, window, f64::INFINITY);
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 5, 220, 0, 1, 0x40, 0, 64, 6, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    frame.extend([
        0,
        80 + u8::from(port),
        0x9c,
        0x40,
        0,
        0,
        0,
        1,
        0,
        0,
        0,
        2,
        0x80,
        0x10,
        1,
        0,
        0,
        0,
        0,
        0,
    ]);
    frame.extend([254, 12, 0x58, 0x43, 0x60, 0]);
    frame.extend([header.rtt, header.window, header.feedback].map(u16::to_be_bytes).concat());
    frame.resize(1514, 7);
    frame
}

/// A forward header on a packet that carries no data says nothing to the law, whatever it claims:
/// the packet is other traffic, and it may not ask for more than it has. With a byte of data it
/// counts.
#[test]
fn a_claim_without_data_is_not_believed() {
    let kernel = match Rehearsal::load(false) {
        Ok(kernel) => kernel,
        Err(e) if xcp_linux::error::is_root() && e.to_string().contains("router program") => {
            panic!("{e}")
        }
        Err(e) => {
            return xcp_skip::skipped!("root", "claims without data at the kernel's router: {e}");
        }
    };
    let asked: u16 = 0x6000;
    // RTT 1 ms, a window of one packet, and a request, as an extended and as a classic option.
    let mut extended = vec![254, 12, 0x58, 0x43, 0x60, 0, 0x53, 0xd1, 0x2c, 0];
    extended.extend(asked.to_be_bytes());
    let mut classic = vec![14, 8];
    classic.extend(asked.to_be_bytes());
    classic.extend([0, 1, 0, 1]);
    for (option, feedback) in [(extended, 10), (classic, 2)] {
        for data in [0, 1] {
            let mut frame = vec![2; 12];
            frame.extend([
                8,
                0,
                0x45,
                0,
                0,
                (40 + option.len() + data) as u8,
                0,
                1,
                0x40,
                0,
                64,
                6,
                0,
                0,
                1,
                2,
                3,
                4,
                5,
                6,
                7,
                8,
            ]);
            frame.extend([
                0,
                80,
                0x9c,
                0x40,
                0,
                0,
                0,
                1,
                0,
                0,
                0,
                2,
                (((20 + option.len()) / 4) << 4) as u8,
                0x10,
                1,
                0,
                0,
                0,
                0,
                0,
            ]);
            frame.extend(&option);
            frame.extend(vec![7; data]);
            let router = Router::new(&RouterConfig::xcp(1_250_000), 0, SEED).unwrap();
            kernel.begin(1_250_000, &router).unwrap();
            for i in 1..=10 {
                let sight = Sight {
                    frame: &frame,
                    now_ns: i * 10 * MS,
                    backlog: 0,
                    wire_bytes: frame.len() as u32,
                    segments: 1,
                };
                let left = kernel.show(&sight).unwrap();
                let at = 54 + feedback;
                let left = u16::from_be_bytes([left[at], left[at + 1]]);
                assert!(
                    data > 0 || left == 0,
                    "{left:#06x} of {asked:#06x} left to a packet without data"
                );
            }
            let (state, counts) = kernel.read().unwrap();
            let (believed, others) = if data > 0 { (10, 0) } else { (0, 10) };
            assert_eq!(
                (counts.processed, counts.other, counts.contended),
                (believed, others, 0),
                "{data} bytes of data"
            );
            assert_eq!(state.state().intervals > 0, data > 0, "{:?}", state.state());
        }
    }
}
