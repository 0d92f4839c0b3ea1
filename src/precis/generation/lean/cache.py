"""Keys and values during decoding: those of the source once a document, those of the target where they were written.

Beams of a document share its source. Their own past is never moved when beams change places: a token's keys stay in
the slot of the beam that wrote it, every query is multiplied with all slots of its document, and an additive mask (one
for all layers) leaves each beam the slots of its own ancestors. That is some more arithmetic, which a step has to
spare, for no copying.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from precis.nn.alignment import aligned
from precis.nn.attention import MultiHeadAttention

_FIRST_ROOM = 64  # steps that there is room for at the start; doubled when full

Keys = list[tuple[Float[Tensor, "b h s e"], Float[Tensor, "b h s e"]]]


def source_keys(
    attentions: Sequence[MultiHeadAttention], source: Float[Tensor, "b s d"], dtype: torch.dtype
) -> Keys:
    """Keys and values of the documents for each layer, computed once."""
    projected = [attention.project_keys(source) for attention in attentions]
    return [(keys.to(dtype).contiguous(), values.to(dtype).contiguous()) for keys, values in projected]


def mix(
    queries: Float[Tensor, "b h i e"],
    keys: Float[Tensor, "b h j e"],
    values: Float[Tensor, "b h j e"],
    *,
    bias: Float[Tensor, "#b #h #i j"] | None,
    scale: float,
) -> Float[Tensor, "b h i e"]:
    """softmax(scale q.k + bias) v for very few queries.

    In fp32 two batched products, which cost half of what the fused kernel does at one query a head; in half precision
    the fused kernel, which adds up in fp32.
    """
    if queries.dtype is not torch.float32:
        mask = None if bias is None else ready_for_mix(bias)
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, scale=scale)
    batch, heads, rows, _ = queries.shape
    q, k, v = queries.flatten(0, 1), keys.flatten(0, 1), values.flatten(0, 1)
    if bias is None:
        scores = torch.bmm(q, k.transpose(1, 2)) if scale == 1.0 else torch.bmm(q * scale, k.transpose(1, 2))
    else:
        added = bias.expand(batch, heads, -1, -1).flatten(0, 1)
        scores = torch.baddbmm(added, q, k.transpose(1, 2), alpha=scale)
    return torch.bmm(scores.softmax(-1), v).view(batch, heads, rows, -1)


def ready_for_mix(bias: Float[Tensor, "*i j"]) -> Float[Tensor, "*i j"]:
    """The scores as `mix` hands them to the fused kernel, which it calls in half precision alone."""
    return bias if bias.dtype is torch.float32 else aligned(bias)


class Source(ABC):
    """Keys and values of the documents, layer by layer.

    Attributes:
        bias: scores that padding gets; None: nothing is padded.
    """

    bias: Float[Tensor, "b 1 1 s"] | None

    @abstractmethod
    def __getitem__(self, layer: int) -> tuple[Float[Tensor, "b h s e"], Float[Tensor, "b h s e"]]: ...


class Target(ABC):
    """Keys and values of what was written, for all layers; k beams of each document, in slots that never move.

    Each step: `advance` once, then `extend` in every layer, then attention under `bias`. Slots are t steps of k beams.
    """

    documents: int

    @abstractmethod
    def advance(self, parents: Int[Tensor, "b k"] | None) -> None:
        """Begin a step.

        Args:
            parents: which beam of the last step each beam goes on from; None: each from itself.
        """

    @abstractmethod
    def extend(
        self, layer: int, keys: Float[Tensor, "b h k e"], values: Float[Tensor, "b h k e"]
    ) -> tuple[Float[Tensor, "b h j e"], Float[Tensor, "b h j e"]]:
        """Write the step's keys and values of a layer; those of all slots, j = t * k, as views."""

    @abstractmethod
    def bias(self, positions: Float[Tensor, "#b #h #k t"]) -> Float[Tensor, "#b #h #k j"]:
        """Scores for the keys of `extend`: those of a token's place, and minus infinity where a beam does not look."""

    @abstractmethod
    def lookback(self, table: Shaped[Tensor, "*n r"], *, ahead: int = 0) -> Shaped[Tensor, "*n t"]:
        """The entries for the slots' distances from the present step, or from `ahead` steps after it.

        Args:
            table: an entry for each distance, r-1 first and 0 last.
        """

    @abstractmethod
    def at_place(self, table: Float[Tensor, "r d"], *, ahead: int) -> Float[Tensor, "1 d"]:
        """The row of the present step's place (0 is the first), or of `ahead` places after it."""


