//! What a device may leave for its driver to do, switched on and off as `ethtool -K` does:
//! checksums, cutting up large packets, putting small ones together. The calls work on devices of
//! the calling thread's namespace: make them within
//! [`Namespace::run`](crate::namespace::Namespace::run).

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// An offload of a network device that can be switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Offload {
    /// Checksums of packets that are sent: off, and they are complete before the driver gets them.
    TxChecksum,
    /// TCP segments cut out of large packets by the driver.
    Tso,
    /// The same by the kernel, just before the driver gets them.
    Gso,
    /// TCP segments that come in put together.
    Gro,
}

impl Offload {
    /// All of them, in the order in which they can be switched off one by one; on goes in the
    /// reverse. Large packets need the driver's checksums.
    pub const ALL: [Self; 4] = [Self::Gso, Self::Tso, Self::TxChecksum, Self::Gro];

    /// As `ethtool -k` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::TxChecksum => "tx-checksumming",
            Self::Tso => "tcp-segmentation-offload",
            Self::Gso => "generic-segmentation-offload",
            Self::Gro => "generic-receive-offload",
        }
    }

    /// `ETHTOOL_G...`, `ETHTOOL_S...` (linux/ethtool.h).
    fn commands(self) -> (u32, u32) {
        match self {
            Self::TxChecksum => (0x16, 0x17),
            Self::Tso => (0x1e, 0x1f),
            Self::Gso => (0x23, 0x24),
            Self::Gro => (0x2b, 0x2c),
        }
    }
}

/// Switches one on or off, and sees that it is: the kernel passes over in silence what another
/// offload stands in the way of.
pub fn set(device: &str, offload: Offload, on: bool) -> io::Result<()> {
    let what = || format!("switch {} {}", offload.name(), if on { "on" } else { "off" });
    call(device, offload.commands().1, u32::from(on)).map_err(|e| told(&what(), device, &e))?;
    if get(device, offload)? == on {
        return Ok(());
    }
    let text = format!(
        "cannot {} of the network device \"{device}\": it stays as it is; see what else `ethtool \
         -k` shows",
        what()
    );
    Err(io::Error::new(io::ErrorKind::Unsupported, text))
}

/// Whether one is on.
pub fn get(device: &str, offload: Offload) -> io::Result<bool> {
    call(device, offload.commands().0, 0)
        .map(|value| value != 0)
        .map_err(|e| told(&format!("read {}", offload.name()), device, &e))
}

fn told(what: &str, device: &str, error: &io::Error) -> io::Error {
    let remedy = match error.raw_os_error() {
        Some(libc::EPERM) => "; this needs root (CAP_NET_ADMIN)",
        Some(libc::EOPNOTSUPP) => "; its driver does not let it be changed",
        Some(libc::ENODEV) => "; `ip link` lists the devices",
        _ => "",
    };
    io::Error::new(
        error.kind(),
        format!("cannot {what} of the network device \"{device}\": {error}{remedy}"),
    )
}

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

fn call(device: &str, command: u32, data: u32) -> io::Result<u32> {
    // SAFETY: All zeros is a valid ifreq: a name that ends at once, and a union of numbers and
    // pointers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if device.is_empty() || device.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    let mut value = Value { command, data };
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    let socket: OwnedFd =
        socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: The kernel reads and writes the ifreq and, as the commands used here all have an
    // ethtool_value, that; both live until it returns.
    if unsafe {
        libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as libc::Ioctl, &raw mut request)
    } < 0
    {
        return Err(io::Error::last_os_error());
    }
    Ok(value.data)
}
