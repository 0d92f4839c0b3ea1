"""How a model in training is measured: loss on the dev set, ROUGE of greedy summaries on a part of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis.data.batches.bucketed import in_order
from precis.data.batches.tokenized import TokenizedPairs
from precis.data.pairs.pair import Pair
from precis.decoding import GenerationSettings
from precis.evaluation.rouge import Rouge
from precis.generation.summarizer import Summarizer
from precis.objectives.sequence_to_sequence import SequenceToSequence
from precis.recipes.runs import RunPlan
from precis.training import mean_loss

_GENERATION_BATCH = 50
_LOSS_BATCH = 32
_SCORES = ("rouge1", "rouge2", "rougeL")


class Validation:
    """What `precis.training.train` measures by: loss and its parts, rouge1, rouge2 and rougeL (0 to 100; NaN where the
    loss is not finite).

    ROUGE's words follow the task's language, or the references' letters, as in `precis evaluate`.
    """

    def __init__(
        self,
        run: RunPlan,
        dev: TokenizedPairs,
        shown: Sequence[Pair],
        tokenizer: PreTrainedTokenizerBase,
        *,
        instruction: str,
        language: str | None = None,
    ) -> None:
        """`shown` are the pairs whose documents are summarized; none: loss alone."""
        self._run, self._dev, self._shown = run, dev, shown
        self._tokenizer, self._instruction = tokenizer, instruction
        self._objective = SequenceToSequence(label_smoothing=run.label_smoothing)
        references = (text for pair in shown for text in pair.all_references)
        self._rouge = Rouge.suited(references, language=language, types=_SCORES)

    def __call__(self, model: nn.Module) -> Mapping[str, float]:
        """Measure; the model is in evaluation mode."""
        batches = in_order(self._dev, batch_size=_LOSS_BATCH, pad_token_id=self._tokenizer.pad_token_id)
        metrics = mean_loss(model, batches, self._objective)
        if not self._shown:
            return metrics
        if not math.isfinite(metrics["loss"]):  # what such a model writes says nothing, and may take long
            return {**metrics, **dict.fromkeys(_SCORES, math.nan)}
        return {**metrics, **self._generated(cast(PreTrainedModel, model))}

    def _generated(self, model: PreTrainedModel) -> dict[str, float]:
        summarizer = Summarizer(
            model,
            self._tokenizer,
            settings=GenerationSettings(max_tokens=self._run.max_target),
            max_source=self._run.max_source,
            instruction=self._instruction,
        )
        documents = [pair.document for pair in self._shown]
        written = summarizer.summarize(
            documents, batch_size=_GENERATION_BATCH, long="truncate", short="write"
        )
        scores = self._rouge.score([s.text for s in written], [pair.all_references for pair in self._shown])
        return {name: float(values.mean()) for name, values in scores.items()}


def evenly_spaced(pairs: Sequence[Pair], count: int) -> list[Pair]:
    """`count` of the pairs at even distances: dev sets are often sorted, their first rows not typical."""
    rows = np.linspace(0, len(pairs) - 1, min(count, len(pairs))).round().astype(int)
    return [pairs[int(row)] for row in rows]
