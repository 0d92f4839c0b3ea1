"""Marks: names, numbers and negations of a summary that its source does not seem to support.

Marks are hints for a reader. A summary without any may still be wrong, since nothing here understands a sentence. A
sentence copied verbatim from the source gets none.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal

from precis_text.abbreviations import definitions, meanings_in, without_meanings
from precis_text.language import Language, has_case, language_of, languages, script_of
from precis_text.sentences import split_sentences
from precis_text.support.closeness import closeness, is_torn
from precis_text.support.context_words import NameContext, NumberContext
from precis_text.support.names import Names, name_runs, opens_sentence
from precis_text.support.negation import Said, Turned, added, left_out
from precis_text.support.numbers import Number, agrees, month_of, months_in_dates, numbers_of
from precis_text.support.placed_words import Word, words_of
from precis_text.units import TextUnit, as_shown, extraction_units, named_text, without_item_mark
from precis_text.words import unicode_words

MarkKind = Literal["name", "number", "negation"]
KINDS: tuple[MarkKind, ...] = ("name", "number", "negation")
HINT = "marks are hints: a sentence without a mark may be wrong, and one with a mark may be right"

_MOST = 3  # most source sentences to align with a sentence
_GAIN = 0.1  # least share of a sentence's weight that each further one adds
_NGRAMS = (1, 2, 3)
_PARTICLE = 2  # letters of a word that tells nothing by itself
_OPENS = re.compile(
    r"(?:^|[,;:]|\b(?:and|but|while|that|because|und|aber|dass|weil|et|mais|que|y|pero|и|но|что))\s*$"
)
_JOINS = re.compile(r"[,\s]*\w{0,3}\s*")  # between the names of two speakers: "Ann and Bob"
_WORD_GOES_ON = re.compile(r"\w|[.,]\d|['’-]\w")
_FIRST = re.compile(r"(?<!\w)(?:I|[Mm]y|[Ii]ch|[Mm]eine?|[Jj]e|[Yy]o|[Яя])(?!\w)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """Characters `start` to `end` of a summary that its source does not seem to support, and the reason."""

    start: int
    end: int
    kind: MarkKind
    text: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary."""
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
    """The support of the source for one sentence of a summary.

    Attributes:
        start, end: its characters in the summary.
        text: the sentence in one line.
        aligned: up to three source sentences, the closest first.
        copied: whether it appears verbatim in the source, but for what abbreviations mean, in square brackets.
        ngrams: share, 0 to 1, of its words, word pairs and triples that are in the source; None if it has none.
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
        language: language of the summary, from `language_of`.
        unchecked: kinds of marks that this language or script does not allow, with the reason.
    """

    sentences: tuple[SentenceSupport, ...]
    marks: tuple[Mark, ...]
    language: str | None
    unchecked: dict[str, str]

    def count(self, kind: MarkKind) -> int:
        """Count the marks of a kind."""
        return sum(mark.kind == kind for mark in self.marks)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary."""
        shares = [
            [None if n is None else round(n, 4) for n in sentence.ngrams] for sentence in self.sentences
        ]
        sentences = [
            {**asdict(each), "ngrams": ngrams} for each, ngrams in zip(self.sentences, shares, strict=True)
        ]
        marks = [mark.to_dict() for mark in self.marks]
        return {
            "sentences": sentences, "marks": marks, "language": self.language, "unchecked": self.unchecked,
        }  # fmt: skip


def marks(source: str, summary: str) -> list[Mark]:
    """Return the marks of a summary, in its order.

    Example:
        >>> [mark.text for mark in marks("Ann sold 3 boats to Bob.", "The boats went to Carl: 5 of them.")]
        ['Carl', '5']
    """
    return list(SourceText(source).support(summary).marks)


class SourceText:
    """A source, prepared for comparison with summaries.

    Args:
        text: as the model read it; positions of source sentences count its characters.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.units = extraction_units(text)
        self.language = language_of(text)
        self.words = words_of(text)
        self._facts: dict[str | None, _Facts] = {}

    def support(self, summary: str) -> Support:
        """Return the support of the source for each sentence of a summary."""
        code = language_of(summary) or self.language
        language = languages().get(code or "")
        facts = self._facts.setdefault(None if language is None else language.code, _Facts(self, language))
        checks = _Checks(self.names, facts, summary)
        sentences: list[SentenceSupport] = []
        found: list[Mark] = []
        for unit in extraction_units(summary):
            quoted = without_meanings(unit.text, self._definitions) if meanings_in(unit.text) else unit.text
            aligned, copied = self._aligned(quoted), self._has_whole(quoted) or self._has_whole(unit.text)
            sentences.append(
                SentenceSupport(
                    start=unit.start, end=unit.stop, text=unit.text, copied=copied,
                    aligned=tuple(map(self._passage, aligned)),
                    ngrams=tuple(self._share(unicode_words(unit.text), n) for n in _NGRAMS),
                )
            )  # fmt: skip
            if not copied:
                found += checks.marks(unit, aligned)
        return Support(
            sentences=tuple(sentences), marks=tuple(sorted(found, key=lambda mark: (mark.start, mark.kind))),
            language=code, unchecked=_unchecked(summary, language),
        )  # fmt: skip

    def content_share(self, sentence: SentenceSupport) -> float:
        """Return the share, 0 to 1, of a sentence's content words that its source sentences have.

        Content words are distinct stems without function words, or all words in a language without lists. A sentence
        without words has the share 1.
        """
        words = set(self._content(sentence.text))
        found = {word for passage in sentence.aligned for word in self._content(passage.text)}
        return len(words & found) / len(words) if words else 1.0

    def closeness(self, sentence: SentenceSupport) -> float:
        """Return how close a sentence is to its closest source sentence, -1 to 1 (`support.closeness`).

        Words of two letters ("we've") do not count.
        """
        near = sentence.aligned[0].text if sentence.aligned else ""
        words = [word for word in self._content(sentence.text) if len(word) > _PARTICLE]
        return closeness(sentence.text, near, words, self._content(near))

    def is_torn(self, sentence: SentenceSupport) -> bool:
        """Return whether a sentence is a part of its closest source sentence (`support.closeness`)."""
        near = sentence.aligned[0].text if sentence.aligned else ""
        language = languages().get(self.language or "")
        return is_torn(sentence.text, near, language.function if language else ())

    def said_by_other(self, sentence: str) -> str:
        """Return the speaker whose words a sentence gives to another one, or to an "I" without a name; "" if none.

        A clause starts with speakers. Its words are those of the unit that has most of them, half or more. The unit is
        theirs if they say it, it names them, or they answer it.
        """
        if self._speakers is None:
            return ""
        opened = [
            name for name in self._speakers.finditer(sentence) if _OPENS.search(sentence[: name.start()])
        ]
        names, clauses = [], [] if opened or not _FIRST.search(sentence) else [(list[str](), sentence)]
        for name, end in zip(opened, [*(after.start() for after in opened[1:]), len(sentence)], strict=False):
            names.append(name[0].lower().removeprefix("the "))
            if not _JOINS.fullmatch(sentence[name.end() : end]):
                clauses.append((names, sentence[name.end() : end]))
                names = []
        for names, clause in clauses:
            words = set(self._content(clause))
            counts = Counter(at for word in words for at in self._index.get(word, ()))
            most = max(counts.values(), default=0)
            best = [at for at, count in counts.items() if count == most >= len(words) / 2]
            if best and not any(self._is_of(at, names) for at in best):
                return self.units[best[0]].speaker
        return ""

    def _is_of(self, at: int, names: Sequence[str]) -> bool:
        unit, after = self.units[at], self.units[at + 1 : at + 2]
        answers = after[0].speaker.lower() if after and unit.text.endswith("?") else ""
        return not unit.speaker or any(name in f"{named_text(unit)} {answers}".lower() for name in names)

    @cached_property
    def _speakers(self) -> re.Pattern[str] | None:
        """The names of speakers and their parts, "the doctor" included; None if fewer than two speak."""
        speakers = {unit.speaker for unit in self.units} - {""}
        parts = {part for name in speakers for part in name.split() if part.isalpha() and part[0].isupper()}
        names = "|".join(map(re.escape, sorted(speakers | parts, key=len, reverse=True)))
        return re.compile(rf"(?<!\w)(?:[Tt]he (?i:{names})|{names})(?!\w)") if len(speakers) > 1 else None

    def _passage(self, at: int) -> Passage:
        unit = self.units[at]
        return Passage(unit.start, unit.stop, unit.text, self.text.count("\n", 0, unit.start) + 1)

    @cached_property
    def names(self) -> Names:
        """The words to compare names with."""
        return Names(text=self.text, words=self.words, script=script_of(self.text))

    def _has_whole(self, sentence: str) -> bool:
        """Check whether a sentence is one or several sentences of the source, or the start of one."""
        rest = sentence
        while rest:
            if any(_begins(text, rest) for text in self._quotable):
                return True
            begins = [text for text in self._quotable if _begins(rest, text)]
            if not begins:
                return False
            rest = rest[len(max(begins, key=len)) :].lstrip()
        return True

    @cached_property
    def _definitions(self) -> Mapping[str, str]:
        return definitions(self.text)

    @cached_property
    def _quotable(self) -> list[str]:
        """The texts of the units, also as a summary shows them: with the speaker, without opening or list mark.

        The sentences of a turn are among them.
        """
        forms = (lambda unit: unit.text, named_text, lambda unit: without_item_mark(unit.text))
        units = [*self.units, *(replace(unit, text=as_shown(unit)) for unit in self.units if unit.shown)]
        turns = [unit for unit in self.units if unit.speaker]
        units += [replace(unit, text=each) for unit in turns for each in split_sentences(unit.text)]
        return [*dict.fromkeys(form(unit) for unit in units for form in forms)]

    @cached_property
    def _ngrams(self) -> dict[int, frozenset[tuple[str, ...]]]:
        words = unicode_words(self.text)
        return {n: frozenset(zip(*(words[k:] for k in range(n)), strict=False)) for n in _NGRAMS}

    def _share(self, words: Sequence[str], n: int) -> float | None:
        grams = list(zip(*(words[k:] for k in range(n)), strict=False))
        return sum(gram in self._ngrams[n] for gram in grams) / len(grams) if grams else None

    @cached_property
    def _index(self) -> dict[str, set[int]]:
        """Words of the source with the indices of their sentences."""
        found: dict[str, set[int]] = defaultdict(set)
        for at, unit in enumerate(self.units):
            for word in self._content(unit.text):
                found[word].add(at)
        return found

    def _content(self, text: str) -> list[str]:
        """Return the stems that align sentences."""
        language = languages().get(self.language or "")
        words = unicode_words(text)
        if language is None:
            return words
        kept = [language.stem(word) for word in words if word not in language.function]
        return kept or words

    def _aligned(self, sentence: str) -> list[int]:
        """Choose the source sentences that together contain most of a sentence's words, weighted by rarity."""
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
    """The facts of a source, read with the words of one language."""

    source: SourceText
    language: Language | None

    @cached_property
    def numbers(self) -> list[Number]:
        """The numbers, including spelled ones in the language."""
        return numbers_of(self.source.text, self.language, words=self.source.words)

    @cached_property
    def number_context(self) -> NumberContext:
        """The context words of the numbers."""
        return NumberContext(self.source.text, self.source.words, self.numbers, self.language)

    @cached_property
    def name_context(self) -> NameContext:
        """The names that are next to each other."""
        return NameContext(self.source.text, self.source.words, self.language)

    @cached_property
    def months(self) -> set[int]:
        """Months that it names or that its dates may contain."""
        known, words = self.language, self.source.words
        named = {} if known is None else {month for word in words if (month := month_of(word, known))}
        return months_in_dates(self.source.text).union(named)

    @cached_property
    def said(self) -> Said:
        """The sentences with their negations."""
        assert self.language is not None
        return Said([Turned(words_of(unit.text), self.language) for unit in self.source.units])


