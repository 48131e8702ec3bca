//! The thread of a line: looks at the ring, asks the wire, sends what is due, sleeps.
//!
//! It sleeps until the first frame on the way is due, for none that comes later can be due earlier
//! (where frames are reordered, not within the delay of the wire: so long does it sleep at most);
//! only when nothing is on the way does it wait for arrivals. An idle line therefore costs nothing,
//! and a busy one is woken by its own clock, not by every frame. Waiting a little longer for
//! several frames at once was measured to save nothing (they come in bursts anyway, and while some
//! are sent others fall due), so it is not done.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use xcp_model::units::{NANOS_PER_SEC, Nanos};

use super::clock::{ArrivalClock, both_now, monotonic_now};
use super::config::{ETHERNET_HEADER_BYTES, LineConfig};
use super::queue::QueueState;
use super::report::{Board, Report};
use super::ring::{BATCH, Frame, Output, Ring};
use super::wire::Wire;

/// While something is on the way the ring is looked at this often at least: so old is a report, and
/// so far out may a stamp be after the wall clock was set.
const LOOK_INTERVAL: Nanos = 5_000_000;

/// A report is put up this often at most.
const REPORT_INTERVAL: Nanos = 1_000_000;

/// Where frames are reordered on a wire with less delay, the ring is looked at this often; what
/// overtakes others there may be late by as much.
const SHORTEST_LOOK_INTERVAL: Nanos = 50_000;

/// While the device it receives on is down, this often a line asks whether it is still there: its
/// deletion is not told of then.
const DOWN_INTERVAL: Nanos = 100_000_000;

/// Frames taken from the ring before those due are sent.
const TAKE: usize = 256;

/// The two ends of a line and what is between.
pub(super) struct Forwarder<'a> {
    ring: Ring,
    output: Output,
    wire: Wire,
    largest_frame: u32,
    clock: ArrivalClock,
    /// Frames on the way and when they are due, in the order of that.
    held: VecDeque<(Frame, Nanos)>,
    report: Report,
    /// Largest queue not yet put up.
    unposted_max: u64,
    posted_at: Nanos,
    board: &'a Board,
    /// Whether the device received on has been set down, and nothing has come since.
    is_down: bool,
}

impl<'a> Forwarder<'a> {
    pub fn new(
        config: &LineConfig,
        ring: Ring,
        output: Output,
        report: Report,
        board: &'a Board,
    ) -> Self {
        Self {
            held: VecDeque::with_capacity(ring.slots()),
            ring,
            output,
            wire: Wire::new(config),
            largest_frame: config.mtu + ETHERNET_HEADER_BYTES,
            clock: ArrivalClock::default(),
            report,
            unposted_max: 0,
            posted_at: 0,
            board,
            is_down: false,
        }
    }

    /// Forwards until `stop` is written to, or a device is gone.
    pub fn run(mut self, stop: &OwnedFd) {
        if let Err(error) = self.forward(stop) {
            self.report.trouble.ended = Some(error.to_string());
        }
        self.count_ring_drops();
        self.refresh();
        self.board.post(&self.report);
    }

    fn forward(&mut self, stop: &OwnedFd) -> io::Result<()> {
        loop {
            let (realtime, now) = both_now();
            self.clock.begin_look(realtime, now);
            let emptied = self.look();
            if emptied {
                self.clock.end_look_at_empty();
            }
            self.report.as_of = now;
            let all_due_sent = self.send_due()?;
            let timeout = if emptied && all_due_sent { self.pause() } else { Some(0) };
            self.post(timeout);
            if self.sleep(stop, timeout)? {
                return Ok(());
            }
        }
    }

    /// Takes what has come. Returns whether that was all.
    fn look(&mut self) -> bool {
        for _ in 0..TAKE {
            let Some(frame) = self.ring.receive() else { return true };
            self.is_down = false;
            if frame.is_losing {
                self.count_ring_drops();
            }
            let arrival = self.clock.arrival(frame.stamp, monotonic_now);
            self.report.packets_in += 1;
            self.report.bytes_in += u64::from(frame.bytes);
            let trouble = &mut self.report.trouble;
            if frame.is_tagged {
                trouble.tagged += 1;
            } else if frame.is_gso
                || frame.bytes > self.largest_frame
                || !self.ring.is_whole(&frame)
            {
                trouble.oversize += 1;
            } else if let Some(due) = self.wire.arrival(arrival, frame.bytes) {
                self.hold(frame, due);
                continue;
            }
            self.ring.release(frame);
        }
        false
    }

    /// Keeps a frame until it is due, behind all that are due no later.
    fn hold(&mut self, frame: Frame, due: Nanos) {
        if self.held.back().is_none_or(|(_, last)| *last <= due) {
            self.held.push_back((frame, due));
        } else {
            // Few have fallen back, so that few have to make room.
            let place = self.held.partition_point(|(_, other)| *other <= due);
            self.held.insert(place, (frame, due));
        }
    }

