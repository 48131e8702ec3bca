//! The router program (`bpf/router.bpf.c`, or for a law with a calendar `bpf/robust.bpf.c`) on one
//! device: attach, change, read. What is loaded and lies in its maps is `port.rs`'s; what shapes
//! the device, `qdisc.rs`'s; where it is kept while no process runs, `kept`'s.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use libbpf_rs::{ErrorKind, MapFlags, MapHandle, TC_EGRESS, TC_INGRESS, TcHook, TcHookBuilder};
use xcp_engine::{CapacityKnown, Control as Knows, Policer, Preset, RobustRouter, RouterState};

use crate::error::{Error, Result};
use crate::kept::file_system::Directory;
use crate::link::{self, Link, Position, Target};
use crate::namespace::Called;
use crate::netlink::Netlink;
use crate::object::{hush, read_only_entry, write_only_entry};
use crate::police::{Police, Policing};
use crate::port;
use crate::shared::{xcp_control, xcp_port, xcp_robust_port};
use crate::urgent::{Bound, Urgent, UrgentCounts};

/// Priority and handle of our filter where the device has to be reached by clsact: a filter of ours
/// can be told from others.
const CLSACT_HANDLE: u32 = 0x7863;

/// Settings of a router.
#[derive(Debug, Clone)]
pub struct RouterConfig {
    /// The law; its `input` says whether traffic that is not XCP's counts as input. Its
    /// capacity is the link's.
    pub law: xcp_engine::RouterConfig,
    /// Of the rounding of feedback.
    pub seed: u64,
    /// Bytes of the device's link-layer header: 14 on Ethernet, 0 on a tunnel that has none.
    pub link_bytes: u32,
    /// Where the program attaches: TCX or clsact.
    pub hook: Hook,
    /// The policer before the law, if there is to be one.
    pub police: Option<Police>,
    /// Whether packets are to be told apart for the two queues of [`install_classes`](crate::qdisc::install_classes); and
    /// then how many thousandths of the capacity the law may hand out, 1 to 1000.
    pub classes: Option<u16>,
    /// Whether [`Router::set_urgent`] may be called, for the two queues of
    /// [`install_urgent`](crate::qdisc::install_urgent); not together with `classes`.
    pub urgent: bool,
}

/// Where on a device's way out the program hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// TCX, from Linux 6.6 on; clsact where it is missing.
    Any,
    /// TCX only.
    Tcx,
    /// A clsact filter only.
    Clsact,
}

/// What passed a router, in packets (a super-packet counts as its segments) since it was attached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct RouterCounts {
    /// XCP data packets: counted and given feedback.
    pub processed: u64,
    /// Bytes of those packets.
    pub processed_bytes: u64,
    /// Of these, whose feedback was lowered here.
    pub lowered: u64,
    /// XCP's acknowledgements, without a forward header.
    pub returned: u64,
    /// Bytes of those acknowledgements.
    pub returned_bytes: u64,
    /// Packets that are neither.
    pub other: u64,
    /// Bytes of everything else.
    pub other_bytes: u64,
    /// Of the others: fragments, whose TCP options cannot be trusted to be there.
    pub fragments: u64,
    /// Of all: TCP headers or options whose lengths contradict each other.
    pub malformed: u64,
    /// Of the others: headers that could not be read.
    pub unreadable: u64,
    /// Of the others: XCP data packets that did not get at the law's state in time.
    pub contended: u64,
    /// Of the others: TCP's packets that the law had dropped, to steer TCP.
    pub steered: u64,
    /// Bytes that waited when the newest XCP packet came.
    pub backlog: u64,
    /// Most bytes that waited when one came.
    pub backlog_max: u64,
}

/// A router at work, as read at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterStatus {
    /// The law, if its choices are those of one that has a name.
    pub law: Option<Preset>,
    /// State of the law at that moment.
    pub state: RouterState,
    /// Counts of what has passed.
    pub counts: RouterCounts,
    /// The policer, if there is one.
    pub policing: Option<Policing>,
    /// What a law with a calendar knows besides.
    pub calendar: Option<Calendar>,
}

/// What a law with a calendar knows besides (engine/robust.h), at the end of its last part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calendar {
    /// The capacity that the law reckons with: what was told, or less where less leaves, bit/s.
    pub capacity_bps: f64,
    /// What has been promised and has not been seen yet, bit/s.
    pub promised_bps: f64,
    /// Flows of TCP without XCP, as counted.
    pub tcp_flows: f64,
    /// The probability at which their packets are dropped.
    pub drop_probability: f64,
}

