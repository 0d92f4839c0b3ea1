"""Keys and values before those of the input: the prefix's columns of an attention matrix.

A stack of layers receives a `StackPrefix` for one call and passes `PrefixColumns` to each attention. `attention_rows`
joins them with the columns of the input, where `normalizers` (TruncSA, SoftSA) make weights of both. The source of the
keys is not known here (`precis.tuning`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, final, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

Observe = Callable[[Float[Tensor, "b h i pj"]], Tensor | None]
"""A function that receives attention weights; a tensor that it returns replaces them."""

# Added to the score of a column that a query may not see, before scaling: its weight is zero in any dtype, and
# float16 can represent it.
_FORBIDDEN = -3e4
_LANES = 8  # fused kernels prefer head widths that are multiples of this


@final
@dataclass(frozen=True)
class PrefixBlocks:
    """The visible columns of each query: those of its own segment (UniBlock).

    Attributes:
        segments: the segment of each query.
        columns: the segment of each column.
        count: number of segments.
    """

    segments: Int[Tensor, "#b #i"]
    columns: Int[Tensor, " p"]
    count: int

    def visible(self) -> Bool[Tensor, "#b 1 #i p"]:
        """Return a mask that is True where a query may see a column."""
        return self.segments[:, None, :, None] == self.columns

    def rows(self, start: int, stop: int) -> PrefixBlocks:
        """Return the blocks of the queries `start` to `stop`."""
        if self.segments.shape[-1] == 1:
            return self
        return replace(self, segments=self.segments[:, start:stop])


@final
@dataclass(frozen=True)
class PrefixColumns:
    """The prefix of one attention in one call; p may be 0.

    Attributes:
        keys, values: shared by all rows of a batch.
        blocks: the visible columns of each query; if None, every query sees every column.
        observe: receives the weights over prefix and input columns, in that order; fast paths are then not used.
    """

    keys: Float[Tensor, "h p e"]
    values: Float[Tensor, "h p e"]
    blocks: PrefixBlocks | None = None
    observe: Observe | None = None

    @property
    def length(self) -> int:
        """Number of columns."""
        return self.keys.shape[-2]

    def rows(self, start: int, stop: int) -> PrefixColumns:
        """Return the prefix for the queries `start` to `stop`."""
        return self if self.blocks is None else replace(self, blocks=self.blocks.rows(start, stop))

    def cut(self, cut: Callable[[Tensor], Tensor]) -> PrefixColumns:
        """Return the prefix for rearranged queries: in chunks, or in several streams."""
        if self.blocks is None or self.blocks.segments.shape[-1] == 1:
            return self
        return replace(self, blocks=replace(self.blocks, segments=cut(self.blocks.segments)))

    def scores(self, queries: Float[Tensor, "b h i e"]) -> Float[Tensor, "b h i p"]:
        """Compute scores of (scaled) queries, the dtype's minimum for hidden columns; keys are not copied."""
        scores = torch.einsum("bhie,hpe->bhip", queries, self.keys.to(queries.dtype))
        if self.blocks is None:
            return scores
        return scores.masked_fill(~self.blocks.visible(), torch.finfo(scores.dtype).min)

    def mix(self, weights: Float[Tensor, "b h i p"]) -> Float[Tensor, "b h i e"]:
        """Compute weighted sums of the prefix's values."""
        return torch.einsum("bhip,hpe->bhie", weights, self.values.to(weights.dtype))


def before(
    prefix: PrefixColumns,
    queries: Float[Tensor, "b h i e"],
    keys: Float[Tensor, "b h j e"],
    values: Float[Tensor, "b h j e"],
) -> tuple[Float[Tensor, "b h i f"], Float[Tensor, "b h pj f"], Float[Tensor, "b h pj f"]]:
    """Join prefix and input for a fused kernel; only the first e entries of its result are used.

    Extra entries of each head encode the blocks, instead of a mask. A query has a 1 at its segment's entry. A column
    has a large negative number in the entries of other segments and 0 in its own; other keys have zeros.
    """
    batch = keys.shape[0]
    first = prefix.keys.to(keys.dtype).expand(batch, -1, -1, -1)
    first_values = prefix.values.to(values.dtype).expand(batch, -1, -1, -1)
    if prefix.blocks is not None:
        blocks, more = prefix.blocks, -(-prefix.blocks.count // _LANES) * _LANES
        asking = F.one_hot(blocks.segments, more).to(queries.dtype)[:, None]  # (b 1 i more)
        against = (1 - F.one_hot(blocks.columns, more)[:, : blocks.count]) * _FORBIDDEN
        against = F.pad(against.to(keys.dtype), (0, more - blocks.count))
        queries = torch.cat([queries, asking.expand(*queries.shape[:-1], -1)], dim=-1)
        first = torch.cat([first, against.expand(*first.shape[:-1], -1)], dim=-1)
        keys, values, first_values = (F.pad(x, (0, more)) for x in (keys, values, first_values))
    return queries, torch.cat([first, keys], dim=-2), torch.cat([first_values, values], dim=-2)


@final
@dataclass(frozen=True)
class LayerPrefix:
    """The prefixes of one layer's attentions."""

    self_attention: PrefixColumns | None = None
    cross_attention: PrefixColumns | None = None


@final
@dataclass(frozen=True)
class StackPrefix:
    """The prefixes of a stack in one call, by layer; for an encoder, `cross_attention` is empty."""

    self_attention: tuple[PrefixColumns | None, ...]
    cross_attention: tuple[PrefixColumns | None, ...] = ()

    def layer(self, index: int) -> LayerPrefix:
        """Return the prefix of one layer."""
        crossed = self.cross_attention[index] if self.cross_attention else None
        return LayerPrefix(self.self_attention[index], crossed)

    def cut(self, cut: Callable[[Tensor], Tensor]) -> StackPrefix:
        """Return the prefix for rearranged queries; see `PrefixColumns.cut`."""
        return StackPrefix(
            tuple(p.cut(cut) if p else None for p in self.self_attention),
            tuple(p.cut(cut) if p else None for p in self.cross_attention),
        )


@runtime_checkable
class TakesPrefix(Protocol):
    """A stack whose `forward` has an argument `prefix: StackPrefix | None`.

    An encoder's also has `valid`, True at real tokens; a decoder's has `cache`, and its first argument is the target's
    states or embeddings (b t d).
    """

    def self_attentions(self) -> tuple[nn.Module, ...]:
        """Return each layer's self-attention: a module with `heads`, `key` (a linear map) and `normalize`."""

    def cross_attentions(self) -> tuple[nn.Module, ...]:
        """Return each layer's cross-attention; empty for an encoder."""
