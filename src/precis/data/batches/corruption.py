"""Corruption of token ids for pre-training: masked tokens and spans.

Randomness is an argument: each row of ids brings a row of numbers in [0, 1), and nothing else decides. What happens to
a row does not depend on its company in a batch.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from precis.errors import UserError

Ids = NDArray[np.int64]
Uniforms = NDArray[np.float64]

IGNORE = -100  # label of a position that has no target, as in torch's cross-entropy


@dataclass(frozen=True)
class MaskedTokens:
    """(b n) ids with [MASK] in the chosen places, and (b n) bool, True in these places."""

    input_ids: Ids
    chosen: NDArray[np.bool_]


@dataclass(frozen=True)
class CorruptedSpans:
    """Spans of the text moved to the target, a sentinel left in each one's place.

    Attributes:
        input_ids: (b s), padded on the right.
        attention: (b s) bool, True at real tokens.
        labels: (b t): sentinel, span, sentinel, span, ..., end mark; `IGNORE` on padding.
    """

    input_ids: Ids
    attention: NDArray[np.bool_]
    labels: Ids


def mask_tokens(
    ids: Ids, maskable: NDArray[np.bool_], uniforms: Uniforms, *, rate: float = 0.15, mask_id: int
) -> MaskedTokens:
    """Hide a share of the tokens from the generator (Z-Code++ section 2.1, Eq. 1).

    Exactly ``round(rate * maskable tokens)`` of a row, at least one, uniformly over all maskable positions. DeBERTa's
    code draws one from each window of six and cuts off what is too many, so that the end of a block is never masked;
    ours has no such blind spot. Chosen tokens become [MASK] without exception, as there.

    Args:
        ids: (b n).
        maskable: (b n) where a token may be hidden: not at control tokens and padding.
        uniforms: (b w) in [0, 1), w at least n; the first n columns are used, one a token.

    Raises:
        UserError: `rate` is outside (0, 1).
        ValueError: there are fewer random numbers than tokens.
    """
    _check(ids, uniforms, rate)
    order = np.where(maskable, uniforms[:, : ids.shape[1]], 2.0)  # the lowest numbers are chosen
    available = maskable.sum(axis=1)
    wanted = np.minimum(np.maximum(1, np.rint(rate * available)), available).astype(np.int64)  # (b)
    rank = np.argsort(np.argsort(order, axis=1, kind="stable"), axis=1, kind="stable")
    chosen = rank < wanted[:, None]
    return MaskedTokens(np.where(chosen, mask_id, ids), chosen)


def corrupt_spans(
    ids: Ids,
    lengths: NDArray[np.int64],
    uniforms: Uniforms,
    *,
    rate: float = 0.15,
    mean_length: float = 3.0,
    first_sentinel: int,
    num_sentinels: int,
    eos_id: int,
    pad_id: int,
    prefix: int = 1,
    suffix: int = 1,
) -> CorruptedSpans:
    """Move spans to the target (corrupted span prediction, Z-Code++ Eq. 5).

    ``round(rate * m)`` of a row's m tokens are hidden, in ``round(that / mean_length)`` spans. The hidden tokens are
    divided into spans, and the others into the gaps between them; all divisions are equally likely, as in T5. The paper
    draws one span after the other until 15% is reached. With fixed numbers every row has the same sizes instead, and a
    batch needs no padding. A gap has at least one token, except before the first span and after the last.

    Args:
        ids: (b n), padded on the right.
        lengths: (b) real tokens of each row.
        uniforms: (b w) in [0, 1), w at least n. The first columns cut spans and the last ones gaps, so a row has the
            same spans in any batch with the same w.
        prefix, suffix: real tokens at either end that are never hidden ([CLS] and [SEP]).

    Raises:
        UserError: there are more spans than sentinels, a row is too short to hide anything, or a setting is out of
            range.
        ValueError: there are fewer random numbers than tokens.
    """
    _check(ids, uniforms, rate)
    if mean_length < 1:
        raise UserError(f"mean_length={mean_length} must be 1 or more; 3 is the paper's")
    noise, spans = _sizes(lengths - prefix - suffix, rate, mean_length)
    if spans.max() > num_sentinels:
        raise UserError(
            f"{int(spans.max())} spans in a row of {int(lengths.max())} tokens, but the tokenizer has {num_sentinels} "
            f"sentinels; use shorter rows or a mean span above {mean_length:g}"
        )
    span_lengths = _composition(noise, spans, uniforms)  # (b k), 0 beyond a row's number of spans
    kept = lengths - prefix - suffix - noise
    # k spans leave k-1 gaps of one token or more, and two ends that may be empty: k+1 parts of kept + 2 tokens
    gaps = _composition(kept + 2, spans + 1, uniforms[:, ::-1])
    gaps = _without_ends(gaps, spans)
    starts = prefix + np.cumsum(gaps[:, :-1], axis=1) + np.cumsum(span_lengths, axis=1) - span_lengths
    marks = np.arange(span_lengths.shape[1]) < spans[:, None]
    hidden = _inside(starts, span_lengths, marks, width=ids.shape[1])
    return move_spans(
        ids, lengths, hidden, starts, marks, first_sentinel=first_sentinel, eos_id=eos_id, pad_id=pad_id
    )


def _check(ids: Ids, uniforms: Uniforms, rate: float) -> None:
    if not 0.0 < rate < 1.0:
        raise UserError(f"rate={rate} is outside (0, 1); 0.15 is the paper's")
    # A single column would be broadcast without an error, and hide the same places in every row.
    if uniforms.shape[1] < ids.shape[1]:
        raise ValueError(
            f"{uniforms.shape[1]} random numbers for rows of {ids.shape[1]} tokens; give one a token"
        )


def _sizes(
    tokens: NDArray[np.int64], rate: float, mean_length: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Hidden tokens and spans of each row."""
    if tokens.min() < 2:
        raise UserError(
            f"a row of {int(tokens.min())} tokens is too short for span corruption; use longer blocks"
        )
    noise = np.clip(np.rint(rate * tokens), 1, tokens - 1).astype(np.int64)
    spans = np.maximum(1, np.rint(noise / mean_length)).astype(np.int64)
    return noise, np.minimum(spans, tokens - noise + 1)


