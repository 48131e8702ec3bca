//! Delay lines between real devices. No test asks how fast the machine is: frames may be late,
//! never early, and every one is accounted for.

use std::cell::Cell;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use xcp_lab::line::wire::Wire;
use xcp_lab::line::{Line, LineConfig, QueueConfig, Reorder, Report, monotonic_now};
use xcp_model::units::{NANOS_PER_SEC, Nanos, Period};
use xcp_model::{self as model, Limit, Loss, LossPlace};

mod bed;
use bed::{Bed, LEFT, RIGHT};

const MS: Nanos = 1_000_000;
/// Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 42;

fn config() -> LineConfig {
    LineConfig {
        delays: (20 * MS).into(),
        losses: Vec::new(),
        losses_elsewhere: false,
        blackouts: Vec::new(),
        reorder: None,
        queue: None,
        seed: 1,
        index: 0,
        zero: monotonic_now(),
        mtu: 1500,
        input_rate_bps: 1_000_000_000,
    }
}

fn to_the_right(bed: &Bed, config: &LineConfig) -> Line {
    Line::start(config, Some(bed.wire.as_fd()), &bed.device_left, &bed.device_right)
        .expect("a line")
}

/// A sender on the left and a receiver on the right.
struct Sockets {
    sender: UdpSocket,
    receiver: UdpSocket,
    /// Datagrams.
    sent: Cell<u64>,
    received: Cell<u64>,
}

impl Sockets {
    fn new(bed: &Bed) -> Self {
        let sender = bed.left.enter(|| UdpSocket::bind((LEFT, 0))).expect("bind");
        let receiver = bed.right.enter(|| UdpSocket::bind((RIGHT, 7000))).expect("bind");
        sender.connect((RIGHT, 7000)).expect("connect");
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&receiver, 32 << 20)
            .expect("buffer");
        receiver.set_read_timeout(Some(Duration::from_millis(50))).expect("timeout");
        Self { sender, receiver, sent: Cell::new(0), received: Cell::new(0) }
    }

    /// Sends the datagram of this number and size; returns when.
    fn send(&self, number: usize, payload: usize) -> Nanos {
        let now = monotonic_now();
        self.sender.send(&datagram(number, payload)).expect("send");
        self.sent.set(self.sent.get() + 1);
        now
    }

    /// All datagrams that come until the line has seen what was sent, holds nothing and all it sent
    /// on is here: numbers and times. On a busy machine the line, or what the kernel does between
    /// it and the socket, may pause for longer than any silence that could be waited for.
    fn receive(&self, line: &Line, payload: impl Fn(usize) -> usize) -> Vec<(usize, Nanos)> {
        let mut buffer = vec![0; 65536];
        let mut all = Vec::new();
        let mut silent_since = Instant::now();
        loop {
            let length = match self.receiver.recv(&mut buffer) {
                Ok(length) => length,
                Err(error) => {
                    assert!(
                        matches!(
                            error.kind(),
                            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                        ),
                        "{error}"
                    );
                    let report = line.report();
                    let settled = report.packets_in + report.trouble.ring_drops >= self.sent.get()
                        && report.held == 0;
                    if settled && report.packets_out == self.received.get()
                        || silent_since.elapsed() > Duration::from_secs(10)
                    {
                        return all;
                    }
                    continue;
                }
            };
            silent_since = Instant::now();
            self.received.set(self.received.get() + 1);
            let number = u32::from_le_bytes(buffer[..4].try_into().expect("four bytes")) as usize;
            assert!(
                buffer[..length] == datagram(number, payload(number)),
                "datagram {number} was changed"
            );
            all.push((number, monotonic_now()));
        }
    }
}

fn datagram(number: usize, payload: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..payload).map(|i| (i * 7 + number * 13) as u8).collect();
    bytes[..4].copy_from_slice(&(number as u32).to_le_bytes());
    bytes
}

