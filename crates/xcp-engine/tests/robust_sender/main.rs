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

/// An acknowledgement of two segments sent at `sent`, one of which is known to be in, that shows
/// an RTT and has a header.
fn ack(now: u64, rtt: u64, sent: u64, returned: ReturnHeader) -> Answer {
    let Answer { rtt_ns, srtt_ns, covered, .. } = sample(rtt, sent);
    Answer { rtt_ns, srtt_ns, covered, delivered: 1, ..feedback(now, sent, returned) }
}

/// No more of it than the RTT.
fn sample(rtt: u64, sent: u64) -> Answer {
    Answer { rtt_ns: rtt, srtt_ns: rtt, sent_ns: sent, covered: 2, ..Answer::default() }
}

/// No more of it than the header.
fn feedback(now: u64, sent: u64, returned: ReturnHeader) -> Answer {
    Answer { returned, answers: 1, ..delivery(now, sent, 0) }
}

/// So many segments are found lost.
fn loss(lost: u32) -> Answer {
    Answer { lost, ..Answer::default() }
}

/// No more of it than what is in, of so many segments.
fn delivery(now: u64, sent: u64, delivered: u32) -> Answer {
    Answer { now_ns: now, sent_ns: sent, delivered, limited: true, ..Answer::default() }
}

/// A round trip of a sender with `segments` packets in flight, answered at this RTT.
fn round(sender: &mut RobustSender, now: &mut u64, rtt: u64, segments: u32, feedback: f64) {
    let sent = *now;
    *now += rtt;
    for _ in 0..segments {
        sender.answered(&ack(*now, rtt, sent, answer(feedback)));
        *now += 1;
    }
}
