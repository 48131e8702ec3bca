//! The router program run on packets at hand (BPF_PROG_TEST_RUN), with time and backlog given: for
//! holding it against the host's build of the engine, and for measuring what it costs. And a
//! middlebox for tests.

use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, ProgramType};
use std::os::fd::{AsFd as _, OwnedFd};

use xcp_engine::{
    Answer, ForwardHeader, POLICED_SET_WORDS, POLICER_WORDS, Policer, ROBUST_SENDER_WORDS,
    RobustRouter, RobustSender,
};

use crate::endpoint::{Endpoint, EndpointConfig};
use crate::error::{Error, Result};
use crate::link::{self, Link, Position, Target};
use crate::object::{cast, handle, hush, read_only_entry, write_only_entry};
use crate::police::Police;
use crate::port::{self, Loaded};
use crate::programs::testing::TestingSkelBuilder;
use crate::router::RouterCounts;
use crate::shared::{
    xcp_control, xcp_port, xcp_robust_answer, xcp_robust_port, xcp_robust_step, xcp_step,
};

/// What of `struct __sk_buff` a test run takes in (include/uapi/linux/bpf.h), by offset.
const MARK_AT: usize = 8;
const TSTAMP_AT: usize = 152;
const WIRE_LEN_AT: usize = 160;
const GSO_SEGS_AT: usize = 164;
const CONTEXT_BYTES: usize = 192;

/// A packet as a device's way out would see it.
#[derive(Debug, Clone)]
pub struct Sight<'p> {
    /// The Ethernet frame that is passed to the program.
    pub frame: &'p [u8],
    /// Time at which it passes, ns.
    pub now_ns: u64,
    /// Bytes that wait before it.
    pub backlog: u32,
    /// Bytes on the wire of all its segments, at least the frame's length.
    pub wire_bytes: u32,
    /// Segments it stands for; 0 and 1 are one.
    pub segments: u32,
}

/// A loaded router program.
#[derive(Debug)]
pub struct Rehearsal {
    loaded: Loaded,
    calendar: bool,
    police: Option<Police>,
}

impl Rehearsal {
    /// Loads the program; `live`: with the kernel's clock and queue, as when it is attached, for
    /// measuring.
    ///
    /// # Errors
    /// As [`crate::router::Router::attach`].
    pub fn load(live: bool) -> Result<Self> {
        Self::load_policed(live, None)
    }

    /// The same with a policer.
    ///
    /// # Errors
    /// As [`crate::router::Router::attach`].
    pub fn load_policed(live: bool, police: Option<&Police>) -> Result<Self> {
        Self::load_kind(false, live, police)
    }

    /// The program of a law with a calendar.
    ///
    /// # Errors
    /// As [`crate::router::Router::attach`].
    pub fn load_robust(live: bool) -> Result<Self> {
        Self::load_kind(true, live, None)
    }

    fn load_kind(calendar: bool, live: bool, police: Option<&Police>) -> Result<Self> {
        hush();
        let settings = port::Settings {
            link_bytes: None,
            rehearsal: !live,
            classes: false,
            police,
            urgent: false,
        };
        Ok(Self { loaded: port::load(calendar, settings)?, calendar, police: police.copied() })
    }

    /// Begins anew with a router of this capacity in this state; the counters are zero.
    ///
    /// # Errors
    /// The maps cannot be written.
    pub fn begin(&self, bytes_per_sec: u64, router: &xcp_engine::Router) -> Result<()> {
        self.begin_policed(bytes_per_sec, router, None)
    }

    /// The same with a policer in this state; its table is empty.
    ///
    /// # Errors
    /// The maps cannot be written.
    pub fn begin_policed(
        &self,
        bytes_per_sec: u64,
        router: &xcp_engine::Router,
        policer: Option<&Policer>,
    ) -> Result<()> {
        self.set_capacity(bytes_per_sec)?;
        let policed = self.policed()?;
        for place in 0..policed.max_entries() {
            let written =
                policed.update(&place.to_ne_bytes(), &[0; POLICED_SET_WORDS * 8], MapFlags::ANY);
            written.map_err(|e| Error::because("cannot write the policer's table", e))?;
        }
        self.loaded.begin(&xcp_port::new(router, policer))
    }

    /// The same for a law with a calendar.
    ///
    /// # Errors
    /// The maps cannot be written.
    pub fn begin_robust(&self, bytes_per_sec: u64, router: &RobustRouter) -> Result<()> {
        self.set_capacity(bytes_per_sec)?;
        self.loaded.begin(&xcp_robust_port::new(router))
    }

    fn set_capacity(&self, bytes_per_sec: u64) -> Result<()> {
        let settings = xcp_control::new(bytes_per_sec, self.police.as_ref(), 1000, self.calendar);
        let control = &self.loaded.control;
        write_only_entry(control, MapFlags::ANY, &settings, "the router's settings")
    }

