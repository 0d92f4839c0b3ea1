"""Batches of packed text with MASS spans hidden: what ProphetNet is pre-trained on (section 3.1).

Like `pretraining_batches`, a pure function of (corpus, seed, step).
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from precis.data.batches.mass_spans import mass_spans
from precis.data.batches.pretraining_batches import Moves, Rows, Words
from precis.errors import UserError


@final
@dataclass(frozen=True, kw_only=True)
class MassBatch(Moves):
    """b blocks of n tokens with k of them hidden, all rows alike, so that nothing is padded.

    Attributes:
        input_ids, attention_mask: (b n) the text with its spans hidden, as long as before.
        labels: (b k) the hidden tokens.
        decoder_input_ids: (b k) the token before each in the text.
        decoder_position_ids: (b k) where that token stands in the text.
        ranks: (1 k) at which place of its span each target is.
    """

    input_ids: Tensor
    attention_mask: Tensor
    labels: Tensor
    decoder_input_ids: Tensor
    decoder_position_ids: Tensor
    ranks: Tensor

    @property
    def source_lengths(self) -> tuple[int, ...]:
        """Nothing is padded."""
        rows, length = self.input_ids.shape
        return (length,) * rows


@final
class MassBatches:
    """An endless, random-access sequence of `MassBatch`. With several ranks each takes rows rank, rank + world_size,
    ... of the global batch.

    Raises:
        UserError: the batch size is too small for the ranks.
    """

    def __init__(
        self,
        rows: Rows,
        words: Words,
        *,
        rate: float,
        block: int,
        batch_size: int,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        if batch_size < world_size:
            raise UserError(f"batch_size={batch_size} leaves some of {world_size} processes without a row")
        self._rows, self._rate, self._block = rows, rate, block
        self._mask, self._pieces = words.mask, np.asarray(words.pieces, np.int64)
        self._batch_size, self._rank, self._world_size = batch_size, rank, world_size

    @property
    def batches_per_epoch(self) -> int:
        """Batches in one pass over the corpus."""
        return max(1, -(-self._rows.num_blocks // self._batch_size))

    def batch(self, step: int) -> MassBatch:
        """This rank's share of the step-th global batch."""
        first, last = step * self._batch_size, (step + 1) * self._batch_size
        positions = np.arange(first + self._rank, last, self._world_size)
        ids, _ = self._rows.rows(positions)
        hidden = mass_spans(
            ids,
            self._rows.uniforms(positions, ids.shape[1]),
            block=self._block,
            rate=self._rate,
            mask_id=self._mask,
            words=self._pieces,
        )
        before = hidden.positions - 1
        starts = np.r_[True, hidden.spans[1:] != hidden.spans[:-1]]
        indices = np.arange(len(starts))
        ranks = indices - np.maximum.accumulate(np.where(starts, indices, 0))
        return MassBatch(
            input_ids=torch.from_numpy(hidden.input_ids),
            attention_mask=torch.ones(ids.shape, dtype=torch.long),
            labels=torch.from_numpy(hidden.targets),
            decoder_input_ids=torch.from_numpy(np.take_along_axis(ids, before, axis=1)),
            decoder_position_ids=torch.from_numpy(before),
            ranks=torch.from_numpy(ranks)[None],
        )
