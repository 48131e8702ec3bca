"""The results of a run: numbers as tables, series as arrays, figures and the report."""

from __future__ import annotations

import json
import operator
import os
import warnings
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, Union

from . import _lab, _native
from ._given import count
from ._native import Table
from ._progress import Bar
from ._scenario import AnyScenario, scenario

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

Progress = Union[Callable[[float], None], bool, None]


class Result:
    """Runs of a scenario, one for each of its variants.

    ``runs``, ``links``, ``flows`` and ``groups`` are tables with the columns of a sweep's Parquet
    files (docs/cli.md). They can be passed as they are to ``polars.DataFrame(...)``,
    ``pyarrow.table(...)``, ``pandas.DataFrame.from_arrow(...)`` or a DuckDB query.
    """

    def __init__(self, runs: _native.Runs) -> None:
        self._runs = runs

    @property
    def title(self) -> str:
        """The scenario's title."""
        return self._runs.title

    @property
    def variants(self) -> list[str]:
        """The variants' names; one empty name if the file has none."""
        return self._runs.variants

    @property
    def summaries(self) -> list[dict[str, Any]]:
        """What ``xcpnet run --json`` prints for each run."""
        return [json.loads(line) for line in self._runs.json().splitlines()]

    @property
    def summary(self) -> dict[str, Any]:
        """The summary of the only run."""
        all_of_them = self.summaries
        if len(all_of_them) != 1:
            raise ValueError(
                f"there are {len(all_of_them)} runs: use .summaries, or one variant: "
                f"result[{self.variants[0]!r}].summary"
            )
        return all_of_them[0]

    def json(self) -> str:
        """What ``xcpnet run --json`` prints, to the byte."""
        return self._runs.json()

    def __len__(self) -> int:
        return len(self._runs.variants)

    def __getitem__(self, variant: str | SupportsIndex) -> Result:
        """The run of one variant, by its name or its number."""
        if isinstance(variant, str):
            if variant not in self.variants:
                raise KeyError(f"no variant {variant!r}; there are {self.variants}")
            variant = self.variants.index(variant)
        if not isinstance(variant, SupportsIndex):
            raise TypeError(
                f"a run is chosen by its variant's name or its number, not by {variant!r}"
            )
        variant = operator.index(variant)
        if not -len(self) <= variant < len(self):
            raise IndexError(f"there are {len(self)} runs")
        return Result(self._runs.only(variant % len(self)))

    def __iter__(self) -> Iterator[Result]:
        return (self[i] for i in range(len(self)))

    @property
    def runs(self) -> Table:
        """A row for each run."""
        return self._runs.table("runs")

    @property
    def links(self) -> Table:
        """A row for each run and link direction."""
        return self._runs.table("links")

    @property
    def flows(self) -> Table:
        """A row for each run and flow."""
        return self._runs.table("flows")

    @property
    def groups(self) -> Table:
        """A row for each run and ``[[flow]]``: its flows taken together."""
        return self._runs.table("groups")

    def _one(self, what: str) -> None:
        if len(self) != 1:
            raise ValueError(f"{what} works on a single run: result[{self.variants[0]!r}].{what}")

    def series(self, of: str = "links") -> Table:
        """The curves of a run's ``links`` or ``flows``, a row for each sampling interval and
        subject.
        """
        self._one("series()")
        return self._runs.series(0, of)

    def expect(self) -> list[dict[str, Any]]:
        """How the file's expectations turned out: claim, metric, band, what was measured, and
        whether it is inside."""
        return [json.loads(one) for one in self._runs.expect()]

    def to_xarray(self) -> xarray.Dataset:
        """The curves of a run: variables over (time, link) and (time, flow), with times in seconds
        and names."""
        self._one("to_xarray()")
        from ._plot import to_xarray

        return to_xarray(self)

    def plot(self, *quantities: str, link: str | None = None) -> Figure:
        """Draws quantities over time with matplotlib, one below the other, every run in each:
        ``plot("queue_mean_packets", "cwnd_packets")``. Those of links are for the bottleneck, or
        for ``link``."""
        from ._plot import plot

        return plot(self, quantities or ("queue_mean_packets", "goodput_bps"), link)

    def svg(
        self, figure: str = "series", quantity: str | None = None, link: str | None = None
    ) -> str:
        """A figure of ``xcpnet plot``: ``series``, ``cdf``, ``completion`` or ``delay``."""
        return self._runs.svg(figure, quantity, link)

    def html(self) -> str:
        """The report, one page that needs no network."""
        return self._runs.html()

    def report(self, directory: str | os.PathLike[str]) -> Path:
        """Writes ``report.html`` and ``summary.json`` into a directory; returns the report's
        path."""
        place = Path(directory)
        place.mkdir(parents=True, exist_ok=True)
        for name, text in (("summary.json", self.json()), ("report.html", self.html())):
            unfinished = place / f".{name}.part"
            try:
                unfinished.write_text(text, encoding="utf-8")
                unfinished.replace(place / name)
            except OSError as e:
                unfinished.unlink(missing_ok=True)
                raise OSError(e.errno, e.strerror, str(place / name)) from None
        return place / "report.html"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Result cannot be pickled or copied: return its summaries, its json() or columns of "
            "its tables"
        )

    def __repr__(self) -> str:
        runs = ", ".join(repr(name) for name in self.variants if name) or "1 run"
        return f"<xcpnet.Result {self.title!r}: {runs}>"

    def _repr_html_(self) -> str:
        """The report's figures of the bottleneck's queue and the flows' goodput, and a table."""
        figures = []
        for quantity in (None, "goodput_bps"):
            try:
                figures.append(self.svg("series", quantity))
            except ValueError:  # nothing was sampled
                pass
        head = ["variant", "link", "utilisation", "mean queue", "drops"]
        rows = [
            [
                s.get("variant", ""),
                name,
                f"{100 * link['utilisation']:.1f} %",
                f"{link['queue_mean']:.1f}",
                str(link["drops"]),
            ]
            for s in self.summaries
            for name, link in s["links"].items()
            if link["packets"]
        ]
        cells = "".join(
            "<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows[:40]
        )
        table = f"<table><tr>{''.join(f'<th>{h}</th>' for h in head)}</tr>{cells}</table>"
        told = "".join(f"<li>{escape(note)}</li>" for note in self._notes()[:40])
        notes = f"<ul>{told}</ul>" if told else ""
        return f"<div><b>{escape(self.title)}</b>{table}{notes}{''.join(figures)}</div>"

    def _notes(self) -> list[str]:
        """What one should know before believing the numbers, as ``xcpnet run`` tells it."""
        return [
            ": ".join(part for part in (one["backend"], one.get("variant", ""), note) if part)
            for one in self.summaries
            for note in one.get("notes", [])
        ]


