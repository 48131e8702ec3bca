"""Sweeps: a scenario over a grid of settings, variants and seeds, on one machine or many."""

from __future__ import annotations

import operator
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import BrokenExecutor
from typing import Any, Literal, SupportsIndex, Union

from . import _native, _toml
from ._dataset import Dataset, Temporary
from ._errors import ScenarioError, SweepError
from ._executors import AnyExecutor, Pool
from ._given import count
from ._native import Plan
from ._progress import Bar
from ._scenario import AnyScenario, scenario
from ._store import Objects, address, plan_of, store
from ._work import Done, Task, do

POLL = 0.05  # seconds between looks at futures

Seeds = Union[SupportsIndex, str, Iterable[SupportsIndex], None]


def _seeds(of: Seeds) -> str | None:
    """As the command line takes them: ``1..20`` or ``1,5,9``."""
    if of is None or isinstance(of, str):
        return of
    if isinstance(of, range) and of.step == 1 and len(of) > 1:
        return f"{of.start}..{of.stop - 1}"
    numbers = of if isinstance(of, Iterable) else [of]
    return ",".join(str(n) for n in numbers)


class Sweep:
    """A scenario over every combination of the settings' values, every variant, every seed. Runs
    are numbered as ``xcpnet sweep`` numbers them: the seed changes fastest, the first setting
    slowest.

    >>> import xcpnet
    >>> n = xcpnet.Network(duration="1s").link("S", "D", rate="10mbit", delay="5ms", queue="xcp")
    >>> n = n.flow("S", "D", cc="xcp")
    >>> grid = {"queue.target": [0, 10], "flow.count": range(1, 4)}
    >>> sw = xcpnet.Sweep(n, grid, seeds=range(1, 6))
    >>> sw.runs
    30
    """

    def __init__(
        self,
        of: AnyScenario,
        grid: Mapping[str, Any] | None = None,
        seeds: Seeds = None,
        variants: Iterable[str] | str | None = None,
    ) -> None:
        self.scenario = scenario(of)
        if "seed" in (grid or {}):
            raise ValueError("seeds are not part of the grid: give them as seeds=...")
        if isinstance(variants, str):
            variants = [variants]
        fixed = {path: value for path, value in self.scenario._settings if path != "seed"}
        swept = {path: self._values(path, value) for path, value in (grid or {}).items()}
        self.settings = [(path, [value]) for path, value in fixed.items() if path not in swept]
        self.settings += list(swept.items())
        own = self.scenario.settings.get("seed")
        self.seeds = own if seeds is None else _seeds(seeds)
        self.variants = list(variants if variants is not None else self.scenario._only)
        self._whole = self._plan(1, 0.0, True)
        self.runs = self._whole.runs

    @staticmethod
    def _values(path: str, of: Any) -> list[str]:
        if isinstance(of, (str, bytes, Mapping)) or not isinstance(of, Iterable):
            of = [of]
        return [_toml.setting(path, one) for one in of]

    def plan(self, shards: int | None, seconds: float = 30.0) -> Plan:
        """Cut into this number of shards, or into shards of about this many seconds of one
        processor."""
        return self._plan(shards, seconds, False)

    def _plan(self, shards: int | None, seconds: float, check: bool) -> Plan:
        name = self.scenario.name
        text = self.scenario._written((path, one) for path, all in self.settings for one in all)
        return Plan.make(
            name, text, self.settings, self.seeds, self.variants, shards, seconds, check
        )

    def __repr__(self) -> str:
        return f"<xcpnet.Sweep of {self.scenario!r}: {self.runs} runs>"


def _shards(wanted: SupportsIndex | float | str) -> tuple[int | None, float]:
    """How many, or how long each should take."""
    number, seconds = 0, 0.0
    try:
        if isinstance(wanted, str):
            seconds = float(wanted[:-1]) if wanted.endswith("s") else 0.0
        elif isinstance(wanted, float):
            seconds = wanted
        else:
            number = operator.index(wanted)  # numpy's integers, too
    except (TypeError, ValueError):
        pass  # told below
    if number > 0:
        return number, 0.0
    if 0 < seconds < float("inf"):
        return None, seconds
    raise ValueError(
        f"shard={wanted!r}: write how long one should take, '30s', or how many there should be, 100"
    )


