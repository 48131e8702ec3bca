//! What the lab's delay line needs beside namespaces and devices: packet rings, and a scheduling
//! that is on time.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use rustix::thread::CapabilitySet;

use super::machine::Machine;
use super::remedies::{as_root, failed, guarded, not_tried, option};
use super::report::Group::Lab;
use super::report::{Check, Topic};
use super::scratch;

pub(super) fn checks(machine: &Machine) -> Vec<Check> {
    vec![rings(machine), on_time(machine)]
}

fn rings(machine: &Machine) -> Check {
    let topic = Topic {
        name: "packet_rings",
        title: "Packet rings",
        groups: &[Lab],
        purpose: "hold packets for the delay of a link (AF_PACKET)",
    };
    match ring() {
        Ok(()) => topic.ok("one was made, and removed"),
        Err(e) => failed(
            &topic,
            machine,
            CapabilitySet::NET_RAW,
            &e,
            option(machine, &["CONFIG_PACKET"], Some("af_packet")),
        ),
    }
}

/// A multiple of every architecture's page size.
const BLOCK: u32 = 1 << 16;

/// A receive ring of one block; the socket, bound to nothing, receives nothing.
fn ring() -> io::Result<()> {
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    set(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as libc::c_int))?;
    set(&socket, libc::PACKET_IGNORE_OUTGOING, &(1 as libc::c_int))?;
    set(&socket, libc::PACKET_QDISC_BYPASS, &(1 as libc::c_int))?;
    set(
        &socket,
        libc::PACKET_RX_RING,
        &libc::tpacket_req {
            tp_block_size: BLOCK,
            tp_block_nr: 1,
            tp_frame_size: 2048,
            tp_frame_nr: BLOCK / 2048,
        },
    )
}

/// `T` is what packet(7) says that the option takes.
fn set<T: Copy>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the value lives during the call and its size is told.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            std::ptr::from_ref(value).cast(),
            mem::size_of::<T>() as libc::socklen_t,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn on_time(machine: &Machine) -> Check {
    let topic = Topic {
        name: "sched_fifo",
        title: "Real-time scheduling",
        groups: &[Lab],
        purpose: "lets packets leave on time on a busy machine (SCHED_FIFO)",
    };
    let tried = scratch::on_thread(|| {
        let parameters = libc::sched_param { sched_priority: 1 };
        // SAFETY: 0 is the calling thread; the parameters live during the call.
        if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    });
    match tried.flatten() {
        Ok(()) => topic.ok("permitted"),
        Err(_) if !machine.may(CapabilitySet::SYS_NICE) => {
            topic.unknown(not_tried(machine), as_root(machine))
        }
        Err(e) => topic.degraded(
            format!("refused: {e}"),
            guarded().and(
                "With CONFIG_RT_GROUP_SCHED, the process group (cgroup cpu) in which xcpnet runs \
                 has no real-time share: give it one (cpu.rt_runtime_us), or run xcpnet in the \
                 root group.",
            ),
        ),
    }
}
