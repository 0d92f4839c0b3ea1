"""Finds the units of a document that answer a question: those with its rare words, by BM25 (Robertson & Zaragoza 2009).

A word counts for more the fewer units have it. The words of a question that no unit has count most, so that their
absence shows. A unit's neighbours share its relevance, since an answer rarely repeats the question.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from precis_text.back_references import has_back_reference
from precis_text.exchanges import short_answers
from precis_text.forms.form import ScoredText
from precis_text.forms.votes import as_one, with_votes
from precis_text.language import Language, language_of, languages
from precis_text.sentences import split_sentences
from precis_text.tables import read_table
from precis_text.units import without_item_mark
from precis_text.words import unicode_words

_SATURATION, _BY_LENGTH = 1.2, 0.75  # k1 and b of BM25
_BEFORE, _AFTER = 0.4, 0.2  # shares of a unit's relevance that the next and the previous one get
_PREFIX = 6  # letters of a word that are compared, in a language without a stemmer
_RELEVANT = 0.3  # least relevance of a unit that may be chosen, relative to the best
_RELEVANT_ROW = 0.75  # the same for a row of a table, whose neighbours have the same names of columns
CELLS = " | "  # between the cells of a row
# Endings of verbs that the stemmers keep, and the least letters before them; without a stemmer, the sixth letter
_ENDINGS = {"de": (4, re.compile("e?t")), "fr": (4, re.compile("ent")), "": (5, re.compile("."))}
_DIGITS = re.compile(r"[\d.,\s]+")
_PARTICIPLE = re.compile("ge.{4}")  # "gekostet", as "kostet"
_NUMBER = re.compile(r"\W*\d")
_LETTER = re.compile(r"(?<=[\w,|:] )(?:[A-HJ-Z]|\d)(?!['’\w])")  # "option C", but not "Can I"
_TABLE = read_table("forms/question.toml")
_PRICES, _AMOUNTS, _PAID, _VOTES, _DEADLINES, _CORRECTS = (
    re.compile(_TABLE[name], re.IGNORECASE)
    for name in ("prices", "amounts", "paid", "votes", "deadlines", "corrects")
)
#: Least share of a question's weight that one unit must hold. `python -m benchmarks.questions` fits it.
LEAST = 0.4
_KINDS = [tuple(re.compile(each, re.IGNORECASE) for each in pair) for pair in _TABLE["kinds"]]
_OF_KIND = 1.5  # factor on the relevance of a unit with the number, date or time that a question asks for
_NOUN, _BEFORE_NOUN = 4, 4  # least letters of a German noun, and of what is before it in a compound
_STRONG = dict(pair.split(":") for pair in _TABLE["strong"].split())
_ASKING, _MORE = (frozenset(_TABLE[name].split()) for name in ("asking", "asking_more"))
_CONTRACTED = re.compile(r"\b\w+n['’]t\b", re.IGNORECASE)  # "won't" has nothing to do with "won"


@dataclass(frozen=True)
class Match:
    """The match of a document and a question.

    Attributes:
        relevance: one for each unit, 0 or more.
        held: the largest share of the question's weight that the words of one unit hold, 0 to 1.
    """

    relevance: Sequence[float]
    held: float


def match(question: str, texts: Sequence[str], rows: Collection[int] = ()) -> Match:
    """Compare a question with the units of a document.

    Args:
        texts: the units, in order.
        rows: the places of those that are rows of tables, which share nothing with their neighbours.
    """
    code = language_of(" ".join(texts)[:4000]) or language_of(question)  # a table shows none
    language = languages().get(code or "")
    kinds = [tells for asks, tells in _KINDS if asks.search(question)]
    asked = (terms := {*_terms(question, language)}) - {*_terms(" ".join(_MORE), language)} or terms
    said = [_terms(text, language) for text in texts]
    known = {term for terms in said for term in terms}
    forms = {
        form: term for term in asked - known for form in known - asked if _inflects(term, form, language)
    }
    if language and language.code == "de":  # "Gesamtmiete" is a "Miete"
        nouns = [term for term in asked if len(term) >= _NOUN]
        heads = ((form, term) for form in known - asked for term in nouns if form.endswith(term))
        forms |= {form: term for form, term in heads if len(form) >= len(term) + _BEFORE_NOUN}
    units = [Counter(forms.get(term, term) for term in terms) for terms in said]
    sizes = [unit.total() for unit in units]
    mean = max(1.0, sum(sizes) / max(1, len(sizes)))
    weights = {term: _rarity(sum(term in unit for unit in units), len(units)) for term in asked}
    total = sum(weights.values())
    is_told = not _PRICES.search(question) or any(
        each.search(text) for text in texts for each in (_PRICES, _AMOUNTS, _PAID)
    )
    if not total or not units or not is_told:
        return Match([0.0] * len(units), 0.0)
    room = [_SATURATION * (1 - _BY_LENGTH + _BY_LENGTH * size / mean) for size in sizes]
    own = [
        sum(
            weights[term] * unit[term] * (_SATURATION + 1) / (unit[term] + more)
            for term in asked & unit.keys()
        )
        * (_OF_KIND if any(tells.search(text) for tells in kinds) else 1.0)
        for unit, more, text in zip(units, room, texts, strict=True)
    ]
    held = max((sum(weights[term] for term in asked & unit.keys()) for unit in units), default=0.0) / total
    given = [0.0 if place in rows else each for place, each in enumerate(own)]
    shared = [
        here + _BEFORE * before + _AFTER * after
        for here, before, after in zip(own, [0.0, *given[:-1]], [*given[1:], 0.0], strict=True)
    ]
    return Match(shared, held)


def asked_of(source: ScoredText, question: str, *, least: float = LEAST) -> ScoredText | None:
    """Return a document whose scores answer a question; None if no unit holds that share of the question's weight.

    Units without relevance become asides, which no form chooses, unless a relevant one points to them. Rows of tables
    are not asides here (see `named_rows`).
    """
    alone, source = [unit.text for unit in source.units], as_one(with_votes(source), _answered(source))
    rows = _rows(source)
    heads = [split_sentences(source.passages.at(unit.start).heading) for unit in source.units]
    read = [
        replace(unit, heading=False, aside=False)
        if place in rows
        else replace(
            unit,
            heading=unit.heading and unit.text == without_item_mark(unit.text),
            aside=unit.aside or unit.text in heads[place],
        )
        for place, unit in enumerate(source.units)
    ]
    cells = {place for place, unit in enumerate(read) if CELLS in unit.text}
    texts = [rows.get(place, unit.text) for place, unit in enumerate(read)]
    for place in (place for place, unit in enumerate(read) if unit.text != alone[place]):  # votes
        item = next((unit.text for unit in source.units[:place][::-1] if unit.heading), "")  # of the agenda
        texts[place] = f"{item} {texts[place]}"
    found = match(question, texts, cells)
    told = (place for place, unit in enumerate(read) if not (unit.heading or unit.aside))
    best = max((found.relevance[place] for place in told), default=0.0)
    if found.held < least or not best:
        return None
    told_most = [*found.relevance]
    for place, unit in enumerate(read):  # "No, on the 29th" is about the question of two turns before
        before = max(found.relevance[max(place - 2, 0) : place], default=0.0)
        said = unit.text.removeprefix(f"{unit.speaker}: ") if unit.speaker else ""
        if before >= best * _RELEVANT and _CORRECTS.match(said):
            told_most[place] = max(told_most[place], before)
    found = replace(found, relevance=told_most)
    scores = [
        relevance / best * (1 + score) / 2
        for relevance, score in zip(found.relevance, source.scores, strict=True)
    ]
    lowest = [best * (_RELEVANT_ROW if place in rows else _RELEVANT) for place in range(len(read))]
    relevant = {place for place, relevance in enumerate(found.relevance) if relevance >= lowest[place]}
    relevant |= {place - 1 for place in relevant if has_back_reference(read[place].text)}
    relevant |= {answer for place, answer in short_answers(read).items() if place in relevant}
    units = [
        replace(unit, answers=score == best) if place in relevant else replace(unit, aside=True)
        for place, (unit, score) in enumerate(zip(read, found.relevance, strict=True))
    ]
    return replace(source, units=units, scores=[min(1.0, score) for score in scores])


def _answered(source: ScoredText) -> list[list[int]]:
    """Return the places of each written question with those of the two sentences after it on its line."""
    text, units = f"{source.document}\n", source.units
    ends = {place: text.find("\n", unit.start) for place, unit in enumerate(units) if unit.text.endswith("?")}
    near = {place: range(place + 1, min(place + 3, len(units))) for place in ends}
    return [
        [place, *(at for at in near[place] if units[at].start < end and at not in ends)]
        for place, end in ends.items()
    ]


def named_rows(source: ScoredText) -> ScoredText:
    """Return a document in which each row of a table names the column of each cell, as a reader needs it."""
    rows = _rows(source)
    units = [replace(unit, text=rows.get(place, unit.text)) for place, unit in enumerate(source.units)]
    return replace(source, units=units)


def _rows(source: ScoredText) -> dict[int, str]:
    """Return the text of each row of a table, without those that name the columns."""
    tables: list[list[int]] = []
    for place, unit in enumerate(source.units):
        if CELLS not in unit.text or unit.speaker:
            continue
        before = source.units[tables[-1][-1]].stop if tables else 0
        if tables and source.document[before : unit.start].strip(" ") == "\n":
            tables[-1].append(place)
        else:
            tables.append([place])
    found: dict[int, str] = {}
    for table in tables:
        found |= _named_cells(table, [source.units[place].text.split(CELLS) for place in table])
    return found


def _named_cells(places: Sequence[int], rows: Sequence[Sequence[str]]) -> dict[int, str]:
    """Return the rows of a table with the names of their columns, if the first row has them.

    It lacks digits but above numbers ("Sales Q1"). Two columns may be a list of names and values, unless all values are
    numbers of one unit.
    """
    names, *others = [[cell.strip(" |") for cell in row] for row in rows]
    is_named = bool(others) and all(
        not any(map(str.isdigit, name))
        or (name[0].isalpha() and all(map(_NUMBER.match, filter(None, below))))
        for name, *below in zip_longest(names, *others, fillvalue="")
    )
    if len(names) == 2:
        values = [row[-1] for row in others]
        is_number = all(any(map(str.isdigit, value)) for value in values)
        is_named = is_named and is_number and len({_DIGITS.sub("", value) for value in values}) == 1
    if not is_named:
        return {place: CELLS.join(row) for place, row in zip(places, [names, *others], strict=True)}
    shown = (
        CELLS.join(
            f"{name}: {cell}" if name else cell
            for name, cell in zip_longest(names, row[: len(names)], fillvalue="")
            if cell
        )
        + "".join(f"{CELLS}{cell}" for cell in row[len(names) :])
        for row in others
    )
    return dict(zip(places[1:], shown, strict=True))


def _inflects(term: str, form: str, language: Language | None) -> bool:
    """Check whether two stems differ only in an ending that belongs to the form of a verb."""
    short, long = sorted((term, form), key=len)
    code = language.code if language else ""
    if code not in _ENDINGS or not long.startswith(short):
        return False
    least, ending = _ENDINGS[code]
    return len(short) >= least and ending.fullmatch(long[len(short) :]) is not None


def _rarity(units_with_it: int, units: int) -> float:
    """Return the inverse document frequency of a word, above 0."""
    return math.log(1 + (units - units_with_it + 0.5) / (units_with_it + 0.5))


def _terms(text: str, language: Language | None) -> list[str]:
    """Return the stems of the words with content; prices, and words that ask for them, are one term."""
    text = _AMOUNTS.sub(r"\g<0> price ", _PRICES.sub(" price ", _CONTRACTED.sub(" ", text)))
    text = _DEADLINES.sub(r"\g<0> deadline ", _VOTES.sub(" voted ", text))
    letters = {each.lower() for each in _LETTER.findall(text)}
    words = [word for word in unicode_words(text) if word not in _ASKING]
    if language is None:
        return [word[:_PREFIX] for word in words]
    words = [word for word in words if word in letters or (word not in language.function and len(word) > 1)]
    stems = [language.stem(word) for word in words]
    if language.code == "es":  # "cuesta", as "costará"
        return [stem.replace("ue", "o").replace("ie", "e") for stem in stems]
    if language.code != "de":
        return stems
    stems = [stem[2:] if _PARTICIPLE.match(stem) else stem for stem in stems]
    return [_STRONG.get(stem, stem) for stem in stems]
