"""The conditions of a timing other than the code: the machine, its load, and the memory of a process."""

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
    """Return the processor, cores, versions, load and command line for the head of a report.

    Call it before any measurement: afterwards the load is our own. "kernel" says whether contenders have the C++
    kernel, which is built here if necessary, not during a measurement.
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
    """Return the commit of the working copy that precis is imported from, or None for an installed one.

    A changed working copy gets the suffix "-dirty".
    """
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
    """Read the lines of a file of /proc; return none where it does not exist (systems other than Linux)."""
    place = Path(path)
    return place.read_text().splitlines() if place.exists() else []


def busy_seconds() -> float | None:
    """Return the CPU seconds used by all processes, and the stolen ones; None if the system does not report them.

    Stolen time is what a virtual machine's host gave to others while a process was ready to run.
    """
    lines = _lines("/proc/stat")
    if not lines:
        return None
    user, nice, system, _idle, _waiting, interrupt, soft, stolen = (int(n) for n in lines[0].split()[1:9])
    return (user + nice + system + interrupt + soft + stolen) / _TICKS


def resident_mb(field: str) -> float | None:
    """Return a memory field of this process in MB (VmRSS: now, VmHWM: peak); None if the system does not report it."""
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
    """Clocks read together, to compute later how much of the machine other processes used."""

    wall: float
    own: float
    busy: float | None

    @classmethod
    def now(cls) -> "Moment":
        return cls(wall=time.perf_counter(), own=time.process_time(), busy=busy_seconds())

    def foreign_cpus(self) -> float | None:
        """Return the CPUs that other processes kept busy since then, on average.

        /proc/stat counts in steps of 10 ms.
        """
        later = Moment.now()
        if self.busy is None or later.busy is None or later.wall <= self.wall:
            return None
        others = (later.busy - self.busy) - (later.own - self.own)
        return max(0.0, others / (later.wall - self.wall))
