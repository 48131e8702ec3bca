//! The kernel's side of a delay line: a receive ring, a socket that sends, a real-time thread. All
//! the `unsafe` of the line is here.
//!
//! Kernel sources: `net/packet/af_packet.c` (`tpacket_rcv`, `packet_snd`),
//! `Documentation/networking/packet_mmap.rst`.
//!
//! Frames are received and sent with the header that virtual machines use for theirs
//! (`PACKET_VNET_HDR`): it says where a checksum is still to be filled in. So a frame whose sender
//! leaves the checksum to the device (`CHECKSUM_PARTIAL`) goes out just like that, and is completed
//! by the device it is sent on or found good by a receiver on the same machine, as without a line
//! between.

use std::io;
use std::mem::{self, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{
    c_int, c_uint, c_void, iovec, mmsghdr, sockaddr_ll, tpacket_req, tpacket_stats, tpacket2_hdr,
};
use xcp_model::units::{NANOS_PER_SEC, Nanos};

/// Most frames given to the kernel at once.
pub const BATCH: usize = 32;

/// Memory that the kernel allocates in one piece if it can. A multiple of any page size.
const BLOCK_BYTES: usize = 1 << 18;

/// `struct virtio_net_hdr`: flags, gso_type, hdr_len, gso_size, csum_start, csum_offset.
const VNET_HEADER_BYTES: usize = 10;
const VNET_GSO_TYPE: usize = 1;

/// A ring into which the kernel writes what a device receives.
#[derive(Debug)]
pub struct Ring {
    socket: OwnedFd,
    memory: NonNull<u8>,
    length: usize,
    slot_bytes: usize,
    slots_per_block: usize,
    /// Which slots hold a [`Frame`] that was given out.
    taken: Box<[bool]>,
    /// The slot that the kernel fills next, or has filled.
    next: usize,
}

/// A received frame, the owner of its slot until [`Ring::release`].
#[derive(Debug)]
pub struct Frame {
    slot: usize,
    /// Where the frame begins in the slot, its virtio header before it.
    offset: usize,
    /// What the slot holds of it.
    captured: usize,
    /// Its length, Ethernet header included.
    pub bytes: u32,
    /// When the kernel received it, `CLOCK_REALTIME` nanoseconds.
    pub stamp: Nanos,
    /// Whether the ring has been full since drops were last asked for.
    pub is_losing: bool,
    /// Whether the kernel took a VLAN tag out of it.
    pub is_tagged: bool,
    /// Whether it is a super-packet, to be cut into several.
    pub is_gso: bool,
}

impl Ring {
    /// A ring of at least this many slots, each for frames of at least this many bytes, on a device
    /// of the thread's network namespace.
    pub fn new(index: u32, slots: u32, frame_bytes: usize) -> io::Result<Self> {
        // Protocol 0: nothing is received before `bind` says from where.
        let socket = packet_socket()?;
        set(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as c_int))?;
        set(&socket, libc::PACKET_VNET_HDR, &1)?;
        // What goes out on the device is the other direction's.
        set(&socket, libc::PACKET_IGNORE_OUTGOING, &1)?;

        // `tpacket_rcv` puts the network header at the aligned end of its own header and 16 bytes,
        // and the virtio header besides.
        let header = libc::TPACKET2_HDRLEN + 16 + VNET_HEADER_BYTES;
        let slot_bytes = (header + libc::TPACKET_ALIGNMENT + frame_bytes)
            .next_multiple_of(libc::TPACKET_ALIGNMENT);
        let slots_per_block = BLOCK_BYTES / slot_bytes;
        let blocks = (slots as usize).div_ceil(slots_per_block);
        let slots = blocks * slots_per_block;
        let request = tpacket_req {
            tp_block_size: BLOCK_BYTES as c_uint,
            tp_block_nr: blocks as c_uint,
            tp_frame_size: slot_bytes as c_uint,
            tp_frame_nr: slots as c_uint,
        };
        set(&socket, libc::PACKET_RX_RING, &request)?;

        let length = blocks * BLOCK_BYTES;
        // SAFETY: a new mapping at an address of the kernel's choice; nothing else lies there.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let ring = Self {
            socket,
            memory,
            length,
            slot_bytes,
            slots_per_block,
            taken: vec![false; slots].into(),
            next: 0,
        };
        bind(&ring.socket, index, libc::ETH_P_ALL as u16)?;
        Ok(ring)
    }

    /// How many frames fit.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.taken.len()
    }

    /// The next frame, if one has come.
    pub fn receive(&mut self) -> Option<Frame> {
        let slot = self.next;
        // Round the ring to a frame that is still held: the ring is full, and its status would be
        // taken for a new one.
        if self.taken[slot] {
            return None;
        }
        let status = self.status(slot).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot lies in the mapping, is aligned to 16 bytes, and is ours since the
        // status, read with acquire, says so: the kernel writes nothing to it until it is released.
        let header: tpacket2_hdr = unsafe { self.slot(slot).cast().read() };
        let (offset, captured) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
        // The kernel never does otherwise; what is read by these numbers must lie in the slot.
        let fits = offset >= size_of::<tpacket2_hdr>() + VNET_HEADER_BYTES
            && offset + captured <= self.slot_bytes;
        let (offset, captured) = if fits { (offset, captured) } else { (VNET_HEADER_BYTES, 0) };
        self.taken[slot] = true;
        self.next = if slot + 1 == self.slots() { 0 } else { slot + 1 };
        let mut frame = Frame {
            slot,
            offset,
            captured,
            bytes: header.tp_len,
            stamp: u64::from(header.tp_sec) * NANOS_PER_SEC + u64::from(header.tp_nsec),
            is_losing: status & libc::TP_STATUS_LOSING != 0,
            is_tagged: status & libc::TP_STATUS_VLAN_VALID != 0,
            is_gso: false,
        };
        frame.is_gso = fits && self.message(&frame)[VNET_GSO_TYPE] != 0;
        Some(frame)
    }

    /// Whether the ring holds all of the frame.
    #[must_use]
    pub fn is_whole(&self, frame: &Frame) -> bool {
        frame.captured == frame.bytes as usize
    }

    /// The frame is done with: its slot goes back to the kernel.
    pub fn release(&mut self, frame: Frame) {
        self.taken[frame.slot] = false;
        self.status(frame.slot).store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }

    /// Frames dropped since the last call because the ring was full.
    pub fn take_drops(&mut self) -> io::Result<u64> {
        let mut statistics = tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<tpacket_stats>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes, which is the size of what the pointer
        // points to; any bits are valid there.
        let result = unsafe {
            let value = (&raw mut statistics).cast::<c_void>();
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                value,
                &raw mut length,
            )
        };
        check(result)?;
        Ok(u64::from(statistics.tp_drops))
    }

    /// Whether the device is still there. Clears the error that the socket reports when the device
    /// is set down or deleted.
    pub fn has_device(&self) -> io::Result<bool> {
        // The error itself says no more than that.
        let _ = rustix::net::sockopt::socket_error(&self.socket)?;
        // SAFETY: a structure of integers, for all of which zero is a value.
        let mut address: sockaddr_ll = unsafe { mem::zeroed() };
        let mut length = size_of::<sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes, which is the size of what the pointer
        // points to.
        check(unsafe {
            libc::getsockname(self.socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length)
        })?;
        // `packet_notifier`: a socket whose device is gone is bound to -1.
        Ok(address.sll_ifindex > 0)
    }

    /// Readable when a frame comes and all others have been released.
    #[must_use]
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Virtio header and frame, as they are sent.
    fn message(&self, frame: &Frame) -> &[u8] {
        // SAFETY: `receive` saw to it that both lie in the slot, which is the frame's until
        // `release` takes the frame.
        unsafe {
            let start = self.slot(frame.slot).add(frame.offset - VNET_HEADER_BYTES);
            std::slice::from_raw_parts(start.as_ptr(), VNET_HEADER_BYTES + frame.captured)
        }
    }

    fn slot(&self, slot: usize) -> NonNull<u8> {
        assert!(slot < self.slots(), "a slot of this ring");
        let offset = slot / self.slots_per_block * BLOCK_BYTES
            + slot % self.slots_per_block * self.slot_bytes;
        // SAFETY: the slot is one of the ring's, so this lies in the mapping.
        unsafe { self.memory.add(offset) }
    }

    fn status(&self, slot: usize) -> &AtomicU32 {
        // SAFETY: `tp_status` is the first field of the slot's header, aligned to 16 bytes, mapped
        // as long as `self` lives, and written by the kernel and by us only as a whole.
        unsafe { AtomicU32::from_ptr(self.slot(slot).cast().as_ptr()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.length) };
    }
}

