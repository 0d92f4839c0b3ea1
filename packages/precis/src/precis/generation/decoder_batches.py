"""Decodes encoded inputs to texts, in batches that affect only the speed.

Inputs share a batch only if the model reads them in the same way and decodes them under the same limits. They have
similar lengths, and are padded on the right under a mask.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast, final

import torch
from torch import Tensor
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from precis.data.text.encoding import decode_summary
from precis.generation.fast.fast_decoder import TOKENS_EVERY, FastDecoder, OnTokens, why_not, without_autocast
from precis.generation.fast.packed_linear import AsGiven, Weights
from precis.generation.generation_settings import end_marks, generation_config
from precis.generation.input_plan import Encoded, output_limit, reading
from precis.generation.memory_check import refuse_too_much, too_much_is_one_line
from precis.generation.summary import How
from precis.messages import OnPartial, OnProgress
from precis.tuning import attached
from precis.tuning.discourse import most_segments
from precis_text.config import Settings
from precis_text.decoding_settings import GenerationSettings

_PROGRESS_EVERY = 16  # tokens
_POSITIONS = 32_768  # source tokens of a batch, padding included, so that fewer long inputs share one


@final
@dataclass(frozen=True, kw_only=True)
class Automatic(Settings):
    """The fast loop where it supports the model and the settings, `generate` otherwise."""


@final
@dataclass(frozen=True, kw_only=True)
class Fast(Settings):
    """The fast loop, or an error where it does not support the model or the settings."""

    weights: Weights = field(default_factory=AsGiven)


@final
@dataclass(frozen=True, kw_only=True)
class Drafting(Settings):
    """Greedy search, one document at a time; each pass verifies the drafts of the model's own predicting streams.

    A model without streams is an error. See `precis.generation.fast.self_speculation`.
    """

    weights: Weights = field(default_factory=AsGiven)


@final
@dataclass(frozen=True, kw_only=True)
class Generate(Settings):
    """transformers' `generate`."""


Loop = Automatic | Fast | Drafting | Generate
AUTOMATIC = Automatic()


@dataclass(frozen=True)
class Job:
    """One input of the model: a document or a piece of one."""

    encoded: Encoded
    settings: GenerationSettings
    how: How


@dataclass(frozen=True)
class Written:
    """The text of the model: `tokens` counts all but control tokens; `ended` is True if it wrote its end mark."""

    text: str
    tokens: int
    ended: bool


