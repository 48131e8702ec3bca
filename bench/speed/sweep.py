"""Many runs at once, `xcpnet sweep`: how near the cores come to sharing the work evenly.

The same sweep with one job and with one a core; efficiency is the one's wall time over cores times
the other's. A shared machine whose second core is somebody else's gives a bad figure, so the best
of the rounds counts.
"""

import os
import subprocess
import tempfile
from pathlib import Path

import peers

from speed.ours import Settings
from speed.report import Report

NEEDED = 0.95
SEEDS = 16


def measure(ours: peers.Ours, settings: Settings, report: Report) -> None:
    report.section(
        f"Sweeps: bench/scenarios/speed.toml over two numbers of flows and {SEEDS} seeds, one job"
        " and one a core"
    )
    cores = len(os.sched_getaffinity(0))
    what = f"sweep on {cores} cores"
    if (
        subprocess.run(
            [ours.binary, "sweep", "--help"], capture_output=True, check=False
        ).returncode
        != 0
    ):
        report.skip(what, "this xcpnet has no command `sweep`")
        return
    if cores == 1:
        report.skip(what, "there is one core only")
        return
    best = 0.0
    for _ in range(min(settings.runs, 3)):
        alone, together = sweep(ours, 1), sweep(ours, cores)
        best = max(best, alone / (cores * together))
        report.line(
            f"1 job {alone:.2f} s, {cores} jobs {together:.2f} s: {alone / (cores * together):.3f}"
            " of linear"
        )
    report.judge(what, best >= NEEDED, f"{best:.3f} of linear, at least {NEEDED:g}")


def sweep(ours: peers.Ours, jobs: int) -> float:
    with tempfile.TemporaryDirectory(prefix="xcpnet-bench-") as directory:
        command = [
            ours.binary,
            "sweep",
            peers.SCENARIOS / "speed.toml",
            "--set",
            "duration=5s",
            "--set",
            "flow.count=50,100",
            "--seeds",
            f"1..{SEEDS}",
        ]
        return peers.run([*command, "--out", Path(directory) / "out", "--jobs", jobs]).wall_s
