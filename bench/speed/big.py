"""Runs that others could not make: wall seconds of the whole process, and what was simulated in
them. Seconds, not minutes.
"""

import statistics
from typing import Any

from peers import Ours

from speed.ours import Settings, once
from speed.report import Report

# name, scenario, settings
RUNS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "iXCP's Fig. 2: 1024 long flows and a short, 1000 s",
        "b-two-bottlenecks.toml",
        {"variant": "4", "flow__long__count": 1024, "duration": "1000s", "measure__to": "1000s"},
    ),
    ("XCP-IR's web workload, 100,000 short flows, 50 s", "web.toml", {}),
    (
        "100,000 long flows on 10 Gbit/s, 10 s",
        "growth-flows.toml",
        {"flow__count": 100_000, "flow__initial_window": 2, "duration": "10s"},
    ),
    (
        "100,000 long flows on 100 Gbit/s, 1 s",
        "growth-flows.toml",
        {
            "flow__count": 100_000,
            "flow__initial_window": 2,
            "duration": "1s",
            "link__rate": "400gbit",
            "link__bottleneck__rate": "100gbit",
            "link__bottleneck__delay": "18ms",
            "flow__start_jitter": "40ms",
        },
    ),
]
AT_MOST_S = 60


def measure(ours: Ours, settings: Settings, report: Report) -> None:
    runs = 1 if settings.quick else settings.runs
    report.section("Big runs: wall seconds of the whole process", f"Medians of {runs}.")
    for name, scenario, options in RUNS:
        samples = [once(ours, scenario, **options) for _ in range(runs)]
        wall = statistics.median(run.wall_s for run in samples)
        run = samples[0]
        drops = sum(link["drops"] for link in run.summary["links"].values())
        used = ", ".join(
            f"{link['utilisation']:.3f}"
            for name, link in run.summary["links"].items()
            if "." not in name
        )
        report.line(
            f"{name}: utilisation {used}; {drops} drops; {run.packet_hops():,} packet-hops,"
            f" {wall / run.packet_hops() * 1e9:.0f} ns each; peak {run.peak_bytes / 1e6:.0f} MB"
        )
        report.judge(name, wall < AT_MOST_S, f"{wall:.1f} s")
