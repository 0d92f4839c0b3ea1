"""Feed-forward networks and the two layers: post-norm encoder (DeBERTa) and pre-norm decoder (T5-1.0)."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from precis.nn.attention import DisentangledSelfAttention, FanInLinear, MultiHeadAttention
from precis.nn.attention_paths import OwnKeys
from precis.nn.dropout import Dropout
from precis.nn.packed import Packing
from precis.nn.prefix import LayerPrefix, PrefixColumns
from precis.nn.relative_positions import HeadTable, PositionTable
from precis.nn.score_bias import ScoreBias

NO_PREFIX = LayerPrefix()
Activation = Callable[[Tensor], Tensor]
ACTIVATIONS: dict[str, Activation] = {
    "relu": F.relu,
    "gelu": F.gelu,  # exact erf, as DeBERTa
    "tanh": torch.tanh,
}


class FeedForward(nn.Module):
    """down(activation(up(x))): DeBERTa's, with biases and no dropout between."""

    def __init__(self, width: int, inner: int, *, activation: str) -> None:
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.activation = ACTIVATIONS[activation]

    def forward(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return self.down(self.activation(self.up(states)))


class FanInFeedForward(nn.Module):
    """down(relu(up(x))): T5-1.0's, without biases, with dropout between."""

    def __init__(self, width: int, inner: int, *, dropout: float) -> None:
        super().__init__()
        self.up = FanInLinear(width, inner, std=width**-0.5)
        self.down = FanInLinear(inner, width, std=inner**-0.5)
        self.dropout = Dropout(dropout)

    def forward(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return self.down(self.dropout(F.relu(self.up(states))))


class GatedFeedForward(nn.Module):
    """down(gelu(gate(x)) * up(x)): T5-1.1's gated GELU (the tanh form), with dropout between."""

    def __init__(self, width: int, inner: int, *, dropout: float) -> None:
        super().__init__()
        self.gate = FanInLinear(width, inner, std=width**-0.5)
        self.up = FanInLinear(width, inner, std=width**-0.5)
        self.down = FanInLinear(inner, width, std=inner**-0.5)
        self.dropout = Dropout(dropout)

    def forward(self, states: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return self.down(self.dropout(F.gelu(self.gate(states), approximate="tanh") * self.up(states)))


class EncoderLayer(nn.Module):
    """Post-norm: x = LN(x + attention(x)); x = LN(x + feed_forward(x))."""

    def __init__(
        self,
        attention: DisentangledSelfAttention,
        feed_forward: FeedForward,
        *,
        width: int,
        norm_eps: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.attention_output = nn.Linear(width, width)
        self.attention_norm = nn.LayerNorm(width, eps=norm_eps)
        self.feed_forward = feed_forward
        self.feed_forward_norm = nn.LayerNorm(width, eps=norm_eps)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        states: Float[Tensor, "b n d"],
        mask: Bool[Tensor, "b 1 1 n"] | None,
        positions: PositionTable | HeadTable | None,
        query_states: Float[Tensor, "b n d"] | None = None,
        prefix: PrefixColumns | None = None,
        packing: Packing | None = None,
    ) -> Float[Tensor, "b n d"]:
        """One layer; with `query_states` these ask and are carried on, and `states` are only looked at.

        With `packing`, `states` are one row, and `mask` and `prefix` are not looked at.
        """
        mixed = self.attention(
            states, positions=positions, mask=mask, query_states=query_states, prefix=prefix, packing=packing
        )
        carried = states if query_states is None else query_states
        states = self.attention_norm(carried + self.dropout(self.attention_output(mixed)))
        return self.feed_forward_norm(states + self.dropout(self.feed_forward(states)))


class DecoderLayer(nn.Module):
    """Pre-norm with RMS norms: self-attention, cross-attention, feed-forward, each added to its input."""

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        feed_forward: FanInFeedForward | GatedFeedForward,
        *,
        width: int,
        norm_eps: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.self_norm = nn.RMSNorm(width, eps=norm_eps)
        self.cross_norm = nn.RMSNorm(width, eps=norm_eps)
        self.feed_forward_norm = nn.RMSNorm(width, eps=norm_eps)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        states: Float[Tensor, "b t d"],
        memory: "Memory",
        *,
        bias: ScoreBias,
        mask: Bool[Tensor, "#b 1 t j"] | None,
    ) -> Float[Tensor, "b t d"]:
        normed = self.self_norm(states)
        keys, values, own = memory.target(*self.self_attention.project_keys(normed))
        mixed = self.self_attention(
            normed, keys, values, bias=bias, mask=mask, own=own, prefix=memory.prefix.self_attention
        )
        states = states + self.dropout(mixed)
        keys, values = memory.source(self.cross_attention)
        crossed = self.cross_attention(
            self.cross_norm(states),
            keys,
            values,
            bias=None,
            mask=memory.source_mask,
            prefix=memory.prefix.cross_attention,
        )
        states = states + self.dropout(crossed)
        return states + self.dropout(self.feed_forward(self.feed_forward_norm(states)))


class Memory:
    """What one decoder layer attends to: the source, and its own past when decoding step by step.

    Without a cache keys are those of this call; `decoder.py` gives the caching kind.

    Args:
        predicting: how many states at the end are predicting ones (`streams.py`), whose keys nobody else sees.
        prefix: keys and values before those of the target, and before those of the source.
    """

    def __init__(
        self,
        source_states: Float[Tensor, "b s d"],
        source_mask: Bool[Tensor, "b 1 1 s"] | None,
        *,
        predicting: int = 0,
        prefix: LayerPrefix = NO_PREFIX,
    ) -> None:
        self.source_states = source_states
        self.source_mask = source_mask
        self.predicting = predicting
        self.prefix = prefix

    def target(
        self, keys: Float[Tensor, "b h t e"], values: Float[Tensor, "b h t e"]
    ) -> tuple[Float[Tensor, "b h j e"], Float[Tensor, "b h j e"], OwnKeys | None]:
        """Keys and values that all states of the target share, and those that each has for itself."""
        if not self.predicting:
            return *self.extend(keys, values), None
        main = keys.shape[-2] - self.predicting
        return *self.extend(keys[..., :main, :], values[..., :main, :]), OwnKeys(keys, values)

    def extend(
        self, keys: Float[Tensor, "b h t e"], values: Float[Tensor, "b h t e"]
    ) -> tuple[Float[Tensor, "b h j e"], Float[Tensor, "b h j e"]]:
        """Keys and values of the target so far, these included."""
        return keys, values

    def source(
        self, attention: MultiHeadAttention
    ) -> tuple[Float[Tensor, "b h s e"], Float[Tensor, "b h s e"]]:
        """Keys and values of the source."""
        return attention.project_keys(self.source_states)
