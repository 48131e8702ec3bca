"""Scenarios. The reader defines which keys there are and what they mean (docs/scenario.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Union

from . import _native, _toml
from ._network import Network

Settings = tuple[tuple[str, str], ...]
Traces = tuple[tuple[str, str], ...]  # what the text calls them, and what is in them


class Scenario:
    """A scenario: a file's text, and settings on top of it. It never changes; methods return new
    ones.

    >>> import xcpnet
    >>> ship = xcpnet.Scenario.from_dict({
    ...     "duration": "5s",
    ...     "link": [{"name": "satellite", "between": ["office", "ship"], "rate": "20mbit",
    ...               "delay": "300ms", "queue": "xcp"}],
    ...     "flow": [{"from": "office", "to": "ship", "count": 3, "congestion": "xcp"}],
    ... })
    >>> ship.set({"link.satellite.rate": "50mbit"}).with_seed(7)
    Scenario('scenario.toml', set={'link.satellite.rate': '50mbit', 'seed': '7'})
    >>> ship.set({"link.satellite.rate": "fast"})
    Traceback (most recent call last):
    ...
    xcpnet._errors.ScenarioError: error: ...
    """

    name: str
    """The file's name, for messages."""
    text: str
    """The file's text without the settings; its traces are written out for the longest `duration`
    that it or a setting has."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if isinstance(path, Mapping):
            raise TypeError("a dict is no path: Scenario.from_dict(...) takes it")
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(
                f"{path!r} is no scenario: give a file's path, or a Scenario or Network"
            )
        name = os.fspath(path)
        if not name:
            raise ValueError("an empty text is no path of a scenario's file")
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{name} is not UTF-8 text: save it as UTF-8") from None
        except OSError:
            if "=" in name:
                raise ValueError(
                    "there is no such file; if this is a scenario's text, Scenario.from_text(...) "
                    "takes it"
                ) from None
            raise
        self._fill(name, text, tuple(_native.read_traces(name, text)), (), ())

    def _fill(
        self, name: str, plain: str, traces: Traces, settings: Settings, only: tuple[str, ...]
    ) -> None:
        self.name, self._plain, self._traces = name, plain, traces
        self._settings, self._only = settings, only
        self.text = self._written(settings)
        self.title = _native.check(name, self.text, list(settings), list(only))

    def _written(self, settings: Iterable[tuple[str, str]]) -> str:
        """The text with its traces long enough for any of these settings."""
        if not self._traces:
            return self._plain
        return _native.with_traces(self.name, self._plain, list(settings), list(self._traces))

    @classmethod
    def _make(
        cls, name: str, plain: str, traces: Traces, settings: Settings, only: tuple[str, ...]
    ) -> Scenario:
        made = cls.__new__(cls)
        made._fill(name, plain, traces, settings, only)
        return made

    def _with(self, settings: Settings, only: tuple[str, ...]) -> Scenario:
        return self._make(self.name, self._plain, self._traces, settings, only)

    @classmethod
    def from_text(cls, text: str, name: str = "scenario.toml") -> Scenario:
        """A scenario from a TOML text."""
        return cls._make(name, text, (), (), ())

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], name: str = "scenario.toml") -> Scenario:
        """A scenario from a dict with the keys that a file has."""
        return cls._make(name, _toml.document(content), (), (), ())

    def set(self, settings: Mapping[str, Any]) -> Scenario:
        """The same scenario with settings changed, as by ``--set PATH=VALUE``."""
        more = tuple((path, _toml.setting(path, value)) for path, value in settings.items())
        return self._with(self._settings + more, self._only)

    def with_seed(self, seed: int) -> Scenario:
        """The same scenario with another seed."""
        kept = tuple(one for one in self._settings if one[0] != "seed")
        return self._with((*kept, ("seed", _toml.setting("seed", seed))), self._only)

    def only(self, *variants: str) -> Scenario:
        """The same scenario with only these of its variants."""
        there = [name for name in _native.variants(self.text) if name]
        for name in variants:
            if name not in there:
                raise ValueError(f"no variant {name!r}; there are {there}")
        return self._with(self._settings, variants)

    @property
    def variants(self) -> list[str]:
        """The variants that are run, in the file's order; empty if the file has none."""
        names = [name for name in _native.variants(self.text) if name]
        return [name for name in names if not self._only or name in self._only]

    @property
    def settings(self) -> dict[str, str]:
        """The settings on top of the file."""
        return dict(self._settings)

    def toml(self) -> str:
        """The file's text, preceded by comments with the settings on top of it."""
        comments = (
            # A comment is one line: whatever is not printable is written with its escape.
            f"# --set {path}={value if value.isprintable() else _toml.quoted(value)}\n"
            for path, value in self._settings
        )
        return "".join(comments) + self.text

    @staticmethod
    def schema() -> dict[str, Any]:
        """The JSON schema of the file.

        >>> sorted(Scenario.schema()["properties"])[:3]
        ['description', 'duration', 'expect']
        """
        schema: dict[str, Any] = json.loads(_native.schema())
        return schema

    def __repr__(self) -> str:
        parts = [repr(self.name)]
        if self._settings:
            parts.append(f"set={self.settings}")
        if self._only:
            parts.append(f"only={list(self._only)}")
        return f"Scenario({', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return (self.name, self._plain, self._traces, self._settings, self._only)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Scenario._make, self._key())


AnyScenario = Union[Scenario, Network, str, "os.PathLike[str]"]


def scenario(of: AnyScenario) -> Scenario:
    """Anything that can be run: a scenario, a network that was built, or a file's path."""
    if isinstance(of, Scenario):
        return of
    if isinstance(of, Network):
        return Scenario.from_dict(of.to_dict())
    return Scenario(of)
