//! What was found, check by check, and what follows for endpoint, router and lab. How it was found
//! is in the other modules, how it is printed in `table.rs`. The field names are kept once
//! published: scripts read them.

use serde::Serialize;

use super::machine::Machine;

/// What needs a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// XCP in this host's TCP.
    Endpoint,
    /// runs XCP in front of a device's queue.
    Router,
    /// Scenarios in network namespaces.
    Lab,
    /// A gateway of the proxy for long links.
    Pep,
}

impl Group {
    /// All, in the order in which they are told.
    pub const ALL: [Self; 4] = [Self::Endpoint, Self::Router, Self::Lab, Self::Pep];

    /// As it is printed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Endpoint => "endpoint",
            Self::Router => "router",
            Self::Lab => "lab",
            Self::Pep => "pep",
        }
    }

    /// The one that is printed so.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.name() == name)
    }
}

/// Whether a feature is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It is.
    Ok,
    /// It is not, and what needs it does not work.
    Missing,
    /// It is not, or not wholly; what needs it works, but not as well.
    Degraded,
    /// It could not be tried.
    Unknown,
}

/// What can be done about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// What to do, in words.
    pub text: String,
    /// To be typed as root, one after the other; may be empty.
    pub commands: Vec<String>,
}

impl Remedy {
    /// Words only.
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), commands: Vec::new() }
    }

    /// One more command.
    pub(super) fn command(mut self, command: impl Into<String>) -> Self {
        self.commands.push(command.into());
        self
    }

    /// More words.
    pub(super) fn and(mut self, text: &str) -> Self {
        if !text.is_empty() {
            self.text.push(' ');
            self.text.push_str(text);
        }
        self
    }
}

/// A feature and what came of looking for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// For scripts; never changed.
    pub name: &'static str,
    /// Its name in the table, for readers.
    pub title: &'static str,
    /// Which of endpoint, router, lab and proxy need it.
    pub groups: &'static [Group],
    /// Whether it is there.
    pub status: Status,
    /// What it is needed for.
    pub purpose: &'static str,
    /// What was found when it was tried.
    pub found: String,
    /// What to do; absent if all is well.
    pub remedy: Option<Remedy>,
}

/// What a check is about, before anything was looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Topic {
    pub name: &'static str,
    pub title: &'static str,
    pub groups: &'static [Group],
    pub purpose: &'static str,
}

impl Topic {
    fn check(&self, status: Status, found: impl Into<String>, remedy: Option<Remedy>) -> Check {
        let Self { name, title, groups, purpose } = *self;
        Check { name, title, groups, status, purpose, found: found.into(), remedy }
    }

    pub fn ok(&self, found: impl Into<String>) -> Check {
        self.check(Status::Ok, found, None)
    }

    pub fn missing(&self, found: impl Into<String>, remedy: Remedy) -> Check {
        self.check(Status::Missing, found, Some(remedy))
    }

    pub fn degraded(&self, found: impl Into<String>, remedy: Remedy) -> Check {
        self.check(Status::Degraded, found, Some(remedy))
    }

    pub fn unknown(&self, found: impl Into<String>, remedy: Remedy) -> Check {
        self.check(Status::Unknown, found, Some(remedy))
    }
}

/// Whether a group has what it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ready {
    /// Everything.
    Yes,
    /// Something is missing.
    No,
    /// Nothing was seen to be missing, but not everything could be tried.
    Unknown,
}

/// Whether each group is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Readiness {
    /// XCP in this host's TCP.
    pub endpoint: Ready,
    /// runs XCP in front of a device's queue.
    pub router: Ready,
    /// Scenarios in network namespaces.
    pub lab: Ready,
    /// A gateway of the proxy for long links.
    pub pep: Ready,
}

/// All that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// The machine's architecture, as `uname -m` prints it.
    pub architecture: String,
    /// The distribution, as it calls itself.
    pub distribution: String,
    /// Who asked: `root`, or what stands in the way of looking everywhere.
    pub user: String,
    /// What follows from the checks.
    pub ready: Readiness,
    /// The checks, in the order in which they are told.
    pub checks: Vec<Check>,
    /// Whom it is about, if not all.
    #[serde(skip)]
    pub(super) only: Option<Group>,
}

impl Report {
    pub(super) fn new(machine: &Machine, checks: Vec<Check>) -> Self {
        let ready = |group| ready(&checks, group);
        Self {
            kernel: machine.release.clone(),
            architecture: machine.architecture.clone(),
            distribution: machine.distribution.pretty.clone(),
            user: machine.user().to_owned(),
            ready: Readiness {
                endpoint: ready(Group::Endpoint),
                router: ready(Group::Router),
                lab: ready(Group::Lab),
                pep: ready(Group::Pep),
            },
            checks,
            only: None,
        }
    }

    /// What of it concerns one group.
    #[must_use]
    pub fn only(mut self, group: Group) -> Self {
        self.checks.retain(|check| check.groups.contains(&group));
        self.only = Some(group);
        self
    }

    /// Whether a group has what it needs.
    #[must_use]
    pub fn ready(&self, group: Group) -> Ready {
        match group {
            Group::Endpoint => self.ready.endpoint,
            Group::Router => self.ready.router,
            Group::Lab => self.ready.lab,
            Group::Pep => self.ready.pep,
        }
    }

    /// The checks of a group with this status.
    pub fn with(&self, group: Group, status: Status) -> impl Iterator<Item = &Check> {
        self.checks
            .iter()
            .filter(move |check| check.groups.contains(&group) && check.status == status)
    }
}

fn ready(checks: &[Check], group: Group) -> Ready {
    let any =
        |status| checks.iter().any(|check| check.groups.contains(&group) && check.status == status);
    if any(Status::Missing) {
        Ready::No
    } else if any(Status::Unknown) {
        Ready::Unknown
    } else {
        Ready::Yes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPIC: Topic = Topic { name: "t", title: "T", groups: &[Group::Router], purpose: "p" };

    #[test]
    fn what_is_missing_outweighs_what_is_unknown_and_degraded_is_enough() {
        let remedy = || Remedy::new("r");
        let (ok, missing) = (TOPIC.ok("f"), TOPIC.missing("f", remedy()));
        let (degraded, unknown) = (TOPIC.degraded("f", remedy()), TOPIC.unknown("f", remedy()));
        for (checks, expected) in [
            (vec![], Ready::Yes),
            (vec![ok.clone(), degraded.clone()], Ready::Yes),
            (vec![ok, unknown.clone()], Ready::Unknown),
            (vec![unknown, missing, degraded], Ready::No),
        ] {
            assert_eq!(ready(&checks, Group::Router), expected);
            assert_eq!(ready(&checks, Group::Lab), Ready::Yes, "not the lab's");
        }
    }
}
