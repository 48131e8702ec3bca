"""What the tests share: the command line, which the package is held against, and a small sweep."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest
import xcpnet

ROOT = Path(__file__).parents[2]
TABLES = ("runs", "links", "flows", "groups")

SMALL = """
title    = "Two flows"
duration = "200ms"
sample   = "off"
flow     = [{ count = 2, from = "S", to = "D", congestion = "xcp", start-jitter = "100ms" }]

[[link]]
name    = "bottleneck"
between = ["S", "D"]
rate    = "10mbit"
delay   = "5ms"
queue   = { kind = "xcp", limit = 100 }

[[variant]]
name = "XCP"

[[variant]]
name = "TCP"
set  = { "queue.kind" = "drop-tail", "flow.congestion" = "reno" }
"""
GRID = {"flow.count": [1, 2, 3], "duration": ["50ms", "300ms"]}
SEEDS = range(1, 21)
ARGUMENTS = ["--set", "flow.count=1..3", "--set", "duration=50ms,300ms", "--seeds", "1..20"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not os.environ.get("PYTEST_ALL"):
        for item in items:
            if item.get_closest_marker("all"):
                item.add_marker(pytest.mark.skip(reason="PYTEST_ALL: takes minutes"))


def wanting(reason: str) -> tuple[str, str]:
    """What is wanting, in a word, and what was missed: a skip's reason is ``mpiexec: why``."""
    absent = re.search(r"could not import '([\w.]+)'", reason)
    if absent:
        return absent[1].split(".")[0], "the package cannot be had"
    word, _, why = reason.removeprefix("Skipped: ").partition(": ")
    return word, why


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Counts skips as the tests in Rust do (crates/xcp-skip): a line each in the file that
    XCPNET_SKIPPED names; what XCPNET_REQUIRE lists must be there."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple):
        word, why = wanting(report.longrepr[2])
        # One test with many parameters is told as often as it was skipped, by one name.
        test = getattr(item, "originalname", None) or item.name
        line = f"SKIPPED ({word}): {test}: {why}".replace("\n", " | ")
        if os.environ.get("XCPNET_SKIPPED"):
            with open(os.environ["XCPNET_SKIPPED"], "a", encoding="utf-8") as file:
                file.write(f"{line}\n")
        if word in [one.strip() for one in os.environ.get("XCPNET_REQUIRE", "").split(",")]:
            report.outcome = "failed"
            report.longrepr = f"XCPNET_REQUIRE has {word}: {line}"
    return report


def small_sweep() -> xcpnet.Sweep:
    return xcpnet.Sweep(xcpnet.Scenario.from_text(SMALL, "s.toml"), GRID, SEEDS)


def bytes_of(place: str | os.PathLike[str]) -> dict[str, bytes]:
    return {name: (Path(place) / f"{name}.parquet").read_bytes() for name in TABLES}


def files(place: str | os.PathLike[str]) -> set[str]:
    return {str(p.relative_to(place)) for p in Path(place).rglob("*") if p.is_file()}


@pytest.fixture(scope="session")
def cli() -> str:
    program = os.environ.get("XCPNET") or str(ROOT / "target/release/xcpnet")
    if not shutil.which(program):
        pytest.skip(f"xcpnet: no command line at {program}; make build, or set XCPNET")
    return program


@pytest.fixture(scope="session")
def of_cli(cli: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The tables that one machine's `xcpnet sweep` writes."""
    home = tmp_path_factory.mktemp("cli")
    (home / "s.toml").write_text(SMALL)
    subprocess.run(
        [cli, "sweep", "s.toml", *ARGUMENTS, "--out", "out"],
        cwd=home,
        check=True,
        capture_output=True,
    )
    return bytes_of(home / "out")
