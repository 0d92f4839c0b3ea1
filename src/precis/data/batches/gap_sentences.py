"""Gap sentences (PEGASUS): whole principal sentences moved to the target, to compare with spans.

Span corruption restricted to complete sentences is the gap-sentence task (Z-Code++ section 2.1). So inputs and targets
have the form of `corrupt_spans`: a sentinel in place of each sentence, and the sentence behind it in the target.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from precis.data.batches.corruption import CorruptedSpans, Ids, Uniforms, move_spans
from precis.errors import UserError


def gap_sentences(
    ids: Ids,
    lengths: NDArray[np.int64],
    sentence_starts: list[NDArray[np.int64]],
    uniforms: Uniforms,
    *,
    rate: float = 0.15,
    first_sentinel: int,
    num_sentinels: int,
    eos_id: int,
    pad_id: int,
    prefix: int = 1,
    suffix: int = 1,
) -> CorruptedSpans:
    """Move the principal sentences of each row to the target.

    A sentence's score is ROUGE-1 F1 between its distinct tokens and those of the rest of the row, each sentence by
    itself (PEGASUS, "Ind-Uniq"; on pieces of words, not words). The best sentences are hidden until the next would pass
    `rate` of the row. That one is hidden with the probability that keeps the mean at `rate`, so that rows hide as much
    as with spans. If the best sentence alone would pass it, chance decides in the same way between that one and the
    best short enough one. If none is short enough, the shortest is hidden, and the row hides more than `rate`. At least
    one sentence is hidden and at least one stays. A row of one sentence is cut in halves. The part of a sentence that a
    block's border leaves counts as a sentence.

    Args:
        ids: (b n), padded on the right.
        lengths: (b) real tokens of each row.
        sentence_starts: for each row the positions at which sentences begin.
        uniforms: (b 1) or wider; the first column decides about the last sentence.

    Raises:
        UserError: more sentences are chosen than there are sentinels, or a row is too short.
    """
    chosen = [
        _principal(ids[row, :length], starts, draw, rate=rate, prefix=prefix, suffix=suffix)
        for row, (length, starts, draw) in enumerate(
            zip(lengths.tolist(), sentence_starts, uniforms[:, 0].tolist(), strict=True)
        )
    ]
    most = max(len(spans) for spans in chosen)
    if most > num_sentinels:
        raise UserError(
            f"{most} gap sentences in a row of {int(lengths.max())} tokens, but the tokenizer has {num_sentinels} "
            "sentinels; use shorter rows or a lower rate"
        )
    starts = np.zeros((len(ids), most), np.int64)
    marks = np.zeros((len(ids), most), bool)
    hidden = np.zeros(ids.shape, bool)
    for row, spans in enumerate(chosen):
        for number, (start, stop) in enumerate(spans):
            starts[row, number], marks[row, number] = start, True
            hidden[row, start:stop] = True
    return move_spans(
        ids, lengths, hidden, starts, marks, first_sentinel=first_sentinel, eos_id=eos_id, pad_id=pad_id
    )


def _principal(
    row: NDArray[np.int64], starts: NDArray[np.int64], draw: float, *, rate: float, prefix: int, suffix: int
) -> list[tuple[int, int]]:
    """The chosen sentences of one row as (start, stop), in the order of the text."""
    first, end = prefix, len(row) - suffix
    if end - first < 2:
        raise UserError(f"a row of {end - first} tokens is too short for gap sentences; use longer blocks")
    edges = sorted({first, *(int(start) for start in starts if first < start < end), end})
    if len(edges) < 3:
        edges = [first, (first + end) // 2, end]
    sentences = list(pairwise(edges))
    scores = sentence_scores([row[start:stop] for start, stop in sentences])
    order = sorted(range(len(sentences)), key=lambda index: (-scores[index], index))
    sizes = [stop - start for start, stop in sentences]
    picked = _within_budget(order, sizes, budget=rate * (end - first), draw=draw)
    return [sentences[index] for index in sorted(picked)]


def _within_budget(order: list[int], sizes: list[int], *, budget: float, draw: float) -> list[int]:
    """Sentences from the best on, whose sizes add up to the budget in the mean over draws."""
    best = order[0]
    if sizes[best] > budget:
        short = next((index for index in order if sizes[index] <= budget), None)
        if short is None:
            return [min(order, key=lambda index: sizes[index])]
        return [best if draw < (budget - sizes[short]) / (sizes[best] - sizes[short]) else short]
    picked: list[int] = []
    for index in order[:-1]:  # one stays
        if sizes[index] > budget:
            return [*picked, index] if draw < budget / sizes[index] else picked
        picked.append(index)
        budget -= sizes[index]
    return picked


def sentence_scores(sentences: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    """ROUGE-1 F1 of each sentence against all others together, counting each token once."""
    vocabulary, flat = np.unique(np.concatenate(sentences), return_inverse=True)
    owner = np.repeat(np.arange(len(sentences)), [len(s) for s in sentences])
    has = np.zeros((len(sentences), len(vocabulary)), bool)
    has[owner, flat] = True
    sentences_with = has.sum(axis=0)
    common = (has & (sentences_with > 1)).sum(axis=1)  # also in another sentence
    own = has.sum(axis=1)
    rest = len(vocabulary) - (has & (sentences_with == 1)).sum(axis=1)
    return 2 * common / np.maximum(1, own + rest)
