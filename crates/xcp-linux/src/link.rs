//! What holds a program where it is attached: a BPF link by descriptor. (libbpf-rs can make them only while the object that was loaded is alive.)

use std::io;
use std::mem;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::error::{Error, Result};

/// Where a program is attached.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'fd> {
    /// A device's way out (TCX), in the calling thread's network namespace, after programs that are there already.
    Egress(u32),
    /// The sockets of a cgroup.
    SockOps(BorrowedFd<'fd>),
}

/// An attachment: gone when dropped, unless it is pinned.
#[derive(Debug)]
pub(crate) struct Link(OwnedFd);

impl Link {
    /// Attaches a program.
    pub fn new(program: BorrowedFd<'_>, target: Target<'_>) -> io::Result<Self> {
        let (target, kind) = match target {
            Target::Egress(ifindex) => {
                (i32::try_from(ifindex).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?, libbpf_sys::BPF_TCX_EGRESS)
            }
            Target::SockOps(cgroup) => (cgroup.as_raw_fd(), libbpf_sys::BPF_CGROUP_SOCK_OPS),
        };
        let options =
            libbpf_sys::bpf_link_create_opts { sz: mem::size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t, ..Default::default() };
        // SAFETY: descriptors are open and the options outlive the call; a negative return is an error.
        let fd = unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), target, kind, &raw const options) };
        if fd < 0 {
            return Err(io::Error::from_raw_os_error(-fd));
        }
        // SAFETY: the kernel has just given us this descriptor.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Keeps it in a BPF file system.
    pub fn pin(&self, path: &Path) -> Result<()> {
        let name = std::ffi::CString::new(path.as_os_str().as_bytes()).map_err(|e| Error::because(path.display(), &e))?;
        // SAFETY: an open descriptor and a terminated string.
        let done = unsafe { libbpf_sys::bpf_obj_pin(self.0.as_raw_fd(), name.as_ptr()) };
        if done < 0 { Err(Error::because(format_args!("cannot keep {}", path.display()), &io::Error::from_raw_os_error(-done))) } else { Ok(()) }
    }

    /// One that was kept.
    pub fn open(path: &Path) -> Result<Self> {
        let name = std::ffi::CString::new(path.as_os_str().as_bytes()).map_err(|e| Error::because(path.display(), &e))?;
        // SAFETY: a terminated string; a negative return is an error.
        let fd = unsafe { libbpf_sys::bpf_obj_get(name.as_ptr()) };
        if fd < 0 {
            return Err(Error::because(format_args!("cannot open {}", path.display()), &io::Error::from_raw_os_error(-fd)));
        }
        // SAFETY: the kernel has just given us this descriptor.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Takes the program off, pinned or not. A link whose device or cgroup is gone has nothing to take off.
    pub fn detach(&self) {
        // SAFETY: an open descriptor.
        let _ = unsafe { libbpf_sys::bpf_link_detach(self.0.as_raw_fd()) };
    }
}
