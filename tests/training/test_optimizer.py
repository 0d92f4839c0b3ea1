"""Biases and norms are not decayed."""

import pytest
import torch
from torch import nn

from precis.training import TrainSettings
from precis.training.optimizer import build_optimizer, decay_groups
from precis_text.errors import UserError
from tests.training.tiny import TinyModel


def test_biases_and_norms_are_exempt_from_decay_and_a_tied_parameter_is_listed_once() -> None:
    decayed, exempt = decay_groups(TinyModel())

    assert set(decayed) == {"embedding.weight", "hidden.weight"}
    assert set(exempt) == {"hidden.bias", "norm.weight", "norm.bias"}


def test_a_norm_with_a_matrix_of_scales_is_exempt_too() -> None:
    model = nn.Sequential(nn.LayerNorm((3, 4)), nn.Linear(4, 4))

    decayed, exempt = decay_groups(model)

    assert set(decayed) == {"1.weight"}
    assert set(exempt) == {"0.weight", "0.bias", "1.bias"}


def test_frozen_parameters_are_left_out() -> None:
    model = TinyModel()
    model.embedding.weight.requires_grad_(False)

    optimizer = build_optimizer(model, TrainSettings(steps=1))

    assert sum(len(group["params"]) for group in optimizer.param_groups) == 4


def test_one_step_is_adam_with_decoupled_decay() -> None:
    model = nn.Linear(2, 1)
    settings = TrainSettings(steps=1, learning_rate=0.1, weight_decay=0.5)
    weight, bias = model.weight.detach().clone(), model.bias.detach().clone()
    model(torch.tensor([[1.0, -2.0]])).sum().backward()

    build_optimizer(model, settings).step()

    # In its first step Adam moves by the sign of the gradient, as long as eps is far below its size.
    torch.testing.assert_close(model.weight, weight * (1 - 0.1 * 0.5) - 0.1 * torch.tensor([[1.0, -1.0]]))
    torch.testing.assert_close(model.bias, bias - 0.1)


def test_half_precision_weights_are_refused_with_the_way_out() -> None:
    with pytest.raises(UserError, match=r"'weight' is torch\.bfloat16.*dtype=torch\.float32"):
        build_optimizer(nn.Linear(2, 2).bfloat16(), TrainSettings(steps=1))


def test_a_model_without_trainable_parameters_is_refused() -> None:
    with pytest.raises(UserError, match="does not have a trainable parameter"):
        build_optimizer(nn.Linear(2, 2).requires_grad_(False), TrainSettings(steps=1))


def test_a_model_of_matrices_alone_is_trained_and_all_weights_take_their_step_in_one_pass() -> None:
    optimizer = build_optimizer(nn.Linear(2, 2, bias=False), TrainSettings(steps=1))
    assert [group["fused"] for group in optimizer.param_groups] == [True]
