"""The loop's promises: what the curve depends on, and what it does not."""

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
from training import tiny

from precis.errors import RunError, UserError
from precis.objectives.losses import Loss
from precis.training import Highest, JsonLines, load_weights
from precis.training.callbacks import StartInfo, StepInfo, TrainResult, ValidationInfo, read_metrics


class Witness:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.started: StartInfo | None = None
        self.steps: list[StepInfo] = []
        self.validations: list[ValidationInfo] = []
        self.ends: list[TrainResult | None] = []

    def on_start(self, info: StartInfo) -> None:
        self.started = info

    def on_step(self, info: StepInfo) -> None:
        self.steps.append(info)

    def on_validation(self, info: ValidationInfo) -> None:
        self.validations.append(info)

    def on_end(self, result: TrainResult | None) -> None:
        self.ends.append(result)


def test_training_learns(tmp_path: Path) -> None:
    model, witness = tiny.TinyModel(width=32), Witness()

    result = tiny.run(tmp_path, model=model, steps=150, learning_rate=0.02, callbacks=[witness])

    assert result.step == 150
    assert not result.stopped_early
    assert not result.interrupted
    assert witness.steps[0].loss > 2.9
    assert witness.steps[-1].loss < 1.5
    assert witness.ends == [result]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_four_micro_batches_of_two_rows_give_the_curve_of_one_batch_of_eight(
    tmp_path: Path, precision: str
) -> None:
    whole, parts = tiny.TinyModel(dropout=0.0), tiny.TinyModel(dropout=0.0)
    witnesses = Witness(), Witness()
    common: dict[str, Any] = {"steps": 8, "precision": precision, "warmup_steps": 1}

    tiny.run(tmp_path / "1", model=whole, callbacks=[witnesses[0]], **common)
    tiny.run(
        tmp_path / "4",
        model=parts,
        batches=tiny.RowSource(batch_size=2),
        gradient_accumulation=4,
        callbacks=[witnesses[1]],
        **common,
    )

    # The rows have 1 to 6 targets, so a mean of means would differ in the first digits.
    tolerance = 1e-6 if precision == "fp32" else 2e-3
    for one, other in zip(witnesses[0].steps, witnesses[1].steps, strict=True):
        assert other.loss == pytest.approx(one.loss, abs=tolerance)
        assert other.gradient_norm == pytest.approx(one.gradient_norm, rel=10 * tolerance)
    if precision == "fp32":
        for name, value in whole.named_parameters():
            torch.testing.assert_close(dict(parts.named_parameters())[name], value, rtol=0, atol=2e-6)


def test_gradients_are_divided_by_the_targets_and_clipped_over_all_parameters(tmp_path: Path) -> None:
    model, witness = tiny.TinyModel(dropout=0.0), Witness()
    batch = tiny.RowSource().batch(0)
    loss = tiny.objective(model, batch)
    (loss.total / loss.num_targets).backward()
    expected = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()]).item()
    model.zero_grad()

    tiny.run(tmp_path, model=model, steps=1, clip_norm=expected / 10, callbacks=[witness])

    assert witness.steps[0].gradient_norm == pytest.approx(expected, rel=1e-5)
    assert witness.steps[0].loss == pytest.approx(loss.total.item() / int(loss.num_targets), rel=1e-6)


def test_a_step_without_any_target_is_harmless(tmp_path: Path) -> None:
    class NoTargets(tiny.RowSource):
        def batch(self, step: int) -> tiny.Rows:
            rows = super().batch(step)
            return replace(rows, labels=torch.full_like(rows.labels, -100))

    model, witness = tiny.TinyModel(), Witness()
    tiny.run(tmp_path, model=model, batches=NoTargets(), steps=2, callbacks=[witness])

    assert [info.loss for info in witness.steps] == [0.0, 0.0]
    assert not any(info.skipped for info in witness.steps)
    assert all(value.isfinite().all() for value in model.state_dict().values())


def test_validating_leaves_no_trace_on_the_weights(tmp_path: Path) -> None:
    def disturb(model: nn.Module) -> dict[str, float]:
        assert not model.training
        assert not torch.is_grad_enabled()
        torch.rand(7)
        return {"loss": 1.0}

    quiet, disturbed = tiny.TinyModel(), tiny.TinyModel()
    tiny.run(tmp_path / "quiet", model=quiet)
    tiny.run(tmp_path / "disturbed", model=disturbed, validate=disturb, validate_every=1)

    tiny.assert_identical(tiny.weights(quiet), tiny.weights(disturbed))
    assert disturbed.training


def test_the_seed_decides_the_dropout_and_nothing_else_does(tmp_path: Path) -> None:
    models = [tiny.TinyModel() for _ in range(3)]
    for number, (model, seed) in enumerate(zip(models, (0, 0, 1), strict=True)):
        torch.manual_seed(number)
        tiny.run(tmp_path / str(number), model=model, seed=seed)

    tiny.assert_identical(tiny.weights(models[0]), tiny.weights(models[1]))
    assert not torch.equal(models[0].hidden.weight, models[2].hidden.weight)


def test_micro_batches_of_one_step_have_different_dropout(tmp_path: Path) -> None:
    drawn: list[float] = []

    def draw(model: nn.Module, batch: tiny.Rows) -> Loss:
        drawn.append(torch.rand(()).item())
        return tiny.objective(model, batch)

    tiny.run(tmp_path, loss=draw, steps=3, gradient_accumulation=2)

    assert len(set(drawn)) == 6


