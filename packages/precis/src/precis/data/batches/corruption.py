"""Corruption of token ids for pre-training: masked tokens, spans, gap sentences and MASS spans.

Rows are full blocks of equal length: [CLS], text, [SEP]. Randomness is an argument: each row of ids comes with a
row of numbers in [0, 1). These determine its corruption completely, whatever the other rows of a batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from precis_text.errors import UserError

Ids = NDArray[np.int64]
Uniforms = NDArray[np.float64]
Flags = NDArray[np.bool_]

IGNORE = -100  # label of a position without a target, as in torch's cross-entropy


@dataclass(frozen=True, kw_only=True)
class CorruptionIds:
    """The ids that corruption writes.

    Attributes:
        first_sentinel, sentinels: the first mark that replaces a hidden span, and their number. MASS needs none.
        pieces: ids other than control tokens, from which MASS (and only MASS) draws random words.
    """

    pad: int
    cls: int
    sep: int
    mask: int
    first_sentinel: int = 0
    sentinels: int = 0
    pieces: Sequence[int] | Ids = ()


@dataclass(frozen=True)
class CorruptedSpans:
    """Spans of the text moved to the target, each replaced by a sentinel.

    Attributes:
        input_ids: (b s), padded on the right.
        attention: (b s) bool, True at real tokens.
        labels: (b t): sentinel, span, sentinel, span, ..., end mark; `IGNORE` on padding.
    """

    input_ids: Ids
    attention: Flags
    labels: Ids


@dataclass(frozen=True)
class HiddenSpans:
    """Text with MASS spans hidden, and the hidden tokens. All rows have the same number of targets, without padding.

    Attributes:
        input_ids: (b n), as long as the text.
        targets: (b k) the hidden tokens, in the order of the text.
        positions: (b k) original position of each in its row, counted from 0.
        spans: (k) the span of each target, the same in every row. Two spans may touch at the border of their blocks;
            these numbers separate them, so that a prediction of several tokens ends with its span.
    """

    input_ids: Ids
    targets: Ids
    positions: Ids
    spans: Ids


def mask_tokens(ids: Ids, uniforms: Uniforms, words: CorruptionIds, *, rate: float = 0.15) -> tuple[Ids, Ids]:
    """Mask a share of the tokens for the generator (Z-Code++ section 2.1, Eq. 1).

    Exactly ``round(rate * tokens)`` tokens of a row, at least one, are masked, uniformly over all positions except the
    first and the last. A [SEP] between documents counts as text. DeBERTa's code draws one token from each window of
    six and drops the surplus, so it never masks the end of a block; this function does. As in DeBERTa, every chosen
    token becomes [MASK].

    Args:
        ids: (b n).
        uniforms: (b w) in [0, 1), w at least n; the first n columns are used, one per token.

    Returns:
        (b n) ids with [MASK] at the chosen positions, and (b k) these positions in ascending order.

    Raises:
        UserError: `rate` is outside (0, 1).
        ValueError: there are fewer random numbers than tokens.
    """
    _check(ids, uniforms, rate)
    tokens = ids.shape[1] - 2
    wanted = min(max(1, round(rate * tokens)), tokens)
    places = 1 + _lowest(uniforms[:, 1 : tokens + 1], wanted)
    masked = ids.copy()
    np.put_along_axis(masked, places, words.mask, axis=1)
    return masked, places


def corrupt_spans(
    ids: Ids, uniforms: Uniforms, words: CorruptionIds, *, rate: float = 0.15, mean_length: float = 3.0
) -> CorruptedSpans:
    """Move spans to the target (corrupted span prediction, Z-Code++ Eq. 5).

    ``round(rate * m)`` of a row's m tokens are hidden, in ``round(that / mean_length)`` spans. The hidden tokens are
    divided into spans, and the others into the gaps between them; all divisions are equally likely, as in T5. The paper
    draws spans one by one until it reaches 15%. Here the numbers are fixed, so every row has the same sizes and a batch
    needs no padding. A gap has at least one token, except before the first span and after the last.

    Args:
        ids: (b n).
        uniforms: (b w) in [0, 1), w at least n. The first columns divide spans and the last ones gaps.

    Raises:
        UserError: there are more spans than sentinels, a row is too short to hide anything, or a setting is out of
            range.
        ValueError: there are fewer random numbers than tokens.
    """
    _check(ids, uniforms, rate)
    if mean_length < 1:
        raise UserError(f"mean_length={mean_length} must be 1 or more; 3 is the paper's")
    tokens = ids.shape[1] - 2
    if tokens < 2:
        raise UserError(f"a row of {tokens} tokens is too short for span corruption; use longer blocks")
    noise = min(max(1, round(rate * tokens)), tokens - 1)
    kept = tokens - noise
    spans = min(max(1, round(noise / mean_length)), kept + 1)
    if spans > words.sentinels:
        raise UserError(
            f"{spans} spans in a row of {ids.shape[1]} tokens, but the tokenizer has {words.sentinels} "
            f"sentinels; use shorter rows or a mean span above {mean_length:g}"
        )
    lengths = _composition(noise, spans, uniforms)  # (b k)
    # k spans leave k-1 gaps of one token or more, and two ends that may be empty: k+1 parts of kept + 2 tokens
    gaps = _composition(kept + 2, spans + 1, uniforms[:, ::-1])
    starts = (
        np.cumsum(gaps[:, :-1], axis=1) + np.cumsum(lengths, axis=1) - lengths
    )  # 1 for [CLS], less 1 of the end
    begins = np.zeros(ids.shape, np.int8)
    np.put_along_axis(begins, starts, 1, axis=1)
    steps = begins.copy()
    np.put_along_axis(steps, starts + lengths, -1, axis=1)
    return _move_spans(ids, begins > 0, np.cumsum(steps, axis=1) > 0, words)


def _check(ids: Ids, uniforms: Uniforms, rate: float) -> None:
    _check_rate(rate)
    # Broadcasting would accept a single column and hide the same positions in every row.
    if uniforms.shape[1] < ids.shape[1]:
        raise ValueError(
            f"{uniforms.shape[1]} random numbers for rows of {ids.shape[1]} tokens; give one per token"
        )


def _check_rate(rate: float) -> None:
    if not 0.0 < rate < 1.0:
        raise UserError(f"rate={rate} is outside (0, 1); 0.15 is the paper's")


def _lowest(uniforms: Uniforms, count: int) -> Ids:
    """Return the (b count) columns of each row's lowest numbers, in ascending order."""
    return np.sort(np.argsort(uniforms, axis=1, kind="stable")[:, :count], axis=1)


