"""Marks: names, numbers and negations of a summary that its source does not seem to have.

Marks are hints for a reader. Where there is none, a summary may still be wrong: nothing here understands a sentence.
A sentence that stands in the source word for word has none.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from precis.data.text.units import TextUnit, extraction_units
from precis.data.text.words import unicode_words
from precis.evaluation.faithfulness.companions import NameCompanions, NumberCompanions
from precis.evaluation.faithfulness.language import Language, has_case, language_of, languages, script_of
from precis.evaluation.faithfulness.names import Names, name_runs, opens_sentence
from precis.evaluation.faithfulness.negation import Said, Turned, added, left_out
from precis.evaluation.faithfulness.numbers import (
    Number,
    agrees,
    month_of,
    months_in_dates,
    numbers_of,
)
from precis.evaluation.faithfulness.words import Word, words_of

MarkKind = Literal["name", "number", "negation"]
KINDS: tuple[MarkKind, ...] = ("name", "number", "negation")
HINT = "marks are hints: a sentence without one may be wrong, and one with one may be right"

_MOST = 3  # source sentences that a sentence is aligned with
_GAIN = 0.1  # share of a sentence's weight that a further one adds at least
_NGRAMS = (1, 2, 3)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """Characters `start` to `end` of a summary that its source does not seem to support, and why."""

    start: int
    end: int
    kind: MarkKind
    text: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence of the source: characters `start` to `end`, its text in one line, its first line, from 1."""

    start: int
    end: int
    text: str
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SentenceSupport:
    """What the source has for one sentence of a summary.

    Attributes:
        start, end: its characters in the summary.
        text: the sentence in one line.
        aligned: up to three source sentences, the closest first.
        copied: it stands in the source word for word.
        ngrams: share, 0 to 1, of its words, pairs and triples of words that the source has; None where it has none.
    """

    start: int
    end: int
    text: str
    aligned: tuple[Passage, ...]
    copied: bool
    ngrams: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Support:
    """The sentences of a summary with their source sentences, and the marks.

    Attributes:
        language: of the summary, as `language_of` tells it.
        unchecked: kinds of marks that this language or script does not allow, with the reason.
    """

    sentences: tuple[SentenceSupport, ...]
    marks: tuple[Mark, ...]
    language: str | None
    unchecked: dict[str, str]

    def count(self, kind: MarkKind) -> int:
        """Marks of a kind."""
        return sum(mark.kind == kind for mark in self.marks)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "sentences": [
                {**asdict(sentence), "ngrams": [None if n is None else round(n, 4) for n in sentence.ngrams]}
                for sentence in self.sentences
            ],
            "marks": [mark.to_dict() for mark in self.marks],
            "language": self.language,
            "unchecked": self.unchecked,
        }


def marks(source: str, summary: str) -> list[Mark]:
    """The marks of a summary, in its order.

    Example:
        >>> [mark.text for mark in marks("Ann sold 3 boats to Bob.", "The boats went to Carl: 5 of them.")]
        ['Carl', '5']
    """
    return list(SourceText(source).support(summary).marks)


