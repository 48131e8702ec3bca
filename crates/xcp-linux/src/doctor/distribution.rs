//! The distribution, and how it gives a newer kernel.

use super::report::Remedy;

/// What /etc/os-release tells (os-release(5)).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Distribution {
    /// As it calls itself; never empty.
    pub pretty: String,
    id: String,
    like: String,
    version: String,
    codename: String,
}

impl Distribution {
    pub fn of(os_release: &str) -> Self {
        let value = |key: &str| {
            let line =
                os_release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            line.unwrap_or_default().trim().trim_matches(['"', '\'']).to_owned()
        };
        let or = |text: String, other: &str| if text.is_empty() { other.to_owned() } else { text };
        Self {
            pretty: or(or(value("PRETTY_NAME"), &value("NAME")), "an unknown distribution"),
            id: value("ID"),
            like: value("ID_LIKE"),
            version: value("VERSION_ID"),
            codename: value("VERSION_CODENAME"),
        }
    }

    /// The release's first number.
    fn major(&self) -> u32 {
        self.version.split('.').next().and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    fn is(&self, id: &str) -> bool {
        self.id == id || self.like.split(' ').any(|like| like == id)
    }

    /// How to get a kernel of 6.12 or later here.
    pub fn newer_kernel(&self, architecture: &str) -> Remedy {
        let debian_name = match architecture {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let (text, commands): (&str, Vec<String>) = match (self.id.as_str(), self.major()) {
            ("debian", 12) => (
                "Debian 12's own kernel is 6.1; its backports offer a newer one.",
                vec![
                    format!(
                        "echo 'deb http://deb.debian.org/debian {}-backports main' > \
                            /etc/apt/sources.list.d/backports.list",
                        self.codename
                    ),
                    format!(
                        "apt-get update && apt-get install -t {}-backports \
                            linux-image-{debian_name}",
                        self.codename
                    ),
                ],
            ),
            ("debian", 1..12) => {
                ("Upgrade to Debian 13 or later, whose kernel is new enough.", vec![])
            }
            ("debian", _) => (
                "Install Debian's current kernel.",
                vec![format!("apt-get update && apt-get install linux-image-{debian_name}")],
            ),
            ("ubuntu", 1..24) => (
                "Upgrade to Ubuntu 24.04 or later, which offers a kernel that is new enough.",
                vec![],
            ),
            ("ubuntu", _) => (
                "Install Ubuntu's hardware enablement kernel.",
                vec![format!(
                    "apt-get update && apt-get install linux-generic-hwe-{}",
                    self.version
                )],
            ),
            ("fedora", _) => {
                ("Install Fedora's current kernel.", vec!["dnf upgrade --refresh kernel".into()])
            }
            ("alpine", _) => (
                "Install the kernel of Alpine 3.21 or later.",
                vec!["apk upgrade linux-lts".into()],
            ),
            _ if self.is("rhel") || self.is("fedora") => match self.major() {
                1..10 => (
                    "Install kernel-ml of ELRepo (https://elrepo.org), or upgrade to release 10, \
                        whose kernel is 6.12.",
                    vec![],
                ),
                _ => ("Install the current kernel.", vec!["dnf upgrade --refresh kernel".into()]),
            },
            _ if self.is("arch") => {
                ("Install Arch's current kernel.", vec!["pacman -Syu linux".into()])
            }
            _ if self.is("suse") => {
                ("Install the kernel of openSUSE Tumbleweed or of Leap 16.", vec![])
            }
            _ => ("Install kernel 6.12 or later from your distribution.", vec![]),
        };
        Remedy { text: text.into(), commands }.and("Then boot it.")
    }

    /// The package in which the distribution keeps modules that few need; empty where there is
    /// none.
    pub fn more_modules(&self) -> &'static str {
        if self.is("ubuntu") {
            "linux-modules-extra-$(uname -r)"
        } else if self.is("rhel") || self.is("fedora") {
            "kernel-modules-extra-$(uname -r)"
        } else {
            ""
        }
    }

    /// How a package is installed.
    pub fn install(&self, package: &str) -> String {
        if self.is("debian") {
            format!("apt-get install \"{package}\"")
        } else {
            format!("dnf install \"{package}\"")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn debian_12_and_ubuntu_24() {
        let debian = Distribution::of(
            "PRETTY_NAME=\"Debian GNU/Linux 12 \
                (bookworm)\"\nID=debian\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\n",
        );
        assert_eq!(debian.pretty, "Debian GNU/Linux 12 (bookworm)");
        let remedy = debian.newer_kernel("x86_64");
        assert!(
            remedy.commands[1].ends_with("-t bookworm-backports linux-image-amd64"),
            "{remedy:?}"
        );
        assert_eq!(debian.more_modules(), "");

        let ubuntu = Distribution::of("ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"24.04\"\n");
        assert!(ubuntu.newer_kernel("x86_64").commands[0].ends_with("linux-generic-hwe-24.04"));
        assert_eq!(
            ubuntu.install(ubuntu.more_modules()),
            "apt-get install \"linux-modules-extra-$(uname -r)\""
        );
    }

    proptest! {
        #[test]
        fn there_is_always_something_to_do(text in "(?s).{0,200}", id in "debian|ubuntu|fedora|arch|rocky|", version in "[0-9.]{0,6}") {
            for text in [text, format!("ID={id}\nVERSION_ID={version}\nID_LIKE=\"rhel arch\"")] {
                let distribution = Distribution::of(&text);
                prop_assert!(!distribution.pretty.is_empty());
                prop_assert!(!distribution.newer_kernel("x86_64").text.is_empty());
            }
        }
    }
}