/// A router program on a device. It works as long as this value lives, or for good once it is
/// pinned.
#[derive(Debug)]
pub struct Router {
    port: MapHandle,
    control: MapHandle,
    /// Whether the program is that of a law with a calendar.
    calendar: bool,
    attached: Attached,
    /// The program, to attach it to another device; not there once kept.
    program: Option<OwnedFd>,
    /// Where it is told what is urgent, if it may be.
    bound: Option<Bound>,
}

/// Where a router that is kept hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hangs {
    /// On no device: it has gone, or the router was taken off.
    Nowhere,
    /// The command that was to attach it did not come to its end; where the device is not here, no
    /// program of it is left either.
    Unfinished,
    /// By TCX, which goes with its device to other namespaces: the number of its program.
    By(u32),
    /// By a filter, which goes with its device nowhere.
    Somewhere,
}

/// What a router's directory holds: its maps, and the link where there is one.
const PORT: &str = "port";
const CONTROL: &str = "control";
const LINK: &str = "link";

/// Whether what is kept in a directory is less than a router: the command that was to make it did
/// not come to its end.
pub(crate) fn is_half_made(directory: &Directory) -> bool {
    !directory.has(PORT) || !directory.has(CONTROL)
}

/// What holds the program on the device.
#[derive(Debug)]
enum Attached {
    Tcx(Link),
    Clsact(Filter),
}

/// A clsact filter, taken off when dropped unless `kept`.
#[derive(Debug)]
struct Filter {
    /// Of a program or map of the router's; to attach it has to be the program.
    fd: OwnedFd,
    ifindex: u32,
    /// Whether the hook was not there before us: then it goes, too.
    made: bool,
    /// Whether it came as far as to hang.
    hung: bool,
    kept: bool,
}

impl Filter {
    fn hook(&self) -> TcHook {
        let index = i32::try_from(self.ifindex).unwrap_or(0);
        TcHookBuilder::new(self.fd.as_fd())
            .ifindex(index)
            .handle(CLSACT_HANDLE)
            .priority(1)
            .replace(false)
            .hook(TC_EGRESS)
    }

    /// The number of the program that is there, whoever's it is.
    fn program(&self) -> io::Result<Option<u32>> {
        match self.hook().query() {
            Ok(program) => Ok(Some(program)),
            // No such filter; no such hook.
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => Ok(None),
            Err(e) => Err(io::Error::other(e)),
        }
    }

    /// The hook goes if it came with the router, and with nobody else's filters in it: they would
    /// go, too.
    fn take_back_hook(&self) {
        let used = || {
            Netlink::open()
                .and_then(|mut netlink| netlink.has_filters(self.ifindex))
                .unwrap_or(true)
        };
        if self.made && !used() {
            let _ = self.hook().attach_point(TC_INGRESS | TC_EGRESS).destroy();
        }
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        let _ = self.hook().detach();
        self.take_back_hook();
    }
}

/// Whether the kernel's programs can do what is asked of them. What the engine does not take of a
/// law is for [`xcp_engine::RouterConfig::check`] to say.
///
/// # Errors
/// What a law with a calendar does not go with here, by the words of `xcpnet router add`.
pub fn check(law: &xcp_engine::RouterConfig, policed: bool, classes: bool) -> Result<()> {
    let calendar = law.control == Knows::Calendar;
    let refused = |key: &str, why: &str, remedy: &str| {
        Err(Error::new(format!("{key}: {why}")).remedy(remedy))
    };
    if calendar && policed {
        let why = "the law `robust` has no policer";
        refused("police", why, "leave it out, or choose another law")
    } else if calendar && classes {
        let why = "the law `robust` steers TCP in its own queue, and has no separate queue for \
            others";
        refused("others", why, "leave it out, or choose another law")
    } else if law.capacity_known == CapacityKnown::Measured {
        let why = "a kernel program does not see packets leave, and so cannot measure the capacity";
        refused("capacity-known", why, "leave it out, and give the router the capacity")
    } else {
        Ok(())
    }
}

/// The time the program sees, ns.
fn now_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

impl Router {
    /// Loads the program and attaches it to the way out of a device of the calling thread's network
    /// namespace.
    ///
    /// # Errors
    /// A law out of range; a kernel that lacks what is needed, or denies it.
    pub fn attach(ifindex: u32, config: &RouterConfig) -> Result<Self> {
        Self::set_up(ifindex, config, None)
    }

