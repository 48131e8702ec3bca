//! Drives the ends that are in one namespace: connects and writes, accepts and reads, at the times
//! the plan says. One thread, one epoll.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, accept_with, recv, send, sockopt};
use xcp_model::units::{NANOS_PER_SEC, Nanos};

use super::socket::{self, TcpInfo};
use super::state::FlowState;
use super::{Shared, open};
use crate::LabError;
use crate::clock::{Clock, monotonic};
use crate::plan::{Kind, TcpPlan};

/// Written and read at a time, bytes.
const CHUNK: usize = 1 << 18;
/// A sender with a send buffer of its own looks for room in it this often: the kernel would wake it
/// only when a third is free.
const POLL: Nanos = 1_000_000;
/// A sender writes this much at a time, bytes, before others have their turn: a fast one would
/// never find its buffer full.
const TURN: u64 = 1 << 20;
/// Marks the event that ends the thread.
const STOP: u64 = u64::MAX;

/// An end of a flow.
#[derive(Debug)]
enum End {
    /// Waits for its connection.
    Listener(OwnedFd),
    /// Reads a connection.
    Receiver(OwnedFd),
    /// Reads datagrams.
    Datagrams(OwnedFd),
    /// Writes; its socket is in the flow's state.
    Sender(Sender),
    /// Nothing any more.
    Done,
}

/// The sending end of a connection.
#[derive(Debug)]
struct Sender {
    connected: bool,
    /// Whether its time has come.
    started: bool,
    stopped: bool,
    /// Bytes yet to be written; `u64::MAX` is without end.
    left: u64,
    /// Bytes in all.
    total: Option<u64>,
    /// Segments the send buffer is to hold, until it has been made so large.
    buffer: Option<u32>,
    polled: bool,
}

/// What happens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Connect,
    Start,
    Stop,
    Poll,
}

/// The thread's things.
pub(super) struct Worker {
    shared: Arc<Shared>,
    epoll: OwnedFd,
    /// Flow and end, by the number that epoll knows.
    ends: Vec<(usize, End)>,
    /// On the monotonic clock.
    timers: BinaryHeap<Reverse<(Nanos, usize, Event)>>,
    buffer: Vec<u8>,
}

impl Worker {
    /// Opens all that waits to be spoken to. Must be called in the namespace, as all else.
    pub fn new(shared: Arc<Shared>, space: usize, stop: BorrowedFd<'_>) -> Result<Self, LabError> {
        let failed = |why: Errno| LabError::failed("watch its sockets", why);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        epoll::add(&epoll, stop, epoll::EventData::new_u64(STOP), epoll::EventFlags::IN)
            .map_err(failed)?;
        let mut worker = Self {
            shared: shared.clone(),
            epoll,
            ends: Vec::new(),
            timers: BinaryHeap::new(),
            buffer: vec![0; CHUNK],
        };
        for (number, flow) in
            shared.flows.iter().enumerate().filter(|(_, flow)| flow.start.is_some())
        {
            let way = &shared.ways[flow.way];
            let [source, destination] =
                [way.source, way.destination].map(|(at, ip)| (at, SocketAddr::new(ip, flow.port)));
            if destination.0 == space {
                let end = match &flow.kind {
                    Kind::Tcp(tcp) => {
                        End::Listener(open::listener(destination.1, tcp, shared.xcp.as_ref())?)
                    }
                    Kind::Udp { .. } => End::Datagrams(open::datagrams(destination.1, source.1)?),
                };
                worker.add(number, end, epoll::EventFlags::IN)?;
            }
            if let (true, Kind::Tcp(tcp)) = (source.0 == space, &flow.kind) {
                worker.ends.push((number, End::Sender(Sender::new(tcp))));
            }
        }
        Ok(worker)
    }

