"""Batches of packed text, corrupted for pre-training.

A batch is a pure function of (corpus, seed, step). Rows come in the corpus's keyed order, and every row brings its own
random numbers. So neither the number of processes nor micro-batches, workers or a resumed run change a token of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from precis.config import Settings
from precis.data.batches.bucketed import Batch, Moves
from precis.data.batches.corruption import CorruptedSpans, corrupt_spans, mask_tokens
from precis.data.batches.gap_sentences import gap_sentences
from precis.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Corruption(Settings):
    """How text is corrupted (Z-Code++ section 2.1).

    Attributes:
        masked: share of the tokens that the generator has to guess.
        recovered: share of the tokens that the decoder has to write.
        mean_span: mean length of a span in tokens, 1 or more.
        unit: what the decoder writes: ``spans``, or ``sentences`` (PEGASUS, for comparison).
    """

    masked: float = 0.15
    recovered: float = 0.15
    mean_span: float = 3.0
    unit: Literal["spans", "sentences"] = "spans"

    def __post_init__(self) -> None:
        for name in ("masked", "recovered"):
            share = getattr(self, name)
            if not 0.0 < share <= 0.5:
                raise UserError(f"{name}={share} is outside (0, 0.5]; 0.15 is the paper's")
        if self.mean_span < 1:
            raise UserError(f"mean_span={self.mean_span} must be 1 or more; 3 is the paper's")
        if self.unit not in ("spans", "sentences"):
            raise UserError(f"unit={self.unit!r} is unknown; use 'spans' or 'sentences'")


class Rows(Protocol):
    """Blocks in a keyed order: see `precis.data.packs.mixture.PackedRows`."""

    @property
    def num_blocks(self) -> int: ...
    @property
    def length(self) -> int: ...
    def rows(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    def uniforms(self, positions: NDArray[np.int64], width: int) -> NDArray[np.float64]: ...
    def sentence_starts(self, positions: NDArray[np.int64]) -> list[NDArray[np.int64]]: ...


@dataclass(frozen=True, kw_only=True)
class CorruptionIds:
    """The ids that corruption writes.

    Attributes:
        first_sentinel, sentinels: the first mark that stands for a hidden span, and their number. MASS needs none.
        pieces: ids that are no control tokens. Only MASS uses them: it draws random words from them.
    """

    pad: int
    cls: int
    sep: int
    mask: int
    first_sentinel: int = 0
    sentinels: int = 0
    pieces: Sequence[int] = ()


@final
@dataclass(frozen=True, kw_only=True)
class Masked(Moves):
    """Input of the generator, with the fields of `precis.models.zcodepp.pretraining.MaskedTokens`."""

    original_ids: Tensor
    masked_ids: Tensor
    places: Tensor
    draws: Tensor


@final
@dataclass(frozen=True, kw_only=True)
class Spans(Moves):
    """Input of encoder and decoder, with the fields of `precis.models.zcodepp.pretraining.CorruptedSpans`."""

    input_ids: Tensor
    attention_mask: Tensor | None
    decoder_input_ids: Tensor
    source_lengths: tuple[int, ...] | None = None


@final
@dataclass(frozen=True, kw_only=True)
class PreTrainingBatch(Moves):
    """b blocks of n tokens, corrupted twice.

    Attributes:
        masked: input of MLM and RTD.
        spans: input of CSP.
        span_labels: (b t) long, targets of CSP; -100 on padding.
    """

    masked: Masked
    spans: Spans
    span_labels: Tensor

    @property
    def original_ids(self) -> Tensor:
        """(b n) long, the ids of the text."""
        return self.masked.original_ids


class RowBatches:
    """Base of endless, random-access sequences of batches of packed text.

    With several ranks each takes rows rank, rank + world_size, ... of the global batch.

    Raises:
        UserError: the batch size is too small for the ranks.
    """

    def __init__(self, rows: Rows, *, batch_size: int, rank: int = 0, world_size: int = 1) -> None:
        if batch_size < world_size:
            raise UserError(f"batch_size={batch_size} leaves some of {world_size} processes without a row")
        self._rows = rows
        self._batch_size, self._rank, self._world_size = batch_size, rank, world_size

    @property
    def batches_per_epoch(self) -> int:
        """Batches in one pass over the corpus."""
        return max(1, -(-self._rows.num_blocks // self._batch_size))

    def positions(self, step: int) -> NDArray[np.int64]:
        """(b) positions in the order of training that this rank takes of the step-th global batch."""
        first, last = step * self._batch_size, (step + 1) * self._batch_size
        return np.arange(first + self._rank, last, self._world_size)


@final
class PreTrainingBatches(RowBatches):
    """An endless, random-access sequence of `PreTrainingBatch`; `share` is as in `RowBatches`."""

    def __init__(
        self, rows: Rows, words: CorruptionIds, *, corruption: Corruption, batch_size: int, **share: int
    ) -> None:
        super().__init__(rows, batch_size=batch_size, **share)
        self._words, self._corruption = words, corruption

    def batch(self, step: int) -> PreTrainingBatch:
        """This rank's share of the step-th global batch."""
        ids, uniforms, spans = self._corrupted(step)
        length = ids.shape[1]
        hidden = mask_tokens(
            ids, _maskable(ids), uniforms[:, :length], rate=self._corruption.masked, mask_id=self._words.mask
        )
        # Blocks are full, so every row has the same number of places.
        places = np.nonzero(hidden.chosen)[1].reshape(len(ids), -1)
        masked = Masked(
            original_ids=torch.from_numpy(ids),
            masked_ids=torch.from_numpy(hidden.input_ids),
            places=torch.from_numpy(places),
            draws=_as_fp32(uniforms[:, length : length + places.shape[1]]),
        )
        return PreTrainingBatch(
            masked=masked, spans=self._spans(spans), span_labels=torch.from_numpy(spans.labels)
        )

    def span_batch(self, step: int) -> Batch:
        """Only span recovery, as pairs for `SequenceToSequence`: pre-training without RTD."""
        _, _, spans = self._corrupted(step)
        return Batch(
            torch.from_numpy(spans.input_ids),
            torch.from_numpy(spans.attention.astype(np.int64)),
            torch.from_numpy(spans.labels),
            source_lengths=_lengths(spans.attention),
        )

    def _corrupted(self, step: int) -> tuple[NDArray[np.int64], NDArray[np.float64], CorruptedSpans]:
        """(b n) ids, (b 3n) random numbers, and the ids with spans hidden by the last n of these numbers."""
        positions = self.positions(step)
        ids, _ = self._rows.rows(positions)
        length = ids.shape[1]
        uniforms = self._rows.uniforms(positions, 3 * length)
        return ids, uniforms, self._recoverable(ids, positions, uniforms[:, 2 * length :])

    def _recoverable(
        self, ids: NDArray[np.int64], positions: NDArray[np.int64], uniforms: NDArray[np.float64]
    ) -> CorruptedSpans:
        words, corruption = self._words, self._corruption
        marks = {
            "first_sentinel": words.first_sentinel,
            "num_sentinels": words.sentinels,
            "eos_id": words.sep,
            "pad_id": words.pad,
        }
        lengths = np.full(len(ids), ids.shape[1])
        if corruption.unit == "sentences":
            starts = self._rows.sentence_starts(positions)
            found = gap_sentences(ids, lengths, starts, uniforms, rate=corruption.recovered, **marks)
        else:
            found = corrupt_spans(
                ids, lengths, uniforms, rate=corruption.recovered, mean_length=corruption.mean_span, **marks
            )
        return replace(found, labels=_one_end(found.labels, end=words.sep, border=words.cls))

    def _spans(self, spans: CorruptedSpans) -> Spans:
        # Rows of equal length need no mask, and attention is faster without one.
        mask = None if spans.attention.all() else torch.from_numpy(spans.attention)
        # The labels, shifted right behind the start token.
        started = np.full_like(spans.labels, self._words.cls)
        started[:, 1:] = np.where(spans.labels[:, :-1] >= 0, spans.labels[:, :-1], self._words.pad)
        return Spans(
            input_ids=torch.from_numpy(spans.input_ids),
            attention_mask=mask,
            decoder_input_ids=torch.from_numpy(started),
            source_lengths=_lengths(spans.attention),
        )


def _lengths(attention: NDArray[np.bool_]) -> tuple[int, ...]:
    """Tokens of each row that are not padding."""
    return tuple(attention.sum(-1).tolist())


def _one_end(labels: NDArray[np.int64], *, end: int, border: int) -> NDArray[np.int64]:
    """Write a hidden border of two documents as `border`, since nothing is written after the end mark."""
    follow = np.cumsum((labels >= 0)[:, ::-1], axis=1)[:, ::-1]  # targets from here on
    return np.where((labels == end) & (follow > 1), border, labels)


def _as_fp32(uniforms: NDArray[np.float64]) -> Tensor:
    """Convert numbers in [0, 1) to fp32, the only kind that some GPUs know, without rounding up to 1."""
    below_one = np.nextafter(np.float32(1), np.float32(0))
    return torch.from_numpy(np.minimum(uniforms.astype(np.float32), below_one))


def _maskable(ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(b n) True everywhere but at the first [CLS] and the last [SEP].

    A [SEP] between documents is text like any other, so that every row has equally many places.
    """
    maskable = np.ones(ids.shape, dtype=bool)
    maskable[:, [0, -1]] = False
    return maskable
