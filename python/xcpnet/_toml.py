"""Python's values as TOML. Reading TOML is the scenario reader's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


def key(name: str) -> str:
    return name if name and set(name) <= _BARE else quoted(name)


def quoted(text: str) -> str:
    """A text between quotes, on one line."""
    # JSON's escapes are TOML's; DEL, which JSON leaves alone, TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def value(of: Any) -> str:
    """A value on one line."""
    if getattr(of, "ndim", None) == 0 and hasattr(of, "item"):  # numpy's numbers
        of = of.item()
    if isinstance(of, bool):
        return "true" if of else "false"
    # Not repr(of): an IntEnum has one of its own.
    if isinstance(of, int):
        return int.__repr__(of)
    if isinstance(of, float):
        return float.__repr__(of)
    if isinstance(of, str):
        return quoted(of)
    if isinstance(of, Mapping):
        inner = ", ".join(_assignment(k, v) for k, v in of.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(of, (list, tuple)):
        return "[" + ", ".join(value(v) for v in of) + "]"
    raise TypeError(f"{of!r} cannot be written as TOML: use a text, a number, a list or a dict")


def _assignment(name: str, of: Any) -> str:
    return f"{key(name)} = {_named(name, of)}"


def _named(name: str, of: Any) -> str:
    try:
        return value(of)
    except TypeError as e:
        raise TypeError(f"{name}: {e}") from None


def setting(path: str, of: Any) -> str:
    """The value of a path as ``--set`` takes it: a text is written without quotes."""
    return str.__str__(of) if isinstance(of, str) else _named(path, of)


def document(of: Mapping[str, Any]) -> str:
    """A whole file: lists of tables as ``[[table]]``, the rest on lines of their own."""

    def tables(v: Any) -> bool:
        return isinstance(v, (list, tuple)) and bool(v) and all(isinstance(x, Mapping) for x in v)

    lines = [_assignment(k, v) for k, v in of.items() if not tables(v)]
    for name, items in of.items():
        if tables(items):
            for item in items:
                lines += [
                    "",
                    f"[[{key(name)}]]",
                    *(_assignment(k, v) for k, v in item.items()),
                ]
    return "\n".join(lines) + "\n"
