"""Finds the units of a document that answer a question.

units -> votes, questions and lists joined with what belongs to them -> `question_match` -> scores and asides
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from precis_text.back_references import has_back_reference
from precis_text.cohesion import announces
from precis_text.exchanges import short_answers
from precis_text.forms.form import ScoredText
from precis_text.forms.question_match import match
from precis_text.forms.table_rows import CELLS, rows_of
from precis_text.forms.votes import as_one, with_votes
from precis_text.sentences import split_sentences
from precis_text.tables import read_table
from precis_text.units import ENDED, TextUnit, is_item, without_item_mark

LEAST = 0.4
"""Least share of a question's weight that one unit must hold. `python -m benchmarks.questions` fits it."""

_RELEVANT = 0.3  # least relevance of a unit that may be chosen, relative to the best
_RELEVANT_ROW = 0.75  # the same for a row of a table, whose neighbours have the same names of columns
_CORRECTS = re.compile(read_table("forms/question.toml")["corrects"], re.IGNORECASE)
_LABELLED = re.compile(r"[^\W_][^:\n]{0,39}: +\S")  # "Attendance: 1,107"
_SHORT = 3  # words of an answer that says nothing without the next sentence, or more
_LONGEST_LIST = 60  # words of a list that is one answer with the sentence that announces it


@dataclass(frozen=True)
class _Read:
    """A document as its units are compared with a question.

    Attributes:
        texts: the text of each unit, with the names of columns, and for votes with their item of the agenda.
        rows: the places of the rows of tables.
        follows: see `match`.
    """

    units: Sequence[TextUnit]
    texts: Sequence[str]
    rows: Collection[int]
    follows: Sequence[int | None]


def asked_of(source: ScoredText, question: str, *, least: float = LEAST) -> ScoredText | None:
    """Return a document whose scores answer a question; None if no unit holds that share of the question's weight.

    Units without relevance become asides, which no form chooses, unless a relevant one points to them. Rows of tables
    and lines such as "Attendance: 1,107" are not asides here (see `named_rows`).
    """
    alone = [unit.text for unit in source.units]
    about = {place for place, share in enumerate(match(question, alone).shares) if share}
    source = _with_answers(with_votes(_with_lists(source, about)), about)
    read = _read(source, alone)
    found = match(question, read.texts, read.follows)
    units = [
        replace(unit, heading=False, aside=False)
        if unit.aside and share >= least and _is_labelled(unit)
        else unit
        for unit, share in zip(read.units, found.shares, strict=True)
    ]
    told = [place for place, unit in enumerate(units) if not (unit.heading or unit.aside)]
    best = max((found.relevance[place] for place in told), default=0.0)
    kept = [
        before.heading or not (before.aside and unit.aside)
        for before, unit in zip(source.units, units, strict=True)
    ]
    held = max((share for share, is_kept in zip(found.shares, kept, strict=True) if is_kept), default=0.0)
    if held < least or not best:
        return None
    relevance = _with_corrections(units, found.relevance, best * _RELEVANT)
    relevant = _relevant(units, relevance, best, read.rows)
    scores = [
        min(1.0, each / best * (1 + score) / 2) for each, score in zip(relevance, source.scores, strict=True)
    ]
    chosen = [
        replace(unit, answers=each == best) if place in relevant else replace(unit, aside=True)
        for place, (unit, each) in enumerate(zip(units, relevance, strict=True))
    ]
    return replace(source, units=chosen, scores=scores)


def _read(source: ScoredText, alone: Sequence[str]) -> _Read:
    """Read a document again: rows are statements, and headings are none that a text only repeats.

    Args:
        alone: the texts of the units before votes, questions and lists were joined.
    """
    rows = rows_of(source)
    units = []
    for place, unit in enumerate(source.units):
        heads = split_sentences(source.passages.at(unit.start).heading)
        heading = unit.heading and unit.text == without_item_mark(unit.text)
        aside = unit.aside or unit.text in heads
        is_row = place in rows
        units.append(replace(unit, heading=heading and not is_row, aside=aside and not is_row))
    texts = [rows.get(place, unit.text) for place, unit in enumerate(units)]
    for place in (place for place, unit in enumerate(units) if unit.text != alone[place]):  # votes
        item = next((unit.text for unit in source.units[:place][::-1] if unit.heading), "")  # of the agenda
        texts[place] = f"{item} {texts[place]}"
    return _Read(units, texts, rows, _follows(source.document, units))


