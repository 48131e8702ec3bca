"""The packed sources: whole, and installed from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import xcpnet
from conftest import ROOT, SMALL


def packed(into: Path) -> Path:
    if not shutil.which("maturin"):
        pytest.skip("maturin: pip install maturin")
    subprocess.run(
        ["maturin", "sdist", "--out", into], cwd=ROOT / "python", check=True, capture_output=True
    )
    [archive] = into.glob("*.tar.gz")
    return archive


def test_the_engine_and_the_licences_are_in_it(tmp_path: Path) -> None:
    with tarfile.open(packed(tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        assert {
            f"crates/xcp-engine/engine/{h.name}" for h in (ROOT / "engine").glob("*.h")
        } <= names
        assert {"xcpnet/py.typed", "LICENSES/GPL-2.0-or-later.txt", "Cargo.lock"} <= names
        [info] = [
            m
            for m in archive.getmembers()
            if m.name.count("/") == 1 and m.name.endswith("/PKG-INFO")
        ]
        about = archive.extractfile(info)
        assert about is not None and b"License-Expression: GPL-2.0-or-later\n" in about.read()


@pytest.mark.all
def test_it_can_be_installed_from(tmp_path: Path) -> None:
    """In an environment of its own, without this repository; it gives the same numbers."""
    archive = packed(tmp_path / "dist")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv/bin/python"
    subprocess.run([python, "-m", "pip", "--quiet", "install", archive], check=True, cwd=tmp_path)
    code = (
        "import sys, xcpnet; print(xcpnet.__file__);"
        " print(xcpnet.run(xcpnet.Scenario.from_text(sys.argv[1])).json(), end='')"
    )
    out = subprocess.run(
        [python, "-c", code, SMALL],
        check=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ""},
    ).stdout
    where, _, numbers = out.partition("\n")
    assert where.startswith(str(tmp_path))
    assert numbers == xcpnet.run(xcpnet.Scenario.from_text(SMALL)).json()
