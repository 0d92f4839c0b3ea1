"""Scores of a document's units in any language, without a model: central, near the beginning, like the title.

A scorer knows the language that it was trained on. These scores only need words: LexRank on the words without those
that carry no content, the place in the document, and the words of the title.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from precis_text.centrality import in_windows, lex_rank
from precis_text.language import language_of, languages, script_of
from precis_text.units import TextUnit
from precis_text.words import unicode_words

_CENTRAL, _EARLY, _TITLED = 0.4, 0.4, 0.2  # shares of the score
_COMMON = 0.3  # words in a larger share of the units carry no content, if the language has no list
_FEWEST_UNITS = 8  # in a document whose common words are told by their share
_TINY = 1e-12
_SCRIPTS = {"ru": "cyrillic", "zh": "zh", "ja": "ja", "ko": "ko", "el": "el", "he": "he"}
"""Scripts of languages (`script_of`) that are not Latin."""


def scores_in_language(
    units: Sequence[TextUnit], scores: Sequence[float], languages: Sequence[str]
) -> list[float]:
    """Return a scorer's scores, or `central_scores` for a document in another language than the scorer's.

    Args:
        scores: the scorer's, of the units.
        languages: the scorer's languages (`language_of`); if empty, it is used for every document. It is also used for
            text that does not show its language, such as code. A scorer of several languages is also used for
            others in their scripts: on those it was better than `central_scores` (docs/experiments/languages.md).
    """
    return list(scores) if _is_known(units, languages) else central_scores(units)


def _is_known(units: Sequence[TextUnit], languages: Sequence[str]) -> bool:
    if not languages:
        return True
    text = " ".join(unit.text for unit in units)
    found, script = language_of(text), script_of(text) or "latin"
    if found is None or len(languages) > 1:
        return script in {_SCRIPTS.get(code, "latin") for code in languages}
    return found in languages


def central_scores(units: Sequence[TextUnit]) -> list[float]:
    """Return the worth of each unit in a summary, 0 to 1; 0 for headings and asides.

    It is 0.4 of LexRank relative to the highest one, 0.4 / sqrt(1 + units before it), and 0.2 of the share of the
    title's words that it has. The title is the first heading, if it comes before all other units.
    """
    told = [place for place, unit in enumerate(units) if not (unit.heading or unit.aside)]
    if not told:
        return [0.0] * len(units)
    words = content_words(units)
    title = set(words[0]) if units[0].heading else set[str]()
    central = in_windows(lex_rank, [words[place] for place in told])
    central = central / max(float(central.max()), _TINY)
    scores = [0.0] * len(units)
    for before, place in enumerate(told):
        titled = len(title.intersection(words[place])) / max(len(title), 1)
        early = 1 / np.sqrt(1 + before)
        scores[place] = float(_CENTRAL * central[before] + _EARLY * early + _TITLED * titled)
    return scores


def content_words(units: Sequence[TextUnit]) -> list[list[str]]:
    """Return the words of each unit that carry content."""
    words = [unicode_words(unit.text) for unit in units]
    listed = languages().get(language_of(" ".join(unit.text for unit in units)) or "")
    idle = frozenset[str]() if listed is None else listed.function
    if not idle and len(units) >= _FEWEST_UNITS:
        shared = Counter(word for found in words for word in set(found))
        idle = frozenset(word for word, count in shared.items() if count > _COMMON * len(units))
    return [[word for word in found if word not in idle] for found in words]
