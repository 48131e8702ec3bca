//! Sender, router and receiver together in the smallest network there is: one link, fixed delay,
//! ACK-clocked senders. No loss recovery, no transport. (The simulator does the rest; here the
//! engine must show that it closes the loop by itself.)

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;
use xcp_engine::{
    ForwardHeader, Gain, Receiver, ReturnHeader, Router, RouterConfig, Sendable, Sender,
    SenderConfig, WireFormat,
};

const SIZE: u32 = 1500;

/// One flow's settings.
#[derive(Clone)]
struct Flow {
    format: WireFormat,
    /// Round-trip propagation delay, ns.
    delay: u64,
    start: u64,
    honest: bool,
    /// Packets that a buffer allows in flight.
    limit: u32,
    /// Packets per acknowledgement.
    per_ack: u32,
}

impl Flow {
    fn new(delay: u64) -> Flow {
        Flow {
            format: WireFormat::Extended,
            delay,
            start: 0,
            honest: true,
            limit: u32::MAX,
            per_ack: 1,
        }
    }
}

struct State {
    sender: Sender,
    receiver: Receiver,
    in_flight: u32,
    unacked: u32,
    srtt: u64,
    delivered: u64,
}

struct Packet {
    flow: usize,
    header: ForwardHeader,
    sent: u64,
}

enum Event {
    Start(usize),
    ServiceDone,
    Ack(usize, ReturnHeader, u64, u32),
}

struct Outcome {
    /// Delivered bytes in the second half over what the link could carry.
    utilisation: f64,
    /// Each flow's delivered packets in the second half.
    shares: Vec<f64>,
    queue_max: usize,
    windows: Vec<f64>,
}

impl Outcome {
    fn jain(&self) -> f64 {
        let sum: f64 = self.shares.iter().sum();
        sum * sum / (self.shares.len() as f64 * self.shares.iter().map(|s| s * s).sum::<f64>())
    }
}

/// Runs for `duration`; capacity in bytes/s.
fn run(config: &RouterConfig, flows: &[Flow], duration: u64) -> Outcome {
    run_without(config, flows, duration, u64::MAX..u64::MAX)
}

/// The same; the router is not there, the link and its queue are, for the time of `gone`.
fn run_without(config: &RouterConfig, flows: &[Flow], duration: u64, gone: Range<u64>) -> Outcome {
    let service = u64::from(SIZE) * 1_000_000_000 / config.capacity_bytes_per_sec;
    let mut router = Router::new(config, 0, 3).expect("valid");
    let mut states: Vec<_> = flows
        .iter()
        .map(|f| State {
            sender: Sender::new(&SenderConfig {
                honest: f.honest,
                ..SenderConfig::new(f.format, SIZE)
            }),
            receiver: Receiver::new(f.format),
            in_flight: 0,
            unacked: 0,
            srtt: 0,
            delivered: 0,
        })
        .collect();
    let mut events = BinaryHeap::new();
    let mut payload: Vec<Event> = vec![];
    let at = |events: &mut BinaryHeap<Reverse<(u64, usize)>>,
              payload: &mut Vec<Event>,
              t: u64,
              e: Event| {
        payload.push(e);
        events.push(Reverse((t, payload.len() - 1)));
    };
    for (i, f) in flows.iter().enumerate() {
        at(&mut events, &mut payload, f.start, Event::Start(i));
    }
    let mut queue: VecDeque<Packet> = VecDeque::new();
    let mut serving: Option<Packet> = None;
    let (mut half, mut queue_max) = (vec![0; flows.len()], 0);
    let mut halved = false;
    while let Some(Reverse((now, index))) = events.pop() {
        if now >= duration {
            break;
        }
        if now >= duration / 2 && !halved {
            halved = true;
            half = states.iter().map(|s| s.delivered).collect();
            queue_max = 0;
        }
        let mut who = None;
        match &payload[index] {
            Event::Start(i) => who = Some(*i),
            Event::ServiceDone => {
                let p = serving.take().expect("a packet was being sent");
                let (f, s) = (&flows[p.flow], &mut states[p.flow]);
                s.delivered += 1;
                s.receiver.data(&p.header);
                s.unacked += 1;
                if s.unacked >= f.per_ack.min(s.in_flight) {
                    let n = std::mem::take(&mut s.unacked);
                    let returned = s.receiver.returned();
                    at(
                        &mut events,
                        &mut payload,
                        now + f.delay,
                        Event::Ack(p.flow, returned, p.sent, n),
                    );
                }
            }
            Event::Ack(i, returned, sent, n) => {
                let s = &mut states[*i];
                let sample = now - sent;
                s.srtt = if s.srtt == 0 { sample } else { s.srtt - s.srtt / 8 + sample / 8 };
                let limited = s.in_flight >= s.sender.cwnd();
                s.in_flight -= n;
                s.sender.feedback(now, returned, s.srtt, limited);
                who = Some(*i);
            }
        }
        if let Some(i) = who {
            let (f, s) = (&flows[i], &mut states[i]);
            while s.in_flight < s.sender.cwnd().min(f.limit) {
                s.in_flight += 1;
                let header = s.sender.header(now, s.srtt, &Sendable { window_limit: f.limit });
                if !gone.contains(&now) {
                    router.arrival(now, SIZE, &header, queue.len() as u64 * u64::from(SIZE));
                }
                queue.push_back(Packet { flow: i, header, sent: now });
            }
        }
        if serving.is_none()
            && let Some(mut p) = queue.pop_front()
        {
            if !gone.contains(&now) {
                router.departure(now, SIZE, &mut p.header, queue.len() as u64 * u64::from(SIZE));
            }
            serving = Some(p);
            at(&mut events, &mut payload, now + service, Event::ServiceDone);
        }
        queue_max = queue_max.max(queue.len());
        assert!(queue_max < 1_000_000, "windows have run away by {now} ns");
    }
    let shares: Vec<_> = states.iter().zip(&half).map(|(s, h)| (s.delivered - h) as f64).collect();
    Outcome {
        utilisation: shares.iter().sum::<f64>() * service as f64 / (duration - duration / 2) as f64,
        shares,
        queue_max,
        windows: states.iter().map(|s| s.sender.window()).collect(),
    }
}

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;

