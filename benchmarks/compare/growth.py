"""Growth of time and memory with the length: exponents, and the cost of another token compared with a peer's."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.compare.comparisons import Bench, Figure, LongCells, size_of
from benchmarks.compare.results import Measured, Results


@dataclass(frozen=True, kw_only=True)
class Growth:
    """The growth of a contender's figure with the tokens: y ~ tokens ** exponent, by least squares of logarithms."""

    contender: str
    figure: Figure
    exponent: float
    first: int
    last: int

    def __str__(self) -> str:
        return (
            f"{self.contender}: {self.figure} grows as tokens^{self.exponent:.2f} "
            f"({self.first} to {self.last} tokens)"
        )


@dataclass(frozen=True, kw_only=True)
class MarginalCost:
    """Seconds that the tokens between two lengths cost us, over those that they cost another (1: the same)."""

    cells: LongCells
    ours: str
    ratio: float

    def __str__(self) -> str:
        return (
            f"{self.ours}: a token more costs {self.ratio:.2f} times the time of {self.cells.theirs} "
            f"({self.cells.shorter} to {self.cells.longer})"
        )


def growths(bench: Bench, results: Results) -> list[Growth]:
    """Fit exponents of time and of tensors' memory over the cells of one document, for three lengths or more.

    The first fit covers all lengths, the second one those from `bench.long.fitted_from` on.
    """
    cells = {
        cell.name: int(cell.arguments["tokens"])
        for cell in bench.cells
        if cell.arguments.get("batch", 1) == 1
        and not cell.arguments.get("backward")
        and cell.arguments.get("tokens") is not None
    }
    starts = [0] if bench.long is None else [0, bench.long.fitted_from]
    found = []
    for contender in bench.contenders:
        measured = [
            (n, m) for name, n in cells.items() if (m := results.of(name, contender.name)) is not None
        ]
        for start in starts:
            part = [(n, m) for n, m in measured if n >= start]
            if start == 0 or len(part) < len(measured):
                found += _fitted(contender.name, part)
    return found


def _fitted(contender: str, measured: Sequence[tuple[int, Measured]]) -> list[Growth]:
    found = []
    for figure in (Figure.time, Figure.tensors):
        points = [(n, y) for n, m in measured if (y := _figure(m, figure)) is not None and y > 0]
        if len(points) >= 3:
            found.append(
                Growth(
                    contender=contender,
                    figure=figure,
                    exponent=_slope(points),
                    first=points[0][0],
                    last=points[-1][0],
                )
            )
    return found


def marginal_costs(bench: Bench, results: Results) -> list[MarginalCost]:
    """Compute the marginal costs of `bench.long` for each of our contenders that was measured at both lengths."""
    cells = bench.long
    if cells is None:
        return []
    found = []
    theirs = _more_seconds(cells, cells.theirs, results)
    for ours in cells.ours:
        seconds = _more_seconds(cells, ours, results)
        if seconds is not None and theirs is not None and theirs > 0:
            found.append(MarginalCost(cells=cells, ours=ours, ratio=seconds / theirs))
    return found


def _more_seconds(cells: LongCells, contender: str, results: Results) -> float | None:
    short, long = results.of(cells.shorter, contender), results.of(cells.longer, contender)
    return None if short is None or long is None else _seconds(long) - _seconds(short)


def _figure(measured: Measured, figure: Figure) -> float | None:
    return _seconds(measured) if figure is Figure.time else size_of(measured, figure)


def _seconds(measured: Measured) -> float:
    return statistics.median(sample.wall for sample in measured.samples)


def _slope(points: Sequence[tuple[float, float]]) -> float:
    logs = [(math.log(x), math.log(y)) for x, y in points]
    return statistics.linear_regression(*zip(*logs, strict=True)).slope