def _composition(total: int, parts: int, uniforms: Uniforms) -> Ids:
    """Return (b parts) positive parts with the sum `total`, divided at the columns of a row's lowest numbers."""
    cuts = 1 + _lowest(uniforms[:, : total - 1], parts - 1)
    return np.diff(cuts, axis=1, prepend=0, append=total)


def _move_spans(ids: Ids, begins: Flags, hidden: Flags, words: CorruptionIds) -> CorruptedSpans:
    """Build inputs and labels from (b n) span starts and (b n) hidden positions."""
    rows, width = ids.shape
    sentinels = (
        words.first_sentinel + np.cumsum(begins, axis=1) - 1
    )  # of the last span started, at each position
    input_ids, attention = _packed(np.where(begins, sentinels, ids), ~hidden | begins, filler=words.pad)
    # A target holds a sentinel before each span's first token: two columns a position, the sentinel first.
    doubled = np.stack([sentinels, ids], axis=2).reshape(rows, 2 * width)
    written = np.stack([begins, hidden], axis=2).reshape(rows, 2 * width)
    labels, _ = _packed(
        np.concatenate([doubled, np.full((rows, 1), words.sep)], axis=1),
        np.concatenate([written, np.ones((rows, 1), bool)], axis=1),
        filler=IGNORE,
    )
    return CorruptedSpans(input_ids, attention, labels)