    /// Runs until told to stop.
    pub fn run(mut self, clock: Clock) -> Result<(), LabError> {
        self.schedule(clock);
        let mut events = Vec::with_capacity(64);
        loop {
            let now = monotonic();
            while let Some(&Reverse((at, end, event))) = self.timers.peek() {
                if at > now {
                    break;
                }
                self.timers.pop();
                self.happen(end, event, clock)?;
            }
            let wait = self.timers.peek().map(|Reverse((at, ..))| at.saturating_sub(monotonic()));
            let wait = wait.map(|ns| Timespec {
                tv_sec: (ns / NANOS_PER_SEC).cast_signed(),
                tv_nsec: (ns % NANOS_PER_SEC).cast_signed(),
            });
            events.clear();
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                wait.as_ref(),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(why) => return Err(LabError::failed("wait for its sockets", why)),
            }
            for event in &events {
                match event.data.u64() {
                    STOP => return Ok(()),
                    end => self.ready(end as usize, event.flags, clock)?,
                }
            }
        }
    }

    /// Sets the times of all that is planned.
    fn schedule(&mut self, clock: Clock) {
        for (end, (flow, what)) in self.ends.iter().enumerate() {
            let plan = &self.shared.flows[*flow];
            let (Kind::Tcp(tcp), End::Sender(_), Some(start)) = (&plan.kind, what, plan.start)
            else {
                continue;
            };
            let start = clock.zero() + start;
            self.timers.push(Reverse((start - tcp.connects_early.min(start), end, Event::Connect)));
            self.timers.push(Reverse((start, end, Event::Start)));
            if let Some(stop) = plan.stop {
                self.timers.push(Reverse((clock.zero() + stop, end, Event::Stop)));
            }
        }
    }

    /// Watches an end.
    fn add(&mut self, flow: usize, end: End, flags: epoll::EventFlags) -> Result<(), LabError> {
        if let End::Listener(socket) | End::Receiver(socket) | End::Datagrams(socket) = &end {
            self.watch(socket.as_fd(), self.ends.len(), flags)?;
        }
        self.ends.push((flow, end));
        Ok(())
    }

    fn watch(
        &self,
        socket: BorrowedFd<'_>,
        end: usize,
        flags: epoll::EventFlags,
    ) -> Result<(), LabError> {
        epoll::add(&self.epoll, socket, epoll::EventData::new_u64(end as u64), flags)
            .map_err(|why| LabError::failed("watch a socket", why))
    }

    /// The time of something has come.
    fn happen(&mut self, end: usize, event: Event, clock: Clock) -> Result<(), LabError> {
        let shared = self.shared.clone();
        let flow = self.ends[end].0;
        let (plan, state) = (&shared.flows[flow], &shared.states[flow]);
        match event {
            Event::Connect => {
                let Kind::Tcp(tcp) = &plan.kind else { return Ok(()) };
                let way = &shared.ways[plan.way];
                let [from, to] =
                    [way.source.1, way.destination.1].map(|ip| SocketAddr::new(ip, plan.port));
                let socket = open::sender(from, to, tcp, shared.xcp.as_ref())?;
                self.watch(
                    socket.as_fd(),
                    end,
                    epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET,
                )?;
                state.set_sender(socket);
                return Ok(());
            }
            Event::Start => self.sender(end, |s| s.started = true),
            Event::Stop => {
                state.stop();
                self.sender(end, |s| s.stopped = true);
            }
            Event::Poll => self.sender(end, |s| s.polled = false),
        }
        self.write(end, clock)
    }

    fn sender(&mut self, end: usize, change: impl FnOnce(&mut Sender)) {
        if let End::Sender(sender) = &mut self.ends[end].1 {
            change(sender);
        }
    }

    /// The kernel says that something can be done with an end.
    fn ready(
        &mut self,
        end: usize,
        flags: epoll::EventFlags,
        clock: Clock,
    ) -> Result<(), LabError> {
        let flow = self.ends[end].0;
        let shared = self.shared.clone();
        let state = &shared.states[flow];
        match &mut self.ends[end].1 {
            End::Listener(listener) => {
                match accept_with(&*listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                    Ok(socket) => {
                        self.ends[end].1 = End::Done;
                        self.add(flow, End::Receiver(socket), epoll::EventFlags::IN)?;
                    }
                    Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => {}
                    Err(why) => return Err(LabError::failed("accept a connection", why)),
                }
            }
            End::Receiver(socket) => {
                // MSG_TRUNC: TCP throws the data away without copying it.
                match recv(&*socket, self.buffer.as_mut_slice(), RecvFlags::TRUNC) {
                    Ok((_, 0)) => self.ends[end].1 = End::Done,
                    Ok((_, bytes)) => {
                        state.deliver(bytes as u64);
                        if let Kind::Tcp(TcpPlan { window_clamp: Some(bytes), .. }) =
                            &shared.flows[flow].kind
                        {
                            open::clamp_window(&*socket, *bytes)
                                .map_err(|why| LabError::failed("bound a window", why))?;
                        }
                    }
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(why) => {
                        state.fail(format!("the receiving end failed: {}", io::Error::from(why)));
                        self.ends[end].1 = End::Done;
                    }
                }
            }
            End::Datagrams(socket) => {
                while let Ok((_, bytes)) = recv(&*socket, &mut self.buffer[..1], RecvFlags::TRUNC) {
                    state.deliver(bytes as u64);
                }
            }
            End::Sender(sender) => {
                let Some(socket) = state.sender() else { return Ok(()) };
                if flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP)
                    && let Ok(Err(why)) = sockopt::socket_error(socket)
                {
                    let what = if sender.connected {
                        "the sending end failed"
                    } else {
                        "it could not connect"
                    };
                    state.fail(format!("{what}: {}", io::Error::from(why)));
                    self.ends[end].1 = End::Done;
                    return Ok(());
                }
                if flags.contains(epoll::EventFlags::OUT) {
                    sender.connected = true;
                }
                self.write(end, clock)?;
            }
            End::Done => {}
        }
        Ok(())
    }

    /// Writes what a sender may write, and sees whether it is through.
    fn write(&mut self, end: usize, clock: Clock) -> Result<(), LabError> {
        let shared = self.shared.clone();
        let flow = self.ends[end].0;
        let state = &shared.states[flow];
        let (End::Sender(sender), Some(socket), Kind::Tcp(plan)) =
            (&mut self.ends[end].1, state.sender(), &shared.flows[flow].kind)
        else {
            return Ok(());
        };
        if !(sender.connected && sender.started) {
            return Ok(());
        }
        let mut poll = false;
        if !sender.stopped && sender.left > 0 {
            let more = sender.fill(socket, plan, &self.buffer, state)?;
            poll |= plan.send_segments.is_some();
            if more {
                self.timers.push(Reverse((monotonic(), end, Event::Poll)));
                return Ok(());
            }
        }
        if sender.is_complete(socket) {
            state.complete(clock.now());
            // Lets the other end know that no more will come.
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Write);
            self.ends[end].1 = End::Done;
            return Ok(());
        }
        if poll && !sender.polled {
            sender.polled = true;
            self.timers.push(Reverse((monotonic() + POLL, end, Event::Poll)));
        }
        Ok(())
    }
}

