"""The measured figures of a benchmark, and the contenders that were left out or failed."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.compare.contenders import BenchSettings


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One turn: seconds of a pass on the wall and of CPU, passes, and CPUs that others used (None: unknown)."""

    wall: float
    cpu: float
    passes: int
    foreign: float | None

    def is_loaded(self, quiet: float) -> bool:
        """Test whether others used more than `quiet` CPUs meanwhile; True too if the system does not report it."""
        return self.foreign is None or self.foreign > quiet


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Peaks of one pass in MB (None: the system does not say, or torch does not see the tensors)."""

    process_mb: float | None
    added_mb: float | None
    tensors_mb: float | None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A contender in a cell: a sample for each round, in order, so that rounds can be paired across contenders."""

    cell: str
    contender: str
    samples: tuple[Sample, ...]
    memory: Memory | None


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A contender that broke in a cell: the error, and the last lines that its process wrote."""

    contender: str
    cell: str
    error: str
    log: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.contender}, {self.cell}: {self.error}"


@dataclass(frozen=True, kw_only=True)
class Results:
    """All that was measured; what was left out: (contender, cell or "", reason); what failed."""

    settings: BenchSettings
    measured: tuple[Measured, ...]
    left_out: tuple[tuple[str, str, str], ...]
    failed: tuple[Failure, ...] = ()

    def of(self, cell: str, contender: str) -> Measured | None:
        """Return a contender's measurements in a cell; None if it was left out or failed."""
        found = (m for m in self.measured if m.cell == cell and m.contender == contender)
        return next(found, None)
