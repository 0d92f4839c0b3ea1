"""Caches of keys and values: the source's are computed once per document, the target's with each token.

Beams of a document share its source. Reordering beams never moves their past: a token's keys stay in the slot of the
beam that wrote it. Every query attends to all slots of its document, and an additive mask (one for all layers) hides
slots that are not its ancestors. This costs some arithmetic and saves copying.

`SourceCache` and `TargetCache` are as long as their contents. `StaticSource` and `StaticTarget` have a fixed shape,
because a CUDA graph replays the same operators on the same memory: every product includes all slots from the start.
Future slots contain zeros and score minus infinity, so their weight is exactly 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from precis.nn.attention_rows import aligned

_FIRST_ROOM = 64  # initial capacity in steps; doubled when full

Keys = list[tuple[Float[Tensor, "b h s e"], Float[Tensor, "b h s e"]]]


def mix(
    queries: Float[Tensor, "b h i e"],
    keys: Float[Tensor, "b h j e"],
    values: Float[Tensor, "b h j e"],
    *,
    bias: Float[Tensor, "#b #h #i j"] | None,
    scale: float,
) -> Float[Tensor, "b h i e"]:
    """Compute softmax(scale q.k + bias) v for very few queries, with scores in fp32.

    A CPU uses two batched products, which cost half of the fused kernel at one query per head, and a quarter in half
    precision although they need copies of keys and values in fp32.
    """
    if _fuses(queries):
        mask = None if bias is None else ready_for_mix(bias)
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, scale=scale)
    batch, heads, rows, _ = queries.shape
    q, k, v = (states.flatten(0, 1).float() for states in (queries, keys, values))
    if bias is None:
        scores = torch.bmm(q, k.transpose(1, 2)) if scale == 1.0 else torch.bmm(q * scale, k.transpose(1, 2))
    else:
        added = bias.float().expand(batch, heads, -1, -1).flatten(0, 1)
        scores = torch.baddbmm(added, q, k.transpose(1, 2), alpha=scale)
    return torch.bmm(scores.softmax(-1), v).view(batch, heads, rows, -1).to(queries.dtype)


def mix_with_own(
    queries: Float[Tensor, "b h i e"],
    keys: Float[Tensor, "b h j e"],
    values: Float[Tensor, "b h j e"],
    own_keys: Float[Tensor, "b h i e"],
    own_values: Float[Tensor, "b h i e"],
    *,
    bias: Float[Tensor, "b h i jo"],
    scale: float,
) -> Float[Tensor, "b h i e"]:
    """Attend to the shared keys and, last, to each query's own key (ProphetNet Eq. 8), for few queries."""
    batch, heads, rows, _ = queries.shape
    q, k, v = queries.flatten(0, 1), keys.flatten(0, 1), values.flatten(0, 1)
    scores = bias.flatten(0, 1)
    shared = torch.baddbmm(scores[..., :-1], q, k.transpose(1, 2), alpha=scale)
    alone = (q * own_keys.flatten(0, 1)).sum(-1, keepdim=True) * scale + scores[..., -1:]
    weights = torch.cat([shared, alone], dim=-1).float().softmax(-1).to(q.dtype)
    mixed = torch.bmm(weights[..., :-1], v) + weights[..., -1:] * own_values.flatten(0, 1)
    return mixed.view(batch, heads, rows, -1)


def _fuses(states: Tensor) -> bool:
    return states.device.type != "cpu" and states.dtype is not torch.float32


def ready_for_mix(bias: Float[Tensor, "*i j"]) -> Float[Tensor, "*i j"]:
    """Align the scores for the fused kernel, if `mix` calls it."""
    return aligned(bias) if _fuses(bias) else bias


