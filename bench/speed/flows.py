"""Growth with the number of flows at equal load: bench/scenarios/growth-flows.toml.

Every number of flows shares the same link of 10 Gbit/s and 200 ms: 238,000 packets (data and
acknowledgements) are under way, the window that fills the path is shared out as initial windows,
and nobody loses a packet. So what differs is only how many flows those packets belong to. (On the
dumbbell of 1 Gbit/s and 40 ms 100,000 flows would have 1/20 of a packet each: such a run is made of
losses and timeouts, which is another load.)

Memory: peak resident sizes. What a flow takes is the slope from 10,000 to 100,000 flows, and
includes its line of the summary. What a packet under way takes is the slope over what the path
holds with 1000 flows, from 200 to 800 ms.
"""

import statistics
from typing import Any

import peers

from speed.ours import Run, Settings, median_range, once, start_up
from speed.report import Report

SCENARIO = "growth-flows.toml"
FLOWS = [10, 100, 1000, 10_000, 100_000]
RATE_BPS, PACKET_BITS, RTT_MS = 10e9, 1050 * 8, 200
HELD = RATE_BPS / PACKET_BITS * RTT_MS / 1000  # packets that fill the path
STRETCHED = (1, 4)  # times the round trip
NEEDED_SHARE = 0.5  # of the rate of 10 flows, up to 10,000
NEEDED_BYTES_PER_FLOW = 1000
NEEDED_BYTES_PER_PACKET = 64
BOOKS = 1.05  # what a store of packets may take to know where they are, and the last of its blocks


def measure(ours: peers.Ours, settings: Settings, report: Report) -> None:
    report.section(
        "Growth with flows: 10 Gbit/s, 200 ms, XCP, 3 simulated seconds, 238,000 packets under way"
        " whatever the number of flows",
        f"Medians of {settings.runs}, taken in turn; start-up and reporting subtracted and shown.",
    )
    runs: dict[int, list[Run]] = {flows: [] for flows in FLOWS}
    idle = {flows: start_up(ours, SCENARIO, flow__count=flows) for flows in FLOWS}
    for _ in range(settings.runs):
        for flows in FLOWS:
            runs[flows].append(
                once(
                    ours,
                    SCENARIO,
                    flow__count=flows,
                    flow__initial_window=max(2, round(HELD / flows)),
                )
            )
    report.line(
        f"{'flows':>7} {'packets/s':>11} {'range':>23} {'of 10':>6} {'start-up':>9} {'peak':>9}"
        f" {'util':>6} {'max queue':>9} {'drops':>6}"
    )
    rates = {}
    for flows, samples in runs.items():
        values = [run.packets("bottleneck") / (run.wall_s - idle[flows]) for run in samples]
        rates[flows] = statistics.median(values)
        link = samples[0].summary["links"]["bottleneck"]
        peak = statistics.median(run.peak_bytes for run in samples)
        rate, between = median_range(values)
        report.line(
            f"{flows:7} {rate:>11} {between:>23} {rates[flows] / rates[FLOWS[0]]:6.2f}"
            f" {idle[flows]:7.3f} s {peak / 1e6:6.1f} MB {link['utilisation']:6.4f}"
            f" {link['queue_max']:9} {link['drops']:6}"
        )
    share = min(rates[flows] for flows in FLOWS if flows <= 10_000) / rates[10]
    report.judge(
        "packets/s up to 10,000 flows",
        share >= NEEDED_SHARE,
        f"{share:.2f} of those of 10 flows, at least {NEEDED_SHARE:g}",
    )
    report.show(
        "packets/s of 100,000 flows", f"{rates[100_000] / rates[10]:.2f} of those of 10 flows"
    )
    memory(ours, report, runs)


def memory(ours: peers.Ours, report: Report, runs: dict[int, list[Run]]) -> None:
    few, many = 10_000, 100_000
    peak = {
        flows: statistics.median(run.peak_bytes for run in runs[flows]) for flows in (few, many)
    }
    per_flow = (peak[many] - peak[few]) / (many - few)
    table = peers.run(
        [
            ours.binary,
            "run",
            peers.SCENARIOS / SCENARIO,
            "--set",
            f"flow.count={many}",
            "--set",
            f"flow.initial-window={max(2, round(HELD / many))}",
        ]
    )
    report.line(f"{many:,} flows with the table instead of --json: {table.peak_bytes / 1e6:.1f} MB")
    report.judge(
        "memory of a flow",
        per_flow <= NEEDED_BYTES_PER_FLOW,
        f"{per_flow:.0f} bytes, at most {NEEDED_BYTES_PER_FLOW}",
    )

    under_way: list[float] = []
    peaks: list[int] = []
    for factor in STRETCHED:
        options: dict[str, Any] = {
            "link__bottleneck__delay": f"{RTT_MS * factor // 2 - 2}ms",
            "duration": f"{3 * factor}s",
            "flow__start_jitter": f"{RTT_MS * factor}ms",
        }
        run = once(
            ours,
            SCENARIO,
            flow__count=1000,
            flow__initial_window=round(HELD * factor / 1000),
            **options,
        )
        # The queue is longest a round trip after the starts, when the path is full.
        under_way.append(HELD * factor + run.summary["links"]["bottleneck"]["queue_max"])
        peaks.append(run.peak_bytes)
        report.line(
            f"1000 flows, {RTT_MS * factor} ms: at the most {under_way[-1]:,.0f} packets under way,"
            f" {peaks[-1] / 1e6:.1f} MB"
        )
    per_packet = (peaks[1] - peaks[0]) / (under_way[1] - under_way[0])
    report.judge(
        "memory of a packet under way",
        per_packet <= NEEDED_BYTES_PER_PACKET * BOOKS,
        f"{per_packet:.1f} bytes, at most {NEEDED_BYTES_PER_PACKET} and {BOOKS - 1:.0%} for their"
        " store",
    )
