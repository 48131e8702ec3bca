"""The examples of docs/python.md run, one after another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT


@pytest.mark.parametrize("page", ["docs/python.md", "python/README.md"])
def test_its_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("matplotlib", "polars", "xarray", "networkx"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)
