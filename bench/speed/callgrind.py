"""Counts instructions with valgrind's callgrind.

What is counted is a binary of its own, built for x86-64-v3 (AVX2 and no later) into target/bench:
valgrind does not know AVX-512, which a build for the machine at hand may use, and counts stay
comparable between machines.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import peers

CPU = "x86-64-v3"
VALGRIND = ["valgrind", "--tool=callgrind", "--quiet"]


def missing() -> str | None:
    """What is missing to count here, or None."""
    if shutil.which("valgrind") is None:
        return "valgrind is not installed (Debian package valgrind)"
    if os.uname().machine != "x86_64":
        return f"the baseline is {CPU}'s, this machine is {os.uname().machine}"
    return None


def build() -> Path:
    """Builds xcpnet to be counted. Returns its path."""
    directory = peers.CACHE / CPU
    environment = {
        **os.environ,
        "RUSTFLAGS": f"-C target-cpu={CPU}",
        "CFLAGS": f"-march={CPU}",
        "CARGO_TARGET_DIR": str(directory),
    }
    environment.pop("CARGO_ENCODED_RUSTFLAGS", None)
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--package", "xcpnet"]
    if subprocess.run(command, env=environment, cwd=peers.HERE.parent, check=False).returncode != 0:
        sys.exit(f"building xcpnet for {CPU} failed: {' '.join(command)}")
    return directory / "release" / "xcpnet"


def compilers() -> str:
    """What the counts depend on besides the source."""
    rustc = subprocess.run(
        ["rustc", "--version"], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    cc = subprocess.run(
        [os.environ.get("CC", "cc"), "-dumpfullversion"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return f"rustc {rustc}, cc {cc}"


def count(binary: Path, arguments: Iterable[object]) -> tuple[str, str]:
    """Runs `xcpnet run` under callgrind. Returns what it printed and the profile's text."""
    with tempfile.TemporaryDirectory(prefix="xcpnet-callgrind-") as directory:
        out = Path(directory) / "callgrind.out"
        finished = peers.run_once(
            [*VALGRIND, f"--callgrind-out-file={out}", str(binary), "run", *map(str, arguments)]
        )
        return finished.stdout, out.read_text()


def total(profile: str) -> int:
    """All instructions of a profile."""
    found = re.search(r"^(?:totals|summary):\s*(\d+)", profile, re.MULTILINE)
    if not found:
        sys.exit("callgrind wrote a profile without a total")
    return int(found[1])


def by_source(profile: str) -> dict[tuple[str, str, str], int]:
    """Instructions by (source file, function, the function's own source file). Code inlined from
    another file counts for the file it was written in.

    The format: https://valgrind.org/docs/manual/cl-format.html. `fl=` opens a function's file,
    `fi=` and `fe=` another one inside of it, `fn=` names the function; names come once with a
    number, later the number alone. A line of cost is a position and a count; the one after `calls=`
    is what was called, and counted there.
    """
    names: dict[tuple[str, str], str] = {}
    costs: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    file = function = home = ""
    called = False
    for line in profile.splitlines():
        key, mark, value = line.partition("=")
        if mark and key in NAMES:
            name = resolve(names, NAMES[key], value)
            if key in ("fl", "fi", "fe"):
                file = name
            if key == "fl":
                home = name
            elif key == "fn":
                function = name
        elif mark and key == "calls":
            called = True
        elif line[:1] in "0123456789+-*" and line:
            if called:
                called = False
                continue
            costs[file, function, home] += int(line.split()[1])
    return costs


# Lines that name something, and the space of names they share.
NAMES = {
    "fl": "file",
    "fi": "file",
    "fe": "file",
    "cfl": "file",
    "cfi": "file",
    "fn": "function",
    "cfn": "function",
    "ob": "object",
    "cob": "object",
}


def resolve(names: dict[tuple[str, str], str], kind: str, value: str) -> str:
    number, _, name = value.partition(" ")
    if not number.startswith("("):
        return value
    if name:
        names[kind, number] = name
    return names[kind, number]
