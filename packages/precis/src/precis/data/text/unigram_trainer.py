"""Learn the pieces of a Unigram tokenizer from counted words (Kudo 2018, arXiv:1804.10959, section 3.2).

    seed with frequent substrings; repeat: 2 x EM, then drop the quarter with the smallest loss

The trainer of the `tokenizers` library (0.23) has two faults that matter here. A word that is not part of another word
("city") cannot become a piece, because it appears only once in the list of words. And its sums follow a hash table's
random order, so two trainings differ.

All words are processed at once. The lattice of a word's segmentations has a node between any two characters and an edge
for every piece. Flat arrays hold the edges of all words. They are sorted so that one sweep over the character
positions gives the forward (or backward) probabilities of every node.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, pairwise
from typing import Any, final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_MAX_PIECE = 16  # characters
_MAX_WORD = 32  # longer words are split for training: a product of 32 probabilities stays within float64
_MAX_WORDS = 100_000  # most distinct words; the rarest are dropped
_SEEDS_PER_PIECE = 12
_SHRINK = 0.75  # share of the pieces that a round of pruning keeps
_MARGIN = 1.1  # pruning stops at this multiple of `count`; the most probable of these remain
_LEAST = 0.5  # expected count below which a piece is dropped; single characters stay, with this count


def learn_pieces(
    words: Mapping[str, int], *, count: int, required: Iterable[str] = ()
) -> list[tuple[str, float]]:
    """Learn at most `count` pieces with their natural log probabilities, best first, ties in the order of the text.

    Every character of `words` and of `required` is a piece, even if these are more than `count`. Fewer pieces are
    returned if too few substrings occur twice.

    Args:
        words: the count of each word; no piece crosses a word boundary.
        count: number of pieces.
        required: characters that get a piece even if no word contains them.
    """
    parts = _cut_words(words)
    characters = sorted({*required, *(character for part in parts for character in part)})
    fixed = len(characters)
    pieces = [*characters, *_seeds(parts, (count - fixed) * _SEEDS_PER_PIECE)]
    corpus = _Lattice(parts, pieces)
    keep, probability = _refine(corpus, _shares(corpus.occurrences(len(pieces))), fixed)
    pieces = list(compress(pieces, keep))
    pieces, probability = _prune(pieces, probability, corpus, fixed, max(round(count * _MARGIN), fixed))
    rank = probability.copy()
    rank[:fixed] = np.inf
    keep = _largest(rank, max(count, fixed))
    corpus.restrict(keep)
    scores = np.log(_shares(corpus.expected_counts(probability[keep])))
    # Rounded, so that the last bits of a sum, which may differ between processors, do not change the order.
    scored = [
        (piece, round(float(score), 6)) for piece, score in zip(compress(pieces, keep), scores, strict=True)
    ]
    return sorted(scored, key=lambda item: (-item[1], item[0]))


def _refine(corpus: "_Lattice", probability: Floats, fixed: int) -> tuple[Flags, Floats]:
    """Run two rounds of EM, dropping pieces below `_LEAST`; return a mask of the kept ones and their probabilities."""
    kept = np.ones(len(probability), dtype=np.bool_)
    for _ in range(2):
        expected = corpus.expected_counts(probability)
        keep = expected >= _LEAST
        keep[:fixed] = True
        corpus.restrict(keep)
        probability = _sparse_shares(expected[keep])
        kept[kept] = keep
    return kept, probability


def _prune(
    pieces: list[str], probability: Floats, corpus: "_Lattice", fixed: int, target: int
) -> tuple[list[str], Floats]:
    """Drop the pieces with the smallest loss of likelihood, in rounds, until `target` remain.

    The loss of a piece is its expected count times a log ratio: its probability over that of its best segmentation
    into other pieces.
    """
    others = _Lattice(dict.fromkeys(pieces, 1), pieces, whole=False)
    words = np.arange(len(pieces))  # each piece's index among the words of `others`
    while len(pieces) > target:
        instead = others.best(probability)[words[fixed:]]
        loss = np.full(len(pieces), np.inf)
        loss[fixed:] = corpus.expected_counts(probability)[fixed:] * np.log(probability[fixed:] / instead)
        keep = _largest(loss, max(target, int(len(pieces) * _SHRINK)))
        corpus.restrict(keep)
        refined, probability = _refine(corpus, probability[keep], fixed)
        keep[keep] = refined
        others.restrict(keep)
        words, pieces = words[keep], list(compress(pieces, keep))
    return pieces, probability


def _cut_words(words: Mapping[str, int]) -> dict[str, int]:
    """Split the most frequent words into parts of at most `_MAX_WORD` characters; return the parts' counts."""
    parts: Counter[str] = Counter()
    frequent = sorted(words.items(), key=lambda item: (-item[1], item[0]))[:_MAX_WORDS]
    for word, times in frequent:
        for start in range(0, len(word), _MAX_WORD):
            parts[word[start : start + _MAX_WORD]] += times
    return dict(parts)


def _spans(word: str) -> Iterator[tuple[int, int]]:
    for start in range(len(word)):
        for end in range(start + 1, min(len(word), start + _MAX_PIECE) + 1):
            yield start, end


