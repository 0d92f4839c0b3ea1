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
import torch
from torch import nn

from precis.objectives.losses import InTurn, Loss
from precis.training import Highest, JsonLines, Lowest, load_weights
from precis.training.callbacks import read_metrics
from precis.training.state_tensors import not_finite
from precis_text.errors import DivergedError, RunError
from tests.training import tiny
from tests.training.tiny import Witness


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


def test_by_default_a_run_logs_every_ten_steps_and_fails_at_the_tenth_bad_one(tmp_path: Path) -> None:
    tiny.run(tmp_path / "good", steps=20, callbacks=[JsonLines()])
    assert [r["step"] for r in read_metrics(tmp_path / "good" / "metrics.jsonl")] == [10, 20]
    with pytest.raises(RunError, match="not finite for 10 steps in a row, up to step 11"):
        tiny.run(tmp_path / "bad", loss=_poisoned(*range(1, 12)))


def test_of_objectives_in_turn_the_later_ones_have_no_turn_after_a_bad_one_and_else_each_has_one(
    tmp_path: Path,
) -> None:
    poisoned, seen = _poisoned(1), []

    def first(model: nn.Module, batch: tiny.Rows, _: Any) -> Loss:
        seen.append("first")
        found: Loss = poisoned(model, batch)
        return found

    def second(model: nn.Module, batch: tiny.Rows, _: Any) -> Loss:
        seen.append("second")
        return tiny.objective(model, batch)

    tiny.run(tmp_path, steps=3, loss=InTurn((first, second)))
    assert seen == ["first", "second", "first", "first", "second"]


def test_a_skipped_step_leaves_weights_and_moments_alone(tmp_path: Path) -> None:
    model = tiny.TinyModel()
    before = tiny.weights(model)

    with pytest.raises(DivergedError):
        tiny.run(tmp_path, model=model, steps=3, loss=_poisoned(0, 1, 2))

    after = tiny.weights(model)
    before.pop("calls")
    after.pop("calls")
    tiny.assert_identical(before, after)


