//! What tells a process from all others, and whether it is still there.

use std::fs;

/// When a process was started, in the kernel's ticks since boot: with the number, what tells it
/// from all others. `None` if it is no more.
///
/// One that is ending (PF_EXITING) is still there: it has its sockets, ports and packet-filter
/// tables until it has let go of all of them, and only then is a zombie or dead. Whoever takes it
/// for gone before that finds them in use.
#[must_use]
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; the state is the next field, the start the 20th.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(fields.first(), Some(&"Z" | &"X")) {
        return None;
    }
    fields.get(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_process_is_known_until_it_has_ended() {
        let own = std::process::id();
        let start = start_time(own).unwrap();
        assert!(start > 0 && start_time(own) == Some(start));
        assert_eq!(start_time(u32::MAX), None);
        // Nobody asks how it ended before the end of the test.
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(start_time(child.id()).is_some_and(|its| its >= start));
        child.kill().unwrap();
        while start_time(child.id()).is_some() {
            sleep(Duration::from_millis(1));
        }
        child.wait().unwrap();
    }
}
