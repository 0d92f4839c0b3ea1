"""What a benchmark compares, and the ratios that come out.

A ratio is the other's figure over ours: above 1 we are faster or smaller. Times are compared round by round, so that
a ratio has a spread: the median of the rounds, the lowest and the highest.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from precis.bench.harness import BenchSettings, Cell, Contender, Measured, Results


class Figure(StrEnum):
    """What is compared."""

    time = "time"  # wall seconds of a pass
    tensors = "tensors"  # peak MB of tensors
    process = "process"  # peak MB of the process above what it held before
    peak = "peak"  # peak MB of the whole process: weights, moments and libraries too


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Our contender against another in one cell.

    Args:
        goal: the ratio that is wanted; None where it is for information.
    """

    cell: str
    theirs: str
    ours: str = "precis"
    figure: Figure = Figure.time
    goal: float | None = None

    @property
    def name(self) -> str:
        """Unique within a benchmark; the key in a baseline."""
        return f"{self.cell}: {self.figure} of {self.theirs} / {self.ours}"


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A benchmark: who takes part, in what, and what is compared."""

    name: str
    contenders: Sequence[Contender]
    cells: Sequence[Cell]
    comparisons: Sequence[Comparison]
    settings: BenchSettings


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A comparison's result. `cpu` is the same ratio of CPU seconds (times only), which load disturbs less."""

    name: str
    value: float
    low: float
    high: float
    cpu: float | None
    goal: float | None

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without one."""
        return None if self.goal is None else self.value >= self.goal

    def to_json(self) -> dict[str, Any]:
        """JSON-ready values, rounded to four digits."""
        numbers = {
            "ratio": self.value,
            "low": self.low,
            "high": self.high,
            "cpu": self.cpu,
            "goal": self.goal,
        }
        rounded = {k: None if v is None else float(f"{v:.4g}") for k, v in numbers.items()}
        return {"name": self.name, **rounded}


def ratios(bench: Bench, results: Results) -> list[Ratio]:
    """Every comparison whose two sides were measured."""
    found = []
    for comparison in bench.comparisons:
        ours = results.of(comparison.cell, comparison.ours)
        theirs = results.of(comparison.cell, comparison.theirs)
        if ours is not None and theirs is not None:
            ratio = _ratio(comparison, ours, theirs)
            if ratio is not None:
                found.append(ratio)
    return found


def _ratio(comparison: Comparison, ours: Measured, theirs: Measured) -> Ratio | None:
    if comparison.figure is Figure.time:
        pairs = list(zip(ours.samples, theirs.samples, strict=True))
        by_round = [their.wall / our.wall for our, their in pairs]
        cpu = statistics.median(their.cpu / our.cpu for our, their in pairs if our.cpu > 0)
        return Ratio(
            name=comparison.name,
            value=statistics.median(by_round),
            low=min(by_round),
            high=max(by_round),
            cpu=cpu,
            goal=comparison.goal,
        )
    sizes = [_size(m, comparison.figure) for m in (ours, theirs)]
    if sizes[0] is None or sizes[1] is None or sizes[0] <= 0.0:
        return None
    value = sizes[1] / sizes[0]
    return Ratio(name=comparison.name, value=value, low=value, high=value, cpu=None, goal=comparison.goal)


def _size(measured: Measured, figure: Figure) -> float | None:
    if measured.memory is None:
        return None
    memory = measured.memory
    sizes = {
        Figure.tensors: memory.tensors_mb,
        Figure.process: memory.added_mb,
        Figure.peak: memory.process_mb,
    }
    return sizes[figure]


@dataclass(frozen=True, kw_only=True)
class Growth:
    """How a contender's figures grow with the tokens: y ~ tokens ** exponent, fitted by least squares of logarithms."""

    contender: str
    figure: Figure
    exponent: float
    first: int
    last: int


def growths(bench: Bench, results: Results) -> list[Growth]:
    """Exponents of time and of tensors' memory over cells of one document, where there are three lengths or more."""
    found = []
    cells = {
        cell.name: int(cell.arguments["tokens"])
        for cell in bench.cells
        if cell.arguments.get("batch", 1) == 1
        and not cell.arguments.get("backward")
        and cell.arguments.get("tokens") is not None
    }
    for contender in bench.contenders:
        measured = [m for name in cells if (m := results.of(name, contender.name)) is not None]
        for figure in (Figure.time, Figure.tensors):
            points = [(cells[m.cell], y) for m in measured if (y := _figure(m, figure)) is not None and y > 0]
            if len(points) >= 3:
                found.append(
                    Growth(
                        contender=contender.name,
                        figure=figure,
                        exponent=_slope(points),
                        first=points[0][0],
                        last=points[-1][0],
                    )
                )
    return found


def _figure(measured: Measured, figure: Figure) -> float | None:
    if figure is Figure.time:
        return statistics.median(sample.wall for sample in measured.samples)
    return _size(measured, figure)


def _slope(points: Sequence[tuple[float, float]]) -> float:
    logs = [(math.log(x), math.log(y)) for x, y in points]
    return statistics.linear_regression(*zip(*logs, strict=True)).slope
