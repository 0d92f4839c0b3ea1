"""Keys and values in memory of a fixed shape, written at a place that only the device knows.

A CUDA graph replays the same operators on the same memory. So all slots are there from the beginning and take part in
every product; those of the future have a score of minus infinity, whose weight is exactly 0, and hold zeros.
"""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from precis.generation.lean.cache import Keys, Source, Target, padding_bias


@final
class StaticSource(Source):
    """Room for the keys and values of several documents, filled anew for each batch.

    Args:
        kept: (l 2 b h s e), what `fill` writes to.
    """

    def __init__(self, kept: Float[Tensor, "l 2 b h s e"]) -> None:
        self._kept = kept
        self.bias = kept.new_zeros(kept.shape[2], 1, 1, kept.shape[4])

    def __getitem__(self, layer: int) -> tuple[Float[Tensor, "b h s e"], Float[Tensor, "b h s e"]]:
        return self._kept[layer, 0], self._kept[layer, 1]

    def fill(self, keys: Keys, valid: Bool[Tensor, "b s"]) -> None:
        """Take over a batch of no more and no longer documents than there is room for.

        Places that no document has keep zeros, so that all that is computed from them is finite.
        """
        documents, length = valid.shape
        self._kept.zero_()
        for kept, (key, value) in zip(self._kept, keys, strict=True):
            kept[0, :documents, :, :length] = key
            kept[1, :documents, :, :length] = value
        assert self.bias is not None
        self.bias.zero_()  # of rows without a document: all places alike
        self.bias[:documents, ..., length:] = torch.finfo(self.bias.dtype).min
        self.bias[:documents, ..., :length] = padding_bias(valid, self.bias.dtype)


@final
class StaticTarget(Target):
    """Room for t steps of k beams of each document.

    Args:
        kept: (l 2 b h t k e).
        place: how many steps came before the present one; whoever searches moves it on.
    """

    def __init__(self, kept: Float[Tensor, "l 2 b h t k e"], *, place: Int[Tensor, " 1"]) -> None:
        _, _, self.documents, _, room, beams, _ = kept.shape
        self._kept, self._place = kept, place
        self._slots = torch.arange(room, device=kept.device)
        # 0 where a slot holds an ancestor of a beam or its present token, else minus infinity
        shape = (self.documents, beams, room, beams) if beams > 1 else (1, 1, room, 1)
        self._hidden = kept.new_full(shape, -torch.inf)
        own = kept.new_full((beams, beams), -torch.inf).fill_diagonal_(0.0)
        self._own = own[:, None].expand(shape[0], -1, 1, -1)  # (b k 1 k)

    def restart(self) -> None:
        """Forget everything. What an earlier batch left could be no number, and no weight makes that nothing."""
        self._kept.zero_()
        self._hidden.fill_(-torch.inf)

    def advance(self, parents: Int[Tensor, "b k"] | None) -> None:
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

    def bias(self, positions: Float[Tensor, "#b #h #k t"]) -> Float[Tensor, "#b #h #k j"]:
        return (positions[..., None] + self._hidden[:, None]).flatten(-2)

    def lookback(self, table: Shaped[Tensor, "*n r"], *, ahead: int = 0) -> Shaped[Tensor, "*n t"]:
        distances = (self._place - self._slots).clamp_(min=0) + ahead  # slots of the future are hidden anyway
        return table.index_select(-1, table.shape[-1] - 1 - distances)

    def at_place(self, table: Float[Tensor, "r d"], *, ahead: int) -> Float[Tensor, "1 d"]:
        return table.index_select(0, self._place + ahead)
