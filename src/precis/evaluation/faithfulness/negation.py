"""Negations of a sentence that its source sentences do not have, and those that it leaves out.

Compared are a negation's neighbours: words near it that the source has too, under a negation there or not. Words that
say no in another way ("lacks", "unable", "rather than") may stand for a negation, and so may a prefix ("unavailable").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from precis.evaluation.faithfulness.language import Language
from precis.evaluation.faithfulness.words import Word

_NEAR = 5  # words to each side of a negation that are compared
_BEHIND = 1  # words behind one in the source that says no, in English; other languages put it later
_LEAST = 0.2  # share of the compared words that a source sentence has, rare ones counting more
_LEAST_TURNED = 0.4  # the same for a negation that is left out
_SHARED = 0.5  # share of its neighbours that a sentence without it has
_FAR = 3  # words to each side in which one in the source counts
_PREFIXES = ("un", "in", "im", "ir", "il", "non", "dis")


@dataclass(frozen=True)
class Turned:
    """A sentence and what turns it."""

    words: Sequence[Word]
    language: Language

    @cached_property
    def stems(self) -> list[str]:
        """The stem of each content word; "" for others."""
        known = self.language
        return [
            "" if self._is_empty(word.lower) or word.is_contracted_not else known.stem(word.lower)
            for word in self.words
        ]

    def _is_empty(self, lower: str) -> bool:
        known = self.language
        return lower in known.function or lower in known.negations or lower in known.fails

    @cached_property
    def negations(self) -> list[int]:
        """Places of the words that turn something."""
        return [at for at in range(len(self.words)) if self._turns(at)]

    @cached_property
    def doubtful(self) -> list[int]:
        """Places of words that say no, negations and others."""
        return [
            at
            for at, word in enumerate(self.words)
            if at in self.negations
            or word.lower in self.language.negative
            or word.is_contracted_not
            or word.lower in self.language.negations
        ]

    def _turns(self, at: int) -> bool:
        word, lower, known = self.words[at], self.words[at].lower, self.language
        following = [other.lower for other in self.words[at + 1 : at + 3]]
        around = [other.lower for other in self.words[max(0, at - 2) : at + 3]]
        if any(_holds(around, phrase) for phrase in known.plain):
            return False
        if lower == "no" and following and following[0].isdigit():
            return False
        if lower in known.fails:
            return following[:1] == ["to"]
        return lower in known.negations or (known.code == "en" and word.is_contracted_not)

    def near(self, at: int, reach: int) -> list[int]:
        """Places of the content words around a place."""
        return [
            place
            for place in range(max(0, at - reach), min(len(self.words), at + reach + 1))
            if self.stems[place] and place != at
        ]

    def is_turned(self, at: int, reach: int = _FAR) -> bool:
        """Whether a word that says no is near a place: before it, or right behind it."""
        behind = reach if self.language.code != "en" else _BEHIND
        return any(-behind <= at - place <= reach for place in self.doubtful)


def _holds(words: Sequence[str], phrase: Sequence[str]) -> bool:
    size = len(phrase)
    return any(tuple(words[at : at + size]) == tuple(phrase) for at in range(len(words) - size + 1))


@dataclass(frozen=True)
class Said:
    """The sentences of a source, asked whether they say something or deny it."""

    sentences: Sequence[Turned]

    @cached_property
    def _weights(self) -> dict[str, float]:
        """Rare words count more."""
        found = Counter(stem for sentence in self.sentences for stem in set(sentence.stems))
        return {stem: math.log((1 + len(self.sentences)) / count) + 0.1 for stem, count in found.items()}

    def shares(self, stems: set[str], head: str) -> tuple[float, float]:
        """How much of these words, 0 to 1, a sentence has at most that affirms them, and one that denies them."""
        known = {stem: self._weights.get(stem, max(self._weights.values(), default=1.0)) for stem in stems}
        whole = sum(known.values())
        affirmed = denied = 0.0
        for sentence in self.sentences:
            places = [at for at, stem in enumerate(sentence.stems) if stem in known]
            if not places:
                continue
            share = sum(known[stem] for stem in {sentence.stems[at] for at in places}) / whole
            heads = [at for at in places if sentence.stems[at] == head] or places
            if any(sentence.is_turned(at) for at in heads) or _has_opposite(sentence, stems):
                denied = max(denied, share)
            else:
                affirmed = max(affirmed, share)
        return affirmed, denied


def _has_opposite(sentence: Turned, stems: set[str]) -> bool:
    """Whether a word of a sentence is one of `stems` behind a prefix that turns it."""
    return any(
        stem.startswith(prefix) and stem[len(prefix) :] in stems
        for stem in sentence.stems
        for prefix in _PREFIXES
    )


def added(sentence: Turned, source: Said) -> Iterator[Word]:
    """Negations of a sentence whose neighbours the source rather affirms."""
    for at in sentence.negations:
        near = sentence.near(at, _NEAR)
        head = _head(sentence, at)
        if head is None:
            continue
        affirmed, denied = source.shares({sentence.stems[place] for place in near}, sentence.stems[head])
        if affirmed > max(denied, _LEAST):
            yield sentence.words[at]


def left_out(sentence: Turned, aligned: Sequence[Turned], source: Said) -> Iterator[Word]:
    """Words that a negation turns in the sentences that one is aligned with, and that nothing turns in it."""
    ours = {stem: at for at, stem in enumerate(sentence.stems) if stem}
    for other in aligned:
        for at in other.negations:
            head = _head(other, at)
            if head is None or (stem := other.stems[head]) not in ours:
                continue
            place = ours[stem]
            around = {other.stems[near] for near in other.near(at, _NEAR)} - {stem}
            if sentence.is_turned(place) or sum(word in ours for word in around) < _SHARED * len(around):
                continue
            near = {sentence.stems[near] for near in sentence.near(place, _NEAR)} | {stem}
            affirmed, denied = source.shares(near, stem)
            if denied > max(affirmed, _LEAST_TURNED):
                yield sentence.words[place]


def _head(sentence: Turned, at: int) -> int | None:
    """The content word that a negation turns: the next one, or the one before where none follows."""
    near = sentence.near(at, _NEAR)
    return next((place for place in near if place > at), near[-1] if near else None)
