"""What the tests share: the command line, which the package is held against, and a small sweep."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import xcpnet

ROOT = Path(__file__).parents[2]
TABLES = ("runs", "links", "flows", "groups")

SMALL = """
title    = "Two flows"
duration = "200ms"
sample   = "off"
link     = [{ name = "bottleneck", between = ["S", "D"], rate = "10mbit", delay = "5ms", queue = { kind = "xcp", limit = 100 } }]
flow     = [{ count = 2, from = "S", to = "D", congestion = "xcp", start-jitter = "100ms" }]

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
                item.add_marker(pytest.mark.skip(reason="takes minutes: PYTEST_ALL=1"))


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
        pytest.skip(f"no command line at {program}: make build, or set XCPNET")
    return program


@pytest.fixture(scope="session")
def of_cli(cli: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The tables that one machine's `xcpnet sweep` writes."""
    home = tmp_path_factory.mktemp("cli")
    (home / "s.toml").write_text(SMALL)
    subprocess.run([cli, "sweep", "s.toml", *ARGUMENTS, "--out", "out"], cwd=home, check=True,
                   capture_output=True)
    return bytes_of(home / "out")
