"""The head and the last line of every command in `faults`."""

import os
import platform
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_TOLD = 20


def header(what: str, *, seed: int | None = None) -> None:
    """Print what is tried, on which machine, from which commit, and with which seed."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=_ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    print(what)
    print(f"machine: {_processor()}, {os.cpu_count()} cores; Python {platform.python_version()}")
    print(f"commit: {commit or 'not known'}" + ("" if seed is None else f"; seed: {seed}"), flush=True)


@dataclass
class Tally:
    """A count of trials, and a line for each that did not hold."""

    tried: int = 0
    failures: list[str] = field(default_factory=list)

    def hold(self, holds: bool, otherwise: str) -> None:
        """Count one trial; `otherwise` says what was tried and what happened instead."""
        self.tried += 1
        if not holds:
            self.failures.append(otherwise)
            print(f"  not so: {otherwise}", flush=True)


def verdict(figure: str, tally: Tally) -> int:
    """Print the figure as the last line; the exit code is 1 if a single trial failed."""
    for failure in tally.failures[:_TOLD]:
        print(f"failed: {failure}")
    print(f"{figure}: {tally.tried} tried, {len(tally.failures)} failed", flush=True)
    return int(bool(tally.failures) or tally.tried == 0)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or sys.platform
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "not known"
    )
