"""Statistics of a summary relative to its document: length, new n-grams, repetition, and how much is copied.

Words are `unicode_words`: lower-cased, no punctuation, no stemming, any script. An empty summary, or one too short to
contain an n-gram, scores 0 in the undefined statistics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from precis_text.errors import UserError
from precis_text.words import count_words, unicode_words

Shape = dict[str, NDArray[np.float64]]
STATISTICS = (
    "length", "novelty_1", "novelty_2", "novelty_3", "repetition", "coverage", "density", "compression",
)  # fmt: skip


def shape_statistics(systems: Mapping[str, Sequence[str]], documents: Sequence[str]) -> dict[str, Shape]:
    """Compute arrays (n,) for each system's summaries of the same documents; each document is read once.

    - `length`: words in the usual sense (`count_words`).
    - `novelty_1`, `novelty_2`, `novelty_3`: percent of the summary's n-grams that are not in the document.
    - `repetition`: percent of the summary's trigrams that occurred earlier in the same summary.
    - `coverage` (0..1) and `density` (>= 0, in words): Grusky et al. (2018), "Newsroom", section 4: the
      share of words in fragments copied from the document, and the mean over words of their fragment's
      length.
    - `compression` (>= 0): words of the document per word of the summary (the same section).

    Raises:
        UserError: a system's summaries and the documents differ in number.
    """
    result: dict[str, Shape] = {}
    for system, predictions in systems.items():
        if len(predictions) != len(documents):
            raise UserError(f"{len(predictions)} predictions for {len(documents)} documents")
        result[system] = {name: np.zeros(len(documents)) for name in STATISTICS}
    for row, document in enumerate(documents):
        source = Source(document)
        for system, predictions in systems.items():
            for name, value in _describe(predictions[row], source).items():
                result[system][name][row] = value
    return result


class Source:
    """A document prepared for comparison with summaries."""

    def __init__(self, document: str) -> None:
        self.words = unicode_words(document)
        self.ngrams = {n: set(_ngrams(self.words, n)) for n in (1, 2, 3)}
        self.pairs: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for position, pair in enumerate(pairwise(self.words)):
            self.pairs[pair].append(position)


def extractive_fragments(summary: Sequence[str], source: Source) -> list[int]:
    """Return the lengths of the fragments of `summary`, a list of words, that are copied from the document.

    Grusky et al. (2018), Figure 3: from left to right, take the longest match anywhere in the document and consume
    it. Skip a word without a match. Candidates come from an index of word pairs, which gives the same fragments as
    the paper's scan of the whole document.
    """
    fragments = []
    start = 0
    while start < len(summary):
        longest = int((summary[start],) in source.ngrams[1])
        for position in source.pairs.get(tuple(summary[start : start + 2]), ()):
            longest = max(longest, _match_length(summary, start, source.words, position))
        if longest:
            fragments.append(longest)
        start += max(longest, 1)
    return fragments


def _match_length(summary: Sequence[str], start: int, document: Sequence[str], position: int) -> int:
    length = 0
    limit = min(len(summary) - start, len(document) - position)
    while length < limit and summary[start + length] == document[position + length]:
        length += 1
    return length


def _describe(prediction: str, source: Source) -> dict[str, float]:
    summary = unicode_words(prediction)
    trigrams = _ngrams(summary, 3)
    fragments = extractive_fragments(summary, source)
    return {
        "length": count_words(prediction),
        **{f"novelty_{n}": _novelty(_ngrams(summary, n), source.ngrams[n]) for n in (1, 2, 3)},
        "repetition": 100 * _ratio(len(trigrams) - len(set(trigrams)), len(trigrams)),
        "coverage": _ratio(sum(fragments), len(summary)),
        "density": _ratio(sum(length**2 for length in fragments), len(summary)),
        "compression": _ratio(len(source.words), len(summary)),
    }


def _novelty(ngrams: Sequence[tuple[str, ...]], known: Set[tuple[str, ...]]) -> float:
    return 100 * _ratio(sum(gram not in known for gram in ngrams), len(ngrams))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _ngrams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return list(zip(*(words[shift:] for shift in range(n)), strict=False))