    fn policed(&self) -> Result<&MapHandle> {
        let none = || Error::new("this router program has no policer");
        self.loaded.policed.as_ref().ok_or_else(none)
    }

    /// Runs the program on a packet and returns the frame as it leaves.
    ///
    /// # Errors
    /// The kernel does not run it; the policer refuses the packet.
    pub fn show(&self, sight: &Sight<'_>) -> Result<Vec<u8>> {
        self.admit(sight)?.ok_or_else(|| Error::new("the router refuses the packet"))
    }

    /// The same where there is a policer: `None` if it refuses the packet.
    ///
    /// # Errors
    /// The kernel does not run it.
    pub fn admit(&self, sight: &Sight<'_>) -> Result<Option<Vec<u8>>> {
        let mut context = [0; CONTEXT_BYTES];
        let mut put =
            |at: usize, bytes: &[u8]| context[at..at + bytes.len()].copy_from_slice(bytes);
        put(MARK_AT, &sight.backlog.to_ne_bytes());
        put(TSTAMP_AT, &sight.now_ns.to_ne_bytes());
        put(WIRE_LEN_AT, &sight.wire_bytes.to_ne_bytes());
        put(GSO_SEGS_AT, &sight.segments.to_ne_bytes());
        let mut out = vec![0; sight.frame.len() + 256];
        let ran = self.run(sight.frame, Some(&mut context), Some(&mut out), 1)?;
        out.truncate(ran.length);
        Ok((ran.verdict != DROP).then_some(out))
    }

    /// Mean time of a run on this frame, ns, out of `repeat`.
    ///
    /// # Errors
    /// As [`Rehearsal::show`].
    pub fn cost_ns(&self, frame: &[u8], repeat: u32) -> Result<u32> {
        Ok(self.run(frame, None, None, repeat)?.mean_ns)
    }

    fn run(
        &self,
        frame: &[u8],
        context: Option<&mut [u8]>,
        out: Option<&mut [u8]>,
        repeat: u32,
    ) -> Result<Ran> {
        run(self.loaded.program.as_fd(), frame, context, out, repeat)
    }

    /// The law's state and the counters.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn read(&self) -> Result<(xcp_engine::Router, RouterCounts)> {
        Ok(port::read::<xcp_port>(&self.loaded.port)?.parts())
    }

    /// The same of a law with a calendar.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn read_robust(&self) -> Result<(RobustRouter, RouterCounts)> {
        Ok(port::read::<xcp_robust_port>(&self.loaded.port)?.parts())
    }

    /// The policer's state and its table, as they lie in memory.
    ///
    /// # Errors
    /// The maps cannot be read.
    pub fn read_policer(&self) -> Result<([u64; POLICER_WORDS], Vec<[u64; POLICED_SET_WORDS]>)> {
        let policed = self.policed()?;
        let set = |place: u32| {
            let bytes = policed.lookup(&place.to_ne_bytes(), MapFlags::ANY);
            let bytes = bytes
                .map_err(|e| Error::because("cannot read the policer's table", e))?
                .unwrap_or_default();
            let mut words =
                bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_ne_bytes));
            Ok(std::array::from_fn(|_| words.next().unwrap_or(0)))
        };
        let table = (0..policed.max_entries()).map(set).collect::<Result<_>>()?;
        Ok((port::read::<xcp_port>(&self.loaded.port)?.policer(), table))
    }
}

/// What happens to a robust sender.
#[derive(Debug, Clone, Copy)]
pub struct SenderStep {
    /// The event.
    pub what: SenderEvent,
    /// What comes with it; of others than answers, when.
    pub answer: Answer,
    /// Packets that buffers and application let be in flight.
    pub sendable: u32,
    /// Whether the pacer does not move packets that wait.
    pub late: bool,
}

/// What can happen to a robust sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderEvent {
    /// It begins, with packets of so many bytes and this window, packets.
    Begins(u32, u32),
    /// An acknowledgement comes.
    Answered,
    /// A router on its host lends it so many packets.
    Lent(u32),
    /// The retransmission timer expires.
    Timeout,
}

/// The robust sender in the kernel, without a connection.
#[derive(Debug)]
pub struct SenderRehearsal {
    program: OwnedFd,
    step: MapHandle,
    sender: [u64; ROBUST_SENDER_WORDS],
}

impl SenderRehearsal {
    /// Loads it.
    ///
    /// # Errors
    /// As [`Rehearsal::load`].
    pub fn load() -> Result<Self> {
        hush();
        let mut object = MaybeUninit::uninit();
        let open = TestingSkelBuilder::default()
            .open(&mut object)
            .map_err(|e| Error::because("cannot open a program", e))?;
        let skel = open
            .load()
            .map_err(|e| Error::because("the kernel does not take the tests' programs", e))?;
        let program = skel.progs.xcp_robust_steps.as_fd().try_clone_to_owned();
        Ok(Self {
            program: program.map_err(|e| Error::because("cannot hold a program", e))?,
            step: handle(&skel.maps.robust_step)?,
            sender: [0; ROBUST_SENDER_WORDS],
        })
    }

