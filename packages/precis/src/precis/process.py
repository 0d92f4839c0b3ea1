"""A process that another one started: its end with its parent, and the most memory that it used."""

from __future__ import annotations

import os
import signal
import sys
import threading
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
