"""Validates a causal language model in training: loss on the dev set, ROUGE of summaries as its writer makes them.

Each reply is scored twice, from one generation: with unsupported sentences replaced, as `precis summarize` prints it,
and as written (`--free`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from torch import nn
from transformers import PreTrainedModel

from precis.data.batches.length_buckets import in_order
from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.pairs.pair import Pair
from precis.data.text.prompts import Message
from precis.evaluation.rouge import Rouge
from precis.generation.summary import Summary
from precis.generation.writers.causal_model import CausalModel
from precis.generation.writers.chat import OnTokens, Reply
from precis.generation.writers.writer import Check, Writer
from precis.generation.writers.writer_input import Choose
from precis.objectives.causal import CausalSummary
from precis.phases.train.validation_scores import SCORES, Sample, rouge_with_bounds, samples_of
from precis.training import mean_loss
from precis.training.validation import high_of, lead_of, low_of

_LOSS_BATCH = 8
FREE = "free_"
"""The start of the names of scores of summaries with all sentences as written."""
WRITTEN = "written"
"""The share of sentences in the model's own words in strict mode; the others are quotations."""


class WriterValidation:
    """The validation of a causal language model; see `precis.phases.train.validation_scores.PairValidation`.

    Its metrics are the loss and its parts; rouge1, rouge2 and rougeL of the summaries that `precis summarize` would
    print, and the same of those as written, with the ends of their intervals and their leads over chance; and the
    share of sentences in the model's own words.

    Args:
        writer: the writer whose prompts the model is trained on.
        shown: the pairs to summarize; without them only the loss is measured.
    """

    def __init__(
        self,
        objective: CausalSummary,
        dev: TokenizedPairs,
        shown: Sequence[Pair],
        writer: Writer,
        *,
        choose: Choose,
        pad_token_id: int,
    ) -> None:
        self.pairs = len(dev)
        self.samples: list[Sample] = []
        self._objective, self._dev, self._shown, self._pad = objective, dev, shown, pad_token_id
        self._writer, self._choose = writer, choose
        self._rouge = Rouge.choose((text for pair in shown for text in pair.all_references), types=SCORES)

    def __call__(self, model: nn.Module) -> Mapping[str, float]:
        """Measure; the model is in evaluation mode."""
        batches = in_order(self._dev, batch_size=_LOSS_BATCH, pad_token_id=self._pad)
        metrics = mean_loss(model, batches, self._objective)
        self.samples = []
        if not self._shown:
            return metrics
        if not math.isfinite(metrics["loss"]):  # the output of a diverged model is useless, and may take long
            names = [f"{kind}{name}" for kind in ("", FREE) for name in SCORES]
            bounds = (of(name) for name in names for of in (low_of, high_of, lead_of))
            return {**metrics, **dict.fromkeys((*names, *bounds, WRITTEN), math.nan)}
        return {**metrics, **self._generated(cast(PreTrainedModel, model))}

    def _generated(self, model: PreTrainedModel) -> dict[str, float]:
        trained = cast(CausalModel, self._writer.chat)
        chat = _Remembering(CausalModel(model, trained.tokenizer, context=trained.context))
        made = {check: self._summaries(chat, check) for check in ("strict", "free")}
        self.samples = samples_of(self._shown, made["strict"])
        references = [pair.all_references for pair in self._shown]
        scores: dict[str, float] = {}
        for kind, check in (("", "strict"), (FREE, "free")):
            found = rouge_with_bounds(self._rouge, [each.text for each in made[check]], references)
            scores |= {f"{kind}{name}": value for name, value in found.items()}
        sentences = [each for summary in made["strict"] for each in summary.sentences]
        share = sum(each.origin == "written" for each in sentences) / max(len(sentences), 1)
        return scores | {WRITTEN: share}

    def _summaries(self, chat: _Remembering, check: Check) -> list[Summary]:
        writer = Writer(chat, choose=self._choose, check=check, instruction=self._writer.instruction)
        writer.settings = self._writer.settings
        return writer.summarize([pair.document for pair in self._shown], short="write", skip_empty=True)


class _Remembering:
    """A chat model that gives the same reply to the same prompt without asking its model again."""

    def __init__(self, chat: CausalModel) -> None:
        self._chat, self._replies = chat, dict[tuple[Any, ...], Reply]()
        self.context, self.context_is_assumed = chat.context, chat.context_is_assumed
        self.control, self.parts, self.tokenizer = chat.control, chat.parts, chat.tokenizer
        self.count, self.size = chat.count, chat.size

    def reply(self, messages: list[Message], answer: str, *, most: int, on_tokens: OnTokens | None) -> Reply:
        """Return the reply."""
        key = (*messages, answer, most)
        if key not in self._replies:
            self._replies[key] = self._chat.reply(messages, answer, most=most, on_tokens=on_tokens)
        return self._replies[key]
