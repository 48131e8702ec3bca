//! What holds a program where it is attached: a BPF link by descriptor. (libbpf-rs can make them
//! only while the object that was loaded is alive.)

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _};
use std::mem;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use libbpf_rs::{MapCore as _, MapHandle};

use crate::error::{Error, Result};
use crate::kept::file_system::Directory;

/// Where a program is attached.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'fd> {
    /// A device's way out (TCX), in the calling thread's network namespace, and where among the
    /// programs that are there.
    Egress(u32, Position),
    /// The sockets of a cgroup.
    SockOps(BorrowedFd<'fd>),
}

/// Where among the programs of a device's way out. One that decides on a packet (Cilium's do on
/// all) keeps it from those that come after it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Position {
    /// Before all that are there.
    First,
    /// After the program of this number.
    After(u32),
    /// After all that are there.
    Last,
}

/// An attachment: gone when dropped, unless it is pinned.
#[derive(Debug)]
pub(crate) struct Link(OwnedFd);

impl Link {
    /// Attaches a program to a target; it stays attached while the link exists.
    pub fn new(program: BorrowedFd<'_>, target: Target<'_>) -> io::Result<Self> {
        let mut options = libbpf_sys::bpf_link_create_opts {
            sz: mem::size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        let (target, kind) = match target {
            Target::Egress(ifindex, position) => {
                match position {
                    Position::First => options.flags = libbpf_sys::BPF_F_BEFORE,
                    Position::After(program) => {
                        options.flags = libbpf_sys::BPF_F_AFTER;
                        options.__bindgen_anon_1.tcx.relative_id = program;
                    }
                    Position::Last => {}
                }
                (
                    i32::try_from(ifindex)
                        .map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?,
                    libbpf_sys::BPF_TCX_EGRESS,
                )
            }
            Target::SockOps(cgroup) => (cgroup.as_raw_fd(), libbpf_sys::BPF_CGROUP_SOCK_OPS),
        };
        // SAFETY: descriptors are open and the options outlive the call; a negative return is an
        // error.
        let fd = unsafe {
            libbpf_sys::bpf_link_create(program.as_raw_fd(), target, kind, &raw const options)
        };
        if fd < 0 {
            return Err(io::Error::from_raw_os_error(-fd));
        }
        // SAFETY: the kernel has just given us this descriptor.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Another hold on a link that libbpf made.
    pub fn adopt(link: &libbpf_rs::Link) -> Result<Self> {
        let held = link
            .as_fd()
            .try_clone_to_owned()
            .map_err(|e| Error::because("cannot hold a link", e))?;
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

    /// Keeps it in a directory.
    pub fn pin(&self, directory: &Directory, name: &str) -> Result<()> {
        pin(self.0.as_fd(), directory, name)
    }

    /// One that was kept.
    pub fn open(directory: &Directory, name: &str) -> Result<Self> {
        Ok(Self(open(directory, name)?))
    }

    /// Whether the cgroup whose sockets it is for is gone: the kernel then remembers none.
    pub fn has_lost_its_group(&self) -> bool {
        self.info().is_some_and(|info| {
            // SAFETY: as in `is_orphan`.
            info.type_ == libbpf_sys::BPF_LINK_TYPE_CGROUP
                && unsafe { info.__bindgen_anon_1.cgroup.cgroup_id } == 0
        })
    }

    /// Whether the device of an egress link is gone: the kernel then remembers none.
    pub fn is_orphan(&self) -> bool {
        self.info().is_some_and(|info| {
            // SAFETY: the kernel has filled in the part that belongs to this type of link.
            info.type_ == libbpf_sys::BPF_LINK_TYPE_TCX
                && unsafe { info.__bindgen_anon_1.tcx.ifindex } == 0
        })
    }

    /// The number of its program, and of the device of an egress link: 0 once that is gone.
    pub fn place(&self) -> io::Result<(u32, u32)> {
        let info = self.info().ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the kernel has filled in the part that belongs to this type of link.
        let device = unsafe { info.__bindgen_anon_1.tcx.ifindex };
        Ok((info.prog_id, if info.type_ == libbpf_sys::BPF_LINK_TYPE_TCX { device } else { 0 }))
    }

    /// The number of its program.
    pub fn program(&self) -> Option<u32> {
        self.info().map(|info| info.prog_id)
    }

    fn info(&self) -> Option<libbpf_sys::bpf_link_info> {
        let mut info = libbpf_sys::bpf_link_info::default();
        let mut length = mem::size_of::<libbpf_sys::bpf_link_info>() as u32;
        // SAFETY: the buffer is as long as it says and outlives the call.
        let done = unsafe {
            libbpf_sys::bpf_link_get_info_by_fd(self.0.as_raw_fd(), &raw mut info, &raw mut length)
        };
        (done == 0).then_some(info)
    }

    /// Takes the program off, pinned or not. A link whose device or cgroup is gone has nothing to
    /// take off.
    pub fn detach(&self) {
        // SAFETY: an open descriptor.
        let _ = unsafe { libbpf_sys::bpf_link_detach(self.0.as_raw_fd()) };
    }
}

/// Keeps a BPF object in a directory of a BPF file system.
pub(crate) fn pin(object: BorrowedFd<'_>, directory: &Directory, name: &str) -> Result<()> {
    pin_at(object, &directory.reach(name))
        .map_err(|e| Error::because(format_args!("cannot keep {}", directory.shown(name)), e))
}

/// The same by a path.
pub(crate) fn pin_at(object: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: an open descriptor and a terminated string.
    let done = unsafe { libbpf_sys::bpf_obj_pin(object.as_raw_fd(), name.as_ptr()) };
    if done < 0 { Err(io::Error::from_raw_os_error(-done)) } else { Ok(()) }
}

/// One that was kept.
pub(crate) fn open(directory: &Directory, name: &str) -> Result<OwnedFd> {
    let told =
        |e: io::Error| Error::because(format_args!("cannot open {}", directory.shown(name)), e);
    let path =
        CString::new(directory.reach(name).as_os_str().as_bytes()).map_err(|e| told(e.into()))?;
    // SAFETY: a terminated string; a negative return is an error.
    let fd = unsafe { libbpf_sys::bpf_obj_get(path.as_ptr()) };
    if fd < 0 {
        return Err(told(io::Error::from_raw_os_error(-fd)));
    }
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A map that was kept.
pub(crate) fn open_map(directory: &Directory, name: &str) -> Result<MapHandle> {
    MapHandle::from_pinned_path(directory.reach(name))
        .map_err(|e| Error::because(format_args!("cannot open {}", directory.shown(name)), e))
}

/// Whether there is a program in the kernel that uses a map.
///
/// # Errors
/// It cannot be known: no program is missed for one that cannot be looked at.
pub(crate) fn has_program(map: &MapHandle) -> io::Result<bool> {
    let mut program = 0;
    loop {
        // SAFETY: the number lives as long as the call.
        let done = unsafe { libbpf_sys::bpf_prog_get_next_id(program, &raw mut program) };
        match -done {
            0 => {}
            libc::ENOENT => return Ok(false),
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
        if uses(program, map)? {
            return Ok(true);
        }
    }
}

/// Whether a program uses a map; not if it has gone.
///
/// # Errors
/// It cannot be known.
pub(crate) fn uses(program: u32, map: &MapHandle) -> io::Result<bool> {
    let map = map.info().map_err(io::Error::other)?.info.id;
    // SAFETY: no pointers.
    let fd = unsafe { libbpf_sys::bpf_prog_get_fd_by_id(program) };
    match -fd {
        libc::ENOENT => return Ok(false),
        errno @ 1.. => return Err(io::Error::from_raw_os_error(errno)),
        _ => {}
    }
    // SAFETY: the kernel has just given us this descriptor.
    let program = unsafe { OwnedFd::from_raw_fd(fd) };
    // The verifier's MAX_USED_MAPS.
    let mut maps = [0u32; 64];
    let mut info = libbpf_sys::bpf_prog_info {
        nr_map_ids: maps.len() as u32,
        map_ids: maps.as_mut_ptr() as u64,
        ..Default::default()
    };
    let mut length = mem::size_of::<libbpf_sys::bpf_prog_info>() as u32;
    // SAFETY: the buffer is as long as it says, the array, too; both outlive the call.
    let done = unsafe {
        libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &raw mut info, &raw mut length)
    };
    if done < 0 {
        return Err(io::Error::from_raw_os_error(-done));
    }
    Ok(maps.iter().take(info.nr_map_ids as usize).any(|used| *used == map))
}

/// A program on a device's way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hung {
    /// Id of the program in the kernel.
    pub program: u32,
    /// Its name, as far as the kernel keeps it: 15 signs.
    pub name: String,
}

/// What hangs on a device's way out (TCX) in the calling thread's network namespace, in the order
/// in which packets pass it; nothing where the kernel has no TCX.
pub(crate) fn on_the_way_out(ifindex: u32) -> Vec<Hung> {
    let programs = programs_on_the_way_out(ifindex).unwrap_or_default();
    programs.into_iter().map(|program| Hung { program, name: program_name(program) }).collect()
}

/// Only the numbers of these programs.
///
/// # Errors
/// It cannot be known: no such device, a kernel without TCX.
pub(crate) fn programs_on_the_way_out(ifindex: u32) -> io::Result<Vec<u32>> {
    // BPF_MPROG_MAX
    let mut programs = [0u32; 64];
    let mut options = libbpf_sys::bpf_prog_query_opts {
        sz: mem::size_of::<libbpf_sys::bpf_prog_query_opts>() as libbpf_sys::size_t,
        prog_ids: programs.as_mut_ptr(),
        ..Default::default()
    };
    options.__bindgen_anon_1.count = programs.len() as u32;
    let index = i32::try_from(ifindex).unwrap_or(0);
    // SAFETY: the array is as long as the options say and outlives the call.
    let done = unsafe {
        libbpf_sys::bpf_prog_query_opts(index, libbpf_sys::BPF_TCX_EGRESS, &raw mut options)
    };
    if done < 0 {
        return Err(io::Error::from_raw_os_error(-done));
    }
    // SAFETY: both parts of the union are the one number.
    let count = unsafe { options.__bindgen_anon_1.count };
    Ok(programs.into_iter().take(count as usize).collect())
}

/// Empty where it cannot be known.
fn program_name(program: u32) -> String {
    // SAFETY: no pointers.
    let fd = unsafe { libbpf_sys::bpf_prog_get_fd_by_id(program) };
    if fd < 0 {
        return String::new();
    }
    // SAFETY: the kernel has just given us this descriptor.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = mem::size_of::<libbpf_sys::bpf_prog_info>() as u32;
    // SAFETY: the buffer is as long as it says and outlives the call.
    let done = unsafe {
        libbpf_sys::bpf_prog_get_info_by_fd(fd.as_raw_fd(), &raw mut info, &raw mut length)
    };
    if done != 0 {
        return String::new();
    }
    info.name.iter().map(|&c| c as u8).take_while(|&c| c != 0).map(char::from).collect()
}
