"""The forms made of the best units: paragraph, tldr, key points, headline and teaser."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar, final

from precis_text.abbreviations import meanings_told
from precis_text.back_references import has_back_reference
from precis_text.central_choice import content_words
from precis_text.cohesion import announces, asks, formalities, is_formal, is_part, tells_news
from precis_text.exchanges import contents, is_courtesy, leads
from precis_text.forms.form import Form, FormLine, FormType, ScoredText
from precis_text.forms.statements import Statement, statements_of
from precis_text.length import Length, Sentences, Words, holds
from precis_text.pauses import Pauses
from precis_text.selection import choose, join_units, shown_texts
from precis_text.tables import read_table
from precis_text.units import ENDED, TextUnit, is_item, without_item_mark
from precis_text.words import length_in_words, unicode_words

_TABLE = read_table("forms/closings.toml")
_CLOSINGS, _CLAUSES, _SUBJECT, _GREETS = (
    re.compile("|".join(_TABLE[name]), re.IGNORECASE) for name in ("closings", "clauses", "subject", "greets")
)
_SECOND = 0.5  # least worth of the second sentence of a tldr, relative to the first
_ENOUGH = 8  # words of a first sentence that may stand alone
_POINTS, _LONGER = 3, (400, 2000, 8000)  # points of a short document; words beyond which there are two more
_MORE, _MOST_WORDS = 1.25, 400  # steps to a longer list, and where they end
_TEASER = 50  # words of a teaser without a requested length
_OPENING = 0.35  # share of the units that a teaser may use
_FEWEST_OPENING = 2  # units of a short document that a teaser may use
_TITLE_WORDS = range(3, 25)
_NUMBER = re.compile(r"^\d{1,2}(?:\.\d{1,2})*\.? (?=[^\W\d_])")  # of a heading
_LETTER = 24  # units among which a title is looked for, and a letter's greeting
_SAID = 0.6  # least share of a title's longer words that the text repeats, or of those with content
_GOOD = 0.6  # least worth of a headline, relative to the best unit
_HEADLINE_WORDS = 5  # fewest words of a headline
_LONGEST_HEADLINE = 20  # words of a line; a turn's sentence of so many is preferred to longer ones
_CUT_HEADLINE = 15  # most words that are left of a longer one
_OFTEN = 3  # most times that a word of such a sentence counts
_TOLD = 4  # fewest content words of a message that is a headline


def chosen_lines(source: ScoredText, length: Length) -> list[FormLine]:
    """Return the units that `precis_text.selection.choose` chooses, as lines in the order of the document."""
    places = choose(source, source.scores, length, words=source.words)
    units = [source.units[place] for place in places]
    return [
        line_of(source, source.units[place], shown=shown, worth=source.scores[place])
        for place, shown in zip(places, shown_texts(units), strict=True)
    ]


def line_of(source: ScoredText, unit: TextUnit, *, shown: str, worth: float) -> FormLine:
    """Return a unit as a line."""
    time = source.passages.at(unit.start).time
    return FormLine(shown, unit.start, unit.stop, time=time, speaker=unit.speaker, worth=worth)


def running_text(lines: Sequence[FormLine], source: ScoredText) -> str:
    """Return lines as one text, with the document's line breaks."""
    wanted = {(line.start, line.stop) for line in lines}
    return join_units(source.document, [unit for unit in source.units if (unit.start, unit.stop) in wanted])


@final
@dataclass(frozen=True, kw_only=True)
class Paragraph(Form):
    """Running text of the best units, the form without a request."""

    name: ClassVar[FormType] = "paragraph"

    @property
    def is_plain(self) -> bool:
        """True without a question."""
        return not self.about

    def lines(self, source: ScoredText, length: Length) -> list[FormLine]:
        """Return the chosen units."""
        return chosen_lines(source, length)

    def render(self, lines: Sequence[FormLine], source: ScoredText) -> str:
        """Return running text."""
        return running_text(lines, source)


