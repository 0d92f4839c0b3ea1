"""Scores of many runs as curves: over the layer that has the prefix (Figure 3) or the share of the data (4 and 8).

Figures 4 and 8 of "Discourse-Aware Prompt Design for Text Generation" are averages over tasks; seeds are repeated runs
of one task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from precis.config import nearest
from precis.errors import UserError


@final
@dataclass(frozen=True)
class Estimate:
    """A score with its interval, where one is known."""

    mean: float
    low: float | None = None
    high: float | None = None


@final
@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one run scored.

    Attributes:
        line: what it belongs to: a method.
        x: where it stands on the x-axis; None: it is a level to compare with, the same for all x.
        metrics: score by name.
        task: runs of different tasks are averaged; runs of the same are repetitions.
        name: for messages.
    """

    line: str
    x: float | None
    metrics: Mapping[str, Estimate]
    task: str = ""
    name: str = ""


@final
@dataclass(frozen=True)
class Point:
    """A point of a curve.

    Attributes:
        low, high: where there is one run of a task, its interval; of several, the lowest and the highest mean. Over
            tasks these are averaged like the mean. None: a single run without interval.
        runs: how many it is the mean of.
    """

    x: float | None
    mean: float
    low: float | None
    high: float | None
    runs: int


@final
@dataclass(frozen=True)
class Curve:
    """One line of one metric; its points from the left, a level (x is None) being a curve of its own."""

    line: str
    metric: str
    points: tuple[Point, ...]

    @property
    def is_level(self) -> bool:
        """Whether it is the same for all x."""
        return self.points[0].x is None


def curves(measured: Sequence[Measured], metric: str) -> tuple[Curve, ...]:
    """The lines of one metric, in the order in which they are met.

    Args:
        measured: runs, at least one.

    Raises:
        UserError: a run lacks the metric, or the points are averages of different tasks.
    """
    for run in measured:
        if metric not in run.metrics:
            raise UserError(f"{run.name}: has no score {metric!r}{nearest(metric, run.metrics)}")
    places: dict[tuple[str, bool], dict[float | None, list[Measured]]] = {}
    for run in measured:
        places.setdefault((run.line, run.x is None), {}).setdefault(run.x, []).append(run)
    _check_tasks(measured, places)
    return tuple(
        Curve(line, metric, tuple(_point(x, found[x], metric) for x in sorted(found, key=lambda x: x or 0.0)))
        for (line, _), found in places.items()
    )


def _check_tasks(
    measured: Sequence[Measured], places: Mapping[tuple[str, bool], Mapping[float | None, Sequence[Measured]]]
) -> None:
    """Every point has to average the same tasks, or a curve would show the tasks and not the method."""
    tasks = {run.task for run in measured}
    for (line, _), found in places.items():
        for x, runs in found.items():
            missing = tasks - {run.task for run in runs}
            if missing:
                where = line if x is None else f"{line} at {x:g}"
                raise UserError(
                    f"{where} has no run of {', '.join(sorted(missing)) or 'an unnamed task'}, which other points "
                    "average in; give that run too, or draw the tasks apart"
                )


def _point(x: float | None, runs: Sequence[Measured], metric: str) -> Point:
    by_task: dict[str, list[Estimate]] = {}
    for run in runs:
        by_task.setdefault(run.task, []).append(run.metrics[metric])
    parts = [_one_task(found) for found in by_task.values()]
    lows = [part.low for part in parts if part.low is not None]
    highs = [part.high for part in parts if part.high is not None]
    known = len(lows) == len(highs) == len(parts)
    return Point(
        x,
        mean=_mean([part.mean for part in parts]),
        low=_mean(lows) if known else None,
        high=_mean(highs) if known else None,
        runs=len(runs),
    )


def _one_task(found: Sequence[Estimate]) -> Estimate:
    if len(found) == 1:
        return found[0]
    means = [estimate.mean for estimate in found]
    return Estimate(_mean(means), min(means), max(means))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
