"""Finds the units of a document that answer a question: those with its rare words, by BM25 (Robertson & Zaragoza 2009).

A word counts for more the fewer units have it. The words of a question that no unit has count most, so that their
absence shows. A unit's neighbours share its relevance, since an answer rarely repeats the question.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from precis_text.back_references import has_back_reference
from precis_text.forms.form import ScoredText
from precis_text.language import Language, language_of, languages
from precis_text.words import unicode_words

_SATURATION, _BY_LENGTH = 1.2, 0.75  # k1 and b of BM25
_BEFORE, _AFTER = 0.4, 0.2  # shares of a unit's relevance that the next and the previous one get
_PREFIX = 6  # letters of a word that are compared, in a language without a stemmer
_RELEVANT = 0.3  # least relevance of a unit that may be chosen, relative to the best
#: Least share of a question's weight that one unit must hold. `python -m benchmarks.questions` fits it.
LEAST = 0.4
# Words of questions about documents in general.
_GENERAL = """
say says said tell document text meeting talk talked discuss discussed discussion discussions summarize summary describe
think thought about question
"""
_ASKING = frozenset(_GENERAL.split())


@dataclass(frozen=True)
class Match:
    """The match of a document and a question.

    Attributes:
        relevance: one for each unit, 0 or more.
        held: the largest share of the question's weight that the words of one unit hold, 0 to 1.
    """

    relevance: Sequence[float]
    held: float


def match(question: str, texts: Sequence[str]) -> Match:
    """Compare a question with the units of a document.

    Args:
        texts: the units, in order.
    """
    language = languages().get(language_of(" ".join(texts)[:4000]) or "")
    asked = {*_terms(question, language)}
    units = [Counter(_terms(text, language)) for text in texts]
    sizes = [unit.total() for unit in units]
    mean = max(1.0, sum(sizes) / max(1, len(sizes)))
    weights = {term: _rarity(sum(term in unit for unit in units), len(units)) for term in asked}
    total = sum(weights.values())
    if not total:
        return Match([0.0] * len(units), 0.0)
    own = [
        sum(
            weights[term]
            * unit[term]
            * (_SATURATION + 1)
            / (unit[term] + _SATURATION * (1 - _BY_LENGTH + _BY_LENGTH * size / mean))
            for term in asked & unit.keys()
        )
        for unit, size in zip(units, sizes, strict=True)
    ]
    held = max((sum(weights[term] for term in asked & unit.keys()) for unit in units), default=0.0) / total
    shared = [
        here + _BEFORE * before + _AFTER * after
        for here, before, after in zip(own, [0.0, *own[:-1]], [*own[1:], 0.0], strict=True)
    ]
    return Match(shared, held)


def asked_of(source: ScoredText, question: str) -> ScoredText | None:
    """Return a document whose scores answer a question; None if it says nothing about it.

    Units without relevance become asides, which no form chooses, unless a relevant one points to them.
    """
    found = match(question, [unit.text for unit in source.units])
    best = max(
        (
            score
            for score, unit in zip(found.relevance, source.units, strict=True)
            if not (unit.heading or unit.aside)
        ),
        default=0.0,
    )
    if found.held < LEAST or not best:
        return None
    scores = [
        relevance / best * (1 + score) / 2
        for relevance, score in zip(found.relevance, source.scores, strict=True)
    ]
    relevant = {place for place, relevance in enumerate(found.relevance) if relevance >= _RELEVANT * best}
    relevant |= {place - 1 for place in relevant if has_back_reference(source.units[place].text)}
    units = [
        replace(unit, answers=score == best) if place in relevant else replace(unit, aside=True)
        for place, (unit, score) in enumerate(zip(source.units, found.relevance, strict=True))
    ]
    return replace(source, units=units, scores=[min(1.0, score) for score in scores])


def _rarity(units_with_it: int, units: int) -> float:
    """Return the inverse document frequency of a word, above 0."""
    return math.log(1 + (units - units_with_it + 0.5) / (units_with_it + 0.5))


def _terms(text: str, language: Language | None) -> list[str]:
    """Return the stems of the words with content."""
    words = [word for word in unicode_words(text) if word not in _ASKING]
    if language is None:
        return [word[:_PREFIX] for word in words]
    return [language.stem(word) for word in words if word not in language.function and len(word) > 1]
