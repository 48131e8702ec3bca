"""The dumbbell of bench/scenarios/speed-tcp.toml under NewReno and CUBIC, in ns-3 and here.

Both simulate the same seconds, so that both have slow start, its losses and what follows in the
same proportion. ns-3 is timed over Simulator::Run alone; ours likewise without start-up and
reporting, which are measured beside and subtracted. Utilisation and drops are printed so that one
can see that both do the same work.
"""

import statistics
from pathlib import Path
from typing import Any

import peers

from speed.ours import Settings, median_range, once, start_up
from speed.report import Report

FLOWS = [10, 100, 1000]
CONGESTION = {"newreno": "TcpNewReno", "cubic": "TcpCubic"}
SCHEDULERS = [
    "Map",
    "Heap",
    "Calendar",
    "PriorityQueue",
]  # List is an ordered list, slower by far with many events
NEEDED_RATIO = 200.0
SIMULATED_S = 1.5


def measure(ours: peers.Ours, settings: Settings, report: Report) -> None:
    report.section(
        "Beside ns-3: the same dumbbell with drop-tail queues of 10,000 packets, TCP with SACK,"
        f" {SIMULATED_S} simulated seconds",
        "Data packets delivered per second of wall time of the simulation alone, medians of"
        f" {settings.runs}; ratios are medians of runs made in turn.",
    )
    program, missing = peers.ns3_program()
    scheduler = None
    if program is None:
        report.line(f"ns-3 SKIPPED: {missing}")
    else:
        rates = {
            name: peers.ns3(program, scheduler=name, duration=0.5)[0]["packets_per_s"]
            for name in SCHEDULERS
        }
        scheduler = max(rates, key=rates.__getitem__)
        report.line(
            "ns-3's schedulers, 100 flows, half a second: "
            + ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())
            + f"; taken: {scheduler}"
        )
    report.line(
        f"{'':8} {'flows':>5} {'xcpnet':>11} {'range':>23} {'util':>6} {'drops':>7} | {'ns-3':>8}"
        f" {'range':>15} {'util':>6} {'drops':>7} | {'ratio':>6}"
    )
    for name, type_id in CONGESTION.items():
        for flows in FLOWS if not settings.quick else FLOWS[1:2]:
            row(
                ours,
                settings,
                report,
                name,
                flows,
                program,
                {"congestion": type_id, "flows": flows, "scheduler": scheduler},
            )


def row(
    ours: peers.Ours,
    settings: Settings,
    report: Report,
    name: str,
    flows: int,
    program: Path | None,
    options: dict[str, object],
) -> None:
    ours_settings: dict[str, Any] = {
        "variant": name,
        "flow__count": flows,
        "duration": f"{SIMULATED_S}s",
    }
    idle = start_up(ours, "speed-tcp.toml", **ours_settings)
    mine: list[float] = []
    theirs: list[dict[str, Any]] = []
    for _ in range(settings.runs):
        # A run of ours is a matter of hundredths of a second: several beside each of theirs.
        runs = [once(ours, "speed-tcp.toml", **ours_settings) for _ in range(5)]
        mine.append(runs[0].packets("D-T") / (statistics.median(run.wall_s for run in runs) - idle))
        if program is not None:
            theirs.append(peers.ns3(program, duration=SIMULATED_S, **options)[0])
    link = runs[0].summary["links"]["bottleneck"]
    rate, between = median_range(mine)
    line = (
        f"{name:8} {flows:5} {rate:>11} {between:>23} {link['utilisation']:6.4f} {link['drops']:7}"
    )
    what = f"ns-3, {name}, {flows} flows"
    if program is None:
        report.line(line)
        report.skip(what, "ns-3 is not installed (Debian package libns3-dev)")
        return
    their_rates = [result["packets_per_s"] for result in theirs]
    ratio = statistics.median(a / b for a, b in zip(mine, their_rates))
    rate, between = median_range(their_rates)
    report.line(
        f"{line} | {rate:>8} {between:>15} {theirs[0]['utilisation']:6.4f} {theirs[0]['drops']:7} |"
        f" {ratio:6.0f}"
    )
    report.judge(what, ratio >= NEEDED_RATIO, f"{ratio:.0f} times ns-3, at least {NEEDED_RATIO:g}")
