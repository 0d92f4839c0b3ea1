"""Compares a question with the units of a document by the words that they share: BM25 (Robertson & Zaragoza 2009).

A word counts for more the fewer units have it. The words of a question that no unit has count most, so that their
absence shows. A unit that follows another one shares its relevance, since an answer rarely repeats the question.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain

from precis_text.language import function_words, language_of, languages, stemmed
from precis_text.tables import read_table
from precis_text.words import unicode_words

_SATURATION, _BY_LENGTH = 1.2, 0.75  # k1 and b of BM25
_TO_NEXT, _TO_LAST = 0.4, 0.2  # shares of its relevance that a unit gives to the next one and the last one
_NAME = 2  # most words of a question that may be a name
_PREFIX = 6  # letters of a word that are compared, in a language without a stemmer
# Endings of verbs that the stemmers keep, and the least letters before them; without a stemmer, the sixth letter
_ENDINGS = {"de": (4, re.compile("e?t")), "fr": (4, re.compile("ent")), "": (5, re.compile("."))}
_PARTICIPLE = re.compile("ge.{4}")  # "gekostet", as "kostet"
_LETTER = re.compile(r"(?<=[\w,|:] )(?:[A-HJ-Z]|\d)(?!['’\w])")  # "option C", but not "Can I"
# "2.9.3" and "Section 4.2", but no date, time or amount
_VERSION = re.compile(
    r"(?<![\w.])(?P<named>(?:version|release|section|chapter|clause|kapitel|abschnitt|ziffer) |v)?"
    r"(?!\d{1,2}\.\d{1,2}\.(?:\d{4}|\d\d)\b)(?P<parts>\d{1,4}(?(named)(?:\.\d{1,4})+|(?:\.\d{1,4}){2,}))(?!\w)",
    re.IGNORECASE,
)
_TABLE = read_table("forms/question.toml")
_PRICES, _AMOUNTS, _PAID, _VOTES, _DEADLINES = (
    re.compile(_TABLE[name], re.IGNORECASE) for name in ("prices", "amounts", "paid", "votes", "deadlines")
)
_CLOSED = re.compile(_TABLE["closed"], re.IGNORECASE)
_KINDS = [tuple(re.compile(each, re.IGNORECASE) for each in pair) for pair in _TABLE["kinds"]]
_OF_KIND = 2.5  # factor on the relevance of a unit with the number, date or time that a question asks for
_NOUN, _BEFORE_NOUN = 4, 4  # least letters of a German noun, and of what is before it in a compound
_STRONG = {code: dict(pair.split(":") for pair in pairs.split()) for code, pairs in _TABLE["strong"].items()}
_ASKING = frozenset(_TABLE["asking"].split())
_SMALL = {code: frozenset(words.split()) for code, words in _TABLE["small"].items()}
_CASE = re.compile(r"(?<=\w{3})[aeiouyáéíóúýěůąę]+$")  # what follows the stem of a Czech noun
_CONTRACTED = re.compile(r"\b\w+n['’]t\b", re.IGNORECASE)  # "won't" has nothing to do with "won"


@dataclass(frozen=True)
class Match:
    """The match of a document and a question.

    Attributes:
        relevance: one for each unit, 0 or more.
        shares: the share of the question's weight that the words of each unit hold, 0 to 1.
        whole: the units with all of these words, and the number or date, for which a short answer is enough.
    """

    relevance: Sequence[float]
    shares: Sequence[float]
    whole: Collection[int] = frozenset()

    @property
    def held(self) -> float:
        """The largest share."""
        return max(self.shares, default=0.0)


def match(question: str, texts: Sequence[str], follows: Sequence[int | None] | None = None) -> Match:
    """Compare a question with the units of a document.

    Args:
        texts: the units, in order.
        follows: the place of the unit that each unit follows in its paragraph, its list or a talk; by default, that of
            the unit before it.
    """
    words = unicode_words(question)  # a table shows no language
    opens = {0: ""} | {len(each & {*words}): code for code, each in _SMALL.items() if each & {*words[:1]}}
    first = opens[max(opens)] if len(words) > _NAME else ""  # "Ben" is a name, and Dutch
    code = language_of(" ".join(texts)[:4000]) or language_of(question) or first
    reader = _Reader(code, _ASKING | function_words(code) | _SMALL.get(code, frozenset()))
    asked = reader.asked(question)
    said = [reader.terms(text) for text in texts]
    forms = reader.forms(asked, {*chain.from_iterable(said)})
    units = [Counter(forms.get(term, term) for term in terms) for terms in said]
    weights = {term: _rarity(sum(term in unit for unit in units), len(units)) for term in asked}
    total, others = sum(weights.values()), asked - {*reader.terms("price")}
    is_named = others in (asked, set()) or any(others & unit.keys() for unit in units)
    if not total or not is_named or not _may_tell(question, texts):
        return Match([0.0] * len(units), [0.0] * len(units))
    kinds = [tells for asks, tells in _KINDS if asks.search(question)]
    of_kind = [any(tells.search(text) for tells in kinds) for text in texts]
    own = [each * (_OF_KIND if of else 1.0) for of, each in zip(of_kind, _bm25(units, weights), strict=True)]
    shares = [sum(weights[term] for term in asked & unit.keys()) / total for unit in units]
    closed = (kinds or len(asked) > 1) and _CLOSED.match(question)
    whole = {at for at, held in enumerate(shares) if closed and held > 0.99 and of_kind[at] >= bool(kinds)}
    return Match(_shared(own, [None, *range(len(own) - 1)] if follows is None else follows), shares, whole)


def _bm25(units: Sequence[Counter[str]], weights: Mapping[str, float]) -> list[float]:
    """Return the relevance of each unit by its own words (Robertson & Zaragoza 2009, equation 3.15)."""
    sizes = [unit.total() for unit in units]
    mean = max(1.0, sum(sizes) / max(1, len(sizes)))
    room = [_SATURATION * (1 - _BY_LENGTH + _BY_LENGTH * size / mean) for size in sizes]
    return [
        sum(
            weights[term] * unit[term] * (_SATURATION + 1) / (unit[term] + more)
            for term in sorted(weights.keys() & unit.keys())
        )
        for unit, more in zip(units, room, strict=True)
    ]


def _shared(own: Sequence[float], follows: Sequence[int | None]) -> list[float]:
    """Return the relevance of each unit with its shares of that of its neighbours."""
    shared = [*own]
    for place, last in enumerate(follows):
        if last is not None:
            shared[place] += _TO_NEXT * own[last]
        if last == place - 1 >= 0:
            shared[last] += _TO_LAST * own[place]
    return shared


def _rarity(units_with_it: int, units: int) -> float:
    """Return the inverse document frequency of a word, above 0."""
    return math.log(1 + (units - units_with_it + 0.5) / (units_with_it + 0.5))


def _may_tell(question: str, texts: Sequence[str]) -> bool:
    """Check whether a document speaks of prices, if a question asks for one."""
    tells = (_PRICES, _AMOUNTS, _PAID)
    return not _PRICES.search(question) or any(each.search(text) for text in texts for each in tells)


def _with_versions(found: re.Match[str]) -> str:
    """Return a version with a word for it and for each one that it belongs to: "4x2x1", "4x2"."""
    parts = found["parts"].split(".")
    return " ".join([found.group(), *("x".join(parts[:end]) for end in range(2, len(parts) + 1))])


@dataclass(frozen=True)
class _Reader:
    """Reads the words with content of a document and of a question.

    Attributes:
        code: ISO 639-1, or a script; "" of an unknown language.
        function: the words that only ask, and the function words of the language, if they are known.
    """

    code: str
    function: Collection[str]

    def asked(self, question: str) -> set[str]:
        """Return the terms of a question, without those that only ask, if it has others."""
        terms = {*self.terms(question)}
        return terms - {*self.terms(f"{_TABLE['asking_more']} {_TABLE['more'].get(self.code, '')}")} or terms

    def terms(self, text: str) -> list[str]:
        """Return the stems of the words with content; prices, and words that ask for them, are one term."""
        text = _AMOUNTS.sub(r"\g<0> price ", _PRICES.sub(" price ", _CONTRACTED.sub(" ", text)))
        text = _DEADLINES.sub(r"\g<0> deadline ", _VOTES.sub(" voted ", text))
        letters = {each.lower() for each in _LETTER.findall(text)}
        text = _VERSION.sub(_with_versions, text)
        words = [word for word in unicode_words(text) if word in letters or word not in self.function]
        if (language := languages().get(self.code)) is None:
            stemmer = _TABLE["stemmers"].get(self.code)
            return [stemmed(stemmer, word) if stemmer else _CASE.sub("", word)[:_PREFIX] for word in words]
        words = [word for word in words if word in letters or len(word) > 1]
        stems = [language.stem(word) for word in words]
        if self.code == "es":  # "cuesta", as "costará"
            stems = [stem.replace("ue", "o").replace("ie", "e") for stem in stems]
        if self.code == "de":
            stems = [stem[2:] if _PARTICIPLE.match(stem) else stem for stem in stems]
        return [_STRONG.get(self.code, {}).get(stem, stem) for stem in stems]

    def forms(self, asked: Set[str], known: Set[str]) -> dict[str, str]:
        """Return the terms of a document that are other forms or compounds of the question's."""
        others = known - asked
        forms = {form: term for term in asked - known for form in others if self._inflects(term, form)}
        if self.code == "de":  # "Gesamtmiete" is a "Miete"
            nouns = [term for term in asked if len(term) >= _NOUN]
            heads = ((form, term) for form in others for term in nouns if form.endswith(term))
            forms |= {form: term for form, term in heads if len(form) >= len(term) + _BEFORE_NOUN}
        return forms

    def _inflects(self, term: str, form: str) -> bool:
        """Check whether two stems differ only in an ending that belongs to the form of a verb."""
        short, long = sorted((term, form), key=len)
        code = self.code if self.code in languages() else ""
        if code not in _ENDINGS or not long.startswith(short):
            return False
        least, ending = _ENDINGS[code]
        return len(short) >= least and ending.fullmatch(long[len(short) :]) is not None