class BatchDecoder:
    """A decoder of batches with one model, its tokenizer and a decoding `Loop`."""

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, loop: Loop = AUTOMATIC
    ) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._loop = loop
        weights = loop.weights if isinstance(loop, Fast | Drafting) else AsGiven()
        self._fast = FastDecoder(model, weights)
        self._special = set(tokenizer.all_special_ids)

    def decode(
        self,
        jobs: Sequence[Job],
        *,
        batch_size: int,
        on_progress: OnProgress | None = None,
        on_partial: OnPartial | None = None,
    ) -> list[Written]:
        """Return the texts for `jobs`, in their order; `on_progress` receives the progress.

        `on_partial` receives the text so far, if chosen tokens are final: in greedy search on a CPU.

        Raises:
            UserError: if the requested fast loop does not support the model or the settings, or an input needs
                more memory than is available.
        """
        self._fast.check()  # the model may have been trained since
        results: dict[int, Written] = {}
        for rows in _batches(jobs, 1 if isinstance(self._loop, Drafting) else batch_size):
            if on_progress is not None:
                on_progress(len(results), len(jobs), 0)
            reporter = None if on_progress is None else _CountReporter(on_progress, len(results), len(jobs))
            on_tokens = None if on_partial is None else partial(self._report_text, on_partial, rows)
            written = self._decode([jobs[row] for row in rows], reporter, on_tokens)
            results.update(zip(rows, written, strict=True))
            if on_progress is not None:
                on_progress(len(results), len(jobs), 0)
        return [results[row] for row in range(len(jobs))]

    @torch.no_grad()
    def _decode(
        self, batch: Sequence[Job], reporter: _CountReporter | None, on_tokens: OnTokens | None
    ) -> list[Written]:
        longest = max(len(job.encoded) for job in batch)
        refuse_too_much(self._model, rows=len(batch), length=longest)
        settings = self._within_positions(batch[0].settings)
        config = generation_config(settings, self._model, self._tokenizer)
        with (
            without_autocast(self._model.device),
            reading(self._model, batch[0].how),
            self._segments([job.encoded for job in batch]),
            too_much_is_one_line(rows=len(batch), length=longest),
        ):
            rows = self._tokens(self._inputs([job.encoded.ids for job in batch]), config, reporter, on_tokens)
        forced_at = None if config.forced_eos_token_id is None else settings.max_tokens
        return [self._written(row, end_marks(config), forced_at) for row in rows]

    def _segments(self, batch: Sequence[Encoded]) -> AbstractContextManager[None]:
        """Return a context in which the model's prefix has the segments of the documents' units."""
        attachment = attached(self._model)
        if attachment is None or attachment.tuning.units is None:
            return nullcontext()
        count = most_segments(attachment.tuning)
        ids, _ = padded([encoded.segments(count) for encoded in batch], 0)
        return attachment.segments(ids.to(self._model.device))

    def _report_text(self, on_partial: OnPartial, rows: Sequence[int], row: int, tokens: list[int]) -> None:
        on_partial(rows[row], self._text(tokens))

    def _tokens(
        self,
        inputs: dict[str, Tensor],
        config: GenerationConfig,
        reporter: _CountReporter | None,
        on_tokens: OnTokens | None,
    ) -> list[list[int]]:
        """Return rows of ids, the start token first; a row may be padded after its end mark."""
        on_cpu = self._model.device.type == "cpu"  # other devices replay a step without Python
        processors: list[LogitsProcessor] = [reporter] if reporter is not None and on_cpu else []
        if isinstance(self._loop, Drafting):
            return [self._fast.draft(inputs["input_ids"], config, processors).tokens]
        fast = isinstance(self._loop, Fast) or why_not(self._model, config) is None
        if fast and not isinstance(self._loop, Generate):
            return self._fast(inputs, config, processors, on_tokens=on_tokens)
        if on_tokens is not None and (config.num_beams or 1) == 1:
            processors.append(_TokenReporter(on_tokens))
        rows: Tensor = cast(Any, self._model).generate(
            **inputs, generation_config=config, logits_processor=LogitsProcessorList(processors)
        )
        return rows.tolist()

    def _inputs(self, rows: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        """Return (b s) ids and mask, and for LED the global attention of its first token."""
        ids, mask = padded(rows, self._tokenizer.pad_token_id or 0)
        inputs = {"input_ids": ids, "attention_mask": mask}
        if self._model.config.model_type == "led":
            inputs["global_attention_mask"] = torch.zeros_like(mask).index_fill(1, torch.tensor([0]), 1)
        return {name: tensor.to(self._model.device) for name, tensor in inputs.items()}

    def _within_positions(self, settings: GenerationSettings) -> GenerationSettings:
        limit = output_limit(self._model.config)
        if limit is None or settings.max_tokens <= limit:
            return settings
        return replace(settings, max_tokens=limit, min_tokens=min(settings.min_tokens, limit))

    def _written(self, row: list[int], marks: Sequence[int], forced_at: int | None) -> Written:
        """Return the text of a row; BART-like models are forced to write an end mark at token `forced_at`."""
        new = enumerate(row[1:], start=1)  # some models start with the end mark
        ended_at = next((place for place, token in new if token in marks), None)
        ended = ended_at is not None and ended_at != forced_at
        return Written(self._text(row), sum(token not in self._special for token in row), ended)

    def _text(self, row: list[int]) -> str:
        """Return the text of a row, without invalid UTF-8 bytes."""
        return decode_summary(row, self._tokenizer).replace("\ufffd", "").strip()


class _TokenReporter(LogitsProcessor):
    """Processor that reports the tokens of each row every few steps, and changes nothing."""

    def __init__(self, on_tokens: OnTokens) -> None:
        self._on_tokens = on_tokens

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Take (b t) ids so far and (b v) scores; return the scores."""
        if input_ids.shape[1] % TOKENS_EVERY == 0:
            for row, tokens in enumerate(input_ids.tolist()):
                self._on_tokens(row, tokens)
        return scores


class _CountReporter(LogitsProcessor):
    """Processor that reports the number of tokens every few steps, and changes nothing."""

    def __init__(self, on_progress: OnProgress, done: int, known: int) -> None:
        self._on_progress, self._done, self._known = on_progress, done, known

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Take (b t) ids so far and (b v) scores; return the scores."""
        written = input_ids.shape[1] - 1  # without the start token
        if written and written % _PROGRESS_EVERY == 0:
            self._on_progress(self._done, self._known, written)
        return scores


def padded(rows: Sequence[Sequence[int]], padding: int) -> tuple[Tensor, Tensor]:
    """Pad rows of ids on the right; return (b s) ids and their mask, 1 at real ones."""
    width = max(len(row) for row in rows)
    ids = torch.tensor([[*row, *[padding] * (width - len(row))] for row in rows])
    return ids, torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])


def _batches(jobs: Sequence[Job], batch_size: int) -> Iterator[list[int]]:
    """Yield the rows of `jobs` that share a batch, shorter ones first."""
    order = sorted(range(len(jobs)), key=lambda row: (*_group(jobs[row]), len(jobs[row].encoded)))
    batch: list[int] = []
    for row in order:
        if batch and (
            len(batch) == batch_size
            or _group(jobs[row]) != _group(jobs[batch[0]])
            or (len(batch) + 1) * len(jobs[row].encoded) > _POSITIONS
        ):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _group(job: Job) -> tuple[str, str]:
    return job.how, repr(job.settings)