#[test]
fn four_flows_fill_the_link_and_share_it() {
    for format in [WireFormat::Extended, WireFormat::Classic] {
        let flows: Vec<_> =
            (0..4).map(|i| Flow { format, start: i * S, ..Flow::new(100 * MS) }).collect();
        let o = run(&RouterConfig::xcp(1_250_000), &flows, 40 * S);
        assert!(o.utilisation > 0.99, "{format:?} {}", o.utilisation);
        assert!(o.jain() > 0.999, "{format:?} {:?}", o.shares);
        assert!(o.queue_max <= 8, "{format:?} {}", o.queue_max);
    }
}

#[test]
fn different_rtts_share_equally() {
    for gain in [Gain::Uniform, Gain::OwnRtt] {
        let flows: Vec<_> = [50, 100, 200].iter().map(|ms| Flow::new(ms * MS)).collect();
        let o = run(&RouterConfig { gain, ..RouterConfig::xcp(1_250_000) }, &flows, 60 * S);
        assert!(o.utilisation > 0.98, "{gain:?} {}", o.utilisation);
        assert!(o.jain() > 0.99, "{gain:?} {:?}", o.shares);
    }
}

/// From a LAN to beyond satellites, each for 400 round trips.
#[test]
fn round_trips_of_ten_microseconds_to_a_minute() {
    for (rtt, capacity) in [
        (10_000, 10_000_000_000u64),
        (100_000, 1_250_000_000),
        (S / 100, 12_500_000),
        (S, 125_000),
        (65 * S, 10_000),
    ] {
        let flows: Vec<_> = (0..2).map(|_| Flow::new(rtt)).collect();
        let o = run(&RouterConfig::xcp(capacity), &flows, 400 * rtt);
        assert!(o.utilisation > 0.97, "RTT {rtt} ns: {}", o.utilisation);
        assert!(o.jain() > 0.98, "RTT {rtt} ns: {:?}", o.shares);
    }
}

#[test]
fn delayed_acknowledgements_lose_no_feedback() {
    let flows: Vec<_> = (0..4).map(|_| Flow { per_ack: 2, ..Flow::new(100 * MS) }).collect();
    let o = run(&RouterConfig::xcp(1_250_000), &flows, 40 * S);
    assert!(o.utilisation > 0.98, "{}", o.utilisation);
    assert!(o.jain() > 0.999, "{:?}", o.shares);
}

/// A receive buffer of 40 packets on a path that holds 416: the 2005 study's sender runs away
/// linearly, ours stays at the buffer, and another flow gets what the first cannot use.
#[test]
fn a_window_that_cannot_be_used() {
    let delay = 500 * MS;
    let long = |honest| {
        run(
            &RouterConfig::xcp(1_250_000),
            &[Flow { honest, limit: 40, ..Flow::new(delay) }],
            60 * S,
        )
        .windows[0]
    };
    assert!(long(false) > 10_000.0, "{}", long(false));
    assert!(long(true) < 45.0, "{}", long(true));

    let o = run(
        &RouterConfig::xcp(1_250_000),
        &[Flow { limit: 40, ..Flow::new(delay) }, Flow::new(delay)],
        60 * S,
    );
    assert!(o.utilisation > 0.97, "{}", o.utilisation);
    assert!(o.shares[0] < 0.11 * o.shares[1] * 1.2, "{:?}", o.shares);
    assert!(o.windows[0] > 36.0, "what the buffer allows is used: {}", o.windows[0]);
}

/// The router leaves the path in mid-connection, for ten seconds or for good: the windows grow as
/// TCP's do, a packet per flow and round trip, and come down when it is back.
#[test]
fn a_router_that_leaves() {
    for format in [WireFormat::Extended, WireFormat::Classic] {
        let flows: Vec<_> =
            (0..4).map(|_| Flow { format, per_ack: 2, ..Flow::new(100 * MS) }).collect();
        let law = RouterConfig::xcp(1_250_000);
        let back = run_without(&law, &flows, 60 * S, 10 * S..20 * S);
        assert!(
            back.utilisation > 0.98 && back.jain() > 0.99 && back.queue_max <= 8,
            "{format:?}: {} {:?}",
            back.utilisation,
            back.shares
        );
        let gone = run_without(&law, &flows, 20 * S, 10 * S..u64::MAX);
        let windows: f64 = gone.windows.iter().sum();
        assert!((110.0..110.0 + 4.0 * 100.0).contains(&windows), "{format:?}: {:?}", gone.windows);
    }
}
