"""Model and optimizer state travel by name, tied weights once, and only into the model that they belong
to.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from precis.training import TrainSettings
from precis.training.checkpoint import RunState
from precis.training.optimizer import build_optimizer
from precis.training.state_tensors import (
    load_model_tensors,
    load_optimizer_tensors,
    model_tensors,
    not_finite,
    optimizer_tensors,
    record_from,
    size_in_bytes,
)
from precis_text.errors import UserError
from tests.training import tiny


def _trained(*, steps: int = 3) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = tiny.TinyModel()
    optimizer = build_optimizer(model, TrainSettings(steps=1))
    for step in range(steps):
        tiny.objective(model, tiny.rows(range(step, step + 4))).total.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def test_a_tied_weight_is_kept_once_under_its_first_name_and_stays_tied(tmp_path: Path) -> None:
    model, _ = _trained()
    tensors = model_tensors(model)
    assert "embedding.weight" in tensors
    assert "output.weight" not in tensors

    save_file(tensors, tmp_path / "model.safetensors")  # safetensors refuses shared storage
    other = tiny.TinyModel(seed=9)
    load_model_tensors(other, load_file(tmp_path / "model.safetensors"), origin="it")

    assert other.output.weight is other.embedding.weight
    tiny.assert_identical(tiny.weights(other), tiny.weights(model))


def test_buffers_travel_too() -> None:
    model, _ = _trained(steps=3)
    other = tiny.TinyModel(seed=9)

    load_model_tensors(other, model_tensors(model), origin="it")

    assert int(other.calls) == 3  # type: ignore[arg-type]


def test_a_restored_optimizer_takes_the_same_next_step() -> None:
    model, optimizer = _trained()
    other = tiny.TinyModel(seed=9)
    load_model_tensors(other, model_tensors(model), origin="it")
    fresh = build_optimizer(other, TrainSettings(steps=1))
    load_optimizer_tensors(other, fresh, optimizer_tensors(model, optimizer), origin="it")

    for network, its_optimizer in ((model, optimizer), (other, fresh)):
        network.eval()
        tiny.objective(network, tiny.rows(range(50, 54))).total.backward()
        its_optimizer.step()

    tiny.assert_identical(tiny.weights(other), tiny.weights(model))


def test_optimizer_state_is_named_after_the_parameters() -> None:
    names = set(optimizer_tensors(*_trained()))

    assert {"exp_avg/hidden.bias", "exp_avg_sq/hidden.bias", "step/hidden.bias"} <= names
    assert "exp_avg/output.weight" not in names


def test_an_optimizer_that_has_not_stepped_yet_is_restored_as_such() -> None:
    model, optimizer = _trained(steps=0)

    load_optimizer_tensors(model, optimizer, optimizer_tensors(model, optimizer), origin="it")

    assert not optimizer.state


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: tiny.TinyModel(width=16), r"'embedding\.weight' has shape \(19, 8\) instead of \(19, 16\)"),
        (lambda: nn.Linear(2, 2), "it lacks 'bias'"),
    ],
)
def test_the_state_of_another_model_is_refused_and_changes_nothing(
    other: Callable[[], nn.Module], message: str
) -> None:
    model, _ = _trained()
    target = other()
    before = tiny.weights(target)

    with pytest.raises(UserError, match=f"checkpoint x belongs to another model: {message}"):
        load_model_tensors(target, model_tensors(model), origin="checkpoint x")

    tiny.assert_identical(tiny.weights(target), before)


def test_optimizer_state_of_another_shape_is_refused() -> None:
    model, optimizer = _trained()
    wide = tiny.TinyModel(width=16)

    with pytest.raises(UserError, match="belongs to another model"):
        load_optimizer_tensors(
            wide,
            build_optimizer(wide, TrainSettings(steps=1)),
            optimizer_tensors(model, optimizer),
            origin="it",
        )


def test_the_size_of_a_checkpoint_is_known_beforehand() -> None:
    model, optimizer = _trained()
    tensors = [*model_tensors(model).values(), *optimizer_tensors(model, optimizer).values()]

    actual = sum(t.numel() * t.element_size() for t in tensors)

    assert actual == pytest.approx(size_in_bytes(model), abs=4 * 5)  # five step counters


def test_what_is_frozen_is_not_kept_and_stays_as_it_is() -> None:
    model, _ = _trained()
    frozen = next(iter(model.parameters()))
    whole = size_in_bytes(model)
    frozen.requires_grad_(False)
    name = next(name for name, parameter in model.named_parameters() if parameter is frozen)
    kept = model_tensors(model)
    assert name not in kept
    assert kept
    assert size_in_bytes(model) == whole - 3 * frozen.numel() * frozen.element_size()
    before = frozen.detach().clone()
    load_model_tensors(model, {key: value + 1 for key, value in kept.items()}, origin="here")
    torch.testing.assert_close(frozen, before, atol=0, rtol=0)
    with pytest.raises(UserError, match="here"):
        load_model_tensors(model, {**kept, name: before}, origin="here")


def test_a_parameter_that_was_in_no_step_yet_is_restored_as_if_it_had_been_there() -> None:
    """Objectives that take turns may skip the later one at every step before a checkpoint."""

    def step(model: nn.Module, optimizer: torch.optim.Optimizer, names: set[str]) -> None:
        for name, parameter in model.named_parameters():
            parameter.grad = torch.full_like(parameter, 0.5) if name in names else None
        optimizer.step()

    settings = TrainSettings(steps=9)
    model, other = tiny.TinyModel(), tiny.TinyModel(seed=2)
    optimizer, restored = build_optimizer(model, settings), build_optimizer(other, settings)
    everything = {name for name, _ in model.named_parameters()}
    step(model, optimizer, {"hidden.weight"})
    load_model_tensors(other, model_tensors(model), origin="here")
    load_optimizer_tensors(other, restored, optimizer_tensors(model, optimizer), origin="here")
    for each, its in ((model, optimizer), (other, restored)):
        step(each, its, everything)
    tiny.assert_identical(tiny.weights(model), tiny.weights(other))
    tiny.assert_identical(optimizer_tensors(model, optimizer), optimizer_tensors(other, restored))


class Odd(nn.Module):
    """Tensors that are easily taken for one, or for a broken one: empty ones, a tied number, whole numbers, truths."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Parameter(torch.empty(0)), nn.Parameter(torch.empty(0))
        self.scale = nn.Parameter(torch.ones(1))
        self.tied = self.scale
        self.register_buffer("count", torch.tensor(3))
        self.register_buffer("seen", torch.tensor([True, False]))


def test_empty_tensors_are_kept_each_and_a_tied_number_once() -> None:
    assert set(model_tensors(Odd())) == {"first", "second", "scale", "count", "seen"}


def test_the_first_tensor_that_is_not_finite_is_named() -> None:
    model = Odd()
    assert not_finite(model) is None
    assert not_finite(nn.Identity()) is None
    model.scale.data[0] = float("-inf")
    assert not_finite(model) == "scale"
    assert not_finite(model.requires_grad_(False)) is None  # training did not do that


def test_numbers_of_a_record_may_be_whole_and_counts_must_be() -> None:
    state = record_from(
        RunState, {"step": 8, "seconds": 3, "best_value": 1, "window": {"loss": 2, "tokens": 0.5}}
    )
    assert (state.step, state.seconds, state.window) == (8, 3, {"loss": 2, "tokens": 0.5})
    for name, wrong in (
        ("step", 8.0),
        ("seconds", "3"),
        ("seconds", True),
        ("is_finite", 1),
        ("best_step", -1),
    ):
        with pytest.raises(ValueError, match=f"^{name} is"):
            record_from(RunState, {name: wrong})
