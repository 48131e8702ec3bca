//! What the endpoint needs: cgroup v2 and sock_ops on it, struct_ops for a congestion control,
//! iterators, our programs themselves; and advice on the TCP around them.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use libbpf_rs::btf::{Btf, BtfType};
use rustix::thread::CapabilitySet;

use super::machine::Machine;
use super::remedies::{
    BPF_RIGHTS, as_root, bpf_failed, newer_kernel_or, not_taken, not_tried, option, outside,
    reasoned,
};
use super::report::Group::{Endpoint as ForEndpoint, Lab, Pep};
use super::report::{Check, Group, Remedy, Topic};
use super::scratch::{self, Cgroup};
use crate::cgroup;
use crate::endpoint::{Endpoint, EndpointConfig, Give, NoRoom, ONLY_HERE, is_xcpnets};
use crate::error::Result;
use crate::kept::file_system::is_netns_exec;
use crate::link::{Link, Target};
use crate::object::overhear;
use crate::sysctl;

const GROUPS: &[Group] = &[ForEndpoint, Lab, Pep];

/// Buffers below this get advice. Half of it is data, more or less: at 500 ms that is 134 Mbit/s.
const LEAST_BUFFER: u64 = 16 << 20;
/// What is advised.
const ADVISED_BUFFER: u64 = 64 << 20;

/// tcx: whether programs hang on it; nothing where that could not be tried.
pub(super) fn checks(machine: &Machine, tcx: Option<bool>) -> Vec<Check> {
    let mount = cgroup::mount_point();
    let cgroup = mount.as_ref().ok();
    let (programs, endpoint) = programs(machine, cgroup.map(PathBuf::as_path));
    let loaded = endpoint.is_some();
    let room = room(machine, endpoint.as_ref(), tcx);
    let everywhere = endpoint.as_ref().map(Endpoint::sees_everywhere);
    drop(endpoint);
    // Read by nobody else, and of some size.
    let btf = if loaded { None } else { overhear(|| Btf::from_vmlinux().ok()).0 };
    vec![
        cgroup_mount(&mount),
        sock_ops(machine, cgroup.map(PathBuf::as_path)),
        struct_ops(machine, loaded, btf.as_ref()),
        iterators(machine, everywhere, btf.as_ref()),
        programs,
        room,
        fallback(machine),
        buffer(
            "tcp_rmem",
            "Receive buffer",
            "limits how much data of a connection can be in flight to this host",
        ),
        buffer(
            "tcp_wmem",
            "Send buffer",
            "limits how much data of a connection can be in flight from this host",
        ),
    ]
}

fn cgroup_mount(at: &Result<PathBuf>) -> Check {
    let topic = Topic {
        name: "cgroup2",
        title: "cgroup v2",
        groups: GROUPS,
        purpose: "determines which connections are served",
    };
    match at {
        Ok(point) => topic.ok(format!("mounted at {}", point.display())),
        Err(e) if is_netns_exec() => topic.missing(e.what(), outside()),
        Err(_) => topic.missing(
            "not mounted",
            Remedy::new(
                "Mount it; or, with systemd, boot with systemd.unified_cgroup_hierarchy=1.",
            )
            .command("mkdir -p /sys/fs/cgroup/unified")
            .command("mount -t cgroup2 none /sys/fs/cgroup/unified"),
        ),
    }
}

fn sock_ops(machine: &Machine, cgroup: Option<&Path>) -> Check {
    let topic = Topic {
        name: "sock_ops",
        title: "sock_ops on a cgroup",
        groups: GROUPS,
        purpose: "writes and reads the TCP option",
    };
    let Some(root) = cgroup else {
        return topic.unknown("not tried: no cgroup v2", Remedy::new("It needs cgroup v2."));
    };
    let remedy = || option(machine, &["CONFIG_CGROUP_BPF"], None);
    let program = match scratch::program(libbpf_sys::BPF_PROG_TYPE_SOCK_OPS, 1) {
        Ok(program) => program,
        Err(e) => return bpf_failed(&topic, machine, &e, remedy()),
    };
    let cgroup = match Cgroup::new(root) {
        Ok(cgroup) => cgroup,
        Err(_) if !machine.may(CapabilitySet::DAC_OVERRIDE) => {
            return topic.unknown(not_tried(machine), as_root(machine));
        }
        Err(e) => {
            let remedy = "Change its mount so that root may create cgroups. In a container the \
                host has to allow that (e.g. docker run --privileged).";
            return topic.unknown(
                format!("not tried: no cgroup can be created in {}: {e}", root.display()),
                Remedy::new(remedy),
            );
        }
    };
    match Link::new(program.as_fd(), Target::SockOps(cgroup.fd())) {
        Ok(_) => topic.ok("attached to a new cgroup, and removed"),
        Err(e) => bpf_failed(&topic, machine, &e, remedy()),
    }
}

