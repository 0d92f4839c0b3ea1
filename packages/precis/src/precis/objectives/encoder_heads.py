"""Losses of networks on an encoder: classifiers of texts, and the scorer of a document's units.

The scorer learns the units of a good extract, and the length of a summary. The target units are those that a greedy
search finds best for the reference (`precis.evaluation.baselines`), as in SummaRuNNer (Nallapati et al. 2017, section
3) and BertSum (Liu & Lapata 2019, section 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from precis.objectives.losses import Loss, smoothed_cross_entropy
from precis_text.config import Settings

if TYPE_CHECKING:  # importing batches imports transformers
    from precis.data.batches.labelled_texts import LabelledBatch
    from precis.data.batches.unit_batches import UnitBatch


@dataclass(frozen=True, kw_only=True)
class Classification(Settings):
    """The loss of a classifier or regressor, as in transformers; the type of the labels decides which.

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


@dataclass(frozen=True, kw_only=True)
class UnitChoice(Settings):
    """Cross-entropy of each unit, and the squared error of the log of the summary's word count.

    A document's sum over its units is divided by the root of their number: a long document counts more than a short
    one, but not in proportion.

    Attributes:
        length_weight: weight of the squared error.
    """

    length_weight: float = 0.2

    def __call__(self, model: nn.Module, batch: UnitBatch) -> Loss:
        """Return the loss summed over documents, with the parts ``choice``, ``length`` and ``first``: the share of
        documents whose top-scoring unit is a target unit.
        """
        logits, log_words = model(batch.vectors, batch.facts, batch.valid)
        each = binary_cross_entropy_with_logits(logits, batch.wanted, reduction="none") * batch.valid
        choice = (each.sum(1) / batch.valid.sum(1).clamp(min=1).sqrt()).sum()
        length = (log_words - batch.log_words).square().sum()
        best = logits.masked_fill(~batch.valid, float("-inf")).argmax(1, keepdim=True)
        return Loss(
            total=choice + self.length_weight * length,
            num_targets=len(logits),
            parts={
                "choice": choice.detach(),
                "length": length.detach(),
                "first": batch.wanted.gather(1, best).sum().detach(),
            },
            num_tokens=batch.valid.sum(),
        )
