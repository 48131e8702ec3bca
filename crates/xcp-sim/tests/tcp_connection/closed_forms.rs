//! What theory says about a single connection.

use crate::pipe::*;
use xcp_model::units::Nanos;
use xcp_model::{Congestion, LossResponse, Recovery, RtoPolicy, Tcp};
use xcp_sim::packet::Body;

const RTT: Nanos = 100 * MS;

/// One packet in `period` is lost.
fn periodic(period: u64) -> Script<'static> {
    Box::new(
        move |data, _, number, _| {
            if data && number % period == period - 1 { Fate::Lose } else { Fate::Pass }
        },
    )
}

/// Segments per round trip over a long time.
fn mean_window(tcp: &Tcp, period: u64, delay: Nanos) -> f64 {
    let mut pipe = Pipe::new(tcp, delay, 0, periodic(period));
    pipe.start();
    pipe.run(100 * SEC);
    let (from, before) = (pipe.now, pipe.sender.sequence().0);
    pipe.run(from + 500 * SEC);
    (pipe.sender.sequence().0 - before) as f64 / ((pipe.now - from) as f64 / (2 * delay) as f64)
}

/// Between losses the window grows from W/2 to W by one per round trip and 3/8 W^2 = 1/p packets
/// pass: the mean is sqrt(3/(2p)). Growth counts segments, so delayed ACKs (whose own form would be
/// sqrt(3/(4p))) change nothing.
#[test]
fn reno_obeys_the_square_root() {
    for (period, delayed_ack) in [(2000, false), (2000, true), (8000, false)] {
        let tcp = Tcp { delayed_ack, ..settings(Congestion::Reno, Recovery::Sack) };
        let (mean, theory) = (mean_window(&tcp, period, RTT / 2), (1.5 * period as f64).sqrt());
        assert!(
            (mean / theory - 1.0).abs() < 0.06,
            "1/p = {period}, delayed {delayed_ack}: {mean}, theory {theory}"
        );
    }
}

/// RFC 9438 (5.1): the mean of the cubic sawtooth is (C (3 + beta) / (4 (1 - beta)))^(1/4)
/// RTT^(3/4) / p^(3/4), in packets. It leaves out fast convergence, which makes room after every
/// peak a little below the last and so costs a few per cent.
#[test]
fn cubic_obeys_its_response_function() {
    let tcp = settings(Congestion::Cubic, Recovery::Sack);
    for period in [5_000u64, 20_000] {
        let mean = mean_window(&tcp, period, RTT / 2);
        let theory =
            (0.4_f64 * 3.7 / (4.0 * 0.3)).powf(0.25) * (0.1_f64 * period as f64).powf(0.75);
        assert!((0.9..1.02).contains(&(mean / theory)), "1/p = {period}: {mean}, theory {theory}");
    }
}

/// Slow start doubles: IW (2^k - 1) segments are acknowledged after k round trips, with delayed
/// ACKs too.
#[test]
fn slow_start_doubles() {
    for delayed_ack in [false, true] {
        let tcp =
            Tcp { initial_window: 10, delayed_ack, ..settings(Congestion::Reno, Recovery::Sack) };
        let mut pipe = Pipe::new(&tcp, RTT / 2, 0, Box::new(|_, _, _, _| Fate::Pass));
        pipe.start();
        for k in 1..8 {
            pipe.run(k * RTT);
            assert_eq!(pipe.sender.sequence().0, 10 * ((1 << k) - 1));
        }
    }
}

/// Times at which segments went out during a blackout from 1 s on, in ms after the first timeout.
fn probes(congestion: Congestion, policy: RtoPolicy, length: Nanos) -> (Vec<Nanos>, Pipe<'static>) {
    let tcp = Tcp {
        rto_policy: policy,
        receive_buffer: Some(30_000),
        ..settings(congestion, Recovery::Sack)
    };
    let dark = SEC..SEC + length;
    let until = dark.end;
    let mut pipe = Pipe::new(
        &tcp,
        RTT / 2,
        0,
        Box::new(move |_, _, _, now| if dark.contains(&now) { Fate::Lose } else { Fate::Pass }),
    );
    pipe.log = Some(Vec::new());
    pipe.start();
    pipe.run(until + 70 * SEC);
    let probes: Vec<Nanos> = pipe
        .log
        .as_ref()
        .unwrap()
        .iter()
        .filter(|s| {
            matches!(s.packet.body, Body::Data { retransmission: true, .. }) && s.at < until
        })
        .map(|s| s.at / MS)
        .collect();
    (probes.iter().map(|t| t - probes[0]).collect(), pipe)
}

