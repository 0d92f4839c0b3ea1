"""Batches of packed text, corrupted for pre-training.

A batch is a pure function of (corpus, seed, step). Rows come in the corpus's keyed order, and every row has its own
random numbers. The tokens therefore do not depend on processes, micro-batches, workers or resuming.
"""

from dataclasses import dataclass, replace
from typing import Literal, Protocol, final, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from precis.data.batches.corruption import (
    CorruptedSpans,
    CorruptionIds,
    Flags,
    Ids,
    Uniforms,
    corrupt_spans,
    gap_sentences,
    mask_tokens,
    mass_spans,
)
from precis.data.batches.length_buckets import Batch, Moves
from precis_text.config import Settings
from precis_text.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Corruption(Settings):
    """Settings of the corruption (Z-Code++ section 2.1).

    Attributes:
        masked: share of the tokens that the generator predicts.
        recovered: share of the tokens that the decoder writes.
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


@runtime_checkable
class Rows(Protocol):
    """Blocks in a keyed order: see `precis.data.packs.mixture.PackedRows`."""

    @property
    def num_blocks(self) -> int: ...
    @property
    def length(self) -> int: ...
    def rows(self, positions: Ids) -> tuple[Ids, Ids]: ...
    def uniforms(self, positions: Ids, width: int) -> Uniforms: ...
    def sentence_starts(self, positions: Ids) -> list[Ids]: ...


@final
@dataclass(frozen=True, kw_only=True)
class PreTrainingBatch(Moves):
    """b blocks of n tokens, corrupted twice. Every row is a full block, without padding.

    Attributes:
        original_ids: (b n) long, the text.
        masked_ids: (b n) long, the text with [MASK] at the chosen positions.
        places: (b k) long, the chosen positions, the same number in every row.
        draws: (b k) numbers in [0, 1) that decide what the generator samples.
        input_ids: (b s) long, the text with a sentinel in place of each hidden span.
        attention_mask: (b s) bool, True at real tokens; None if every token is real.
        source_lengths: (b) number of real tokens in each row of `input_ids`.
        decoder_input_ids: (b t) long, `span_labels` shifted right, after the start token.
        span_labels: (b t) long, targets of span recovery; `IGNORE` on padding.
    """

    original_ids: Tensor
    masked_ids: Tensor
    places: Tensor
    draws: Tensor
    input_ids: Tensor
    attention_mask: Tensor | None
    source_lengths: tuple[int, ...] | None = None
    decoder_input_ids: Tensor
    span_labels: Tensor


class RowBatches:
    """Base of endless, random-access sequences of batches of packed text.

    With several ranks, each takes every world_size-th row of the global batch, starting at row `rank`.

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

    def positions(self, step: int) -> Ids:
        """Return the (b) positions in training order that this rank takes from the global batch at `step`."""
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
        """Return this rank's share of the global batch at `step`."""
        ids, uniforms, spans = self._corrupted(step)
        length = ids.shape[1]
        masked_ids, places = mask_tokens(ids, uniforms[:, :length], self._words, rate=self._corruption.masked)
        started = np.full_like(spans.labels, self._words.cls)
        started[:, 1:] = np.where(spans.labels[:, :-1] >= 0, spans.labels[:, :-1], self._words.pad)
        # Rows of equal length need no mask, and attention is faster without one.
        mask = None if spans.attention.all() else torch.from_numpy(spans.attention)
        return PreTrainingBatch(
            original_ids=torch.from_numpy(ids), masked_ids=torch.from_numpy(masked_ids),
            places=torch.from_numpy(places), draws=_as_fp32(uniforms[:, length : length + places.shape[1]]),
            input_ids=torch.from_numpy(spans.input_ids), attention_mask=mask,
            source_lengths=_lengths(spans.attention), decoder_input_ids=torch.from_numpy(started),
            span_labels=torch.from_numpy(spans.labels),
        )  # fmt: skip

    def span_batch(self, step: int) -> Batch:
        """Return only span recovery, as pairs for `SequenceToSequence`: pre-training without RTD."""
        _, _, spans = self._corrupted(step)
        return Batch(
            torch.from_numpy(spans.input_ids),
            torch.from_numpy(spans.attention.astype(np.int64)),
            torch.from_numpy(spans.labels),
            source_lengths=_lengths(spans.attention),
        )

    def _corrupted(self, step: int) -> tuple[Ids, Uniforms, CorruptedSpans]:
        """Return (b n) ids, (b 3n) random numbers, and the ids with spans hidden by the last n of the numbers."""
        positions, words, corruption = self.positions(step), self._words, self._corruption
        ids, _ = self._rows.rows(positions)
        uniforms = self._rows.uniforms(positions, 3 * ids.shape[1])
        last, rate = uniforms[:, 2 * ids.shape[1] :], corruption.recovered
        if corruption.unit == "sentences":
            spans = gap_sentences(ids, self._rows.sentence_starts(positions), last, words, rate=rate)
        else:
            spans = corrupt_spans(ids, last, words, rate=rate, mean_length=corruption.mean_span)
        # Write a hidden border of two documents as [CLS], since nothing may follow the end mark.
        follow = np.cumsum((spans.labels >= 0)[:, ::-1], axis=1)[:, ::-1]  # targets from here on
        labels = np.where((spans.labels == words.sep) & (follow > 1), words.cls, spans.labels)
        return ids, uniforms, replace(spans, labels=labels)


