"""Scores added to the dot products: the `bias` argument of `attend`.

A bias computes a range of query rows at a time, so a long input never needs all of them at once. A bias with a
faster method than computing its scores computes the whole attention itself (`fused`).
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
        """Return the scores of query rows `start` to `stop` (exclusive) against all keys."""

    def fused(
        self,
        queries: Float[Tensor, "b h i e"],
        keys: Float[Tensor, "b h j e"],
        values: Float[Tensor, "b h j e"],
        *,
        mask: Bool[Tensor, "#b #h #i #j"] | None,
        scale: float,
        dropout: float,
        documents: Documents | None = None,
    ) -> Float[Tensor, "b h i e"] | None:
        """Compute softmax attention with these scores by a faster path; return None if it does not support the inputs.

        Args:
            documents: bounds of the documents, if the inputs are one row of many; none attends to another.
        """
        return None


@final
@dataclass(frozen=True)
class DenseBias(ScoreBias):
    """Scores stored as one tensor: small ones, such as T5's shared table over a short target."""

    scores: Float[Tensor, "#b #h i j"]

    def rows(self, start: int, stop: int, queries: Tensor, keys: Tensor) -> Float[Tensor, "#b #h _ j"]:
        return self.scores[..., start:stop, :]


@final
@dataclass(frozen=True)
class BucketedBias(ScoreBias):
    """T5's encoder bias: a learnt number per head and distance bucket, the same for every row and content."""

    heads: HeadTable

    def rows(self, start: int, stop: int, queries: Tensor, keys: Tensor) -> Float[Tensor, "1 h _ j"]:
        asking = torch.arange(start, stop, device=keys.device)
        asked = torch.arange(keys.shape[-2], device=keys.device)
        buckets = self.heads.buckets(asking[:, None] - asked[None, :])
        return self.heads.table[buckets].permute(2, 0, 1)[None]  # (i j h) -> (1 h i j)
