//! Places to try something out in, of which nothing stays: a thread, a mount namespace, a cgroup;
//! and a program that does nothing. A network namespace is `crate::namespace`'s.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::UnshareFlags;

/// Runs on a thread of its own, whose mount namespace and scheduling are its own.
pub(super) fn on_thread<T: Send>(function: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("doctor".into()).spawn_scoped(scope, function)?;
        thread.join().map_err(|_| io::Error::other("the probe was interrupted"))
    })
}

/// Runs where a mount is seen by nobody else, and is gone afterwards.
pub(super) fn in_mount_namespace<T: Send>(function: impl FnOnce() -> T + Send) -> io::Result<T> {
    on_thread(|| {
        // SAFETY: what makes it unsafe is leaving the table of descriptors, which is not asked for.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        Ok(function())
    })
    .flatten()
}

/// A cgroup without processes, removed when dropped.
#[derive(Debug)]
pub(super) struct Cgroup {
    path: PathBuf,
    directory: File,
}

impl Cgroup {
    pub fn new(root: &Path) -> io::Result<Self> {
        remove_orphans(root);
        let path = root.join(format!("{NAME}{}", std::process::id()));
        fs::create_dir(&path)?;
        match File::open(&path) {
            Ok(directory) => Ok(Self { path, directory }),
            Err(e) => {
                let _ = fs::remove_dir(&path);
                Err(e)
            }
        }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// Of a cgroup; the process's number follows.
const NAME: &str = "xcpnet-doctor-";

/// Removes what a process left that was killed.
fn remove_orphans(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(NAME));
        if owner.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

/// Loads a program that returns a number and does nothing else, without BTF and relocations: what
/// keeps it out keeps everything out.
pub(super) fn program(kind: libbpf_sys::bpf_prog_type, returns: i32) -> io::Result<OwnedFd> {
    // r0 = returns; exit (Documentation/bpf/standardization/instruction-set.rst)
    let n = returns.to_ne_bytes();
    let code = [[0xb7, 0, 0, 0, n[0], n[1], n[2], n[3]], [0x95, 0, 0, 0, 0, 0, 0, 0]]
        .map(u64::from_ne_bytes);
    // SAFETY: instructions are 8 bytes each and as aligned as u64; the strings are terminated; no
    // options.
    taken(unsafe {
        libbpf_sys::bpf_prog_load(
            kind,
            c"doctor".as_ptr(),
            c"GPL".as_ptr(),
            code.as_ptr().cast(),
            code.len() as _,
            std::ptr::null_mut(),
        )
    })
}

/// Makes a map of one word.
pub(super) fn map() -> io::Result<OwnedFd> {
    // SAFETY: the name is terminated; no options.
    taken(unsafe {
        libbpf_sys::bpf_map_create(
            libbpf_sys::BPF_MAP_TYPE_ARRAY,
            c"doctor".as_ptr(),
            4,
            4,
            1,
            std::ptr::null(),
        )
    })
}

/// libbpf returns a descriptor or a negative errno.
fn taken(fd: i32) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