def _packed(values: Ids, kept: Flags, *, filler: int) -> tuple[Ids, Flags]:
    """Move each row's kept values to its start; return them and a mask of their positions."""
    counts = kept.sum(axis=1)
    filled = np.arange(int(counts.max())) < counts[:, None]
    packed = np.full(filled.shape, filler, np.int64)
    packed[filled] = values[kept]  # both iterate over the rows in order
    return packed, filled


def gap_sentences(
    ids: Ids, sentence_starts: Sequence[Ids], uniforms: Uniforms, words: CorruptionIds, *, rate: float = 0.15
) -> CorruptedSpans:
    """Move the principal sentences of each row to the target (PEGASUS), for comparison with spans.

    Span corruption restricted to complete sentences is the gap-sentence task (Z-Code++ section 2.1). Inputs and
    targets therefore have the form of `corrupt_spans`.

    A sentence's score is ROUGE-1 F1 between its distinct tokens and those of the rest of the row. Each sentence is
    scored independently (PEGASUS, "Ind-Uniq"; on pieces of words, not words). The best sentences are hidden until the
    next would exceed `rate` of the row. That one is hidden with the probability that keeps the mean at `rate`, so that
    rows hide as much as with spans. If the best sentence by itself exceeds `rate`, a draw decides in the same way
    between it and the best short enough one. If none is short enough, the shortest is hidden, and the row hides more
    than `rate`. At least one sentence is hidden and at least one stays. A row of one sentence is split in half. A
    sentence truncated by a block's border counts as a sentence.

    Args:
        ids: (b n).
        sentence_starts: the start positions of the sentences in each row.
        uniforms: (b 1) or wider; the first column decides about the last sentence.

    Raises:
        UserError: more sentences are chosen than there are sentinels, or a row is too short.
    """
    begins, hidden = np.zeros(ids.shape, bool), np.zeros(ids.shape, bool)
    for row, (starts, draw) in enumerate(zip(sentence_starts, uniforms[:, 0].tolist(), strict=True)):
        for start, stop in _principal(ids[row], starts, draw, rate=rate):
            begins[row, start] = True
            hidden[row, start:stop] = True
    most = int(begins.sum(axis=1).max())
    if most > words.sentinels:
        raise UserError(
            f"{most} gap sentences in a row of {ids.shape[1]} tokens, but the tokenizer has {words.sentinels} "
            "sentinels; use shorter rows or a lower rate"
        )
    return _move_spans(ids, begins, hidden, words)