class Target(ABC):
    """Keys and values of the written tokens, for all layers; k beams of each document, in slots that never move.

    To read m tokens of a document, call `advance` once, `extend` in every layer, then attend under `bias`.
    Slots are t steps of k beams. State n of a token is n positions ahead of it: the main state is 0, and a predicting
    state attends to the same main keys as the main state of its token.

    Attributes:
        entries: (*n r), the attention input for each distance, the largest distance first and 0 last.
    """

    documents: int
    entries: Shaped[Tensor, "*n r"]

    @abstractmethod
    def advance(self, tokens: int, parents: Int[Tensor, "b k"] | None) -> None:
        """Start to read `tokens` tokens of each document.

        Args:
            parents: the beam of the last step that each beam continues; if None, each continues itself.
        """

    @abstractmethod
    def extend(
        self, layer: int, keys: Float[Tensor, "b h m e"], values: Float[Tensor, "b h m e"]
    ) -> tuple[Float[Tensor, "b h j e"], Float[Tensor, "b h j e"]]:
        """Store a layer's new keys and values; return those of all slots, j = t * k, as views."""

    @abstractmethod
    def lookback(self, states: int) -> Shaped[Tensor, "*n s #m t"]:
        """Return the entries for the distances between each token's states 0 to s-1 and all steps."""

    @abstractmethod
    def at_place(self, table: Float[Tensor, "r d"], *, ahead: int) -> Float[Tensor, "#m d"]:
        """Return the row for each token's position (0 is the first), or for `ahead` positions after it."""

    @abstractmethod
    def _hide(self, positions: Float[Tensor, "#b #h s #m t"]) -> Float[Tensor, "#b #h sm j"]:
        """Return scores of all slots, minus infinity where a state must not attend."""

    def bias(
        self, positions: Float[Tensor, "#b #h s #m t"], own: Float[Tensor, "#b #h s #m 1"] | None = None
    ) -> Float[Tensor, "#b #h sm j"]:
        """Return scores for the keys of `extend`, minus infinity where a state must not attend.

        Args:
            own: scores of each state's own key, which come last.
        """
        scores = self._hide(positions)
        return scores if own is None else torch.cat([scores, own.flatten(2, 3)], dim=-1)


@final
class SourceCache:
    """Keys and values of one batch's documents for each layer, as long as the documents.

    Args:
        valid: True at real tokens; if None, nothing is padded.

    Attributes:
        bias: scores that hide padding; None without padding.
        flat: keys and values of layer 0, then those of layer 1, and so on.
    """

    def __init__(self, keys: Keys, valid: Bool[Tensor, "b s"] | None) -> None:
        self._keys = keys
        self.flat = [tensor for pair in keys for tensor in pair]
        self.bias: Float[Tensor, "b 1 1 s"] | None = None
        if valid is not None and not bool(valid.all()):
            self.bias = ready_for_mix(padding_bias(valid, keys[0][0].dtype))

    def __getitem__(self, layer: int) -> tuple[Float[Tensor, "b h s e"], Float[Tensor, "b h s e"]]:
        return self._keys[layer]

    def keep(self, documents: Int[Tensor, " b"]) -> None:
        """Keep only these documents."""
        self._keys = [
            (keys.index_select(0, documents), values.index_select(0, documents))
            for keys, values in self._keys
        ]
        self.flat = [tensor for pair in self._keys for tensor in pair]
        if self.bias is not None:
            self.bias = ready_for_mix(self.bias.index_select(0, documents))


def padding_bias(valid: Bool[Tensor, "b s"], dtype: torch.dtype) -> Float[Tensor, "b 1 1 s"]:
    """Return 0 at real tokens and the lowest number at padding, whose weight is then exactly 0."""
    padded = ~valid[:, None, None, :]
    scores = torch.zeros(padded.shape, dtype=dtype, device=valid.device)
    return scores.masked_fill_(padded, torch.finfo(dtype).min)


