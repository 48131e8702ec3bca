"""A bar for those who watch: a line in a terminal, a text in a notebook, nothing in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

SHOW_EVERY = 0.2  # seconds


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


class Bar:
    """Tells a function how far something is, or shows it. ``wanted``: a function of the part that
    is done; whether a bar is shown; ``None`` for where somebody can see it.
    """

    def __init__(self, wanted: Callable[[float], None] | bool | None) -> None:
        if not (callable(wanted) or wanted is None or isinstance(wanted, bool)):
            raise TypeError(
                f"progress={wanted!r}: give a function of the part that is done, True, False or"
                " None"
            )
        self.tell = wanted if callable(wanted) else None
        notebook = _in_notebook()
        shown = wanted if isinstance(wanted, bool) else notebook or sys.stderr.isatty()
        self.shown = shown and self.tell is None
        self.handle: Any = None
        if self.shown and notebook:
            from IPython.display import display

            self.handle = display({"text/plain": ""}, raw=True, display_id=True)
        self.begun = self.last = time.monotonic()
        self.length = 0

    @property
    def part(self) -> Callable[[float], None] | None:
        """To be called with the part that is done; ``None`` if nobody listens."""
        return self.tell or (self.show if self.shown else None)

    def show(self, part: float, note: str = "") -> None:
        now = time.monotonic()
        if now - self.last < SHOW_EVERY:
            return
        self.last = now
        filled = round(30 * part)
        left = (now - self.begun) * (1 - part) / part if part > 0 else 0.0
        self._write(
            f"{'█' * filled}{'░' * (30 - filled)} {100 * part:3.0f} % {note} about {left:.0f} s"
            " left"
        )

    def _write(self, text: str) -> None:
        if self.handle is not None:
            self.handle.update({"text/plain": text}, raw=True)
        else:
            sys.stderr.write("\r" + text.ljust(self.length) + ("\r" if not text else ""))
            sys.stderr.flush()
        self.length = len(text)

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.shown and self.length:
            self._write("")
