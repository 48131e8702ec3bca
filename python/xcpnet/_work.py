"""What a worker does, on whatever machine it is: one shard."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import lru_cache

from ._errors import SweepError
from ._native import Plan
from ._store import Failures, Store, plan_of, store


@dataclass(frozen=True)
class Task:
    """Where the sweep is and which shard: all that travels to a worker."""

    place: str
    digest: str
    shard: int
    jobs: int
    keep: bool
    token: int


@dataclass(frozen=True)
class Done:
    """What travels back."""

    shard: int
    runs: int
    failed: Failures
    seconds: float


@lru_cache(maxsize=8)
def _at(place: str, digest: str, process: int) -> tuple[Store, Plan]:
    """A process has its own: a store that came with a fork lacks its threads."""
    where = store(place)
    plan = plan_of(where)
    if plan is None:
        raise SweepError(
            f"this worker finds no sweep in {place}: is this the same place on every machine?"
        )
    if plan.digest != digest:
        raise SweepError(f"{place} now contains another sweep")
    plan.refuse_other_build()
    return where, plan


def do(task: Task) -> Done:
    """Does a shard, unless somebody has done it meanwhile."""
    begun = time.monotonic()
    where, plan = _at(task.place, task.digest, os.getpid())
    if where.has(Plan.marker(task.shard)):
        return Done(task.shard, 0, [], 0.0)
    runs, failed = where.do(plan, task.shard, task.jobs, task.keep, task.token)
    return Done(task.shard, runs, failed, time.monotonic() - begun)
