"""Runs xcpnet, ns-2 and ns-3 for bench/reference and bench/run: processes, their cost, their
output. Python's standard library only.
"""

import csv
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, TypeVar

HERE = Path(__file__).resolve().parent
SCENARIOS = HERE / "scenarios"
NS2 = HERE / "ns2"
NS3 = HERE / "ns3"
CACHE = (
    Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target")) / "bench"
)  # what is built only to be measured
NS3_MODULES = ["ns3-core", "ns3-network", "ns3-internet", "ns3-point-to-point", "ns3-applications"]


T = TypeVar("T")


class Flow(TypedDict):
    """What is read here of a summary's flow."""

    name: str
    goodput: float


class Variant(TypedDict, total=False):
    """What only the summaries of scenarios with variants have."""

    variant: str


class Summary(Variant):
    """What is read here of a line of `xcpnet run --json`: links by name, each with its figures."""

    links: dict[str, dict[str, Any]]
    flows: list[Flow]
    jain: float


# {link or flow: {column: [values]}}
Series = dict[str, dict[str, list[float]]]


@dataclass
class Finished:
    """What a process printed and what it cost."""

    stdout: str
    wall_s: float
    cpu_s: float
    peak_bytes: int


# CPU time over wall time of the processes that took a tenth of a second or more: what a busy
# machine left them.
SHARES: list[float] = []
# A process that had less of a core than this was held up by others. Where time is measured
# (bench/run) it is run again, up to so many times in all, and the least held up counts.
FAIR_SHARE = 0.9
attempts = 1


def run(command: Sequence[object]) -> Finished:
    """Runs a command to its end. Fails loudly."""
    best: Finished | None = None
    best_share = 0.0
    for _ in range(attempts):
        finished = run_once([str(part) for part in command])
        if finished.wall_s < 0.1:
            return finished
        share = finished.cpu_s / finished.wall_s
        if share >= best_share:
            best, best_share = finished, share
        if share >= FAIR_SHARE:
            break
    assert best is not None
    SHARES.append(best_share)
    return best


