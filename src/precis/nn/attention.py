"""The one attention function and the layer around it.

    attend(q, k, v, bias=..., mask=..., normalize=...)

Everything that the three papers change about attention is a value for one of these slots. Long inputs are worked
through in blocks of query rows, so that memory grows with the length and not with its square.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from precis.nn.normalizers import Normalizer, Softmax
from precis.nn.relative_positions import HeadTable, PositionTable
from precis.nn.score_bias import BucketedBias, DisentangledBias, ScoreBias

# With more queries than this, scores are made and used in blocks of query rows.
_BLOCK_FROM = 1024
_BLOCK_ROWS = 128

SOFTMAX = Softmax()


@final
@dataclass(frozen=True)
class OwnKeys:
    """A key and a value for each query that it alone sees: the predicting states of ProphetNet's Eqs. 8 and 9."""

    keys: Float[Tensor, "b h i e"]
    values: Float[Tensor, "b h i e"]


def attend(
    queries: Float[Tensor, "b h i e"],
    keys: Float[Tensor, "b h j e"],
    values: Float[Tensor, "b h j e"],
    *,
    bias: ScoreBias | None = None,
    mask: Bool[Tensor, "#b #h #i j"] | None = None,
    own: OwnKeys | None = None,
    normalize: Normalizer = SOFTMAX,
    scale: float = 1.0,
    dropout: float = 0.0,
) -> Float[Tensor, "b h i e"]:
    """Weighted sums of values: normalize(scale * q.k + bias, where mask) @ v.

    Args:
        own: one more key for each query, which no other sees; bias and mask then have one more column, the last.
        bias: additive scores, already scaled.
        mask: True where a query may attend. A query that may attend nowhere gets the mean of all values, never NaN.
        scale: factor of the dot products (1/sqrt(3e) for disentangled attention, 1 for T5).
        dropout: probability of dropping a weight; pass 0 outside training.
    """

    def rows(start: int, stop: int) -> Float[Tensor, "b h i e"]:
        part = mask[..., start:stop, :] if mask is not None and mask.shape[-2] > 1 else mask
        scores = bias.rows(start, stop) if bias is not None else None
        asking = queries[..., start:stop, :]
        if own is not None:
            alone = OwnKeys(own.keys[..., start:stop, :], own.values[..., start:stop, :])
            return _attend_with_own(
                asking, keys, values, alone, scores, part, normalize, scale=scale, dropout=dropout
            )
        return _attend_rows(asking, keys, values, scores, part, normalize, scale=scale, dropout=dropout)

    length = queries.shape[-2]
    if length <= _BLOCK_FROM:
        return rows(0, length)
    return _in_blocks(rows, length, recompute=torch.is_grad_enabled() and queries.requires_grad)


def _in_blocks(
    rows: Callable[[int, int], Tensor], length: int, *, recompute: bool
) -> Float[Tensor, "b h i e"]:
    """Block by block; in training each block's scores are computed again in the backward pass instead of kept."""
    spans = [(start, min(start + _BLOCK_ROWS, length)) for start in range(0, length, _BLOCK_ROWS)]
    if recompute:
        return torch.cat([checkpoint(rows, *span, use_reentrant=False) for span in spans], dim=-2)
    return torch.cat([rows(*span) for span in spans], dim=-2)


def _attend_rows(
    queries: Float[Tensor, "b h i e"],
    keys: Float[Tensor, "b h j e"],
    values: Float[Tensor, "b h j e"],
    scores: Float[Tensor, "#b #h i j"] | None,
    mask: Bool[Tensor, "#b #h #i j"] | None,
    normalize: Normalizer,
    *,
    scale: float,
    dropout: float,
) -> Float[Tensor, "b h i e"]:
    if isinstance(normalize, Softmax) and not (scores is not None and scores.requires_grad):
        additive = _additive(scores, mask, queries.dtype)
        return F.scaled_dot_product_attention(
            queries, keys, values, attn_mask=additive, dropout_p=dropout, scale=scale
        )
    weights = attention_weights(queries, keys, scores=scores, mask=mask, normalize=normalize, scale=scale)
    return F.dropout(weights, dropout, training=dropout > 0.0) @ values