    /// The sender after a step, the header that it writes then, and the packets that may be in
    /// flight.
    ///
    /// # Errors
    /// The kernel does not run it.
    pub fn step(&mut self, step: &SenderStep) -> Result<(RobustSender, ForwardHeader, u32)> {
        let answer = &step.answer;
        let mut raw = xcp_robust_step {
            answer: xcp_robust_answer {
                now: answer.now_ns,
                sent_ns: answer.sent_ns,
                rtt_ns: answer.rtt_ns,
                srtt_ns: answer.srtt_ns,
                returned: cast(&answer.returned),
                answers: answer.answers,
                covered: answer.covered,
                delivered: answer.delivered,
                skipped: answer.skipped,
                missing: answer.missing,
                lost: answer.lost,
                stamp_ms: answer.stamp_ms,
                stamped: answer.stamped.into(),
                limited: answer.limited.into(),
                unused: answer.unused,
            },
            sendable: step.sendable,
            late: step.late.into(),
            sender: cast(&self.sender),
            ..xcp_robust_step::default()
        };
        raw.what = match step.what {
            SenderEvent::Begins(bytes, window) => {
                (raw.packet_bytes, raw.window) = (bytes, u64::from(window) << 32);
                xcp_step::XCP_STEP_BEGINS
            }
            SenderEvent::Answered => xcp_step::XCP_STEP_ANSWERED,
            SenderEvent::Lent(packets) => {
                raw.lent = packets;
                xcp_step::XCP_STEP_LENT
            }
            SenderEvent::Timeout => xcp_step::XCP_STEP_TIMEOUT,
        };
        write_only_entry(&self.step, MapFlags::ANY, &raw, "a sender's step")?;
        run(self.program.as_fd(), &[0; 64], None, None, 1)?;
        let raw: xcp_robust_step = read_only_entry(&self.step, MapFlags::ANY, "a sender's step")?;
        self.sender = cast(&raw.sender);
        Ok((RobustSender::from_words(&self.sender), cast(&raw.header), raw.limit))
    }
}

/// Mean time of a program that does nothing on this frame, ns: what the others' times contain
/// without their doing.
///
/// # Errors
/// As [`Rehearsal::load`].
pub fn nothing_ns(frame: &[u8], repeat: u32) -> Result<u32> {
    hush();
    let mut object = MaybeUninit::uninit();
    let open = TestingSkelBuilder::default()
        .open(&mut object)
        .map_err(|e| Error::because("cannot open a program", e))?;
    let skel = open
        .load()
        .map_err(|e| Error::because("the kernel does not take a program that does nothing", e))?;
    Ok(run(skel.progs.xcp_nothing.as_fd(), frame, None, None, repeat)?.mean_ns)
}

/// The names of the programs on a device's way out (TCX) in the calling thread's network namespace,
/// in the order in which packets pass them.
#[must_use]
pub fn order(ifindex: u32) -> Vec<String> {
    link::on_the_way_out(ifindex).into_iter().map(|hung| hung.name).collect()
}

/// An endpoint as on a kernel that refuses one of the programs that make room beside SACK: here
/// because it is said to be of another kind than it is.
///
/// # Errors
/// As [`Endpoint::load`].
pub fn endpoint_without_room(config: &EndpointConfig) -> Result<Endpoint> {
    Endpoint::load_changed(config, |open| {
        open.progs.xcp_room_bare.set_prog_type(ProgramType::Kprobe)
    })
}

/// An endpoint whose connections begin with what is lent, as on a kernel that does not ask its
/// congestion controls before it sends: here because it refuses the program.
///
/// # Errors
/// As [`Endpoint::load`].
pub fn endpoint_without_asking(config: &EndpointConfig) -> Result<Endpoint> {
    Endpoint::load_changed(config, |open| {
        open.progs.xcp_min_tso_segs.set_prog_type(ProgramType::Kprobe)
    })
}

/// An endpoint that shows the connections of one network namespace, as on a kernel that refuses to
/// iterate over the storage of sockets: here because it refuses the program.
///
/// # Errors
/// As [`Endpoint::load`].
pub fn endpoint_that_sees_here(config: &EndpointConfig) -> Result<Endpoint> {
    Endpoint::load_changed(config, |open| open.progs.xcp_show.set_prog_type(ProgramType::Kprobe))
}