def run_once(command: list[str]) -> Finished:
    with (
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
        tempfile.NamedTemporaryFile("r") as cost,
    ):
        started = subprocess.run(
            [cost_program(), cost.name, *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            check=False,
        )
        out.seek(0)
        err.seek(0)
        measured = cost.read().split()
        status = os.waitstatus_to_exitcode(int(measured[3])) if measured else started.returncode
        if status != 0:
            sys.exit(f"{' '.join(command)}\nended with status {status}:\n{err.read().strip()}")
        wall_ns, cpu_us, peak_kb = map(int, measured[:3])
        return Finished(out.read(), wall_ns / 1e9, cpu_us / 1e6, peak_kb * 1024)


@functools.cache
def cost_program() -> Path:
    """Builds bench/cost.c, which starts and measures everything, if it is not built yet."""
    source, program = HERE / "cost.c", CACHE / "cost"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        CACHE.mkdir(parents=True, exist_ok=True)
        # Under a name of its own, then renamed: several threads, or several commands, may come here
        # at once, and a program that is being written cannot be started (ETXTBSY).
        with tempfile.TemporaryDirectory(dir=CACHE) as directory:
            fresh = Path(directory) / program.name
            subprocess.run(
                [os.environ.get("CC", "cc"), "-O2", "-o", str(fresh), str(source)], check=True
            )
            fresh.replace(program)
    return program


def together(jobs: Iterable[Callable[..., T]]) -> list[T]:
    """Results of functions without arguments, as many at a time as there are cores, in order.

    Lambdas of a loop bind its variable as a default, which `Callable[[], T]` would not take.
    """
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        return [future.result() for future in [pool.submit(job) for job in jobs]]


class Ours:
    """The xcpnet binary."""

    def __init__(self, binary: str | Path) -> None:
        self.binary = Path(binary)
        if not self.binary.exists():
            sys.exit(f"{self.binary} does not exist; `make build` builds it")

    def summaries(
        self,
        scenario: str | Path,
        seed: int = 1,
        out: Path | None = None,
        more: Iterable[object] = (),
    ) -> tuple[dict[str, Summary], Finished]:
        """Summaries by variant, and the process's cost. `out`: where series are written."""
        command: list[object] = [
            self.binary,
            "run",
            SCENARIOS / scenario,
            "--json",
            "--seed",
            seed,
            *more,
        ]
        if out is not None:
            command += ["--out", out]
        finished = run(command)
        lines = [json.loads(line) for line in finished.stdout.splitlines() if line.strip()]
        return {line.get("variant", ""): line for line in lines}, finished

    def series(
        self, scenario: str | Path, seed: int = 1, more: Iterable[object] = ()
    ) -> tuple[dict[str, Summary], dict[tuple[str, str], Series]]:
        """Summaries by variant, and a function that reads the series of one: (variant, "links" or
        "flows") -> {subject: {column: [values]}}.
        """
        with tempfile.TemporaryDirectory(prefix="xcpnet-reference-") as directory:
            out = Path(directory) / "out"
            summaries, _ = self.summaries(scenario, seed, out, more)
            tables: dict[tuple[str, str], Series] = {}
            for path in sorted(out.glob("*.csv")):
                name, kind = path.stem.rsplit(
                    ".", 1
                )  # VARIANT.links.csv, or the scenario's name where there are no variants
                tables[name if name in summaries else "", kind] = read_series(path)
            return summaries, tables


def read_series(path: Path) -> Series:
    """A tidy CSV (time_s, link or flow, quantities...) as {subject: {column: [values]}}."""
    table: Series = {}
    with open(path, newline="") as file:
        rows = csv.reader(file)
        head = next(rows)
        for row in rows:
            columns = table.setdefault(
                row[1], {name: [] for name in head if name not in (head[1],)}
            )
            for name, value in zip(head, row):
                if name != head[1]:
                    columns[name].append(float(value) if value else float("nan"))
    return table


def ns2_is_installed() -> bool:
    """Whether the command `ns` is there, and is ns-2 and not something else of that name."""
    return (
        shutil.which("ns") is not None
        and "2.35"
        in subprocess.run(
            ["ns"], input="puts [ns-version]; exit", capture_output=True, text=True, check=False
        ).stdout
    )


def ns2(script: str, **options: object) -> tuple[dict[str, Any], Finished]:
    """What a script of bench/ns2 prints, and the process's cost."""
    command: list[object] = ["ns", NS2 / script]
    for name, value in options.items():
        command += [name, value]
    finished = run(command)
    return json.loads(finished.stdout.splitlines()[-1]), finished


def ns3_program() -> tuple[Path | None, str]:
    """Builds bench/ns3/dumbbell.cc against the ns-3 that pkg-config finds, if it is not built yet.
    Returns the program, or None and what is missing.

    PKG_CONFIG_PATH chooses another ns-3 than the distribution's.
    """
    source, program = NS3 / "dumbbell.cc", CACHE / "ns3-dumbbell"
    for tool in ("pkg-config", "g++"):
        if shutil.which(tool) is None:
            return None, f"no {tool}"
    # Only directories and names: the rest of Debian's `--libs` names files of libgsl-dev, which
    # nothing here needs and the package does not pull in.
    asked = subprocess.run(
        ["pkg-config", "--cflags", "--libs-only-L", "--libs-only-l", *NS3_MODULES],
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode != 0:
        return None, "not installed (Debian package libns3-dev)"
    where = subprocess.run(
        ["pkg-config", "--variable=libdir", "ns3-core"], capture_output=True, text=True, check=True
    ).stdout.strip()
    command = [
        "g++",
        "-std=c++17",
        "-O3",
        "-march=native",
        str(source),
        "-o",
        str(program),
        f"-Wl,-rpath,{where}",
        *asked.stdout.split(),
    ]
    recipe = CACHE / "ns3-dumbbell.command"
    if (
        program.exists()
        and program.stat().st_mtime > source.stat().st_mtime
        and recipe.exists()
        and recipe.read_text() == " ".join(command)
    ):
        return program, ""
    CACHE.mkdir(parents=True, exist_ok=True)
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        return (
            None,
            (
                "bench/ns3/dumbbell.cc does not compile with"
                f" {NS3_MODULES[0]}:\n{built.stderr.strip()}"
            ),
        )
    recipe.write_text(" ".join(command))
    return program, ""


def ns3(program: Path, **options: object) -> tuple[dict[str, Any], Finished]:
    """What bench/ns3/dumbbell.cc prints, and the process's cost."""
    finished = run([program, *(f"--{name}={value}" for name, value in options.items())])
    return json.loads(finished.stdout.splitlines()[-1]), finished
