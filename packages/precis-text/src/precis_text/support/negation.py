"""Negations that a sentence adds to its source sentences, and those that it drops.

The comparison covers a negation's neighbours and the whole sentence. It measures how much of them a source sentence
affirms, and how much one denies. Words that deny in another way ("lacks", "unable", "rather than") may replace a
negation, and so may a prefix ("unavailable").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from precis_text.language import Language
from precis_text.support.placed_words import Word

_NEAR = 5  # words on each side of a negation to compare
_BEHIND = 1  # most words from a word to a denial after it, in English; other languages put it later
_LEAST = 0.2  # least share of the compared words in a source sentence, weighted by rarity
_LEAST_TURNED = 0.4  # the same for a dropped negation
_SHARED = 0.5  # least share of the negation's neighbours in a sentence without it
_FAR = 3  # words on each side within which a source negation counts
_HABIT = 0.5  # weight of the share of source sentences with the word that deny it
_PREFIXES = ("un", "in", "im", "ir", "il", "non", "dis")


@dataclass(frozen=True)
class Turned:
    """A sentence and its negations."""

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
        """Indices of the words that negate something."""
        return [at for at in range(len(self.words)) if self._turns(at)]

    @cached_property
    def doubtful(self) -> list[int]:
        """Indices of the words that deny: negations and others."""
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

    def is_limited(self, at: int) -> bool:
        """Check whether the negation at an index restricts a statement ("not always") or contrasts two things."""
        words, known = self.words, self.language
        around = [word.lower for word in words[max(0, at - 2) : at + 3]]
        behind_comma = at > 0 and words[at].start - words[at - 1].end > 1
        return (behind_comma and words[at].lower in known.contrasts) or any(
            _holds(around, phrase) for phrase in known.limits
        )

    def near(self, at: int, reach: int) -> list[int]:
        """Return the indices of the content words around an index."""
        return [
            place
            for place in range(max(0, at - reach), min(len(self.words), at + reach + 1))
            if self.stems[place] and place != at
        ]

    def is_turned(self, at: int, reach: int = _FAR) -> bool:
        """Check for a denying word near an index: before it, or right after it."""
        behind = reach if self.language.code != "en" else _BEHIND
        return any(-behind <= at - place <= reach for place in self.doubtful)


def _holds(words: Sequence[str], phrase: Sequence[str]) -> bool:
    size = len(phrase)
    return any(tuple(words[at : at + size]) == tuple(phrase) for at in range(len(words) - size + 1))


@dataclass(frozen=True)
class Said:
    """The sentences of a source, which affirm or deny a statement."""

    sentences: Sequence[Turned]

    @cached_property
    def _weights(self) -> dict[str, float]:
        """Weights of stems; rare words count more."""
        found = Counter(stem for sentence in self.sentences for stem in set(sentence.stems))
        return {stem: math.log((1 + len(self.sentences)) / count) + 0.1 for stem, count in found.items()}

    def _weighed(self, stems: set[str]) -> dict[str, float]:
        """Return stems with weights that sum to 1; words absent from the source weigh as much as its rarest."""
        rarest = max(self._weights.values(), default=1.0)
        weights = {stem: self._weights.get(stem, rarest) for stem in stems}
        whole = sum(weights.values())
        return {stem: weight / whole for stem, weight in weights.items()}

    def shares(self, stems: set[str], head: str) -> tuple[float, float]:
        """Return the largest shares of these words, 0 to 1, in a sentence that affirms them and in one that denies."""
        weights = self._weighed(stems)
        affirmed = denied = 0.0
        for sentence in self.sentences:
            if stems.isdisjoint(sentence.stems):
                continue
            share = _share(weights, sentence)
            if _denies(sentence, stems, head):
                denied = max(denied, share)
            else:
                affirmed = max(affirmed, share)
        return affirmed, denied

    def affirms(self, near: set[str], whole: set[str], head: str) -> bool:
        """Check whether the source affirms a negated statement more than it denies it.

        Args:
            near: stems around the negation; `head` is the negated one.
            whole: stems of the sentence with the negation.
        """
        affirmed, denied = self.shares(near, head)
        if affirmed <= _LEAST:
            return False
        weights = self._weighed(whole)
        turned = heads = 0
        closest_affirming = closest_denying = 0.0
        for sentence in self.sentences:
            share = _share(weights, sentence)
            if sentence.doubtful:
                closest_denying = max(closest_denying, share)
            if near.isdisjoint(sentence.stems):
                continue
            denies = _denies(sentence, near, head)
            if not denies:
                closest_affirming = max(closest_affirming, share)
            if head in sentence.stems:
                heads += 1
                turned += denies
        habit = _HABIT * turned / (heads + 1)
        return affirmed + closest_affirming > denied + closest_denying + habit


def _share(weights: Mapping[str, float], sentence: Turned) -> float:
    """Return the share of weighted stems, 0 to 1, in a sentence."""
    return sum(weights[stem] for stem in weights.keys() & set(sentence.stems))


def _denies(sentence: Turned, stems: set[str], head: str) -> bool:
    """Check whether a sentence with some of these stems negates the head, or, without the head, any of them."""
    places = [at for at, stem in enumerate(sentence.stems) if stem in stems]
    heads = [at for at in places if sentence.stems[at] == head]
    return any(map(sentence.is_turned, heads or places)) or _has_opposite(sentence, stems)


def _has_opposite(sentence: Turned, stems: set[str]) -> bool:
    """Check whether a word of a sentence is one of `stems` with a negating prefix."""
    return any(
        stem.startswith(prefix) and stem[len(prefix) :] in stems
        for stem in sentence.stems
        for prefix in _PREFIXES
    )


def added(sentence: Turned, source: Said) -> Iterator[Word]:
    """Yield the negations of a sentence whose neighbours the source affirms rather than denies."""
    whole = set(sentence.stems) - {""}
    for at in sentence.negations:
        head = _head(sentence, at)
        if head is None or sentence.is_limited(at):
            continue
        near = {sentence.stems[place] for place in sentence.near(at, _NEAR)}
        if source.affirms(near, whole, sentence.stems[head]):
            yield sentence.words[at]


def left_out(sentence: Turned, aligned: Sequence[Turned], source: Said) -> Iterator[Word]:
    """Yield the words of a sentence that its aligned sentences negate and that it does not."""
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
    """Return the index of the negated content word: the next one, or the one before if none follows."""
    near = sentence.near(at, _NEAR)
    return next((place for place in near if place > at), near[-1] if near else None)
