"""Measuring a model leaves no trace and weighs every target alike."""

from contextlib import suppress

import pytest
import torch
from torch import nn

from precis.objectives.losses import Loss
from precis.training import mean_loss
from precis.training.validation import evaluating
from precis_text.errors import UserError
from tests.training import tiny


def test_the_mean_is_over_targets_and_not_over_batches() -> None:
    model = tiny.TinyModel()
    uneven = [tiny.rows(range(0, 7)), tiny.rows(range(7, 8))]

    by_batches = mean_loss(model, uneven, tiny.objective)
    at_once = mean_loss(model, [tiny.rows(range(8))], tiny.objective)

    assert set(at_once) == {"loss", "nll", "accuracy"}
    assert by_batches == pytest.approx(at_once, rel=1e-6)


def test_modules_return_to_the_mode_that_each_was_in() -> None:
    model = tiny.TinyModel()
    model.dropout.eval()  # a part that stays frozen while the rest trains

    with suppress(ZeroDivisionError), evaluating(model):
        assert not any(module.training for module in model.modules())
        assert not torch.is_grad_enabled()
        raise ZeroDivisionError

    assert model.training
    assert model.norm.training
    assert not model.dropout.training


def test_a_validation_set_without_targets_is_refused() -> None:
    batch = tiny.rows(range(2))
    empty = tiny.Rows(batch.inputs, torch.full_like(batch.labels, -100))

    with pytest.raises(UserError, match="does not contain targets"):
        mean_loss(tiny.TinyModel(), [empty], tiny.objective)


def test_batches_are_moved_to_the_model_s_device() -> None:
    class OnMeta(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(1, device="meta"))

    seen: list[torch.device] = []

    def look(_model: nn.Module, batch: tiny.Rows) -> Loss:
        seen.append(batch.inputs.device)
        return tiny.objective(tiny.TinyModel(), tiny.rows(range(2)))

    mean_loss(OnMeta(), [tiny.rows(range(2))], look)  # type: ignore[arg-type]

    assert seen == [torch.device("meta")]
