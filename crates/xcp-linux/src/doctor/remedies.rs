//! What can be done, as far as it depends on the machine; and what a refusal means, which depends
//! on who asked.

use std::io;

use rustix::thread::CapabilitySet;

use super::machine::Machine;
use super::report::{Check, Remedy, Topic};

/// What loading the kernel programs takes (capabilities(7)).
pub(super) const BPF_RIGHTS: CapabilitySet =
    CapabilitySet::BPF.union(CapabilitySet::PERFMON).union(CapabilitySet::NET_ADMIN);

/// For what was not tried: only root may.
pub(super) fn as_root(machine: &Machine) -> Remedy {
    if machine.enclosed {
        Remedy::new(
            "Run it as root outside this user namespace (rootless containers create one): the \
             kernel allows nobody to do this here.",
        )
    } else if machine.root {
        Remedy::new(
            "Run it with all capabilities: on the host, or in a container that has them (e.g. \
                docker run --privileged).",
        )
    } else {
        Remedy::new("Run it as root.").command("sudo xcpnet doctor")
    }
}

/// For what is below /sys and not there under `ip netns exec`.
pub(super) fn outside() -> Remedy {
    Remedy::new(
        "Run xcpnet outside of it. Commands that are about this network namespace take --netns \
         NAME.",
    )
}

/// What was found where only root may try.
pub(super) fn not_tried(machine: &Machine) -> String {
    format!("not tried: {}", machine.user())
}

/// A newer kernel.
pub(super) fn newer_kernel(machine: &Machine) -> Remedy {
    if machine.release.to_lowercase().contains("microsoft") {
        return Remedy::new("Update the WSL kernel with this command in Windows.")
            .command("wsl --update");
    }
    let remedy = machine.distribution.newer_kernel(&machine.architecture);
    if machine.container {
        remedy.and("(In a container it is the host's kernel that counts.)")
    } else {
        remedy
    }
}

/// A newer kernel, or where it is new enough already, one with these options.
pub(super) fn newer_kernel_or(machine: &Machine, options: &[&str]) -> Remedy {
    if machine.is_recent() { option(machine, options, None) } else { newer_kernel(machine) }
}

/// A kernel with these options, the first of which is what the module gives.
pub(super) fn option(machine: &Machine, options: &[&str], module: Option<&str>) -> Remedy {
    let listed = options.join(", ");
    let text = match options.first().and_then(|first| machine.option(first)) {
        Some('n') => format!("This kernel was built without it: use one with {listed}."),
        Some('m') => format!("This kernel has it as a module that is not installed ({listed})."),
        _ => format!("It needs a kernel with {listed}."),
    };
    let mut remedy = Remedy::new(text);
    let Some(module) = module else { return remedy };
    if machine.replaced() {
        return remedy
            .and(
                "The modules of the running kernel are gone, but those of another one are \
                 installed: boot that kernel.",
            )
            .command("reboot");
    }
    if machine.module(module) == Some("a module that can be loaded") {
        return remedy
            .and("Its module is installed: load it, and find out why it was not loaded.")
            .command(format!("modprobe {module}"));
    }
    let package = machine.distribution.more_modules();
    if !package.is_empty() {
        remedy = remedy
            .and("The distribution may have it in a separate package.")
            .command(machine.distribution.install(package));
    }
    remedy
}

/// A try that failed: a refusal is no sign of anything where only root may, and otherwise the
/// kernel lacks it.
pub(super) fn failed(
    topic: &Topic,
    machine: &Machine,
    rights: CapabilitySet,
    error: &io::Error,
    remedy: Remedy,
) -> Check {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return topic.missing(format!("the kernel answers: {error}"), remedy);
    }
    if machine.may(rights) {
        topic.missing(format!("refused to {}: {error}", machine.user()), guarded())
    } else {
        topic.unknown(not_tried(machine), as_root(machine))
    }
}

