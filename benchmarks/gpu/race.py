"""Contenders in one process, in turn, each failing by itself: medians of rounds, peaks of memory."""

import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from benchmarks.compare.harness import rotated
from benchmarks.gpu.device import Device, Pass
from benchmarks.gpu.notes import Notes
from precis_text.errors import UserError

Build = Callable[[], Pass]

_WARM_UPS = 2
_TURN_MS = 60.0  # of passes in a turn, at least one
_MOST_PASSES = 40
_FEWEST_ROUNDS, _MOST_ROUNDS = 3, 11  # the fewest where there is time
_FAR = 0.05  # of the norm: farther than bf16 takes any way from another


class DeviceLostError(Exception):
    """The device does not answer this process any longer; another process must continue."""


@dataclass(frozen=True, kw_only=True)
class StageRun:
    """The arguments of a stage.

    Args:
        deadline: a value of `time.monotonic` after which nothing new starts.
        dry: toy sizes.
    """

    device: Device
    notes: Notes
    deadline: float
    dry: bool

    @property
    def left(self) -> float:
        """Seconds."""
        return self.deadline - time.monotonic()

    def attempt(self, cell: str, contender: str, work: Callable[[], dict[str, Any]]) -> None:
        """Do something once, unless a row says that it was done, and put down what it gives or why it failed.

        Raises:
            DeviceLostError: it took the device with it.
        """
        if self.notes.has(cell, contender):
            return
        if self.left <= 0:
            self.notes.add(cell, contender, left_out="no time was left")
            return
        with self.guarded(cell, contender):
            self.notes.add(cell, contender, **work())

    @contextmanager
    def guarded(self, cell: str, contender: str) -> Iterator[None]:
        """Turn errors in the block into the contender's row.

        Raises:
            DeviceLostError: the error also lost the device.
        """
        failed = True
        with self.notes.doing(cell, contender):
            try:
                yield
                self.device.synchronize()  # an error of a kernel shows where it is waited for
                failed = False
            except UserError as error:
                self.notes.add(cell, contender, left_out=str(error))
            except Exception as error:  # the others continue
                self.notes.add(cell, contender, failed=one_line(error))
        if failed:
            if self.device.is_lost():
                raise DeviceLostError
            self.device.clean()


def one_line(error: Exception) -> str:
    """Return the type and the first characters of the message on one line."""
    text = "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
    return f"{type(error).__name__}: {text[:300]}"


def race(
    cell: str,
    builds: Mapping[str, Build],
    run: StageRun,
    *,
    seconds: float,
    about: Mapping[str, Any],
    alike: Collection[str] = (),
) -> None:
    """Time contenders in turn, in another order each round, and put a row down for each.

    Args:
        cell: the rows' name; who has a row there already is passed over.
        builds: name -> what gives its pass. `UserError`: it is left out.
        seconds: for all rounds together, as far as the fewest rounds allow.
        about: goes into every row.
        alike: whose passes give the same tensor, within rounding: that of the first of them. Another one has failed.

    Raises:
        DeviceLostError: the one that failed took the device with it; nothing is known of the others then.
    """
    waiting = [name for name in builds if not run.notes.has(cell, name)]
    if run.left <= 0:
        for name in waiting:
            run.notes.add(cell, name, left_out="no time was left")
        return
    ready: dict[str, _Prepared] = {}
    expected: list[Tensor] = []
    for name in waiting:
        with run.guarded(cell, name):
            prepared = _prepare(builds[name], run)
            if name in alike:
                prepared.distance = _compared(prepared.one_pass, expected)
            ready[name] = prepared
    expected.clear()
    _rounds(cell, ready, run, seconds)
    for name, prepared in ready.items():
        if not run.notes.has(cell, name):
            run.notes.add(cell, name, **about, **prepared.row())
    ready.clear()
    run.device.clean()


@dataclass
class _Prepared:
    one_pass: Pass
    count: int
    peak_mb: float
    warm_up_seconds: float
    walls: list[float]
    distance: float | None = None

    def row(self) -> dict[str, Any]:
        middle, low, high = statistics.median(self.walls), min(self.walls), max(self.walls)
        return {
            "ms": middle,
            "ms_low": low,
            "ms_high": high,
            "rounds_ms": self.walls,
            "passes": self.count,
            "peak_mb": self.peak_mb,
            "warm_up_seconds": self.warm_up_seconds,
            **({} if self.distance is None else {"distance": self.distance}),
            "said": f"{middle:.3g} ms ({low:.3g}-{high:.3g}), {self.peak_mb:,.0f} MB",
        }


def _prepare(build: Build, run: StageRun) -> _Prepared:
    """Build a pass and warm it up: kernels compiled, memory allocated."""
    began = time.perf_counter()
    one_pass = build()
    for _ in range(_WARM_UPS):
        one_pass()
    run.device.synchronize()
    warm = time.perf_counter() - began
    peak = run.device.peak_mb(one_pass)
    once = run.device.time_ms(one_pass, 1)
    count = 1 if run.dry else min(_MOST_PASSES, max(1, int(_TURN_MS / max(once, 1e-3))))
    return _Prepared(one_pass, count, peak, warm, [])


def _compared(one_pass: Pass, expected: list[Tensor]) -> float:
    """Return how far a pass's values are from the first contender's, as a share of their norm.

    Raises:
        ValueError: farther than rounding explains.
    """
    found = one_pass()
    assert isinstance(found, Tensor)
    values = found.detach().float()
    if not expected:
        expected.append(values)
    distance = float((values - expected[0]).norm() / expected[0].norm())
    if not distance <= _FAR:  # NaN is far too
        raise ValueError(f"its values are {distance:.2g} of their norm away from the first contender's")
    return distance


def _rounds(cell: str, ready: dict[str, _Prepared], run: StageRun, seconds: float) -> None:
    """Take turns until the time is over; record a contender that fails, and drop its turns."""
    end = time.monotonic() + seconds
    most = 2 if run.dry else _MOST_ROUNDS
    for number in range(most):
        now = time.monotonic()
        if number and (now >= run.deadline or (number >= _FEWEST_ROUNDS and now >= end)):
            break
        for name in rotated([name for name in ready if not run.notes.has(cell, name)], number):
            with run.guarded(cell, name):
                ready[name].walls.append(run.device.time_ms(ready[name].one_pass, ready[name].count))
