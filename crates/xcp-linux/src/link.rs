//! What holds a program where it is attached: a BPF link by descriptor. (libbpf-rs can make them only while the object that was loaded is alive.)

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _};
use std::mem;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
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
        let options = libbpf_sys::bpf_link_create_opts {
            sz: mem::size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        // SAFETY: descriptors are open and the options outlive the call; a negative return is an error.
        let fd = unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), target, kind, &raw const options) };
        if fd < 0 {
            return Err(io::Error::from_raw_os_error(-fd));
        }
        // SAFETY: the kernel has just given us this descriptor.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Another hold on a link that libbpf made.
    pub fn adopt(link: &libbpf_rs::Link) -> Result<Self> {
        let held = link.as_fd().try_clone_to_owned().map_err(|e| Error::because("cannot hold a link", &e))?;
        Ok(Self(held))
    }

    /// What an iterator has to say.
    pub fn read_iterator(&self) -> io::Result<Vec<u8>> {
        // SAFETY: an open descriptor; a negative return is an error.
        let fd = unsafe { libbpf_sys::bpf_iter_create(self.0.as_raw_fd()) };
        if fd < 0 {
            return Err(io::Error::from_raw_os_error(-fd));
        }
        // SAFETY: the kernel has just given us this descriptor.
        let mut file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Keeps it in a BPF file system.
    pub fn pin(&self, path: &Path) -> Result<()> {
        pin(self.0.as_fd(), path)
    }

    /// One that was kept.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self(open(path)?))
    }

    /// Whether the device of an egress link is gone: the kernel then remembers none.
    pub fn is_orphan(&self) -> bool {
        let mut info = libbpf_sys::bpf_link_info::default();
        let mut length = mem::size_of::<libbpf_sys::bpf_link_info>() as u32;
        // SAFETY: the buffer is as long as it says and outlives the call.
        let done = unsafe { libbpf_sys::bpf_link_get_info_by_fd(self.0.as_raw_fd(), &raw mut info, &raw mut length) };
        // SAFETY: the kernel has filled in the part that belongs to this type of link.
        done == 0 && info.type_ == libbpf_sys::BPF_LINK_TYPE_TCX && unsafe { info.__bindgen_anon_1.tcx.ifindex } == 0
    }

    /// Takes the program off, pinned or not. A link whose device or cgroup is gone has nothing to take off.
    pub fn detach(&self) {
        // SAFETY: an open descriptor.
        let _ = unsafe { libbpf_sys::bpf_link_detach(self.0.as_raw_fd()) };
    }
}

/// Keeps a BPF object in a BPF file system.
pub(crate) fn pin(object: BorrowedFd<'_>, path: &Path) -> Result<()> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| Error::because(path.display(), &e))?;
    // SAFETY: an open descriptor and a terminated string.
    let done = unsafe { libbpf_sys::bpf_obj_pin(object.as_raw_fd(), name.as_ptr()) };
    if done < 0 {
        Err(Error::because(format_args!("cannot keep {}", path.display()), &io::Error::from_raw_os_error(-done)))
    } else {
        Ok(())
    }
}

/// One that was kept.
pub(crate) fn open(path: &Path) -> Result<OwnedFd> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| Error::because(path.display(), &e))?;
    // SAFETY: a terminated string; a negative return is an error.
    let fd = unsafe { libbpf_sys::bpf_obj_get(name.as_ptr()) };
    if fd < 0 {
        return Err(Error::because(format_args!("cannot open {}", path.display()), &io::Error::from_raw_os_error(-fd)));
    }
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