def _composition(total: NDArray[np.int64], parts: NDArray[np.int64], uniforms: Uniforms) -> NDArray[np.int64]:
    """(b max(parts)) positive parts that add up to `total`: cuts at distinct places, the lowest numbers of a row."""
    width = int(total.max()) - 1
    places = np.arange(1, width + 1)
    numbers = np.where(places < total[:, None], uniforms[:, :width], 2.0)
    rank = np.argsort(np.argsort(numbers, axis=1, kind="stable"), axis=1, kind="stable")
    is_cut = rank < (parts - 1)[:, None]
    most = int(parts.max())
    cuts = np.sort(np.where(is_cut, places, total[:, None]), axis=1)[:, : most - 1]
    edges = np.concatenate([np.zeros((len(total), 1), np.int64), cuts, total[:, None]], axis=1)
    return np.diff(edges, axis=1)


def _without_ends(gaps: NDArray[np.int64], spans: NDArray[np.int64]) -> NDArray[np.int64]:
    """Take one token from the first and from the last of a row's spans + 1 gaps, which may then be empty."""
    gaps = gaps.copy()
    gaps[:, 0] -= 1
    gaps[np.arange(len(gaps)), spans] -= 1
    return gaps


def _inside(
    starts: NDArray[np.int64], lengths: NDArray[np.int64], marks: NDArray[np.bool_], *, width: int
) -> NDArray[np.bool_]:
    """(b width) True inside the spans."""
    steps = np.zeros((len(starts), width + 1), np.int64)
    rows = np.broadcast_to(np.arange(len(starts))[:, None], starts.shape)[marks]
    np.add.at(steps, (rows, starts[marks]), 1)
    np.add.at(steps, (rows, (starts + lengths)[marks]), -1)
    return np.cumsum(steps, axis=1)[:, :width] > 0


def move_spans(
    ids: Ids,
    lengths: NDArray[np.int64],
    hidden: NDArray[np.bool_],
    starts: NDArray[np.int64],
    marks: NDArray[np.bool_],
    *,
    first_sentinel: int,
    eos_id: int,
    pad_id: int,
) -> CorruptedSpans:
    """Make inputs and labels from the places of the spans.

    Args:
        hidden: (b n) True inside a span; spans do not touch, or begin at different `starts`.
        starts: (b k) first position of each span, in order.
        marks: (b k) which of them exist.
    """
    rows, width = ids.shape
    real = np.arange(width) < lengths[:, None]
    is_start = np.zeros(ids.shape, bool)
    row_of = np.broadcast_to(np.arange(rows)[:, None], starts.shape)[marks]
    is_start[row_of, starts[marks]] = True
    number = np.cumsum(is_start, axis=1) - 1  # of the last span begun, at each position
    with_sentinels = np.where(is_start, first_sentinel + number, ids)
    input_ids, attention = _packed(with_sentinels, real & (~hidden | is_start), filler=pad_id)
    # A target holds a sentinel before each span's first token: two columns a position, the first for the sentinel.
    doubled = np.stack([first_sentinel + number, ids], axis=2).reshape(rows, 2 * width)
    written = np.stack([is_start, hidden], axis=2).reshape(rows, 2 * width)
    end = np.full((rows, 1), eos_id)
    labels, _ = _packed(
        np.concatenate([doubled, end], axis=1),
        np.concatenate([written, np.ones((rows, 1), bool)], axis=1),
        filler=IGNORE,
    )
    return CorruptedSpans(input_ids, attention, labels)


def _packed(values: Ids, kept: NDArray[np.bool_], *, filler: int) -> tuple[Ids, NDArray[np.bool_]]:
    """Each row's kept values moved to its beginning, and where they are."""
    counts = kept.sum(axis=1)
    filled = np.arange(int(counts.max())) < counts[:, None]
    packed = np.full(filled.shape, filler, np.int64)
    packed[filled] = values[kept]  # both run through the rows in order
    return packed, filled
