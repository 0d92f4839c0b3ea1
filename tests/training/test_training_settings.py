"""Settings refuse what cannot be meant, and survive a round trip."""

import math
import re
from pathlib import Path
from typing import Any

import pytest

from precis.training import Highest, Lowest, TrainSettings
from precis.training.training_settings import FREE_ON_RESUME, MOST_SEED, refuse_other_settings
from precis_text.errors import UserError


@pytest.mark.parametrize("select", [Lowest(metric="nll"), Highest(metric="rouge1")])
def test_settings_survive_a_round_trip_with_the_kind_of_selection(select: Lowest | Highest) -> None:
    settings = TrainSettings(steps=7, betas=(0.8, 0.9), precision="bf16", patience=3, select=select)

    assert TrainSettings.from_dict(settings.to_dict()) == settings


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "either steps or epochs"),
        ({"steps": 5, "epochs": 1.0}, "either steps or epochs"),
        ({"steps": 0}, "steps=0 is too small"),
        ({"steps": 5, "learning_rate": 0.0}, "learning_rate=0.0 must be above 0"),
        ({"steps": 5, "gradient_accumulation": 0}, "gradient_accumulation=0 is too small"),
        ({"steps": 5, "precision": "fp16"}, "precision='fp16' is unknown"),
        ({"epochs": -1.0}, "epochs=-1.0 must be above 0"),
        ({"epochs": math.inf}, "epochs=inf must be a finite number"),
        ({"steps": 5, "seed": -1}, "seed=-1 is too small; it must be at least 0"),
        ({"steps": 5, "seed": 2**32}, "seed=4294967296 is too large; use at most 4294967295"),
        ({"steps": 5, "learning_rate": math.nan}, "learning_rate=nan must be above 0"),
        ({"steps": 5, "learning_rate": math.inf}, "learning_rate=inf must be a finite number"),
        ({"steps": 5, "weight_decay": math.nan}, "weight_decay=nan is too small"),
        ({"steps": 5, "weight_decay": math.inf}, "weight_decay=inf must be a finite number"),
        ({"steps": 5, "betas": (0.9, 1.0)}, r"betas=\(0.9, 1.0\): each must be at least 0 and below 1"),
    ],
)
def test_impossible_settings_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        TrainSettings(**given)


def test_epochs_count_micro_batches_and_round_up() -> None:
    assert TrainSettings(epochs=2).total_steps(10) == 20
    assert TrainSettings(epochs=1.5, gradient_accumulation=4).total_steps(10) == 4
    assert TrainSettings(epochs=0.01).total_steps(10) == 1
    assert TrainSettings(steps=7).total_steps(10) == 7


def test_lowest_and_highest_prefer_opposite_values_and_neither_prefers_nan() -> None:
    assert Lowest().improves(1.0, 2.0)
    assert not Lowest().improves(2.0, 2.0)
    assert Highest().improves(2.0, 1.0)
    assert not Highest().improves(1.0, 1.0)
    for select in (Lowest(), Highest()):
        assert select.improves(0.0, None)
        for value in (math.nan, math.inf, -math.inf):
            assert not select.improves(value, None)


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        ({"data": ["a", "b", "c"]}, {"data": ["a", "b", "d"]}, "other validation pairs;"),
        ({"data": ["a", "b"]}, {"data": "ab"}, "other training pairs or other validation pairs;"),
        ({"data": "ab"}, {"data": ["a", "b"]}, "other training pairs or other validation pairs;"),
        ({"prompts": ["a", "b"]}, {"prompts": ["a", "c"]}, "other passages of the documents;"),
        ({"sets": "a"}, {"sets": "b"}, "sets='a', now 'b';"),
        ({"sets": {"samsum": "a"}}, {"sets": {"samsum": "b"}}, "other pairs of samsum;"),
        ({"data": {"rows": 8}}, {"data": {"rows": 9}}, "data.rows=8, now 9;"),
        ({"rows": 8}, {"rows": 9}, "rows=8, now 9;"),
    ],
)
def test_a_digest_that_changed_is_named_for_what_it_stands_for(
    before: dict[str, Any], now: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=f"^the run in runs/a was started with {re.escape(words)}"):
        refuse_other_settings(Path("runs/a"), before=before, now=now, step=1)


def test_what_a_curve_depends_on_keeps_its_default_and_so_old_runs_that_name_none_are_taken_up() -> None:
    defaults = TrainSettings(steps=1).to_dict()
    assert {name: value for name, value in defaults.items() if name not in FREE_ON_RESUME} == {
        "steps": 1, "epochs": None, "learning_rate": 3e-4, "warmup_steps": 100, "schedule": {"type": "LinearDecay"},
        "weight_decay": 0.01, "betas": [0.9, 0.999], "eps": 1e-6, "clip_norm": 1.0, "gradient_accumulation": 1,
        "precision": "fp32", "seed": 0, "select": {"type": "Lowest", "metric": "loss"},
    }  # fmt: skip


def test_the_largest_seed_and_a_beta_of_zero_are_settings_too() -> None:
    assert TrainSettings(steps=1, seed=2**32 - 1, betas=(0.0, 0.999)).seed == MOST_SEED