def _principal(row: Ids, starts: Ids, draw: float, *, rate: float) -> list[tuple[int, int]]:
    """Return the chosen sentences of one row as (start, stop)."""
    first, end = 1, len(row) - 1
    if end - first < 2:
        raise UserError(f"a row of {end - first} tokens is too short for gap sentences; use longer blocks")
    edges = sorted({first, *(int(start) for start in starts if first < start < end), end})
    if len(edges) < 3:
        edges = [first, (first + end) // 2, end]
    sentences = list(pairwise(edges))
    scores = sentence_scores([row[start:stop] for start, stop in sentences])
    order = sorted(range(len(sentences)), key=lambda index: (-scores[index], index))
    sizes = [stop - start for start, stop in sentences]
    return [sentences[i] for i in _within_budget(order, sizes, budget=rate * (end - first), draw=draw)]


def _within_budget(order: list[int], sizes: list[int], *, budget: float, draw: float) -> list[int]:
    """Choose sentences in the given order; the mean of their total size over draws is the budget."""
    best = order[0]
    if sizes[best] > budget:
        short = next((index for index in order if sizes[index] <= budget), None)
        if short is None:
            return [min(order, key=lambda index: sizes[index])]
        return [best if draw < (budget - sizes[short]) / (sizes[best] - sizes[short]) else short]
    picked: list[int] = []
    for index in order[:-1]:  # keep one
        if sizes[index] > budget:
            return [*picked, index] if draw < budget / sizes[index] else picked
        picked.append(index)
        budget -= sizes[index]
    return picked


def sentence_scores(sentences: list[Ids]) -> NDArray[np.float64]:
    """Compute ROUGE-1 F1 of each sentence against all others together; each token counts once."""
    vocabulary, flat = np.unique(np.concatenate(sentences), return_inverse=True)
    owner = np.repeat(np.arange(len(sentences)), [len(s) for s in sentences])
    has = np.zeros((len(sentences), len(vocabulary)), bool)
    has[owner, flat] = True
    sentences_with = has.sum(axis=0)
    common = (has & (sentences_with > 1)).sum(axis=1)  # also in another sentence
    own = has.sum(axis=1)
    rest = len(vocabulary) - (has & (sentences_with == 1)).sum(axis=1)
    return 2 * common / np.maximum(1, own + rest)


def mass_spans(
    ids: Ids,
    uniforms: Uniforms,
    words: CorruptionIds,
    *,
    block: int = 64,
    rate: float = 0.15,
    random: float = 0.1,
    keep: float = 0.1,
) -> HiddenSpans:
    """Hide one span in every block of tokens, without moving other tokens (ProphetNet section 3.1).

    A span's start is uniform over the positions where it fits. The paper picks a start anywhere in the block. A span
    that crosses the border could then meet the next one, and rows would differ in their hidden tokens. Here the first
    and the last tokens of a block are therefore hidden less often. Each hidden token becomes a random piece with
    probability `random`, stays with probability `keep`, and becomes [MASK] otherwise.

    ``round(rate * m)`` of a row's m tokens are hidden, at least one. The running total is rounded after each block.
    With blocks of 64, spans of 9 and 10 tokens therefore alternate, and a shorter last block has a shorter span or
    none.

    Args:
        ids: (b n).
        uniforms: (b w) in [0, 1), one column per block and one per hidden token; w = n is always enough.
        block: tokens in a block, which gets one span.
        rate: share of the tokens to hide, in (0, 1).

    Raises:
        UserError: a setting is out of range, or a row is too short to hide anything.
        ValueError: there are too few random numbers.
    """
    tokens = ids.shape[1] - 2
    if tokens < 2:
        raise UserError(f"a row of {tokens} tokens is too short for MASS spans; use longer blocks")
    if block < 1:
        raise UserError(f"block={block} must be 1 or more; 64 is the paper's")
    _check_rate(rate)
    if min(random, keep) < 0.0 or random + keep > 1.0:
        raise UserError(f"random={random} and keep={keep} must be shares of 1; 0.1 and 0.1 are the paper's")
    if random > 0.0 and not len(words.pieces):
        raise UserError("pieces is empty; give the ids of the vocabulary's pieces, or random=0")
    edges = np.minimum(np.arange(0, tokens + block, block), tokens)
    sizes = np.diff(edges)
    lengths = np.diff(np.rint(rate * edges).astype(np.int64))  # hidden tokens of each block
    if not lengths.any():
        lengths[0] = 1
    spans = np.repeat(np.arange(len(sizes)), lengths)  # (k)
    if uniforms.shape[1] < len(sizes) + len(spans):
        raise ValueError(
            f"{uniforms.shape[1]} random numbers a row for {len(sizes)} blocks and {len(spans)} hidden tokens; "
            "give one for each"
        )
    offsets = np.arange(len(spans)) - (np.cumsum(lengths) - lengths)[spans]
    room = sizes - lengths + 1
    starts = 1 + edges[:-1] + (uniforms[:, : len(sizes)] * room).astype(np.int64)  # (b blocks)
    positions = starts[:, spans] + offsets
    targets = np.take_along_axis(ids, positions, axis=1)
    draws = uniforms[:, len(sizes) : len(sizes) + len(spans)]
    written = np.where(draws < keep, targets, words.mask)
    if random:
        at_random = (draws >= keep) & (draws < keep + random)
        # Within its interval the draw is again uniform, so it also chooses the piece.
        places = ((draws[at_random] - keep) / random * len(words.pieces)).astype(np.int64)
        written[at_random] = np.asarray(words.pieces)[np.minimum(places, len(words.pieces) - 1)]
    input_ids = ids.copy()
    np.put_along_axis(input_ids, positions, written, axis=1)
    return HiddenSpans(input_ids, targets, positions, spans)
