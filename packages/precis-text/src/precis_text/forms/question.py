"""Finds the units of a document that answer a question.

units -> votes, questions and lists joined with what belongs to them -> `question_match` -> scores and asides
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from itertools import pairwise

from precis_text.asides import Asides
from precis_text.back_references import has_back_reference
from precis_text.cohesion import announces
from precis_text.exchanges import is_courtesy, short_answers
from precis_text.forms.form import ScoredText
from precis_text.forms.question_match import Match, match
from precis_text.forms.table_rows import CELLS, rows_of
from precis_text.forms.votes import as_one, with_votes
from precis_text.sentences import split_sentences
from precis_text.tables import read_table
from precis_text.units import ENDED, TextUnit, is_item, without_item_mark

LEAST = 0.4
"""Least share of a question's weight that one unit must hold. `python -m benchmarks.questions` fits it."""

_RELEVANT = 0.3  # least relevance of a unit that may be chosen, relative to the best
_RELEVANT_ROW = 0.75  # the same for a row of a table, whose neighbours have the same names of columns
_IN_TALK, _HALF = 0.5, 0.5  # relevance for the rest of a turn; least share of a row that rivals the best one
_ITEM_END = re.compile(r"[ ,;]+(?:(?:and|or|und|oder|et|ou|y|o|e)[ ,;]*)?$")
_FULL_STOP = re.compile(r"(?<=\w{4})\.;")  # of an item that is not the last
_TABLE = read_table("forms/question.toml")
_CORRECTS, _POINTS = (re.compile(_TABLE[name], re.IGNORECASE) for name in ("corrects", "points"))
_LABELLED = re.compile(r"[^\W_][^:\n]{0,39}: +\S")  # "Attendance: 1,107"
_SHORT = 3  # words of an answer that says nothing without the next sentence, or more
_LONGEST_LIST = 60  # words of a list that is one answer with the sentence that announces it


def asked_of(source: ScoredText, question: str, *, least: float = LEAST) -> ScoredText | None:
    """Return a document whose scores answer a question; None if no unit holds that share of the question's weight.

    Units without relevance become asides, which no form chooses, unless a relevant one points to them. Rows of tables
    and lines such as "Attendance: 1,107" are not asides here (see `named_rows`).
    """
    alone = [unit.text for unit in source.units]
    about = {place for place, share in enumerate(match(question, alone).shares) if share}
    source = _with_answers(with_votes(_with_lists(source, about)), about)
    rows = rows_of(source)
    read = _read_again(source, rows)
    found = match(question, _compared(source.units, alone, rows), _follows(source.document, read))
    held = {place for place, share in enumerate(found.shares) if share >= least}
    units = _stated(read, found, held)
    told = [place for place, unit in enumerate(units) if not (unit.heading or unit.aside)]
    best = max((found.relevance[place] for place in told), default=0.0)
    pairs = zip(source.units, units, found.shares, strict=True)
    kept = (share for unit, new, share in pairs if unit.heading or not (unit.aside and new.aside))
    if not best or max(kept, default=0.0) < least:
        return None
    relevance = _in_talk(units, found, held, best * _RELEVANT)
    most = max(found.shares[place] for place in told)
    rivals = [place for place in rows if found.shares[place] == most > _HALF]
    relevance = [best if [place] == rivals else each for place, each in enumerate(relevance)]
    limits = [best * (_RELEVANT_ROW if place in rows else _RELEVANT) for place in range(len(units))]
    relevant = _relevant(units, relevance, limits, _beside(read, found, {*told}, held))
    both = zip(relevance, source.scores, strict=True)
    scores = [min(1.0, each / best * (1 + score) / 2) for each, score in both]
    chosen = [
        replace(unit, answers=each == best) if place in relevant else replace(unit, aside=True)
        for place, (unit, each) in enumerate(zip(units, relevance, strict=True))
    ]
    return replace(source, units=chosen, scores=scores)


def _read_again(source: ScoredText, rows: Collection[int]) -> list[TextUnit]:
    """Return the units: rows of tables are statements, and headings are none that a text only repeats."""
    units = []
    for place, unit in enumerate(source.units):
        heads = split_sentences(source.passages.at(unit.start).heading)
        heading = place not in rows and unit.heading and unit.text == without_item_mark(unit.text)
        aside = place not in rows and (unit.aside or unit.text in heads)
        units.append(replace(unit, heading=heading, aside=aside))
    return units


