"""Records attention weights on request; a stack then uses the plain path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, final, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from precis.nn.prefix_columns import Observe, PrefixColumns, StackPrefix

ByLayer = dict[int, Tensor]
View = Callable[[Tensor], tuple[Tensor, Tensor]]
"""A function of one attention's weights: returns (the recorded weights, the same numbers to continue with)."""


@runtime_checkable
class Attentions(Protocol):
    """The attentions of a stack, by layer."""

    def self_attentions(self) -> tuple[nn.Module, ...]: ...
    def cross_attentions(self) -> tuple[nn.Module, ...]: ...


@final
@dataclass
class AttentionWeights:
    """The attention weights of one call of a stack, by layer, before dropout.

    A query's weights sum to one over all its keys; a prefix's keys come first. Gradients flow through the record.

    Attributes:
        self_attention: (b h i j); zero between chunks if a layer attends within chunks.
        cross_attention: (b h t s).
        predicting_self: (b h p j+1) of predicting states; the own key comes last.
        predicting_cross: (b h p s).
    """

    self_attention: ByLayer = field(default_factory=dict)
    cross_attention: ByLayer = field(default_factory=dict)
    predicting_self: ByLayer = field(default_factory=dict)
    predicting_cross: ByLayer = field(default_factory=dict)

    def of_layer(
        self, layer: int, columns: PrefixColumns | None, attention: nn.Module, view: View
    ) -> PrefixColumns:
        """Return prefix columns that make a self-attention record its weights."""

        def observe(weights: Tensor) -> Tensor:
            self.self_attention[layer], same = view(weights)
            return same

        return observed(columns, attention, observe)

    def of_decoder(self, prefix: StackPrefix | None, stack: Attentions, *, length: int) -> StackPrefix:
        """Return a prefix that makes a decoder record its weights; its first `length` states are main states."""
        own, crossed = stack.self_attentions(), stack.cross_attentions()
        given = prefix or StackPrefix((None,) * len(own))

        def look(index: int, columns: PrefixColumns | None, *, cross: bool) -> PrefixColumns:
            main = self.cross_attention if cross else self.self_attention
            ahead = self.predicting_cross if cross else self.predicting_self

            def observe(weights: Tensor) -> Tensor:
                if weights.shape[-2] == length:
                    main[index] = weights
                    return weights
                keys = weights.shape[-1] - (not cross)  # the column of own keys is hidden from main states
                main[index], ahead[index] = weights[..., :length, :keys], weights[..., length:, :]
                return torch.cat([F.pad(main[index], (0, weights.shape[-1] - keys)), ahead[index]], dim=-2)

            return observed(columns, (crossed if cross else own)[index], observe)

        layers = [given.layer(index) for index in range(len(own))]
        return StackPrefix(
            tuple(look(i, layer.self_attention, cross=False) for i, layer in enumerate(layers)),
            tuple(look(i, layer.cross_attention, cross=True) for i, layer in enumerate(layers)),
        )


def observed(columns: PrefixColumns | None, attention: nn.Module, observe: Observe) -> PrefixColumns:
    """Add an observer of the weights to the prefix; without a prefix, to one without columns."""
    if columns is None:
        known: Any = attention
        nothing = torch.zeros(
            known.heads, 0, known.key.out_features // known.heads, device=known.key.weight.device
        )
        return PrefixColumns(nothing, nothing, observe=observe)
    before = columns.observe
    if before is None:
        return replace(columns, observe=observe)

    def both(weights: Tensor) -> Tensor | None:
        told = before(weights)
        again = observe(weights if told is None else told)
        return told if again is None else again

    return replace(columns, observe=both)


def in_order(weights: ByLayer) -> tuple[Tensor, ...] | None:
    """Return the weights in the order of layers; None if there are none."""
    return tuple(weights[layer] for layer in sorted(weights)) or None


def observe_states(
    states: Float[Tensor, "b tp d"], length: int, observe: Callable[[Tensor], None] | None
) -> Float[Tensor, "b tp d"]:
    """Call `observe` with the first `length` states of each row; return states that depend on the observed ones."""
    if observe is None:
        return states
    if states.shape[1] == length:
        observe(states)
        return states
    main = states[:, :length]
    observe(main)
    return torch.cat([main, states[:, length:]], dim=1)
