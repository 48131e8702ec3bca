//! The robust sender in the kernel against the host's build of it: random round trips, feedback,
//! losses, timeouts and what is lent, in which all that it can be comes about.

use std::cell::{Cell, RefCell};

use proptest::prelude::*;
use xcp_engine::{
    Answer, Bound, ForwardHeader, ReturnHeader, RobustSender, Sendable, WAIT_MAX, flags,
};
use xcp_linux::rehearsal::{SenderEvent, SenderRehearsal, SenderStep};

use super::{MS, runner};

/// What the receiver's clock says when ours says nothing: soon after, it begins anew.
const CLOCK_MS: u64 = (1 << 32) - 2000;

/// Something that happens, in the terms of a network.
#[derive(Debug, Clone)]
enum Event {
    /// An acknowledgement: this long after the last, over a path with this much more delay than
    /// its own, some of it on the way back, by a clock that has milliseconds; segments, how many
    /// were skipped and lost, feedback, whether a router answered and for how long it says that
    /// packets wait behind TCP, whether the window was what limited.
    Ack {
        after: u64,
        queue: u64,
        back: u64,
        segments: u32,
        skipped: u32,
        lost: u32,
        feedback: u16,
        mark: bool,
        wait: u8,
        limited: bool,
    },
    Timeout {
        after: u64,
    },
    Lent {
        packets: u32,
    },
}

/// Queues come and stay for rounds, as bounds and competition need them to, or come and go at once
/// after every so many events, as a path's length does.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let jumps = prop::option::weighted(0.5, 10usize..30);
    let back = prop_oneof![3 => Just(0), 1 => 0u64..80 * MS];
    let wait = prop_oneof![3 => Just(0), 1 => 0u8..=WAIT_MAX];
    let mark = (any::<bool>(), wait);
    let stretch = (0u64..80 * MS, back, mark, 0u32..4, 0u16..0x5000, 0u16..4, jumps);
    let stretch = stretch.prop_flat_map(|(queue, back, mark, lost, feedback, sign, jumps)| {
        let (mark, wait) = mark;
        let ack = (1u64..12 * MS, 0u64..MS, 0u32..40, prop::bool::weighted(0.9)).prop_map(
            move |(after, jitter, segments, limited)| Event::Ack {
                after,
                queue: queue + jitter,
                back,
                segments,
                skipped: if segments % 8 == 7 { segments } else { 0 },
                lost: if segments.is_multiple_of(8) { lost } else { 0 },
                feedback: if sign == 0 { feedback | 0x8000 } else { feedback },
                mark,
                wait,
                limited,
            },
        );
        let timeout = (1u64..400 * MS).prop_map(|after| Event::Timeout { after });
        let lent = (0u32..2000).prop_map(|packets| Event::Lent { packets });
        let length = if jumps.is_some() { 100..300 } else { 1..150 };
        prop::collection::vec(prop_oneof![60 => ack, 2 => timeout, 1 => lent], length).prop_map(
            move |mut events| {
                let mut short = false;
                for (n, event) in events.iter_mut().enumerate() {
                    let (Event::Ack { after, queue: at, .. }, Some(every)) = (event, jumps) else {
                        continue;
                    };
                    if n / every % 2 == 0 {
                        *at -= queue;
                        short = true;
                    } else if std::mem::take(&mut short) {
                        *after += queue; // nothing was sent before what has come already
                    }
                }
                events
            },
        )
    });
    prop::collection::vec(stretch, 1..5).prop_map(|stretches| stretches.concat())
}