@final
class TargetCache(Target):
    """The target of one batch, which grows with the tokens.

    Args:
        source: keys of the batch's documents, for the number of layers and heads and the head width.
        beams: with more than one, each reads one token at a time.
        steps: maximum number of steps; the initial capacity is smaller.

    Attributes:
        length: steps stored, including the current ones.
        kept: keys and values of all layers, with room for more steps.
        foreign: minus infinity at slots that are not a beam's ancestors; None without beams.
    """

    def __init__(self, source: Keys, entries: Shaped[Tensor, "*n r"], *, beams: int, steps: int) -> None:
        keys = source[0][0]
        self.documents, heads, _, width = keys.shape
        self.entries = entries
        self.length = 0
        self._beams, self._steps, self._read = beams, steps, 1
        room = min(steps, _FIRST_ROOM)
        slots = (heads, room * beams, width)
        self.kept = keys.new_empty(len(source), 2, self.documents, *slots)  # (l 2 b h j e)
        self.foreign: Float[Tensor, "b k t k"] | None = None
        self._own: Float[Tensor, "k k"] | None = None
        if beams > 1:
            self._own = keys.new_full((beams, beams), -torch.inf).fill_diagonal_(0.0)
            self.foreign = keys.new_empty(self.documents, beams, room, beams)

    @property
    def reads_once(self) -> bool:
        """Return whether the current read has one token of each beam."""
        return self._read == 1

    def advance(self, tokens: int, parents: Int[Tensor, "b k"] | None) -> None:
        self._read = tokens // self._beams
        if (self.length + self._read) * self._beams > self.kept.shape[4]:
            self._make_room()
        if self.foreign is not None and self._own is not None:
            past = self.foreign[:, :, : self.length]
            if parents is not None and self.length:
                past.copy_(past.take_along_dim(parents[:, :, None, None], dim=1))
            self.foreign[:, :, self.length] = self._own
        self.length += self._read

    def extend(
        self, layer: int, keys: Float[Tensor, "b h m e"], values: Float[Tensor, "b h m e"]
    ) -> tuple[Float[Tensor, "b h j e"], Float[Tensor, "b h j e"]]:
        kept, after = self.kept[layer], self.length * self._beams
        before = after - keys.shape[2]
        kept[0, :, :, before:after] = keys
        kept[1, :, :, before:after] = values
        so_far = kept[:, :, :, :after]  # (2 b h j e)
        return so_far[0], so_far[1]

    def lookback(self, states: int) -> Shaped[Tensor, "*n s #m t"]:
        entries, last = self.entries, self.entries.shape[-1]
        if self._read > 1:
            steps = torch.arange(self.length, device=entries.device)
            back = (steps[-self._read :, None] - steps).clamp_(min=0)  # (m t)
            return torch.stack([entries[..., last - 1 - ahead - back] for ahead in range(states)], dim=-3)
        rows = [entries[..., last - ahead - self.length : last - ahead] for ahead in range(states)]
        return (rows[0][..., None, :] if states == 1 else torch.stack(rows, dim=-2))[..., None, :]

    def at_place(self, table: Float[Tensor, "r d"], *, ahead: int) -> Float[Tensor, "#m d"]:
        first = self.length - self._read + ahead
        if self._read == 1 and first < len(table):
            return table[first : first + 1]
        places = torch.arange(first, first + self._read, device=table.device)
        return table[places.clamp_(max=len(table) - 1)]  # drafts past the end of the table are discarded

    def _hide(self, positions: Float[Tensor, "#b #h s #m t"]) -> Float[Tensor, "#b #h sm j"]:
        if self.foreign is not None:
            foreign = self.foreign[:, None, None, :, : self.length]  # (b 1 1 k t k)
            return (positions[..., None] + foreign).flatten(-2).flatten(2, 3)
        if self._read > 1:
            shape = (self._read, self.length)
            future = torch.full(shape, -torch.inf, dtype=positions.dtype, device=positions.device)
            positions = positions + future.triu_(self.length - self._read + 1)
        return positions.flatten(2, 3)

    def keep(self, documents: Int[Tensor, " b"]) -> None:
        """Keep only these documents."""
        self.documents = documents.shape[0]
        self.kept = self.kept.index_select(2, documents)
        if self.foreign is not None:
            self.foreign = self.foreign.index_select(0, documents)

    def _make_room(self) -> None:
        room = self.kept.shape[4] // self._beams
        more = max(min(self._steps, 2 * room), self.length + self._read) - room
        self.kept = F.pad(self.kept, (0, 0, 0, more * self._beams))  # (l 2 b h j e)
        if self.foreign is not None:
            self.foreign = F.pad(self.foreign, (0, 0, 0, more))  # (b k t k)


