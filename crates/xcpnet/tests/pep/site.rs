//! client - gateway - long link - gateway - server, in network namespaces of no name, with two
//! proxies on the gateways. IPv4 and IPv6.

use std::fs::Permissions;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use xcp_lab::line::{Line, LineConfig, QueueConfig, Reorder, monotonic_now};
use xcp_linux::namespace::Namespace;
use xcp_linux::netlink::Netlink;
use xcp_linux::offload::{self, Offload};
use xcp_linux::sysctl;
use xcp_model::units::Period;
use xcp_model::{Limit, Loss, LossPlace, Queue};
use xcp_pep::gateway::state::Place;

pub const CLIENT: [&str; 2] = ["10.71.1.2", "fd71:1::2"];
pub const SERVER: [&str; 2] = ["10.71.2.2", "fd71:2::2"];

pub struct Site {
    pub client: Namespace,
    pub near: Namespace,
    pub wire: Namespace,
    pub far: Namespace,
    pub server: Namespace,
    line: LineConfig,
    /// The long link, one way and the other; none while it is cut.
    lines: Mutex<Vec<Line>>,
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Past the test harness, which would keep it to itself.
pub fn skipped(why: impl std::fmt::Display) {
    xcp_skip::skipped!("root", "the proxy between gateways: {why}");
}

pub fn number(namespace: &Namespace, name: &str) -> (Netlink, u32) {
    let mut netlink = Netlink::open_in(namespace).unwrap();
    let index = netlink.index_of(name).unwrap().unwrap();
    (netlink, index)
}

pub fn join(one: (&Namespace, &str), other: (&Namespace, &str)) {
    Netlink::open_in(one.0).unwrap().add_veth(one.1, other.1, other.0).unwrap();
    for (namespace, name) in [one, other] {
        let (mut netlink, index) = number(namespace, name);
        netlink.set_up(index).unwrap();
    }
}

fn address(namespace: &Namespace, device: &str, net: u32, host: u32) {
    let (mut netlink, index) = number(namespace, device);
    netlink.add_address(index, ip(&format!("10.71.{net}.{host}")), 24).unwrap();
    netlink.add_address(index, ip(&format!("fd71:{net}::{host}")), 64).unwrap();
}

pub fn route(namespace: &Namespace, device: &str, to: u32, via: (u32, u32)) {
    let (mut netlink, index) = number(namespace, device);
    netlink
        .add_route(
            ip(&format!("10.71.{to}.0")),
            24,
            Some(ip(&format!("10.71.{}.{}", via.0, via.1))),
            index,
        )
        .unwrap();
    netlink
        .add_route(
            ip(&format!("fd71:{to}::")),
            64,
            Some(ip(&format!("fd71:{}::{}", via.0, via.1))),
            index,
        )
        .unwrap();
}

impl Site {
    /// Builds it; `None`, and the reason printed, where that cannot be.
    pub fn new(delay: Duration, loss: f64) -> Option<Self> {
        Self::build(delay, loss, None, None)
    }

    /// With a modem in both directions that has a rate and a queue of its own.
    pub fn with_modem(delay: Duration, rate_bps: u64, packets: u64) -> Option<Self> {
        let queue = Queue::drop_tail(Limit::Packets(packets));
        let modem = QueueConfig { rates: rate_bps.into(), queue, overhead_bytes: 0 };
        Self::build(delay, 0.0, None, Some(modem))
    }

    /// With a long link on which packets overtake each other.
    pub fn with_reordering(delay: Duration, loss: f64, reorder: Reorder) -> Option<Self> {
        Self::build(delay, loss, Some(reorder), None)
    }

