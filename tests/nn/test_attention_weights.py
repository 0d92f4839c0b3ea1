"""Weights that are written down, and states that are looked at on their way."""

from typing import Any

import torch

from precis.nn.attention import MultiHeadAttention, attend, t5_attention
from precis.nn.attention_weights import AttentionWeights, in_order, observe_states, observed
from precis.nn.prefix_columns import PrefixColumns


def states(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def test_without_a_prefix_weights_are_observed_by_one_of_no_columns_that_changes_nothing() -> None:
    layer, seen = t5_attention(8, heads=2, head_width=4, dropout=0.0), []  # type: ignore[var-annotated]
    q, k, v = states(3, 1, 2, 5, 4)
    columns = observed(None, layer, seen.append)
    assert columns.length == 0
    torch.testing.assert_close(attend(q, k, v, prefix=columns), attend(q, k, v))
    torch.testing.assert_close(seen[0] @ v, attend(q, k, v))


def test_who_observes_later_sees_what_the_first_gave_back() -> None:
    keys = states(2, 3, 4)
    first = PrefixColumns(keys, keys, observe=lambda weights: weights * 0)
    seen: list[Any] = []
    q, k, v = states(3, 1, 2, 5, 4)
    mixed = attend(
        q, k, v, prefix=observed(first, t5_attention(8, heads=2, head_width=4, dropout=0.0), seen.append)
    )
    assert not seen[0].any()
    assert not mixed.any()


def test_main_and_predicting_weights_are_written_apart() -> None:
    class Stack:
        def self_attentions(self) -> tuple[MultiHeadAttention, ...]:
            return (t5_attention(8, heads=2, head_width=4, dropout=0.0),)

        cross_attentions = self_attentions

    weights = AttentionWeights()
    prefix = weights.of_decoder(None, Stack(), length=3)
    made = torch.softmax(
        states(1, 2, 5, 4), -1
    )  # three main states, two predicting ones with a key of their own
    made[:, :, :3, 3] = 0.0
    own, cross = prefix.self_attention[0], prefix.cross_attention[0]
    assert own is not None
    assert own.observe is not None
    assert cross is not None
    assert cross.observe is not None
    told = own.observe(made)
    assert told is not None
    assert torch.equal(told, made)
    assert torch.equal(weights.self_attention[0], made[:, :, :3, :3])
    assert torch.equal(weights.predicting_self[0], made[:, :, 3:])
    cross.observe(made)
    assert torch.equal(weights.cross_attention[0], made[:, :, :3])
    own.observe(made[:, :, :3])
    cross.observe(made[:, :, :3])
    for without_predicting in (weights.self_attention[0], weights.cross_attention[0]):
        assert torch.equal(without_predicting, made[:, :, :3])


def test_weights_come_in_the_order_of_layers() -> None:
    one, two = states(1), states(2)
    assert in_order({3: two, 0: one}) == (one, two)
    assert in_order({}) is None


def test_gradients_reach_the_states_that_were_looked_at() -> None:
    seen = []

    def look(main: torch.Tensor) -> None:
        main.retain_grad()
        seen.append(main)

    given = states(2, 5, 4).requires_grad_()
    whole = observe_states(given * 2, 3, look)
    assert torch.equal(whole, given * 2)
    whole.sum().backward()
    assert seen[0].shape == (2, 3, 4)
    assert seen[0].grad is not None
    assert torch.equal(seen[0].grad, torch.ones(2, 3, 4))
    assert observe_states(given, 3, None) is given