/// Waits until a line says something of itself; a line that never does makes the test fail.
fn wait_for(line: &Line, what: impl Fn(&Report) -> bool) -> Report {
    let begin = Instant::now();
    loop {
        let report = line.report();
        if what(&report) {
            return report;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "after 30 s: {report:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Every frame is somewhere.
fn assert_complete(report: &Report) {
    let (wire, trouble) = (report.wire, &report.trouble);
    let lost = wire.queue_drops
        + wire.lost_at_random
        + wire.lost_in_blackouts
        + trouble.oversize
        + trouble.tagged
        + trouble.send_failures;
    assert_eq!(report.packets_in, report.packets_out + lost + report.held, "{report:?}");
}

/// Whoever computes checksums: the sender's stack, the line's outgoing device or nobody.
#[test]
fn frames_arrive_unchanged_in_order_and_not_early() {
    for (mtu, sender_checksums, line_checksums) in
        [(1500, false, false), (1500, true, false), (1500, true, true), (9000, true, false)]
    {
        let Some(bed) = Bed::new(mtu) else { return };
        bed.turn_offloads_off();
        bed.left
            .enter(|| bed::set_offload("left0", bed::ETHTOOL_STXCSUM, sender_checksums))
            .expect("ethtool");
        bed.wire
            .enter(|| bed::set_offload(&bed.device_right, bed::ETHTOOL_STXCSUM, line_checksums))
            .expect("ethtool");
        let line = to_the_right(&bed, &LineConfig { mtu, ..config() });
        let sockets = Sockets::new(&bed);
        let payload = |number| 4 + number * 97 % (mtu as usize - 28 - 3);
        let sent: Vec<Nanos> =
            (0..2000).map(|number| sockets.send(number, payload(number))).collect();
        let received = sockets.receive(&line, payload);
        assert!(
            received.iter().map(|&(number, _)| number).eq(0..2000),
            "{} of 2000, or out of order",
            received.len()
        );
        for &(number, at) in &received {
            assert!(
                at >= sent[number] + 20 * MS,
                "datagram {number} was early: {} ns",
                at - sent[number]
            );
        }
        let report = line.stop();
        assert_complete(&report);
        let bytes: usize = (0..2000).map(|number| payload(number) + HEADERS).sum();
        assert_eq!((report.packets_out, report.bytes_out, report.held), (2000, bytes as u64, 0));
        assert_eq!((report.packets_in, report.bytes_in), (2000, bytes as u64));
        assert_eq!(report.lateness.count(), 2000);
        assert_eq!(report.trouble.ended, None);
    }
}

#[test]
fn the_packets_lost_are_those_of_the_seed() {
    let Some(bed) = Bed::new(1500) else { return };
    let always = Period { from: 0, to: Nanos::MAX };
    let losses = vec![Loss { probability: 0.3, place: LossPlace::AfterQueue, period: always }];
    let config = LineConfig { losses, delays: MS.into(), ..config() };
    let line = to_the_right(&bed, &config);
    let sockets = Sockets::new(&bed);
    for number in 0..1000 {
        sockets.send(number, 100);
    }
    let received = sockets.receive(&line, |_| 100);
    let mut wire = Wire::new(&config);
    let expected = (0..1000).filter(|_| wire.arrival(config.zero, 142).is_some());
    assert!(received.iter().map(|&(number, _)| number).eq(expected));
    let report = line.stop();
    assert_complete(&report);
    assert_eq!(report.wire.lost_at_random, 1000 - received.len() as u64);
}

/// Also where the delay is no time at all, in which the line cannot sleep.
#[test]
fn who_overtakes_whom_is_the_seeds_and_nobody_is_lost_or_early() {
    for delay in [20 * MS, 0] {
        let Some(bed) = Bed::new(1500) else { return };
        let reorder = Some(Reorder { probability: 0.2, most: 200 * MS });
        let config = LineConfig { reorder, delays: delay.into(), ..config() };
        let line = to_the_right(&bed, &config);
        let sockets = Sockets::new(&bed);
        let sent: Vec<Nanos> = (0..1000).map(|number| sockets.send(number, 100)).collect();
        let received = sockets.receive(&line, |_| 100);
        assert_eq!(received.len(), 1000);
        let mut wire = Wire::new(&config);
        let extra: Vec<Nanos> = (0..1000).map(|_| wire.arrival(0, 142).unwrap() - delay).collect();
        for &(number, at) in &received {
            assert!(at >= sent[number] + delay + extra[number], "datagram {number} was early");
        }
        // Those that keep their turn do so among themselves.
        let kept: Vec<usize> = received
            .iter()
            .map(|&(number, _)| number)
            .filter(|&number| extra[number] == 0)
            .collect();
        assert!(kept.is_sorted());
        assert!(!received.is_sorted_by_key(|&(number, _)| number), "nothing was overtaken");
        let report = line.stop();
        assert_complete(&report);
        assert_eq!(report.wire.fell_back, wire.counters().fell_back);
    }
}

#[test]
fn a_blackout_is_a_time_of_the_scenario() {
    let Some(bed) = Bed::new(1500) else { return };
    // Dark for ever from an hour ago on, and dark from in an hour on.
    let hour = 3600 * NANOS_PER_SEC;
    let dark = Period { from: hour, to: Nanos::MAX };
    for (zero, arrive) in [(monotonic_now(), 50), (monotonic_now().saturating_sub(2 * hour), 0)] {
        // Where the machine has been up for less than two hours, zero is when it was started, and
        // it is still light.
        let arrive = if monotonic_now() - zero < hour { 50 } else { arrive };
        let line = to_the_right(
            &bed,
            &LineConfig { zero, blackouts: vec![dark], delays: MS.into(), ..config() },
        );
        let sockets = Sockets::new(&bed);
        for number in 0..50 {
            sockets.send(number, 100);
        }
        assert_eq!(sockets.receive(&line, |_| 100).len(), arrive);
        let report = line.stop();
        assert_complete(&report);
        assert_eq!(report.wire.lost_in_blackouts, 50 - arrive as u64);
    }
}

#[test]
fn a_queue_of_the_lines_own_holds_its_limit_and_its_rate() {
    let Some(bed) = Bed::new(1500) else { return };
    let limit = Limit::Packets(20);
    let queue = model::Queue::drop_tail(limit);
    let queue = QueueConfig { rates: 8_000_000.into(), queue, overhead_bytes: 0 };
    let line = to_the_right(&bed, &LineConfig { queue: Some(queue), ..config() });
    let sockets = Sockets::new(&bed);
    // A frame takes a millisecond.
    let payload = 1000 - HEADERS;
    let first = sockets.send(0, payload);
    for number in 1..200 {
        sockets.send(number, payload);
    }
    let received = sockets.receive(&line, |_| payload);
    for (position, &(_, at)) in received.iter().enumerate() {
        assert!(at >= first + 20 * MS + (position as u64 + 1) * MS, "the {position}th came early");
    }
    let middle = line.report();
    let state = middle.queue.expect("a queue");
    assert!(state.max_packets <= 20);
    // Those that waited did so for at least the time of the ones before them since the last gap,
    // which only a slow sender leaves.
    assert!(state.packets == 0 && state.integral <= 20 * 20 * MS * received.len() as u64);
    let report = line.stop();
    assert_complete(&report);
    assert_eq!(report.wire.queue_drops, 200 - received.len() as u64);
    assert_eq!(report.queue.expect("a queue").max_packets, 0, "looked at since");
}

#[test]
fn what_finds_the_ring_full_is_counted() {
    let Some(bed) = Bed::new(1500) else { return };
    let config =
        LineConfig { delays: (2 * NANOS_PER_SEC).into(), input_rate_bps: 1_000_000, ..config() };
    let line = to_the_right(&bed, &config);
    let sockets = Sockets::new(&bed);
    for number in 0..5000 {
        sockets.send(number, 20);
    }
    let received = sockets.receive(&line, |_| 20);
    let report = line.stop();
    assert_complete(&report);
    assert_eq!(report.packets_out, received.len() as u64);
    assert_eq!(report.packets_in + report.trouble.ring_drops, 5000);
    // All but the first of them unless it took seconds to send them.
    assert!(received.len() >= config.ring_slots() as usize, "{report:?}");
    assert!(
        report.trouble.ring_drops == 0
            || report.faults().iter().any(|fault| fault.contains("ring"))
    );
}

/// What no wire carries is not sent on in part.
#[test]
fn super_packets_and_tagged_frames_are_counted_and_dropped() {
    let Some(bed) = Bed::new(1500) else { return };
    let line = to_the_right(&bed, &LineConfig { delays: MS.into(), ..config() });
    let header = |ethertype: [u8; 2]| {
        [[2u8, 0, 0, 0, 0, 2].as_slice(), &[2, 0, 0, 0, 0, 1], &ethertype].concat()
    };
    let tagged = [header([0x81, 0]), vec![0, 5, 8, 0], vec![0; 60]].concat();
    // An experimental ethertype (IEEE 802), the largest frame and one byte more than the wire
    // carries: the sender's MTU is raised.
    bed.left.ip("link set left0 mtu 3000");
    bed.wire.ip(&format!("link set {} mtu 3000", bed.device_left));
    let plain = |length: usize| [header([0x88, 0xb5]), vec![0; length - 14]].concat();
    for frame in [tagged, plain(1514), plain(1515), plain(3014)] {
        bed.left.enter(|| bed::send_frame("left0", &frame)).expect("send");
    }
    let report = wait_for(&line, |report| report.packets_in == 4 && report.held == 0);
    assert_eq!(
        (report.packets_out, report.bytes_out, report.trouble.tagged, report.trouble.oversize),
        (1, 1514, 1, 2)
    );
    assert_complete(&report);
    assert_eq!(
        report
            .faults()
            .iter()
            .filter(|fault| fault.contains("MTU") || fault.contains("VLAN"))
            .count(),
        2
    );

    // A TCP that builds super-packets: no matter how small they are.
    let back = Line::start(&config(), Some(bed.wire.as_fd()), &bed.device_right, &bed.device_left)
        .expect("a line back");
    bed.right.enter(|| {
        let listener = std::net::TcpListener::bind((RIGHT, 7002)).expect("listen");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = bed
                    .left
                    .enter(|| std::net::TcpStream::connect((RIGHT, 7002)))
                    .expect("connect");
                // What is built while nothing can be sent is sent together.
                std::io::Write::write_all(&mut stream, &[0; 60_000]).expect("write");
            });
            let (_stream, _) = listener.accept().expect("accept");
        });
    });
    wait_for(&line, |report| report.trouble.oversize > 2);
    assert_complete(&back.stop());
    assert_complete(&line.stop());
}