    /// Sends what is due, as much as came by a look at most. Returns whether that was all; an error
    /// when the device is gone.
    fn send_due(&mut self) -> io::Result<bool> {
        for _ in 0..TAKE / BATCH {
            let now = monotonic_now();
            let due = self.held.iter().take(BATCH).take_while(|(_, due)| *due <= now).count();
            if due == 0 {
                return Ok(true);
            }
            match self.output.send(&self.ring, self.held.iter().take(due).map(|(frame, _)| frame)) {
                Ok(sent) => self.sent(sent),
                Err(error) => self.not_sent(error)?,
            }
        }
        Ok(false)
    }

    fn sent(&mut self, count: usize) {
        let now = monotonic_now();
        for (frame, due) in self.held.drain(..count) {
            self.report.lateness.record(now.saturating_sub(due));
            self.report.packets_out += 1;
            self.report.bytes_out += u64::from(frame.bytes);
            self.ring.release(frame);
        }
    }

    /// The first frame was refused.
    fn not_sent(&mut self, error: io::Error) -> io::Result<()> {
        if let Some((frame, _)) = self.held.pop_front() {
            self.ring.release(frame);
        }
        let trouble = &mut self.report.trouble;
        trouble.send_failures += 1;
        let errno = Errno::from_io_error(&error);
        if errno == Some(Errno::NXIO) || errno == Some(Errno::NODEV) {
            return Err(io::Error::other("the device on which it sends has been deleted"));
        }
        trouble.last_send_failure = Some(match errno {
            Some(Errno::NETDOWN) => "the device is down; set it up".into(),
            Some(Errno::NOBUFS) => {
                "the device has no carrier (its peer is down), or its receiver's backlog is full"
                    .into()
            }
            _ => error.to_string(),
        });
        Ok(())
    }

    /// How long there is nothing to do but wait for frames to come; `None` if nothing is on the
    /// way.
    fn pause(&mut self) -> Option<Nanos> {
        let now = monotonic_now();
        let longest = self
            .wire
            .overtakes_in()
            .map_or(LOOK_INTERVAL, |delay| delay.clamp(SHORTEST_LOOK_INTERVAL, LOOK_INTERVAL));
        match self.held.front() {
            Some((_, due)) => Some(due.saturating_sub(now).min(longest)),
            // All were lost on the way, but the queue is still being served.
            None => self.wire.queue().filter(|queue| !queue.is_idle(now)).map(|_| LOOK_INTERVAL),
        }
    }

    /// Sleeps. Returns whether the line is to stop; an error when a device is gone.
    fn sleep(&mut self, stop: &OwnedFd, pause: Option<Nanos>) -> io::Result<bool> {
        let timeout = if self.is_down { Some(pause.unwrap_or(DOWN_INTERVAL)) } else { pause };
        let timeout = timeout.map(|nanos| Timespec {
            tv_sec: (nanos / NANOS_PER_SEC) as i64,
            tv_nsec: (nanos % NANOS_PER_SEC) as i64,
        });
        // Nothing wakes us for an arrival while frames are on the way; then the ring would be
        // readable all the time anyway.
        let arrivals = if self.held.is_empty() { PollFlags::IN } else { PollFlags::empty() };
        let mut descriptors = [
            PollFd::new(stop, PollFlags::IN),
            PollFd::from_borrowed_fd(self.ring.as_fd(), arrivals),
        ];
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let [stop, ring] = descriptors.map(|descriptor| descriptor.revents());
        // The device has been set down, after which it may be set up again, or deleted.
        self.is_down |= ring.contains(PollFlags::ERR);
        if self.is_down && !self.ring.has_device()? {
            return Err(io::Error::other("the device on which it receives has been deleted"));
        }
        Ok(!stop.is_empty())
    }

    /// Puts up a report when it is time for one, and before a long sleep.
    fn post(&mut self, pause: Option<Nanos>) {
        let now = self.report.as_of;
        let is_idle = pause.is_none();
        if !is_idle && pause < Some(REPORT_INTERVAL) && now - self.posted_at < REPORT_INTERVAL {
            return;
        }
        if is_idle {
            self.count_ring_drops();
        }
        self.refresh();
        // With nothing to do there is time to wait for a reader.
        if is_idle {
            self.board.post(&self.report);
        } else if !self.board.try_post(&self.report) {
            return;
        }
        self.unposted_max = 0;
        self.posted_at = now;
    }

    fn refresh(&mut self) {
        self.report.held = self.held.len() as u64;
        self.report.wire = self.wire.counters();
        // Not later than what is yet to be found in the ring came.
        let looked = self.wire.queue().map(|queue| queue.look(self.clock.floor()));
        self.report.queue = looked.map(|state| {
            self.unposted_max = self.unposted_max.max(state.max_packets);
            QueueState { max_packets: self.unposted_max, ..state }
        });
    }

    fn count_ring_drops(&mut self) {
        // It cannot fail: socket, option and length are right.
        self.report.trouble.ring_drops += self.ring.take_drops().unwrap_or(0);
    }
}