def _lengths(attention: Flags) -> tuple[int, ...]:
    """Count the tokens of each row that are not padding."""
    return tuple(attention.sum(-1).tolist())


def _as_fp32(uniforms: Uniforms) -> Tensor:
    """Convert numbers in [0, 1) to fp32, which every GPU supports, without rounding up to 1."""
    below_one = np.nextafter(np.float32(1), np.float32(0))
    return torch.from_numpy(np.minimum(uniforms.astype(np.float32), below_one))


@final
@dataclass(frozen=True, kw_only=True)
class MassBatch(Moves):
    """b blocks of n tokens with k of them hidden, the same sizes in all rows, so without padding.

    The decoder receives the original positions of the tokens that it writes (ProphetNet section 2.4), and it writes
    only the hidden tokens (section 3.1).

    Attributes:
        input_ids, attention_mask: (b n) long, the text with its spans hidden, of unchanged length.
        labels: (b k) long, the hidden tokens.
        decoder_input_ids: (b k) long, the token before each hidden token in the text.
        decoder_position_ids: (b k) long, the position of that token in the text.
        ranks: (1 k) long, the place of each target in its span, counted from 0.
    """

    input_ids: Tensor
    attention_mask: Tensor
    labels: Tensor
    decoder_input_ids: Tensor
    decoder_position_ids: Tensor
    ranks: Tensor

    @property
    def source_lengths(self) -> tuple[int, ...]:
        """The length n for each row, since rows are not padded."""
        rows, length = self.input_ids.shape
        return (length,) * rows


@final
class MassBatches(RowBatches):
    """An endless, random-access sequence of `MassBatch`; `share` is as in `RowBatches`."""

    def __init__(
        self, rows: Rows, words: CorruptionIds, *, rate: float, block: int, batch_size: int, **share: int
    ) -> None:
        super().__init__(rows, batch_size=batch_size, **share)
        self._rate, self._block = rate, block
        self._words = replace(words, pieces=np.asarray(words.pieces, np.int64))

    def batch(self, step: int) -> MassBatch:
        """Return this rank's share of the global batch at `step`."""
        positions = self.positions(step)
        ids, _ = self._rows.rows(positions)
        uniforms = self._rows.uniforms(positions, ids.shape[1])
        hidden = mass_spans(ids, uniforms, self._words, block=self._block, rate=self._rate)
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
