"""Executors, which do the shards: anything with ``submit`` that returns futures. They hand out the
work, balance it and start the workers."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any, Union

AnyExecutor = Union[None, str, Executor, Callable[[], Executor], Any]


class Here(Executor):
    """Does what is submitted at once, in the thread that submits it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as e:
            future.set_exception(e)
        return future


class Ray(Executor):
    """Ray's tasks as futures."""

    def __init__(self) -> None:
        import ray

        if not ray.is_initialized():
            ray.init()
        # Whoever was killed is tried again here, where it is counted.
        self.remote = ray.remote(max_retries=0)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = self.remote(fn).remote(*args, **kwargs).future()
        return future


def _end_with_parent() -> None:
    """Ends a worker when the process that made it has ended, however that ended. By itself a worker
    that finds nothing to do waits for more, and keeps its memory, for ever where its parent was
    killed."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _processes(with_threads: bool) -> ProcessPoolExecutor:
    """Worker processes. A fork takes over the locks of the threads that its parent has, but not the
    threads that would open them again, so workers are started afresh where there are such threads.
    Elsewhere Python's own choice stays: a worker that is started afresh imports the user's script,
    which not every script is written for."""
    return ProcessPoolExecutor(
        mp_context=multiprocessing.get_context("spawn" if with_threads else None),
        initializer=_end_with_parent,
    )


class Pool:
    """An executor, and how to make it again when it is broken. ``with_threads``: this process has
    threads that no fork survives, which are those of an object store."""

    def __init__(self, given: AnyExecutor, with_threads: bool = False) -> None:
        self._make: Callable[[], Any] | None = None
        self._own = False
        self.inline = given is None
        if given is None:
            self.executor: Any = Here()
        elif isinstance(given, str) or given is sys.modules.get("ray"):
            kinds: dict[str, Callable[[], Any]] = {
                "threads": ThreadPoolExecutor,
                "processes": lambda: _processes(with_threads),
                "ray": Ray,
            }
            name = given if isinstance(given, str) else "ray"
            if name not in kinds:
                raise ValueError(f"no executor {name!r}: write {', '.join(kinds)}, or give one")
            self._make, self._own = kinds[name], True
            self.executor = self._make()
        elif hasattr(given, "get_executor"):  # a client of dask.distributed
            self.executor = given.get_executor(pure=False, retries=0)
        elif hasattr(given, "submit"):
            self.executor = given
        elif callable(given):
            self._make, self._own = given, True
            self.executor = given()
        else:
            raise TypeError(
                f"{given!r} has no submit(): give an Executor, a Dask client, 'threads', "
                "'processes' or 'ray'"
            )

    def renew(self) -> bool:
        """Makes a broken one again; says whether that is possible."""
        if self._make is None:
            return False
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.executor = self._make()
        return True

    def close(self) -> None:
        if self._own:
            self.executor.shutdown(wait=True, cancel_futures=True)

    def abandon(self) -> None:
        """Closes it without waiting for what worker processes do: that may take as long as a shard,
        and whoever is killed leaves nothing that is read."""
        if self._own and isinstance(self.executor, ProcessPoolExecutor):
            workers = list((self.executor._processes or {}).values())
            self.executor.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.kill()
        else:
            self.close()