def test_two_threads_give_identical_weights_twice(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        models = [tiny.TinyModel(width=64) for _ in range(2)]
        for number, model in enumerate(models):
            batches = tiny.RowSource(batch_size=400)  # enough for the embedding's gradient to run in parallel
            tiny.run(tmp_path / str(number), model=model, steps=4, batches=batches)
    finally:
        torch.set_num_threads(threads)

    tiny.assert_identical(tiny.weights(models[0]), tiny.weights(models[1]))


def test_bf16_keeps_the_weights_and_moments_in_fp32(tmp_path: Path) -> None:
    seen: set[torch.dtype] = set()

    def look(model: nn.Module, batch: tiny.Rows) -> Loss:
        seen.add(model(batch.inputs).dtype)
        return tiny.objective(model, batch)

    model = tiny.TinyModel()
    result = tiny.run(tmp_path, model=model, precision="bf16", loss=look)

    assert seen == {torch.bfloat16}
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert result.step == 12


def test_validation_runs_in_the_precision_of_training(tmp_path: Path) -> None:
    seen: list[torch.dtype] = []

    def look(model: nn.Module) -> dict[str, float]:
        seen.append(model(torch.tensor([[1, 2]])).dtype)
        return {"loss": 1.0}

    tiny.run(tmp_path, precision="bf16", validate=look)

    assert seen == [torch.bfloat16]


# --- the best checkpoint and early stopping ---------------------------------------------------------------


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


# --- what is not finite -----------------------------------------------------------------------------------


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

    with pytest.raises(RunError, match=r"not finite for 3 steps in a row, up to step 8; lower learning_rate"):
        tiny.run(tmp_path, loss=_poisoned(1, 5, 6, 7, 8), skip_limit=3, callbacks=[witness])

    assert witness.ends == [None]
    assert (tmp_path / "checkpoints" / "step-00000004").exists()


# --- signals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_the_step_saves_and_the_same_call_goes_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    def stop_at_six(model: nn.Module, batch: tiny.Rows) -> Loss:
        if len(source.asked) == 6:
            os.kill(os.getpid(), number)
        return tiny.objective(model, batch)

    source, model, undisturbed = tiny.RowSource(), tiny.TinyModel(), tiny.TinyModel()
    handler = signal.getsignal(number)
    result = tiny.run(tmp_path / "a", model=model, batches=source, loss=stop_at_six)

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


# --- settings and folders ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "seed=0 and is now given 1"),
        ({"steps": 24}, "steps=12 and is now given 24"),
        ({"learning_rate": 0.5}, r"learning_rate=0\.01 and is now given 0\.5"),
        ({"select": Highest(metric="loss")}, r"select\.type='Lowest' and is now given 'Highest'"),
        ({"identity": {"data": {"rows": 9, "lengths": (1, 2)}}}, r"data\.rows=8 and is now given 9"),
    ],
)
def test_a_setting_that_changes_the_curve_is_refused_on_resume(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    identity = {"data": {"rows": 8, "lengths": (1, 2)}}
    tiny.run(tmp_path, identity=identity)
    tiny.run(tmp_path, identity=identity)

    with pytest.raises(UserError, match=f"started with {message}; .*--restart"):
        tiny.run(tmp_path, **{"identity": identity, **change})


def test_settings_that_leave_the_weights_alone_may_change(tmp_path: Path) -> None:
    tiny.run(tmp_path)

    result = tiny.run(
        tmp_path, save_every=9, log_every=3, keep_checkpoints=5, patience=4, validate_every=2, skip_limit=99
    )

    assert result.step == 12


def test_a_restart_forgets_checkpoints_and_metrics(tmp_path: Path) -> None:
    tiny.run(tmp_path, callbacks=[JsonLines()], log_every=1)

    witness = Witness()
    tiny.run(tmp_path, steps=6, seed=1, resume=False, callbacks=[JsonLines(), witness], log_every=1)

    assert witness.started is not None
    assert witness.started.first_step == 0
    assert len(read_metrics(tmp_path / "metrics.jsonl")) == 6
    assert sorted(p.name for p in (tmp_path / "checkpoints").glob("step-*")) == [
        "step-00000004",
        "step-00000006",
    ]


def test_a_warm_up_longer_than_the_run_is_mentioned(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tiny.run(tmp_path, warmup_steps=12)

    assert "the learning rate never reaches its peak" in caplog.text


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    tiny.run(tmp_path)

    with pytest.raises(UserError, match="belongs to another model"):
        tiny.run(tmp_path, model=tiny.TinyModel(width=16))


def test_the_lock_and_the_handlers_are_released_after_an_error(tmp_path: Path) -> None:
    def fail(_model: nn.Module, _batch: tiny.Rows) -> Loss:
        raise ZeroDivisionError

    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(ZeroDivisionError):
        tiny.run(tmp_path, loss=fail)

    assert signal.getsignal(signal.SIGTERM) == handler
    assert tiny.run(tmp_path).step == 12


def test_micro_batches_are_asked_for_by_their_place_since_the_beginning(tmp_path: Path) -> None:
    source = tiny.RowSource()

    result = tiny.run(tmp_path, batches=source, epochs=1.2, gradient_accumulation=3)

    assert result.total_steps == 2
    assert source.asked == [0, 1, 2, 3, 4, 5]


def test_parts_are_divided_by_their_own_counts(tmp_path: Path) -> None:
    def loss(model: nn.Module, batch: tiny.Rows) -> Loss:
        base = tiny.objective(model, batch)
        return replace(base, parts={"rare": torch.tensor(3.0)}, counts={"rare": 2}, num_tokens=48)

    tiny.run(tmp_path, loss=loss, steps=4, gradient_accumulation=2, log_every=2, callbacks=[JsonLines()])

    records = read_metrics(tmp_path / "metrics.jsonl")
    assert [r["rare"] for r in records] == [1.5, 1.5]
    assert [r["tokens"] for r in records] == [4 * 48, 8 * 48]
