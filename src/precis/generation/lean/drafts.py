"""What packed decoders need besides `lean_cache` to read several tokens of one document at once, and to forget some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from precis.generation.lean.cache import Keys
from precis.nn.relative_positions import Buckets
from precis.nn.streams import StreamLayout, ahead, sight


@final
class DraftCache:
    """Keys and values of one document's target, layer by layer.

    Args:
        kept: (l 2 1 h t e), room for t tokens.
    """

    def __init__(self, kept: Float[Tensor, "l 2 1 h t e"]) -> None:
        self.length = 0  # tokens that are in it
        self._kept = kept

    @classmethod
    def like(cls, source: Keys, *, room: int) -> Self:
        """For as many layers and heads as the source has keys for; `room`: the most tokens that will be in it."""
        keys = source[0][0]
        _, heads, _, width = keys.shape
        return cls(keys.new_empty(len(source), 2, 1, heads, room, width))

    def extend(
        self, layer: int, keys: Float[Tensor, "1 h t e"], values: Float[Tensor, "1 h t e"]
    ) -> tuple[Float[Tensor, "1 h j e"], Float[Tensor, "1 h j e"]]:
        """Write a layer's keys and values behind the others; all there are, as views. `length` stays as it is."""
        kept, after = self._kept[layer], self.length + keys.shape[-2]
        kept[0, :, :, self.length : after] = keys
        kept[1, :, :, self.length : after] = values
        return kept[0, :, :, :after], kept[1, :, :, :after]


@final
@dataclass(frozen=True)
class View:
    """What t tokens and the states that look ahead from them see; the last column is a state's own key.

    Attributes:
        layout: of the states that look ahead.
        buckets: of the distances.
        hidden: 0, or minus infinity where a state does not look.
    """

    layout: StreamLayout
    buckets: Int[Tensor, "t+p j+1"]
    hidden: Float[Tensor, "t+p j+1"]


def view(
    first: int, length: int, streams: range, *, buckets: Buckets, gap: int, like: Float[Tensor, "*"]
) -> View:
    """The view of the tokens at places `first`..; `gap` as of `precis.nn.streams.sight`."""
    layout = ahead(first, length, streams, device=like.device)
    seen = sight(layout, first=first, length=length, keys=first + length, buckets=buckets, gap=gap)
    allowed = seen.mask[0, 0]
    hidden = torch.zeros(allowed.shape, dtype=like.dtype, device=like.device)
    return View(layout, seen.buckets[0], hidden.masked_fill_(~allowed, -torch.inf))


def mix_with_own(
    queries: Float[Tensor, "b h i e"],
    keys: Float[Tensor, "b h j e"],
    values: Float[Tensor, "b h j e"],
    own_keys: Float[Tensor, "b h i e"],
    own_values: Float[Tensor, "b h i e"],
    bias: Float[Tensor, "b h i j+1"],
    *,
    scale: float,
) -> Float[Tensor, "b h i e"]:
    """Attention to the keys of all and, last, to each query's own (ProphetNet Eq. 8), for few queries."""
    batch, heads, rows, _ = queries.shape
    q, k, v = queries.flatten(0, 1), keys.flatten(0, 1), values.flatten(0, 1)
    scores = bias.flatten(0, 1)
    shared = torch.baddbmm(scores[..., :-1], q, k.transpose(1, 2), alpha=scale)
    alone = (q * own_keys.flatten(0, 1)).sum(-1, keepdim=True) * scale + scores[..., -1:]
    weights = torch.cat([shared, alone], dim=-1).float().softmax(-1).to(q.dtype)
    mixed = torch.bmm(weights[..., :-1], v) + weights[..., -1:] * own_values.flatten(0, 1)
    return mixed.view(batch, heads, rows, -1)


def heads_of(states: Float[Tensor, "t he"], heads: int) -> Float[Tensor, "1 h t e"]:
    """Rows of one document, head by head."""
    return states.unflatten(-1, (heads, -1)).transpose(0, 1)[None]


def rows_of(mixed: Float[Tensor, "1 h t e"]) -> Float[Tensor, "t he"]:
    """And back."""
    return mixed[0].transpose(0, 1).flatten(1)