/// The same of loading or attaching a BPF program.
pub(super) fn bpf_failed(
    topic: &Topic,
    machine: &Machine,
    error: &io::Error,
    remedy: Remedy,
) -> Check {
    if error.raw_os_error() == Some(libc::ENOSYS) {
        return topic.missing(
            "this kernel has no bpf(2) system call",
            Remedy::new(
                "First resolve the entry on \
            bpf(2).",
            ),
        );
    }
    failed(topic, machine, BPF_RIGHTS, error, remedy)
}

/// For programs that the kernel did not take: an old one is not meant to, a recent one is.
pub(super) fn not_taken(machine: &Machine) -> Remedy {
    if !machine.is_recent() {
        return newer_kernel(machine);
    }
    Remedy::new(
        "If everything above is present, it is a bug in xcpnet: please report it with the output \
         of this command.",
    )
    .command("XCPNET_LIBBPF=1 xcpnet doctor")
}

/// A failure with the kernel's reason.
pub(super) fn reasoned(what: &str, log: &str) -> String {
    match kernels_reason(log) {
        Some(reason) if !what.contains(reason) => format!("{what}: {reason}"),
        _ => what.to_owned(),
    }
}

/// For what is refused to root.
pub(super) fn guarded() -> Remedy {
    Remedy::new(
        "Something other than missing privileges forbids it: a container's seccomp filter, a \
         security module (SELinux, AppArmor), or the kernel's lockdown \
         (/sys/kernel/security/lockdown). Run it on the host, and look at the end of `dmesg`.",
    )
}

/// The message in which the kernel, or libbpf, says why a program was not taken: the last line of
/// the verifier's log before its statistics, or else libbpf's first complaint.
fn kernels_reason(log: &str) -> Option<&str> {
    if let Some((_, verifier)) = log.split_once("-- BEGIN PROG LOAD LOG --") {
        let verifier = verifier.split("-- END PROG LOAD LOG --").next().unwrap_or(verifier);
        let says = |line: &&str| !line.is_empty() && !line.starts_with("processed ");
        if let Some(line) = verifier.lines().map(str::trim).rev().find(says) {
            return Some(line);
        }
    }
    log.lines().map(|line| line.trim_start_matches("libbpf: ").trim()).find(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_verifiers_last_word_before_its_statistics() {
        let log = "libbpf: prog 'xcp_endpoint': BPF program load failed: Permission denied\n\
                   libbpf: prog 'xcp_endpoint': -- BEGIN PROG LOAD LOG --\n0: R1=ctx() \
            R10=fp0\nR2 !read_ok\n\
                   processed 3 insns (limit 1000000) max_states_per_insn 0\n-- END PROG LOAD LOG \
            --\n\
                   libbpf: failed to load object 'endpoint_bpf'\n";
        assert_eq!(kernels_reason(log), Some("R2 !read_ok"));
    }

    #[test]
    fn without_a_verifiers_log_libbpfs_first_complaint() {
        let log =
            "libbpf: failed to find valid kernel BTF\nlibbpf: Error loading vmlinux BTF: -3\n";
        assert_eq!(kernels_reason(log), Some("failed to find valid kernel BTF"));
        assert_eq!(
            kernels_reason("libbpf: p\n -- BEGIN PROG LOAD LOG --\n-- END PROG LOAD LOG --\n"),
            Some("p")
        );
        assert_eq!(kernels_reason(""), None);
    }

    #[test]
    fn an_old_kernel_is_replaced_and_not_reported() {
        for (release, recent) in
            [("6.1.0-28-amd64", false), ("6.12.0-1-amd64", true), ("7.3.4+deb13-cloud-amd64", true)]
        {
            let mut machine = Machine::look();
            machine.release = release.into();
            let remedy = not_taken(&machine);
            assert_eq!(remedy.text.contains("report"), recent, "{release}: {remedy:?}");
            assert_eq!(
                remedy.commands == ["XCPNET_LIBBPF=1 xcpnet doctor"],
                recent,
                "{release}: {remedy:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_log_is_too_strange(log in "(?s)(.|libbpf: |-- BEGIN PROG LOAD LOG --|-- END PROG \
            LOAD LOG --|\n){0,30}") {
            let _ = kernels_reason(&log);
        }
    }
}
