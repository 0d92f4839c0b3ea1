"""This process: its memory, and its end with the process that started it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path


def follow_parent() -> None:
    """Ignore Ctrl-C, which the parent handles, and end this process with its parent, even if that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    import multiprocessing  # its import takes time that few processes need

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def peak_mib() -> float | None:
    """Return the most memory of this process in MiB; None if the system does not tell it.

    Linux's `ru_maxrss` would include the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 2**10
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)  # macOS counts bytes


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
