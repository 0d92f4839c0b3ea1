"""This process: its threads, its memory, and its end with the process that started it.

`import precis` imports this module, so a function imports what few processes need.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache

_DECIDED: set[int] = set()  # processes; a forked one has another number

_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")  # how long OpenMP's threads wait awake
_SPINS = "3000"  # docs/benchmarks/decoding.md: fewer are slower alone, more are slower beside other work


def bound_waiting() -> None:
    """Let the threads of OpenMP sleep soon when they lack work, unless the user says how they wait.

    GNU's OpenMP, which torch for Linux contains, lets a thread spin 300,000 times before it sleeps. If other processes
    use the same core, a spinning thread takes the time that the thread it waits for needs. A decoding step waits many
    times (`benchmarks.compare busy`). OpenMP reads the variable once, so this works only before torch is imported.
    """
    if not any(os.environ.get(name) for name in _WAITING):
        os.environ["GOMP_SPINCOUNT"] = _SPINS


def use_threads(count: int | None) -> None:
    """Limit torch to `count` threads; if None, to the default of this process.

    Torch does not see the quota of a container, or the other processes of a pool. The default applies once in a
    process, unless a number was given before. So `torch.set_num_threads` holds after a model is loaded.
    """
    if count is None and os.getpid() in _DECIDED:
        return
    _DECIDED.add(os.getpid())
    import torch

    from precis_text.cores import default_threads

    torch.set_num_threads(min(default_threads(), torch.get_num_threads()) if count is None else count)


def follow_parent() -> None:
    """Ignore Ctrl-C, which the parent handles, and end this process with its parent, even if that is killed."""
    import signal
    import threading

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    import multiprocessing

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def peak_mib() -> float | None:
    """Return the most memory of this process in MiB; None if the system does not report it.

    Linux's `ru_maxrss` would include the process that started this one.
    """
    from pathlib import Path

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
    import ctypes

    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None


def trim_heap() -> None:
    """Return free memory to the system.

    glibc keeps the memory of an input's hidden states, in pieces that do not fit an input of another length, so a
    process grows with each input. A call takes a few milliseconds, or a tenth of a second to return a gigabyte.
    """
    if (trim := _trim()) is not None:
        trim(0)
