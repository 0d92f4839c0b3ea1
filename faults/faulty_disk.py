"""A disk that fails as a plan says: everything that Python writes below a folder is an event with a number.

A write is an event, and so is each operation of `forked.DISK_OPERATIONS`. The plan names the fault of one event:

    kill        SIGKILL before the event
    torn        a write stores half of its bytes, an operation is done; then SIGKILL
    short       a write stores half of its bytes and says so
    full        from here on the disk is full (ENOSPC)
    broken      the event fails once with EIO
    replaced    another program puts a copy in the place of the journal
    deleted     another program deletes the journal

Libraries that write by themselves (safetensors, tokenizers) are seen by the operations before and after.
"""

import errno
import io
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults import forked

KINDS = ("kill", "torn", "short", "full", "broken", "replaced", "deleted")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault at one event of a command.

    Attributes:
        event: its number, from 1; with a number that the command never reaches, nothing happens.
        journal: a pattern of the file that grows below the folder; without one nothing is replaced or deleted.
        clock: the seed of the clock, which jumps at each event.
    """

    kind: str
    event: int
    journal: str = ""
    clock: int = 0

    def prepare(self, folder: Path) -> Callable[[], Callable[[], int]]:
        """Return what `forked.run` calls in the child: the disk and the clock fail from then on."""

        def prepare() -> Callable[[], int]:
            disk = _Disk(self, folder)
            disk.begin()
            return lambda: disk.events

        return prepare


NONE = Fault(kind="none", event=0)


class _Disk:
    """The state of a faulty disk in a child."""

    def __init__(self, fault: Fault, folder: Path) -> None:
        self.events = 0
        self._fault, self._folder = fault, folder
        self._is_full = False
        self._random = random.Random(fault.clock)
        self._shift = {"time": 0.0, "monotonic": 0.0}
        self._remove, self._replace = os.unlink, os.replace

    def begin(self) -> None:
        """Replace the operations of `os`, `open` and the clock in this process."""
        for name in forked.DISK_OPERATIONS:
            setattr(os, name, self._operation(getattr(os, name)))
        forked.open_through(self._raw(), self._folder)
        if self._fault.clock:
            self._replace_clock()

    def _operation(self, usual: Callable[..., Any]) -> Callable[..., Any]:
        def perform(*arguments: Any, **options: Any) -> Any:
            kind = self._next()
            if kind == "broken":
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            done = usual(*arguments, **options)
            if kind == "torn":
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return perform

    def _raw(self) -> type[io.FileIO]:
        disk = self

        class Raw(io.FileIO):
            def write(self, data: Any) -> int:
                return disk.write(super().write, memoryview(data).cast("B"))

        return Raw

    def write(self, usual: Callable[[memoryview], int | None], data: memoryview) -> int:
        """Write as the fault of this event says."""
        kind = self._next()
        if self._is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if kind == "broken":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if kind in ("torn", "short"):
            written = int(usual(data[: len(data) // 2]) or 0)
            if kind == "torn":
                os.kill(os.getpid(), signal.SIGKILL)
            return written
        return int(usual(data) or 0)

    def _next(self) -> str:
        """Count an event, move the clock, and return the kind of fault that the event itself must carry out."""
        self.events += 1
        self._shift["time"] += self._random.choice((0.0, 0.0, 1e-3, 3600.0, -86_400.0))
        self._shift["monotonic"] += self._random.choice((0.0, 0.0, 1e-3, 7200.0))
        if self.events != self._fault.event:
            return ""
        kind = self._fault.kind
        if kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        self._is_full = kind == "full"
        if kind in ("replaced", "deleted"):
            self._interfere(kind)
        return kind

    def _interfere(self, kind: str) -> None:
        for file in sorted(self._folder.glob(self._fault.journal)) if self._fault.journal else ():
            if kind == "deleted":
                self._remove(file)
                continue
            shutil.copyfile(file, other := file.with_name("written by another program"))
            self._replace(other, file)

    def _replace_clock(self) -> None:
        for name, shift in (("time", "time"), ("monotonic", "monotonic"), ("perf_counter", "monotonic")):
            usual = getattr(time, name)
            setattr(time, name, lambda usual=usual, shift=shift: usual() + self._shift[shift])


def drawn(rng: random.Random, *, events: int, journal: str) -> Fault:
    """Draw a fault among the first `events` events of a command; the other program needs a journal."""
    kinds = KINDS if journal else KINDS[:5]
    return Fault(
        kind=rng.choice(kinds),
        event=rng.randint(1, max(1, events)),
        journal=journal,
        clock=rng.randint(1, 2**31),
    )
