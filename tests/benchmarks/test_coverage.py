"""The simulation of verdicts fails if intervals hold the truth too seldom, or so often that they say too little."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.judging import coverage


def code_of(monkeypatch: pytest.MonkeyPatch, *, repetitions: int, verdicts: int = 600) -> int:
    asked = ["coverage", "--repetitions", str(repetitions), "--verdicts", str(verdicts)]
    monkeypatch.setattr(sys, "argv", asked)
    return coverage.main()


def scaled(measure: Callable[..., Any], width: float) -> Callable[..., Any]:
    """The same intervals, so many times as wide."""

    def change(found: Any) -> Any:
        middle, half = (found.low + found.high) / 2, (found.high - found.low) / 2
        return replace(found, low=middle - width * half, high=middle + width * half)

    def measured(*arguments: Any, **options: Any) -> Any:
        found = measure(*arguments, **options)
        return (
            {name: change(one) for name, one in found.items()} if isinstance(found, dict) else change(found)
        )

    return measured


@pytest.mark.parametrize("measure", ["win_rate", "strengths"])
@pytest.mark.parametrize(("width", "repetitions", "code"), [(1.0, 40, 0), (0.3, 40, 1), (5.0, 130, 1)])
def test_intervals_that_are_too_narrow_or_too_wide_fail(
    measure: str, width: float, repetitions: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coverage, "WORLDS", coverage.WORLDS[1:2])
    monkeypatch.setattr(coverage, measure, scaled(getattr(coverage, measure), width))
    assert code_of(monkeypatch, repetitions=repetitions) == code


@pytest.mark.parametrize("place", range(6))
def test_a_single_world_that_is_not_covered_fails(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def covered(world: coverage.World, *_: Any) -> tuple[bool, bool]:
        return world.name != coverage.WORLDS[place].name, True

    assert len(coverage.WORLDS) == 6
    monkeypatch.setattr(coverage, "covered", lambda *_: (True, True))
    assert code_of(monkeypatch, repetitions=20) == 0
    monkeypatch.setattr(coverage, "covered", covered)
    assert code_of(monkeypatch, repetitions=20) == 1


@pytest.mark.parametrize(
    ("hits", "tried", "code"), [(87, 100, 1), (88, 100, 0), (100, 100, 0), (198, 200, 0), (199, 200, 1)]
)
def test_a_share_fails_that_is_certainly_below_93_or_above_97_percent(
    hits: int, tried: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exact intervals of 87 and 88 of 100 end at 92.9% and 93.6%; of 198 and 199 of 200 they begin at 96.4, 97%."""
    held = iter([*(number < hits for number in range(tried))] * 6)
    monkeypatch.setattr(coverage, "covered", lambda *_: (next(held),) * 2)
    assert code_of(monkeypatch, repetitions=tried) == code


def test_the_truth_is_the_share_that_many_documents_and_judges_give() -> None:
    world = coverage.World("many", 0.405, 1.0, 0.3, 0.2, 1000)
    votes = coverage.simulated(world, 2_000_000, np.random.default_rng(0))
    assert float(votes.first_won.mean()) == pytest.approx(coverage.true_rate(world), abs=0.015)
    assert float((votes.first_won == 0.5).mean()) == pytest.approx(world.ties, abs=0.001)