#[test]
fn a_line_outlives_its_devices_and_says_so() {
    let Some(bed) = Bed::new(1500) else { return };
    let sockets = Sockets::new(&bed);
    // Down and up again: it goes on.
    let line = to_the_right(&bed, &LineConfig { delays: MS.into(), ..config() });
    for state in ["down", "up"] {
        bed.wire.ip(&format!("link set {} {state}", bed.device_left));
    }
    bed.wait_until_up();
    sockets.send(0, 100);
    assert_eq!(sockets.receive(&line, |_| 100).len(), 1);
    // The far device is down: not sent, and it says why.
    bed.wire.ip(&format!("link set {} down", bed.device_right));
    sockets.send(1, 100);
    let report = wait_for(&line, |report| report.trouble.send_failures == 1);
    assert!(report.faults()[0].contains("down"), "{:?}", report.faults());
    bed.wire.ip(&format!("link set {} up", bed.device_right));
    bed.wait_until_up();
    sockets.send(2, 100);
    assert_eq!(sockets.receive(&line, |_| 100).len(), 1);
    assert_complete(&line.report());

    // Deleted while something is on its way.
    bed.wire.ip(&format!("link del {}", bed.device_right));
    sockets.send(3, 100);
    let report = wait_for(&line, |report| report.trouble.ended.is_some());
    assert!(report.faults()[0].contains("sends has been deleted"), "{:?}", report.faults());
    assert_complete(&line.stop());

    // Deleted while nothing is: the one it receives on, and in another bed so that there are two.
    let Some(bed) = Bed::new(1500) else { return };
    let line = to_the_right(&bed, &config());
    bed.wire.ip(&format!("link del {}", bed.device_left));
    let report = wait_for(&line, |report| report.trouble.ended.is_some());
    assert!(report.faults()[0].contains("receives has been deleted"), "{:?}", report.faults());
}

