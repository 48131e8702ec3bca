//! The host's side of the comparison: the engine as the host compiles it, and what lies around it
//! in the kernel's program, headers and checksums, written a second time.

use xcp_engine::{
    Other, Passage, Policer, RobustRouter, Router, WireFormat, find_options, flags,
    read_classic_forward, read_extended,
};
use xcp_linux::police::PoliceBy;
use xcp_linux::router::RouterCounts;

/// The frame, and what is told about it.
#[derive(Debug, Clone)]
pub struct Packet {
    pub frame: Vec<u8>,
    pub after_ns: u64,
    pub backlog: u32,
    pub extra_wire: u32,
    pub segments: u32,
}

/// The one's complement sum of RFC 1071.
pub fn sum(bytes: &[u8]) -> u64 {
    bytes
        .chunks(2)
        .map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u64::from(*b)))
        .sum()
}

pub fn folded(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Where a frame's TCP header is, and whether it is all there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Found {
    /// Offset and length of the header.
    Tcp(usize, usize),
    Other,
    Fragment,
    Broken,
    Beyond,
}

/// The protocol behind the VLAN tags, and where it begins.
pub fn find_ip(frame: &[u8]) -> Option<(u16, usize)> {
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

pub fn find_tcp(frame: &[u8]) -> Found {
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

/// Where a frame's IP packet with TCP in it ends: by its own length, if that is not beyond the
/// frame. What comes after that is padding; a packet of no length is nothing but padding.
fn ip_end(frame: &[u8]) -> usize {
    let Some((_, at)) = find_ip(frame) else { return frame.len() };
    let word = |at: usize| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    let (length, before) =
        if frame[at] >> 4 == 4 { (word(at + 2), at) } else { (word(at + 4), at + 40) };
    if length == 0 { 0 } else { frame.len().min(before + length) }
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
pub enum Law {
    Draft(Box<Router>),
    Robust(RobustRouter),
}

impl Law {
    pub fn words(&self) -> &[u64] {
        match self {
            Self::Draft(router) => router.words(),
            Self::Robust(router) => router.words(),
        }
    }
}

/// The host's side: the router, its counters, and what has passed that it has not heard of.
pub struct Host {
    pub law: Law,
    pub counts: RouterCounts,
    unheard: Unheard,
    pub policer: Option<(Policer, PoliceBy)>,
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
    pub fn new(law: Law, policer: Option<(Policer, PoliceBy)>) -> Self {
        Self { law, counts: RouterCounts::default(), unheard: Unheard::default(), policer }
    }

    /// The frame as it leaves, `None` if it is refused; state and counters are brought up to date.
    pub fn pass(&mut self, packet: &Packet, now: u64) -> Option<Vec<u8>> {
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
        let empty = matches!(found, Found::Tcp(tcp, length) if ip_end(&frame) <= tcp + length);
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
            if matches!(self.law, Law::Draft(_)) {
                header.flags &= !flags::KEEPS;
            }
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
            let keeps = u8::from(header.flags & flags::KEEPS != 0);
            frame[at + 4] = (frame[at + 4] | 0x04) & 0xfe | keeps;
            frame[at + 5] = header.wait << 4 | frame[at + 5] & 15;
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
pub fn same(a: &[u8], b: &[u8], tcp: Option<usize>) -> bool {
    let Some(tcp) = tcp else { return a == b };
    let (mut a, mut b) = (a.to_vec(), b.to_vec());
    for frame in [&mut a, &mut b] {
        if frame[tcp + 16..tcp + 18] == [0xff, 0xff] {
            frame[tcp + 16..tcp + 18].fill(0);
        }
    }
    a == b
}
