"""The notebooks run from beginning to end, with parameters that make them short."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
SHORT = {"stability": "SIZE, SEEDS, WORKERS = 4, 1, 2", "completion": "SEEDS, DURATION = 3, '20s'"}


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda p: p.stem)
def test_it_runs(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    pytest.importorskip("numpy")
    book = nbformat.read(path, as_version=4)
    for cell in book.cells:
        assert not cell.get("outputs"), "notebooks are kept without what came of them"
        if "parameters" in cell.metadata.get("tags", []):
            cell.source = SHORT[path.stem]
    nbclient.NotebookClient(
        book, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(NOTEBOOKS)}}
    ).execute()
    shown = [
        o
        for cell in book.cells
        for o in cell.get("outputs", [])
        if "image/png" in o.get("data", {})
    ]
    assert shown, "a figure is shown"
