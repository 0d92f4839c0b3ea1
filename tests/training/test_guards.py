"""What is not finite is skipped, and a signal ends a run in good order."""

import itertools
import json
import math
import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch import nn
from training import tiny
from training.tiny import Witness

from precis.errors import RunError
from precis.objectives.losses import Loss
from precis.training import JsonLines
from precis.training.callbacks import read_metrics


def _poisoned(*bad: int) -> Any:
    calls = iter(range(10**6))

    def loss(model: nn.Module, batch: tiny.Rows) -> Loss:
        good = tiny.objective(model, batch)
        return replace(good, total=good.total * math.nan) if next(calls) in bad else good

    return loss


def test_a_step_that_is_not_finite_is_skipped_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    witness = Witness()

    result = tiny.run(tmp_path, loss=_poisoned(2, 3, 7), callbacks=[witness, JsonLines()], log_every=2)

    assert [info.step for info in witness.steps if info.skipped] == [3, 4, 8]
    assert result.skipped_steps == 3
    assert result.step == 12
    assert "step 3 skipped: loss nan" in caplog.text
    records = {r["step"]: r for r in read_metrics(tmp_path / "metrics.jsonl")}
    assert [records[step]["skipped"] for step in (2, 4, 6, 8)] == [0, 2, 0, 1]
    assert "loss" not in records[4]
    assert math.isfinite(records[8]["loss"])


def test_a_skipped_step_leaves_weights_and_moments_alone(tmp_path: Path) -> None:
    model = tiny.TinyModel()
    before = tiny.weights(model)

    tiny.run(tmp_path, model=model, steps=3, loss=_poisoned(0, 1, 2))

    after = tiny.weights(model)
    before.pop("calls")
    after.pop("calls")
    tiny.assert_identical(before, after)


def test_too_many_in_a_row_end_the_run_and_leave_the_checkpoints(tmp_path: Path) -> None:
    witness = Witness()

    with pytest.raises(
        RunError, match=r"not finite for 3 steps in a row, up to step 8; look at the data.*skip_limit above 3"
    ):
        tiny.run(tmp_path, loss=_poisoned(1, 5, 6, 7, 8), skip_limit=3, callbacks=[witness])

    assert witness.ends == [None]
    assert (tmp_path / "checkpoints" / "step-00000004").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_the_step_saves_and_the_same_call_goes_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    def stop_at_six(model: nn.Module, batch: tiny.Rows) -> Loss:
        if next(calls) == 6:
            os.kill(os.getpid(), number)
        return tiny.objective(model, batch)

    calls, undisturbed = itertools.count(1), tiny.TinyModel()
    handler = signal.getsignal(number)
    result = tiny.run(tmp_path / "a", loss=stop_at_six)

    assert (result.step, result.interrupted) == (6, True)
    assert (tmp_path / "a" / "checkpoints" / "step-00000006").exists()
    assert signal.getsignal(number) == handler

    resumed = tiny.TinyModel(seed=3)
    result = tiny.run(tmp_path / "a", model=resumed)
    tiny.run(tmp_path / "b", model=undisturbed)
    assert (result.step, result.interrupted) == (12, False)
    tiny.assert_identical(tiny.weights(resumed), tiny.weights(undisturbed))


@pytest.mark.parametrize("at_step", [4, 12])
def test_a_signal_during_validation_stops_at_once_and_the_validation_is_made_up_for(
    tmp_path: Path, at_step: int, caplog: pytest.LogCaptureFixture
) -> None:
    finished = False

    def slow(model: nn.Module) -> dict[str, float]:
        nonlocal finished
        if model.calls == at_step:
            os.kill(os.getpid(), signal.SIGTERM)
            with suppress(Exception):  # a careless validation must not swallow the stop
                time.sleep(5)
            finished = True
        return {"loss": 10.0}

    model, witness = tiny.TinyModel(), Witness()
    result = tiny.run(tmp_path, model=model, validate=slow, validate_every=4)
    assert (result.step, result.interrupted, finished) == (at_step, True, False)
    assert model.training
    assert f"validation at step {at_step} cut short" in caplog.text

    result = tiny.run(tmp_path, validate=tiny.validation_loss, validate_every=4, callbacks=[witness])
    assert witness.validations[0].step == at_step
    assert (result.step, result.best_step) == (12, 12)
    assert json.loads((tmp_path / "checkpoints" / "best.json").read_text())["step"] == 12
