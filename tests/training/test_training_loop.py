"""The loop's promises: what the curve depends on, and what it does not."""

import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from precis.objectives.losses import Loss
from precis.training import TrainSettings, training_loop
from precis.training.optimizer import build_optimizer
from tests.devices import beside
from tests.training import tiny
from tests.training.tiny import Witness


def test_training_learns(tmp_path: Path) -> None:
    model, witness = tiny.TinyModel(width=32), Witness()

    result = tiny.run(tmp_path, model=model, steps=150, learning_rate=0.02, callbacks=[witness])

    assert result.step == 150
    assert not result.stopped_early
    assert not result.interrupted
    assert witness.steps[0].loss > 2.9
    assert witness.steps[-1].loss < 1.5
    assert witness.ends == [result]


def test_validation_is_not_training_time(tmp_path: Path) -> None:
    def validate(_: nn.Module) -> dict[str, float]:
        validating = time.perf_counter()
        while time.perf_counter() - validating < 0.05:
            pass
        return {"loss": 1.0}

    began = time.perf_counter()
    result = tiny.run(tmp_path, steps=2, validate=validate, validate_every=1)
    assert 0 < result.seconds <= time.perf_counter() - began - 0.1


def _summed_in_double(model: nn.Module, batch: tiny.Rows) -> Loss:
    """So that in 1e-6 of a loss there is no rounding of a sum of a hundred numbers."""
    logits, labels = model(batch.inputs).double(), batch.labels
    total = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    return Loss(total=total, num_targets=(labels != -100).sum())


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_four_micro_batches_of_two_rows_give_the_curve_of_one_batch_of_eight(
    tmp_path: Path, precision: str
) -> None:
    whole, parts = tiny.TinyModel(dropout=0.0), tiny.TinyModel(dropout=0.0)
    witnesses = Witness(), Witness()
    common: dict[str, Any] = {
        "steps": 8,
        "precision": precision,
        "warmup_steps": 1,
        "loss": _summed_in_double,
    }
    if precision == "bf16":  # rounding in bf16 builds up with every step
        common |= {"steps": 5, "loss": tiny.objective}

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
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert len(gradients) == len([*model.parameters()])
    expected = torch.nn.utils.get_total_norm(gradients).item()
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


def test_each_validation_gives_back_what_the_c_library_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr("precis.training.training_run.trim_heap", lambda: done.append("given back"))
    tiny.run(tmp_path, validate=lambda model: done.append("validated") or {"loss": 1.0}, validate_every=6)  # type: ignore[func-returns-value]
    assert done == ["validated", "given back"] * 2


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
            tiny.run(tmp_path / str(number), model=model, steps=2, batches=batches)
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
        seen.append(model(beside(model, torch.tensor([[1, 2]]))).dtype)
        return {"loss": 1.0}

    tiny.run(tmp_path, precision="bf16", validate=look)

    assert seen == [torch.bfloat16]


def test_on_the_cpu_nothing_is_fetched_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(*_: object) -> None:
        raise AssertionError("there is no other memory to copy to")

    monkeypatch.setattr(training_loop, "Prefetched", fetched)
    tiny.run(tmp_path, steps=1)


@pytest.mark.parametrize("compiler", ["none", "eager"])
def test_the_layers_of_a_whole_model_are_compiled_as_the_settings_say(
    compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def compiled(_: nn.Module, backend: str) -> AbstractContextManager[None]:
        asked.append(backend)
        return nullcontext()

    monkeypatch.setattr(training_loop, "compiled_layers", compiled)
    tiny.run(tmp_path, compiler=compiler)
    assert asked == [compiler]


@pytest.mark.parametrize(("compiler", "compiled"), [("none", []), ("eager", [{"backend": "eager"}])])
def test_a_sharded_model_is_compiled_if_a_compiler_is_asked_for(
    compiler: Any, compiled: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, pieces = tiny.TinyModel(), tiny.TinyModel()
    asked: list[dict[str, str]] = []
    copies = object()
    monkeypatch.setattr(pieces, "compile", lambda **options: asked.append(options))
    monkeypatch.setattr(training_loop, "sharding_is_asked_for", lambda: True)
    monkeypatch.setattr(training_loop, "shard", lambda whole, _: pieces)
    monkeypatch.setattr(training_loop, "Pieces", lambda *_, **__: copies)
    settings = TrainSettings(steps=1, compiler=compiler)
    optimizer = build_optimizer(model, settings)
    unused: Any = None
    found: Any = training_loop._prepared(model, optimizer, settings=settings, accelerator=unused)
    assert (found[0], found[2], asked) == (pieces, copies, compiled)
