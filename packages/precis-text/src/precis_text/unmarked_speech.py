"""Speech that a program wrote down without full stops and commas: its units are divided where a clause may begin.

A division costs little before "and then" or "so", more before "it is", most elsewhere. The pieces are about as long as
a sentence, and their costs together are the least. `unmarked_speech.toml` has the words.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from precis_text.language import language_of

_MARK = re.compile(r"[.,;!?…](?=[\])}\"'”’»]*(?:\s|$))")
_WORDS_A_MARK = 60  # more words for each mark show that a text has none
_LONGEST = 40  # words of a unit that stays whole
_USUAL, _SPREAD = 18, 6  # words of a piece, and how far they may be from it without much cost
_SHORTEST, _MOST = 7, 40  # words of a piece
_STRONG, _WEAK, _ANYWHERE, _TORN = 0.0, 2.0, 6.0, 12.0  # the costs of a division


@cache
def _words() -> dict[str, tuple[re.Pattern[str], re.Pattern[str], frozenset[str]]]:
    table = tomllib.loads(files("precis_text").joinpath("unmarked_speech.toml").read_text("utf-8"))
    return {
        code: (
            re.compile(entry["strong"].replace("\n", ""), re.IGNORECASE),
            re.compile(entry["weak"].replace("\n", ""), re.IGNORECASE),
            frozenset(entry["joined"].split()),
        )
        for code, entry in table.items()
    }


def language_of_unmarked(document: str) -> str:
    """Return the language of a text without full stops and commas whose clauses are known; "" for other texts."""
    if len(_MARK.findall(document)) * _WORDS_A_MARK > len(document.split()):
        return ""
    language = language_of(document)
    return language if language in _words() else ""


def pieces_of(words: Sequence[str], language: str) -> list[int]:
    """Return the words at which the pieces of a long unit begin, with the first one."""
    if len(words) <= _LONGEST:
        return [0]
    costs = _costs(words, language)
    best = [0.0] + [float("inf")] * len(words)
    before = [0] * (len(words) + 1)
    for stop in range(_SHORTEST, len(words) + 1):
        for start in range(max(0, stop - _MOST), stop - _SHORTEST + 1):
            cost = best[start] + costs[start] + ((stop - start - _USUAL) / _SPREAD) ** 2
            if cost < best[stop]:
                best[stop], before[stop] = cost, start
    starts, stop = list[int](), len(words)
    while stop:
        stop = before[stop]
        starts.append(stop)
    return starts[::-1]


def _costs(words: Sequence[str], language: str) -> list[float]:
    """Return what a division before each word costs."""
    strong, weak, joined = _words()[language]
    costs = [0.0]
    for place in range(1, len(words)):
        following = " ".join(words[place : place + 4])
        cost = _STRONG if strong.match(following) else _WEAK if weak.match(following) else _ANYWHERE
        costs.append(cost + (_TORN if words[place - 1].lower() in joined else 0.0))
    return costs
