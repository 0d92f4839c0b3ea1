"""Low-rank adapters: untrained or off they change nothing, merged they compute the same, and only they train."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from precis.tuning.low_rank import add_low_rank, merge_low_rank, without_low_rank
from precis_text.errors import UserError

_IDS = torch.arange(3, 20)[None]


@pytest.fixture
def model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8, max_position_embeddings=32,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def _trained(model: LlamaForCausalLM) -> None:
    for layer in add_low_rank(model, rank=3, alpha=6.0, seed=1):
        torch.nn.init.normal_(layer.up, std=0.2)


def test_an_untrained_adapter_changes_no_bit(model: LlamaForCausalLM) -> None:
    before = model(_IDS).logits
    assert len(add_low_rank(model, rank=3, alpha=6.0, seed=1)) == 14
    assert torch.equal(model(_IDS).logits, before)


def test_an_adapter_that_is_off_leaves_the_base(model: LlamaForCausalLM) -> None:
    before = model(_IDS).logits
    _trained(model)
    with without_low_rank(model):
        assert torch.equal(model(_IDS).logits, before)
    assert not torch.allclose(model(_IDS).logits, before, atol=1e-3)


def test_merged_equals_unmerged_and_has_the_base_s_names(model: LlamaForCausalLM) -> None:
    names = set(model.state_dict())
    _trained(model)
    before = model(_IDS).logits
    merge_low_rank(model)
    assert torch.allclose(model(_IDS).logits, before, atol=1e-5)
    assert set(model.state_dict()) == names


def test_only_the_adapter_is_trained_and_a_seed_gives_its_values(model: LlamaForCausalLM) -> None:
    layers = add_low_rank(model, rank=3, alpha=6.0, seed=1)
    names = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert {name.rpartition(".")[2] for name in names} == {"down", "up"}
    first = layers[0].down.clone()
    merge_low_rank(model)
    assert torch.equal(add_low_rank(model, rank=3, alpha=6.0, seed=1)[0].down, first)


def test_a_model_without_such_layers_and_a_rank_of_zero_are_refused(model: LlamaForCausalLM) -> None:
    with pytest.raises(UserError, match="lacks a linear layer named other"):
        add_low_rank(model, rank=2, alpha=4.0, seed=1, layers=["other"])
    with pytest.raises(UserError, match="rank=0"):
        add_low_rank(model, rank=0, alpha=4.0, seed=1)