def _follows(document: str, units: Sequence[TextUnit]) -> list[int | None]:
    """Return the place of the unit that each unit follows: in its paragraph or talk, or what its list is about."""
    found: list[int | None] = []
    for place, unit in enumerate(units):
        before = units[place - 1] if place else None
        is_line = before is not None and (_is_labelled(unit) or _is_labelled(before))
        if before is None or is_line or CELLS in unit.text or CELLS in before.text:
            found.append(None)
        elif (
            before.heading or announces(before) or unit.speaker or before.speaker or before.text.endswith("?")
        ):
            found.append(place - 1)
        elif is_item(unit):
            found.append(found[-1] if is_item(before) else None)
        elif place > 1 and units[place - 2].text.endswith("?") and _shares_line(document, before, unit):
            found.append(place - 2)
        else:
            found.append(place - 1 if document.count("\n", before.stop, unit.start) < 2 else None)
    return found


def _is_labelled(unit: TextUnit) -> bool:
    return not (unit.speaker or ENDED.search(unit.text)) and _LABELLED.match(unit.text) is not None


def _with_corrections(units: Sequence[TextUnit], relevance: Sequence[float], least: float) -> list[float]:
    """Return the relevance of units: "No, on the 29th" is about the question of two turns before."""
    found = [*relevance]
    for place, unit in enumerate(units):
        before = max(relevance[max(place - 2, 0) : place], default=0.0)
        said = unit.text.removeprefix(f"{unit.speaker}: ") if unit.speaker else ""
        if before >= least and _CORRECTS.match(said):
            found[place] = max(found[place], before)
    return found


def _relevant(
    units: Sequence[TextUnit], relevance: Sequence[float], best: float, rows: Collection[int]
) -> set[int]:
    """Return the places of units that may be chosen, with the sentences that they point to and short answers."""
    least = [best * (_RELEVANT_ROW if place in rows else _RELEVANT) for place in range(len(units))]
    found = {place for place, each in enumerate(relevance) if each >= least[place]}
    found |= {place - 1 for place in found if has_back_reference(units[place].text)}
    return found | {answer for place, answer in short_answers(units).items() if place in found}


def _with_answers(source: ScoredText, about: Collection[int]) -> ScoredText:
    """Return a document in which each written question that is `about` it is one unit with the two sentences after it.

    Below a question on a line of its own, a short answer and the sentence after it are one: "No. Dogs stay outside."
    """
    units, groups = source.units, list[list[int]]()
    asked = {place for place, unit in enumerate(units) if unit.text.endswith("?")}
    for place in sorted(asked.intersection(about)):
        near = [at for at in range(place + 1, min(place + 3, len(units))) if at not in asked]
        if near and _shares_line(source.document, units[place], units[near[0]]):
            groups.append(
                [place, *(at for at in near if _shares_line(source.document, units[place], units[at]))]
            )
        elif near and len(units[near[0]].text.split()) < _SHORT:
            groups.append([at for at in near if _shares_line(source.document, units[near[0]], units[at])])
    return as_one(source, groups)


def _shares_line(document: str, one: TextUnit, other: TextUnit) -> bool:
    return "\n" not in document[one.stop : other.start]


def _with_lists(source: ScoredText, about: Collection[int]) -> ScoredText:
    """Return a document in which a sentence that announces a short list is one unit with its items."""
    units = [*source.units]
    for place in about:
        stop = place + 1
        while stop < len(units) and is_item(units[stop]):
            stop += 1
        listed = [
            units[place].text,
            "; ".join(without_item_mark(unit.text).rstrip(" ,;") for unit in units[place + 1 : stop]),
        ]
        text = " ".join(listed)
        if stop > place + 1 and announces(units[place]) and len(text.split()) <= _LONGEST_LIST:
            units[place] = replace(
                units[place], text=text, stop=units[stop - 1].stop, heading=False, aside=False
            )
            units[place + 1 : stop] = [replace(unit, aside=True) for unit in units[place + 1 : stop]]
    return replace(source, units=units)