/// RTT 100 ms without variance and a least variance term of 200 ms: RTO 300 ms, doubling to 60 s,
/// or staying. A blackout does not reach the RTT estimate, and the transfer goes on after it.
#[test]
fn a_blackout_is_probed_with_doubling_gaps() {
    for congestion in [Congestion::Reno, Congestion::Cubic, Congestion::Xcp] {
        let (times, pipe) = probes(congestion.clone(), RtoPolicy::BackOff, 200 * SEC);
        let gaps: Vec<Nanos> = times.windows(2).map(|w| w[1] - w[0]).collect();
        for (gap, expected) in
            gaps.iter().zip([600, 1200, 2400, 4800, 9600, 19200, 38400, 60000, 60000])
        {
            assert!(gap.abs_diff(expected) <= expected / 50, "{congestion:?} {gaps:?}");
        }
        assert_eq!(gaps.len(), 9);
        assert_eq!(pipe.sender.timeouts(), 11, "ten in the dark, the eleventh gets through");
        assert!(
            pipe.sender.srtt().abs_diff(RTT) < MS,
            "{congestion:?}: SRTT {}",
            pipe.sender.srtt()
        );
        assert!(pipe.receiver.delivered_bytes() > 0 && !pipe.sender.in_recovery());
    }
    let (times, _) = probes(Congestion::Xcp, RtoPolicy::Fixed, 100 * SEC);
    assert!((320..=335).contains(&times.len()), "a probe every 300 ms: {}", times.len());
}

/// A lost SYN: again after 1 s and 3 s (RFC 6298 §2.1, §5.5); the first data then has a timeout of
/// at least 3 s (§5.7).
#[test]
fn a_lost_syn_is_repeated() {
    let tcp = Tcp { handshake: true, ..settings(Congestion::Reno, Recovery::Sack) };
    // Two SYNs, and the first window.
    let mut pipe = Pipe::new(
        &tcp,
        RTT / 2,
        0,
        Box::new(
            |data, _, n, _| {
                if data && (n < 2 || n == 3 || n == 4) { Fate::Lose } else { Fate::Pass }
            },
        ),
    );
    pipe.log = Some(Vec::new());
    pipe.start();
    pipe.run(10 * SEC);
    let sent: Vec<(bool, Nanos)> = pipe
        .log
        .unwrap()
        .iter()
        .filter(|s| !matches!(s.packet.body, Body::Ack(_)))
        .map(|s| (s.is_data(), s.at))
        .collect();
    let first = 3 * SEC + RTT;
    assert_eq!(
        sent[..6],
        [
            (false, 0),
            (false, SEC),
            (false, 3 * SEC),
            (true, first),
            (true, first),
            (true, first + 3 * SEC)
        ]
    );
    assert_eq!(pipe.sender.stats().syn_retransmits, 2);
}

/// A window limited by a buffer moves window/RTT, and no more than 65535 bytes without window
/// scaling.
#[test]
fn buffers_bound_the_rate() {
    let base = Tcp { initial_window: 10, ..settings(Congestion::Cubic, Recovery::Sack) };
    let unscaled = 65535 / bytes(&base, 1);
    for (tcp, window) in [
        (Tcp { receive_buffer: Some(64_000), ..base.clone() }, 64_000 / 1500),
        (Tcp { send_buffer: Some(64_000), ..base.clone() }, 64_000 / 1500),
        (Tcp { window_scaling: false, ..base.clone() }, unscaled),
        (Tcp { window_scaling: false, receive_buffer: Some(30_000), ..base.clone() }, 20),
    ] {
        let mut pipe = Pipe::new(&tcp, RTT / 2, 0, Box::new(|_, _, _, _| Fate::Pass));
        pipe.start();
        pipe.run(2 * SEC);
        let (una, cwnd) = (pipe.sender.sequence().0, pipe.sender.cwnd_packets());
        pipe.run(12 * SEC);
        assert_eq!(pipe.sender.sequence().0 - una, 100 * window);
        assert_eq!(
            pipe.sender.cwnd_packets(),
            cwnd,
            "a window that is not the limit does not grow"
        );
        assert!(cwnd <= 2.0 * window as f64);
    }
}

