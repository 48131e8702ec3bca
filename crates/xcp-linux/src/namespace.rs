//! Network namespaces held by a descriptor and by nothing else: when the process ends, however it
//! ends, they go with all that is in them. Giving them names in the file system is left to those
//! who want them to be found (iproute2's `ip netns`).

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use crate::netlink::Netlink;

/// The namespace of the thread that opens this.
const OWN: &str = "/proc/thread-self/ns/net";
/// asm-generic/socket.h
const SO_NETNS_COOKIE: i32 = 71;
/// Where iproute2 keeps the names it gives.
const NAMED: &str = "/run/netns";

thread_local! {
    /// What the namespace that this thread has entered is called.
    static ENTERED: RefCell<Called> = RefCell::default();
}

/// How somebody asked for a network namespace, if it is not the one that their shell is in: what
/// they are told to type has to be about it, too.
#[derive(Debug, Clone, Default)]
pub struct Called(Option<String>);

impl Called {
    /// The one that the calling thread has entered.
    #[must_use]
    pub fn entered() -> Self {
        ENTERED.with_borrow(Clone::clone)
    }

    /// What to add to a command of xcpnet's.
    #[must_use]
    pub fn option(&self) -> String {
        self.0.as_ref().map_or_else(String::new, |name| format!(" --netns {name}"))
    }

    /// Another program, as one writes it.
    #[must_use]
    pub fn command(&self, program: &str) -> String {
        match self.0.as_deref() {
            None => program.to_owned(),
            Some(path) if path.contains('/') => format!("nsenter --net={path} {program}"),
            // iproute2's own go there by themselves.
            Some(name) if ["ip", "tc"].contains(&program) => format!("{program} -n {name}"),
            Some(name) => format!("ip netns exec {name} {program}"),
        }
    }
}

/// A network namespace, held open by a descriptor.
#[derive(Debug)]
pub struct Namespace {
    descriptor: OwnedFd,
    inode: u64,
    called: Called,
}

