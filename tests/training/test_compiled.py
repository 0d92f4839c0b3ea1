"""A compiled run is the same run: its losses, its checkpoints, and what can be done with them."""

from pathlib import Path
from typing import Any

import pytest
import torch
from training import tiny
from training.tiny import Witness

from precis.errors import UserError
from precis.training import TrainSettings, load_weights


@pytest.fixture(autouse=True)
def _forget_compiled_code() -> None:
    torch._dynamo.reset()


def _run(folder: Path, **settings: Any) -> Witness:
    witness = Witness()
    tiny.run(folder, callbacks=[witness], validate=tiny.validation_loss, **settings)
    return witness


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_run_has_the_losses_of_a_plain_one(tmp_path: Path, backend: str) -> None:
    plain, compiled = _run(tmp_path / "plain"), _run(tmp_path / "compiled", compiler=backend)

    for one, other in zip(plain.steps, compiled.steps, strict=True):
        assert other.loss == pytest.approx(one.loss, abs=1e-6)
        assert other.gradient_norm == pytest.approx(one.gradient_norm, rel=1e-5)
    assert compiled.validations[-1].metrics["loss"] == pytest.approx(
        plain.validations[-1].metrics["loss"], abs=1e-6
    )


def test_training_steps_are_compiled_and_validation_is_not(tmp_path: Path) -> None:
    compiling: list[tuple[bool, bool]] = []

    class Watched(tiny.TinyModel):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            compiling.append((self.training, torch.compiler.is_compiling()))
            return super().forward(inputs)

    # "eager" runs what was traced, so that the list above is appended to once while training and never again
    tiny.run(tmp_path, model=Watched(), validate=tiny.validation_loss, compiler="eager", steps=3)

    assert (True, True) in compiling
    assert (False, True) not in compiling
    assert (False, False) in compiling


def test_a_compiled_run_is_taken_up_without_a_compiler_and_its_names_are_plain(tmp_path: Path) -> None:
    whole = _run(tmp_path / "whole", steps=12)
    first = _run(tmp_path / "run", steps=12, compiler="aot_eager")
    assert len(first.steps) == 12
    for step in (12, 8):
        model = tiny.TinyModel(seed=5)
        load_weights(model, tmp_path / "run" / "checkpoints" / f"step-{step:08d}")  # refuses other names

    newest = tmp_path / "run" / "checkpoints" / "step-00000012"
    newest.rename(tmp_path / "aside")
    second = _run(tmp_path / "run", steps=12)

    assert second.started is not None
    assert second.started.first_step == 8
    for one, other in zip(whole.steps[8:], second.steps, strict=True):
        assert other.loss == pytest.approx(one.loss, abs=1e-6)


def test_an_unknown_compiler_is_refused() -> None:
    with pytest.raises(UserError, match="compiler='gcc' is unknown"):
        TrainSettings(steps=1, compiler="gcc")  # type: ignore[arg-type]
