"""MASS spans for ProphetNet: one hidden span in every block of 64 tokens, predicted at its own positions (section 3.1).

Unlike in `corrupt_spans` the text keeps its length, since the decoder is told the original positions of the tokens it
writes (ProphetNet section 2.4), and it writes nothing but these (section 3.1). A batch is a pure function of
(corpus, seed, step).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from precis.data.batches.bucketed import Moves
from precis.data.batches.corruption import Ids, Uniforms
from precis.data.batches.pretraining_batches import CorruptionIds, RowBatches, Rows
from precis.errors import UserError


@dataclass(frozen=True)
class HiddenSpans:
    """Text with spans hidden, and what is hidden. Every row has equally many targets, so there is no padding.

    Attributes:
        input_ids: (b n), as long as the text.
        targets: (b k) the hidden tokens, in the order of the text.
        positions: (b k) where each was in its row, counted from 0.
        spans: (k) the span of each target, the same in every row. Two spans may touch at the border of their blocks;
            these numbers tell them apart, so that a prediction of several tokens ends with its span.
    """

    input_ids: Ids
    targets: Ids
    positions: Ids
    spans: Ids


def mass_spans(
    ids: Ids,
    uniforms: Uniforms,
    *,
    block: int = 64,
    rate: float = 0.15,
    mask_id: int,
    words: Sequence[int] | Ids,
    random: float = 0.1,
    keep: float = 0.1,
    prefix: int = 1,
    suffix: int = 1,
) -> HiddenSpans:
    """Hide one span in every block of tokens (ProphetNet section 3.1).

    Its start is uniform over the places where it fits. The paper picks a start anywhere in the block; a span that ran
    over the border could meet the next one, and rows would then differ in how much they hide. So the first and the last
    tokens of a block are hidden less often here. Of the hidden tokens, each by itself, a share `random` becomes a
    random word, a share `keep` stays, and the rest becomes [MASK].

    ``round(rate * m)`` of a row's m tokens are hidden, at least one. After each block the number hidden so far is
    rounded. So with blocks of 64, spans of 9 and 10 tokens take turns, and a shorter last block has a shorter span or
    none.

    Args:
        ids: (b n), full rows without padding.
        uniforms: (b w) in [0, 1), a column for each block and one for each hidden token; w = n is always enough.
        block: tokens of which one span is hidden.
        rate: share of the tokens that are hidden, in (0, 1).
        words: the ids that random words are drawn from.
        prefix, suffix: tokens at either end that are never hidden ([CLS] and [SEP]).

    Raises:
        UserError: a setting is out of range, or a row is too short to hide anything.
        ValueError: there are too few random numbers.
    """
    tokens = ids.shape[1] - prefix - suffix
    _check(tokens, block=block, rate=rate, words=words, random=random, keep=keep)
    edges = np.minimum(np.arange(0, tokens + block, block), tokens)
    sizes = np.diff(edges)
    hidden = _span_lengths(edges, rate)
    spans = np.repeat(np.arange(len(sizes)), hidden)  # (k)
    if uniforms.shape[1] < len(sizes) + len(spans):
        raise ValueError(
            f"{uniforms.shape[1]} random numbers a row for {len(sizes)} blocks and {len(spans)} hidden tokens; "
            "give one for each"
        )
    offsets = np.arange(len(spans)) - (np.cumsum(hidden) - hidden)[spans]
    room = sizes - hidden + 1
    starts = prefix + edges[:-1] + (uniforms[:, : len(sizes)] * room).astype(np.int64)  # (b blocks)
    positions = starts[:, spans] + offsets
    targets = np.take_along_axis(ids, positions, axis=1)
    draws = uniforms[:, len(sizes) : len(sizes) + len(spans)]
    input_ids = ids.copy()
    written = _replaced(targets, draws, mask_id=mask_id, words=words, random=random, keep=keep)
    np.put_along_axis(input_ids, positions, written, axis=1)
    return HiddenSpans(input_ids, targets, positions, spans)


def _check(
    tokens: int, *, block: int, rate: float, words: Sequence[int] | Ids, random: float, keep: float
) -> None:
    if tokens < 2:
        raise UserError(f"a row of {tokens} tokens is too short for MASS spans; use longer blocks")
    if block < 1:
        raise UserError(f"block={block} must be 1 or more; 64 is the paper's")
    if not 0.0 < rate < 1.0:
        raise UserError(f"rate={rate} is outside (0, 1); 0.15 is the paper's")
    if min(random, keep) < 0.0 or random + keep > 1.0:
        raise UserError(f"random={random} and keep={keep} must be shares of 1; 0.1 and 0.1 are the paper's")
    if random > 0.0 and not len(words):
        raise UserError(f"words={words} is empty; give the ids of the vocabulary's pieces, or random=0")


def _span_lengths(edges: NDArray[np.int64], rate: float) -> NDArray[np.int64]:
    """(blocks) hidden tokens of each block between the edges."""
    lengths = np.diff(np.rint(rate * edges).astype(np.int64))
    if not lengths.any():
        lengths[0] = 1
    return lengths


def _replaced(
    targets: Ids, draws: Uniforms, *, mask_id: int, words: Sequence[int] | Ids, random: float, keep: float
) -> Ids:
    """(b k) what the encoder sees: the lowest draws keep the token, those above them replace it at random."""
    written = np.where(draws < keep, targets, mask_id)
    at_random = (draws >= keep) & (draws < keep + random)
    # Within its interval the draw is uniform again, and so chooses the word too.
    places = (
        ((draws[at_random] - keep) / random * len(words)).astype(np.int64) if random else np.empty(0, int)
    )
    written[at_random] = np.asarray(words)[np.minimum(places, len(words) - 1)]
    return written


@final
@dataclass(frozen=True, kw_only=True)
class MassBatch(Moves):
    """b blocks of n tokens with k of them hidden, all rows alike, so that nothing is padded.

    Attributes:
        input_ids, attention_mask: (b n) long, the text with its spans hidden, as long as before.
        labels: (b k) long, the hidden tokens.
        decoder_input_ids: (b k) long, the token before each hidden token in the text.
        decoder_position_ids: (b k) long, where that token stands in the text.
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
        """n for each row, since nothing is padded."""
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
        self._mask, self._pieces = words.mask, np.asarray(words.pieces, np.int64)

    def batch(self, step: int) -> MassBatch:
        """This rank's share of the step-th global batch."""
        positions = self.positions(step)
        ids, _ = self._rows.rows(positions)
        hidden = mass_spans(
            ids,
            self._rows.uniforms(positions, ids.shape[1]),
            block=self._block,
            rate=self._rate,
            mask_id=self._mask,
            words=self._pieces,
        )
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
