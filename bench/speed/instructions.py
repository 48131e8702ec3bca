"""Instructions per data packet and per packet-hop of a few short runs, beside
bench/instructions.txt.

The counts of half a simulated second are subtracted from those of a whole one: what is left is the
second half, without start-up and slow start. Unlike time they do not depend on what else the
machine does, so 3 % more is a change of the program. They do not see cache misses.
"""

import json
import tempfile
from pathlib import Path

import graphs
import peers

from speed import callgrind
from speed.report import Report

BASELINE = peers.HERE / "instructions.txt"
ALLOWED = 1.03
FROM_S, TO_S = 0.5, 1.0
# Instructions per data packet, and per packet-hop, by name.
Figures = dict[str, tuple[float, float]]
# name -> scenario, variant, settings, link whose packets are the data packets
RUNS: dict[str, tuple[str, str | None, dict[str, str], str]] = {
    "xcp-100-flows": ("speed.toml", None, {}, "bottleneck"),
    "xcp-100-flows-paced-delayed-acks": (
        "speed.toml",
        None,
        {"flow.paced": "true", "flow.delayed-ack": "true"},
        "bottleneck",
    ),
    # The law and the sender that remember, on the same network; the sender is always paced.
    "robust-100-flows": (
        "speed.toml",
        None,
        {
            "flow.congestion": "xcp-robust",
            "queue.preset": "robust",
            "flow.paced": "true",
            "flow.delayed-ack": "true",
        },
        "bottleneck",
    ),
    "newreno-100-flows": ("speed-tcp.toml", "newreno", {}, "bottleneck"),
    "cubic-100-flows": ("speed-tcp.toml", "cubic", {}, "bottleneck"),
    "chain-of-16": ("chain", None, {"link.rate": "100mbit", "link.delay": "2ms"}, "n0-n1"),
}


def measure(ours: object, settings: object, report: Report) -> None:
    report.section(
        f"Instructions, counted by callgrind on a build for {callgrind.CPU}, {FROM_S} to {TO_S} s"
        " of the run"
    )
    why = callgrind.missing()
    if why:
        report.skip("instructions", why)
        return
    counted = count_all()
    baseline, compilers = read_baseline()
    comparable = compilers == callgrind.compilers()
    report.line(
        f"{'run':34} {'per data packet':>15} {'baseline':>9} {'per packet-hop':>14} {'baseline':>9}"
    )
    for name, (packet, hop) in counted.items():
        then = baseline.get(name)
        report.line(
            f"{name:34} {packet:15.0f} {then[0] if then else 0:9.0f} {hop:14.1f}"
            f" {then[1] if then else 0:9.1f}"
        )
    for name, (packet, _) in counted.items():
        figure = f"{packet:.0f} per data packet"
        if name not in baseline:
            report.skip(
                f"instructions, {name}",
                f"{figure}; not in {BASELINE.name}: `bench/instructions --update`",
            )
        elif not comparable:
            report.skip(
                f"instructions, {name}",
                f"{figure}; the baseline is {compilers}'s, this is {callgrind.compilers()}:"
                " `bench/instructions --update`",
            )
        else:
            ratio = packet / baseline[name][0]
            report.judge(
                f"instructions, {name}",
                ratio <= ALLOWED,
                f"{figure}, {ratio:.3f} of the baseline, at most {ALLOWED:g}",
            )


def count_all() -> Figures:
    """(instructions per data packet, per packet-hop) by name."""
    binary = callgrind.build()
    with tempfile.TemporaryDirectory(prefix="xcpnet-bench-") as directory:
        chain = Path(directory) / "chain.toml"
        chain.write_text(graphs.chain(16).text())
        jobs = [
            lambda name=name, until=until: one(binary, chain, name, until)
            for name in RUNS
            for until in (FROM_S, TO_S)
        ]
        results = iter(peers.together(jobs))
    counted: Figures = {}
    for name, first, second in zip(RUNS, results, results):
        instructions, packets, hops = (b - a for a, b in zip(first, second))
        counted[name] = instructions / packets, instructions / hops
    return counted


def one(binary: Path, chain: Path, name: str, until: float) -> tuple[int, int, int]:
    """Instructions, data packets, packet-hops of a run until then."""
    scenario, variant, settings, link = RUNS[name]
    path = chain if scenario == "chain" else peers.SCENARIOS / scenario
    arguments: list[object] = [path, "--json", "--jobs", "1", "--set", f"duration={until}s"]
    for key, value in settings.items():
        arguments += ["--set", f"{key}={value}"]
    if variant:
        arguments += ["--variant", variant]
    printed, profile = callgrind.count(binary, arguments)
    links = json.loads(printed)["links"]
    return (
        callgrind.total(profile),
        links[link]["packets"],
        sum(link["packets"] for link in links.values()),
    )


def read_baseline() -> tuple[Figures, str]:
    """Figures by name, and the compilers they were counted with."""
    baseline: Figures = {}
    compilers = ""
    if not BASELINE.exists():
        return baseline, compilers
    for line in BASELINE.read_text().splitlines():
        if line.startswith("# compilers: "):
            compilers = line.removeprefix("# compilers: ")
        elif line and not line.startswith("#"):
            name, packet, hop = line.split()
            baseline[name] = float(packet), float(hop)
    return baseline, compilers


def write_baseline(counted: Figures) -> None:
    lines = [
        (
            "# Instructions per data packet and per packet-hop: the baseline of `make"
            " bench-instructions`, which fails when the first is 3 % above."
        ),
        (
            f"# Counted by callgrind on a build for {callgrind.CPU}; rewritten by"
            " `bench/instructions --update`."
        ),
        f"# compilers: {callgrind.compilers()}",
        *(f"{name:34} {packet:8.1f} {hop:8.1f}" for name, (packet, hop) in counted.items()),
    ]
    BASELINE.write_text("\n".join(lines) + "\n")
