"""Memory that is free, and that the C library keeps for later."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache


@cache
def _trim() -> Callable[[int], int] | None:
    """glibc's `malloc_trim`; None where the C library is another one."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None


def give_back() -> None:
    """Give memory that is free back to the system.

    glibc keeps what the states of an input took, in pieces that an input of another length does not fit in: a process
    takes more with each. A call takes some milliseconds, and a tenth of a second where there is a gigabyte to return.
    """
    if (trim := _trim()) is not None:
        trim(0)