def test_too_many_in_a_row_end_the_run_and_leave_the_checkpoints(tmp_path: Path) -> None:
    witness = Witness()

    with pytest.raises(
        RunError, match=r"not finite for 3 steps in a row, up to step 8; check the data.*skip_limit above 3"
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

    assert (result.step, result.interrupted, result.stopped_early) == (6, True, False)
    assert (tmp_path / "a" / "checkpoints" / "step-00000006").exists()
    assert signal.getsignal(number) == handler

    resumed = tiny.TinyModel(seed=3)
    result = tiny.run(tmp_path / "a", model=resumed)
    tiny.run(tmp_path / "b", model=undisturbed)
    assert (result.step, result.interrupted) == (12, False)
    tiny.assert_identical(tiny.weights(resumed), tiny.weights(undisturbed))


def test_a_signal_at_the_last_step_does_not_hide_that_the_run_diverged(tmp_path: Path) -> None:
    poisoned, calls = _poisoned(0, 1, 2), itertools.count(1)

    def loss(model: nn.Module, batch: tiny.Rows) -> Loss:
        if next(calls) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        found: Loss = poisoned(model, batch)
        return found

    with pytest.raises(DivergedError):
        tiny.run(tmp_path, steps=3, loss=loss)


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
    assert f"validation at step {at_step} was aborted" in caplog.text

    result = tiny.run(tmp_path, validate=tiny.validation_loss, validate_every=4, callbacks=[witness])
    assert witness.validations[0].step == at_step
    assert (result.step, result.best_step) == (12, 12)
    assert json.loads((tmp_path / "checkpoints" / "best.json").read_text())["step"] == 12


# --- what has diverged is not kept --------------------------------------------------------------------------

NAN, INF = math.nan, math.inf


def test_a_run_whose_every_step_was_skipped_has_failed_and_fails_again_when_it_is_taken_up(
    tmp_path: Path,
) -> None:
    for _ in range(2):
        with pytest.raises(DivergedError, match=r"at any of the 3 steps.*--restart.*\(--lr\) below 0\.01"):
            tiny.run(tmp_path, steps=3, loss=_poisoned(0, 1, 2), validate=tiny.validation_loss)


@pytest.mark.parametrize("metrics", [{"loss": NAN}, {"loss": INF}, {"loss": NAN, "rougeL": 0.0}])
def test_a_validation_that_is_not_finite_is_never_the_best(metrics: dict[str, float], tmp_path: Path) -> None:
    select = Highest(metric="rougeL") if "rougeL" in metrics else Lowest()
    witness = Witness()

    with pytest.raises(DivergedError, match=r"its loss or weights were not finite at any validation.*--lr"):
        tiny.run(tmp_path, validate=lambda _: metrics, validate_every=4, select=select, callbacks=[witness])

    assert [info.improved for info in witness.validations] == [False] * 3
    assert not (tmp_path / "checkpoints" / "best.json").exists()


@pytest.mark.parametrize("value", [NAN, INF])
def test_weights_that_are_not_finite_are_never_the_best_whatever_the_loss(
    value: float, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def poison(model: nn.Module) -> dict[str, float]:
        if model.calls >= 8:  # type: ignore[operator]
            with torch.no_grad():
                model.hidden.bias[0] = value  # type: ignore[operator, union-attr]
        return {"loss": 10.0 - float(model.calls)}  # type: ignore[arg-type]

    result = tiny.run(tmp_path, validate=poison, validate_every=4)

    assert (result.best_step, result.is_finite) == (4, False)
    assert "step 8: the weights hidden.bias are not finite" in caplog.text
    assert "the best finite model is from step 4" in caplog.text
    model = tiny.TinyModel()
    load_weights(model, result.best_checkpoint)
    assert not_finite(model) is None


def test_giving_up_keeps_the_best_weights_and_says_where(tmp_path: Path) -> None:
    with pytest.raises(DivergedError, match=r"the best finite weights so far are kept in .*best-0000000\d"):
        tiny.run(
            tmp_path,
            loss=_poisoned(4, 5, 6),
            skip_limit=3,
            save_every=100,
            validate=tiny.validation_loss,
            validate_every=2,
        )

    (best,) = (tmp_path / "checkpoints").iterdir()
    load_weights(tiny.TinyModel(), best)


def test_a_run_that_diverges_at_its_end_keeps_the_best_finite_model_when_it_is_taken_up_too(
    tmp_path: Path,
) -> None:
    values = iter([3.0, 2.0, NAN])

    for _ in range(2):
        result = tiny.run(tmp_path, validate=lambda _: {"loss": next(values)}, validate_every=4)
        assert (result.best_step, result.is_finite) == (8, False)


def test_a_signal_at_the_last_step_interrupts_nothing_and_at_an_earlier_one_leaves_a_bad_run_to_go_on(
    tmp_path: Path,
) -> None:
    def signalled(loss: Any, at: int) -> Any:
        calls = itertools.count(1)

        def with_signal(model: nn.Module, batch: tiny.Rows) -> Any:
            if next(calls) == at:
                os.kill(os.getpid(), signal.SIGTERM)
            return loss(model, batch)

        return with_signal

    done = tiny.run(tmp_path / "last", steps=3, loss=signalled(tiny.objective, 3))
    assert (done.step, done.interrupted) == (3, False)
    early = tiny.run(tmp_path / "early", steps=3, loss=signalled(_poisoned(0, 1), 2))
    assert (early.step, early.skipped_steps, early.interrupted) == (2, 2, True)
    assert tiny.run(tmp_path / "early", steps=3).step == 3  # its checkpoint has no optimizer's state yet


def test_a_run_that_only_lost_its_patience_has_diverged_all_the_same(tmp_path: Path) -> None:
    with pytest.raises(DivergedError, match="not finite at any validation"):
        tiny.run(tmp_path, validate=lambda _: {"loss": NAN}, validate_every=2, patience=2)
