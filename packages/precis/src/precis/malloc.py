"""Return memory that glibc holds to the system."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache


@cache
def _trim() -> Callable[[int], int] | None:
    """Return glibc's `malloc_trim`; None for another C library."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None


def trim_heap() -> None:
    """Return free memory to the system.

    glibc keeps the memory of an input's hidden states, in pieces that do not fit an input of another length, so a
    process grows with each input. A call takes a few milliseconds, or a tenth of a second to return a gigabyte.
    """
    if (trim := _trim()) is not None:
        trim(0)
