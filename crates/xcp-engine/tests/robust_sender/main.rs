//! The sender whose state is its rate: what it makes of round trips, feedback, losses and timeouts.
//! Here is what answers it; first windows are `tests/robust_first.rs`'s.

mod alone;
mod header;
mod jumps;
mod losses;
mod queues;
mod rate;
mod steered;
mod unseen;
mod way_back;

use xcp_engine::{Answer, ReturnHeader, RobustSender, WireFormat, flags};

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
const SIZE: u32 = 1500;

/// An acknowledgement across routers that all rely on the rate being kept.
fn answer(feedback: f64) -> ReturnHeader {
    let h = ReturnHeader::encode(WireFormat::Extended, feedback, true);
    ReturnHeader { flags: h.flags | flags::KEEPS, ..h }
}

/// The RTT of an acknowledgement of two segments with the receiver's time on it.
fn stamped(sender: &mut RobustSender, now: u64, stamp_ms: u32, rtt: u64, srtt: u64, sent: u64) {
    sender.answered(&Answer {
        now_ns: now,
        stamp_ms,
        returned: &answer(0.0),
        rtt_ns: Some(rtt),
        srtt_ns: srtt,
        sent_ns: sent,
        segments: 2,
    });
}

/// A round trip of a sender with `segments` packets in flight, answered at this RTT.
fn round(sender: &mut RobustSender, now: &mut u64, rtt: u64, segments: u32, feedback: f64) {
    let sent = *now;
    *now += rtt;
    for _ in 0..segments {
        sender.sample(Some(rtt), rtt, sent, 2);
        sender.feedback(*now, &answer(feedback), true, sent, 1);
        sender.acked(*now, 1, true, sent);
        *now += 1;
    }
}
