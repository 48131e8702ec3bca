"""What somebody gave, checked where it is given."""

from __future__ import annotations

import operator
from typing import SupportsIndex


def count(name: str, given: SupportsIndex, least: int = 1) -> int:
    """A whole number."""
    try:
        number = operator.index(given)
    except TypeError:
        number = least - 1
    if number < least:
        raise ValueError(f"{name}={given!r}: give a whole number from {least} on")
    return number
