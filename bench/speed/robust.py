"""What the law `robust` costs, in routers and senders, beside `xcp` on the same networks: the
dumbbell of the other rows, where a part of a control interval has hundreds of packets, and the
table of failures, where it has forty.

A robust sender is always paced, so XCP's are, too. On the dumbbell both send as many packets; in a
row of the table they need not, so there it is the time of a packet-hop that is compared, of whole
processes, which favours whoever does more.
"""

import statistics
from pathlib import Path
from typing import Any

import peers

from speed.instructions import RUNS
from speed.ours import Settings, median_range, once
from speed.report import Report

DUMBBELL = {"xcp": "xcp-100-flows-paced-delayed-acks", "robust": "robust-100-flows"}
ALLOWED = 1.25
SECONDS = 10
TABLE = peers.HERE.parent / "experiments" / "failures"


def measure(ours: peers.Ours, settings: Settings, report: Report) -> None:
    report.section(
        f"The law robust beside xcp: the dumbbell with 100 flows, {SECONDS} simulated seconds",
        f"Medians of {settings.runs}, taken in turn; the ratio is that of neighbours.",
    )
    times: dict[str, list[float]] = {law: [] for law in DUMBBELL}
    for _ in range(settings.runs):
        for law, name in DUMBBELL.items():
            scenario, _, options, link = RUNS[name]
            settled: dict[str, Any] = {
                path.replace(".", "__").replace("-", "_"): value for path, value in options.items()
            }
            run = once(ours, peers.SCENARIOS / scenario, duration=f"{SECONDS}s", **settled)
            times[law].append(run.wall_s / run.packets(link))
    for law, values in times.items():
        nanos, between = median_range([1e9 * value for value in values])
        report.line(f"{law:10} {nanos:>5} ns a data packet ({between})")
    ratio = statistics.median(b / a for a, b in zip(times["xcp"], times["robust"], strict=True))
    report.judge(
        "robust beside xcp, the dumbbell",
        ratio <= ALLOWED,
        f"{ratio:.2f} times the time of a data packet, at most {ALLOWED:g}",
    )
    rows = sorted(TABLE.glob("*.toml"))
    ratios = {row.stem: in_row(ours, row, settings.runs) for row in rows}
    for row, ratio in ratios.items():
        report.line(f"{row:32} {ratio:5.2f} times the time of a packet-hop")
    report.show(
        "robust beside xcp, the rows of the table of failures",
        f"{statistics.median(ratios.values()):.2f} times the time of a packet-hop in the median"
        f" row, {min(ratios.values()):.2f} to {max(ratios.values()):.2f}",
    )


def in_row(ours: peers.Ours, row: Path, runs: int) -> float:
    """How many times as long a packet-hop takes in this row."""
    ratios = []
    for _ in range(runs):
        xcp = once(ours, row, variant="xcp", flow__paced="true")
        robust = once(ours, row, variant="robust")
        ratios.append(robust.wall_s / robust.packet_hops() / (xcp.wall_s / xcp.packet_hops()))
    return statistics.median(ratios)
