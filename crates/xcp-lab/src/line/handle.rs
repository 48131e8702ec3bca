//! Starting a line, asking it, stopping it.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, netdevice, socket};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space, set_current_timer_slack};

use super::config::{ETHERNET_HEADER_BYTES, LineConfig};
use super::forward::Forwarder;
use super::report::{Board, Report};
use super::ring::{Output, Ring, become_real_time};

/// A running line. It stops when it is dropped.
#[derive(Debug)]
pub struct Line {
    board: Arc<Board>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Line {
    /// Starts a line from one device to another, both in `namespace`, or in the caller's where
    /// there is none. When this returns, what the first device receives is being taken. Frames that
    /// come before the scenario's time zero pass as well.
    ///
    /// The line keeps the network namespace alive until it is stopped.
    ///
    /// # Errors
    /// When the configuration cannot be emulated, a device is not there, or the kernel refuses the
    /// sockets.
    pub fn start(
        config: &LineConfig,
        namespace: Option<BorrowedFd<'_>>,
        device_in: &str,
        device_out: &str,
    ) -> io::Result<Self> {
        config.check()?;
        let namespace = namespace.map(|namespace| namespace.try_clone_to_owned()).transpose()?;
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let board = Arc::new(Board::default());
        let (started, has_started) = mpsc::sync_channel(1);
        let thread = {
            let (config, stop, board) = (config.clone(), Arc::clone(&stop), Arc::clone(&board));
            let names = [device_in.to_owned(), device_out.to_owned()];
            // Fifteen bytes of a thread's name are kept.
            Builder::new().name(format!("line {device_in}")).spawn(move || {
                match open(&config, namespace, &names) {
                    Ok((ring, output, report)) => {
                        board.post(&report);
                        let forwarder = Forwarder::new(&config, ring, output, report, &board);
                        // The caller waits for it.
                        let _ = started.send(Ok(()));
                        forwarder.run(&stop);
                    }
                    Err(error) => {
                        let _ = started.send(Err(error));
                    }
                }
            })?
        };
        // Joined also where it failed to start: its sockets are closed when this returns.
        let line = Self { board, stop, thread: Some(thread) };
        has_started.recv().unwrap_or_else(|_| {
            Err(io::Error::other("delay line: its thread died at the start"))
        })?;
        Ok(line)
    }

    /// What the line has done up to now. The queue's maximum begins anew.
    #[must_use]
    pub fn report(&self) -> Report {
        self.board.read()
    }

    /// Stops the line; what is on the way is lost. Returns its last report.
    #[must_use]
    pub fn stop(mut self) -> Report {
        self.end();
        self.board.read()
    }

    fn end(&mut self) {
        if let Some(thread) = self.thread.take() {
            // An eventfd takes eight bytes, and refuses only what would overflow it.
            let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
            // A panic has been printed already; the report is what it was.
            let _ = thread.join();
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.end();
    }
}

/// Everything a line needs, made on its own thread: sockets belong to the namespace of the thread
/// that makes them.
fn open(
    config: &LineConfig,
    namespace: Option<OwnedFd>,
    [device_in, device_out]: &[String; 2],
) -> io::Result<(Ring, Output, Report)> {
    if let Some(namespace) = &namespace {
        let moved = move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network));
        moved.map_err(|errno| explain("entering its network namespace", errno.into()))?;
    }
    // Any socket will do for names.
    let names = socket(AddressFamily::UNIX, SocketType::DGRAM, None)?;
    let index = |device: &str| {
        netdevice::name_to_index(&names, device)
            .map_err(|errno| explain(&format!("device {device}"), errno.into()))
    };
    let (index_in, index_out) = (index(device_in)?, index(device_out)?);
    let frame_bytes = (config.mtu + ETHERNET_HEADER_BYTES) as usize;
    let output = Output::new(index_out)
        .map_err(|error| explain(&format!("sending on {device_out}"), error))?;
    let ring = Ring::new(index_in, config.ring_slots(), frame_bytes);
    let ring = ring.map_err(|error| {
        explain(&format!("receiving on {device_in} into {} slots", config.ring_slots()), error)
    })?;

    let mut report = Report::default();
    if let Err(error) = become_real_time() {
        report.trouble.not_real_time = Some(format!(
            "no real-time priority: {error}; run as root or with CAP_SYS_NICE, and where a \
                version 1 cpu cgroup allots none, give it cpu.rt_runtime_us"
        ));
        // By how much the kernel may put off a timer to wake for several at once; a real-time
        // thread's are never put off.
        set_current_timer_slack(NonZeroU64::new(1))?;
    }
    Ok((ring, output, report))
}

fn explain(what: &str, error: io::Error) -> io::Error {
    let remedy = match Errno::from_io_error(&error) {
        Some(Errno::PERM | Errno::ACCESS) => {
            "; run as root (CAP_NET_RAW, CAP_NET_ADMIN and, for another namespace, CAP_SYS_ADMIN)"
        }
        Some(Errno::NODEV | Errno::NXIO) => {
            "; there is none of this name in the line's network namespace"
        }
        Some(Errno::NETDOWN) => "; the device is down, set it up first",
        Some(Errno::NOMEM) => {
            "; not enough memory for the ring, lower the rate, the delay or the MTU"
        }
        Some(Errno::AFNOSUPPORT | Errno::NOPROTOOPT) => {
            "; the kernel needs packet sockets (CONFIG_PACKET) of version 5.0 or later"
        }
        _ => "",
    };
    io::Error::new(error.kind(), format!("delay line: {what}: {error}{remedy}"))
}
