"""The dumbbell of bench/scenarios/speed.toml under XCP, in ns-2 and here.

The two run in turn, so that a change of the machine's own speed meets both, and ratios are medians
of neighbouring runs. Neither is charged for setting up: ours is the time of the whole process less
that of one that simulates nothing, ns-2's is its own clock around the run. ns-2 has the fewest
headers and its default scheduler, which is what "tuned" means in what is asked of us; its fastest
scheduler stands beside it. Ours runs on one processor and on two: ns-2 can use one only.
"""

import os
import statistics

import peers

from speed.ours import Settings, median_range, once, start_up
from speed.report import Report

FLOWS = [10, 100, 1000]
NEEDED_RATIO = 10.0
SCHEDULERS = [
    "Calendar",
    "Splay",
]  # the default, which we are held against, and the fastest of the others here
THREADS = [1, 2]
NEEDED_PEAK_MB = 64  # ours, 1000 flows

# Data packets per second of wall time, peak memory in MB, utilisation.
Sample = tuple[float, float, float]


def measure(ours: peers.Ours, settings: Settings, report: Report) -> None:
    report.section(
        "Beside ns-2: dumbbell 10G - 1G - 10G, 40 ms, XCP, 10 simulated seconds",
        f"Data packets per second of wall time, medians of {settings.runs}; ratios are medians of"
        " runs made in turn.",
    )
    with_ns2 = peers.ns2_is_installed()
    threads = [n for n in THREADS if n <= (os.cpu_count() or 1)]
    report.line(
        f"{'flows':>5} {'simulator':>19} {'packets/s':>11} {'range':>23} {'peak':>8} {'util':>6}  "
        " times " + ", ".join(SCHEDULERS)
    )
    for flows in FLOWS if not settings.quick else FLOWS[:2]:
        idle = start_up(ours, "speed.toml", flow__count=flows)
        mine: dict[int, list[Sample]] = {n: [] for n in threads}
        theirs: dict[str, list[Sample]] = {s: [] for s in SCHEDULERS if with_ns2}
        for _ in range(settings.runs):
            for n, samples in mine.items():
                samples.append(one_of_ours(ours, flows, n, idle))
            for scheduler, samples in theirs.items():
                samples.append(one_of_ns2(flows, scheduler))
        for n, samples in mine.items():
            ratios = {
                s: statistics.median(a[0] / b[0] for a, b in zip(samples, their))
                for s, their in theirs.items()
            }
            processors = "1 processor" if n == 1 else f"{n} processors"
            report.line(
                row(flows, f"xcpnet, {processors}", samples)
                + "   "
                + ", ".join(f"{ratio:.2f}" for ratio in ratios.values())
            )
            what = f"ns-2, XCP, {flows} flows, {processors}"
            if with_ns2:
                ratio = ratios[SCHEDULERS[0]]
                report.judge(
                    what,
                    ratio >= NEEDED_RATIO,
                    f"{ratio:.2f} times tuned ns-2 ({ratios[SCHEDULERS[1]]:.2f} with"
                    f" {SCHEDULERS[1]}), at least {NEEDED_RATIO:g}",
                )
            else:
                report.skip(what, "ns-2 is not installed (command `ns`, Debian package ns2)")
        for scheduler, samples in theirs.items():
            report.line(row(flows, f"ns-2 {scheduler}", samples))
        if flows == 1000:
            peak = statistics.median(sample[1] for sample in mine[1])
            report.judge(
                "memory of 1000 flows",
                peak <= NEEDED_PEAK_MB,
                f"{peak:.1f} MB, at most {NEEDED_PEAK_MB}",
            )


def one_of_ours(ours: peers.Ours, flows: int, threads: int, idle: float) -> Sample:
    """One run of ours."""
    run = once(ours, "speed.toml", threads=threads, flow__count=flows)
    return (
        run.packets("bottleneck") / (run.wall_s - idle),
        run.peak_bytes / 1e6,
        run.summary["links"]["bottleneck"]["utilisation"],
    )


def one_of_ns2(flows: int, scheduler: str) -> Sample:
    """One run of ns-2's."""
    result, finished = peers.ns2("speed.tcl", flows=flows, scheduler=scheduler)
    return result["packets_per_s"], finished.peak_bytes / 1e6, result["utilisation"]


def row(flows: int, simulator: str, samples: list[Sample]) -> str:
    rate, between = median_range([sample[0] for sample in samples])
    return (
        f"{flows:5} {simulator:>19} {rate:>11} {between:>23}"
        f" {statistics.median(s[1] for s in samples):5.1f} MB"
        f" {statistics.median(s[2] for s in samples):6.4f}"
    )