@final
class SourceCache(Source):
    """Of one batch, as long as its documents."""

    def __init__(self, keys: Keys, valid: Bool[Tensor, "b s"] | None) -> None:
        """`valid`: True at real tokens; None: nothing is padded."""
        self._keys = keys
        self.bias = None
        if valid is not None and not bool(valid.all()):
            self.bias = ready_for_mix(padding_bias(valid, keys[0][0].dtype))

    def __getitem__(self, layer: int) -> tuple[Float[Tensor, "b h s e"], Float[Tensor, "b h s e"]]:
        return self._keys[layer]

    def keep(self, documents: Int[Tensor, " m"]) -> None:
        """Go on with these documents only."""
        self._keys = [
            (keys.index_select(0, documents), values.index_select(0, documents))
            for keys, values in self._keys
        ]
        if self.bias is not None:
            self.bias = ready_for_mix(self.bias.index_select(0, documents))


def padding_bias(valid: Bool[Tensor, "b s"], dtype: torch.dtype) -> Float[Tensor, "b 1 1 s"]:
    """0 at real tokens and the least number at padding, whose weight is then exactly 0."""
    padded = ~valid[:, None, None, :]
    scores = torch.zeros(padded.shape, dtype=dtype, device=valid.device)
    return scores.masked_fill_(padded, torch.finfo(dtype).min)


@final
class TargetCache(Target):
    """Of one batch; grows with what is written."""

    def __init__(
        self,
        *,
        layers: int,
        documents: int,
        heads: int,
        head_width: int,
        beams: int,
        steps: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        """`steps`: the most that will be asked for; less room is taken at first."""
        self.length = 0  # steps that are in it, the present one included
        self.documents = documents
        self._beams, self._steps = beams, steps
        room = min(steps, _FIRST_ROOM)
        shape = (layers, 2, documents, heads, room, beams, head_width)
        self._kept = torch.empty(shape, dtype=dtype, device=device)  # (l 2 b h t k e)
        self._foreign: Float[Tensor, "b k t k"] | None = None  # -inf where a slot holds no ancestor of a beam
        self._own: Float[Tensor, "k k"] | None = None
        if beams > 1:
            own = torch.full((beams, beams), -torch.inf, dtype=dtype, device=device).fill_diagonal_(0.0)
            self._foreign = torch.empty(documents, beams, room, beams, dtype=dtype, device=device)
            self._own = own

    def advance(self, parents: Int[Tensor, "b k"] | None) -> None:
        if self.length == self._kept.shape[4]:
            self._make_room()
        if self._foreign is not None and self._own is not None:
            past = self._foreign[:, :, : self.length]
            if parents is not None and self.length:
                past.copy_(past.take_along_dim(parents[:, :, None, None], dim=1))
            self._foreign[:, :, self.length] = self._own
        self.length += 1

    def extend(
        self, layer: int, keys: Float[Tensor, "b h k e"], values: Float[Tensor, "b h k e"]
    ) -> tuple[Float[Tensor, "b h j e"], Float[Tensor, "b h j e"]]:
        kept = self._kept[layer]
        kept[0, :, :, self.length - 1] = keys
        kept[1, :, :, self.length - 1] = values
        so_far = kept[:, :, :, : self.length].flatten(3, 4)  # (2 b h t k e) -> (2 b h t*k e)
        return so_far[0], so_far[1]

    def bias(self, positions: Float[Tensor, "#b h #k t"]) -> Float[Tensor, "#b h #k j"]:
        if self._foreign is None:
            return positions
        foreign = self._foreign[:, None, :, : self.length]  # (b 1 k t k)
        return (positions[..., None] + foreign).flatten(-2)

    def lookback(self, table: Shaped[Tensor, "*n r"], *, ahead: int = 0) -> Shaped[Tensor, "*n t"]:
        nearest = table.shape[-1] - ahead
        return table[..., nearest - self.length : nearest]

    def at_place(self, table: Float[Tensor, "r d"], *, ahead: int) -> Float[Tensor, "1 d"]:
        place = self.length - 1 + ahead
        return table[place : place + 1]

    def keep(self, documents: Int[Tensor, " m"]) -> None:
        """Go on with these documents only."""
        self.documents = documents.shape[0]
        self._kept = self._kept.index_select(2, documents)
        if self._foreign is not None:
            self._foreign = self._foreign.index_select(0, documents)

    def _make_room(self) -> None:
        more = min(self._steps, 2 * self.length) - self.length
        # (l 2 b h t k e), (b k t k): the axis of steps
        self._kept = F.pad(self._kept, (0, 0, 0, 0, 0, more))
        if self._foreign is not None:
            self._foreign = F.pad(self._foreign, (0, 0, 0, more))
