"""Times xcpnet: whole processes, less what starting, reading the scenario and reporting cost where
only the simulation counts.
"""

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers import Ours, Summary


class Settings(argparse.Namespace):
    """What bench/run was told."""

    rows: list[str]
    xcpnet: str
    runs: int
    quick: bool


@dataclass
class Run:
    """One run of one scenario."""

    summary: Summary
    wall_s: float
    peak_bytes: int

    def packets(self, link: str) -> int:
        """Packets that a link direction sent."""
        packets: int = self.summary["links"][link]["packets"]
        return packets

    def packet_hops(self) -> int:
        """Packets sent, summed over all link directions."""
        return sum(link["packets"] for link in self.summary["links"].values())


def once(ours: Ours, scenario: str | Path, threads: int = 1, **settings: Any) -> Run:
    """One run. Settings are paths, `flow__start_jitter` for `flow.start-jitter`; `variant` chooses
    one.
    """
    more: list[object] = ["--threads", threads]
    for name, value in settings.items():
        path = name.replace("__", ".").replace("_", "-")
        more += ["--variant", value] if name == "variant" else ["--set", f"{path}={value}"]
    summaries, finished = ours.summaries(scenario, more=more)
    (summary,) = summaries.values()
    return Run(summary, finished.wall_s, finished.peak_bytes)


def start_up(ours: Ours, scenario: str | Path, runs: int = 3, **settings: Any) -> float:
    """Wall seconds of the same scenario with nothing simulated: process, scenario, memory set out
    for the flows, summary.
    """
    return statistics.median(
        once(ours, scenario, **{**settings, "duration": "1us"}).wall_s for _ in range(runs)
    )


def median_range(values: Sequence[float], form: str = "{:,.0f}") -> tuple[str, str]:
    """Median, and the least and greatest."""
    return (
        form.format(statistics.median(values)),
        f"{form.format(min(values))}-{form.format(max(values))}",
    )
