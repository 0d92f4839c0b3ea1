"""Sentences that a reader understands without the ones before them, and those that need them.

    features of each unit -> trees, learnt by gradient boosting -> the share of readers that it serves

The labels were written for extracts: does the sentence need something that the extract lacks, or carry a remnant? The
term is that of Choi et al. 2021 on decontextualization. `experiments/scripts/standalone_sentences.py` learns the trees.
They know English only.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from precis_text.language import language_of
from precis_text.regression_trees import Trees
from precis_text.units import TextUnit

Floats = NDArray[np.float64]

_GROUPS: Mapping[str, str] = tomllib.loads(
    files("precis_text").joinpath("standalone.toml").read_text("utf-8")
)
_GROUP_OF = {word: name for name, words in _GROUPS.items() for word in words.split()}
_POINTING = ("this", "that", "it", "people")
_SHARES = [name for name in _GROUPS if name not in ("people", "fillers")]
_FORM = (
    "words pointing_place content_before names_before ended item marks dashes title capitals commas quotation small "
    "verb"
)
_AROUND = "speaker other_speaker starts_turn below_heading first"
_CONTENT = "known_at_start new like_before"
STANDALONE_FEATURES = (*_SHARES, *f"{_FORM} {_AROUND} {_CONTENT} is_after".split())
"""The names of the columns; the last one tells whether the unit before it is in the summary."""

_TOKENS = re.compile(r"[\w'’]+")
_ENDED = re.compile(r"""[.!?。]['"”)]*$""")
_DASHES = re.compile(r" [-–—] |--")
_MARKS = re.compile(r"[<>*#=`\[\]]")
_VERBAL = ("ed", "s")
_STEM = 6  # letters that forms of a word share
_BEGINNING = 3  # units whose words a reader knows
_NOWHERE = 1.5  # place of a word that a sentence lacks; the end is 1


def standalone(units: Sequence[TextUnit]) -> tuple[list[float], list[float]]:
    """Return how well each unit can be read without the one before it, and after it; 0 to 1, 1 if not in English."""
    if language_of("\n".join(unit.text for unit in units)) != "en":
        return [1.0] * len(units), [1.0] * len(units)
    features = np.tile(standalone_features(units), (2, 1))
    is_after = np.repeat([0.0, 1.0], len(units))
    shares = 1 / (1 + np.exp(_trees()(np.c_[features, is_after])))
    return shares[: len(units)].tolist(), shares[len(units) :].tolist()


@cache
def _trees() -> Trees:
    values = json.loads(files("precis_text").joinpath("standalone.json").read_text("utf-8"))
    if values["features"] != [*STANDALONE_FEATURES]:
        raise ValueError(
            "standalone.json was made for other features; run experiments.scripts.standalone_sentences"
        )
    return Trees.from_dict(values, len(STANDALONE_FEATURES))


def standalone_features(units: Sequence[TextUnit]) -> Floats:
    """Return the (units, features) features of a document, without the last one of `STANDALONE_FEATURES`."""
    said = [
        unit.text.removeprefix(f"{unit.speaker}:").strip() if unit.speaker else unit.text for unit in units
    ]
    words = [_TOKENS.findall(text) for text in said]
    lower = [[word.lower().replace("’", "'") for word in own] for own in words]
    stems = [[word[:_STEM] for word in own if len(word) > 2 and word not in _GROUP_OF] for own in lower]
    known = {stem for own in stems[:_BEGINNING] for stem in own}
    seen: set[str] = set()
    rows = []
    for place, (unit, own) in enumerate(zip(units, stems, strict=True)):
        before = units[place - 1] if place else None
        kinds, earlier = max(len(set(own)), 1), set(stems[place - 1]) if place else set[str]()
        rows.append(
            [
                *_of_words(said[place], words[place], lower[place]),
                bool(unit.speaker),
                before is not None and before.speaker != unit.speaker,
                bool(unit.speaker) and (before is None or before.speaker != unit.speaker),
                before is not None and before.heading,
                before is None,
                len(known.intersection(own)) / kinds,
                sum(stem not in seen for stem in own) / max(len(own), 1),
                len(earlier.intersection(own)) / kinds,
            ]
        )
        seen.update(own)
    return np.array(rows, dtype=np.float64)


def _of_words(text: str, words: Sequence[str], lower: Sequence[str]) -> list[float]:
    """Return the shares of the word groups in a text, and the values of `_FORM`."""
    count = max(len(words), 1)
    groups = [_GROUP_OF.get(word, "") for word in lower]
    shares = Counter(groups)
    pointing = next((place for place, group in enumerate(groups) if group in _POINTING), count)
    long = [word for word in words if len(word) > 3]
    return [
        *(shares[name] / count for name in _SHARES),
        count,
        pointing / count if pointing < count else _NOWHERE,
        sum(not group and len(word) > 2 for word, group in zip(lower[:pointing], groups, strict=False)),
        sum(word[0].isupper() for word in words[1:pointing]),
        _ENDED.search(text) is not None,
        text[:1] in "-*•–>#",
        len(_MARKS.findall(text)) / count,
        len(_DASHES.findall(text)) / count,
        sum(word[0].isupper() for word in long) / max(len(long), 1),
        sum(word[0].isupper() for word in words[1:]) / count,
        text.count(",") / count,
        any(mark in text for mark in '"“”'),
        text[:1].islower(),
        shares["auxiliaries"] > 0 or any(word.endswith(_VERBAL) for word in lower[1:]),
    ]
