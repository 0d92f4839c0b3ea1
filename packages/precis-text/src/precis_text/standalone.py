"""The share of readers who understand a sentence of a summary after the sentences that the summary has before it.

    features of the sentence, and of what the summary lacks -> trees, learnt by gradient boosting -> 0 to 1

The labels were written for extracts: does the sentence need something that the extract lacks, or carry a remnant? The
term is that of Choi et al. 2021 on decontextualization. `experiments/scripts/standalone_sentences.py` learns the trees.
They know English only.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from precis_text.language import language_of
from precis_text.regression_trees import Trees
from precis_text.tables import read_table
from precis_text.units import TextUnit, as_shown
from precis_text.word_patterns import WordPatterns

Floats = NDArray[np.float64]
Asked = tuple[int, Sequence[int]]

_GROUPS = read_table("standalone.toml")
_GROUP_OF = {word: name for name, words in _GROUPS.items() for word in words.split()}
_POINTING = ("this", "that", "it", "people")
_SHARES = [name for name in _GROUPS if name not in ("people", "fillers")]
_FORM = (
    "words pointing_place content_before names_before ended item marks dashes title capitals commas quotation small "
    "verb"
)
_AROUND = "speaker other_speaker starts_turn below_heading first"
_CONTENT = "known_at_start new like_before"
_OWN = (*_SHARES, *f"{_FORM} {_AROUND} {_CONTENT} pattern".split())
_IN_SUMMARY = (
    "is_after is_first gap same_speaker given given_lately shown definites definites_given definites_new "
    "definites_shown place"
)
STANDALONE_FEATURES = (*_OWN, *_IN_SUMMARY.split())
"""The names of the columns: first those of a unit, then those of a unit in a summary."""

_TOKENS = re.compile(r"[\w'’]+")
_ENDED = re.compile(r"""[.!?。]['"”)]*$""")  # what the trees learnt from, so not `units.ENDED`
_DASHES = re.compile(r" [-–—] |--")
_MARKS = re.compile(r"[<>*#=`\[\]]")
_VERBAL = ("ed", "s")
_DEFINITE = re.compile(r"\b(?:the|this|that|these|those|such) (?:[\w-]+ ){0,2}?([a-z][\w-]{2,})\b")
_REMEMBERED = 16  # units of a summary that a reader remembers
_LATELY = 3  # units before a unit whose words were just said
_STEM = 6  # letters that forms of a word share
_BEGINNING = 3  # units whose words a reader knows
_NOWHERE = 1.5  # place of a word that a sentence lacks; the end is 1


class Readability:
    """The share of readers who understand each unit of a document in a summary."""

    def __init__(self, units: Sequence[TextUnit], patterns: WordPatterns | None = None) -> None:
        """Read a document. Units of other languages than English are not judged.

        Args:
            patterns: other weights of words than the learnt ones.
        """
        self.is_judged = language_of("\n".join(unit.text for unit in units)) == "en"
        if not self.is_judged:
            return
        self._speakers = [unit.speaker for unit in units]
        told = [Told.of(unit) for unit in units]
        self._stems = [frozenset(each.stems) for each in told]
        self._heads = [[head[:_STEM] for head in _DEFINITE.findall(each.text.lower())] for each in told]
        self._first: dict[str, int] = {}
        for place, stems in enumerate(self._stems):
            for stem in stems:
                self._first.setdefault(stem, place)
        self._own = standalone_features(units, told, patterns or WordPatterns.learnt())

    def shares(self, asked: Sequence[Asked], chosen: Sequence[int]) -> list[float]:
        """Return the share of readers, 0 to 1, who understand each of some units in a summary.

        Args:
            asked: places of units, each with those of other units that come with it.
            chosen: places of the summary's units in order; only those before a unit help to read it.
        """
        if not self.is_judged:
            return [1.0] * len(asked)
        shares: list[float] = (1 / (1 + np.exp(_trees()(self.features(asked, chosen))))).tolist()
        return shares

    def features(self, asked: Sequence[Asked], chosen: Sequence[int]) -> Floats:
        """Return the (asked, features) features of some units in a summary."""
        rows = [[*self._own[place], *self._in_summary(place, beside, chosen)] for place, beside in asked]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(STANDALONE_FEATURES))

    def _in_summary(self, place: int, beside: Sequence[int], chosen: Sequence[int]) -> list[float]:
        """Return the values of `_IN_SUMMARY`: "given" is what the document said before, and the summary did not."""
        before = bisect_left(chosen, place)
        earlier = [*chosen[max(before - _REMEMBERED, 0) : before], *(each for each in beside if each < place)]
        last = max(earlier, default=None)
        shown = frozenset[str]().union(*(self._stems[each] for each in earlier))
        own, heads = self._stems[place], self._heads[place]
        lacks = own - shown
        given = sum(self._first[stem] < place for stem in lacks)
        lately = frozenset[str]().union(*self._stems[max(place - _LATELY, 0) : place])
        heads_shown = sum(head in shown for head in heads)
        heads_given = sum(head not in shown and self._first.get(head, place) < place for head in heads)
        count = max(len(own), 1)
        return [
            last == place - 1, last is None, -1.0 if last is None else math.log1p(place - last),
            last is not None and self._speakers[last] == self._speakers[place], given / count,
            len(lacks & lately) / count, len(own & shown) / count, len(heads), heads_given,
            len(heads) - heads_given - heads_shown, heads_shown, place / len(self._stems),
        ]  # fmt: skip


