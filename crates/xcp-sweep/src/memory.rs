//! How much memory a run may take: what the kernel says is available, or less where a control group
//! allows less.

use std::fs;

/// Bytes, or `None` where the system does not tell.
pub fn available() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let of_machine = field(&meminfo, "MemAvailable:")?;
    Some(of_group().map_or(of_machine, |bytes| bytes.min(of_machine)))
}

/// A line of /proc/meminfo, in bytes.
fn field(meminfo: &str, name: &str) -> Option<u64> {
    let kib: u64 = meminfo
        .lines()
        .find_map(|line| line.strip_prefix(name))?
        .trim()
        .strip_suffix(" kB")?
        .parse()
        .ok()?;
    Some(kib * 1024)
}

/// What a container's limit leaves (cgroup 2; the file says `max` where there is no limit).
fn of_group() -> Option<u64> {
    let read = |name: &str| {
        fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?.trim().parse::<u64>().ok()
    };
    Some(read("memory.max")?.saturating_sub(read("memory.current")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_in_kibibytes() {
        let text = "MemTotal:       16384 kB\nMemAvailable:    1024 kB\n";
        assert_eq!(field(text, "MemAvailable:"), Some(1 << 20));
        assert_eq!(field(text, "SwapFree:"), None);
    }
}