def sweep(
    of: Sweep | AnyScenario,
    executor: AnyExecutor = None,
    *,
    out: str | os.PathLike[str] | None = None,
    shard: SupportsIndex | float | str = "30s",
    retries: int = 3,
    on_error: Literal["raise", "keep"] = "raise",
    jobs: int | None = None,
    progress: Callable[[float], None] | bool | None = None,
) -> Dataset:
    """Does what is missing of a sweep, and returns its results. A network or a scenario by itself
    is a sweep of its variants.

    ``executor``: ``None`` for every processor of this machine; ``"threads"``, ``"processes"`` or
    ``"ray"``; any ``concurrent.futures.Executor`` (mpi4py's too), a Dask client, or a function that
    makes one, which is called again when workers were killed and the pool is broken. ``out``:
    a directory that all workers share, or an object store (``s3://bucket/run7``). Completed work
    stays there, whatever was killed; the same call resumes. Without it, a temporary directory on
    this machine is used. ``shard``: how long a piece of work should take, or how many pieces there
    should be. ``retries``: how often a piece is tried again if its worker died. ``on_error="keep"``
    records runs that cannot be done (``Dataset.failed``) instead of ending the sweep. ``jobs``: how
    many runs a piece does at a time.

    >>> import xcpnet
    >>> n = xcpnet.Network(duration="1s").link("S", "D", rate="10mbit", delay="5ms", queue="xcp")
    >>> d = xcpnet.sweep(xcpnet.Sweep(n.flow("S", "D", cc="xcp"), seeds=range(1, 4)), shard=2)
    >>> d.runs.column("seed")
    [1, 2, 3]
    """
    if on_error not in ("raise", "keep"):
        raise ValueError(f"on_error={on_error!r}: write 'raise' or 'keep'")
    number, seconds = _shards(shard)
    retries = count("retries", retries, 0)
    jobs = None if jobs is None else count("jobs", jobs)
    bar = Bar(progress)
    sw = of if isinstance(of, Sweep) else Sweep(of)
    temporary = Temporary() if out is None else None
    place = temporary.name if temporary else address(out)  # type: ignore[arg-type]
    where = store(place)
    plan = plan_of(where)
    if plan is None or not plan.same_sweep(sw._whole):
        plan = sw.plan(number, seconds)
    where.begin(plan)
    data = Dataset(place, plan, where, temporary)
    pool = Pool(executor, with_threads=isinstance(where, Objects))
    if jobs is None:
        jobs = (os.cpu_count() or 1) if pool.inline else 1
    token = secrets.randbits(63)
    tasks = [Task(place, plan.digest, n, jobs, on_error == "keep", token) for n in data.missing()]
    try:
        with bar:
            _do(tasks, plan, pool, retries, bar)
    except BaseException:
        # Threads of this process end where they are; what others do is kept if they finish it.
        _native.cancel(token)
        pool.abandon()
        raise
    pool.close()
    return data


def _do(tasks: list[Task], plan: Plan, pool: Pool, retries: int, bar: Bar) -> None:
    """Hands tasks out until all are done."""
    all_of_them = plan.shards
    done = all_of_them - len(tasks)
    tried = dict.fromkeys((task.shard for task in tasks), 0)
    to_do = {task.shard: task for task in tasks}
    under_way: dict[Any, Task] = {}
    try:
        while to_do or under_way:
            broken: BaseException | None = None
            for number in list(to_do):
                try:
                    future = pool.executor.submit(do, to_do[number])
                except BrokenExecutor as e:
                    broken = e
                    break
                under_way[future] = to_do.pop(number)
                if pool.inline:
                    break  # so that the bar moves
            ready = [future for future in under_way if future.done()]
            for future in ready:
                task = under_way.pop(future)
                error = future.exception()
                if error is None:
                    result: Done = future.result()
                    done += 1
                    if bar.part:
                        bar.part(done / all_of_them)
                    assert result.shard == task.shard
                    continue
                if isinstance(error, (SweepError, ScenarioError, KeyboardInterrupt)):
                    raise error
                tried[task.shard] += 1
                if tried[task.shard] > retries:
                    raise error
                to_do[task.shard] = task
                if isinstance(error, BrokenExecutor):
                    broken = error
            if broken is not None:
                # All that was under way is lost with the pool, whoever broke it.
                for task in under_way.values():
                    to_do[task.shard] = task
                under_way.clear()
                if not pool.renew():
                    raise SweepError(
                        f"the pool of workers is broken ({broken}); {done} of {all_of_them} shards"
                        " are done and kept. Call sweep again with a new pool, or pass a function"
                        " that makes one"
                    ) from broken
            elif not ready:
                time.sleep(POLL)
    except BaseException:
        for future in under_way:
            future.cancel()
        raise
