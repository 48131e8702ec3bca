"""Where a sweep's shards are: a directory that machines share, or an object store.

In a directory a file appears by one rename, in an object store by one PUT: nothing is ever seen
half written. The marker of a shard comes last, and that it is there is the only state.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any, Protocol

from ._errors import SweepError
from ._native import Plan, Table

TABLES = ("runs", "links", "flows", "groups")
MANIFEST = "manifest.json"

Failures = list[tuple[int, str]]


class Store(Protocol):
    """What a sweep wants of a place."""

    place: str

    def get(self, name: str) -> bytes | None:
        """What is there under a name."""

    def has(self, name: str) -> bool: ...

    def names(self, folder: str) -> set[str]:
        """All names in a folder."""

    def begin(self, plan: Plan) -> None:
        """Puts a plan there, or finds that it is there already; refuses others."""

    def do(self, plan: Plan, shard: int, jobs: int, keep: bool, token: int) -> tuple[int, Failures]:
        """Does a shard and stores it."""

    def remove(self, name: str) -> None: ...

    def compact(self, plan: Plan, without_failed: bool) -> Failures:
        """Puts the shards together."""

    def table(self, names: list[str]) -> Table:
        """Parquet files as one table."""


class Directory:
    """A directory. Files are written by the same code as the command line's."""

    def __init__(self, path: str) -> None:
        self.place = path
        self.path = Path(path)

    def get(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def names(self, folder: str) -> set[str]:
        try:
            return set(os.listdir(self.path / folder))
        except FileNotFoundError:
            return set()

    def begin(self, plan: Plan) -> None:
        plan.begin(self.place)

    def do(self, plan: Plan, shard: int, jobs: int, keep: bool, token: int) -> tuple[int, Failures]:
        return plan.shard_into(self.place, shard, jobs, keep, token)

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def compact(self, plan: Plan, without_failed: bool) -> Failures:
        failed = plan.merge(
            self.place, without_failed, self.has, lambda name: (self.path / name).read_bytes()
        )
        Plan.tidy(self.place)
        return failed

    def table(self, names: list[str]) -> Table:
        return Table.of_files([str(self.path / name) for name in names])


class Objects:
    """An object store, through obstore or, where that is not installed, fsspec. Credentials come
    from the environment, as those read them.
    """

    def __init__(self, place: str) -> None:
        self.place = place.rstrip("/")
        self.io = _obstore(self.place) or _fsspec(self.place)

    def get(self, name: str) -> bytes | None:
        found: bytes | None = self.io.get(name)
        return found

    def has(self, name: str) -> bool:
        return name.rpartition("/")[2] in self.names(name.rpartition("/")[0])

    def names(self, folder: str) -> set[str]:
        found: set[str] = self.io.names(folder)
        return found

    def begin(self, plan: Plan) -> None:
        if self.get(MANIFEST) is None:
            self.io.put(MANIFEST, plan.text().encode(), once=True)
        there = self.get(MANIFEST)
        if there is None:
            raise OSError(f"{self.place}/{MANIFEST} disappeared as soon as it was written")
        plan.refuse_other(Plan.read(there.decode()), self.place)

    def do(self, plan: Plan, shard: int, jobs: int, keep: bool, token: int) -> tuple[int, Failures]:
        objects, runs, failed = plan.shard(shard, jobs, keep, token)
        for name, content in objects:  # the marker is the last
            self.io.put(name, content)
        return runs, failed

    def remove(self, name: str) -> None:
        self.io.remove(name)

    def compact(self, plan: Plan, without_failed: bool) -> Failures:
        markers = self.names("done")

        def has(name: str) -> bool:
            return name.rpartition("/")[2] in markers

        def fetch(name: str) -> bytes:
            found = self.get(name)
            if found is None:
                raise OSError(f"{self.place}/{name} is missing")
            return found

        with tempfile.TemporaryDirectory(prefix="xcpnet-") as here:
            failed = plan.merge(here, without_failed, has, fetch)
            for table in TABLES:
                self.io.put(f"{table}.parquet", (Path(here) / f"{table}.parquet").read_bytes())
        return failed

    def table(self, names: list[str]) -> Table:
        parts = [self.get(name) for name in names]
        return Table.of_parquet([part for part in parts if part is not None])


class _Obstore:
    def __init__(self, module: Any, store: Any) -> None:
        self.module, self.store = module, store

    def get(self, name: str) -> bytes | None:
        try:
            return bytes(self.module.get(self.store, name).bytes())
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> set[str]:
        found = set()
        for batch in self.module.list(self.store, prefix=folder or None):
            for one in batch:
                place, _, name = one["path"].rpartition("/")
                if place == folder:
                    found.add(name)
        return found

    def put(self, name: str, content: bytes, once: bool = False) -> None:
        # One request each: what is there is there whole. Two who begin at once are told apart where
        # the store knows conditional requests; where not, both read what is there afterwards.
        if once:
            try:
                self.module.put(self.store, name, content, mode="create", use_multipart=False)
                return
            except FileExistsError:
                return
            except (self.module.exceptions.NotSupportedError, NotImplementedError):
                pass
        self.module.put(self.store, name, content, use_multipart=False)

    def remove(self, name: str) -> None:
        self.module.delete(self.store, name)


# The process that obstore has its threads in, once it has.
_threads_in: int | None = None


def _obstore(place: str) -> Any:
    global _threads_in
    try:
        import obstore
        import obstore.store
    except ImportError:
        return None
    if _threads_in not in (None, os.getpid()):
        raise SweepError(
            f"a forked process cannot reach {place}, because its parent already did: start workers "
            "afresh, ProcessPoolExecutor(mp_context=multiprocessing.get_context('spawn')), or use "
            "'processes', which does so"
        )
    _threads_in = os.getpid()
    return _Obstore(obstore, obstore.store.from_url(place))


class _Fsspec:
    def __init__(self, system: Any, root: str) -> None:
        self.system, self.root = system, root

    def get(self, name: str) -> bytes | None:
        try:
            return bytes(self.system.cat_file(f"{self.root}/{name}"))
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> set[str]:
        self.system.invalidate_cache()
        try:
            return {
                path.rpartition("/")[2]
                for path in self.system.ls(f"{self.root}/{folder}", detail=False)
            }
        except FileNotFoundError:
            return set()

    def put(self, name: str, content: bytes, once: bool = False) -> None:
        # With a chunk as long as the content it is one request.
        self.system.pipe_file(f"{self.root}/{name}", content)

    def remove(self, name: str) -> None:
        self.system.rm_file(f"{self.root}/{name}")


def _fsspec(place: str) -> Any:
    try:
        import fsspec
    except ImportError:
        raise SweepError(f"{place} needs obstore: pip install 'xcpnet[s3]'") from None
    system, root = fsspec.core.url_to_fs(place)
    return _Fsspec(system, root)


def address(place: str | os.PathLike[str]) -> str:
    """A place as a text that means the same whatever the working directory is."""
    where = os.fspath(place)
    if not where:
        raise ValueError("an empty text is no place: write '.' for the current directory")
    if re.match("[a-z0-9]+:/[^/]", where):
        raise ValueError(
            f"{where!r} has lost a slash, as addresses do that become paths: pass the address as a "
            "text"
        )
    where = where.removeprefix("file://")
    return where if "://" in where else os.path.abspath(where)


def store(place: str | os.PathLike[str]) -> Store:
    """The store of a path or of an address like ``s3://bucket/run7``."""
    where = address(place)
    return Objects(where) if "://" in where else Directory(where)


def plan_of(where: Store) -> Plan | None:
    """The plan that is in a place."""
    text = where.get(MANIFEST)
    return None if text is None else Plan.read(text.decode())
