//! A report as a person reads it: a line for each check, then what to do, then what follows.

use std::fmt::{self, Write as _};

use super::report::{Check, Group, Ready, Report, Status};

/// Narrower terminals get this width, wider ones and pipes that.
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=100;
/// Columns of the marks and of the titles.
const MARK: usize = 10;
const TITLE: usize = 22;

impl Report {
    /// The table, for a terminal of this width.
    #[must_use]
    pub fn table(&self, columns: usize) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut out, columns.clamp(*WIDTHS.start(), *WIDTHS.end()));
        out
    }

    fn write(&self, out: &mut String, width: usize) -> fmt::Result {
        let machine = format!(
            "Linux {} ({}), {}, {}",
            self.kernel, self.architecture, self.distribution, self.user
        );
        wrapped(out, "", 0, &machine, width)?;
        let mut section = "";
        for check in &self.checks {
            if section != place(check) {
                section = place(check);
                writeln!(out, "\n{section}")?;
            }
            let head = format!("  {:MARK$}{:TITLE$}", mark(check.status), check.title);
            wrapped(out, &head, MARK + TITLE + 2, &check.found, width)?;
        }
        self.write_remedies(out, width)?;
        out.push('\n');
        for group in
            Group::ALL.into_iter().filter(|group| self.only.is_none_or(|only| only == *group))
        {
            let told = self.verdict(group);
            wrapped(out, &format!("{:10}", group.name()), 10, &told, width)?;
        }
        Ok(())
    }

    /// What several checks have in common is told once, what is missing first.
    fn write_remedies(&self, out: &mut String, width: usize) -> fmt::Result {
        let mut told: Vec<&Check> = Vec::new();
        let of = |status| {
            self.checks.iter().filter(move |check| check.status == status && check.remedy.is_some())
        };
        for check in [Status::Missing, Status::Unknown, Status::Degraded].into_iter().flat_map(of) {
            if told.iter().any(|other| same(other, check)) {
                continue;
            }
            if told.is_empty() {
                out.push_str("\nWhat to do\n");
            }
            told.push(check);
            let alike: Vec<&Check> =
                self.checks.iter().filter(|other| same(other, check)).collect();
            let about = match alike.as_slice() {
                [one] => format!("{}: {}.", one.title, one.purpose),
                several => format!(
                    "{}.",
                    several.iter().map(|check| check.title).collect::<Vec<_>>().join(", ")
                ),
            };
            out.push('\n');
            wrapped(out, &format!("  {:MARK$}", mark(check.status)), MARK + 2, &about, width)?;
            if let Some(remedy) = &check.remedy {
                wrapped(out, &" ".repeat(MARK + 2), MARK + 2, &remedy.text, width)?;
                // A command is never broken: it is there to be copied.
                for command in &remedy.commands {
                    writeln!(out, "{:1$}{command}", "", MARK + 6)?;
                }
            }
        }
        Ok(())
    }

    fn verdict(&self, group: Group) -> String {
        let titles = |status| {
            self.with(group, status).map(|check| check.title).collect::<Vec<_>>().join(", ")
        };
        match self.ready(group) {
            Ready::Yes => "ready".into(),
            Ready::No => format!("not ready: {}", titles(Status::Missing)),
            Ready::Unknown => format!(
                "cannot tell: {} of {} not tried",
                self.with(group, Status::Unknown).count(),
                self.of(group)
            ),
        }
    }

    fn of(&self, group: Group) -> usize {
        self.checks.iter().filter(|check| check.groups.contains(&group)).count()
    }
}

fn same(a: &Check, b: &Check) -> bool {
    a.status == b.status && a.remedy == b.remedy
}

/// The heading under which a check stands. Lab and proxy need nearly everything, so what only they
/// need is what is told of them.
fn place(check: &Check) -> &'static str {
    let needs = |group| check.groups.contains(&group);
    match (needs(Group::Endpoint), needs(Group::Router)) {
        (true, true) => "Endpoint and router",
        (true, false) => "Endpoint",
        (false, true) => "Router",
        (false, false) if needs(Group::Lab) => "Lab, in addition to the above",
        (false, false) => "Proxy (pep), in addition to endpoint and router",
    }
}

fn mark(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Missing => "MISSING",
        Status::Degraded => "degraded",
        Status::Unknown => "unknown",
    }
}

