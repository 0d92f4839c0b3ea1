"""Training data of a unit scorer: the vectors, features and labels of each document's units, and batches of them.

The arrays are files of a folder, mapped into memory: the hidden states of a million units take gigabytes.

    vectors.npy  (units, 2d) float16     facts.npy  (units, f) float32     wanted.npy  (units,) uint8
    bounds.npy   (documents + 1,) int64  words.npy  (documents,) float32: words of the reference
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from precis.data.batches.length_buckets import Moves
from precis_text.errors import UserError


@dataclass(frozen=True)
class UnitBatch(Moves):
    """Documents of one batch, padded to the one with the most units.

    Attributes:
        wanted: 1 for the units to choose.
        log_words: log of the number of words in each reference.
    """

    vectors: Float[Tensor, "b u dd"]
    facts: Float[Tensor, "b u f"]
    valid: Bool[Tensor, "b u"]
    wanted: Float[Tensor, "b u"]
    log_words: Float[Tensor, " b"]


@dataclass(frozen=True)
class UnitDocuments:
    """Documents, each a run of units; the module docstring describes the arrays."""

    vectors: NDArray[np.float16]
    facts: NDArray[np.float32]
    wanted: NDArray[np.uint8]
    bounds: NDArray[np.int64]
    words: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.words)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Units of each document."""
        return np.diff(self.bounds)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Map the arrays of a folder; raise `UserError` if one is missing or does not fit the others."""
        try:
            found = cls(
                *(
                    np.load(folder / f"{field.name}.npy", mmap_mode="r", allow_pickle=False)
                    for field in fields(cls)
                )
            )
        except (OSError, ValueError) as error:
            raise UserError(f"{folder}: cannot be read ({error}); delete it to rebuild it") from error
        units, documents = len(found.vectors), len(found.words)
        if not len(found.facts) == len(found.wanted) == units or len(found.bounds) != documents + 1:
            raise UserError(f"{folder}: its arrays do not belong together; delete it to rebuild it")
        return found

    def save(self, folder: Path) -> None:
        """Write the arrays to a folder."""
        for field in fields(self):
            np.save(folder / f"{field.name}.npy", getattr(self, field.name), allow_pickle=False)

    def batch(self, documents: Sequence[int]) -> UnitBatch:
        """Return these documents as a batch."""
        longest = max(int(self.sizes[document]) for document in documents)
        valid = torch.zeros(len(documents), longest, dtype=torch.bool)
        vectors = torch.zeros(len(documents), longest, self.vectors.shape[1])
        facts = torch.zeros(len(documents), longest, self.facts.shape[1])
        wanted = torch.zeros(len(documents), longest)
        for row, document in enumerate(documents):
            place = slice(int(self.bounds[document]), int(self.bounds[document + 1]))
            size = place.stop - place.start
            valid[row, :size] = True
            vectors[row, :size] = torch.from_numpy(self.vectors[place].astype(np.float32))
            facts[row, :size] = torch.from_numpy(self.facts[place].copy())
            wanted[row, :size] = torch.from_numpy(self.wanted[place].astype(np.float32))
        log_words = torch.from_numpy(np.log(np.maximum(self.words[list(documents)], 1)))
        return UnitBatch(vectors, facts, valid, wanted, log_words)


def filled(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Group items by size, smallest first, into batches of at most `most` padded positions.

    A larger item gets its own batch. The result holds indices into `sizes`.
    """
    found: list[list[int]] = []
    for place in sorted(range(len(sizes)), key=sizes.__getitem__):
        if not found or (len(found[-1]) + 1) * sizes[place] > most:
            found.append([])
        found[-1].append(place)
    return found


@dataclass(frozen=True)
class UnitBatches:
    """Batches of at most `units` padded units, in an order that depends only on the seed and the epoch.

    Documents of similar sizes share a batch, to reduce padding.
    """

    documents: UnitDocuments
    units: int
    seed: int

    @cached_property
    def _batches(self) -> list[list[int]]:
        return filled(self.documents.sizes.tolist(), self.units)

    @property
    def batches_per_epoch(self) -> int:
        return len(self._batches)

    def batch(self, step: int) -> UnitBatch:
        """Return the batch of a step, counted over all epochs."""
        epoch, place = divmod(step, self.batches_per_epoch)
        order = np.random.default_rng([self.seed, epoch]).permutation(self.batches_per_epoch)
        return self.documents.batch(self._batches[int(order[place])])

    def in_order(self) -> list[UnitBatch]:
        """Return all batches once, for validation."""
        return [self.documents.batch(documents) for documents in self._batches]
