"""Texts as token ids, each with a class or a number: the training data of a classifier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from precis.data.batches.corruption import IGNORE
from precis.data.batches.length_buckets import Batch, BucketedBatches, Moves, in_order
from precis.data.batches.token_arrays import TokenizedPairs


@dataclass(frozen=True)
class LabelledBatch(Moves):
    """Right-padded texts: b rows, s positions.

    Attributes:
        input_ids: (b s) long.
        attention_mask: (b s) long, 1 on the text, 0 on padding.
        labels: (b) long classes or float32 numbers, one per text; `IGNORE` or NaN for a placeholder row.
    """

    input_ids: Tensor
    attention_mask: Tensor
    labels: Tensor


@final
@dataclass(frozen=True)
class LabelledBatches:
    """The batches of `batches`, with `labels` (n), one per row of the data set, instead of decoder targets."""

    batches: BucketedBatches
    labels: Tensor

    @property
    def batches_per_epoch(self) -> int:
        return self.batches.batches_per_epoch

    def batch(self, step: int) -> LabelledBatch:
        """Return this process's share of the batch at `step`."""
        return _labelled(self.batches.batch(step), self.labels)


def labelled_in_order(
    rows: TokenizedPairs, labels: Tensor, *, batch_size: int, pad_token_id: int
) -> Iterator[LabelledBatch]:
    """Yield every row once, in batches sorted by length."""
    for batch in in_order(rows, batch_size=batch_size, pad_token_id=pad_token_id):
        yield _labelled(batch, labels)


def _labelled(batch: Batch, labels: Tensor) -> LabelledBatch:
    if batch.indices:
        chosen = labels[list(batch.indices)]
    else:
        nothing = torch.nan if labels.is_floating_point() else IGNORE
        chosen = torch.full((len(batch.input_ids),), nothing, dtype=labels.dtype)
    return LabelledBatch(batch.input_ids, batch.attention_mask, chosen)