    /// As [`Router::attach`], with program and maps kept in a directory of a BPF file system, so
    /// that they outlive this process.
    ///
    /// # Errors
    /// As there; the directory is not on a BPF file system or holds a router already.
    pub(crate) fn attach_kept(
        ifindex: u32,
        config: &RouterConfig,
        directory: &Directory,
    ) -> Result<Self> {
        Self::set_up(ifindex, config, Some(directory))
    }

    fn set_up(ifindex: u32, config: &RouterConfig, kept: Option<&Directory>) -> Result<Self> {
        hush();
        check(&config.law, config.police.is_some(), config.classes.is_some())?;
        let police = config.police.as_ref();
        let calendar = config.law.control == Knows::Calendar;
        if calendar && config.urgent {
            let why = "urgent: the law `robust` has no queue for urgent packets";
            return Err(Error::new(why).remedy("leave it out, or choose another law"));
        }
        let settings = xcp_control::new(
            config.law.capacity_bytes_per_sec,
            police,
            config.classes.unwrap_or(1000),
            calendar,
        );
        let law = xcp_engine::RouterConfig {
            capacity_bytes_per_sec: settings.capacity,
            ..config.law.clone()
        };
        let wrong = |e| Error::new(format!("the router's law: {e}"));
        let known = port::Settings {
            link_bytes: Some(config.link_bytes),
            rehearsal: false,
            classes: config.classes.is_some(),
            police,
            urgent: config.urgent,
        };
        let program = if calendar {
            let law = RobustRouter::new(&law, now_ns(), config.seed).map_err(wrong)?;
            let program = port::load(true, known)?;
            program.begin(&xcp_robust_port::new(&law))?;
            program
        } else {
            let mut law = xcp_engine::Router::new(&law, now_ns(), config.seed).map_err(wrong)?;
            let policer = police.map(|police| Policer::new(&police.config, &mut law));
            let program = port::load(false, known)?;
            program.begin(&xcp_port::new(&law, policer.as_ref()))?;
            program
        };
        let port::Loaded { program, port, control, bound, .. } = program;
        write_only_entry(&control, MapFlags::ANY, &settings, "the router's settings")?;
        // What has no place of its own to be kept in, a filter, hangs only once all else is kept.
        if let Some(directory) = kept {
            link::pin(port.as_fd(), directory, PORT)?;
            link::pin(control.as_fd(), directory, CONTROL)?;
        }
        let mut attached = hang(program.as_fd(), ifindex, config.hook)?;
        if let Attached::Clsact(Filter { made, .. }) = attached {
            let settings = xcp_control { clsact: 1, made_clsact: made.into(), ..settings };
            write_only_entry(&control, MapFlags::ANY, &settings, "the router's settings")?;
        }
        if let Some(directory) = kept {
            match &mut attached {
                Attached::Tcx(link) => link.pin(directory, LINK)?,
                Attached::Clsact(filter) => filter.kept = true,
            }
        }
        Ok(Self { port, control, calendar, attached, program: Some(program), bound })
    }

    /// Attaches it to another device of the calling thread's network namespace instead, of the same
    /// kind: the first one has gone, and this one has come for it. It goes on with what it knows.
    ///
    /// # Errors
    /// No such device; a kernel without TCX, where the first one hung as a filter.
    pub fn attach_again(&mut self, ifindex: u32) -> Result<()> {
        let lacking = || {
            Error::new(format!("cannot attach the router to device {ifindex} again"))
                .remedy("start it anew")
        };
        let program = self.program.as_ref().ok_or_else(lacking)?;
        let Attached::Tcx(before) = &self.attached else { return Err(lacking()) };
        // Where the device has been in another namespace, the program hangs on it still.
        before.detach();
        let link = Link::new(program.as_fd(), Target::Egress(ifindex, position(ifindex))).map_err(
            |e| {
                Error::because(
                    format_args!("cannot attach the router to device {ifindex} (TCX egress)"),
                    e,
                )
            },
        )?;
        self.attached = Attached::Tcx(link);
        Ok(())
    }

    /// What it is doing.
    ///
    /// # Errors
    /// The maps cannot be read.
    pub fn status(&self) -> Result<RouterStatus> {
        let control: xcp_control =
            read_only_entry(&self.control, MapFlags::ANY, "the router's settings")?;
        // The law hears of another capacity with the next packet.
        let told_bps = control.capacity as f64 * 8.0;
        let told = |state: RouterState| RouterState { capacity_bps: told_bps, ..state };
        if self.calendar {
            let (router, counts) = port::read::<xcp_robust_port>(&self.port)?.parts();
            let (drop_probability, tcp_flows) = router.tcp();
            let has_heard = router.state().capacity_bps == told_bps;
            let capacity_bps = if has_heard { router.capacity_bps() } else { told_bps };
            let promised_bps = router.promised_bps();
            return Ok(RouterStatus {
                law: Some(Preset::Robust),
                state: told(router.state()),
                counts,
                policing: None,
                calendar: Some(Calendar {
                    capacity_bps,
                    promised_bps,
                    tcp_flows,
                    drop_probability,
                }),
            });
        }
        let port: xcp_port = port::read(&self.port)?;
        let (router, counts) = port.parts();
        Ok(RouterStatus {
            law: router.law(),
            state: told(router.state()),
            counts,
            policing: control.policing(&port.policer()),
            calendar: None,
        })
    }

