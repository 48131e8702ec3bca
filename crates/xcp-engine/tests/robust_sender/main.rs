//! The sender whose state is its rate: what it makes of round trips, feedback, losses and timeouts.
//! Here is what answers it; first windows are `tests/robust_first.rs`'s.

mod alone;
mod header;
mod jumps;
mod losses;
mod queues;
mod rate;
mod unseen;
mod way_back;

use xcp_engine::{ReturnHeader, RobustSender, WireFormat, flags};

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
const SIZE: u32 = 1500;

/// An acknowledgement across routers that all rely on the rate being kept.
fn answer(feedback: f64) -> ReturnHeader {
    let h = ReturnHeader::encode(WireFormat::Extended, feedback, true);
    ReturnHeader { flags: h.flags | flags::KEEPS, ..h }
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