@cache
def _trees() -> Trees:
    values = json.loads(files("precis_text").joinpath("standalone.json").read_text("utf-8"))
    if values["features"] != [*STANDALONE_FEATURES]:
        raise ValueError(
            "standalone.json was made for other features; run experiments.scripts.standalone_sentences"
        )
    return Trees.from_dict(values, len(STANDALONE_FEATURES))


@dataclass(frozen=True)
class Told:
    """The text of a unit, its words as they are and in small letters, and the stems of its content words."""

    text: str
    words: Sequence[str]
    lower: Sequence[str]
    stems: Sequence[str]

    @classmethod
    def of(cls, unit: TextUnit) -> Told:
        """Divide what a unit says into words."""
        text = said(unit)
        words = _TOKENS.findall(text)
        lower = [word.lower().replace("’", "'") for word in words]
        stems = [word[:_STEM] for word in lower if len(word) > 2 and word not in _GROUP_OF]
        return cls(text, words, lower, stems)


def standalone_features(units: Sequence[TextUnit], told: Sequence[Told], patterns: WordPatterns) -> Floats:
    """Return the (units, features) features of the units themselves, `_OWN`."""
    known = {stem for each in told[:_BEGINNING] for stem in each.stems}
    seen: set[str] = set()
    rows = []
    for place, unit in enumerate(units):
        own, before = told[place].stems, units[place - 1] if place else None
        text_before, earlier = (told[place - 1].text, told[place - 1].stems) if place else ("", ())
        kinds = max(len(set(own)), 1)
        rows.append([
            *_of_words(told[place].text, told[place].words, told[place].lower), bool(unit.speaker),
            before is not None and before.speaker != unit.speaker,
            bool(unit.speaker) and (before is None or before.speaker != unit.speaker),
            before is not None and before.heading, before is None, len(known.intersection(own)) / kinds,
            sum(stem not in seen for stem in own) / max(len(own), 1), len(set(earlier).intersection(own)) / kinds,
            patterns.score(told[place].text, text_before, is_spoken=bool(unit.speaker)),
        ])  # fmt: skip
        seen.update(own)
    return np.array(rows, dtype=np.float64)


def said(unit: TextUnit) -> str:
    """Return what a unit says, without its speaker and what only opens it."""
    text = as_shown(unit)
    return text.removeprefix(f"{unit.speaker}:").strip() if unit.speaker else text


def _of_words(text: str, words: Sequence[str], lower: Sequence[str]) -> list[float]:
    """Return the shares of the word groups in a text, and the values of `_FORM`."""
    count = max(len(words), 1)
    groups = [_GROUP_OF.get(word, "") for word in lower]
    shares = Counter(groups)
    pointing = next((place for place, group in enumerate(groups) if group in _POINTING), count)
    long = [word for word in words if len(word) > 3]
    return [
        *(shares[name] / count for name in _SHARES), count, pointing / count if pointing < count else _NOWHERE,
        sum(not group and len(word) > 2 for word, group in zip(lower[:pointing], groups, strict=False)),
        sum(word[0].isupper() for word in words[1:pointing]), _ENDED.search(text) is not None, text[:1] in "-*•–>#",
        len(_MARKS.findall(text)) / count, len(_DASHES.findall(text)) / count,
        sum(word[0].isupper() for word in long) / max(len(long), 1),
        sum(word[0].isupper() for word in words[1:]) / count, text.count(",") / count,
        any(mark in text for mark in '"“”'), text[:1].islower(),
        shares["auxiliaries"] > 0 or any(word.endswith(_VERBAL) for word in lower[1:]),
    ]  # fmt: skip