    fn build(
        delay: Duration,
        loss: f64,
        reorder: Option<Reorder>,
        modem: Option<QueueConfig>,
    ) -> Option<Self> {
        let mut spaces = Vec::new();
        for _ in 0..5 {
            match Namespace::new() {
                Ok(space) => spaces.push(space),
                Err(e) => {
                    skipped(e);
                    return None;
                }
            }
        }
        let [client, near, wire, far, server] = <[Namespace; 5]>::try_from(spaces).ok()?;
        // A namespace may have the number of one that is gone and whose proxy was killed with its
        // keeper. Nobody is at work in a new one.
        for (gateway, name) in [(&near, "main"), (&near, "two"), (&far, "main"), (&far, "two")] {
            let _ = std::fs::remove_dir_all(Place::of(gateway, name).path());
        }
        join((&client, "c0"), (&near, "lan"));
        join((&near, "wan"), (&wire, "w0"));
        join((&wire, "w1"), (&far, "wan"));
        join((&far, "lan"), (&server, "s0"));
        for gateway in [&near, &far] {
            gateway
                .run(|| {
                    sysctl::write("net.ipv4.ip_forward", "1").unwrap();
                    sysctl::write("net.ipv6.conf.all.forwarding", "1").unwrap();
                    // Frames, not super-packets, go onto a wire.
                    Offload::ALL.into_iter().for_each(|o| offload::set("wan", o, false).unwrap());
                })
                .unwrap();
        }
        wire.run(|| {
            sysctl::write("net.ipv6.conf.all.disable_ipv6", "1").unwrap();
            for device in ["w0", "w1"] {
                Offload::ALL.into_iter().for_each(|o| offload::set(device, o, false).unwrap());
            }
        })
        .unwrap();
        for (namespace, device, net, host) in [
            (&client, "c0", 1, 2),
            (&near, "lan", 1, 1),
            (&near, "wan", 9, 1),
            (&far, "wan", 9, 2),
            (&far, "lan", 2, 1),
            (&server, "s0", 2, 2),
        ] {
            address(namespace, device, net, host);
        }
        route(&client, "c0", 2, (1, 1));
        route(&near, "wan", 2, (9, 2));
        route(&far, "wan", 1, (9, 1));
        route(&server, "s0", 1, (2, 1));
        let losses = vec![Loss {
            probability: loss,
            place: LossPlace::AfterQueue,
            period: Period { from: 0, to: u64::MAX },
        }];
        let line = LineConfig {
            delays: (delay.as_nanos() as u64).into(),
            losses: if loss > 0.0 { losses.clone() } else { Vec::new() },
            losses_elsewhere: false,
            blackouts: Vec::new(),
            reorder,
            queue: modem,
            seed: 7,
            index: 0,
            zero: monotonic_now(),
            mtu: 1500,
            input_rate_bps: 1_000_000_000,
        };
        let site = Self { client, near, wire, far, server, line, lines: Mutex::default() };
        site.mend();
        Some(site)
    }

    /// Cuts the long link, and nobody is told: what is sent into it is lost.
    pub fn cut(&self) {
        self.lines.lock().unwrap().clear();
    }

    /// Joins what was cut.
    pub fn mend(&self) {
        let line = |index, from, to| {
            let config = LineConfig { index, ..self.line.clone() };
            Line::start(&config, Some(self.wire.as_fd()), from, to).unwrap()
        };
        *self.lines.lock().unwrap() = vec![line(0, "w0", "w1"), line(1, "w1", "w0")];
    }

    /// A namespace's name for other processes.
    pub fn path(namespace: &Namespace) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), namespace.as_fd().as_raw_fd())
    }
}

/// `xcpnet pep COMMAND --netns ...`.
pub fn pep(namespace: &Namespace, command: &str, more: &[&str]) -> Output {
    let path = Site::path(namespace);
    let arguments = ["pep", command, "--netns", &path];
    Command::new(env!("CARGO_BIN_EXE_xcpnet"))
        .args(arguments)
        .args(more)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// A file of options that a proxy may read once it has given its rights away.
pub struct OptionsFile {
    directory: tempfile::TempDir,
    always: &'static str,
}

impl OptionsFile {
    /// `always`: what it begins with whatever is written into it.
    pub fn new(always: &'static str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let file = Self { directory, always };
        file.write("");
        file
    }

    pub fn write(&self, text: &str) {
        std::fs::write(self.path(), format!("{}{text}", self.always)).unwrap();
    }

    pub fn path(&self) -> String {
        self.directory.path().join("pep.toml").display().to_string()
    }
}

/// A proxy in the background; it is ended when this is dropped.
pub struct Proxy<'a> {
    pub namespace: &'a Namespace,
    pub name: &'a str,
    pub pid: u32,
}

impl<'a> Proxy<'a> {
    /// `None`, and the reason printed, where the machine cannot have one.
    pub fn up(namespace: &'a Namespace, more: &[&str]) -> Option<Self> {
        let arguments: Vec<&str> = ["--wan", "wan", "--lan", "lan", "--workers", "2"]
            .iter()
            .chain(more)
            .copied()
            .collect();
        Self::up_as(namespace, "main", &arguments)
    }

    /// The same with a name, and devices of one's own.
    pub fn up_as(namespace: &'a Namespace, name: &'a str, more: &[&str]) -> Option<Self> {
        let arguments: Vec<&str> =
            ["--name", name, "--drain", "5s"].iter().chain(more).copied().collect();
        let output = pep(namespace, "up", &arguments);
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(text.contains("doctor") || text.contains("kernel"), "{text}");
            skipped(text.trim());
            return None;
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let pid = text
            .split("process ")
            .nth(1)
            .and_then(|rest| rest.split(')').next()?.parse().ok())
            .expect("a process number");
        Some(Self { namespace, name, pid })
    }

    /// What `pep show --json` says.
    pub fn show(&self) -> serde_json::Value {
        let output = pep(self.namespace, "show", &["--name", self.name, "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
    }

    /// Ends it.
    pub fn down(self, now: bool) {
        let output =
            pep(self.namespace, "down", &["--name", self.name, "--now"][..if now { 3 } else { 2 }]);
        assert!(output.status.success(), "{output:?}");
        std::mem::forget(self);
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: a signal to a process that this test started.
        unsafe { libc::kill(self.pid as i32, signal) };
    }
}

impl Drop for Proxy<'_> {
    fn drop(&mut self) {
        let _ = pep(self.namespace, "down", &["--name", self.name, "--now"]);
    }
}
