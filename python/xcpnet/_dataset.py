"""The state of a sweep in a place: what is missing, what failed, and the tables."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from typing import NoReturn

from ._errors import SweepError
from ._native import Plan, Table
from ._store import MANIFEST, TABLES, Failures, Store, plan_of, store


class Temporary:
    """A directory that goes with this object, in the process that made it: a child that was forked
    from it has the object, too."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="xcpnet-")
        weakref.finalize(self, self._remove, self.name, os.getpid())

    @staticmethod
    def _remove(name: str, process: int) -> None:
        if os.getpid() == process:
            shutil.rmtree(name, ignore_errors=True)


class Dataset:
    """A sweep's results, complete or partial. The tables are read again each time: before
    ``compact`` from the parts that are done, afterwards from the files that it wrote."""

    def __init__(
        self, place: str, plan: Plan, where: Store, temporary: Temporary | None = None
    ) -> None:
        self.place = place
        self._plan, self._store = plan, where
        self._temporary = temporary  # deleted with this

    @property
    def shards(self) -> int:
        """How many shards the sweep is cut into."""
        return self._plan.shards

    def _done(self) -> list[int]:
        if self._store.get(MANIFEST) is None:
            raise SweepError(f"the sweep is no longer in {self.place}")
        there = self._store.names("done")
        return [n for n in range(self.shards) if Plan.marker(n).rpartition("/")[2] in there]

    def missing(self) -> list[int]:
        """The numbers of the shards that are not done, counted from 0."""
        done = set(self._done())
        return [n for n in range(self.shards) if n not in done]

    @property
    def failed(self) -> Failures:
        """The runs that could not be done (``on_error="keep"``): their number and the reason."""
        found: Failures = []
        for n in self._done():
            found += self._plan.failed(n, self._store.get(Plan.marker(n)) or b"")
        return found

    def retry_failed(self) -> list[int]:
        """Forgets the shards with runs that failed, so that the next ``sweep`` does them again."""
        again = []
        for n in self._done():
            if self._plan.failed(n, self._store.get(Plan.marker(n)) or b""):
                self._store.remove(Plan.marker(n))
                again.append(n)
        return again

    def compact(self, *, without_failed: bool = False) -> Dataset:
        """Puts the parts together into ``runs.parquet``, ``links.parquet``, ``flows.parquet`` and
        ``groups.parquet``: byte for byte what ``xcpnet sweep --out`` writes on one machine. This is
        refused while a shard is missing, or if a run failed, unless ``without_failed`` is given."""
        self._done()  # a place that is gone is not one where everything is missing
        self._store.compact(self._plan, without_failed)
        return self

    def table(self, name: str) -> Table:
        """``runs``, ``links``, ``flows`` or ``groups``."""
        if name not in TABLES:
            raise ValueError(f"there are {', '.join(TABLES)}")
        whole = f"{name}.parquet"
        if self._store.has(whole):
            return self._store.table([whole])
        return self._store.table([Plan.part(name, n) for n in self._done()])

    @property
    def runs(self) -> Table:
        """A row for each run."""
        return self.table("runs")

    @property
    def links(self) -> Table:
        """A row for each run and link direction."""
        return self.table("links")

    @property
    def flows(self) -> Table:
        """A row for each run and flow."""
        return self.table("flows")

    @property
    def groups(self) -> Table:
        """A row for each run and ``[[flow]]``: its flows taken together."""
        return self.table("groups")

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Dataset cannot be pickled or copied: return its place, and xcpnet.open it there"
        )

    def __repr__(self) -> str:
        try:
            state = f"{len(self._done())} of {self.shards} shards done"
        except SweepError:
            state = "no longer there"
        return f"<xcpnet.Dataset {self.place}: {self._plan.runs} runs, {state}>"


def open(place: str | os.PathLike[str]) -> Dataset:
    """Opens the sweep in a directory or an object store that ``sweep(out=...)`` or ``xcpnet sweep
    --shard`` started.
    """
    where = store(place)
    plan = plan_of(where)
    if plan is None:
        what = f"{os.fspath(place)} contains no sweep in shards"
        if where.has("runs.parquet"):
            what += ", but the tables that `xcpnet sweep` wrote: runs.parquet, links.parquet, ..."
        raise SweepError(what)
    return Dataset(os.fspath(place), plan, where)