def _attend_with_own(
    queries: Float[Tensor, "b h i e"],
    keys: Float[Tensor, "b h j e"],
    values: Float[Tensor, "b h j e"],
    own: OwnKeys,
    scores: Float[Tensor, "#b #h #i j+1"] | None,
    mask: Bool[Tensor, "#b #h #i j+1"] | None,
    normalize: Normalizer,
    *,
    scale: float,
    dropout: float,
) -> Float[Tensor, "b h i e"]:
    queries = queries * scale
    alone = (queries * own.keys).sum(-1, keepdim=True)  # (b h i 1)
    total = torch.cat([queries @ keys.transpose(-1, -2), alone], dim=-1)
    weights = F.dropout(_weights(total, scores, mask, normalize), dropout, training=dropout > 0.0)
    return weights[..., :-1] @ values + weights[..., -1:] * own.values


def attention_weights(
    queries: Float[Tensor, "b h i e"],
    keys: Float[Tensor, "b h j e"],
    *,
    scores: Float[Tensor, "#b #h i j"] | None = None,
    mask: Bool[Tensor, "#b #h #i j"] | None = None,
    normalize: Normalizer = SOFTMAX,
    scale: float = 1.0,
) -> Float[Tensor, "b h i j"]:
    """The weights that `attend` multiplies with the values, as a tensor: the plain path, and for looking at."""
    return _weights((queries * scale) @ keys.transpose(-1, -2), scores, mask, normalize)


def _weights(
    total: Float[Tensor, "b h i j"],
    scores: Float[Tensor, "#b #h #i j"] | None,
    mask: Bool[Tensor, "#b #h #i j"] | None,
    normalize: Normalizer,
) -> Float[Tensor, "b h i j"]:
    if scores is not None:
        total = total + scores
    if mask is not None:
        total = total.masked_fill(~mask, torch.finfo(total.dtype).min)
    return normalize(total)


def _additive(
    scores: Float[Tensor, "#b #h i j"] | None, mask: Bool[Tensor, "#b #h #i j"] | None, dtype: torch.dtype
) -> Tensor | None:
    """Bias and mask as the one additive tensor that the fused kernels take."""
    if mask is None:
        return scores.to(dtype) if scores is not None else None
    lowest = torch.finfo(dtype).min
    if scores is None:
        return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, lowest)
    return scores.to(dtype).masked_fill(~mask, lowest)


def split_heads(states: Float[Tensor, "b n he"], heads: int) -> Float[Tensor, "b h n e"]:
    return states.unflatten(-1, (heads, -1)).transpose(1, 2)  # (b n h*e) -> (b h n e)


def merge_heads(states: Float[Tensor, "b h n e"]) -> Float[Tensor, "b n he"]:
    return states.transpose(1, 2).flatten(-2)  # (b h n e) -> (b n h*e)


class FanInLinear(nn.Linear):
    """A linear map without bias whose weights start as N(0, std), T5's way: each has its own spread."""

    def __init__(self, inputs: int, outputs: int, *, std: float) -> None:
        self.std = std
        super().__init__(inputs, outputs, bias=False)

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.std)