    /// The link has another capacity from now on, bytes/s (at least 1); the law has its share of
    /// that.
    ///
    /// # Errors
    /// The maps cannot be written.
    pub fn set_capacity(&self, bytes_per_sec: u64) -> Result<()> {
        let control: xcp_control =
            read_only_entry(&self.control, MapFlags::ANY, "the router's settings")?;
        let control = control.at(bytes_per_sec);
        write_only_entry(&self.control, MapFlags::ANY, &control, "the router's settings")
    }

    /// These packets go first from now on, where there is a queue for them.
    ///
    /// # Errors
    /// The maps cannot be written; the router was not made for it.
    pub fn set_urgent(&self, urgent: Option<Urgent>) -> Result<()> {
        match &self.bound {
            Some(bound) => bound.set(urgent),
            None => Err(Error::new("this router has one queue for all packets")),
        }
    }

    /// What passed with an urgent mark; `None`: the router was not made for it.
    ///
    /// # Errors
    /// The maps cannot be read.
    pub fn urgent_counts(&self) -> Result<Option<UrgentCounts>> {
        self.bound.as_ref().map(Bound::counts).transpose()
    }

    /// Thousandths of the link's capacity that the law has.
    ///
    /// # Errors
    /// The maps cannot be read.
    pub fn law_share(&self) -> Result<u16> {
        let control: xcp_control =
            read_only_entry(&self.control, MapFlags::ANY, "the router's settings")?;
        Ok(u16::try_from(control.law_share).unwrap_or(1000))
    }

    /// A router that was kept in a directory. Dropping the value leaves the program where it is.
    ///
    /// # Errors
    /// Nothing is kept there, or another version's.
    pub(crate) fn open(directory: &Directory, ifindex: u32) -> Result<Self> {
        hush();
        let (port, control) =
            (link::open_map(directory, PORT)?, link::open_map(directory, CONTROL)?);
        let settings: xcp_control =
            read_only_entry(&control, MapFlags::ANY, "the router's settings")?;
        let attached = if directory.has(LINK) {
            Attached::Tcx(Link::open(directory, LINK)?)
        } else {
            let fd = port
                .as_fd()
                .try_clone_to_owned()
                .map_err(|e| Error::because("cannot hold a map", e))?;
            let (made, hung) = (settings.made_clsact != 0, settings.clsact != 0);
            Attached::Clsact(Filter { fd, ifindex, made, hung, kept: true })
        };
        Ok(Self {
            port,
            control,
            calendar: settings.calendar != 0,
            attached,
            program: None,
            bound: None,
        })
    }

    /// Whether, and by which program, it hangs on a device in any namespace. is_here: its device is
    /// in the calling thread's.
    ///
    /// # Errors
    /// It cannot be known.
    pub(crate) fn hangs(&self, is_here: bool) -> Result<Hangs> {
        let look = || -> io::Result<Hangs> {
            let hangs = match &self.attached {
                Attached::Tcx(link) => match link.place()? {
                    (_, 0) => return Ok(Hangs::Nowhere),
                    (program, _) => return Ok(Hangs::By(program)),
                },
                Attached::Clsact(filter) if is_here && filter.hung => self.has(filter)?,
                // A filter hangs a moment before that is written down.
                Attached::Clsact(filter)
                    if !filter.hung && (is_here || !link::has_program(&self.port)?) =>
                {
                    return Ok(Hangs::Unfinished);
                }
                // The filter is all that holds the program, which goes a moment later.
                Attached::Clsact(_) => link::has_program(&self.port)?,
            };
            Ok(if hangs { Hangs::Somewhere } else { Hangs::Nowhere })
        };
        look().map_err(|e| Error::because("cannot see whether the router is attached", e))
    }

    /// Whether a filter of the calling thread's network namespace is this router's.
    fn has(&self, filter: &Filter) -> io::Result<bool> {
        filter.program()?.map_or(Ok(false), |program| link::uses(program, &self.port))
    }

