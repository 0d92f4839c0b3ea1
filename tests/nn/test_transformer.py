"""The original Transformer's encoder: positions, layers by their equation, and the longest input."""

from typing import Any

import pytest
import torch

from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig, build_post_norm_encoder
from precis.nn.transformer import AbsolutePositions

SHAPE = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_attention_heads": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 20,
}


def build() -> Any:
    torch.manual_seed(0)
    return build_post_norm_encoder(ProphetNetConfig(**SHAPE)).eval()


def test_row_0_is_paddings_and_position_0_has_row_1() -> None:
    positions = AbsolutePositions(9, 4)
    assert positions.longest == 8
    assert torch.equal(positions(torch.tensor([[0, 7]]))[0], positions.rows.weight[[1, 8]])


@torch.no_grad()
def test_eq1_layers_norm_after_each_part() -> None:
    encoder, places = build(), torch.arange(6)[None]
    embedded = torch.randn(2, 6, 16)
    x = encoder.norm(embedded + encoder.positions(places))
    for layer in encoder.layers:
        mixed = layer.attention(x, *layer.attention.project_keys(x), bias=None, mask=None)
        x = layer.attention_norm(x + mixed)
        x = layer.feed_forward_norm(x + layer.feed_forward(x))
    torch.testing.assert_close(encoder(embedded, places, None), x)


@torch.no_grad()
def test_padding_changes_no_state_of_a_real_token() -> None:
    encoder, places = build(), torch.arange(6)[None]
    embedded = torch.randn(1, 6, 16)
    valid = torch.arange(6)[None] < 4
    alone = encoder(embedded[:, :4], places[:, :4], None)
    torch.testing.assert_close(encoder(embedded, places, valid)[:, :4], alone)


@torch.no_grad()
def test_an_observer_is_told_the_input_of_the_first_layer_and_each_output() -> None:
    encoder, seen = build(), []  # type: ignore[var-annotated]
    output = encoder(torch.randn(1, 6, 16), torch.arange(6)[None], None, observe=seen.append)
    assert len(seen) == 3
    assert torch.equal(seen[-1], output)


def test_more_tokens_than_positions_are_refused() -> None:
    with pytest.raises(ValueError, match="20 tokens: this model has positions for 19"):
        build()(torch.randn(1, 20, 16), torch.arange(20)[None], None)


@torch.no_grad()
def test_an_input_may_use_every_position() -> None:
    assert build()(torch.randn(1, 19, 16), torch.arange(19)[None], None).shape == (1, 19, 16)