impl Sender {
    fn new(plan: &TcpPlan) -> Self {
        Self {
            connected: false,
            started: false,
            stopped: false,
            left: plan.settings.bytes.unwrap_or(u64::MAX),
            total: plan.settings.bytes,
            buffer: plan.send_segments,
            polled: false,
        }
    }

    /// Writes until there is no room or nothing left, or its turn is over; says whether it was
    /// that.
    fn fill(
        &mut self,
        socket: BorrowedFd<'_>,
        plan: &TcpPlan,
        data: &[u8],
        state: &FlowState,
    ) -> Result<bool, LabError> {
        // A buffer of n segments is made by writing n, and then not letting it become larger than
        // that has made it.
        let mut room =
            self.buffer.map_or(u64::MAX, |segments| u64::from(segments) * u64::from(plan.payload));
        let mut turn = TURN;
        while self.left > 0 && room > 0 && turn > 0 {
            let bytes = self.left.min(room).min(data.len() as u64) as usize;
            if bytes as u64 == self.left {
                // The last of it: its acknowledgement is told through the error queue.
                socket::tell_acknowledged(socket)
                    .map_err(|why| LabError::failed("ask for a transfer's end", why))?;
            }
            match send(socket, &data[..bytes], SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    if self.total.is_some() {
                        self.left -= sent as u64;
                    }
                    room = room.saturating_sub(sent as u64);
                    turn = turn.saturating_sub(sent as u64);
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(why) => {
                    state.fail(format!("the sending end failed: {}", io::Error::from(why)));
                    self.stopped = true;
                    break;
                }
            }
        }
        if self.buffer.take().is_some() {
            socket::keep_send_buffer(socket)
                .map_err(|why| LabError::failed("set a send buffer", why))?;
        }
        Ok(turn == 0)
    }

    /// Whether all has been written and acknowledged.
    fn is_complete(&self, socket: BorrowedFd<'_>) -> bool {
        let Some(total) = self.total.filter(|_| self.left == 0) else { return false };
        // The SYN counts one.
        socket::drain_errors(socket);
        TcpInfo::of(socket).is_ok_and(|info| info.acked_bytes > total)
    }
}
