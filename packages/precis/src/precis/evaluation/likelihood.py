"""Likelihood of a text given another, under an encoder-decoder: BARTScore (Yuan et al. 2021, "BARTScore: Evaluating
Generated Text as Text Generation", equation 2 with equal weights).

The score of a target is the mean log-probability of its tokens, including control tokens, as in the authors' code.
Directions: source -> summary for faithfulness, reference -> summary for precision, summary -> reference for recall.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis.data.batches.length_buckets import in_order
from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.pairs.pair import Pair
from precis.objectives.losses import token_losses
from precis.objectives.sequence_to_sequence import scores_of, source_facts

FROM_DOCUMENT = "logp_summary_given_document"
FROM_REFERENCE = "logp_summary_given_reference"
OF_REFERENCE = "logp_reference_given_summary"


class Likelihood:
    """Likelihood scores of texts under one model.

    Args:
        model: an encoder-decoder in evaluation mode.
        tokenizer: the model's tokenizer.
        max_source, max_target: most tokens to read; longer texts are truncated, and `cut` counts them.

    Attributes:
        cut: number of texts truncated so far.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_source: int = 1024,
        max_target: int = 1024,
        batch_size: int = 8,
    ) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._max_source, self._max_target = max_source, max_target
        self._batch_size = batch_size
        self.cut = 0

    def __call__(
        self, documents: Sequence[str], summaries: Sequence[str], references: Sequence[Sequence[str]]
    ) -> Mapping[str, NDArray[np.float64]]:
        """Score summaries, (n) each: the best of several references counts.

        The keys are `FROM_DOCUMENT` and, if there are references, `FROM_REFERENCE` and `OF_REFERENCE`.
        """
        found = {FROM_DOCUMENT: self.score(documents, summaries)}
        most = max(map(len, references), default=0)
        if not most:
            return found
        filled = [[*texts, *[""] * (most - len(texts))] for texts in references]
        columns = [list(column) for column in zip(*filled, strict=True)]
        found[FROM_REFERENCE] = _best([self.score(column, summaries) for column in columns])
        found[OF_REFERENCE] = _best([self.score(summaries, column) for column in columns])
        return found

    @torch.inference_mode()
    def score(self, sources: Sequence[str], targets: Sequence[str]) -> NDArray[np.float64]:
        """Compute each target's mean token log-probability given its source, (n) <= 0; NaN if a text lacks tokens."""
        scores = np.full(len(targets), np.nan)
        texts = [
            Pair(document=source, summary=target) for source, target in zip(sources, targets, strict=True)
        ]
        kept = [row for row, pair in enumerate(texts) if pair.document.strip() and pair.summary.strip()]
        if not kept:
            return scores
        without: set[int] = set()
        tokenized = TokenizedPairs.from_pairs(
            [texts[row] for row in kept],
            self._tokenizer,
            max_source=self._max_source,
            max_target=self._max_target,
            decoder_start_token_id=cast(int, self._model.config.decoder_start_token_id),
            skip=lambda row, _: without.add(row),
        )
        self.cut += tokenized.truncated_sources + tokenized.truncated_targets
        rows = [row for place, row in enumerate(kept) if place not in without]
        pad = self._tokenizer.pad_token_id or 0
        for batch in in_order(tokenized, batch_size=self._batch_size, pad_token_id=cast(int, pad)):
            moved = batch.to(self._model.device)
            inputs = {
                "input_ids": moved.input_ids,
                "attention_mask": moved.attention_mask,
                "decoder_input_ids": self._model.prepare_decoder_input_ids_from_labels(moved.labels),
                "use_cache": False,
                **source_facts(moved),
            }
            logits = scores_of(self._model, self._model, inputs, targets=moved.labels.numel())
            losses = token_losses(logits, moved.labels).nll.sum(-1) / (moved.labels >= 0).sum(-1)
            for row, loss in zip(batch.indices, losses.tolist(), strict=True):
                scores[rows[row]] = -loss
        return scores


def _best(columns: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the highest value of each row, ignoring NaN."""
    stacked = np.stack(columns)
    none = np.isnan(stacked).all(0)
    best: NDArray[np.float64] = np.where(none, np.nan, np.nanmax(np.where(none, 0.0, stacked), axis=0))
    return best
