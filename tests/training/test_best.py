"""The best checkpoint is kept, and patience ends a run."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from training import tiny
from training.tiny import Witness

from precis.errors import UserError
from precis.training import Highest, load_weights


def _scripted(values: list[float], metric: str = "loss") -> Any:
    remaining = list(values)
    return lambda _model: {metric: remaining.pop(0)}


def test_the_best_checkpoint_survives_pruning_and_can_be_loaded_back(tmp_path: Path) -> None:
    model = tiny.TinyModel()
    at_best: dict[str, torch.Tensor] = {}

    def validate(model: nn.Module) -> dict[str, float]:
        step = len(seen)
        seen.append(step)
        if step == 1:
            at_best.update(tiny.weights(model))
        return {"loss": [3.0, 1.0, 2.0, 2.5, 2.6, 2.7][step]}

    seen: list[int] = []
    result = tiny.run(
        tmp_path,
        model=model,
        validate=validate,
        validate_every=2,
        save_every=1,
        keep_checkpoints=1,
    )

    assert (result.best_step, result.best_metric) == (4, 1.0)
    assert result.best_checkpoint == tmp_path / "checkpoints" / "step-00000004"
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == [
        "best.json",
        "step-00000004",
        "step-00000012",
    ]
    load_weights(model, result.best_checkpoint)
    tiny.assert_identical(tiny.weights(model), at_best)


def test_a_score_is_better_when_higher(tmp_path: Path) -> None:
    result = tiny.run(
        tmp_path,
        validate=_scripted([10.0, 30.0, 20.0], "rougeL"),
        validate_every=4,
        select=Highest(metric="rougeL"),
    )

    assert (result.best_step, result.best_metric) == (8, 30.0)


def test_patience_stops_the_run_and_a_restart_knows_it(tmp_path: Path) -> None:
    common: dict[str, Any] = {"validate_every": 2, "patience": 2}

    result = tiny.run(tmp_path, validate=_scripted([2.0, 1.0, 1.5, 1.0, 0.5]), **common)
    again = tiny.run(tmp_path, validate=_scripted([]), **common)

    assert (result.step, result.best_step, result.stopped_early) == (8, 4, True)
    assert (again.step, again.best_step, again.stopped_early) == (8, 4, True)


def test_more_patience_takes_a_stopped_run_up_again(tmp_path: Path) -> None:
    tiny.run(tmp_path, validate=_scripted([1.0, 2.0]), validate_every=2, patience=1)

    result = tiny.run(tmp_path, validate=_scripted([2.0, 2.0, 0.5, 2.0]), validate_every=2, patience=9)

    assert (result.step, result.best_step, result.stopped_early) == (12, 10, False)


def test_the_last_step_is_validated_and_saved_whatever_the_intervals(tmp_path: Path) -> None:
    witness = Witness()

    tiny.run(
        tmp_path,
        steps=7,
        save_every=100,
        validate_every=3,
        validate=tiny.validation_loss,
        callbacks=[witness],
    )

    assert [info.step for info in witness.validations] == [3, 6, 7]
    assert (tmp_path / "checkpoints" / "step-00000007").exists()


def test_a_metric_that_is_not_measured_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="metric 'rougeL', but validation measures accuracy, loss, nll"):
        tiny.run(tmp_path, validate=tiny.validation_loss, select=Highest(metric="rougeL"))