/// A socket that sends frames on a device.
#[derive(Debug)]
pub struct Output {
    socket: OwnedFd,
}

impl Output {
    /// On a device of the thread's network namespace.
    pub fn new(index: u32) -> io::Result<Self> {
        let socket = packet_socket()?;
        set(&socket, libc::PACKET_VNET_HDR, &1)?;
        // Straight to the device: a queue there would add its own delay, and the receiver's is not
        // ours to police.
        set(&socket, libc::PACKET_QDISC_BYPASS, &1)?;
        // Frames count against the socket until the receiver takes them; what it does with them
        // should not stop us.
        set_at(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &(16i32 << 20))?;
        // Protocol 0: this one receives nothing.
        bind(&socket, index, 0)?;
        Ok(Self { socket })
    }

    /// Sends frames of a ring, at most [`BATCH`] of them. Returns how many went; an error concerns
    /// the first one.
    pub fn send<'a>(
        &self,
        ring: &'a Ring,
        frames: impl Iterator<Item = &'a Frame>,
    ) -> io::Result<usize> {
        // SAFETY: these are structures of integers and pointers, for all of which zero is a value.
        let (mut pieces, mut messages): ([iovec; BATCH], [mmsghdr; BATCH]) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        let mut count = 0;
        for (frame, (piece, message)) in frames.zip(pieces.iter_mut().zip(&mut messages)) {
            let bytes = ring.message(frame);
            *piece = iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
            message.msg_hdr.msg_iov = piece;
            message.msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        // SAFETY: the first `count` messages each point to one initialised piece, and that to a
        // frame which the borrow of `ring` keeps; sending only reads it.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                count,
                libc::MSG_DONTWAIT,
            )
        };
        check(sent)?;
        Ok(sent as usize)
    }
}

/// Has the calling thread run before all that is not real-time.
pub fn become_real_time() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameters are read during the call only.
    let error = unsafe {
        libc::pthread_setschedparam(libc::pthread_self(), libc::SCHED_FIFO, &raw const parameters)
    };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

fn packet_socket() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    check(fd)?;
    // SAFETY: a new descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn bind(socket: &OwnedFd, index: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: a structure of integers, for all of which zero is a value.
    let mut address: sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index as c_int;
    // SAFETY: the address is read during the call only, and is as long as said.
    check(unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<sockaddr_ll>() as libc::socklen_t,
        )
    })
}

fn set<T>(socket: &OwnedFd, option: c_int, value: &T) -> io::Result<()> {
    set_at(socket, libc::SOL_PACKET, option, value)
}

fn set_at<T>(socket: &OwnedFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the value is read during the call only, and is as long as said.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const *value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
