"""Validates a model in training: loss on the dev set, ROUGE of greedy summaries on a part of it.

One or two of these summaries are logged at each validation, and kept in OUT/samples.jsonl.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol, cast

import numpy as np
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis.data.batches.length_buckets import in_order
from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.pairs.pair import Pair
from precis.data.tasks.tasks import task
from precis.evaluation.rouge import Rouge
from precis.evaluation.significance import Bootstrap
from precis.evaluation.task_scores import label_measure, task_scorers
from precis.generation.summarizer import Summarizer
from precis.generation.summary import Summary
from precis.messages import Notify
from precis.objectives.sequence_to_sequence import SequenceToSequence
from precis.recipes.run_plan import RunPlan
from precis.training import mean_loss
from precis.training.callbacks import StepLines, ValidationInfo
from precis.training.validation import high_of, lead_of, low_of
from precis_text.decoding_settings import GenerationSettings

_GENERATION_BATCH = 50
_LOSS_BATCH = 32
SCORES = ("rouge1", "rouge2", "rougeL")
SAMPLES_FILE = "samples.jsonl"
_KEPT = 300  # characters of a document that are kept with its summary
_TOLD = 160  # characters of a summary that are logged


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A summary of a fixed dev document by a model in training; `document` is its beginning."""

    document: str
    reference: str
    summary: str


class PairValidation(Protocol):
    """The validation of a model on a number of `pairs`; `samples` are summaries of the latest call, if it wrote any."""

    @property
    def pairs(self) -> int: ...
    @property
    def samples(self) -> Sequence[Sample]: ...
    def __call__(self, model: nn.Module) -> Mapping[str, float]: ...


class SampleSummaries(StepLines):
    """Callback that logs the samples of each validation, shortened, and appends them to ``samples.jsonl``."""

    def __init__(self, validation: PairValidation, notify: Notify) -> None:
        super().__init__(SAMPLES_FILE)
        self._validation, self._tell = validation, notify
        self._references_told = False

    def on_validation(self, info: ValidationInfo) -> None:
        """Log and write the samples."""
        for number, sample in enumerate(self._validation.samples, start=1):
            if not self._references_told:
                self._tell(f"  reference {number}: {_shortened(sample.reference)}")
            self._tell(f"  summary {number}:   {_shortened(sample.summary)}")
        self._references_told = self._references_told or bool(self._validation.samples)
        samples = enumerate(self._validation.samples, start=1)
        self.write(*({"step": info.step, "sample": number, **asdict(sample)} for number, sample in samples))


def _shortened(text: str) -> str:
    """Truncate a text to one line of at most `_TOLD` characters."""
    line = " ".join(text.split())
    if not line:
        return "(empty)"
    return line if len(line) <= _TOLD else line[: _TOLD - 3].rstrip() + "..."


class Validation:
    """The validation of `precis.training.train`: loss and its parts, rouge1, rouge2 and rougeL (0 to 100; NaN where the
    loss is not finite); the ends of the 95% bootstrap interval of each, such as rougeL_low and rougeL_high; and the
    lead of each over chance, such as rougeL_lead.

    The lead is the lower end of the 95% bootstrap interval of a paired difference: the score of each summary with its
    own references, less that with those of the next document. With one summary the
    next document is missing, and the lead is 0.

    Labels and numbers also get the task's own scores; ``accuracy`` is then that of the whole answer, not of tokens.
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
        task_name: str = "",
    ) -> None:
        """Set up the validation; `shown` are the pairs to summarize, and without them only the loss is measured."""
        self.pairs = len(dev)
        self.samples: list[Sample] = []
        self._run, self._dev, self._shown = run, dev, shown
        self._tokenizer, self._instruction = tokenizer, instruction
        self._objective = SequenceToSequence(label_smoothing=run.label_smoothing)
        references = (text for pair in shown for text in pair.all_references)
        language = task(task_name).language if task_name else None
        self._rouge = Rouge.choose(references, language=language, types=SCORES)
        metrics = task(task_name).metrics if task_name else ()
        self._scorers = task_scorers(metrics) if label_measure(metrics) else {}

    def __call__(self, model: nn.Module) -> Mapping[str, float]:
        """Measure; the model is in evaluation mode."""
        batches = in_order(self._dev, batch_size=_LOSS_BATCH, pad_token_id=self._tokenizer.pad_token_id)
        metrics = mean_loss(model, batches, self._objective)
        self.samples = []
        if not self._shown:
            return metrics
        if not math.isfinite(metrics["loss"]):  # the output of a diverged model is useless, and may take long
            bounds = (of(name) for name in SCORES for of in (low_of, high_of, lead_of))
            return {**metrics, **dict.fromkeys((*SCORES, *bounds, *self._scorers), math.nan)}
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
        self.samples = samples_of(self._shown, written)
        texts, references = [s.text for s in written], [pair.all_references for pair in self._shown]
        scores = rouge_with_bounds(self._rouge, texts, references)
        return scores | {name: scorer(texts, references).score for name, scorer in self._scorers.items()}


def samples_of(shown: Sequence[Pair], written: Sequence[Summary]) -> list[Sample]:
    """Return the first and the middle one of the summaries."""
    return [
        Sample(document=shown[row].document[:_KEPT], reference=shown[row].summary, summary=written[row].text)
        for row in sorted({0, len(shown) // 2})
    ]


def rouge_with_bounds(
    rouge: Rouge, texts: Sequence[str], references: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Return the mean of each ROUGE type (0 to 100), the ends of its interval, and its lead; see `Validation`."""
    own = rouge.score(texts, references)
    others = rouge.score(texts, [*references[1:], references[0]])
    found: dict[str, float] = {}
    for name, values in own.items():
        interval = Bootstrap().interval(values)
        found |= {name: float(values.mean()), low_of(name): interval.low, high_of(name): interval.high}
        found[lead_of(name)] = Bootstrap().interval(values - others[name]).low
    return found


def evenly_spaced(pairs: Sequence[Pair], count: int) -> list[Pair]:
    """Take `count` of the pairs at even distances, since the first rows of a sorted dev set are not typical."""
    rows = np.linspace(0, len(pairs) - 1, min(count, len(pairs))).round().astype(int)
    return [pairs[int(row)] for row in rows]
