"""Processes that only spin, as load while a contender is timed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

_TICKS = os.sysconf("SC_CLK_TCK")


class Neighbours:
    """Spinning processes, from entry to exit.

    Args:
        count: number of processes.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        words = [sys.executable, "-I", "-S", "-c", "print(flush=True)\nwhile True: pass"]
        for _ in range(self._count):
            self._processes.append(subprocess.Popen(words, stdout=subprocess.PIPE))
        for process in self._processes:
            assert process.stdout is not None
            process.stdout.readline()  # it spins from here on
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.communicate()
        self._processes.clear()

    def cpu_seconds(self) -> float:
        """Return the CPU seconds that they have used; 0 where the system does not say."""
        return sum(_cpu_seconds(process.pid) for process in self._processes)


def _cpu_seconds(process: int) -> float:
    file = Path(f"/proc/{process}/stat")
    if not file.exists():
        return 0.0
    user, system = file.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / _TICKS
