"""Scores that are added to the dot products: the `bias` slot of `attend`.

A bias is asked for a range of query rows, so that a long input never needs all of them at once. A bias that knows a
faster way than making its scores computes the whole attention itself (`fused`).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from precis.nn.padding import Documents
from precis.nn.relative_positions import HeadTable


class ScoreBias(ABC):
    """Additive scores for queries i and keys j, already scaled."""

    @abstractmethod
    def rows(
        self, start: int, stop: int, queries: Float[Tensor, "b h i e"], keys: Float[Tensor, "b h j e"]
    ) -> Float[Tensor, "#b #h _ j"]:
        """The scores of query rows `start` to `stop` (exclusive) against all keys."""

    def fused(
        self,
        queries: Float[Tensor, "b h i e"],
        keys: Float[Tensor, "b h j e"],
        values: Float[Tensor, "b h j e"],
        *,
        mask: Bool[Tensor, "#b #h #i j"] | None,
        scale: float,
        dropout: float,
        documents: Documents | None = None,
    ) -> Float[Tensor, "b h i e"] | None:
        """Softmax attention with these scores by a faster way, or None if there is none for these inputs.

        Args:
            documents: where each document lies, if the inputs are one row of many; none sees another.
        """
        return None


@final
@dataclass(frozen=True)
class DenseBias(ScoreBias):
    """Scores that exist as one tensor: small ones, such as T5's shared table over a short target."""

    scores: Float[Tensor, "#b #h i j"]

    def rows(self, start: int, stop: int, queries: Tensor, keys: Tensor) -> Float[Tensor, "#b #h _ j"]:
        return self.scores[..., start:stop, :]


@final
@dataclass(frozen=True)
class BucketedBias(ScoreBias):
    """T5's encoder bias: a learnt number for each head and bucket of distance, the same for every row and content."""

    heads: HeadTable

    def rows(self, start: int, stop: int, queries: Tensor, keys: Tensor) -> Float[Tensor, "1 h _ j"]:
        asking = torch.arange(start, stop, device=keys.device)
        asked = torch.arange(keys.shape[-2], device=keys.device)
        buckets = self.heads.buckets(asking[:, None] - asked[None, :])
        return self.heads.table[buckets].permute(2, 0, 1)[None]  # (i j h) -> (1 h i j)
