"""Negations of a sentence that its source sentences do not have, and those that it leaves out.

Compared are a negation's neighbours: words near it that the source has too, under a negation there or not. Words that
say no in another way ("lacks", "unable", "rather than") may stand for a negation, and so may a prefix ("unavailable").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from precis.evaluation.faithfulness.language import Language
from precis.evaluation.faithfulness.words import Word, words_of

_NEAR = 4  # words to each side of a negation that it may turn
_FAR = 7  # words to each side in which one in the source counts
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
        """Whether a word that says no is around a place."""
        return any(abs(at - place) <= reach for place in self.doubtful)


def turned(text: str, language: Language, *, start: int = 0) -> Turned:
    """A sentence that begins at `start` of its text."""
    return Turned(words_of(text, start=start), language)


def _holds(words: Sequence[str], phrase: Sequence[str]) -> bool:
    size = len(phrase)
    return any(tuple(words[at : at + size]) == tuple(phrase) for at in range(len(words) - size + 1))


def added(sentence: Turned, aligned: Sequence[Turned], everywhere: Sequence[Turned]) -> Iterator[Word]:
    """Negations of a sentence whose neighbours stand in its source sentences, but nowhere beside a word that says no."""
    known = {stem for source in aligned for stem in source.stems if stem}
    for at in sentence.negations:
        near = sentence.near(at, _NEAR)
        head = _head(sentence, at)
        wanted = {sentence.stems[place] for place in near}
        if not wanted & known or head is None:
            continue
        if sum(stem in known for stem in wanted) < 0.5 * len(wanted):
            continue
        if not any(_denies(source, sentence.stems[head], wanted) for source in everywhere):
            yield sentence.words[at]


def _denies(source: Turned, head: str, wanted: set[str]) -> bool:
    """Whether a source sentence says no near the words of a negation."""
    if not source.doubtful and not any(_is_opposite(stem, wanted) for stem in source.stems if stem):
        return False
    if any(_is_opposite(stem, wanted) for stem in source.stems if stem):
        return True
    places = [at for at, stem in enumerate(source.stems) if stem in wanted]
    turned_ones = [at for at in places if source.is_turned(at)]
    return any(source.stems[at] == head for at in turned_ones) or len(turned_ones) > 1


def _is_opposite(stem: str, wanted: set[str]) -> bool:
    return any(stem.startswith(prefix) and stem[len(prefix) :] in wanted for prefix in _PREFIXES)


def left_out(sentence: Turned, aligned: Sequence[Turned], everywhere: Sequence[Turned]) -> Iterator[Word]:
    """Words of a sentence that a negation turns in its source sentences, and nothing turns in the sentence."""
    ours = {stem: at for at, stem in enumerate(sentence.stems) if stem}
    for source in aligned:
        for at in source.negations:
            head = _head(source, at)
            if head is None or (stem := source.stems[head]) not in ours:
                continue
            place = ours[stem]
            around = {source.stems[near] for near in source.near(at, _NEAR + 2)} - {stem}
            shared = around & ours.keys()
            if len(shared) < max(1, 0.5 * len(around)) or sentence.is_turned(place):
                continue
            if not any(_affirms(other, stem, shared) for other in everywhere if other is not source):
                yield sentence.words[place]


def _affirms(source: Turned, stem: str, shared: set[str]) -> bool:
    return any(
        found == stem and not source.is_turned(at) and shared & set(source.stems)
        for at, found in enumerate(source.stems)
    )


def _head(sentence: Turned, at: int) -> int | None:
    """The content word that a negation turns: the next one, or the one before where none follows."""
    near = sentence.near(at, _NEAR)
    return next((place for place in near if place > at), near[-1] if near else None)
