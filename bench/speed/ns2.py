"""The dumbbell of bench/scenarios/speed.toml under XCP, in ns-2 and here.

The two run in turn, so that a change of the machine's own speed meets both, and ratios are medians of neighbouring runs. Ours is timed from the start of
the process to its end; ns-2 without the building of its topology and with the fewest headers, under its default scheduler and under its fastest. The
faster of the two is what we are held against.
"""

import statistics

import peers
from speed.ours import median_range, once

FLOWS = [10, 100, 1000]
NEEDED_RATIO = 10.0
SCHEDULERS = ["Calendar", "Splay"]  # the default, and the fastest of the others here
NEEDED_PEAK_MB = 64  # ours, 1000 flows


def measure(ours, settings, report):
    report.section(
        "Beside ns-2: dumbbell 10G - 1G - 10G, 40 ms, XCP, 10 simulated seconds",
        f"Data packets per second of wall time, medians of {settings.runs}; ratios are medians of runs made in turn, against ns-2's faster scheduler.",
    )
    with_ns2 = peers.ns2_is_installed()
    report.line(f"{'flows':>5} {'xcpnet':>11} {'range':>23} {'peak':>8} {'util':>6} | " + " | ".join(f"{'ns-2 ' + s:>13} {'ratio':>6} {'peak':>8} {'util':>6}" for s in SCHEDULERS))
    for flows in FLOWS if not settings.quick else FLOWS[:2]:
        mine, theirs = [], {scheduler: [] for scheduler in SCHEDULERS}
        for _ in range(settings.runs):
            mine.append(one_of_ours(ours, flows))
            if with_ns2:
                for scheduler, samples in theirs.items():
                    samples.append(one_of_ns2(flows, scheduler))
        rate, between = median_range([sample[0] for sample in mine])
        line = f"{flows:5} {rate:>11} {between:>23} {columns(mine)}"
        ratios = {}
        if with_ns2:
            ratios = {s: statistics.median(a[0] / b[0] for a, b in zip(mine, samples)) for s, samples in theirs.items()}
            for scheduler, samples in theirs.items():
                line += f" | {median_range([s[0] for s in samples])[0]:>13} {ratios[scheduler]:6.2f} {columns(samples)}"
        report.line(line)
        if with_ns2:
            worst = min(ratios, key=ratios.get)
            report.judge(f"ns-2, XCP, {flows} flows", ratios[worst] >= NEEDED_RATIO, f"{ratios[worst]:.2f} times ns-2 with {worst}, at least {NEEDED_RATIO:g}")
        else:
            report.skip(f"ns-2, XCP, {flows} flows", "ns-2 is not installed (command `ns`, Debian package ns2)")
        if flows == 1000:
            peak = statistics.median(sample[1] for sample in mine)
            report.judge("memory of 1000 flows", peak <= NEEDED_PEAK_MB, f"{peak:.1f} MB, at most {NEEDED_PEAK_MB}")


def one_of_ours(ours, flows):
    """Data packets per second of wall time, peak memory in MB, utilisation."""
    run = once(ours, "speed.toml", flow__count=flows)
    return run.packets("bottleneck") / run.wall_s, run.peak_bytes / 1e6, run.summary["links"]["bottleneck"]["utilisation"]


def one_of_ns2(flows, scheduler):
    """The same of ns-2."""
    result, finished = peers.ns2("speed.tcl", flows=flows, scheduler=scheduler)
    return result["packets_per_s"], finished.peak_bytes / 1e6, result["utilisation"]


def columns(samples):
    return f"{statistics.median(s[1] for s in samples):5.1f} MB {statistics.median(s[2] for s in samples):6.4f}"