/// What a middlebox does to packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mischief {
    /// Takes our option out of segments.
    Strip,
    /// Drops segments that carry it.
    Refuse,
    /// Drops them where they are not of a handshake.
    RefuseHeaders,
    /// Loses one of TCP's packets in sixteen.
    Lose,
    /// Decides that they leave, so that programs after it never see them.
    Pass,
    /// Claims an eighth of the window in what goes to port 7863.
    Lie,
}

/// A middlebox at a device's way out, as long as this value lives.
#[derive(Debug)]
pub struct Middlebox(#[expect(dead_code, reason = "held for its end")] Link);

impl Middlebox {
    /// Attaches it, in the calling thread's network namespace.
    ///
    /// # Errors
    /// As [`crate::router::Router::attach`].
    pub fn attach(ifindex: u32, mischief: Mischief) -> Result<Self> {
        Self::attach_at(ifindex, mischief, Position::Last)
    }

    /// The same before all programs that are there.
    ///
    /// # Errors
    /// As [`crate::router::Router::attach`].
    pub fn attach_first(ifindex: u32, mischief: Mischief) -> Result<Self> {
        Self::attach_at(ifindex, mischief, Position::First)
    }

    fn attach_at(ifindex: u32, mischief: Mischief, position: Position) -> Result<Self> {
        hush();
        let mut object = MaybeUninit::uninit();
        let open = TestingSkelBuilder::default()
            .open(&mut object)
            .map_err(|e| Error::because("cannot open a program", e))?;
        let skel = open
            .load()
            .map_err(|e| Error::because("the kernel does not take the tests' programs", e))?;
        let program = match mischief {
            Mischief::Strip => &skel.progs.xcp_strip,
            Mischief::Refuse => &skel.progs.xcp_refuse,
            Mischief::RefuseHeaders => &skel.progs.xcp_refuse_headers,
            Mischief::Lose => &skel.progs.xcp_lose,
            Mischief::Pass => &skel.progs.xcp_pass,
            Mischief::Lie => &skel.progs.xcp_lie,
        };
        let link = Link::new(program.as_fd(), Target::Egress(ifindex, position));
        link.map(Self).map_err(|e| Error::because("cannot attach a program", e))
    }
}

/// Another program on the same cgroup that wants to be called for header options of connections
/// that come in, as long as this value lives.
#[derive(Debug)]
pub struct Neighbour {
    #[expect(dead_code, reason = "held for its end")]
    link: Link,
    asked: MapHandle,
}

impl Neighbour {
    /// Attaches it to a cgroup.
    ///
    /// # Errors
    /// As [`crate::endpoint::Endpoint::attach`].
    pub fn attach(cgroup: std::os::fd::BorrowedFd<'_>) -> Result<Self> {
        hush();
        let mut object = MaybeUninit::uninit();
        let open = TestingSkelBuilder::default()
            .open(&mut object)
            .map_err(|e| Error::because("cannot open a program", e))?;
        let skel = open
            .load()
            .map_err(|e| Error::because("the kernel does not take the tests' programs", e))?;
        let link = Link::new(skel.progs.xcp_neighbour.as_fd(), Target::SockOps(cgroup));
        let link = link.map_err(|e| Error::because("cannot attach a program", e))?;
        Ok(Self { link, asked: handle(&skel.maps.asked)? })
    }

    /// How often it was asked for room in a packet.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn asked(&self) -> Result<u64> {
        crate::object::read_only_entry(&self.asked, MapFlags::ANY, "the neighbour's counter")
    }
}

/// What a program returns that drops a packet (TCX_DROP, TC_ACT_SHOT).
const DROP: u32 = 2;

/// What a run on a packet gave.
struct Ran {
    /// The frame's length afterwards.
    length: usize,
    mean_ns: u32,
    verdict: u32,
}

/// BPF_PROG_TEST_RUN.
fn run(
    program: std::os::fd::BorrowedFd<'_>,
    frame: &[u8],
    context: Option<&mut [u8]>,
    out: Option<&mut [u8]>,
    repeat: u32,
) -> Result<Ran> {
    use std::os::fd::AsRawFd as _;
    let size = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: std::mem::size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
        data_in: frame.as_ptr().cast(),
        data_size_in: size(frame.len()),
        repeat: i32::try_from(repeat).unwrap_or(i32::MAX),
        ..Default::default()
    };
    if let Some(context) = context {
        options.ctx_in = context.as_ptr().cast();
        options.ctx_size_in = size(context.len());
    }
    if let Some(out) = out {
        options.data_out = out.as_mut_ptr().cast();
        options.data_size_out = size(out.len());
    }
    // SAFETY: the buffers outlive the call, and their sizes are told.
    let done = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    if done < 0 {
        return Err(Error::because(
            "cannot run the router program on a packet",
            std::io::Error::from_raw_os_error(-done),
        ));
    }
    Ok(Ran {
        length: options.data_size_out as usize,
        mean_ns: options.duration,
        verdict: options.retval,
    })
}
