"""Runs xcpnet and ns-2 for bench/reference and bench/run: processes, their cost, their output. Python's standard library only."""

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCENARIOS = HERE / "scenarios"
NS2 = HERE / "ns2"


@dataclass
class Finished:
    """What a process printed and what it cost."""

    stdout: str
    wall_s: float
    user_s: float
    peak_bytes: int


def run(command):
    """Runs a command to its end. Its own children's memory is not counted, and neither program here has any. Fails loudly."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        begin = time.perf_counter()
        process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))}\nended with status {process.returncode}:\n{err.read().strip()}")
        return Finished(out.read(), wall, usage.ru_utime, usage.ru_maxrss * 1024)


def together(jobs):
    """Results of functions without arguments, run as many at a time as there are cores, in order."""
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        return [future.result() for future in [pool.submit(job) for job in jobs]]


class Ours:
    """The xcpnet binary."""

    def __init__(self, binary):
        self.binary = Path(binary)
        if not self.binary.exists():
            sys.exit(f"{self.binary} does not exist; `make build` builds it")

    def summaries(self, scenario, seed=1, out=None, more=()):
        """Summaries by variant, and the process's cost. With `out`, the series are written there."""
        command = [self.binary, "run", SCENARIOS / scenario, "--json", "--seed", seed, *more]
        if out is not None:
            command += ["--out", out]
        finished = run(command)
        lines = [json.loads(line) for line in finished.stdout.splitlines() if line.strip()]
        return {line.get("variant", ""): line for line in lines}, finished

    def series(self, scenario, seed=1, more=()):
        """Summaries by variant, and a function that reads the series of one: (variant, "links" or "flows") -> {subject: {column: [values]}}."""
        with tempfile.TemporaryDirectory(prefix="xcpnet-reference-") as directory:
            out = Path(directory) / "out"
            summaries, _ = self.summaries(scenario, seed, out, more)
            tables = {}
            for path in sorted(out.glob("*.csv")):
                name, kind = path.stem.rsplit(".", 1)  # VARIANT.links.csv, or the scenario's name where there are no variants
                tables[name if name in summaries else "", kind] = read_series(path)
            return summaries, tables


def read_series(path):
    """A tidy CSV (time_s, link or flow, quantities...) as {subject: {column: [values]}}."""
    table = {}
    with open(path, newline="") as file:
        rows = csv.reader(file)
        head = next(rows)
        for row in rows:
            columns = table.setdefault(row[1], {name: [] for name in head if name not in (head[1],)})
            for name, value in zip(head, row):
                if name != head[1]:
                    columns[name].append(float(value) if value else float("nan"))
    return table


def ns2_is_installed():
    """Whether the command `ns` is there, and is ns-2 and not something else of that name."""
    return shutil.which("ns") is not None and "2.35" in subprocess.run(
        ["ns"], input='puts [ns-version]; exit', capture_output=True, text=True, check=False
    ).stdout


def ns2(script, **options):
    """What a script of bench/ns2 prints, and the process's cost."""
    command = ["ns", NS2 / script]
    for name, value in options.items():
        command += [name, value]
    finished = run(command)
    return json.loads(finished.stdout.splitlines()[-1]), finished
