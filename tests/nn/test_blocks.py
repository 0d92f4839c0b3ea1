"""Layers by their equations, and how a stack runs them."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from precis.nn.attention import DisentangledSelfAttention, MultiHeadAttention, t5_attention
from precis.nn.blocks import (
    DecoderLayer,
    EncoderLayer,
    FanInFeedForward,
    FeedForward,
    GatedFeedForward,
    LayerStack,
    Memory,
)
from precis.nn.score_bias import DenseBias
from precis_text.errors import UserError


def states(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def test_feed_forward_networks_are_those_of_their_models() -> None:
    x = states(2, 3, 8)
    deberta = FeedForward(8, 12, activation="gelu")
    assert torch.equal(deberta(x), deberta.down(F.gelu(deberta.up(x))))
    plain = FanInFeedForward(8, 12, dropout=0.0)
    assert torch.equal(plain(x), plain.down(F.relu(plain.up(x))))
    gated = GatedFeedForward(8, 12, dropout=0.0)
    expected = gated.down(F.gelu(gated.gate(x), approximate="tanh") * gated.up(x))
    assert torch.equal(gated(x), expected)


def encoder_layer() -> EncoderLayer:
    attention = DisentangledSelfAttention(8, heads=2)
    forward = FeedForward(8, 12, activation="gelu")
    return EncoderLayer(attention, forward, width=8, norm_eps=1e-7, dropout=0.0)


def test_in_inference_many_states_go_through_in_parts_and_nothing_changes() -> None:
    forward = FeedForward(8, 12, activation="gelu").eval()
    rows = []
    forward.up.register_forward_hook(lambda _, given, __: rows.append(given[0].shape[:-1].numel()))
    states = torch.randn(3, 1500, 8)
    expected = forward(states)
    with torch.inference_mode():
        found = forward(states)
    assert rows == [4500, 1024, 1024, 1024, 1024, 404]
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)


def test_the_encoder_layer_norms_after_each_part() -> None:
    layer, x = encoder_layer(), states(2, 5, 8)
    mixed = layer.attention(x, positions=None, mask=None)
    middle = layer.attention_norm(x + layer.attention_output(mixed))
    assert torch.equal(layer(x, None, None), layer.feed_forward_norm(middle + layer.feed_forward(middle)))


def test_where_others_ask_these_are_carried_on_and_the_states_only_looked_at() -> None:
    layer, x, asking = encoder_layer(), states(2, 5, 8), states(2, 5, 8, seed=1)
    mixed = layer.attention(x, positions=None, mask=None, query_states=asking)
    middle = layer.attention_norm(asking + layer.attention_output(mixed))
    expected = layer.feed_forward_norm(middle + layer.feed_forward(middle))
    assert torch.equal(layer(x, None, None, asking), expected)


def test_the_decoder_layer_norms_before_each_part() -> None:
    def attention() -> MultiHeadAttention:
        return t5_attention(8, heads=2, head_width=4, dropout=0.0)

    forward = FanInFeedForward(8, 12, dropout=0.0)
    layer = DecoderLayer(attention(), attention(), forward, width=8, norm_eps=1e-6, dropout=0.0)
    x, source = states(2, 5, 8), states(2, 7, 8, seed=1)
    bias = DenseBias(states(1, 2, 5, 5, seed=2))
    mask = torch.ones(5, 5, dtype=torch.bool).tril()[None, None]
    normed = layer.self_norm(x)
    keys, values = layer.self_attention.project_keys(normed)
    y = x + layer.self_attention(normed, keys, values, bias=bias, mask=mask)
    keys, values = layer.cross_attention.project_keys(source)
    y = y + layer.cross_attention(layer.cross_norm(y), keys, values, bias=None, mask=None)
    y = y + layer.feed_forward(layer.feed_forward_norm(y))
    memory = Memory(source_states=source, source_mask=None)
    torch.testing.assert_close(layer(x, memory, bias, mask), y)


class Scaled(nn.Module):
    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = nn.Parameter(torch.tensor(by))

    def forward(self, x: torch.Tensor, added: torch.Tensor) -> torch.Tensor:
        return x * self.by + added


def stack() -> LayerStack:
    found = LayerStack()
    found.layers = nn.ModuleList([Scaled(2.0), Scaled(3.0), Scaled(5.0)])
    return found


@pytest.mark.parametrize(("indices", "expected"), [(None, 88.0), (range(1, 3), 43.0)])
def test_layers_run_one_behind_the_other_with_what_each_is_given(
    indices: range | None, expected: float
) -> None:
    seen = []

    def after(index: int, before: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        seen.append((index, before.item(), output.item()))
        return output

    found = stack().run_layers(torch.tensor(2.0), lambda index: (index + 1.0,), after, indices=indices)
    assert float(found) == expected
    assert [index for index, *_ in seen] == list(indices or range(3))
    assert [out for *_, out in seen[:-1]] == [before for _, before, _ in seen[1:]]


def test_computing_layers_twice_changes_no_gradient() -> None:
    def gradients(twice: bool) -> list[object]:
        layers = stack().train()
        layers.gradient_checkpointing = twice
        x = torch.tensor(2.0, requires_grad=True)
        layers.run_layers(x, lambda index: (x * index,), lambda _, before, output: output).backward()
        return [x.grad, *(layer.by.grad for layer in layers.layers)]

    assert gradients(True) == gradients(False)


def test_the_reentrant_kind_of_checkpointing_is_refused_in_one_line() -> None:
    from functools import partial

    from torch.utils.checkpoint import checkpoint

    with pytest.raises(UserError, match="use_reentrant") as error:
        stack()._gradient_checkpointing_func = partial(checkpoint, use_reentrant=True)
    assert "\n" not in str(error.value)


def test_sizes_may_vary_where_layers_are_compiled_and_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    marked = []
    monkeypatch.setattr(torch._dynamo, "maybe_mark_dynamic", lambda x, at: marked.append((x.dim(), at)))
    layers, tensors = stack(), (torch.zeros(2, 3), None, torch.zeros(4))
    layers.expect_other_sizes(*tensors)
    layers.compile_layers(lambda layer: lambda layer, *given: layer(*given))
    layers.eval().expect_other_sizes(*tensors)
    assert marked == []
    layers.train().expect_other_sizes(*tensors)
    assert marked == [(2, 0), (2, 1), (1, 0)]


def test_layers_are_computed_twice_only_where_they_learn_and_it_is_asked_for() -> None:
    layers, again = stack(), []

    def noted(layer: Any, *given: Any) -> Any:
        again.append(layer)
        return layer(*given)

    layers._gradient_checkpointing_func = noted
    for asked, learning in ((False, True), (True, False), (False, False)):
        layers.gradient_checkpointing = asked
        layers.train(learning).run_layer(layers.layers[0], torch.tensor(2.0), 1.0)
        assert again == []
    layers.gradient_checkpointing = True
    assert float(layers.train().run_layer(layers.layers[0], torch.tensor(2.0), 1.0)) == 5.0
    assert again == [layers.layers[0]]
