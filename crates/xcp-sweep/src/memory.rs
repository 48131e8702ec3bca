//! How much memory a run may take: what the kernel says is available, or less where a control group
//! allows less; and how many may be made at a time.

use std::fs;

use xcp_scenario::{Loaded, ScenarioError, check};

/// Bytes, or `None` where the system does not tell.
pub fn available() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let of_machine = field(&meminfo, "MemAvailable:")?;
    Some(of_group().map_or(of_machine, |bytes| bytes.min(of_machine)))
}

/// Refuses scenarios of which one alone does not fit into memory. Returns how many may run at a
/// time, at most `jobs`, so that they fit together, whichever they are.
///
/// # Errors
/// What of a scenario takes too much.
pub fn fitting<'a>(
    loaded: impl IntoIterator<Item = &'a Loaded>,
    jobs: usize,
) -> Result<usize, ScenarioError> {
    let Some(available) = available() else { return Ok(jobs.max(1)) };
    let needs = loaded
        .into_iter()
        .map(|one| check(&one.scenario, &one.origins, available).map(|footprint| footprint.bytes));
    Ok(together(needs.collect::<Result<_, _>>()?, available).min(jobs).max(1))
}

/// How many of these fit together, whichever they are: as many as of the largest do.
fn together(mut needs: Vec<u128>, available: u64) -> usize {
    needs.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum = 0;
    let fit = needs.iter().take_while(|&&bytes| {
        sum += bytes;
        sum <= u128::from(available)
    });
    fit.count()
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
    fn as_many_at_a_time_as_fit_whichever_they_are() {
        let needs = vec![1, 5, 3, 4];
        for (available, fit) in [(4, 0), (5, 1), (9, 2), (11, 2), (12, 3), (13, 4), (99, 4)] {
            assert_eq!(together(needs.clone(), available), fit, "{available} bytes");
        }
    }

    #[test]
    fn meminfo_is_in_kibibytes() {
        let text = "MemTotal:       16384 kB\nMemAvailable:    1024 kB\n";
        assert_eq!(field(text, "MemAvailable:"), Some(1 << 20));
        assert_eq!(field(text, "SwapFree:"), None);
    }
}