@dataclass(frozen=True)
class _Checks:
    """The checks of the sentences of one summary."""

    names: Names
    facts: _Facts
    summary: str

    def marks(self, unit: TextUnit, aligned: Sequence[int]) -> Iterator[Mark]:
        """Yield the marks of one sentence."""
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
        """The language of the word lists."""
        return self.facts.language

    def _doubt(self, number: Number, text: str, words: Sequence[Word]) -> str | None:
        """Return why the source does not support a number of a sentence, or None if it does."""
        if not agrees(number, self.facts.numbers, rounded=self._is_rounded(words, number.start)):
            return "not a number in the source"
        if self.facts.number_context.contradict(number, text, words):
            return "the source has other numbers with these words"
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
                    yield self._mark(unit, word, "number", "not a date in the source")
        together = self.facts.name_context
        for run in name_runs(text, words, self.language):
            if self.names.has_acronym_of(run):
                continue
            for word in run:
                if word in inside and word not in dates and not self.names.has(word):
                    yield self._mark(unit, word, "name", "not a name in the source")
            for one, two in together.contradicted([word for word in run if word not in dates]):
                if one in inside and text[one.end : two.start] == " ":
                    yield self._mark(
                        unit, one, "name", "the source has these names, but not together", end_word=two
                    )

    def _negations(self, unit: TextUnit, words: Sequence[Word], aligned: Sequence[int]) -> Iterator[Mark]:
        assert self.language is not None
        said, sentence = self.facts.said, Turned(words, self.language)
        for word in added(sentence, said):
            yield self._mark(unit, word, "negation", "the source states this without a negation")
        for word in dict.fromkeys(left_out(sentence, [said.sentences[at] for at in aligned], said)):
            yield self._mark(unit, word, "negation", "the source states this with a negation")

    def _mark(
        self,
        unit: TextUnit,
        found: Word | Number,
        kind: MarkKind,
        reason: str,
        *,
        end_word: Word | None = None,
    ) -> Mark:
        """Mark a word, or everything from it to the end of another one."""
        start, end = unit.start + found.start, unit.start + (end_word or found).end
        return Mark(start=start, end=end, kind=kind, text=self.summary[start:end], reason=reason)


def _begins(text: str, part: str) -> bool:
    """Check whether a text has whole words of a part at its start: "15" does not begin "150"."""
    return text.startswith(part) and not (part[-1:].isalnum() and _WORD_GOES_ON.match(text, len(part)))


def _unchecked(summary: str, language: Language | None) -> dict[str, str]:
    """Return the kinds of marks that cannot be made, with the reason."""
    found = {}
    if not has_case(summary):
        found["name"] = "this script does not have capitals"
    elif not any(letter.isupper() for letter in summary):
        found["name"] = "the summary contains no capitals"
    elif language is not None and language.capitalizes_nouns:
        found["name"] = "German nouns have capitals: one-word names look the same"
    if language is None:
        found["negation"] = "precis lacks a list of negations for this language"
    return found
