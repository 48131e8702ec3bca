"""Runs on this machine's kernel. The program ``xcpnet run --on linux`` does them, as a child:
libelf, root's powers and threads in other network namespaces are its business, and none of
Python's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from . import _native
from ._errors import LabError
from ._scenario import Scenario

BACKENDS = ("linux", "linux-offload")
ASK_EVERY = 0.1  # seconds
# What a lab may take, in seconds, to take down what it has built, and to end when it is told again.
PATIENCE = (20.0, 5.0)


def program() -> str:
    """The program: ``xcpnet`` of the PATH, or what the environment's XCPNET names."""
    wanted = os.environ.get("XCPNET") or "xcpnet"
    found = shutil.which(wanted)
    if found is None:
        where = f"XCPNET names {wanted}" if os.environ.get("XCPNET") else "none is on the PATH"
        raise LabError(
            f'backend="linux" needs the program xcpnet, and {where}, which cannot be run: '
            "`make build` makes target/release/xcpnet; put that on the PATH, or its path "
            "into the environment as XCPNET"
        )
    return os.path.abspath(found)


def run(
    what: Scenario, backend: str, series: bool, tell: Callable[[float], None] | None
) -> _native.Runs:
    """Runs the variants one after the other, in real time. Whatever ends this ends the lab."""
    arguments = (what.name, what.text, list(what._settings), list(what._only))
    variants = _native.on_kernel(*arguments)
    if os.geteuid() != 0:
        raise LabError(
            f"backend={backend!r} makes network namespaces and loads kernel programs, which "
            "needs root: start Python, or the server of the notebook, with sudo"
        )
    command = [
        program(),
        "run",
        "--on",
        backend,
        "--json",
        "--parquet",
        "--out",
        "out",
        "--end-with-input",
    ]
    for path, value in what._settings:
        command += ["--set", f"{path}={value}"]
    done = []
    before, seconds = 0.0, sum(duration for _, duration in variants)
    for variant, duration in variants:

        def spent(time: float, before: float = before, duration: float = duration) -> None:
            # The lab tells nobody how far it is, but its time is the clock's.
            if tell:
                tell((before + min(time, duration)) / seconds)

        with tempfile.TemporaryDirectory(prefix="xcpnet-") as directory:
            file = Path(directory, Path(what.name).name or "scenario.toml")
            file.write_text(what.text, encoding="utf-8")
            chosen = ["--variant", variant] if variant else []
            line = _child([*command, *chosen, "--", file.name], directory, spent)
            done.append((line, _table(directory, "links"), _table(directory, "flows")))
        before += duration
    return _native.Runs.done_by_lab(*arguments, series, done)


def _table(directory: str, of: str) -> bytes:
    found = list(Path(directory, "out").glob(f"*.{of}.parquet"))
    if len(found) != 1:
        raise LabError(
            f"xcpnet wrote {len(found)} tables of {of} where one was expected: is the "
            "program of another version than this package?"
        )
    return found[0].read_bytes()


def _child(command: list[str], directory: str, spent: Callable[[float], None]) -> str:
    """What a run prints. The child is in a session of its own, where the Ctrl-C of a terminal or a
    notebook does not reach it a second time; it ends with its input, which ends with this process,
    however that ends."""
    theirs, ours = os.pipe()
    try:
        child = subprocess.Popen(
            command,
            cwd=directory,
            start_new_session=True,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    begun = time.monotonic()
    try:
        while True:
            try:
                out, said = child.communicate(timeout=ASK_EVERY)
                break
            except subprocess.TimeoutExpired:
                spent(time.monotonic() - begun)
    finally:
        os.close(ours)
        _end(child)
    if child.returncode < 0:
        raise LabError(f"xcpnet was ended by signal {-child.returncode}\n{said}".rstrip())
    if child.returncode > 0:
        raise LabError(said.strip().removeprefix("error: "))
    return out


def _end(child: subprocess.Popen[str]) -> None:
    """Waits until a child whose input has ended has taken down what it built; or tells it again."""
    try:
        for patience, tell in zip(PATIENCE, (child.terminate, child.kill)):
            if child.returncode is not None:
                return
            try:
                child.communicate(timeout=patience)
            except subprocess.TimeoutExpired:
                tell()
        child.wait()
    except BaseException:
        child.kill()
        child.wait()
        raise
