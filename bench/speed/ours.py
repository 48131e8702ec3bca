"""Times xcpnet: whole processes, less what starting, reading the scenario and reporting cost where
only the simulation counts.
"""

import statistics
from dataclasses import dataclass


@dataclass
class Run:
    """One run of one scenario."""

    summary: dict
    wall_s: float
    peak_bytes: int

    def packets(self, link):
        """Packets that a link direction sent."""
        return self.summary["links"][link]["packets"]

    def packet_hops(self):
        """Packets sent, summed over all link directions."""
        return sum(link["packets"] for link in self.summary["links"].values())


def once(ours, scenario, threads=1, **settings):
    """One run. Settings are paths, `flow__start_jitter` for `flow.start-jitter`; `variant` chooses
    one.
    """
    more = ["--threads", threads]
    for name, value in settings.items():
        path = name.replace("__", ".").replace("_", "-")
        more += ["--variant", value] if name == "variant" else ["--set", f"{path}={value}"]
    summaries, finished = ours.summaries(scenario, more=more)
    (summary,) = summaries.values()
    return Run(summary, finished.wall_s, finished.peak_bytes)


def start_up(ours, scenario, runs=3, **settings):
    """Wall seconds of the same scenario with nothing simulated: process, scenario, memory set out
    for the flows, summary.
    """
    return statistics.median(
        once(ours, scenario, **{**settings, "duration": "1us"}).wall_s for _ in range(runs)
    )


def median_range(values, form="{:,.0f}"):
    """Median, and the least and greatest."""
    return (
        form.format(statistics.median(values)),
        f"{form.format(min(values))}-{form.format(max(values))}",
    )
