//! A test bed for delay lines: three network namespaces in a row, left, wire and right, joined by
//! two veth pairs. They have no names, only descriptors, so nothing is left behind however the test
//! ends, and two beds never meet.

#![allow(dead_code, reason = "each test uses its part")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// Address of the left end.
pub const LEFT: &str = "10.99.0.1";
/// Address of the right end.
pub const RIGHT: &str = "10.99.0.2";

/// A network namespace that goes with its last descriptor.
pub struct Namespace(OwnedFd);

impl Namespace {
    /// A new one.
    pub fn new() -> io::Result<Self> {
        std::thread::scope(|scope| {
            let made = scope.spawn(|| {
                // SAFETY: unsafe is what shares or unshares descriptors; a network namespace is of
                // no concern to Rust.
                unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET)? };
                Ok(Self(File::open("/proc/thread-self/ns/net")?.into()))
            });
            made.join().expect("no panic")
        })
    }

    /// Runs something in it; sockets made there stay there.
    pub fn enter<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
                    .expect("a network namespace");
                what()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// `ip` in it.
    pub fn ip(&self, arguments: &str) {
        let output = self
            .enter(|| Command::new("ip").args(arguments.split_whitespace()).output())
            .expect("ip runs");
        assert!(
            output.status.success(),
            "ip {arguments}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// Its name for other processes.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// left0 in `left` - `device_left` in `wire`, `device_right` in `wire` - right0 in `right`.
pub struct Bed {
    pub left: Namespace,
    pub wire: Namespace,
    pub right: Namespace,
    /// The wire's device to the left. Its name is unlike that of any other bed in this process.
    pub device_left: String,
    /// The wire's device to the right.
    pub device_right: String,
}

impl Bed {
    /// Builds one, or says on stderr why it cannot be built.
    pub fn new(mtu: u32) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        if Command::new("ip").arg("-V").stdout(Stdio::null()).status().is_err() {
            // Past the test harness, which would keep it to itself.
            xcp_skip::skipped!("iproute2", "delay lines on real devices need `ip` (iproute2)");
            return None;
        }
        let (left, wire, right) = match (Namespace::new(), Namespace::new(), Namespace::new()) {
            (Ok(left), Ok(wire), Ok(right)) => (left, wire, right),
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
                xcp_skip::skipped!(
                    "root",
                    "delay lines on real devices need root, for network namespaces: \
                        {error}"
                );
                return None;
            }
        };
        let bed = Self {
            left,
            wire,
            right,
            device_left: format!("l{number}"),
            device_right: format!("r{number}"),
        };
        bed.join(&bed.left, "left0", &bed.device_left, LEFT, mtu);
        bed.join(&bed.right, "right0", &bed.device_right, RIGHT, mtu);
        bed.wait_until_up();
        // Nobody asks for neighbours: what crosses the wire is what the test sends.
        bed.left.ip(&format!("neigh add {RIGHT} lladdr 02:00:00:00:00:02 dev left0 nud permanent"));
        bed.right
            .ip(&format!("neigh add {LEFT} lladdr 02:00:00:00:00:01 dev right0 nud permanent"));
        Some(bed)
    }

    fn join(&self, host: &Namespace, name: &str, device: &str, address: &str, mtu: u32) {
        let mac = &address[address.len() - 1..];
        host.ip(&format!(
            "link add {name} mtu {mtu} address 02:00:00:00:00:0{mac} type veth peer name {device} \
                mtu {mtu} netns {}",
            self.wire.path()
        ));
        host.ip(&format!("link set {name} addrgenmode none"));
        self.wire.ip(&format!("link set {device} addrgenmode none"));
        host.ip(&format!("addr add {address}/24 dev {name}"));
        host.ip(&format!("link set {name} up"));
        self.wire.ip(&format!("link set {device} up"));
    }

    /// Waits until all devices send: one that was set up drops everything until a work queue of the
    /// kernel's has given it its queueing discipline (linkwatch), which takes up to seconds on a
    /// busy machine.
    pub fn wait_until_up(&self) {
        for (namespace, device) in self.devices() {
            let begin = Instant::now();
            loop {
                let shown = namespace
                    .enter(|| {
                        Command::new("ip").args(["-o", "link", "show", "dev", device]).output()
                    })
                    .expect("ip runs");
                let shown = String::from_utf8_lossy(&shown.stdout);
                if shown.contains(" qdisc noqueue ") {
                    break;
                }
                assert!(
                    begin.elapsed() < Duration::from_secs(30),
                    "{device} does not come up: {shown}"
                );
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    fn devices(&self) -> [(&Namespace, &str); 4] {
        [
            (&self.left, "left0"),
            (&self.right, "right0"),
            (&self.wire, &*self.device_left),
            (&self.wire, &*self.device_right),
        ]
    }

    /// Turns tso, gso and gro off on the devices that feed the wire, and tx checksums on all, as
    /// the lab does.
    pub fn turn_offloads_off(&self) {
        for (namespace, device) in self.devices() {
            for command in [ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_STXCSUM] {
                namespace.enter(|| set_offload(device, command, false)).expect("ethtool");
            }
        }
    }
}

/// Sends an Ethernet frame on a device of this thread's network namespace, as it is.
pub fn send_frame(device: &str, frame: &[u8]) -> io::Result<()> {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::PACKET,
        rustix::net::SocketType::RAW,
        None,
    )?;
    // SAFETY: a structure of integers, for all of which zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = rustix::net::netdevice::name_to_index(&socket, device)? as i32;
    // SAFETY: frame and address are read during the call only, and are as long as said.
    let sent = unsafe {
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        libc::sendto(
            socket.as_raw_fd(),
            frame.as_ptr().cast(),
            frame.len(),
            0,
            (&raw const address).cast(),
            length,
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub const ETHTOOL_STXCSUM: u32 = 0x17;
pub const ETHTOOL_STSO: u32 = 0x1f;
pub const ETHTOOL_SGSO: u32 = 0x24;
pub const ETHTOOL_SGRO: u32 = 0x2c;

/// What `ethtool -K` does, in this thread's network namespace.
pub fn set_offload(device: &str, command: u32, on: bool) -> io::Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    let mut value = [command, u32::from(on)];
    // SAFETY: a structure of integers and pointers, for all of which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: SIOCETHTOOL takes an ifreq that points to a `struct ethtool_value`, two 32-bit
    // numbers; both live until it returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), 0x8946, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