/// Paced, no two packets are closer than SRTT/cwnd, and the window is still used: as much gets
/// through as the window allows.
#[test]
fn pacing_never_bursts() {
    for congestion in [Congestion::Reno, Congestion::Cubic, Congestion::Xcp] {
        let tcp = Tcp {
            paced: true,
            handshake: true,
            initial_window: 10,
            ..settings(congestion.clone(), Recovery::Sack)
        };
        let mut pipe = Pipe::new(&tcp, RTT / 2, MS / 4, lose_first(&[300, 320, 350]));
        pipe.log = Some(Vec::new());
        pipe.start();
        pipe.run(2 * SEC);
        let sent: Vec<Sent> = pipe.log.take().unwrap().into_iter().filter(Sent::is_data).collect();
        assert!(sent.len() > 1000, "{congestion:?}: {}", sent.len());
        let mut close = 0;
        for pair in sent.windows(2) {
            let gap = pair[1].at - pair[0].at;
            // The window may since have grown by what the same ACK acknowledged.
            if (gap as f64) < pair[1].srtt as f64 / (pair[1].cwnd + 2.0) * 0.99 {
                close += 1;
            }
        }
        assert!(
            close <= pipe.sender.stats().fast_recoveries,
            "{congestion:?}: {close} packets too close"
        );
    }
}

/// Delayed ACKs: half as many, none later than 40 ms, at once when something is out of order.
#[test]
fn delayed_acks_halve_their_number() {
    let tcp = Tcp {
        delayed_ack: true,
        initial_window: 20,
        receive_buffer: Some(30_000),
        ..settings(Congestion::Reno, Recovery::Sack)
    };
    let mut pipe = Pipe::new(&tcp, RTT / 2, MS, lose_first(&[101]));
    pipe.log = Some(Vec::new());
    pipe.start();
    pipe.run(10 * SEC);
    let log = pipe.log.take().unwrap();
    let data = log.iter().filter(|s| s.is_data()).count();
    let acks = log.len() - data;
    assert!(acks.abs_diff(data / 2) < 30, "{acks} ACKs for {data} segments");
    // An odd last segment waits the whole delay: 1 packet of spacing, 50 ms there, 40 ms, 50 ms
    // back.
    let tcp = Tcp { bytes: Some(1), ..tcp };
    let mut pipe = Pipe::new(&tcp, RTT / 2, MS, Box::new(|_, _, _, _| Fate::Pass));
    pipe.start();
    pipe.run(SEC);
    assert_eq!(pipe.sender.completed_at(), Some(MS + RTT + 40 * MS));
    assert_eq!(pipe.receiver.delivered_bytes(), 1);
}

/// An honest XCP sender's header never promises more than buffers and the transfer's rest allow;
/// three duplicate ACKs leave its window alone or halve it, as it is set to; they halve it in any
/// case while no router has been heard of.
#[test]
fn xcp_says_what_it_will_send() {
    let tcp = Tcp {
        receive_buffer: Some(30_000),
        initial_window: 40,
        ..settings(Congestion::Xcp, Recovery::Sack)
    };
    let tcp = Tcp { bytes: Some(bytes(&tcp, 200)), ..tcp };
    let mut pipe = Pipe::new(&tcp, RTT / 2, 0, Box::new(|_, _, _, _| Fate::Pass));
    pipe.log = Some(Vec::new());
    pipe.start();
    pipe.run(10 * SEC);
    assert!(pipe.sender.completed_at().is_some());
    for sent in pipe.log.unwrap().iter().filter(|s| s.is_data()) {
        let Body::Data { header, .. } = sent.packet.body else { unreachable!() };
        let window = header.window_packets().expect("a window");
        assert!(window <= 20.02 && window <= (200 - sent.packet.seq + 20) as f64, "{window}");
    }

    let cases = [
        (true, LossResponse::None, 40.0),
        (true, LossResponse::Halve, 20.0),
        (false, LossResponse::None, 20.0),
        (false, LossResponse::Halve, 20.0),
    ];
    for (router, loss_response, want) in cases {
        for recovery in [
            Recovery::Reno,
            Recovery::NewRenoImpatient,
            Recovery::NewRenoSlowButSteady,
            Recovery::Sack,
        ] {
            let tcp =
                Tcp { loss_response, initial_window: 40, ..settings(Congestion::Xcp, recovery) };
            let mut pipe = Pipe::new(&tcp, RTT / 2, 0, lose_first(&[0]));
            pipe.router = router;
            pipe.start();
            pipe.run(RTT);
            assert!(pipe.sender.in_recovery());
            // The router grants nothing. Without one the two duplicate ACKs before the loss is
            // known are slow start's, and thirty-six come after.
            let window = pipe.sender.cwnd_packets();
            let more = if router { 0.0 } else { 4.0 };
            assert!(
                (want..=want + more).contains(&window),
                "router {router}, {loss_response:?} {recovery:?}: {window}"
            );
            pipe.run(3 * RTT);
            assert!(!pipe.sender.in_recovery());
            assert_eq!((pipe.sender.retransmits(), pipe.sender.timeouts()), (1, 0));
        }
    }
}
