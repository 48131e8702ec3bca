"""Executors, which do the shards: anything with ``submit`` that returns futures. They hand out the
work, balance it and start the workers."""

from __future__ import annotations

import sys
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


class Pool:
    """An executor, and how to make it again when it is broken."""

    def __init__(self, given: AnyExecutor) -> None:
        self._make: Callable[[], Any] | None = None
        self._own = False
        self.inline = given is None
        if given is None:
            self.executor: Any = Here()
        elif isinstance(given, str) or given is sys.modules.get("ray"):
            kinds: dict[str, Callable[[], Any]] = {
                "threads": ThreadPoolExecutor,
                "processes": ProcessPoolExecutor,
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