class MultiHeadAttention(nn.Module):
    """T5's attention: projections without bias, no scaling of the dot products (the initialisation absorbs it)."""

    def __init__(self, width: int, *, heads: int, head_width: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        inner = heads * head_width
        # unscaled dot products: the query's weights carry the 1/sqrt(e)
        self.query = FanInLinear(width, inner, std=(width * head_width) ** -0.5)
        self.key = FanInLinear(width, inner, std=width**-0.5)
        self.value = FanInLinear(width, inner, std=width**-0.5)
        self.output = FanInLinear(inner, width, std=inner**-0.5)
        self.normalize: Normalizer = SOFTMAX

    def project_keys(
        self, states: Float[Tensor, "b j d"]
    ) -> tuple[Float[Tensor, "b h j e"], Float[Tensor, "b h j e"]]:
        """Keys and values of the states to be attended to."""
        return split_heads(self.key(states), self.heads), split_heads(self.value(states), self.heads)

    def forward(
        self,
        states: Float[Tensor, "b i d"],
        keys: Float[Tensor, "b h j e"],
        values: Float[Tensor, "b h j e"],
        *,
        bias: ScoreBias | None,
        mask: Bool[Tensor, "#b #h #i j"] | None,
        own: OwnKeys | None = None,
    ) -> Float[Tensor, "b i d"]:
        queries = split_heads(self.query(states), self.heads)
        dropout = self.dropout if self.training else 0.0
        mixed = attend(
            queries,
            keys,
            values,
            bias=bias,
            mask=mask,
            own=own,
            normalize=self.normalize,
            scale=1.0,
            dropout=dropout,
        )
        return self.output(merge_heads(mixed))


class DisentangledSelfAttention(nn.Module):
    """DeBERTa's self-attention: content and relative position as two vectors (Z-Code++ section 2.2).

    Args:
        content_to_position, position_to_content: which position scores are added; their number sets the scale
            1/sqrt(e * (1 + number)).
        shared_position_keys: positions go through the content's own projections (v2/v3); otherwise through two more.

    Raises:
        ValueError: `heads` does not divide `width`.
    """

    def __init__(
        self,
        width: int,
        *,
        heads: int,
        content_to_position: bool = True,
        position_to_content: bool = True,
        shared_position_keys: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width={width} is not a multiple of heads={heads}")
        self.heads = heads
        self.content_to_position = content_to_position
        self.position_to_content = position_to_content
        self.dropout = dropout
        self.scale = (width // heads * (1 + content_to_position + position_to_content)) ** -0.5
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        separate = not shared_position_keys
        self.position_key = nn.Linear(width, width) if separate and content_to_position else None
        self.position_query = nn.Linear(width, width) if separate and position_to_content else None
        self.normalize: Normalizer = SOFTMAX

    def forward(
        self,
        states: Float[Tensor, "b n d"],
        *,
        positions: PositionTable | HeadTable | None,
        mask: Bool[Tensor, "#b #h #n n"] | None,
        query_states: Float[Tensor, "b n d"] | None = None,
    ) -> Float[Tensor, "b n d"]:
        """Mixed values, before the output projection.

        Args:
            positions: disentangled scores from a `PositionTable`, T5's from a `HeadTable`, or none.
            query_states: what asks, where that is not what is asked (DeBERTa's enhanced mask decoder).
        """
        queries = split_heads(self.query(states if query_states is None else query_states), self.heads)
        keys = split_heads(self.key(states), self.heads)
        values = split_heads(self.value(states), self.heads)
        bias = self._bias(queries, keys, positions) if positions is not None else None
        dropout = self.dropout if self.training else 0.0
        mixed = attend(
            queries,
            keys,
            values,
            bias=bias,
            mask=mask,
            normalize=self.normalize,
            scale=self.scale,
            dropout=dropout,
        )
        return merge_heads(mixed)

    def _bias(
        self,
        queries: Float[Tensor, "b h n e"],
        keys: Float[Tensor, "b h n e"],
        positions: PositionTable | HeadTable,
    ) -> ScoreBias | None:
        """The layer's position scores; its tables are projected once, never once a batch row."""
        if isinstance(positions, HeadTable):
            return BucketedBias(positions, keys.shape[-2])
        if not (self.content_to_position or self.position_to_content):
            return None
        position_keys = position_queries = None
        if self.content_to_position:
            position_keys = self._project(self.position_key or self.key, positions.table)
        if self.position_to_content:
            position_queries = self._project(self.position_query or self.query, positions.table)
        return DisentangledBias(
            queries=queries,
            keys=keys,
            position_keys=position_keys,
            position_queries=position_queries,
            buckets=positions.buckets,
        )

    def _project(self, projection: nn.Module, table: Float[Tensor, "r d"]) -> Float[Tensor, "h r e"]:
        return split_heads(projection(table)[None] * self.scale, self.heads)[0]
