//! `xcpnet router add` and `del` killed at any moment: the next command finds a whole router or none,
//! or removes the rest of it. And commands that lack file descriptors at any moment: what works goes on working.
#![cfg(target_os = "linux")]

use std::os::fd::{AsFd as _, AsRawFd as _};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use xcp_linux::namespace::Namespace;
use xcp_linux::netlink::Netlink;
use xcp_linux::qdisc;

/// Moments per hook at which each is killed, evenly over what a whole command takes.
const MOMENTS: u32 = 24;

struct Site {
    namespace: Namespace,
    index: u32,
}

impl Site {
    fn new() -> Self {
        let namespace = Namespace::new().unwrap();
        let mut netlink = Netlink::open_in(&namespace).unwrap();
        netlink.add_veth("left", "right", &namespace).unwrap();
        let index = netlink.index_of("left").unwrap().unwrap();
        netlink.set_up(index).unwrap();
        Self { namespace, index }
    }

    fn router(&self, words: &[&str]) -> Command {
        let netns =
            format!("/proc/{}/fd/{}", std::process::id(), self.namespace.as_fd().as_raw_fd());
        let mut command = Command::new(env!("CARGO_BIN_EXE_xcpnet"));
        command.arg("router").args(words).args(["--netns", &netns]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.router(words).output().unwrap()
    }

    /// The same with no more file descriptors than that.
    fn limited(&self, descriptors: u32, words: &[&str]) -> Output {
        let command = self.router(words);
        Command::new("sh")
            .args(["-c", &format!("ulimit -n {descriptors} && exec \"$@\""), "sh"])
            .arg(command.get_program())
            .args(command.get_args())
            .output()
            .unwrap()
    }

    /// The programs on the device's way out, its qdiscs and filters, as a person sees them.
    fn there(&self) -> (bool, String) {
        let ours = qdisc::root(&mut Netlink::open_in(&self.namespace).unwrap(), self.index);
        let filters = self
            .namespace
            .run(|| Command::new("tc").args(["filter", "show", "dev", "left", "egress"]).output())
            .unwrap();
        let mut there = String::from_utf8(filters.unwrap().stdout).unwrap();
        for program in self.namespace.run(|| xcp_linux::rehearsal::order(self.index)).unwrap() {
            there.push_str(&program);
        }
        (ours.unwrap().whose.is_some(), there)
    }
}

#[test]
fn whenever_it_is_killed_the_next_command_finds_a_whole_router_or_none() {
    if !rustix::process::geteuid().is_root() {
        return xcp_skip::skipped!("root", "`router add` killed at any moment: needs root");
    }
    let (site, elsewhere) = (Site::new(), Site::new());
    for hook in ["tcx", "clsact"] {
        let add = ["add", "dev", "left", "capacity", "10mbit", "hook", hook];
        let start = Instant::now();
        let whole = site.run(&add);
        let takes = start.elapsed();
        assert!(whole.status.success(), "{hook}: {whole:?}");
        let start = Instant::now();
        assert!(site.run(&["del", "dev", "left"]).status.success());
        let removing_takes = start.elapsed();
        assert_eq!(site.there(), (false, String::new()));
        for moment in 1..=MOMENTS {
            assert!(site.run(&add).status.success());
            let mut removing = site.router(&["del", "dev", "left"]).spawn().unwrap();
            thread::sleep(removing_takes * moment / MOMENTS);
            removing.kill().unwrap();
            removing.wait().unwrap();
            // Whoever looks first, where the device is or elsewhere.
            if moment % 2 == 0 {
                assert!(elsewhere.run(&["show"]).status.success());
            }
            site.run(&["del", "dev", "left"]);
            assert_eq!(site.there(), (false, String::new()), "{hook} {moment}");
        }
        for moment in 1..=MOMENTS {
            let mut adding = site.router(&add).spawn().unwrap();
            thread::sleep(takes * moment / MOMENTS);
            adding.kill().unwrap();
            adding.wait().unwrap();
            // A filter whose program is going, which takes the kernel a moment.
            thread::sleep(Duration::from_millis(20));
            let shown = site.run(&["show"]);
            let text = String::from_utf8(shown.stdout).unwrap();
            assert!(shown.status.success(), "{hook} {moment}: {text}");
            let (shaped, programs) = site.there();
            let router = text.contains("left");
            assert_eq!(
                (shaped, !programs.is_empty()),
                (router, router),
                "{hook} {moment}: {programs} {text}"
            );
            assert_eq!(site.run(&["del", "dev", "left"]).status.success(), router);
        }
    }
}

/// What cannot be known is no reason to clear anything away.
#[test]
fn whatever_a_command_lacks_it_removes_no_router_that_works() {
    if !rustix::process::geteuid().is_root() {
        return xcp_skip::skipped!("root", "`router show` without descriptors: needs root");
    }
    let (site, other) = (Site::new(), Site::new());
    for hook in ["tcx", "clsact"] {
        let add = ["add", "dev", "left", "capacity", "10mbit", "hook", hook];
        let added = site.run(&add);
        assert!(added.status.success(), "{hook}: {added:?}");
        let before = site.there();
        for shown in [&site, &other] {
            for descriptors in 3..24 {
                shown.limited(descriptors, &["show"]);
                let text = String::from_utf8(site.run(&["show"]).stdout).unwrap();
                assert!(text.contains("left"), "{hook}, {descriptors} descriptors: {text}");
                assert_eq!(site.there(), before, "{hook}, {descriptors} descriptors");
            }
        }
        // One that is to remove it says whether it has; if not, the next one does, unless the other
        // test's, in its own namespace, has come before it.
        let mut refused = 0;
        for descriptors in 3..24 {
            let done = site.limited(descriptors, &["del", "dev", "left"]);
            if !done.status.success() {
                refused += 1;
                site.run(&["del", "dev", "left"]);
            }
            assert_eq!(site.there(), (false, String::new()), "{hook}, {descriptors}: {done:?}");
            assert!(site.run(&add).status.success());
        }
        assert!(refused > 0, "they were always enough");
        assert!(site.run(&["del", "dev", "left"]).status.success());
        assert_eq!(site.there(), (false, String::new()));
    }
}