#[test]
fn the_same_bits_of_the_robust_sender() {
    let kernel = match SenderRehearsal::load() {
        Ok(kernel) => kernel,
        Err(e) if xcp_linux::error::is_root() => panic!("{e}"),
        Err(e) => {
            return xcp_skip::skipped!(
                "root",
                "the kernel's robust sender against the host's: {e}"
            );
        }
    };
    let kernel = RefCell::new(kernel);
    let seen = Cell::new([0u32; 4]);
    let (mut runner, cases) = runner(300);
    let outcome = runner.run(&(200u32..9000, 1u32..64, 2 * MS..200 * MS, events()), |case| {
        let (packet_bytes, window, path, events) = case;
        alike(&mut kernel.borrow_mut(), packet_bytes, window, path, &events, &seen)
    });
    if let Err(e) = outcome {
        panic!("{e}");
    }
    assert!(
        seen.get().iter().all(|n| *n > cases),
        "free, bound, competing, on a path that jumps: {:?}",
        seen.get()
    );
}

fn alike(
    kernel: &mut SenderRehearsal,
    packet_bytes: u32,
    window: u32,
    path: u64,
    events: &[Event],
    seen: &Cell<[u32; 4]>,
) -> Result<(), TestCaseError> {
    let mut host = RobustSender::new(packet_bytes, window, None);
    let mut step = SenderStep {
        what: SenderEvent::Begins(packet_bytes, window),
        answer: Answer { now_ns: 1000 * MS, ..Answer::default() },
        sendable: u32::MAX,
        late: window.is_multiple_of(2),
    };
    let same = |kernel: &mut SenderRehearsal, host: &mut RobustSender, step: &SenderStep| {
        let (state, header, limit) =
            kernel.step(step).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(limit, host.limit(), "{:?}", step);
        let mut should = ForwardHeader::default();
        let sendable = Sendable { window_limit: step.sendable };
        host.write_header(step.answer.now_ns, &sendable, step.late, &mut should);
        prop_assert_eq!(header, should, "{:?}", step);
        prop_assert_eq!(state.words(), host.words(), "{:?}", step);
        Ok(())
    };
    same(kernel, &mut host, &step)?;
    for event in events {
        match *event {
            Event::Timeout { after } => {
                step.what = SenderEvent::Timeout;
                step.answer.now_ns += after;
                host.on_timeout(step.answer.now_ns);
            }
            Event::Lent { packets } => {
                step.what = SenderEvent::Lent(packets);
                host.lent(step.answer.now_ns, packets);
            }
            Event::Ack {
                after,
                queue,
                back,
                segments,
                skipped,
                lost,
                feedback,
                mark,
                wait,
                limited,
            } => {
                let now_ns = step.answer.now_ns + after;
                let rtt_ns = path + queue + back;
                let was = step.answer.srtt_ns;
                let flags = flags::PRESENT
                    | if mark { flags::MARK } else { 0 }
                    | if feedback & 3 != 0 { flags::KEEPS } else { 0 }
                    | if feedback & 4 != 0 { flags::SHARED } else { 0 };
                step.what = SenderEvent::Answered;
                step.sendable = if limited { u32::MAX } else { segments };
                step.answer = Answer {
                    now_ns,
                    sent_ns: now_ns - rtt_ns.min(now_ns),
                    rtt_ns,
                    srtt_ns: if was == 0 { rtt_ns } else { (7 * was + rtt_ns) / 8 },
                    returned: ReturnHeader { feedback, flags, wait, ..ReturnHeader::default() },
                    // now and then without a header, of nothing new, or without a stamp
                    answers: if segments % 11 == 5 { 0 } else { segments.max(1) },
                    covered: if segments % 13 == 7 { 0 } else { segments.max(1) },
                    delivered: if segments % 17 == 9 { 0 } else { segments.max(1) },
                    skipped,
                    missing: 3 * (segments % 5),
                    lost,
                    stamp_ms: (CLOCK_MS + (now_ns - back) / MS) as u32,
                    stamped: segments % 19 != 11,
                    limited,
                    unused: [0; 2],
                };
                host.answered(&step.answer);
            }
        }
        same(kernel, &mut host, &step)?;
        let mut counted = seen.get();
        counted[match host.state().bound {
            Bound::Free => 0,
            Bound::Delay => 1,
            Bound::Compete => 2,
        }] += 1;
        counted[3] += u32::from(host.state().jumps);
        seen.set(counted);
    }
    Ok(())
}
