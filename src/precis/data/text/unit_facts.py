"""What the words of a unit and its place tell without a model: 18 numbers that the scorer of units reads."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from precis.data.text.words import unicode_words

_SPEAKER = re.compile(r"[^\s:.!?][^:\n.!?]{0,39}:\s")
_MARKS = "-*#|•>"
_STOPS = (".", "!", "。", "！", "।", "؟")
_ASKS = ("?", "？", "؟")
_COMMON = 0.6  # a word that this share of units has says nothing about one


def unit_facts(units: Sequence[str], tokens: Sequence[int]) -> NDArray[np.float32]:
    """Return one row of numbers for each unit of a document.

    Place: share of the document before it, logs of the units before and behind, first, last. Size: log and share of 64
    of its tokens, logs of the document's units and tokens. Form: a speaker, a question, a full stop, a mark of a list,
    capitals. Content: how many units share its words, the share of words in other units, the share of new words.

    Args:
        units: texts of the units, in order.
        tokens: tokens of each.
    """
    count, total = len(units), sum(tokens)
    words = [_content(unicode_words(unit)) for unit in units]
    shared = Counter(word for found in words for word in set(found))
    telling = [[word for word in found if shared[word] <= max(2, _COMMON * count)] for found in words]
    seen: set[str] = set()
    rows = []
    for place, (unit, found, length) in enumerate(zip(units, telling, tokens, strict=True)):
        rows.append(
            [
                place / max(count - 1, 1),
                math.log1p(place),
                math.log1p(count - 1 - place),
                place == 0,
                place == count - 1,
                math.log1p(length),
                length / 64,
                math.log1p(count),
                math.log1p(total),
                _SPEAKER.match(unit) is not None,
                unit.rstrip().endswith(_ASKS),
                unit.rstrip().endswith(_STOPS),
                unit.lstrip()[:1] in _MARKS,
                _share(map(str.isdigit, unit)),
                _share(map(str.isupper, unit)),
                _mean([shared[word] / count for word in found]),
                _mean([shared[word] > 1 for word in found]),
                _mean([word not in seen for word in found]),
            ]
        )
        seen.update(found)
    return np.array(rows, dtype=np.float32)


def _content(words: list[str]) -> list[str]:
    """Words of three letters and more; the shortest ones are particles in most languages."""
    return [word for word in words if len(word) > 2] or words


def _share(found: map[bool]) -> float:
    values = [*found]
    return sum(values) / len(values) if values else 0.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
