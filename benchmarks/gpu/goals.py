"""The goals for an H100 or H200, and their verdicts.

A goal sets a lower bound for a figure: the other's time or memory over ours, or our share of the measured matmul peak.
The verdict is met or missed on an H100 or H200. On other cards, on the CPU, and without a figure, the goal waits, and
its row gives the reason.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.compare.comparisons import Ratio
from benchmarks.gpu import decoding, training
from benchmarks.gpu.notes import Row
from benchmarks.gpu.peers import FLASH, OURS, THEIRS
from benchmarks.gpu.speed import WAYS, cell

Stages = Mapping[str, Sequence[Row]]  # a stage's name -> its rows
CARDS = ("H100", "H200")

_LENGTHS = (512, 2048, 8192)
_TWICE_FROM = 2048
_LEVEL = 1 / 1.05  # not slower by more than 5%


class MissingError(Exception):
    """A figure is missing; the message gives the reason."""


@dataclass(frozen=True, kw_only=True)
class Goal:
    """Args:
    wanted: the least.
    figure: value, lowest, highest from all rows.
    """

    name: str
    wanted: float
    figure: Callable[[Stages], tuple[float, float, float]]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a goal.

    Args:
        ratio: None if the figure is missing.
        verdict: met, missed or waiting.
        why: the reason why it waits.
    """

    goal: Goal
    ratio: Ratio | None
    verdict: str
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        figures = None if self.ratio is None else [self.ratio.value, self.ratio.low, self.ratio.high]
        return {
            "goal": self.goal.name,
            "wanted": self.goal.wanted,
            "value_low_high": figures,
            "verdict": self.verdict,
            "why": self.why,
        }


def outcomes(stages: Stages, *, card: str | None, dry: bool) -> list[Outcome]:
    """Return the outcomes of all goals.

    Args:
        card: its name; None on the CPU.
    """
    if dry or card is None:
        reason = "a dry walk at toy sizes" if dry else "no card"
    else:
        reason = (
            ""
            if any(known in card for known in CARDS)
            else f"the goals are those of an H100 or H200, not {card}"
        )
    return [_outcome(goal, stages, reason) for goal in goals()]


def _outcome(goal: Goal, stages: Stages, reason: str) -> Outcome:
    try:
        value, low, high = goal.figure(stages)
    except MissingError as error:
        return Outcome(goal=goal, ratio=None, verdict="waiting", why=reason or str(error))
    ratio = Ratio(name=goal.name, value=value, low=low, high=high, cpu=None, rounds=1, goals=(goal.wanted,))
    return Outcome(goal=goal, ratio=ratio, verdict="waiting" if reason else ratio.verdict, why=reason)


def goals() -> list[Goal]:
    """List all goals, in the table's order."""
    return [*_of_attention(), *_of_memory(), _of_training(), *_of_decoding()]


def _of_attention() -> Iterator[Goal]:
    for what in WAYS:
        for length in _LENGTHS:
            name = cell(what, length)
            yield Goal(
                name=f"attention {name}: time of {FLASH} / ours",
                wanted=_LEVEL,
                figure=lambda s, name=name: times(s, "attention", name, FLASH, OURS),  # type: ignore[misc]
            )
            if length >= _TWICE_FROM:
                yield Goal(
                    name=f"attention {name}: time of {THEIRS} / ours",
                    wanted=2.0,
                    figure=lambda s, name=name: times(s, "attention", name, THEIRS, OURS),  # type: ignore[misc]
                )


def _of_memory() -> Iterator[Goal]:
    for what in WAYS:
        for length in _LENGTHS:
            name = cell(what, length)
            yield Goal(
                name=f"attention {name}: memory of {FLASH} / ours",
                wanted=1.0,
                figure=lambda s, name=name: memories(s, "attention", name, FLASH, OURS),  # type: ignore[misc]
            )


def _of_training() -> Goal:
    return Goal(
        name=f"training step of {training.RECIPE}, 64 x 512 tokens: share of the bf16 matmul peak",
        wanted=0.30,
        figure=share_of_peak,
    )


def _of_decoding() -> Iterator[Goal]:
    for beams in (1, 5):
        name = decoding.cell("bf16", 1, beams)
        yield Goal(
            name=f"decoding {name}: time of {decoding.BART} / ours",
            wanted=3.0,
            figure=lambda s, name=name: times(s, "decoding", name, decoding.BART, decoding.FAST),  # type: ignore[misc]
        )


def times(stages: Stages, stage: str, name: str, theirs: str, ours: str) -> tuple[float, float, float]:
    """Divide their milliseconds by ours, round by round, and return median, lowest and highest.

    Raises:
        MissingError: one of the two lacks a figure.
    """
    one, other = (row_of(stages, stage, name, contender)["rounds_ms"] for contender in (theirs, ours))
    ratios = [a / b for a, b in zip(one, other, strict=False)]
    return statistics.median(ratios), min(ratios), max(ratios)


def memories(stages: Stages, stage: str, name: str, theirs: str, ours: str) -> tuple[float, float, float]:
    """Divide their peak by ours.

    Raises:
        MissingError: one of the two lacks a figure.
    """
    one, other = (row_of(stages, stage, name, contender)["peak_mb"] for contender in (theirs, ours))
    ratio = one / max(other, 1e-9)
    return ratio, ratio, ratio


def share_of_peak(stages: Stages) -> tuple[float, float, float]:
    """Return the share of the peak of the joint step, as it is or compiled, whichever is faster.

    Raises:
        MissingError: no step or no peak was measured.
    """
    peak = row_of(stages, "machine", "peak of matrix products", "bf16")["tflops"]
    found, missing = [], []
    for contender in (training.EAGER, training.COMPILED):
        try:
            row = row_of(stages, "training", training.JOINT, contender)
        except MissingError as error:
            missing.append(str(error))
            continue
        shares = [row["flops"] / ms / 1e9 / peak for ms in row["rounds_ms"]]
        found.append((statistics.median(shares), min(shares), max(shares)))
    if not found:
        raise MissingError(missing[0])
    return max(found)


def row_of(stages: Stages, stage: str, name: str, contender: str) -> Row:
    """Return a contender's figures.

    Raises:
        MissingError: it lacks them; the message says why.
    """
    for row in stages.get(stage, ()):
        if (row["cell"], row["contender"]) == (name, contender):
            reason = row.get("failed") or row.get("left_out")
            if reason:
                raise MissingError(f"{contender}: {reason}")
            return row
    raise MissingError(f"stage {stage} lacks a figure of {contender}")