/// The programs themselves, loaded if the kernel takes them.
fn programs(machine: &Machine, cgroup: Option<&Path>) -> (Check, Option<Endpoint>) {
    let topic = Topic {
        name: "endpoint_programs",
        title: "Endpoint programs",
        groups: GROUPS,
        purpose: "XCP in this host's TCP",
    };
    if !machine.may(BPF_RIGHTS) {
        return (topic.unknown(not_tried(machine), as_root(machine)), None);
    }
    if let Err(e) = scratch::map() {
        return (bpf_failed(&topic, machine, &e, not_taken(machine)), None);
    }
    let name = format!("xcpd{}", std::process::id());
    let config =
        EndpointConfig { name: name.clone(), give: Give::Nobody, ..EndpointConfig::default() };
    let (endpoint, log) = overhear(|| Endpoint::load(&config));
    let mut endpoint = match endpoint {
        Ok(endpoint) => endpoint,
        Err(e) => return (topic.missing(reasoned(e.what(), &log), not_taken(machine)), None),
    };
    let Some(cgroup) = cgroup.and_then(|root| Cgroup::new(root).ok()) else {
        return (topic.ok(format!("loaded, registered as {name}, and removed")), Some(endpoint));
    };
    let check = match endpoint.attach(cgroup.fd()) {
        Ok(()) => topic.ok(format!("loaded, registered as {name}, attached, and removed")),
        Err(e) => topic.missing(e.what().to_owned(), not_taken(machine)),
    };
    (check, Some(endpoint))
}

/// What the rest of the endpoint does without.
fn room(machine: &Machine, endpoint: Option<&Endpoint>, tcx: Option<bool>) -> Check {
    let topic = Topic {
        name: "room_beside_sack",
        title: "Room beside SACK",
        groups: GROUPS,
        purpose: "puts the option into acknowledgements that are full with three SACK blocks and \
            timestamps",
    };
    let lacking = |why: NoRoom, remedy| {
        topic.degraded(format!("not on this kernel: {}; {}", why.reason(), NoRoom::COST), remedy)
    };
    match (endpoint.map(Endpoint::no_room), tcx) {
        (Some(Some(why)), _) => lacking(why, not_taken(machine)),
        (Some(None), Some(true)) => topic.ok("the programs were loaded; they need TCX"),
        (Some(None), Some(false)) => {
            lacking(NoRoom::NoTcx, newer_kernel_or(machine, &["CONFIG_NET_XGRESS"]))
        }
        (Some(None), None) => topic.unknown(
            "loaded, but not attached",
            Remedy::new("First resolve the entry on network namespaces."),
        ),
        (None, _) if !machine.may(BPF_RIGHTS) => {
            topic.unknown(not_tried(machine), as_root(machine))
        }
        (None, _) => topic.unknown(
            "not tried: the endpoint programs were not loaded",
            Remedy::new("First resolve the entry on the endpoint programs."),
        ),
    }
}

fn struct_ops(machine: &Machine, loaded: bool, btf: Option<&Btf<'_>>) -> Check {
    let topic = Topic {
        name: "struct_ops",
        title: "struct_ops for TCP",
        groups: GROUPS,
        purpose: "a congestion control as a BPF program (tcp_congestion_ops)",
    };
    if loaded {
        return topic.ok("a congestion control was registered, and removed");
    }
    let mut remedy =
        option(machine, &["CONFIG_BPF_JIT", "CONFIG_BPF_SYSCALL", "CONFIG_DEBUG_INFO_BTF"], None);
    if sysctl::read("net.core.bpf_jit_enable").is_ok_and(|value| value == "0") {
        remedy = remedy
            .and("The BPF compiler is switched off: switch it on.")
            .command("sysctl -w net.core.bpf_jit_enable=1");
    }
    by_type(&topic, machine, btf, "bpf_struct_ops_tcp_congestion_ops", remedy)
}

