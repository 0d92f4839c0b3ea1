"""The learning rate is a pure function of the step; one that stays lets a run be of any length."""

import math
from pathlib import Path
from typing import Any

import pytest

from precis.recipes.overrides import with_overrides
from precis.training import TrainSettings
from precis.training.schedule import LinearDecay, StableThenDecay, learning_rate_at
from precis_text.errors import UserError
from tests.training import tiny


@pytest.mark.parametrize(
    ("step", "rate"), [(0, 0.25), (1, 0.5), (3, 1.0), (4, 1.0), (5, 0.9), (9, 0.5), (13, 0.1), (14, 0.0)]
)
def test_the_rate_rises_to_its_peak_in_the_warm_up_and_then_falls_linearly_to_zero(
    step: int, rate: float
) -> None:
    assert learning_rate_at(step, peak=1.0, warmup_steps=4, total_steps=14) == pytest.approx(rate)


def test_without_warm_up_the_first_step_has_the_peak_rate() -> None:
    assert learning_rate_at(0, peak=2.0, warmup_steps=0, total_steps=10) == 2.0


def test_a_stable_rate_stays_at_its_peak_and_falls_by_the_root_in_its_last_steps() -> None:
    stable = StableThenDecay(decay_steps=4)
    rates = [
        learning_rate_at(step, peak=2.0, warmup_steps=2, total_steps=10, schedule=stable)
        for step in range(11)
    ]
    root = [2 * (1 - math.sqrt(part / 4)) for part in (1, 2, 3, 4)]
    assert rates == pytest.approx([1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, *root])


def test_a_fall_that_is_longer_than_the_run_begins_after_the_warm_up() -> None:
    stable = StableThenDecay(decay_steps=100)
    rates = [
        learning_rate_at(step, peak=1.0, warmup_steps=2, total_steps=6, schedule=stable) for step in range(6)
    ]
    assert rates == pytest.approx([0.5, 1.0, 1.0, *(1 - math.sqrt(part / 4) for part in (1, 2, 3))])


def test_a_schedule_is_named_with_set_and_what_is_no_schedule_is_refused() -> None:
    settings = with_overrides(TrainSettings(steps=9), ["schedule=stable", "schedule.decay_steps=3"])
    assert settings.schedule == StableThenDecay(decay_steps=3)
    assert with_overrides(settings, ["schedule=linear"]).schedule == LinearDecay()
    with pytest.raises(UserError, match="schedule=stabel: unknown schedule; did you mean 'stable'"):
        with_overrides(settings, ["schedule=stabel"])
    with pytest.raises(UserError, match=r"schedule.decay_steps=-1 is too small"):
        with_overrides(settings, ["schedule=stable", "schedule.decay_steps=-1"])


def _stable(decay_steps: int) -> dict[str, Any]:
    return {"schedule": StableThenDecay(decay_steps=decay_steps), "save_every": 2, "keep_checkpoints": 9}


def test_a_stable_run_that_is_finished_later_is_the_run_that_knew_its_length(tmp_path: Path) -> None:
    known, unknown = tiny.TinyModel(), tiny.TinyModel()
    tiny.run(tmp_path / "known", model=known, steps=12, **_stable(4))

    tiny.run(tmp_path / "unknown", model=unknown, steps=8, **_stable(0))
    result = tiny.run(tmp_path / "unknown", model=unknown, steps=12, **_stable(4))

    assert result.step == 12
    for name, weight in tiny.weights(known).items():
        assert weight.equal(tiny.weights(unknown)[name]), name


def test_a_run_whose_rate_has_begun_to_fall_keeps_its_length(tmp_path: Path) -> None:
    tiny.run(tmp_path, steps=8, **_stable(4))
    with pytest.raises(UserError, match=r"schedule.decay_steps=4, now 2"):
        tiny.run(tmp_path, steps=12, **_stable(2))


def test_a_length_whose_fall_lies_behind_the_run_is_refused_with_the_one_that_does(tmp_path: Path) -> None:
    tiny.run(tmp_path, steps=8, **_stable(0))
    with pytest.raises(
        UserError,
        match=r"is at step 8, but with 10 steps its rate would decay from step 6 on; use at least 12 steps",
    ):
        tiny.run(tmp_path, steps=10, **_stable(4))


def test_a_rate_that_never_decays_has_its_peak_to_the_end() -> None:
    stable = StableThenDecay(decay_steps=0)
    rates = {learning_rate_at(n, peak=1.0, warmup_steps=1, total_steps=6, schedule=stable) for n in range(7)}
    assert rates == {1.0}


def test_a_step_that_is_alone_after_its_warm_up_has_the_peak_rate() -> None:
    assert learning_rate_at(3, peak=1.0, warmup_steps=3, total_steps=4) == 1.0