@final
class StaticSource:
    """Memory for the keys and values of several documents, refilled for each batch.

    Args:
        kept: (l 2 b h s e), the memory that `fill` writes to.
    """

    def __init__(self, kept: Float[Tensor, "l 2 b h s e"]) -> None:
        self._kept = kept
        self.bias = kept.new_zeros(kept.shape[2], 1, 1, kept.shape[4])

    def __getitem__(self, layer: int) -> tuple[Float[Tensor, "b h s e"], Float[Tensor, "b h s e"]]:
        return self._kept[layer, 0], self._kept[layer, 1]

    def fill(self, keys: Keys, valid: Bool[Tensor, "b s"]) -> None:
        """Copy a batch of at most this number and length of documents.

        Unused positions contain zeros, so that all results computed from them are finite.
        """
        documents, length = valid.shape
        self._kept.zero_()
        for kept, (key, value) in zip(self._kept, keys, strict=True):
            kept[0, :documents, :, :length] = key
            kept[1, :documents, :, :length] = value
        self.bias.zero_()  # rows without a document attend uniformly
        self.bias[:documents, ..., length:] = torch.finfo(self.bias.dtype).min
        self.bias[:documents, ..., :length] = padding_bias(valid, self.bias.dtype)


Source = SourceCache | StaticSource


@final
class StaticTarget(Target):
    """Memory for t steps of k beams of each document, at a position that only the device knows.

    Args:
        kept: (l 2 b h t k e).
        place: number of steps before the current one; the search increments it.
    """

    def __init__(
        self,
        kept: Float[Tensor, "l 2 b h t k e"],
        entries: Shaped[Tensor, "*n r"],
        *,
        place: Int[Tensor, " 1"],
    ) -> None:
        _, _, self.documents, _, room, beams, _ = kept.shape
        self._kept, self.entries, self._place = kept, entries, place
        self._slots = torch.arange(room, device=kept.device)
        # 0 at a beam's ancestors and its current token, else minus infinity
        shape = (self.documents, beams, room, beams) if beams > 1 else (1, 1, room, 1)
        self._hidden = kept.new_full(shape, -torch.inf)
        own = kept.new_full((beams, beams), -torch.inf).fill_diagonal_(0.0)
        self._own = own[:, None].expand(shape[0], -1, 1, -1)  # (b k 1 k)

    def restart(self) -> None:
        """Clear everything, because NaN from an earlier batch stays NaN under a weight of 0."""
        self._kept.zero_()
        self._hidden.fill_(-torch.inf)

    def advance(self, tokens: int, parents: Int[Tensor, "b k"] | None) -> None:
        if parents is not None and self._own.shape[-1] > 1:
            self._hidden.copy_(self._hidden.take_along_dim(parents[:, :, None, None], dim=1))
        self._hidden.index_copy_(2, self._place, self._own)

    def extend(
        self, layer: int, keys: Float[Tensor, "b h k e"], values: Float[Tensor, "b h k e"]
    ) -> tuple[Float[Tensor, "b h j e"], Float[Tensor, "b h j e"]]:
        kept = self._kept[layer]
        kept[0].index_copy_(2, self._place, keys[:, :, None])
        kept[1].index_copy_(2, self._place, values[:, :, None])
        slots = kept.flatten(3, 4)  # (2 b h t k e) -> (2 b h t*k e)
        return slots[0], slots[1]

    def lookback(self, states: int) -> Shaped[Tensor, "*n s 1 t"]:
        nearest = (
            self.entries.shape[-1] - 1 - (self._place - self._slots).clamp_(min=0)
        )  # the future is hidden
        rows = [self.entries.index_select(-1, nearest - ahead) for ahead in range(states)]
        return torch.stack(rows, dim=-2)[..., None, :]

    def at_place(self, table: Float[Tensor, "r d"], *, ahead: int) -> Float[Tensor, "1 d"]:
        return table.index_select(0, self._place + ahead)

    def _hide(self, positions: Float[Tensor, "#b #h s #k t"]) -> Float[Tensor, "#b #h sk j"]:
        return (positions[..., None] + self._hidden[:, None, None]).flatten(-2).flatten(2, 3)