fn iterators(machine: &Machine, everywhere: Option<bool>, btf: Option<&Btf<'_>>) -> Check {
    let topic = Topic {
        name: "iterators",
        title: "BPF iterators",
        groups: GROUPS,
        purpose: "lists connections with their XCP state",
    };
    let remedy = newer_kernel_or(machine, &["CONFIG_BPF_SYSCALL", "CONFIG_NET"]);
    match everywhere {
        Some(true) => topic.ok("an iterator over sockets was attached, and removed"),
        Some(false) => topic.degraded(
            ONLY_HERE,
            Remedy::new(
                "Run `xcpnet endpoint show` in the namespace concerned (nsenter \
                 --net=/run/netns/NAME).",
            ),
        ),
        None => by_type(&topic, machine, btf, "bpf_iter__tcp", remedy),
    }
}

/// Where the programs were not loaded, the kernel's types tell at least what is missing.
fn by_type(
    topic: &Topic,
    machine: &Machine,
    btf: Option<&Btf<'_>>,
    name: &str,
    remedy: Remedy,
) -> Check {
    let Some(btf) = btf else {
        return topic.unknown(
            "not tried: the kernel's BTF cannot be read",
            Remedy::new("First resolve the entry on BTF."),
        );
    };
    if btf.type_by_name::<BtfType<'_>>(name).is_none() {
        return topic.missing(format!("the kernel's BTF has no {name}"), remedy);
    }
    let found = "in the kernel's BTF; not tried";
    if machine.may(BPF_RIGHTS) {
        topic.unknown(
            format!("{found}: the endpoint programs were not loaded"),
            Remedy::new("First resolve the entry on the endpoint programs."),
        )
    } else {
        topic.unknown(format!("{found}: {}", machine.user()), as_root(machine))
    }
}

fn fallback(machine: &Machine) -> Check {
    let topic = Topic {
        name: "fallback",
        title: "Fallback",
        groups: GROUPS,
        purpose: "the congestion control with which a connection continues if its peer does not \
            understand XCP",
    };
    let wanted = EndpointConfig::default().fallback;
    let available = sysctl::read("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    let names: Vec<&str> = available.split_whitespace().filter(|name| !is_xcpnets(name)).collect();
    let listed = names.join(" ");
    if names.contains(&wanted.as_str()) {
        return topic.ok(format!("{wanted} (available: {listed})"));
    }
    // The programs cannot load a module, so that it has to be there.
    let remedy = option(machine, &["CONFIG_TCP_CONG_CUBIC"], Some("tcp_cubic"))
        .and("Until then, choose one that is available as the fallback.");
    topic.degraded(
        if names.is_empty() {
            "none is visible".into()
        } else {
            format!("{wanted} is not available, only: {listed}")
        },
        remedy,
    )
}

/// Advice: how long and fat a path the largest buffer fills.
fn buffer(name: &'static str, title: &'static str, purpose: &'static str) -> Check {
    let topic = Topic { name, title, groups: &[ForEndpoint], purpose };
    let setting = format!("net.ipv4.{name}");
    let numbers = sysctl::numbers(&setting).unwrap_or_default();
    let &[least, usual, most] = numbers.as_slice() else {
        return topic.degraded(
            format!("{setting} cannot be read"),
            Remedy::new("Make sure that /proc is mounted."),
        );
    };
    // Half of a buffer is what surrounds the data (Documentation/networking/ip-sysctl.rst,
    // tcp_adv_win_scale).
    let mbit_per_sec = most as f64 / 2.0 * 8.0 / 0.5 / 1e6;
    let found = format!(
        "up to {:.0} MiB, enough for {mbit_per_sec:.0} Mbit/s at 500 ms",
        most as f64 / f64::from(1 << 20)
    );
    if most >= LEAST_BUFFER {
        return topic.ok(found);
    }
    let remedy = Remedy::new(
        "For long fat paths, raise its maximum at both ends; to make it permanent, use a file in \
         /etc/sysctl.d.",
    );
    topic.degraded(
        found,
        remedy.command(format!("sysctl -w {setting}=\"{least} {usual} {ADVISED_BUFFER}\"")),
    )
}
