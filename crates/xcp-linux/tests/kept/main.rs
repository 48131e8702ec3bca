//! What is kept where others may write, and beside what others set up: nothing of theirs is
//! touched, nothing of ours can be moved away, nothing is left half-done. Each test has a mount
//! namespace and a BPF file system of its own.

mod gone;

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

use libbpf_rs::{TC_EGRESS, TcHook, TcHookBuilder};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};
use rustix::thread::UnshareFlags;
use xcp_linux::cgroup;
use xcp_linux::endpoint::{Endpoint, EndpointConfig, Give};
use xcp_linux::kept::{self, EndpointPlan, RouterPlan, Shaping};
use xcp_linux::namespace::Namespace;
use xcp_linux::netlink::Netlink;
use xcp_linux::qdisc::{self, Limit, Others, Shaper};
use xcp_linux::router::Hook;

const BPFFS: &str = "/sys/fs/bpf";
const NOBODY: u32 = 65534;

/// The congestion control's name is the machine's.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs a test where mounts are its own; says so where that is not permitted.
fn apart(test: impl FnOnce() + Send) {
    if !xcp_linux::error::is_root() {
        return xcp_skip::skipped!("root", "what is kept beside what others keep: needs root");
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let outcome = thread::scope(|scope| {
        let on_its_own = || {
            // SAFETY: what makes it unsafe is leaving the table of descriptors, which is not asked
            // for.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }.unwrap();
            mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
            test();
        };
        scope.spawn(on_its_own).join()
    });
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

/// A BPF file system of somebody else's making; without options its rights are 1777.
fn mount_bpf(options: &std::ffi::CStr) {
    mount("bpf", BPFFS, "bpf", MountFlags::empty(), Some(options)).unwrap();
}

/// Another user types this; whether it did.
fn nobody(script: &str) -> bool {
    let typed = Command::new("sh")
        .args(["-c", script])
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir("/")
        .output()
        .unwrap();
    typed.status.success()
}

/// A device with a router's place, in a namespace of its own.
fn device() -> (Namespace, u32) {
    let namespace = Namespace::new().unwrap();
    let mut netlink = Netlink::open_in(&namespace).unwrap();
    netlink.add_veth("left", "right", &namespace).unwrap();
    let index = netlink.index_of("left").unwrap().unwrap();
    netlink.set_up(index).unwrap();
    (namespace, index)
}

fn plan(shaping: Shaping, hook: Hook) -> RouterPlan {
    RouterPlan {
        device: "left".into(),
        law: xcp_engine::RouterConfig::xcp(1_250_000),
        shaping,
        hook,
        seed: 1,
        police: None,
    }
}

fn htb() -> Shaping {
    Shaping::Ours(Shaper::Htb, Limit::Packets(100))
}

/// Nothing of a router is at the device or kept.
fn assert_nothing_left(namespace: &Namespace, index: u32) {
    assert!(
        qdisc::root(&mut Netlink::open_in(namespace).unwrap(), index).unwrap().whose.is_none(),
        "the shaper stayed"
    );
    // A worker of the kernel takes off a link whose last name has gone, later on a busy machine.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(5);
    loop {
        let order = namespace.run(|| xcp_linux::rehearsal::order(index)).unwrap();
        if !order.iter().any(|name| name.starts_with("xcp_router")) {
            return;
        }
        assert!(std::time::Instant::now() < until, "{order:?}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

fn endpoint_plan() -> EndpointPlan {
    let config = EndpointConfig {
        name: format!("xk{}", std::process::id()),
        fallback: "reno".into(),
        give: Give::Nobody,
        ..EndpointConfig::default()
    };
    EndpointPlan { config, cgroup: None, devices: vec!["lo".into()] }
}

/// Root's files, which nobody else may even see.
fn victim() -> tempfile::TempDir {
    let victim =
        tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o700)).tempdir().unwrap();
    fs::create_dir(victim.path().join("endpoint")).unwrap();
    for file in ["precious", "endpoint/precious"] {
        fs::write(victim.path().join(file), "root's").unwrap();
    }
    victim
}

fn assert_whole(victim: &Path) {
    for file in ["precious", "endpoint/precious"] {
        assert_eq!(fs::read_to_string(victim.join(file)).unwrap(), "root's", "{file}");
    }
}

/// Every command that looks into our directory.
fn every_refusal() -> Vec<String> {
    let (namespace, index) = device();
    let refusals = vec![
        kept::disable().unwrap_err().to_string(),
        kept::endpoint().unwrap_err().to_string(),
        kept::enable(&endpoint_plan(), &Namespace::current().unwrap()).unwrap_err().to_string(),
        kept::add(&plan(htb(), Hook::Any), &namespace).unwrap_err().to_string(),
    ];
    assert_nothing_left(&namespace, index);
    refusals
}

#[test]
fn nobody_gets_root_to_remove_files_through_a_link() {
    apart(|| {
        mount_bpf(c"mode=1777");
        let victim = victim();
        let path = victim.path().display();
        for script in [
            format!("mkdir {BPFFS}/xcpnet && ln -s {path} {BPFFS}/xcpnet/endpoint"),
            format!("ln -s {path} {BPFFS}/xcpnet"),
            format!(
                "mkdir {BPFFS}/xcpnet && chmod 777 {BPFFS}/xcpnet && mkdir {BPFFS}/xcpnet/endpoint"
            ),
        ] {
            assert!(nobody(&script), "{script}");
            for refusal in every_refusal() {
                assert!(
                    refusal.contains("/sys/fs/bpf/xcpnet") && refusal.contains("user 65534"),
                    "{script}: {refusal}"
                );
                assert!(
                    refusal.contains("rm -r /sys/fs/bpf/xcpnet"),
                    "{script}: what to do: {refusal}"
                );
            }
            assert_whole(victim.path());
            assert!(nobody(&format!("rm -r {BPFFS}/xcpnet")), "and what is theirs is where it was");
        }
    });
}

#[test]
fn nobody_moves_roots_router_away() {
    apart(|| {
        mount_bpf(c"mode=1777");
        let (namespace, index) = device();
        assert!(nobody(&format!("mkdir {BPFFS}/xcpnet")));
        let refusal = kept::add(&plan(htb(), Hook::Any), &namespace).unwrap_err().to_string();
        assert!(refusal.contains("user 65534"), "{refusal}");
        assert_nothing_left(&namespace, index);
        assert!(nobody(&format!("rmdir {BPFFS}/xcpnet")));

        kept::add(&plan(htb(), Hook::Any), &namespace).unwrap();
        for script in [
            format!("mv {BPFFS}/xcpnet {BPFFS}/mine"),
            format!("mv {BPFFS}/xcpnet/router {BPFFS}/mine"),
            format!("rm -r {BPFFS}/xcpnet"),
            format!("ln -s /tmp {BPFFS}/xcpnet/endpoint"),
            format!("ls {BPFFS}/xcpnet"),
        ] {
            assert!(!nobody(&script), "{script}");
        }
        assert_eq!(kept::list(&namespace).unwrap().len(), 1);
        kept::delete("left", &namespace).unwrap();
        assert_nothing_left(&namespace, index);
        assert!(!Path::new(BPFFS).join("xcpnet").exists());
    });
}

#[test]
fn a_file_system_that_others_may_rearrange_is_not_written_to() {
    apart(|| {
        mount_bpf(c"mode=0700");
        // As it is mounted, everybody may remove their own only.
        fs::set_permissions(BPFFS, fs::Permissions::from_mode(0o777)).unwrap();
        let (namespace, index) = device();
        let refusal = kept::add(&plan(htb(), Hook::Any), &namespace).unwrap_err().to_string();
        assert!(refusal.contains("chmod 0700 /sys/fs/bpf"), "{refusal}");
        assert_nothing_left(&namespace, index);
    });
}

#[test]
fn what_xcpnet_mounts_is_roots_alone() {
    apart(|| {
        while fs::read_to_string("/proc/thread-self/mountinfo")
            .unwrap()
            .lines()
            .any(|line| line.contains(&format!(" {BPFFS} ")))
        {
            unmount(BPFFS, UnmountFlags::DETACH).unwrap();
        }
        let (namespace, _) = device();
        kept::add(&plan(htb(), Hook::Any), &namespace).unwrap();
        assert_eq!(fs::metadata(BPFFS).unwrap().mode() & 0o777, 0o700);
        kept::delete("left", &namespace).unwrap();
    });
}

/// Set up, shown and removed through descriptors.
#[test]
fn an_endpoint_is_kept_and_leaves_nothing() {
    apart(|| {
        mount_bpf(c"mode=0700");
        let plan = endpoint_plan();
        let here = Namespace::current().unwrap();
        // Other tests of this machine may listen: no socket is given XCP.
        let enabled = kept::enable(&plan, &here).unwrap();
        let kept = kept::endpoint().unwrap().unwrap();
        assert_eq!((kept.name(), kept.no_room()), (plan.config.name.as_str(), enabled.no_room));
        assert_eq!(kept.rooms(), enabled.devices.len());
        assert!(kept::enable(&plan, &here).unwrap_err().to_string().contains("already enabled"));
        assert!(kept::disable().unwrap() && !kept::disable().unwrap());
        assert!(!Path::new(BPFFS).join("xcpnet").exists());
    });
}

/// A control group that has been made anew under the same name is another one.
#[test]
fn an_endpoint_knows_that_its_group_is_gone() {
    apart(|| {
        mount_bpf(c"mode=0700");
        let group = cgroup::mount_point().unwrap().join(format!("xk{}", std::process::id()));
        fs::create_dir(&group).unwrap();
        let plan = EndpointPlan { cgroup: Some(group.clone()), ..endpoint_plan() };
        kept::enable(&plan, &Namespace::current().unwrap()).unwrap();
        let gone = || kept::endpoint().unwrap().unwrap().has_lost_its_group();
        let before = gone();
        fs::remove_dir(&group).unwrap();
        fs::create_dir(&group).unwrap();
        // The kernel takes it apart a moment later.
        let begun = std::time::Instant::now();
        while !gone() && begun.elapsed() < std::time::Duration::from_secs(5) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let after = gone();
        fs::remove_dir(&group).unwrap();
        assert!(kept::disable().unwrap());
        assert_eq!((before, after), (false, true));
    });
}

/// A program that lets everything be.
fn program(kind: libbpf_sys::bpf_prog_type, returns: i32) -> OwnedFd {
    // r0 = returns; exit
    let n = returns.to_ne_bytes();
    let code = [[0xb7, 0, 0, 0, n[0], n[1], n[2], n[3]], [0x95, 0, 0, 0, 0, 0, 0, 0]]
        .map(u64::from_ne_bytes);
    // SAFETY: the strings are terminated, the instructions as many as told.
    let fd = unsafe {
        libbpf_sys::bpf_prog_load(
            kind,
            c"foreign".as_ptr(),
            c"GPL".as_ptr(),
            code.as_ptr().cast(),
            2,
            std::ptr::null_mut(),
        )
    };
    assert!(fd >= 0, "{}", std::io::Error::from_raw_os_error(-fd));
    // SAFETY: the kernel has just given us this descriptor.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

#[test]
fn a_filter_of_somebody_elses_stays_where_it_is() {
    apart(|| {
        mount_bpf(c"mode=0700");
        let (namespace, index) = device();
        let foreign = program(libbpf_sys::BPF_PROG_TYPE_SCHED_CLS, -1);
        // Where the router's would go: handle and priority of router.rs.
        let hook = |fd: BorrowedFd<'_>| -> TcHook {
            TcHookBuilder::new(fd).ifindex(index as i32).handle(0x7863).priority(1).hook(TC_EGRESS)
        };
        let there = namespace.run(|| {
            let mut hook = hook(foreign.as_fd());
            hook.create().unwrap();
            hook.attach().unwrap();
            hook.query().unwrap()
        });
        let refusal = kept::add(&plan(htb(), Hook::Clsact), &namespace).unwrap_err().to_string();
        assert!(
            refusal.contains("left")
                && refusal.contains("somebody else's")
                && refusal.contains("tc filter show dev left egress"),
            "{refusal}"
        );
        assert_nothing_left(&namespace, index);
        assert_eq!(
            namespace.run(|| hook(foreign.as_fd()).query().unwrap()).unwrap(),
            there.unwrap()
        );
        assert!(kept::list(&namespace).unwrap().is_empty());
    });
}

/// A hook that was there before the router is there after it.
#[test]
fn a_hook_that_was_there_outlives_the_router() {
    apart(|| {
        mount_bpf(c"mode=0700");
        let (namespace, index) = device();
        let foreign = program(libbpf_sys::BPF_PROG_TYPE_SCHED_CLS, -1);
        let filter = |fd: BorrowedFd<'_>| -> TcHook {
            TcHookBuilder::new(fd).ifindex(index as i32).handle(7).priority(7).hook(TC_EGRESS)
        };
        namespace.run(|| filter(foreign.as_fd()).create().map(drop)).unwrap().unwrap();
        kept::add(&plan(htb(), Hook::Clsact), &namespace).unwrap();
        kept::delete("left", &namespace).unwrap();
        // It can be attached to only where the hook is.
        namespace.run(|| filter(foreign.as_fd()).attach().map(drop)).unwrap().unwrap();
    });
}

/// The clsact hook came with the router; a filter that somebody put into it since keeps it there.
#[test]
fn a_filter_that_came_later_outlives_the_router() {
    apart(|| {
        mount_bpf(c"mode=0700");
        let (namespace, index) = device();
        let foreign = program(libbpf_sys::BPF_PROG_TYPE_SCHED_CLS, -1);
        let hook = |fd: BorrowedFd<'_>| -> TcHook {
            TcHookBuilder::new(fd).ifindex(index as i32).handle(7).priority(7).hook(TC_EGRESS)
        };
        kept::add(&plan(htb(), Hook::Clsact), &namespace).unwrap();
        let there = namespace.run(|| {
            hook(foreign.as_fd()).attach().unwrap();
            hook(foreign.as_fd()).query().unwrap()
        });
        kept::delete("left", &namespace).unwrap();
        assert_eq!(
            namespace.run(|| hook(foreign.as_fd()).query().unwrap()).unwrap(),
            there.unwrap()
        );
        assert_nothing_left(&namespace, index);
    });
}

#[test]
fn a_queue_that_cannot_be_seen_is_refused() {
    apart(|| {
        mount_bpf(c"mode=0700");
        let (namespace, index) = device();
        let set = namespace
            .run(|| {
                Command::new("tc")
                    .args(["qdisc", "replace", "dev", "left", "root", "pfifo_fast"])
                    .output()
            })
            .unwrap();
        match set {
            Ok(set) if set.status.success() => {}
            other => return xcp_skip::skipped!("kernel", "a router at pfifo_fast: {other:?}"),
        }
        let refusal =
            kept::add(&plan(Shaping::None, Hook::Any), &namespace).unwrap_err().to_string();
        assert!(
            refusal.contains("pfifo_fast")
                && refusal.contains("tc qdisc replace dev left root pfifo"),
            "{refusal}"
        );
        assert_nothing_left(&namespace, index);
        let replaced = namespace
            .run(|| {
                Command::new("tc")
                    .args(["qdisc", "replace", "dev", "left", "root", "pfifo"])
                    .status()
            })
            .unwrap();
        assert!(replaced.unwrap().success());
        kept::add(&plan(Shaping::None, Hook::Any), &namespace).unwrap();
        kept::delete("left", &namespace).unwrap();
    });
}

#[test]
fn a_cgroup_that_is_held_by_another_program() {
    apart(|| {
        let group =
            cgroup::mount_point().unwrap().join(format!("xcpnet-test-held-{}", std::process::id()));
        cgroup::make(&group).unwrap();
        let held = cgroup::open(&group).unwrap();
        let foreign = program(libbpf_sys::BPF_PROG_TYPE_SOCK_OPS, 1);
        let attach = |flags: u32| {
            // SAFETY: open descriptors.
            unsafe {
                libbpf_sys::bpf_prog_attach(
                    foreign.as_raw_fd(),
                    held.as_raw_fd(),
                    libbpf_sys::BPF_CGROUP_SOCK_OPS,
                    flags,
                )
            }
        };
        let detach = || {
            // SAFETY: open descriptors.
            unsafe {
                libbpf_sys::bpf_prog_detach2(
                    foreign.as_raw_fd(),
                    held.as_raw_fd(),
                    libbpf_sys::BPF_CGROUP_SOCK_OPS,
                )
            }
        };
        let mut endpoint = Endpoint::load(&endpoint_plan().config).unwrap();
        assert_eq!(attach(0), 0);
        let refusal = endpoint.attach(held.as_fd()).map_err(|e| e.to_string());
        assert_eq!((detach(), attach(libbpf_sys::BPF_F_ALLOW_MULTI)), (0, 0));
        let beside = endpoint.attach(held.as_fd());
        drop(endpoint);
        detach();
        cgroup::remove(&group).unwrap();
        let refusal = refusal.unwrap_err();
        assert!(
            refusal.contains("has exclusive use of the cgroup") && refusal.contains("--cgroup"),
            "{refusal}"
        );
        beside.unwrap();
    });
}

/// Nothing passes: what was told counts all the same. The law keeps its name.
#[test]
fn another_capacity_is_shown_at_once() {
    apart(|| {
        mount_bpf(c"mode=0700");
        let (namespace, _) = device();
        use xcp_engine::Preset;
        for preset in [Preset::Xcp, Preset::PXcp, Preset::Robust] {
            let law = xcp_engine::RouterConfig::preset(preset, 1_250_000);
            kept::add(&RouterPlan { law, ..plan(htb(), Hook::Any) }, &namespace).unwrap();
            let changed = kept::change("left", Some(30_000_000), None, &namespace).unwrap();
            let status = changed.router.status().unwrap();
            assert_eq!((status.state.capacity_bps, status.law), (30e6, Some(preset)));
            assert!(status.calendar.is_none_or(|it| it.capacity_bps == 30e6), "{preset:?}");
            drop(changed);
            kept::delete("left", &namespace).unwrap();
        }
    });
}

/// A tbf drops what is longer than its burst, and a queue of bytes what it has no room for: who
/// shows the router is told, and how to mend it.
#[test]
fn a_device_whose_frames_have_grown() {
    apart(|| {
        mount_bpf(c"mode=0700");
        let (namespace, index) = device();
        for (shaper, limit, drops) in [
            (Shaper::Tbf, Limit::Packets(100), Some(1518 + 1250)),
            (Shaper::Htb, Limit::Packets(100), None),
            (Shaper::Htb, Limit::Bytes(9013), Some(9013)),
            (Shaper::Htb, Limit::Bytes(9014), None),
            (Shaper::Tbf, Limit::Bytes(2000), Some(2000)),
        ] {
            let mut netlink = Netlink::open_in(&namespace).unwrap();
            netlink.set_mtu(index, 1500).unwrap();
            let added =
                kept::add(&plan(Shaping::Ours(shaper, limit), Hook::Any), &namespace).unwrap();
            assert_eq!(added.drops_beyond(), None);
            netlink.set_mtu(index, 9000).unwrap();
            let grown = kept::need("left", &namespace).unwrap().drops_beyond();
            assert_eq!(grown, drops, "{shaper:?} {limit:?}");
            let adapted =
                kept::change("left", Some(10_000_000), Some(Limit::Bytes(9014)), &namespace)
                    .unwrap();
            assert_eq!(adapted.drops_beyond(), None);
            kept::delete("left", &namespace).unwrap();
        }
    });
}

/// What the law adds to each packet the shaper adds, too, with every shaper and after every change.
#[test]
fn the_shaper_knows_what_the_link_adds() {
    apart(|| {
        mount_bpf(c"mode=0700");
        let (namespace, index) = device();
        let limit = Limit::Packets(100);
        for shaping in [
            Shaping::Ours(Shaper::Htb, limit),
            Shaping::Ours(Shaper::Tbf, limit),
            Shaping::Classes { others: Others::Fair(700), limit, law_share: 1000 },
        ] {
            let mut plan = plan(shaping, Hook::Any);
            plan.law.overhead_bytes = 38;
            let added = kept::add(&plan, &namespace).unwrap();
            assert_eq!(added.qdisc.overhead, 38, "{shaping:?}");
            let changed =
                kept::change("left", Some(20_000_000), Some(Limit::Packets(50)), &namespace)
                    .unwrap();
            assert_eq!(
                (changed.qdisc.overhead, changed.qdisc.rate_bps),
                (38, Some(20_000_000)),
                "{shaping:?}"
            );
            assert_eq!((changed.qdisc.others, changed.drops_beyond()), (added.qdisc.others, None));
            kept::delete("left", &namespace).unwrap();
            assert_nothing_left(&namespace, index);
        }
    });
}

/// Nothing that passes it leaves the machine, and where it is shaped everything on it suffers.
#[test]
fn the_loopback_device_gets_no_router() {
    apart(|| {
        mount_bpf(c"mode=0700");
        let (namespace, _) = device();
        let plan = RouterPlan { device: "lo".into(), ..plan(htb(), Hook::Any) };
        let refusal = kept::add(&plan, &namespace).unwrap_err().to_string();
        assert!(refusal.contains("loopback device"), "{refusal}");
        let lo = Netlink::open_in(&namespace).unwrap().index_of("lo").unwrap().unwrap();
        assert_nothing_left(&namespace, lo);
    });
}