    /// How it hangs on the device: `tcx` or `clsact`.
    #[must_use]
    pub fn hook(&self) -> &'static str {
        match self.attached {
            Attached::Tcx(_) => "tcx",
            Attached::Clsact(_) => "clsact",
        }
    }

    /// The programs of others that see packets of this device of the calling thread's network
    /// namespace before the router does. What they decide on (TCX_PASS is a decision, too) never
    /// gets here.
    #[must_use]
    pub fn behind(&self, ifindex: u32) -> Vec<String> {
        let own = match &self.attached {
            Attached::Tcx(link) => link.program(),
            // All of TCX is before clsact.
            Attached::Clsact(_) => None,
        };
        let before =
            link::on_the_way_out(ifindex).into_iter().take_while(|hung| Some(hung.program) != own);
        before.map(|hung| hung.name).filter(|name| !name.starts_with(ROOM)).collect()
    }

    /// Takes the program off the device for good, pinned or not; the directory's files are the
    /// caller's to remove. A filter that somebody has put in its place stays.
    ///
    /// # Errors
    /// The filter cannot be seen, or not be removed.
    pub(crate) fn detach(self) -> Result<()> {
        let filter = match &self.attached {
            Attached::Tcx(link) => {
                link.detach();
                return Ok(());
            }
            Attached::Clsact(filter) => filter,
        };
        let told = |e: &dyn std::fmt::Display| {
            Error::new(format!("cannot take the router off the device (clsact egress): {e}"))
        };
        if self.has(filter).map_err(|e| told(&e))? {
            filter.hook().detach().map_err(|e| told(&e))?;
        }
        filter.take_back_hook();
        Ok(())
    }
}

/// Takes a router that was kept off its device, for good; its files are the caller's to remove.
///
/// # Errors
/// A filter that cannot be seen or removed, or is another version's: it would work on.
pub(crate) fn take_off(directory: &Directory, ifindex: u32) -> Result<()> {
    match Router::open(directory, ifindex) {
        Ok(router) => router.detach(),
        // Of another version: its link is all that it takes.
        Err(_) if directory.has(LINK) => {
            Link::open(directory, LINK)?.detach();
            Ok(())
        }
        Err(e) => Err(e),
    }
}

/// How the names of the endpoint's programs begin that make room beside SACK (bpf/endpoint_room.h).
const ROOM: &str = "xcp_room";

/// Before all others, which might keep packets from it; but after the endpoint of this very host,
/// whose option is to be read.
fn position(ifindex: u32) -> Position {
    let room = link::on_the_way_out(ifindex).into_iter().rfind(|hung| hung.name.starts_with(ROOM));
    room.map_or(Position::First, |hung| Position::After(hung.program))
}

fn hang(program: BorrowedFd<'_>, ifindex: u32, hook: Hook) -> Result<Attached> {
    if hook != Hook::Clsact {
        match Link::new(program, Target::Egress(ifindex, position(ifindex))) {
            Ok(link) => return Ok(Attached::Tcx(link)),
            // EINVAL: a kernel before 6.6 does not know this kind of link.
            Err(e) if hook == Hook::Any && e.raw_os_error() == Some(libc::EINVAL) => {}
            Err(e) => {
                return Err(Error::because(
                    "cannot attach the router program to the device (TCX egress)",
                    e,
                ));
            }
        }
    }
    let fd =
        program.try_clone_to_owned().map_err(|e| Error::because("cannot hold a program", e))?;
    // To make one that is there is no error to libbpf: whose it is has to be seen before.
    let made = !Netlink::open()?.has_clsact(ifindex)?;
    let mut filter = Filter { fd, ifindex, made, hung: true, kept: true };
    let told = |e: libbpf_rs::Error| {
        Error::because("cannot attach the router program to the device (clsact egress)", e)
    };
    filter.hook().create().map_err(told)?;
    match filter.hook().attach() {
        Ok(_) => {
            filter.kept = false;
            Ok(Attached::Clsact(filter))
        }
        Err(e) => {
            filter.take_back_hook();
            // A filter of this very number, or of another kind at this priority.
            Err(match e.kind() {
                ErrorKind::AlreadyExists | ErrorKind::InvalidInput if !filter.made => Error::new(
                    "the device's egress has somebody else's filter at priority 1 (clsact \
                     egress), where the router's would go",
                )
                .remedy(format!(
                    "`{} filter show dev {} egress` shows it; move it to another priority, or \
                     leave out `hook clsact` if the kernel has TCX",
                    Called::entered().command("tc"),
                    Netlink::open()?.link(ifindex)?.name
                )),
                _ => told(e),
            })
        }
    }
}