@final
@dataclass(frozen=True, kw_only=True)
class Tldr(Form):
    """The main point in one or two sentences."""

    name: ClassVar[FormType] = "tldr"

    def length(self, wanted: Length) -> Length:
        """Return the wanted length, or two sentences."""
        return wanted if wanted.cap else replace(wanted, cap=Sentences(count=2))

    def lines(self, source: ScoredText, length: Length) -> list[FormLine]:
        """Return the best units, a letter's news first; without the second one if it is much worse than the first."""
        lines = chosen_lines(source, length)
        if length.cap != Sentences(count=2) or length.min_words or len(lines) < 2:
            return lines
        second, best = sorted(lines, key=lambda line: (tells_news(line.shown), line.worth))[-2:]
        says = length_in_words(best.shown) >= _ENOUGH and not best.shown.endswith("?")
        is_weak = says and second.worth < _SECOND * best.worth
        refers_to_it = best.start > second.start and has_back_reference(best.shown)
        return [best] if is_weak and not refers_to_it else lines

    def render(self, lines: Sequence[FormLine], source: ScoredText) -> str:
        """Return running text."""
        return running_text(lines, source)


@final
@dataclass(frozen=True, kw_only=True)
class KeyPoints(Form):
    """A list of the best units, in the order of the document, each of them whole.

    Without a length there are at least 3 points, and 5, 7 or 9 of a long document, but at most a third of its units.
    """

    name: ClassVar[FormType] = "key-points"

    def lines(self, source: ScoredText, length: Length) -> list[FormLine]:
        """Return the chosen units; each names its speaker if it has one."""
        lines = chosen_lines(source, length)
        while length.cap is None and len(lines) < self._fewest(source) and source.words < _MOST_WORDS:
            source = replace(source, words=_MORE * source.words)
            lines = chosen_lines(source, length)
        named = [
            replace(line, shown=f"{line.speaker}: {line.shown}")
            if line.speaker and not line.shown.startswith(f"{line.speaker}:")
            else replace(line, shown=without_item_mark(line.shown))
            for line in lines
        ]

        def fits(
            points: Sequence[str],
        ) -> bool:  # only a model counts tokens, so that a cap in tokens is full
            return holds(length.cap, "\n".join(points), lambda _: sys.maxsize)

        texts = meanings_told(source.document, [line.shown for line in named], fits)
        return [replace(line, shown=text) for line, text in zip(named, texts, strict=True)]

    def _fewest(self, source: ScoredText) -> int:
        told = [unit for unit in source.units if not (unit.heading or unit.aside)]
        words = sum(length_in_words(unit.text) for unit in told)
        points = _POINTS + 2 * sum(words > longer for longer in _LONGER)
        return 0 if self.about else min(points, len(told) // 3)


@final
@dataclass(frozen=True, kw_only=True)
class Headline(Form):
    """One line: the document's title if its text says it, else the shortest of its best sentences.

    In a conversation it is the best sentence of a turn that is short enough, without what only opens it. One that is
    too long for a line ends at a clause with "…", unless a length in words is wanted.
    """

    name: ClassVar[FormType] = "headline"

    def lines(self, source: ScoredText, length: Length) -> list[FormLine]:
        """Return one line."""
        title = None if self.about else _title(source)
        if title is not None:
            numbered = [_NUMBER.match(unit.text) for unit in source.units if unit.heading]
            is_one_of = sum(map(bool, numbered)) > 1  # else it may be a date, or a name: "12. Symphony"
            text = _NUMBER.sub("", title.text) if is_one_of else title.text
            return [line_of(source, title, shown=text, worth=1.0)]
        line = min(_headlines(in_sentences(source)), key=_by_length)
        return [line if isinstance(length.cap, Words) else replace(line, shown=_in_a_line(line.shown))]

    def render(self, lines: Sequence[FormLine], source: ScoredText) -> str:
        """Return the line."""
        return "\n".join(line.shown for line in lines)


@final
@dataclass(frozen=True, kw_only=True)
class Teaser(Form):
    """The opening, which says what the document is about but not how it ends. A long turn gives its best sentence."""

    name: ClassVar[FormType] = "teaser"

    def length(self, wanted: Length) -> Length:
        """Return the wanted length, or 50 words."""
        return wanted if wanted.cap else replace(wanted, cap=Words(count=_TEASER))

    def lines(self, source: ScoredText, length: Length) -> list[FormLine]:
        """Return the best units of the first third, without conclusions."""
        told = in_sentences(replace(source, units=opening(source)))
        lines = chosen_lines(told, length)
        if not isinstance(length.cap, Words) or length_in_words(lines[0].shown) <= length.cap.count:
            return lines
        most = length.cap.count  # a longer sentence would be cut
        units = [replace(each, aside=each.aside or length_in_words(each.text) > most) for each in told.units]
        shorter = chosen_lines(replace(told, units=units), length)
        return shorter if length_in_words(shorter[0].shown) in range(_ENOUGH, most + 1) else lines

    def render(self, lines: Sequence[FormLine], source: ScoredText) -> str:
        """Return running text."""
        return running_text(lines, in_sentences(source))


def in_sentences(source: ScoredText) -> ScoredText:
    """Return a document with the best sentence of each turn in place of the turn."""
    said = groupby(statements_of(source), key=lambda statement: statement.unit)
    turns = {place: [*turn] for place, turn in said if source.units[place].speaker}
    words = Counter(word for unit in source.units for word in set(unicode_words(unit.text)))
    pauses, units = Pauses.of(source.document) if turns else None, [*source.units]
    for place, turn in turns.items():
        best = max(turn, key=lambda each: _tells(each, words))
        shown = pauses.told(best.text) if pauses else ""
        units[place] = replace(units[place], text=best.text, start=best.start, stop=best.stop, shown=shown)
    return replace(source, units=units)


def _tells(said: Statement, words: Mapping[str, int]) -> tuple[bool, bool, int]:
    """Return the worth of a sentence of a turn: needs no other one, is short enough, has frequent words."""
    count = length_in_words(said.text)
    is_weak = said.text.endswith("?") or has_back_reference(said.text) or count < _HEADLINE_WORDS
    told = sum(min(words[word], _OFTEN) for word in set(unicode_words(said.text)) if len(word) > 3)
    return not is_weak, count <= _LONGEST_HEADLINE, told


def opening(source: ScoredText) -> list[TextUnit]:
    """Return the units, with all but the opening as asides, and conclusions and greetings in it too."""
    body = [
        place
        for place, unit in enumerate(source.units)
        if not (unit.heading or unit.aside or is_courtesy(unit))
    ]
    first = body[: max(_FEWEST_OPENING, int(_OPENING * len(body)))]
    kept = {
        place
        for place in first
        if not _CLOSINGS.search(source.units[place].text)
        if not is_item(source.units[place]) or ENDED.search(source.units[place].text)
    } or {*body[:1]}
    return [unit if place in kept else replace(unit, aside=True) for place, unit in enumerate(source.units)]


def _title(source: ScoredText) -> TextUnit | None:
    """Return the title: the format's, a letter's subject, or a first line whose longer words the text mostly has."""
    begins, name = source.units[:_LETTER], source.passages.name.lower()
    text = next((place for place, unit in enumerate(begins) if _is_told(unit)), len(begins))
    for place, unit in enumerate(begins[:text]):
        subject = _SUBJECT.sub("", unit.text)
        if subject != unit.text and len(subject.split()) in _TITLE_WORDS:
            return replace(unit, text=subject)
        is_named = unit.text.lower() == name or (place == 0 and _is_over_headings(source))
        if is_named and len(unit.text.split()) in range(2, _TITLE_WORDS.stop):
            return unit
    lines = [place for place, unit in enumerate(begins[:text]) if unit.heading and not unit.aside]
    if above := _above_greeting(source, lines):
        return above[0]
    rest = {word for unit in source.units if not unit.heading for word in unicode_words(unit.text)}
    told, content = {}, content_words(source.units)
    for place in lines:
        words = {word for word in unicode_words(begins[place].text) if len(word) > 3}
        kinds = words, words & {*content[place]}
        said = [kind for kind in kinds if 0 < _SAID * len(kind) <= len(kind & rest)]
        if said and ";" not in begins[place].text and len(begins[place].text.split()) in _TITLE_WORDS:
            told[place] = words in said, len(words & rest)
    return begins[max(told, key=lambda place: told[place])] if told else None


def _is_told(unit: TextUnit) -> bool:
    """Check whether a unit is of the text: no heading, aside, line of its subject or short line of a letterhead."""
    is_line = not (ENDED.search(unit.text.rstrip(":")) or unit.speaker or is_item(unit))
    is_short = is_line and len(unit.text.split()) < _HEADLINE_WORDS
    return not (is_short or unit.heading or unit.aside or _SUBJECT.match(unit.text))


def _above_greeting(source: ScoredText, lines: Sequence[int]) -> list[TextUnit]:
    """Return the lines of the block above a German greeting, which start with the subject of a letter."""
    greeting = next((at for at, unit in enumerate(source.units[:_LETTER]) if _GREETS.match(unit.text)), 0)
    above, end = [source.units[at] for at in lines if at < greeting], source.units[greeting - 1].stop
    return [unit for unit in above if "\n\n" not in source.document[unit.start : end]]


def _is_over_headings(source: ScoredText) -> bool:
    """Check whether the first unit is a heading of the format, without sentences before the next heading."""
    first = source.passages.at(0).heading
    below = [unit for unit in source.units if source.passages.at(unit.start).heading == first]
    is_over = len(below) < len(source.units) and all(unit.heading or unit.aside for unit in below)
    return is_over and first == source.units[0].text


def _in_a_line(text: str) -> str:
    """Return a headline, or its beginning up to a clause if it is too long for a line."""
    words = text.split()
    if len(words) <= _LONGEST_HEADLINE:
        return text
    begun = " ".join(words[:_CUT_HEADLINE])
    ends = [found.start() for found in _CLAUSES.finditer(f"{begun} {words[_CUT_HEADLINE]}")]
    kept = [end for end in ends if len(begun[:end].split()) >= _HEADLINE_WORDS]
    return f"{begun[: max(kept, default=len(begun))].rstrip(' ,;:')} …"


def _by_length(line: FormLine) -> tuple[float, float]:
    """Return the order of headlines: the shortest of written ones, and the best of the spoken ones with few words."""
    count = length_in_words(line.shown)
    return (count > _LONGEST_HEADLINE, -line.worth) if line.speaker else (0, count)


def _headlines(source: ScoredText) -> list[FormLine]:
    """Return the units that may be a headline: good ones that do not refer back to others, or the best one."""
    (best,) = chosen_lines(source, Length(cap=Sentences(count=1)))[:1]
    found = [
        line_of(source, unit, shown=without_item_mark(shown_texts([unit])[0]), worth=score)
        for unit, score, told, formal in zip(
            source.units, source.scores, contents(source.units), formalities(source.units), strict=True
        )
        if score >= _GOOD * best.worth
        and (not unit.speaker or (told >= _TOLD and not unit.text.endswith("?")))
        if not (unit.heading or unit.aside or is_part(unit) or asks(unit) or leads(unit))
        if not (announces(unit) or is_formal(unit) or formal)
        if not has_back_reference(unit.text)
        if len(unit.text.split()) >= _HEADLINE_WORDS
    ]
    return found or [best]
