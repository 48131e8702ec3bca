//! A line that has been stopped leaves no descriptor, no thread, no mapping and no namespace. Alone
//! in its process, where these can be counted.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use xcp_lab::line::{Line, LineConfig, monotonic_now};

mod bed;
use bed::Bed;

fn count(directory: &str) -> usize {
    std::fs::read_dir(directory).expect("proc").count()
}

fn mappings() -> usize {
    // The allocator's own come and go.
    std::fs::read_to_string("/proc/self/maps")
        .expect("proc")
        .lines()
        .filter(|line| line.contains("socket:"))
        .count()
}

#[test]
fn nothing_is_left() {
    let Some(bed) = Bed::new(1500) else { return };
    let config = LineConfig {
        delays: 10_000_000.into(),
        losses: Vec::new(),
        losses_elsewhere: false,
        blackouts: Vec::new(),
        reorder: None,
        queue: None,
        seed: 1,
        index: 0,
        zero: monotonic_now(),
        mtu: 1500,
        input_rate_bps: 10_000_000,
    };
    let start = |to: &str| Line::start(&config, Some(bed.wire.as_fd()), &bed.device_left, to);
    let before = (count("/proc/self/fd"), count("/proc/self/task"));
    for round in 0..20 {
        let line = start(&bed.device_right).expect("a line");
        assert_eq!(mappings(), 1, "the ring");
        assert!(start("nosuch0").is_err());
        if round % 2 == 0 {
            drop(line)
        } else {
            assert_eq!(line.stop().trouble.ended, None)
        }
        // A joined thread has told so before the kernel takes its name out of /proc: so those of
        // the bed may still be in what was counted before, and those of the line in what is now.
        // Twenty rounds would leave more than the bed had.
        let left = || {
            let (files, threads, rings) =
                (count("/proc/self/fd"), count("/proc/self/task"), mappings());
            (files != before.0, threads > before.1, rings)
        };
        let patience = Instant::now() + Duration::from_secs(5);
        while left() != (false, false, 0) && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(
            left(),
            (false, false, 0),
            "more files, more threads, rings left in round {round}"
        );
    }
}