class SourceText:
    """A source, prepared for being compared with summaries.

    Args:
        text: as the model read it; places of source sentences count its characters.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.units = extraction_units(text)
        self.language = language_of(text)
        self.words = words_of(text)
        self._facts: dict[str | None, _Facts] = {}

    def support(self, summary: str) -> Support:
        """What the source has for each sentence of a summary."""
        code = language_of(summary) or self.language
        language = languages().get(code or "")
        facts = self._facts.setdefault(None if language is None else language.code, _Facts(self, language))
        checks = _Checks(self.names, facts, summary)
        sentences: list[SentenceSupport] = []
        found: list[Mark] = []
        for unit in extraction_units(summary):
            aligned = self._aligned(unit.text)
            copied = self._has_whole(unit.text)
            sentences.append(
                SentenceSupport(
                    start=unit.start,
                    end=unit.stop,
                    text=unit.text,
                    aligned=tuple(
                        Passage(found.start, found.stop, found.text, self._line(found.start))
                        for found in map(self.units.__getitem__, aligned)
                    ),
                    copied=copied,
                    ngrams=tuple(self._share(unicode_words(unit.text), n) for n in _NGRAMS),
                )
            )
            if not copied:
                found += checks.marks(unit, aligned)
        return Support(
            sentences=tuple(sentences),
            marks=tuple(sorted(found, key=lambda mark: (mark.start, mark.kind))),
            language=code,
            unchecked=_unchecked(summary, language),
        )

    def _line(self, start: int) -> int:
        return self.text.count("\n", 0, start) + 1

    @cached_property
    def names(self) -> Names:
        """The words that names are compared with."""
        return Names(text=self.text, words=self.words, script=script_of(self.text))

    def _has_whole(self, sentence: str) -> bool:
        """Whether a sentence is one of the source, several of them, or the beginning of one."""
        rest = sentence
        while rest:
            if any(unit.text.startswith(rest) for unit in self.units):
                return True
            begins = [unit.text for unit in self.units if rest.startswith(unit.text)]
            if not begins:
                return False
            rest = rest[len(max(begins, key=len)) :].lstrip()
        return True

    @cached_property
    def _ngrams(self) -> dict[int, frozenset[tuple[str, ...]]]:
        words = unicode_words(self.text)
        return {n: frozenset(zip(*(words[k:] for k in range(n)), strict=False)) for n in _NGRAMS}

    def _share(self, words: Sequence[str], n: int) -> float | None:
        grams = list(zip(*(words[k:] for k in range(n)), strict=False))
        return sum(gram in self._ngrams[n] for gram in grams) / len(grams) if grams else None

    @cached_property
    def _index(self) -> dict[str, set[int]]:
        """Words of the source with the places of the sentences that have them."""
        found: dict[str, set[int]] = defaultdict(set)
        for at, unit in enumerate(self.units):
            for word in self._content(unit.text):
                found[word].add(at)
        return found

    def _content(self, text: str) -> list[str]:
        """The stems by which sentences are aligned."""
        language = languages().get(self.language or "")
        words = unicode_words(text)
        if language is None:
            return words
        kept = [language.stem(word) for word in words if word not in language.function]
        return kept or words

    def _aligned(self, sentence: str) -> list[int]:
        """The source sentences that together hold most of a sentence's words, rare words counting more."""
        total = len(self.units)
        weights = {
            word: math.log((1 + total) / len(self._index[word])) + 0.1
            for word in dict.fromkeys(self._content(sentence))
            if word in self._index
        }
        whole, left = sum(weights.values()), dict(weights)
        chosen: list[int] = []
        while left and len(chosen) < _MOST:
            gains: dict[int, float] = defaultdict(float)
            for word, weight in left.items():
                for at in self._index[word]:
                    gains[at] += weight
            best = min(gains, key=lambda at: (-gains[at], at))
            if gains[best] < _GAIN * whole:
                break
            chosen.append(best)
            left = {word: weight for word, weight in left.items() if best not in self._index[word]}
        return chosen


@dataclass
class _Facts:
    """What a source says, read with the words of one language."""

    source: SourceText
    language: Language | None

    @cached_property
    def numbers(self) -> list[Number]:
        """The numbers, spelled ones as the language has them."""
        return numbers_of(self.source.text, self.language, words=self.source.words)

    @cached_property
    def number_companions(self) -> NumberCompanions:
        """What stands beside its numbers."""
        return NumberCompanions(self.source.text, self.source.words, self.numbers, self.language)

    @cached_property
    def name_companions(self) -> NameCompanions:
        """Which names stand together in it."""
        return NameCompanions(self.source.text, self.source.words, self.language)

    @cached_property
    def months(self) -> set[int]:
        """Months that it names or that may be in its dates."""
        known, words = self.language, self.source.words
        named = {} if known is None else {month for word in words if (month := month_of(word, known))}
        return months_in_dates(self.source.text).union(named)

    @cached_property
    def said(self) -> Said:
        """Its sentences with their negations."""
        assert self.language is not None
        return Said([Turned(words_of(unit.text), self.language) for unit in self.source.units])


