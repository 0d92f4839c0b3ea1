"""The input features of the unit ranker, computed from a document's units without a model or a tokenizer.

    place     where a unit is in the document and under its heading
    document  how long it is, how its units are on average, how much of it is dialogue
    form      a unit's length, characters and marks, its speaker, its cue words (`ranking_cues.toml`, English)
    words     how central, common, rare, new and title-like its words are (`precis_text.centrality`)

Units are compared in windows of `precis_text.centrality.WINDOW`, so that time grows with their number.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from precis_text.back_references import has_back_reference, has_inner_reference
from precis_text.central_choice import content_words
from precis_text.centrality import WINDOW, Floats, TermCounts, cosines, lex_shares, text_shares
from precis_text.cohesion import announces, asks, halves, is_broken_off, unended
from precis_text.exchanges import contents, decides, is_courtesy
from precis_text.tables import read_table
from precis_text.units import TextUnit
from precis_text.words import length_in_words

Table = dict[str, Floats]
Pause = Callable[[], None]

_CUES = {
    name: re.compile(pattern, re.IGNORECASE) for name, pattern in read_table("ranking_cues.toml").items()
}
_STOPS = (".", "!", "。", "！", "।", "؟")
_MARKS = "-*#|•>"
_LINKED = 0.1  # least cosine of two units that count as linked, as in LexRank
_TINY = 1e-9
_FEWEST = 4  # words of a summary; a shorter one needs the same units

_PLACE = "place log_before log_after told_place log_told heading_place log_since_heading after_heading before_heading"
_DOCUMENT = "log_units log_words log_headings dialogue mean_words"
_FORM = (
    "log_size digits capitals stop mark bracket quotation colon question refers_back inner_reference half unended "
    "announces speaker speaker_share log_content broken_off courtesy decision"
)
_WORDS = (
    "centroid centroid_root centroid_rank frequency rarity lex lex_share lex_rank text text_rank like_before "
    "like_after like_mean linked like_first in_title in_heading shared known_elsewhere new"
)
FEATURES = (*f"{_PLACE} {_DOCUMENT} {_FORM} {_WORDS}".split(), *(f"cue_{name}" for name in _CUES))
"""The names of the features that do not depend on the requested length, in the order of the columns."""
ASKED = ("log_asked", "asked_share")
"""The names of the columns that `with_length` appends."""


def no_pause() -> None:
    """Do nothing between two parts of the work."""


def ranking_features(units: Sequence[TextUnit], pause: Pause = no_pause) -> NDArray[np.float32]:
    """Return the (units, features) features of a document; the columns are `FEATURES`.

    `pause` is called between parts of the work.
    """
    if not units:
        return np.zeros((0, len(FEATURES)), dtype=np.float32)
    sizes = np.array([length_in_words(unit.text) for unit in units], dtype=np.float64)
    pause()
    found = _place(units) | _document(units, sizes) | _form(units, sizes)
    pause()
    found |= _words(units, pause)
    found |= {
        f"cue_{name}": _floats(cue.search(unit.text) is not None for unit in units)
        for name, cue in _CUES.items()
    }
    return np.stack([found[name] for name in FEATURES], axis=1).astype(np.float32)


def with_length(features: NDArray[np.float32], words: float) -> NDArray[np.float32]:
    """Append the columns `ASKED`: a short summary needs other units than a long one.

    Args:
        features: those of `ranking_features`.
        words: the length of the summary.
    """
    total = np.expm1(features[:1, FEATURES.index("log_words")]).max(initial=1.0)
    asked = np.array([math.log(max(words, _FEWEST)), min(words / max(total, 1.0), 1.5)], dtype=np.float32)
    return np.concatenate([features, np.tile(asked, (len(features), 1))], axis=1)


def _place(units: Sequence[TextUnit]) -> Table:
    """Return where each unit is: in the document, among the units that are statements, and below its heading."""
    count = len(units)
    before = np.arange(count, dtype=np.float64)
    headings = np.array([unit.heading for unit in units])
    told = np.array([not (unit.heading or unit.aside) for unit in units])
    told_before = np.cumsum(told) - told
    last_heading = np.maximum.accumulate(np.where(headings, before, -1))
    return {
        "place": before / max(count - 1, 1), "log_before": np.log1p(before),
        "log_after": np.log1p(count - 1 - before), "told_place": told_before / max(told.sum(), 1),
        "log_told": np.log1p(told_before), "heading_place": np.cumsum(headings) / max(headings.sum(), 1),
        "log_since_heading": np.log1p(before - last_heading - 1 + headings),
        "after_heading": _floats(np.r_[False, headings[:-1]]),
        "before_heading": _floats(np.r_[headings[1:], False]),
    }  # fmt: skip


def _document(units: Sequence[TextUnit], sizes: Floats) -> Table:
    """Return what is the same for all units."""
    headings = sum(unit.heading for unit in units)
    values = {
        "log_units": np.log1p(len(units)), "log_words": np.log1p(sizes.sum()), "log_headings": np.log1p(headings),
        "dialogue": sum(bool(unit.speaker) for unit in units) / len(units), "mean_words": sizes.mean(),
    }  # fmt: skip
    return {name: np.full(len(units), float(value)) for name, value in values.items()}


def _form(units: Sequence[TextUnit], sizes: Floats) -> Table:
    """Return how each unit is written, and who says it."""
    texts = [unit.text for unit in units]
    spoken: Counter[str] = Counter()
    for unit, size in zip(units, sizes, strict=True):
        spoken[unit.speaker] += int(size)
    total = max(float(sizes.sum()), 1)
    return {
        "log_size": np.log1p(sizes),
        "digits": _floats(sum(map(str.isdigit, text)) / max(len(text), 1) for text in texts),
        "capitals": _floats(sum(map(str.isupper, text)) / max(len(text), 1) for text in texts),
        "stop": _floats(text.rstrip().endswith(_STOPS) for text in texts),
        "mark": _floats(text.lstrip()[:1] in _MARKS for text in texts),
        "bracket": _floats("(" in text for text in texts),
        "quotation": _floats('"' in text or "“" in text for text in texts),
        "colon": _floats(":" in text for text in texts), "question": _floats(map(asks, units)),
        "refers_back": _floats(map(has_back_reference, texts)),
        "inner_reference": _floats(map(has_inner_reference, texts)), "half": _floats(halves(units)),
        "unended": _floats(unended(units)), "announces": _floats(map(announces, units)),
        "speaker": _floats(bool(unit.speaker) for unit in units),
        "speaker_share": _floats(spoken[unit.speaker] / total if unit.speaker else 0.0 for unit in units),
        "log_content": np.log1p(_floats(contents(units))), "broken_off": _floats(map(is_broken_off, units)),
        "courtesy": _floats(map(is_courtesy, units)), "decision": _floats(map(decides, units)),
    }  # fmt: skip


def _words(units: Sequence[TextUnit], pause: Pause) -> Table:
    """Compare each unit's content words with those of the document, the title and its heading."""
    words = content_words(units)
    windows = []
    for start in range(0, len(units), WINDOW):
        pause()
        windows.append(_compared(words[start : start + WINDOW], units[start : start + WINDOW]))
    found = {name: np.concatenate([window[name] for window in windows]) for name in windows[0]}
    title = set(words[0]) if units[0].heading else set[str]()
    place = accumulate(enumerate(units), lambda last, each: each[0] if each[1].heading else last, initial=-1)
    headings = [set(words[k]) if k >= 0 else set[str]() for k in [*place][1:]]
    shared = Counter(word for own in words for word in set(own))
    seen: set[str] = set()
    new = []
    for own in words:
        new.append(_mean([word not in seen for word in own]))
        seen.update(own)
    return found | {
        "in_title": _floats(len(title.intersection(own)) / max(len(title), 1) for own in words),
        "in_heading": _floats(
            0.0 if unit.heading else len(above.intersection(own)) / max(len(above), 1)
            for unit, own, above in zip(units, words, headings, strict=True)
        ),
        "shared": _floats(_mean([shared[word] / len(units) for word in own]) for own in words),
        "known_elsewhere": _floats(_mean([shared[word] > 1 for word in own]) for own in words),
        "new": _floats(new),
    }