def run(
    of: AnyScenario,
    *,
    backend: str = "sim",
    threads: int = 1,
    jobs: int | None = None,
    series: bool = True,
    progress: Progress = None,
) -> Result:
    """Runs a scenario in the simulator: all its variants, at most ``jobs`` at a time (one for each
    processor), each divided among ``threads`` processors. ``series=False`` leaves out the curves.
    ``progress`` is called with the part that is done, or says whether to show a bar.

    The numbers are those of ``xcpnet run``, to the last bit. Ctrl-C ends it.

    ``backend="linux"`` runs it on this machine's own TCP instead, as root and by means of the
    program ``xcpnet`` (docs/lab.md), one variant after the other and in real time; ``threads`` and
    ``jobs`` have no effect then. ``"linux-offload"`` does the same with packets of several
    segments.

    Notes about the numbers are also issued as warnings.

    >>> import xcpnet
    >>> n = xcpnet.Network(duration="3s").link("S", "D", rate="10mbit", delay="10ms", queue="xcp")
    >>> r = xcpnet.run(n.flow("S", "D", cc="xcp"))
    >>> 0.9 < r.summary["links"]["S-D"]["utilisation"] <= 1
    True
    >>> r.links.column("link")
    ['S-D', 'S-D.reverse']
    """
    if backend != "sim" and backend not in _lab.BACKENDS:
        raise ValueError(
            f"there is no backend {backend!r}; there are 'sim',"
            f" {', '.join(map(repr, _lab.BACKENDS))}"
        )
    threads = count("threads", threads)
    jobs = (os.cpu_count() or 1) if jobs is None else count("jobs", jobs)
    what = scenario(of)
    with Bar(progress) as bar:
        if backend == "sim":
            runs = _native.run(
                what.name,
                what.text,
                list(what._settings),
                list(what._only),
                series,
                threads,
                jobs,
                bar.part,
            )
        else:
            runs = _lab.run(what, backend, series, bar.part)
    result = Result(runs)
    for note in result._notes():
        warnings.warn(note, stacklevel=2)
    return result


def expect(result: Result) -> list[dict[str, Any]]:
    """How a file's expectations turned out; see :meth:`Result.expect`."""
    return result.expect()


def theory(of: AnyScenario, *, at: str | None = None, fluid: bool = True) -> list[dict[str, Any]]:
    """What theory predicts for each variant: max-min shares, XCP's equilibrium, stability
    margins, a fluid model (docs/theory.md). ``at`` is an instant, ``"30s"``.

    >>> import xcpnet
    >>> n = xcpnet.Network(duration="3s").link("S", "D", rate="10mbit", delay="10ms", queue="xcp")
    >>> [said] = xcpnet.theory(n.flow("S", "D", count=2, cc="xcp"))
    >>> said["flows"][0]["max_min"]["wire"]
    5000000.0
    """
    what = scenario(of)
    said = _native.theory(what.name, what.text, list(what._settings), list(what._only), at, fluid)
    return [json.loads(one) for one in said]