#[test]
fn a_line_that_cannot_be_is_refused_in_words() {
    let Some(bed) = Bed::new(1500) else { return };
    let start = |config: &LineConfig, from: &str, to: &str| {
        Line::start(config, Some(bed.wire.as_fd()), from, to).unwrap_err().to_string()
    };
    let message = start(&config(), "nosuch0", &bed.device_right);
    assert!(message.contains("nosuch0") && message.contains("none of this name"), "{message}");
    let message = start(&config(), &bed.device_left, "a name far too long for a device");
    assert!(message.contains("too long"), "{message}");
    let message = start(&LineConfig { mtu: 1, ..config() }, &bed.device_left, &bed.device_right);
    assert!(message.contains("MTU"), "{message}");
    let file = std::fs::File::open("/proc/self/status").expect("a file");
    let message = Line::start(&config(), Some(file.as_fd()), "lo", "lo").unwrap_err().to_string();
    assert!(message.contains("network namespace"), "{message}");
    bed.wire.ip(&format!("link set {} down", bed.device_left));
    // A line may be started before its devices are up.
    let line = to_the_right(&bed, &LineConfig { delays: MS.into(), ..config() });
    bed.wire.ip(&format!("link set {} up", bed.device_left));
    bed.wait_until_up();
    let sockets = Sockets::new(&bed);
    sockets.send(0, 100);
    assert_eq!(sockets.receive(&line, |_| 100).len(), 1);
    assert_eq!(line.stop().packets_out, 1);
}
