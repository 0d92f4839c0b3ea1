"""Our decoder against transformers' T5 with copied weights: teacher-forced states and gradients."""

from typing import Any

import pytest
import torch
from transformers import T5Config, T5Model

from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig, build_decoder


def copy_linear(ours: Any, theirs: Any) -> None:
    ours.weight.data.copy_(theirs.weight.data)


def copy_attention(ours: Any, theirs: Any) -> None:
    for own, name in ((ours.query, "q"), (ours.key, "k"), (ours.value, "v"), (ours.output, "o")):
        copy_linear(own, getattr(theirs, name))


def make_pair(feed_forward: str, *, dropout: float = 0.0) -> tuple[Any, Any]:
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=50,
        d_model=32,
        d_kv=8,
        d_ff=40,
        num_layers=1,
        num_decoder_layers=3,
        num_heads=4,
        feed_forward_proj=feed_forward,
        dropout_rate=dropout,
    )
    theirs = T5Model(config).eval()
    ours = build_decoder(
        ZCodePPConfig(
            vocab_size=50,
            hidden_size=32,
            num_attention_heads=4,
            intermediate_size=40,
            decoder_layers=3,
            decoder_feed_forward=feed_forward,
            dropout=dropout,
            attention_dropout=dropout,
        )
    ).eval()
    for own, block in zip(ours.layers, theirs.decoder.block, strict=True):
        copy_attention(own.self_attention, block.layer[0].SelfAttention)
        copy_attention(own.cross_attention, block.layer[1].EncDecAttention)
        dense = block.layer[2].DenseReluDense
        copy_linear(own.feed_forward.down, dense.wo)  # type: ignore[union-attr]
        if feed_forward == "gated-gelu":
            copy_linear(own.feed_forward.gate, dense.wi_0)  # type: ignore[union-attr]
            copy_linear(own.feed_forward.up, dense.wi_1)  # type: ignore[union-attr]
        else:
            copy_linear(own.feed_forward.up, dense.wi)  # type: ignore[union-attr]
        norms = (own.self_norm, own.cross_norm, own.feed_forward_norm)
        for norm, layer in zip(norms, block.layer, strict=True):
            torch.nn.init.normal_(layer.layer_norm.weight, mean=1.0, std=0.2)
            copy_linear(norm, layer.layer_norm)
    table = theirs.decoder.block[0].layer[0].SelfAttention.relative_attention_bias
    torch.nn.init.normal_(table.weight)
    copy_linear(ours.position_bias, table)
    copy_linear(ours.final_norm, theirs.decoder.final_layer_norm)
    return theirs.decoder, ours


@pytest.mark.parametrize("feed_forward", ["relu", "gated-gelu"])
@pytest.mark.parametrize(("length", "source"), [(1, 5), (9, 30), (200, 12)])
def test_decoder_equals_transformers_t5(feed_forward: str, length: int, source: int) -> None:
    theirs, ours = make_pair(feed_forward)
    states, memory = torch.randn(2, length, 32), torch.randn(2, source, 32)
    mask = torch.ones(2, source, dtype=torch.long)
    mask[0, source // 2 :] = 0
    with torch.no_grad():
        expected = theirs(
            inputs_embeds=states, encoder_hidden_states=memory, encoder_attention_mask=mask, use_cache=False
        ).last_hidden_state
        found = ours(states, memory, source_valid=mask.bool())
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_gradients_equal_transformers_t5() -> None:
    theirs, ours = make_pair("relu")
    states, memory = torch.randn(2, 11, 32), torch.randn(2, 7, 32)
    theirs(inputs_embeds=states, encoder_hidden_states=memory).last_hidden_state.square().sum().backward()
    ours(states, memory, source_valid=None).square().sum().backward()
    for own, block in zip(ours.layers, theirs.block, strict=True):
        expected = block.layer[0].SelfAttention.q.weight.grad
        torch.testing.assert_close(own.self_attention.query.weight.grad, expected, atol=1e-4, rtol=1e-4)
    table = theirs.block[0].layer[0].SelfAttention.relative_attention_bias.weight.grad
    torch.testing.assert_close(ours.position_bias.weight.grad, table, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("feed_forward", ["relu", "gated-gelu"])
@pytest.mark.usefixtures("dropout_scales")
def test_dropout_stands_where_transformers_t5_has_it(
    monkeypatch: pytest.MonkeyPatch, feed_forward: str
) -> None:
    """A missing, added or moved one changes the states."""
    theirs, ours = make_pair(feed_forward, dropout=0.3)

    def fused(
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        *,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        scale: float = 1.0,
        is_causal: bool = False,
        **_: object,
    ) -> torch.Tensor:
        assert not is_causal
        weights = torch.softmax(queries @ keys.mT * scale + (0 if attn_mask is None else attn_mask), -1)
        return weights * (1 - dropout_p) @ values

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", fused)
    states, memory = torch.randn(2, 9, 32), torch.randn(2, 7, 32)
    expected = theirs.train()(inputs_embeds=states, encoder_hidden_states=memory).last_hidden_state
    found = ours.train()(states, memory, source_valid=None)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