impl Namespace {
    /// A new one, empty but for the loopback device, which is up.
    pub fn new() -> io::Result<Self> {
        on_scratch_thread(|| {
            // SAFETY: Only a network namespace of its own is asked for. What makes unshare unsafe,
            // a descriptor table apart, is not.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.map_err(
                |e| match e {
                    rustix::io::Errno::PERM => refused(
                        "cannot make a network namespace: this needs \
                    root (CAP_SYS_ADMIN)",
                        e,
                    ),
                    rustix::io::Errno::INVAL => refused(
                        "cannot make a network namespace: this kernel \
                    has none (CONFIG_NET_NS)",
                        e,
                    ),
                    rustix::io::Errno::NOSPC => refused(
                        "cannot make a network namespace: user.max_net_namespaces is reached; \
                         raise it with sysctl",
                        e,
                    ),
                    _ => refused("cannot make a network namespace", e),
                },
            )?;
            let namespace = Self::current()?;
            let mut netlink = Netlink::open()?;
            if let Some(index) = netlink.index_of("lo")? {
                netlink.set_up(index)?;
            }
            Ok(namespace)
        })?
    }

    /// The namespace of the calling thread.
    pub fn current() -> io::Result<Self> {
        Ok(Self { called: Called::entered(), ..Self::open(Path::new(OWN))? })
    }

    /// One that has a name given by `ip netns add`, or a path such as `/proc/1234/ns/net`.
    pub fn named(name_or_path: &str) -> io::Result<Self> {
        let called = Called(Some(name_or_path.to_owned()));
        if name_or_path.contains('/') {
            return Ok(Self { called, ..Self::open(Path::new(name_or_path))? });
        }
        let path = PathBuf::from(NAMED).join(name_or_path);
        if name_or_path.is_empty() || name_or_path == "." || name_or_path == ".." || !path.exists()
        {
            let text = format!(
                "there is no network namespace \"{name_or_path}\" in {NAMED}; `ip netns` lists \
                 them, and a path is accepted as well"
            );
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        Ok(Self { called, ..Self::open(&path)? })
    }

    /// How somebody asked for it.
    #[must_use]
    pub fn called(&self) -> &Called {
        &self.called
    }

    fn open(path: &Path) -> io::Result<Self> {
        let told = |e: io::Error| {
            io::Error::new(
                e.kind(),
                format!("cannot open the network namespace {}: {e}", path.display()),
            )
        };
        let descriptor = OwnedFd::from(File::open(path).map_err(told)?);
        // Any file can be opened; only one of a namespace answers this, and says which kind it is
        // (ioctl_ns(2)). SAFETY: The request takes no argument and the descriptor is open.
        let kind = unsafe {
            libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&descriptor), libc::NS_GET_NSTYPE)
        };
        if kind != libc::CLONE_NEWNET {
            let text = format!(
                "{} is not a network namespace; give a name of /run/netns or a path such as \
                    /proc/PID/ns/net",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let inode = rustix::fs::fstat(&descriptor)?.st_ino;
        Ok(Self { descriptor, inode, called: Called::default() })
    }

    /// Runs something in it, on a thread of its own, and waits for it. Sockets opened there stay in
    /// the namespace.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_scratch_thread(|| self.enter().map(|()| f()))?
    }

    /// Moves the calling thread into it, for good. Threads started from it begin there, others stay
    /// where they are.
    pub fn enter(&self) -> io::Result<()> {
        rustix::thread::move_into_link_name_space(
            self.descriptor.as_fd(),
            Some(LinkNameSpaceType::Network),
        )
        .map_err(|e| match e {
            rustix::io::Errno::PERM => {
                refused("cannot enter a network namespace: this needs root (CAP_SYS_ADMIN)", e)
            }
            _ => refused("cannot enter a network namespace", e),
        })?;
        ENTERED.set(self.called.clone());
        Ok(())
    }

    /// Which one it is: the number in `/proc/PID/ns/net`, which the next one may have when this one
    /// is gone.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Which one it is of all since the machine was started (SO_NETNS_COOKIE).
    ///
    /// # Errors
    /// Linux before 5.14.
    pub fn cookie(&self) -> io::Result<u64> {
        self.run(|| {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            let (mut cookie, mut length) = (0u64, size_of::<u64>() as u32);
            // SAFETY: an open descriptor; the kernel writes at most `length` bytes into `cookie`.
            let got = unsafe {
                libc::getsockopt(
                    std::os::fd::AsRawFd::as_raw_fd(&socket),
                    libc::SOL_SOCKET,
                    SO_NETNS_COOKIE,
                    (&raw mut cookie).cast(),
                    &raw mut length,
                )
            };
            if got == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
        })?
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn refused(text: &str, errno: rustix::io::Errno) -> io::Error {
    let kind = io::Error::from(errno).kind();
    io::Error::new(kind, format!("{text}: {errno}"))
}

/// Runs something on a thread that ends with it, so that a change of namespace stays without
/// consequence. A panic goes on in the caller.
fn on_scratch_thread<T: Send>(f: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("namespace".to_owned()).spawn_scoped(scope, f)?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_about_the_namespace_that_was_asked_for() {
        let called = |name: Option<&str>| {
            let it = Called(name.map(ToOwned::to_owned));
            let commands = ["tc", "ip", "sysctl"].map(|program| it.command(program));
            (it.option(), commands.join(", "))
        };
        for (name, option, commands) in [
            (None, "", "tc, ip, sysctl"),
            (Some("sat"), " --netns sat", "tc -n sat, ip -n sat, ip netns exec sat sysctl"),
            (
                Some("/proc/7/ns/net"),
                " --netns /proc/7/ns/net",
                "nsenter --net=/proc/7/ns/net tc, nsenter --net=/proc/7/ns/net ip, nsenter \
                 --net=/proc/7/ns/net sysctl",
            ),
        ] {
            assert_eq!(called(name), (option.to_owned(), commands.to_owned()));
        }
    }

    #[test]
    fn who_has_entered_one_knows_what_it_is_called() {
        if !crate::error::is_root() {
            return xcp_skip::skipped!("root", "a network namespace that is entered: needs root");
        }
        let own = "/proc/self/ns/net";
        let asked = Namespace::named(own).unwrap();
        let inside = || (Called::entered().option(), Namespace::current().unwrap().called.option());
        let told = format!(" --netns {own}");
        assert_eq!(asked.run(inside).unwrap(), (told.clone(), told));
        assert_eq!(inside(), (String::new(), String::new()));
    }
}
