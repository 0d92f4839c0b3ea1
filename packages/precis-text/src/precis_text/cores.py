"""The number of cores that this process may use, by its affinity and its control groups.

Linux limits processor time by a quota for each period. A process with a quota of two cores on a machine of many is
stopped for the rest of each period if it runs more than two threads.

    version 2   sys/fs/cgroup/PATH/cpu.max               "200000 100000", or "max 100000" without a limit
    version 1   sys/fs/cgroup/cpu,cpuacct/PATH/cpu.cfs_quota_us and cpu.cfs_period_us; -1 without a limit

The smallest quota on the way from the group of the process to the root of the tree applies. In a container the path can
be that of the host, which is not visible; then the root of the tree is the group of the container.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import floor
from pathlib import Path, PurePosixPath

_GROUPS = "sys/fs/cgroup"
_SAID = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
)  # threads; OpenMP's can have a number for each level of nesting


def default_threads() -> int:
    """Return the number of threads for a process if the user gives none, at least 1.

    `OMP_NUM_THREADS` or `MKL_NUM_THREADS` gives it. A process that Python's multiprocessing started gets one, since its
    pool has more processes. Others get the available cores.
    """
    for name in _SAID:
        first = os.environ.get(name, "").split(",")[0].strip()
        if first.isdecimal() and int(first):
            return int(first)
    import multiprocessing  # its import would take longer than that of the rest

    return 1 if multiprocessing.parent_process() is not None else available_cores()


def available_cores(root: Path = Path("/")) -> int:
    """Return the number of whole cores that this process may use, at least 1.

    Args:
        root: the folder that holds `proc` and `sys`.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = core_quota(root)
    return cores if allowed is None else max(1, min(cores, floor(allowed)))


def core_quota(root: Path = Path("/")) -> float | None:
    """Return the processor time that the control groups allow, in cores; None without a limit.

    Args:
        root: the folder that holds `proc` and `sys`.
    """
    quotas = [quota for group in _groups(root) if (quota := _quota(group)) is not None]
    return min(quotas, default=None)


def _groups(root: Path) -> Iterator[Path]:
    """Yield the folders of the groups of this process that can limit its processor time."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if not controllers:  # of version 2
            trees = [root / _GROUPS]
        elif "cpu" in controllers.split(","):
            trees = [root / _GROUPS / name for name in {controllers, "cpu"}]
        else:
            continue
        inside = PurePosixPath(path.lstrip("/"))
        if ".." not in inside.parts:
            yield from (tree / part for tree in trees for part in (inside, *inside.parents))


def _quota(group: Path) -> float | None:
    """Return a group's own limit in cores; None without one."""
    words = _text(group / "cpu.max").split()
    if not words:
        words = [*_text(group / "cpu.cfs_quota_us").split(), *_text(group / "cpu.cfs_period_us").split()]
    try:
        quota, period = map(int, words)
    except ValueError:  # "max", or no such file
        return None
    return quota / period if quota > 0 and period > 0 else None


def _text(file: Path) -> str:
    """Return what a small file of the system says; nothing if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