@dataclass(frozen=True)
class _Checks:
    """What is looked for in the sentences of one summary."""

    names: Names
    facts: _Facts
    summary: str

    def marks(self, unit: TextUnit, aligned: Sequence[int]) -> Iterator[Mark]:
        """The marks of one sentence."""
        text = self.summary[unit.start : unit.stop]
        words = words_of(text)
        taken: set[int] = set()
        months = months_in_dates(text) & self.facts.months
        for number in numbers_of(text, self.language, words=words):
            taken |= {word.start for word in words if number.start <= word.start < number.end}
            reason = None if number.idle or number.values & months else self._doubt(number, text, words)
            if reason is not None:
                yield self._mark(unit, number, "number", reason)
        yield from self._names(unit, [word for word in words if word.start not in taken])
        if self.language is not None:
            yield from self._negations(unit, words, aligned)

    @property
    def language(self) -> Language | None:
        """The language whose words are used."""
        return self.facts.language

    def _doubt(self, number: Number, text: str, words: Sequence[Word]) -> str | None:
        """Why the source does not support a number of a sentence; None if it does."""
        if not agrees(number, self.facts.numbers, rounded=self._is_rounded(words, number.start)):
            return "the source has no such number"
        if self.facts.number_companions.contradict(number, text, words):
            return "the source has other numbers beside these words"
        return None

    def _is_rounded(self, words: Sequence[Word], start: int) -> bool:
        before = [word.lower for word in words if word.end <= start][-3:]
        return self.language is not None and any(word in self.language.rounded for word in before)

    def _names(self, unit: TextUnit, words: Sequence[Word]) -> Iterator[Mark]:
        if not has_case(self.summary) or not any(letter.isupper() for letter in self.summary):
            return
        text = self.summary[unit.start : unit.stop]
        inside = [word for word in words if not opens_sentence(text, word)]
        dates = set()
        for word in inside:
            if self.language is not None and (month := month_of(word, self.language)):
                dates.add(word)
                if month not in self.facts.months:
                    yield self._mark(unit, word, "number", "the source has no such date")
        together = self.facts.name_companions
        for run in name_runs(text, words, self.language):
            if self.names.has_acronym_of(run):
                continue
            for word in run:
                if word in inside and word not in dates and not self.names.has(word):
                    yield self._mark(unit, word, "name", "the source has no such name")
            for one, two in together.contradicted([word for word in run if word not in dates]):
                if one in inside and text[one.end : two.start] == " ":
                    yield self._mark(
                        unit, one, "name", "the source has these names, not together", end_word=two
                    )

    def _negations(self, unit: TextUnit, words: Sequence[Word], aligned: Sequence[int]) -> Iterator[Mark]:
        assert self.language is not None
        said, sentence = self.facts.said, Turned(words, self.language)
        for word in added(sentence, said):
            yield self._mark(unit, word, "negation", "the source says it without a negation")
        for word in dict.fromkeys(left_out(sentence, [said.sentences[at] for at in aligned], said)):
            yield self._mark(unit, word, "negation", "the source says it with a negation")

    def _mark(
        self,
        unit: TextUnit,
        found: Word | Number,
        kind: MarkKind,
        reason: str,
        *,
        end_word: Word | None = None,
    ) -> Mark:
        """A mark on a word, or on all from it to the end of another one."""
        start, end = unit.start + found.start, unit.start + (end_word or found).end
        return Mark(start=start, end=end, kind=kind, text=self.summary[start:end], reason=reason)


def _unchecked(summary: str, language: Language | None) -> dict[str, str]:
    """Kinds of marks that cannot be made, with the reason."""
    found = {}
    if not has_case(summary):
        found["name"] = "this script has no capitals"
    elif not any(letter.isupper() for letter in summary):
        found["name"] = "the summary has no capitals"
    elif language is not None and language.capitalizes_nouns:
        found["name"] = "German nouns have capitals: a name of one word is not told from them"
    if language is None:
        found["negation"] = "there are no words of negation for this language"
    return found