def _compared(words: Sequence[Sequence[str]], units: Sequence[TextUnit]) -> Table:
    """Return the centrality of each unit in a window."""
    count = len(words)
    terms = TermCounts.of(words)
    alike = cosines(terms)
    others = alike - np.diag(np.diag(alike))
    lex, text = lex_shares(alike), text_shares(terms)
    frequency: Floats = np.bincount(terms.term, terms.count, minlength=len(terms.frequency)).astype(
        np.float64
    )
    repeated = np.where(terms.frequency > 1, np.log1p(frequency), 0.0)
    sizes = np.maximum(terms.sizes, 1)

    def summed(values: Floats) -> Floats:
        """Sum a value of each term over the different terms of each unit."""
        return np.bincount(terms.unit, values[terms.term], minlength=count).astype(np.float64)

    def counted(values: Floats) -> Floats:
        """Return the mean of a value of each term over the words of each unit."""
        weights = values[terms.term] * terms.count
        return np.bincount(terms.unit, weights, minlength=count) / sizes

    told = [place for place, unit in enumerate(units) if not (unit.heading or unit.aside)]
    root = _relative(summed(repeated) / np.sqrt(sizes))
    return {
        "centroid": summed(repeated) / sizes / max(float(repeated.max(initial=0)), _TINY),
        "centroid_root": root, "centroid_rank": _ranks(root), "frequency": _relative(counted(frequency)),
        "rarity": counted(np.log(count / np.maximum(terms.frequency, 1))), "lex": _relative(lex),
        "lex_share": lex * count, "lex_rank": _ranks(lex), "text": _relative(text), "text_rank": _ranks(text),
        "like_before": np.tril(others, -1).max(1), "like_after": np.triu(others, 1).max(1),
        "like_mean": others.mean(1), "linked": (others > _LINKED).mean(1),
        "like_first": alike[told[0]] if told else np.zeros(count),
    }  # fmt: skip


def _relative(values: Floats) -> Floats:
    return values / max(float(values.max(initial=0)), _TINY)


def _ranks(values: Floats) -> Floats:
    """Return the share of units with a higher value; the earlier one of two equal ones is first."""
    ranks = np.empty(len(values))
    ranks[np.argsort(-values, kind="stable")] = np.arange(len(values))
    return ranks / max(len(values) - 1, 1)


def _floats(values: object) -> Floats:
    return np.array([*values], dtype=np.float64)  # type: ignore[misc]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
