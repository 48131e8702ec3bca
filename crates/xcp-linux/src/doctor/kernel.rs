//! What endpoint and router both need of the kernel: its version, BTF, bpf(2), and where programs
//! are kept.

use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;

use rustix::thread::CapabilitySet;

use super::machine::{Machine, text};
use super::remedies::{
    BPF_RIGHTS, as_root, bpf_failed, failed, newer_kernel, not_tried, option, outside,
};
use super::report::Group::{Endpoint, Lab, Pep, Router};
use super::report::{Check, Remedy, Topic};
use super::scratch;
use crate::kept::file_system::{MOUNT as BPFFS, check_mount_namespace, is_mounted, mount_private};
use crate::link;

/// What came with which version.
const SINCE: [((u32, u32), &str); 5] = [
    ((5, 10), "TCP header options by BPF (5.10)"),
    ((6, 2), "bpf_cast_to_kern_ctx, which every program here calls (6.2)"),
    ((6, 4), "struct_ops links (6.4)"),
    ((6, 6), "TCX (6.6)"),
    ((6, 10), "cong_control with four arguments (6.10)"),
];

/// Where the kernel tells its types.
const BTF: &str = "/sys/kernel/btf/vmlinux";

pub(super) fn checks(machine: &Machine) -> Vec<Check> {
    vec![version(machine), btf(machine), bpf(machine), memlock(machine), kept(machine)]
}

fn version(machine: &Machine) -> Check {
    let topic = Topic {
        name: "kernel",
        title: "Linux 6.12 or later",
        groups: &[Endpoint, Router, Lab, Pep],
        purpose: "the oldest kernel that has everything; an older one may do if the checks below \
            pass",
    };
    let Some(version) = machine.version() else {
        return topic.degraded(
            format!("{}, which gives no version", machine.release),
            newer_kernel(machine),
        );
    };
    if machine.is_recent() {
        return topic.ok(machine.release.clone());
    }
    let later = later_than(version);
    let found = if later.is_empty() {
        machine.release.clone()
    } else {
        format!("{}, older than {}", machine.release, later.join(", "))
    };
    topic.degraded(found, newer_kernel(machine))
}

/// What a kernel of this version is too old for, unless its distribution carried it back.
fn later_than(version: (u32, u32)) -> Vec<&'static str> {
    SINCE.iter().filter(|(since, _)| version < *since).map(|(_, what)| *what).collect()
}

fn btf(machine: &Machine) -> Check {
    let topic = Topic {
        name: "btf",
        title: "BTF",
        groups: &[Endpoint, Router, Lab, Pep],
        purpose: "tells the programs how this kernel lays out the data that they read",
    };
    match std::fs::metadata(BTF) {
        Ok(meta) => topic.ok(format!("{BTF}, {:.1} MB", meta.len() as f64 / 1e6)),
        Err(e) => {
            let remedy = option(machine, &["CONFIG_DEBUG_INFO_BTF"], None).and(
                "The kernels of Debian, Ubuntu, Fedora, RHEL, Arch and SUSE have it; to build \
                 your own with it, install pahole (dwarves).",
            );
            topic.missing(format!("{BTF}: {e}"), remedy)
        }
    }
}

fn bpf(machine: &Machine) -> Check {
    let topic = Topic {
        name: "bpf",
        title: "bpf(2) permitted",
        groups: &[Endpoint, Router, Lab, Pep],
        purpose: "loads programs into the kernel",
    };
    let tried =
        scratch::map().and_then(|_| scratch::program(libbpf_sys::BPF_PROG_TYPE_SCHED_CLS, 0));
    let mut said = Vec::new();
    if let Some(value) = text("/proc/sys/kernel/unprivileged_bpf_disabled") {
        said.push(format!("unprivileged_bpf_disabled {}", value.trim()));
    }
    // The mode in force stands in brackets.
    if let Some(mode) = text("/sys/kernel/security/lockdown")
        .as_deref()
        .and_then(|modes| modes.split(['[', ']']).nth(1))
    {
        said.push(format!("lockdown {mode}"));
    }
    let mut check = match tried {
        Ok(_) => topic.ok("a map and a program were loaded"),
        Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => topic.missing(
            format!("the system call does not exist: {e}"),
            option(machine, &["CONFIG_BPF_SYSCALL", "CONFIG_BPF_JIT"], None),
        ),
        Err(e) => failed(
            &topic,
            machine,
            BPF_RIGHTS,
            &e,
            option(machine, &["CONFIG_BPF_SYSCALL", "CONFIG_BPF_JIT"], None),
        ),
    };
    if !said.is_empty() {
        check.found = format!("{} ({})", check.found, said.join(", "));
    }
    check
}

fn memlock(machine: &Machine) -> Check {
    let topic = Topic {
        name: "memlock",
        title: "Memory for maps",
        groups: &[Endpoint, Router, Lab, Pep],
        purpose: "kernels before 5.11 counted maps and programs as locked memory, of which little \
            is allowed",
    };
    if machine.version().is_none_or(|version| version >= (5, 11)) {
        return topic.ok("no separate limit since 5.11");
    }
    match rustix::process::getrlimit(rustix::process::Resource::Memlock).current {
        None => topic.ok("locked memory is not limited"),
        Some(bytes) => topic.degraded(
            format!("{} KiB may be locked", bytes / 1024),
            Remedy::new("Raise the limit in the shell from which xcpnet is started.")
                .command("ulimit -l unlimited"),
        ),
    }
}

fn kept(machine: &Machine) -> Check {
    let topic = Topic {
        name: "bpffs",
        title: "BPF file system",
        groups: &[Endpoint, Router],
        purpose: "keeps the programs running after xcpnet has ended",
    };
    let mounted = is_mounted();
    if let Err(e) = check_mount_namespace() {
        return topic.missing(e.what(), outside());
    }
    if !Path::new(BPFFS).exists() {
        return topic
            .missing("this kernel has none", option(machine, &["CONFIG_BPF_SYSCALL"], None));
    }
    if !machine.may(BPF_RIGHTS | CapabilitySet::SYS_ADMIN) {
        let found = if mounted { format!("mounted at {BPFFS}") } else { "not mounted".into() };
        return topic.unknown(format!("{found}; {}", not_tried(machine)), as_root(machine));
    }
    let remedy = Remedy::new("Mount one to which root may write.")
        .command(format!("mount -t bpf -o mode=0700 bpf {BPFFS}"));
    match if mounted { keep() } else { scratch::in_mount_namespace(mount_and_keep).flatten() } {
        Ok(()) if mounted => topic.ok(format!("{BPFFS}; a map was pinned there, and removed")),
        Ok(()) => topic.ok(format!("not mounted; xcpnet mounts it at {BPFFS}, which was tried")),
        Err(e) => bpf_failed(&topic, machine, &e, remedy),
    }
}

fn mount_and_keep() -> io::Result<()> {
    mount_private()?;
    keep()
}

/// Keeps a map, and removes it.
fn keep() -> io::Result<()> {
    let path = Path::new(BPFFS).join(format!("xcpnet-doctor-{}", std::process::id()));
    link::pin_at(scratch::map()?.as_fd(), &path)?;
    std::fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_6_1_is_too_old_for() {
        let lacks = later_than((6, 1));
        assert!(
            lacks.iter().any(|what| what.contains("bpf_cast_to_kern_ctx")),
            "the router is refused for it: {lacks:?}"
        );
        assert!(!later_than((6, 2)).iter().any(|what| what.contains("bpf_cast_to_kern_ctx")));
        assert_eq!(later_than((6, 12)), [""; 0]);
    }
}