def _stated(read: Sequence[TextUnit], found: Match, held: Collection[int]) -> list[TextUnit]:
    """Return the units: those that hold enough in a line with a label, or all in a title, are statements."""
    titles = (each for each in found.whole if read[each].heading and len(read[each].text.split()) > _SHORT)
    lines = {place for place in titles if not any(found.shares[place + 1 : place + 2])}
    lines |= {place for place in held if _is_labelled(read[place])}
    shown = [replace(unit, heading=False, aside=False) for unit in read]
    return [shown[place] if place in lines else unit for place, unit in enumerate(read)]


def _beside(read: Sequence[TextUnit], found: Match, told: Set[int], held: Set[int]) -> Collection[int]:
    """Return the places that may be shown: if a statement holds the whole question, those that hold enough or point."""
    if all(read[each].heading or read[each].text.endswith("?") for each in told & {*found.whole}):
        return range(len(read))
    return held | {place for place, unit in enumerate(read) if unit.speaker or _POINTS.match(unit.text)}


def _compared(units: Sequence[TextUnit], alone: Sequence[str], rows: Mapping[int, str]) -> list[str]:
    """Return the texts with the names of columns, and for what was joined (not `alone`) with the heading above."""
    texts = [rows.get(place, unit.text) for place, unit in enumerate(units)]
    for place, unit in enumerate(units):
        if unit.text != alone[place]:
            item = next((above.text for above in units[:place][::-1] if above.heading), "")
            texts[place] = f"{item} {texts[place]}"
    return texts


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
    """Check whether a unit is a line such as "Attendance: 1,107", and no link to another page."""
    is_line = not (unit.speaker or ENDED.search(unit.text)) and _LABELLED.match(unit.text) is not None
    return is_line and not Asides().has_sentence(unit.text)


def _in_talk(units: Sequence[TextUnit], found: Match, held: Collection[int], least: float) -> list[float]:
    """Return the relevance of units: a turn continues, who asks may decide, and "No, on the 29th" corrects."""
    relevance = [*found.relevance]
    for place in held:
        speaker, asks = units[place].speaker, units[place].text.endswith("?")
        for at in range(place + 2, min(place + 5, len(units)) if speaker else 0):
            turns = sum(one.speaker != two.speaker for one, two in pairwise(units[place : at + 1]))
            is_own = units[at].speaker == speaker and turns == 2 * asks and (asks or found.shares[at])
            if is_own and not (units[at].text.endswith("?") or is_courtesy(units[at])):
                relevance[at] += found.relevance[place] * _IN_TALK
    for place, unit in enumerate(units):
        before = max(found.relevance[max(place - 2, 0) : place], default=0.0)
        if before >= least and unit.speaker and _CORRECTS.match(unit.text.removeprefix(f"{unit.speaker}: ")):
            relevance[place] = max(relevance[place], before)
    return relevance


def _relevant(
    units: Sequence[TextUnit], relevance: Sequence[float], least: Sequence[float], own: Collection[int]
) -> set[int]:
    """Return the places of `own` that may be chosen, with the sentences that they point to and short answers."""
    found = {place for place in own if relevance[place] >= least[place]}
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


def _mark(unit: TextUnit) -> str:
    return "1" * (unit.numbered or unit.text[:1].isdigit()) + ")" * (")" in unit.text.partition(" ")[0])


def _with_lists(source: ScoredText, about: Collection[int]) -> ScoredText:
    """Return a document in which a sentence that announces a short list is one unit with its items."""
    units = [*source.units]
    for place in (place for place in about if announces(units[place])):
        stop, after = place + 1, min(place + 1, len(units) - 1)
        own = _mark(units[place]) if is_item(units[place]) else ""
        first = _mark(units[after])  # the same for the next clause
        while stop < len(units) and is_item(units[stop]) and _mark(units[stop]) == first != (own or None):
            stop += 1
        items = (_ITEM_END.sub("", without_item_mark(unit.text)) for unit in units[place + 1 : stop])
        text = _FULL_STOP.sub(";", f"{units[place].text} {'; '.join(items)}")
        if stop > place + 1 and len(text.split()) <= _LONGEST_LIST:
            end = units[stop - 1].stop
            units[place] = replace(units[place], text=text, stop=end, heading=False, aside=False)
            units[place + 1 : stop] = [replace(unit, aside=True) for unit in units[place + 1 : stop]]
    return replace(source, units=units)
