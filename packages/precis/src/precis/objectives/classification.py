"""Losses of classifiers of texts: cross-entropy for classes, squared error for numbers, as in transformers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from precis.objectives.losses import Loss, smoothed_cross_entropy
from precis_text.config import Settings

if TYPE_CHECKING:  # importing batches imports transformers
    from precis.data.batches.labelled_texts import LabelledBatch


@dataclass(frozen=True, kw_only=True)
class Classification(Settings):
    """The loss of a classifier or regressor; the type of the labels decides which.

    Without smoothing the mean over texts equals the loss that transformers' classifiers return.

    Attributes:
        label_smoothing: share of a class's probability that is spread over all classes; ignored for numbers.
    """

    label_smoothing: float = 0.0

    def __call__(self, model: nn.Module, batch: LabelledBatch) -> Loss:
        """Return the loss summed over texts; for classes with the parts ``nll`` and ``accuracy``."""
        logits: Tensor = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
        tokens = batch.attention_mask.sum()
        if not batch.labels.is_floating_point():
            loss = smoothed_cross_entropy(
                logits[:, None], batch.labels[:, None], smoothing=self.label_smoothing
            )
            return Loss(total=loss.total, num_targets=loss.num_targets, parts=loss.parts, num_tokens=tokens)
        kept = batch.labels.isfinite()
        errors = torch.where(kept, logits[:, 0].float() - batch.labels, 0.0)
        return Loss(total=errors.square().sum(), num_targets=kept.sum(), num_tokens=tokens)
