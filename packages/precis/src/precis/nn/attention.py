"""The attention function of all models, and the layers around it.

    attend(q, k, v, bias=..., mask=..., normalize=...)

The attention changes of all three papers are values of these arguments. Long inputs are
processed in blocks of query rows, so memory grows with the length and not with its square.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from precis.nn.attention_rows import AttentionRows, OwnKeys
from precis.nn.disentangled.bias import DisentangledBias
from precis.nn.normalizers import Normalizer, Softmax
from precis.nn.packing import Packing
from precis.nn.prefix_columns import PrefixColumns
from precis.nn.relative_positions import HeadTable, PositionTable
from precis.nn.score_bias import BucketedBias, ScoreBias

# Above this number of queries, scores are computed and used in blocks of query rows.
_BLOCK_FROM = 1024
_BLOCK_ROWS = 128

SOFTMAX = Softmax()


def attend(
    queries: Float[Tensor, "b h i e"],
    keys: Float[Tensor, "b h j e"],
    values: Float[Tensor, "b h j e"],
    *,
    bias: ScoreBias | None = None,
    mask: Bool[Tensor, "#b #h #i #jo"] | None = None,
    own: OwnKeys | None = None,
    prefix: PrefixColumns | None = None,
    normalize: Normalizer = SOFTMAX,
    scale: float = 1.0,
    dropout: float = 0.0,
) -> Float[Tensor, "b h i e"]:
    """Compute weighted sums of values: normalize(scale * q.k + bias, where mask) @ v.

    Args:
        own: one more key for each query, hidden from the others; bias and mask then have one more, last column.
        prefix: keys and values before the others; bias and mask do not cover them.
        bias: additive scores, already scaled.
        mask: True where a query may attend. A query without allowed keys gets the mean of all values, never NaN.
        scale: factor of the dot products (1/sqrt(3e) for disentangled attention, 1 for T5).
        dropout: probability of dropping a weight; pass 0 outside training.
    """
    if bias is not None and own is None and prefix is None and normalize.is_softmax:
        fused = bias.fused(queries, keys, values, mask=mask, scale=scale, dropout=dropout)
        if fused is not None:
            return fused

    def rows(start: int, stop: int) -> Float[Tensor, "b h i e"]:
        return AttentionRows(
            queries[..., start:stop, :],
            keys,
            values,
            own=own.rows(start, stop) if own is not None else None,
            prefix=prefix.rows(start, stop) if prefix is not None else None,
            scores=bias.rows(start, stop, queries, keys) if bias is not None else None,
            mask=mask[..., start:stop, :] if mask is not None and mask.shape[-2] > 1 else mask,
            normalize=normalize,
            scale=scale,
            dropout=dropout,
        ).mixed()

    length = queries.shape[-2]
    observed = prefix is not None and prefix.observe is not None
    exporting = torch.compiler.is_exporting()  # the number of blocks would depend on the length
    if exporting or length <= _BLOCK_FROM or observed or not normalize.row_wise:
        return rows(0, length)
    learning = queries.requires_grad or (prefix is not None and prefix.keys.requires_grad)
    return _in_blocks(rows, length, recompute=torch.is_grad_enabled() and learning)


def _in_blocks(
    rows: Callable[[int, int], Tensor], length: int, *, recompute: bool
) -> Float[Tensor, "b h i e"]:
    """Attend block by block; in training the backward pass recomputes each block's scores."""
    spans = [(start, min(start + _BLOCK_ROWS, length)) for start in range(0, length, _BLOCK_ROWS)]
    if recompute:
        return torch.cat([checkpoint(rows, *span, use_reentrant=False) for span in spans], dim=-2)
    return torch.cat([rows(*span) for span in spans], dim=-2)


def split_heads(states: Float[Tensor, "b n he"], heads: int) -> Float[Tensor, "b h n e"]:
    return states.unflatten(-1, (heads, -1)).transpose(1, 2)  # (b n h*e) -> (b h n e)


def merge_heads(states: Float[Tensor, "b h n e"]) -> Float[Tensor, "b n he"]:
    return states.transpose(1, 2).flatten(-2)  # (b h n e) -> (b n h*e)


class FanInLinear(nn.Linear):
    """A linear map without bias, with weights initialised from N(0, std), as in T5."""

    def __init__(self, inputs: int, outputs: int, *, std: float) -> None:
        self.std = std
        super().__init__(inputs, outputs, bias=False)

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.std)


