//! What the machine says of itself: kernel, distribution, rights, modules. Nothing is tried here
//! and nothing fails: what cannot be read is empty or absent.

use std::fs;
use std::path::Path;

use rustix::thread::{CapabilitySet, capabilities};

use super::distribution::Distribution;
use crate::error::is_root;

/// What is known before anything is tried.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    /// As `uname -r` prints it.
    pub release: String,
    /// As `uname -m` prints it.
    pub architecture: String,
    pub distribution: Distribution,
    /// Whether this runs in a container, whose kernel is the host's.
    pub container: bool,
    /// Whether the user id is root's.
    pub root: bool,
    /// Whether the user is root only within a user namespace.
    pub enclosed: bool,
    rights: CapabilitySet,
}

/// The lowest kernel that makes sense to run this on: the oldest with long support that has
/// everything.
const LOWEST: (u32, u32) = (6, 12);

impl Machine {
    pub fn look() -> Self {
        let uname = rustix::system::uname();
        let marks = ["/.dockerenv", "/run/.containerenv", "/run/systemd/container"];
        Self {
            release: uname.release().to_string_lossy().into_owned(),
            architecture: uname.machine().to_string_lossy().into_owned(),
            distribution: Distribution::of(
                &text("/etc/os-release")
                    .or_else(|| text("/usr/lib/os-release"))
                    .unwrap_or_default(),
            ),
            container: marks.iter().any(|mark| Path::new(mark).exists()),
            root: is_root(),
            enclosed: text("/proc/self/uid_map").is_some_and(|map| encloses(&map)),
            rights: capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective),
        }
    }

    /// Whether the process has these capabilities towards the whole machine. CAP_SYS_ADMIN stands
    /// for CAP_BPF and CAP_PERFMON, which were taken out of it (capabilities(7)).
    pub fn may(&self, wanted: CapabilitySet) -> bool {
        let mut rights = self.rights;
        if rights.contains(CapabilitySet::SYS_ADMIN) {
            rights |= CapabilitySet::BPF | CapabilitySet::PERFMON;
        }
        !self.enclosed && rights.contains(wanted)
    }

    /// Who is asking: `root`, or what is missing to be root.
    pub fn user(&self) -> &'static str {
        match (self.root, self.enclosed) {
            (_, true) => "in a user namespace",
            (true, false) if self.may(CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN) => {
                "root"
            }
            (true, false) => "root without all capabilities",
            (false, false) => "not root",
        }
    }

    /// The kernel's version, its first two numbers.
    pub fn version(&self) -> Option<(u32, u32)> {
        version(&self.release)
    }

    /// Whether the kernel is as new as it should be.
    pub fn is_recent(&self) -> bool {
        self.version().is_some_and(|version| version >= LOWEST)
    }

    /// Where a kernel option stands in the configuration that came with the kernel: `y`, `m` or
    /// `n`; nothing if that is not to be found.
    pub fn option(&self, option: &str) -> Option<char> {
        configurations(&self.release).iter().find_map(text).map(|config| option_in(&config, option))
    }

    /// How the kernel has a module, by its lists: built in, or to be loaded.
    pub fn module(&self, name: &str) -> Option<&'static str> {
        let lists =
            [("modules.builtin", "built in"), ("modules.dep", "a module that can be loaded")];
        let directory = Path::new("/lib/modules").join(&self.release);
        lists
            .into_iter()
            .find_map(|(list, how)| lists_module(&text(directory.join(list))?, name).then_some(how))
    }

    /// Whether the modules of the running kernel are gone while another's are there: it was
    /// replaced and the machine not booted since.
    pub fn replaced(&self) -> bool {
        let modules = Path::new("/lib/modules");
        !modules.join(&self.release).exists()
            && fs::read_dir(modules).is_ok_and(|mut entries| entries.next().is_some())
    }
}

/// Where distributions put a kernel's configuration; the newest of Debian have it beside the
/// modules only.
fn configurations(release: &str) -> [String; 3] {
    [
        format!("/boot/config-{release}"),
        format!("/usr/lib/modules/{release}/config"),
        format!("/lib/modules/{release}/config"),
    ]
}

/// A file's text; nothing if it cannot be read.
pub(super) fn text(path: impl AsRef<Path>) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a user namespace's map (user_namespaces(7)) is another than the first one's, which maps
/// everything onto itself.
fn encloses(map: &str) -> bool {
    !map.split_whitespace().eq(["0", "0", "4294967295"])
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn option_in(config: &str, option: &str) -> char {
    let value = |line: &str| line.strip_prefix(option)?.strip_prefix('=')?.chars().next();
    config.lines().find_map(value).unwrap_or('n')
}

/// Lists name modules by path, with `-` and `_` as the file has them; in modules.dep a colon and
/// what it needs follow.
fn lists_module(list: &str, name: &str) -> bool {
    list.lines().any(|line| {
        let path = line.split(':').next().unwrap_or(line);
        let file = path.rsplit('/').next().unwrap_or(path);
        file.split('.').next().is_some_and(|stem| stem.replace('-', "_") == name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn versions() {
        for (release, expected) in [
            ("6.18.44-fc-v657", Some((6, 18))),
            ("6.8.0-45-generic", Some((6, 8))),
            ("6.12", Some((6, 12))),
            ("7.0-rc1", Some((7, 0))),
            ("", None),
            ("next", None),
            ("6", None),
            ("99999999999.1", None),
        ] {
            assert_eq!(version(release), expected, "{release}");
        }
    }

    #[test]
    fn modules_are_found_by_whole_names() {
        let list =
            "kernel/net/sched/sch_htb.ko\nkernel/net/sched/sch-tbf.ko.zst: kernel/a/sch_x.ko\n";
        for (name, there) in
            [("sch_htb", true), ("sch_tbf", true), ("sch_ht", false), ("sch_x", false)]
        {
            assert_eq!(lists_module(list, name), there, "{name}");
        }
    }

    #[test]
    fn options_are_found_by_whole_names() {
        let config = "CONFIG_NET_SCH_HTB=m\n# CONFIG_NET_SCH_TBF is not set\nCONFIG_VETHX=y\n";
        for (option, value) in
            [("CONFIG_NET_SCH_HTB", 'm'), ("CONFIG_NET_SCH_TBF", 'n'), ("CONFIG_VETH", 'n')]
        {
            assert_eq!(option_in(config, option), value);
        }
    }

    #[test]
    fn configurations_beside_the_modules_count() {
        assert!(
            configurations("7.3.4+deb13-amd64")
                .contains(&"/usr/lib/modules/7.3.4+deb13-amd64/config".to_owned())
        );
    }

    #[test]
    fn only_the_first_user_namespace_maps_everything_onto_itself() {
        assert!(!encloses("         0          0 4294967295\n"));
        assert!(encloses("         0       1000          1\n"));
        assert!(encloses(""));
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "(?s).{0,200}", name in ".{0,8}") {
            let _ = (version(&text), encloses(&text), option_in(&text, &name), lists_module(&text, &name));
        }
    }
}
