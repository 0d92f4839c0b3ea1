"""The 18 input features of the unit scorer, computed from a unit's words and position without a model."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from precis_text.words import unicode_words

_SPEAKER = re.compile(r"[^\s:.!?][^:\n.!?]{0,39}:\s")
_MARKS = "-*#|•>"
_STOPS = (".", "!", "。", "！", "।", "؟")
_ASKS = ("?", "？", "؟")
_COMMON = 0.6  # words in a larger share of the units are ignored


def unit_features(units: Sequence[str], tokens: Sequence[int]) -> NDArray[np.float32]:
    """Return one row of features for each unit of a document.

    Position: share of the document before it, logs of the units before and after, first, last. Size: log of its tokens,
    tokens / 64, logs of the document's units and tokens. Form: a speaker, a question, a full stop, a list mark, digits,
    capitals. Content: mean share of units with its words, share of words in other units, share of new words.

    Args:
        units: texts of the units, in order.
        tokens: number of tokens of each unit.
    """
    count, total = len(units), sum(tokens)
    words = [_content(unicode_words(unit)) for unit in units]
    shared = Counter(word for found in words for word in set(found))
    informative = [[word for word in found if shared[word] <= max(2, _COMMON * count)] for found in words]
    seen: set[str] = set()
    rows = []
    for place, (unit, found, length) in enumerate(zip(units, informative, tokens, strict=True)):
        rows.append([
            place / max(count - 1, 1), math.log1p(place), math.log1p(count - 1 - place), place == 0, place == count - 1,
            math.log1p(length), length / 64, math.log1p(count), math.log1p(total),
            _SPEAKER.match(unit) is not None, unit.rstrip().endswith(_ASKS), unit.rstrip().endswith(_STOPS),
            unit.lstrip()[:1] in _MARKS, _share(map(str.isdigit, unit)), _share(map(str.isupper, unit)),
            _mean([shared[word] / count for word in found]), _mean([shared[word] > 1 for word in found]),
            _mean([word not in seen for word in found]),
        ])  # fmt: skip
        seen.update(found)
    return np.array(rows, dtype=np.float32)


def _content(words: list[str]) -> list[str]:
    """Return the words of three letters and more, or else all; the shortest are particles in most languages."""
    return [word for word in words if len(word) > 2] or words


def _share(found: map[bool]) -> float:
    values = [*found]
    return sum(values) / len(values) if values else 0.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