class HeadedAttention(nn.Module):
    """Base of multi-head attention: holds `normalize`, from scores to weights, which a prefix may replace."""

    def __init__(self, *, heads: int, scale: float, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.scale = scale
        self.dropout = dropout
        self.normalize: Normalizer = SOFTMAX

    @property
    def dropped(self) -> float:
        """Probability of dropping a weight: 0 outside training."""
        return self.dropout if self.training else 0.0

    def mix(
        self,
        *states: Float[Tensor, "b h _ e"],
        mask: Bool[Tensor, "#b #h #i #jo"] | None,
        bias: ScoreBias | None,
        own: OwnKeys | None = None,
        prefix: PrefixColumns | None,
    ) -> Float[Tensor, "b i he"]:
        """Return the mixed values of all heads, concatenated, given queries, keys and values."""
        mixed = attend(
            *states,
            bias=bias,
            mask=mask,
            own=own,
            prefix=prefix,
            normalize=self.normalize.bound(mask=mask, training=self.training),
            scale=self.scale,
            dropout=self.dropped,
        )
        return merge_heads(mixed)


class MultiHeadAttention(HeadedAttention):
    """Projections around `attend`, scaled by `scale`; `t5_attention` and `scaled_attention` build the usual ones."""

    def __init__(
        self,
        *,
        query: nn.Linear,
        key: nn.Linear,
        value: nn.Linear,
        output: nn.Linear,
        heads: int,
        scale: float,
        dropout: float,
    ) -> None:
        super().__init__(heads=heads, scale=scale, dropout=dropout)
        self.query = query
        self.key = key
        self.value = value
        self.output = output

    def project_keys(
        self, states: Float[Tensor, "b j d"]
    ) -> tuple[Float[Tensor, "b h j e"], Float[Tensor, "b h j e"]]:
        """Return keys and values of `states`."""
        return split_heads(self.key(states), self.heads), split_heads(self.value(states), self.heads)

    def forward(
        self,
        states: Float[Tensor, "b i d"],
        keys: Float[Tensor, "b h j e"],
        values: Float[Tensor, "b h j e"],
        *,
        bias: ScoreBias | None,
        mask: Bool[Tensor, "#b #h #i #jo"] | None,
        own: OwnKeys | None = None,
        prefix: PrefixColumns | None = None,
    ) -> Float[Tensor, "b i d"]:
        queries = split_heads(self.query(states), self.heads)
        return self.output(self.mix(queries, keys, values, mask=mask, bias=bias, own=own, prefix=prefix))


def t5_attention(width: int, *, heads: int, head_width: int, dropout: float) -> MultiHeadAttention:
    """Build T5's attention: projections without bias; the initialisation replaces the scaling of dot products."""
    inner = heads * head_width
    return MultiHeadAttention(
        # unscaled dot products: the query's weights contain the 1/sqrt(e)
        query=FanInLinear(width, inner, std=(width * head_width) ** -0.5),
        key=FanInLinear(width, inner, std=width**-0.5),
        value=FanInLinear(width, inner, std=width**-0.5),
        output=FanInLinear(inner, width, std=inner**-0.5),
        heads=heads,
        scale=1.0,
        dropout=dropout,
    )


def scaled_attention(width: int, *, heads: int, dropout: float) -> MultiHeadAttention:
    """Build the original Transformer's attention: biases, dot products divided by sqrt(e) (ProphetNet Eqs. 4-6).

    Raises:
        ValueError: `heads` does not divide `width`.
    """
    if width % heads:
        raise ValueError(f"width={width} is not a multiple of heads={heads}")
    return MultiHeadAttention(
        query=nn.Linear(width, width), key=nn.Linear(width, width), value=nn.Linear(width, width),
        output=nn.Linear(width, width), heads=heads, scale=(width // heads) ** -0.5, dropout=dropout,
    )  # fmt: skip


class DisentangledSelfAttention(HeadedAttention):
    """DeBERTa's self-attention: content and relative position as two vectors (Z-Code++ section 2.2).

    Args:
        content_to_position, position_to_content: whether to add each position score; their number sets the scale
            1/sqrt(e * (1 + number)).
        shared_position_keys: positions use the content's own projections (v2/v3); otherwise two separate ones.

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
        if width % heads:
            raise ValueError(f"width={width} is not a multiple of heads={heads}")
        scale = (width // heads * (1 + content_to_position + position_to_content)) ** -0.5
        super().__init__(heads=heads, scale=scale, dropout=dropout)
        self.content_to_position = content_to_position
        self.position_to_content = position_to_content
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        separate = not shared_position_keys
        self.position_key = nn.Linear(width, width) if separate and content_to_position else None
        self.position_query = nn.Linear(width, width) if separate and position_to_content else None

    def forward(
        self,
        states: Float[Tensor, "b n d"],
        *,
        positions: PositionTable | HeadTable | None,
        mask: Bool[Tensor, "#b #h #n n"] | None,
        query_states: Float[Tensor, "b n d"] | None = None,
        prefix: PrefixColumns | None = None,
        packing: Packing | None = None,
    ) -> Float[Tensor, "b n d"]:
        """Return the mixed values, before the output projection.

        Args:
            positions: a `PositionTable` for disentangled scores, a `HeadTable` for T5's, or None for no scores.
            query_states: states of the queries, if they differ from `states` (DeBERTa's enhanced mask decoder).
            packing: positions of documents in `states`, which then is one row; each group has its own mask.
        """
        asking = states if query_states is None else query_states
        projected = (self.query(asking), self.key(states), self.value(states))
        bias = self._bias(positions)

        def mix(*given: Tensor, mask: Tensor | None, prefix: PrefixColumns | None) -> Tensor:
            return self.mix(*(split_heads(x, self.heads) for x in given), mask=mask, bias=bias, prefix=prefix)

        if packing is None:
            return mix(*projected, mask=mask, prefix=prefix)
        if packing.documents is not None and bias is not None and self.normalize.is_softmax:
            split = (split_heads(x, self.heads) for x in projected)
            at_once = bias.fused(
                *split, mask=None, scale=self.scale, dropout=self.dropped, documents=packing.documents
            )
            if at_once is not None:
                return merge_heads(at_once)
        return packing.each(lambda *given, group: mix(*given, mask=group.mask, prefix=None), *projected)

    def _bias(self, positions: PositionTable | HeadTable | None) -> ScoreBias | None:
        """Return the layer's position scores; tables are projected once for all rows of the batch."""
        if isinstance(positions, HeadTable):
            return BucketedBias(positions)
        if positions is None or not (self.content_to_position or self.position_to_content):
            return None
        position_keys = position_queries = None
        if self.content_to_position:
            position_keys = self._project(self.position_key or self.key, positions.table)
        if self.position_to_content:
            position_queries = self._project(self.position_query or self.query, positions.table)
        return DisentangledBias(position_keys, position_queries, positions.offsets)

    def _project(self, projection: nn.Module, table: Float[Tensor, "r d"]) -> Float[Tensor, "h r e"]:
        return split_heads(projection(table)[None] * self.scale, self.heads)[0]