def _seeds(words: Mapping[str, int], count: int) -> list[str]:
    """Return the `count` substrings of two characters or more that cover the most text and occur at least twice."""
    counts: Counter[str] = Counter()
    for word, times in words.items():
        for start, end in _spans(word):
            if end - start > 1:
                counts[word[start:end]] += times
    repeated = [(-times * len(piece), piece) for piece, times in counts.items() if times > 1]
    return [piece for _, piece in sorted(repeated)[: max(0, count)]]


def _shares(counts: Floats) -> Floats:
    """Normalize expected counts to probabilities: the M step."""
    floored = np.maximum(counts, _LEAST)
    return floored / floored.sum()


def _sparse_shares(counts: Floats) -> Floats:
    """Do the M step with SentencePiece's prior, exp(digamma(count) - digamma(total)), which thins out rare pieces."""
    floored = np.maximum(counts, _LEAST)
    return np.exp(_digamma(floored) - _digamma(floored.sum(keepdims=True)))


def _digamma(x: Floats) -> Floats:
    """Compute the derivative of log gamma for x > 0, to 1e-9, by its asymptotic series at x + 6."""
    y = 1 / (x + 6) ** 2
    series = np.log(x + 6) - 0.5 / (x + 6) - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y / 240)))
    below: Floats = sum((1 / (x + k) for k in range(6)), start=np.zeros_like(x))
    return series - below


def _largest(values: Floats, count: int) -> Flags:
    """Mark the `count` largest values; earlier ones win ties."""
    keep = np.zeros(len(values), dtype=np.bool_)
    keep[np.argsort(-values, kind="stable")[:count]] = True
    return keep


@final
class _Edges:
    """The edges of all lattices in sweep order: every edge comes after all that lead to its tail."""

    def __init__(self, tail: Ints, head: Ints, level: Ints, piece: Ints, word: Ints) -> None:
        self._order(np.stack([tail, head, level, piece, word])[:, np.lexsort((head, level))])

    def restrict(self, keep: Flags) -> None:
        """Remove the edges of dropped pieces and renumber the other pieces."""
        edges = self._edges[:, keep[self.piece]]
        edges[3] = (np.cumsum(keep) - 1)[edges[3]]
        self._order(edges)

    def sweep(self, values: Floats, probability: Floats, combine: Any) -> Floats:
        """Fill in the nodes: value(head) = combine over its edges of value(tail) x probability(piece)."""
        for first, last, starts in self._groups:
            along = values[self.tail[first:last]] * probability[self.piece[first:last]]
            values[self.head[first:last][starts]] = combine.reduceat(along, starts)
        return values

    def _order(self, edges: Ints) -> None:
        """Store ordered edges; find each level's range of edges, and the first edge of each head in it."""
        self._edges = edges
        self.tail, self.head, level, self.piece, self.word = edges
        borders = [0, *(np.flatnonzero(np.diff(level)) + 1).tolist(), len(level)]
        self._groups: list[tuple[int, int, Ints]] = [
            (first, last, np.flatnonzero(np.diff(self.head[first:last], prepend=-1)))
            for first, last in pairwise(borders)
            if first < last
        ]


@final
class _Lattice:
    """The lattices of `words` with their counts; `whole=False` leaves out the piece that equals the word."""

    def __init__(self, words: Mapping[str, int], pieces: Sequence[str], *, whole: bool = True) -> None:
        known = {piece: index for index, piece in enumerate(pieces)}
        flat = array("q")
        for number, text in enumerate(words):
            for begin, stop in _spans(text):
                found = known.get(text[begin:stop])
                if found is not None and (whole or stop - begin < len(text)):
                    flat.extend((number, begin, stop, found))
        word, start, end, piece = np.array(flat, dtype=np.int64).reshape(-1, 4).T
        lengths = np.array([len(text) for text in words], dtype=np.int64)
        self._weights = np.array(list(words.values()), dtype=np.float64)
        self._first = np.cumsum(lengths + 1) - lengths - 1
        self._last = self._first + lengths
        tail, head = self._first[word] + start, self._first[word] + end
        self._forward = _Edges(tail, head, end, piece, word)
        self._backward = _Edges(head, tail, -start, piece, word)

    def restrict(self, keep: Flags) -> None:
        """Remove dropped pieces."""
        self._forward.restrict(keep)
        self._backward.restrict(keep)

    def occurrences(self, pieces: int) -> Floats:
        """Count how often each piece occurs in the text, overlaps included."""
        edges = self._forward
        return np.bincount(edges.piece, self._weights[edges.word], minlength=pieces).astype(np.float64)

    def expected_counts(self, probability: Floats) -> Floats:
        """Do the E step: count each piece over all segmentations, weighted by their probability."""
        nodes = int(self._last[-1]) + 1
        before, after = np.zeros(nodes), np.zeros(nodes)
        before[self._first], after[self._last] = 1.0, 1.0
        self._forward.sweep(before, probability, np.add)
        self._backward.sweep(after, probability, np.add)
        edges = self._forward
        scale = (self._weights / before[self._last])[edges.word]
        mass = before[edges.tail] * probability[edges.piece] * after[edges.head] * scale
        return np.bincount(edges.piece, mass, minlength=len(probability)).astype(np.float64)

    def best(self, probability: Floats) -> Floats:
        """Return the probability of each word's best segmentation; 0 if it cannot be segmented."""
        values = np.zeros(int(self._last[-1]) + 1)
        values[self._first] = 1.0
        return self._forward.sweep(values, probability, np.maximum)[self._last]