/// Writes a text after a head, in lines of at most `width` signs as far as its words allow, the
/// further ones indented.
fn wrapped(out: &mut String, head: &str, indent: usize, text: &str, width: usize) -> fmt::Result {
    let mut line = head.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            writeln!(out, "{}", line.trim_end())?;
            line = " ".repeat(indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    writeln!(out, "{}", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::super::report::{Readiness, Remedy};
    use super::*;
    use proptest::prelude::*;

    const ALL: &[Group] = &Group::ALL;

    fn check(
        title: &'static str,
        groups: &'static [Group],
        status: Status,
        found: &str,
        remedy: Option<Remedy>,
    ) -> Check {
        Check {
            name: "n",
            title,
            groups,
            status,
            purpose: "it is needed for something",
            found: found.into(),
            remedy,
        }
    }

    fn report(ready: [Ready; 4], checks: Vec<Check>) -> Report {
        let [endpoint, router, lab, pep] = ready;
        Report {
            kernel: "6.1.0-28-amd64".into(),
            architecture: "x86_64".into(),
            distribution: "Debian GNU/Linux 12 (bookworm)".into(),
            user: "root".into(),
            ready: Readiness { endpoint, router, lab, pep },
            checks,
            only: None,
        }
    }

    #[test]
    fn an_old_kernel() {
        let newer = || {
            Remedy::new(
                "Debian 12's own kernel is 6.1; its backports offer a newer one. Then boot it.",
            )
            .command("apt-get install x")
        };
        let root = || Remedy::new("Run it as root.").command("sudo xcpnet doctor");
        let lacks = "6.1.0-28-amd64, older than struct_ops links (6.4), TCX (6.6), cong_control \
            with four arguments (6.10)";
        let reason = "the kernel rejects the endpoint's programs: Invalid argument (os error 22): \
            arg#3 is not there";
        let checks = vec![
            check("Linux 6.12 or later", ALL, Status::Degraded, lacks, Some(newer())),
            check("BTF", ALL, Status::Ok, "/sys/kernel/btf/vmlinux, 5.5 MB", None),
            check(
                "Egress of a device",
                ALL,
                Status::Degraded,
                "clsact only: no TCX, which came with 6.6",
                Some(newer()),
            ),
            check(
                "Endpoint programs",
                &[Group::Endpoint, Group::Lab, Group::Pep],
                Status::Missing,
                reason,
                Some(newer()),
            ),
            check(
                "Shaper htb",
                &[Group::Router, Group::Lab],
                Status::Ok,
                "installed, and removed",
                None,
            ),
            check(
                "veth devices",
                &[Group::Lab],
                Status::Unknown,
                "not tried: not root",
                Some(root()),
            ),
            check(
                "Packet rings",
                &[Group::Lab],
                Status::Unknown,
                "not tried: not root",
                Some(root()),
            ),
        ];
        let report = report([Ready::No, Ready::Yes, Ready::No, Ready::No], checks);
        insta::assert_snapshot!(report.table(80));
        insta::assert_snapshot!(
            "an_old_kernel_for_the_router",
            report.only(Group::Router).table(80)
        );
    }

    #[test]
    fn what_only_the_proxy_needs_and_no_room_beside_sack() {
        let checks = vec![
            check(
                "Room beside SACK",
                &[Group::Endpoint, Group::Lab, Group::Pep],
                Status::Degraded,
                "not on this kernel: it has no TCX, which came with Linux 6.6",
                Some(Remedy::new("Install a newer kernel.")),
            ),
            check("veth devices", &[Group::Lab], Status::Ok, "a pair was made, and removed", None),
            check(
                "nft tproxy",
                &[Group::Pep],
                Status::Missing,
                "this kernel has none",
                Some(Remedy::new("It needs a kernel with CONFIG_NFT_TPROXY.")),
            ),
        ];
        insta::assert_snapshot!(
            report([Ready::Yes, Ready::Yes, Ready::Yes, Ready::No], checks).table(80)
        );
    }

    proptest! {
        #[test]
        fn no_line_is_longer_than_the_terminal_but_for_a_long_word_or_a_command(
            texts in prop::collection::vec(("[ -~]{0,200}", "[ -~]{0,200}", "[a-z]{1,9}", 0usize..3), 0..6),
            columns in 0usize..300,
        ) {
            let statuses = [Status::Missing, Status::Degraded, Status::Unknown];
            let checks: Vec<Check> = texts
                .iter()
                .map(|(found, todo, command, status)| check("Title", ALL, statuses[*status], found, Some(Remedy::new(todo.as_str()).command(command))))
                .collect();
            let table = report([Ready::Unknown; 4], checks).table(columns);
            for line in table.lines() {
                let longest = line.split_whitespace().map(str::len).max().unwrap_or(0);
                prop_assert!(line.len() <= columns.clamp(60, 100).max(longest + MARK + TITLE + 2), "{line}");
            }
            for (_, _, command, _) in &texts {
                prop_assert!(table.lines().any(|line| line.trim() == command));
            }
        }
    }
}
