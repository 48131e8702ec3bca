//! Whether a run can be believed: the one place that says how far sampling may fall behind, how
//! busy the machine. How late a line may be, a line knows itself.

use std::fs;

use xcp_model::units::Nanos;

use crate::line::Report;

/// Looks at the queues later than this on the whole miss what happens in them.
const SAMPLING_LATE_SHARE: f64 = 0.05;
/// What counts as late, for a look that is due every millisecond.
pub(crate) const SAMPLING_LATE: Nanos = 5_000_000;
/// Samples that are taken later than this show what happened in another interval.
const RECORDING_LATE: Nanos = 20_000_000;
/// A machine whose processors are idle for less than this share of the time may have kept something
/// waiting.
const IDLE_SHARE: f64 = 0.02;

/// How the sampling did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sampling {
    pub looks: u64,
    pub late: u64,
    pub latest: Nanos,
}

/// Processor time since the machine started, in the kernel's ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Processors {
    idle: u64,
    all: u64,
}

impl Processors {
    /// Now; `None` where the kernel does not tell.
    pub fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
    fn parse(stat: &str) -> Option<Self> {
        let ticks: Vec<u64> = stat
            .lines()
            .next()?
            .strip_prefix("cpu ")?
            .split_whitespace()
            .take(8)
            .map_while(|n| n.parse().ok())
            .collect();
        Some(Self { idle: ticks.get(3)? + ticks.get(4)?, all: ticks.iter().sum() })
    }

    /// Share of the time since then in which processors were idle.
    fn idle_since(self, before: Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|&ticks| ticks > 0)?;
        Some(self.idle.saturating_sub(before.idle) as f64 / all as f64)
    }
}

/// What speaks against a run.
pub(crate) fn doubts(
    lines: &[(String, Report)],
    sampling: Sampling,
    behind: Nanos,
    processors: Option<(Processors, Processors)>,
) -> Vec<String> {
    let ms = |ns: Nanos| format!("{} ms", (ns as f64 / 1e5).round() / 10.0);
    let mut doubts = Vec::new();
    for (name, report) in lines {
        doubts.extend(
            report.faults().iter().map(|fault| {
                format!("delay line \"{name}\": {fault}: this run is not to be trusted")
            }),
        );
    }
    if sampling.late as f64 > SAMPLING_LATE_SHARE * sampling.looks as f64 {
        doubts.push(format!(
            "{} % of the looks at the queues were late, by up to {}: their means and maxima are \
                not to be trusted",
            (sampling.late as f64 * 100.0 / sampling.looks as f64).round(),
            ms(sampling.latest)
        ));
    }
    if behind > RECORDING_LATE {
        doubts.push(format!(
            "samples were up to {} late: times in the series are uncertain by as much",
            ms(behind)
        ));
    }
    if let Some(idle) = processors
        .and_then(|(before, after)| after.idle_since(before))
        .filter(|&idle| idle < IDLE_SHARE)
    {
        doubts.push(format!(
            "the machine's processors were busy {} % of the time: limits attributed to the \
             network or TCP may be due to the machine",
            ((1.0 - idle) * 100.0).floor()
        ));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn line(late: Nanos, ring_drops: u64) -> (String, Report) {
        let mut report = Report::default();
        report.lateness.record(late);
        report.trouble.ring_drops = ring_drops;
        ("bottleneck".into(), report)
    }

    #[test]
    fn a_good_run_has_no_doubts() {
        let processors = Processors { idle: 100, all: 200 };
        let after = Processors { idle: 110, all: 300 };
        let sampling = Sampling { looks: 1000, late: 10, latest: 30 * MS };
        assert_eq!(
            doubts(&[line(MS / 2, 0)], sampling, 5 * MS, Some((processors, after))),
            Vec::<String>::new()
        );
        assert_eq!(doubts(&[], Sampling::default(), 0, None), Vec::<String>::new());
    }

    #[test]
    fn a_bad_run_is_known_for_one() {
        let sampling = Sampling { looks: 1000, late: 200, latest: 30 * MS };
        let processors = [Processors { idle: 100, all: 200 }, Processors { idle: 101, all: 1200 }];
        insta::assert_snapshot!(
            doubts(
                &[line(3 * MS, 0), line(0, 7)],
                sampling,
                30 * MS,
                Some((processors[0], processors[1]))
            )
            .join("\n")
        );
    }

    #[test]
    fn processor_time_is_read() {
        let parsed = Processors::parse("cpu  10 1 5 100 4 1 2 3 9 9\ncpu0 1\n").unwrap();
        assert_eq!((parsed.idle, parsed.all), (104, 126));
        assert!(Processors::parse("intr 5").is_none());
        assert!(Processors::now().is_some());
    }
}
