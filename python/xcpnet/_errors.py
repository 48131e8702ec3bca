"""Errors, with their explanations."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One error in a scenario."""

    source: str
    """The file, or ``--set PATH=VALUE`` where a setting is at fault."""
    line: int
    """From 1; 0 where it is of the file as a whole."""
    column: int
    width: int
    snippet: str
    """The line itself."""
    what: str
    """What is wrong."""
    help: str | None
    """What would be right."""


class ScenarioError(ValueError):
    """A scenario has errors; ``problems`` lists all of them, in the file's order."""

    problems: list[Problem]

    def __init__(self, message: str, problems: str = "[]") -> None:
        super().__init__(message, problems)
        self.problems = [Problem(**one) for one in json.loads(problems)]

    def __str__(self) -> str:
        return str(self.args[0])


class SweepError(RuntimeError):
    """A sweep cannot be done: another sweep is in its place, another build started it, or runs
    failed."""


class LabError(RuntimeError):
    """A scenario cannot be run on this machine's kernel: there is no root or no program, the kernel
    lacks what it needs, or something failed; the message says what."""
