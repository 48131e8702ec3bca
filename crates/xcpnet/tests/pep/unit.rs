//! packaging/xcpnet-pep.service: systemd finds nothing wrong with it, and the proxy works with no
//! more rights than it leaves.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::one;
use crate::site::{SERVER, Site, skipped};
use crate::traffic::{connect, listen};

const UNIT: &str = include_str!("../../../../packaging/xcpnet-pep.service");

/// linux/capability.h, those that a unit of a proxy may name.
const CAPABILITIES: [(&str, u64); 16] = [
    ("CAP_CHOWN", 0),
    ("CAP_DAC_OVERRIDE", 1),
    ("CAP_DAC_READ_SEARCH", 2),
    ("CAP_FOWNER", 3),
    ("CAP_KILL", 5),
    ("CAP_SETGID", 6),
    ("CAP_SETUID", 7),
    ("CAP_SETPCAP", 8),
    ("CAP_NET_BIND_SERVICE", 10),
    ("CAP_NET_ADMIN", 12),
    ("CAP_NET_RAW", 13),
    ("CAP_SYS_ADMIN", 21),
    ("CAP_SYS_NICE", 23),
    ("CAP_SYS_RESOURCE", 24),
    ("CAP_PERFMON", 38),
    ("CAP_BPF", 39),
];

fn value(key: &str) -> &'static str {
    UNIT.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        .unwrap_or_else(|| panic!("no {key} in the unit"))
}

#[test]
fn systemd_finds_nothing_wrong_with_the_unit() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("xcpnet-pep.service");
    let program = env!("CARGO_BIN_EXE_xcpnet");
    // It asks whether the program is there.
    let verify = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let output = Command::new("systemd-analyze")
            .arg("verify")
            .arg("--man=no")
            .arg(&file)
            .stdin(Stdio::null())
            .output()?;
        Ok::<_, std::io::Error>((
            output.status.success(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ))
    };
    let here = UNIT.replace("/usr/bin/xcpnet", program);
    match verify(&here) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return xcp_skip::skipped!("systemd", "the unit: no systemd-analyze (package systemd)");
        }
        result => assert_eq!(result.unwrap(), (true, String::new())),
    }
    let (_, told) = verify(&here.replace("LimitNOFILE=", "LimitNOFILES=")).unwrap();
    assert!(told.contains("LimitNOFILES"), "what is wrong is told: {told}");
}

#[test]
fn the_rights_that_the_unit_leaves_suffice() {
    let _one = one();
    let Some(site) = Site::new(Duration::from_millis(1), 0.0) else { return };
    let kept: u64 = value("CapabilityBoundingSet")
        .split(' ')
        .map(|name| {
            1 << CAPABILITIES
                .iter()
                .find(|(n, _)| *n == name)
                .unwrap_or_else(|| panic!("{name} has no number here"))
                .1
        })
        .sum();
    let directory = tempfile::tempdir().unwrap();
    let notify = UnixDatagram::bind(directory.path().join("notify")).unwrap();
    notify.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // As systemd's own: whoever the proxy has become by then may write to it.
    for place in [directory.path(), &directory.path().join("notify")] {
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let config = directory.path().join("pep.toml");
    std::fs::write(&config, "wan = \"wan\"\nlan = [\"lan\"]\nrate = \"20mbit\"\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_xcpnet"));
    command.args(["pep", "run", "--config"]).arg(&config);
    command
        .env("NOTIFY_SOCKET", directory.path().join("notify"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    // SAFETY: only a system call, which is allowed between fork and exec.
    unsafe {
        command.pre_exec(move || {
            for capability in (0..64).filter(|number| kept >> number & 1 == 0) {
                // Those beyond the last are refused.
                libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
            }
            Ok(())
        });
    }
    // In the namespace from the start: to open that of another process takes a right that the unit
    // has no use for.
    let child = site.near.run(|| command.spawn()).unwrap().unwrap();
    let mut message = [0; 200];
    let ready = notify
        .recv(&mut message)
        .map(|length| String::from_utf8_lossy(&message[..length]).into_owned());
    let carried = ready.as_ref().is_ok_and(|text| text.contains("READY=1")).then(|| {
        let listener = listen(&site.server, SERVER[0], 5012);
        let stream = connect(&site.client, SERVER[0], 5012).unwrap();
        let (_, peer) = listener.accept().unwrap();
        peer == stream.local_addr().unwrap()
    });
    // SAFETY: a signal to a process of our own.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    if carried.is_none() && told.contains("doctor") {
        return skipped(told.trim());
    }
    assert_eq!((carried, output.status.success()), (Some(true), true), "{ready:?} {told}");
}
