"""Which sentences of a source a sentence of a summary seems to rest on: those that share its rarer words."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from precis.data.text.units import extraction_units
from precis.data.text.words import unicode_words

_MOST = 3  # source sentences for one of a summary
_LEAST = 0.15  # share of its words' weight that a source sentence covers at least
_GAIN = 0.1  # share that a further one adds at least

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Aligned:
    """A summary's sentence and up to three source sentences, the closest first, as (start, stop) characters."""

    sentence: Span
    sources: tuple[Span, ...]


def aligned(source: str, summary: str) -> list[Aligned]:
    """Each sentence of the summary with the source sentences that cover its words, rare words counting more."""
    units = extraction_units(source)
    words = [set(unicode_words(unit.text.lower())) for unit in units]
    seen_in = Counter(word for found in words for word in found)
    weights = {word: math.log(1 + len(units) / count) for word, count in seen_in.items()}
    alone = math.log(1 + len(units))  # of a word that the source does not have
    found = []
    for unit in extraction_units(summary):
        left = set(unicode_words(unit.text.lower()))
        whole = sum(weights.get(word, alone) for word in left)
        chosen: list[int] = []
        while len(chosen) < _MOST and units:
            gains = [sum(weights[word] for word in left & here) for here in words]
            best = max(range(len(units)), key=gains.__getitem__)
            if gains[best] < (_GAIN if chosen else _LEAST) * whole or not gains[best]:
                break
            chosen.append(best)
            left -= words[best]
        found.append(Aligned((unit.start, unit.stop), tuple((units[n].start, units[n].stop) for n in chosen)))
    return found
