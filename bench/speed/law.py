"""The control law alone, and the floor: what moving packets and events through the dumbbell costs
when nothing is done with them.
"""

import subprocess

import peers

from speed.report import Report

BENCHES = [("the law", "xcp-engine", "law_cost"), ("the floor", "xcp-sim", "floor")]


def measure(ours: object, settings: object, report: Report) -> None:
    report.section("The law alone, and the floor: `cargo bench`")
    for name, package, bench in BENCHES:
        command = ["cargo", "bench", "--locked", "--quiet", "--package", package, "--bench", bench]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=peers.HERE.parent
        )
        if done.returncode != 0:
            report.skip(name, f"`{' '.join(command)}` failed: {done.stderr.strip()[-300:]}")
            continue
        for line in done.stdout.splitlines():
            if line.strip():
                report.line(line)
