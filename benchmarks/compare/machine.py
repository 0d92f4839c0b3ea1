"""What a timing depends on beside the code: the machine, its load, and the memory of a process."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from precis.nn.disentangled.cpp_loader import COMPILE, Wish, is_ready
from precis.version import __version__

_TICKS = os.sysconf("SC_CLK_TCK")


def describe() -> dict[str, Any]:
    """Processor, cores, versions, load, and how the command was called, for the head of a report.

    Call it before anything is measured: afterwards the load is our own. "kernel" says whether contenders have the C++
    kernel, which is built here if need be and not in the middle of a measurement.
    """
    import torch
    import transformers

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        "precis": __version__,
        "commit": _commit(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        **{package: _version(package) for package in ("ctranslate2", "peft")},
        COMPILE: os.environ.get(COMPILE),
        "kernel": is_ready("disentangled", Wish.where_possible),
        "command": shlex.join(["python", "-m", "benchmarks.compare", *sys.argv[1:]]),
        "load": round(os.getloadavg()[0], 2),
        "date": time.strftime("%Y-%m-%d %H:%M"),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Of the working copy that precis is imported from, "-dirty" where it was changed; None for an installed one."""
    root = Path(__file__).parents[3]
    if not (root / ".git").exists() or shutil.which("git") is None:
        return None
    asked = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _lines(path: str) -> list[str]:
    """A file of /proc, or nothing where there is no such file (other systems than Linux)."""
    place = Path(path)
    return place.read_text().splitlines() if place.exists() else []


def busy_seconds() -> float | None:
    """CPU seconds that all processes have used, and those stolen; None where the system does not say.

    Stolen time is what a virtual machine's host gave to others while a process wanted it.
    """
    lines = _lines("/proc/stat")
    if not lines:
        return None
    user, nice, system, _idle, _waiting, interrupt, soft, stolen = (int(n) for n in lines[0].split()[1:9])
    return (user + nice + system + interrupt + soft + stolen) / _TICKS


def resident_mb(field: str) -> float | None:
    """A memory line of this process in MB: VmRSS is now, VmHWM the peak; None where the system does not say."""
    for line in _lines("/proc/self/status"):
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return None


def reset_peak() -> None:
    """Make VmHWM start again from what is resident now (Linux)."""
    place = Path("/proc/self/clear_refs")
    if place.exists():
        place.write_text("5")


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Clocks read together, to see afterwards how much of the machine somebody else used."""

    wall: float
    own: float
    busy: float | None

    @classmethod
    def now(cls) -> "Moment":
        return cls(wall=time.perf_counter(), own=time.process_time(), busy=busy_seconds())

    def foreign_cpus(self) -> float | None:
        """CPUs that other processes kept busy since then, on average. /proc/stat counts in steps of 10 ms."""
        later = Moment.now()
        if self.busy is None or later.busy is None or later.wall <= self.wall:
            return None
        others = (later.busy - self.busy) - (later.own - self.own)
        return max(0.0, others / (later.wall - self.wall))
