"""The comparisons of a benchmark, and the ratios that result.

A ratio is the other's figure over ours: above 1 we are faster or smaller. Times are compared round by round, so that a
ratio has a spread: the median of the rounds, the lowest and the highest.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from benchmarks.compare.contenders import BenchSettings, Cell, Contender
from benchmarks.compare.results import Measured, Results


class Figure(StrEnum):
    """A measured quantity to compare."""

    time = "time"  # wall seconds of a pass
    cpu = "CPU time"  # CPU seconds of a pass, of all threads
    tensors = "tensors"  # peak MB of tensors
    process = "process"  # peak MB of the process above what it held before
    peak = "peak"  # peak MB of the whole process: weights, moments and libraries too


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Our contender against another in one cell.

    Args:
        goal: the required ratio; None if the comparison is for information.
        further_goal: a higher goal.
        alone: a cell whose time divides that of `cell` first, round by round; slowdowns are compared then.
    """

    cell: str
    theirs: str
    ours: str = "precis"
    figure: Figure = Figure.time
    goal: float | None = None
    further_goal: float | None = None
    alone: str | None = None

    @property
    def name(self) -> str:
        """Unique within a benchmark; the key in a baseline."""
        figure = self.figure.value if self.alone is None else "slowdown"
        return f"{self.cell}: {figure} of {self.theirs} / {self.ours}"

    @property
    def goals(self) -> tuple[float, ...]:
        """From the lower one to the higher."""
        return tuple(goal for goal in (self.goal, self.further_goal) if goal is not None)


@dataclass(frozen=True, kw_only=True)
class LongCells:
    """The cells for growth: exponents from a length on, and the cost of the tokens between two cells."""

    fitted_from: int
    shorter: str
    longer: str
    ours: tuple[str, ...]
    theirs: str


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A benchmark: who takes part, in what, and what is compared."""

    name: str
    contenders: Sequence[Contender]
    cells: Sequence[Cell]
    comparisons: Sequence[Comparison]
    settings: BenchSettings
    long: LongCells | None = None


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A comparison's result.

    Args:
        cpu: the same ratio of CPU seconds, which load disturbs less; None for memory.
        rounds: number of rounds of a time; 0 for memory.
        loaded: rounds in which one of the two samples was taken under other load.
        goals: goals for `value`, from the lower to the higher; empty if the ratio is for information.
    """

    name: str
    value: float
    low: float
    high: float
    cpu: float | None
    rounds: int = 0
    loaded: int = 0
    goals: tuple[float, ...] = ()

    @property
    def verdict(self) -> str:
        """The verdict on the goals; "loaded" for a time if most rounds were loaded."""
        if not self.goals:
            return ""
        if 2 * self.loaded > self.rounds:
            return "loaded"
        words = ["met" if self.value >= goal else "missed" for goal in self.goals]
        if len(set(words)) == 1:
            return words[0]
        return ", ".join(f"{goal:g} {word}" for goal, word in zip(self.goals, words, strict=True))

    def to_json(self) -> dict[str, Any]:
        """Return JSON-ready values, rounded to four digits."""
        numbers = {"ratio": self.value, "low": self.low, "high": self.high, "cpu": self.cpu}
        rounded = {k: None if v is None else float(f"{v:.4g}") for k, v in numbers.items()}
        counts = {"rounds": self.rounds, "loaded": self.loaded}
        return {
            "name": self.name,
            **rounded,
            **counts,
            "goals": [float(f"{goal:.4g}") for goal in self.goals],
            "verdict": self.verdict,
        }


def ratios(bench: Bench, results: Results) -> list[Ratio]:
    """Compute the ratio of every comparison whose two sides were measured."""
    found = []
    for comparison in bench.comparisons:
        ours = results.of(comparison.cell, comparison.ours)
        theirs = results.of(comparison.cell, comparison.theirs)
        if ours is not None and theirs is not None:
            if comparison.figure in (Figure.time, Figure.cpu):
                found.append(_of_times(comparison, ours, theirs, results))
            else:
                found += _of_sizes(comparison, ours, theirs)
    return found


def _of_times(comparison: Comparison, ours: Measured, theirs: Measured, results: Results) -> Ratio:
    pairs, quiet = list(zip(ours.samples, theirs.samples, strict=True)), results.settings.quiet
    if comparison.figure is Figure.cpu:
        by_round = [their.cpu / our.cpu for our, their in pairs]
    else:
        by_round = [their.wall / our.wall for our, their in pairs]
    if comparison.alone is not None:
        by_round = [
            beside / alone for beside, alone in zip(by_round, _alone(comparison, results), strict=True)
        ]
    cpu = [their.cpu / our.cpu for our, their in pairs if our.cpu > 0]
    return Ratio(
        name=comparison.name,
        value=statistics.median(by_round),
        low=min(by_round),
        high=max(by_round),
        cpu=statistics.median(cpu) if cpu else None,
        rounds=len(pairs),
        loaded=sum(our.is_loaded(quiet) or their.is_loaded(quiet) for our, their in pairs),
        goals=comparison.goals,
    )


def _alone(comparison: Comparison, results: Results) -> list[float]:
    """Return the ratios of the rounds in the cell that slowdowns are measured from."""
    assert comparison.alone is not None
    ours, theirs = (results.of(comparison.alone, name) for name in (comparison.ours, comparison.theirs))
    assert ours is not None  # a cell's rows are measured together
    assert theirs is not None
    return [their.wall / our.wall for our, their in zip(ours.samples, theirs.samples, strict=True)]


def _of_sizes(comparison: Comparison, ours: Measured, theirs: Measured) -> list[Ratio]:
    """Return one ratio, or none if a side lacks the figure."""
    our, their = (size_of(measured, comparison.figure) for measured in (ours, theirs))
    if our is None or their is None or our <= 0.0:
        return []
    value = their / our
    return [Ratio(name=comparison.name, value=value, low=value, high=value, cpu=None, goals=comparison.goals)]


def size_of(measured: Measured, figure: Figure) -> float | None:
    """Return a contender's peak in MB; None if it was not measured."""
    if measured.memory is None:
        return None
    memory = measured.memory
    sizes = {
        Figure.tensors: memory.tensors_mb,
        Figure.process: memory.added_mb,
        Figure.peak: memory.process_mb,
    }
    return sizes[figure]
