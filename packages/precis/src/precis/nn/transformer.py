"""The original Transformer's encoder: post-norm layers, learnt absolute positions (ProphetNet section 2.1)."""

from __future__ import annotations

from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from precis.nn.attention import MultiHeadAttention
from precis.nn.attention_weights import AttentionWeights, observe_states
from precis.nn.blocks import EncoderStack, FeedForward, Observer
from precis.nn.dropout import Dropout
from precis.nn.padding import mask_if_padded
from precis.nn.prefix_columns import PrefixColumns, StackPrefix


class PositionRows(nn.Embedding):
    """Position rows, a separate type so that they are initialised differently from token rows."""


class AbsolutePositions(nn.Module):
    """A learnt vector per position; row 0 is for padding, position 0 has row 1, as in the released code."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.rows = PositionRows(rows, width, padding_idx=0)

    @property
    def longest(self) -> int:
        """Number of positions."""
        return self.rows.num_embeddings - 1

    def forward(self, positions: Int[Tensor, "#b t"]) -> Float[Tensor, "#b t d"]:
        return self.rows(positions + 1)


class PostNormEncoderLayer(nn.Module):
    """A post-norm layer: x = LN(x + attention(x)); x = LN(x + feed_forward(x))."""

    def __init__(
        self, attention: MultiHeadAttention, feed_forward: FeedForward, *, width: int, dropout: float
    ) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = nn.LayerNorm(width)
        self.feed_forward = feed_forward
        self.feed_forward_norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        states: Float[Tensor, "b s d"],
        mask: Bool[Tensor, "b 1 1 s"] | None,
        prefix: PrefixColumns | None = None,
    ) -> Float[Tensor, "b s d"]:
        keys, values = self.attention.project_keys(states)
        mixed = self.attention(states, keys, values, bias=None, mask=mask, prefix=prefix)
        states = self.attention_norm(states + self.dropout(mixed))
        return self.feed_forward_norm(states + self.feed_forward(states))


class PostNormEncoder(EncoderStack):
    """A stack that adds positions, normalizes, and runs the layers."""

    def __init__(
        self, layers: list[PostNormEncoderLayer], *, positions: AbsolutePositions, width: int, dropout: float
    ) -> None:
        super().__init__()
        self.positions = positions
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(layers)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        embedded: Float[Tensor, "b s d"],
        positions: Int[Tensor, "#b s"],
        valid: Bool[Tensor, "b s"] | None,
        *,
        padded: bool | None = None,
        prefix: StackPrefix | None = None,
        observe: Observer | None = None,
        weights: AttentionWeights | None = None,
    ) -> Float[Tensor, "b s d"]:
        """Return states of the last layer; `observe` receives the input of the first layer and each layer's output.

        Args:
            padded: whether some of `valid` is False; if None, it is read from the device, which waits for a GPU.
            prefix: keys and values before those of the tokens.
            weights: records the attention weights; fast paths are then not used.

        Raises:
            ValueError: there are more tokens than positions.
        """
        if embedded.shape[1] > self.positions.longest:
            raise ValueError(
                f"{embedded.shape[1]} tokens: this model has positions for {self.positions.longest}; shorten the input"
            )
        mask = mask_if_padded(valid, padded)
        states = self.dropout(self.norm(embedded + self.positions(positions)))
        if observe is not None:
            observe(states)
        self.expect_other_sizes(states, mask)

        def given(index: int) -> tuple[Any, ...]:
            first = prefix.self_attention[index] if prefix is not None else None
            if weights is not None:
                attention = self.self_attentions()[index]
                first = weights.of_layer(index, first, attention, lambda made: (made, made))
            return mask, first

        def after(_: int, before: Tensor, output: Tensor) -> Tensor:
            return observe_states(output, output.shape[1], observe)

        return self.run_layers(states, given, after)
