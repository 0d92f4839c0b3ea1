"""Speech that a program wrote down without full stops and commas: its units are divided where a clause may begin.

A division costs little before "and then" or "so", more before "it is", most elsewhere. The pieces are about as long as
a sentence, and their costs together are the least. `unmarked_speech.toml` has the words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from precis_text.language import language_of
from precis_text.tables import read_table

_MARK = re.compile(r"[.,;!?…](?=[\])}\"'”’»]*(?:\s|$))")
_WORDS_A_MARK = 60  # more words for each mark show that a text has none
_LONGEST = _MOST = 40  # words of a unit that stays whole, and of a piece
_USUAL, _SPREAD, _SHORTEST = 18, 6, 7  # words of a piece, how far they may be from it, and the fewest
_STRONG, _WEAK, _ANYWHERE, _TORN = 0.0, 2.0, 6.0, 12.0  # the costs of a division


@cache
def _words() -> dict[str, tuple[re.Pattern[str], frozenset[str]]]:
    table = read_table("unmarked_speech.toml")
    patterns = {code: f"(?P<strong>{each['strong']})|{each['weak']}" for code, each in table.items()}
    return {
        code: (re.compile(pattern, re.IGNORECASE), frozenset(table[code]["joined"].split()))
        for code, pattern in patterns.items()
    }


def language_of_unmarked(document: str) -> str:
    """Return the language of a text without full stops and commas whose clauses are known; "" for other texts."""
    is_marked = len(_MARK.findall(document)) * _WORDS_A_MARK > len(document.split())
    language = "" if is_marked else language_of(document) or ""
    return language if language in _words() else ""


def pieces_of(words: Sequence[str], language: str) -> list[int]:
    """Return the words at which the pieces of a long unit begin, with the first one."""
    if len(words) <= _LONGEST:
        return [0]
    best = [(0.0, 0)]  # the least cost of the words so far, and where the last piece of them begins
    costs = [0.0, *(_cost(words, place, language) for place in range(1, len(words)))]
    for stop in range(1, len(words) + 1):
        starts = range(max(0, stop - _MOST), stop - _SHORTEST + 1)
        found = [best[at][0] + costs[at] + ((stop - at - _USUAL) / _SPREAD) ** 2 for at in starts]
        best.append(min(zip(found, starts, strict=True), default=(float("inf"), 0)))
    begins = [len(words)]
    while begins[-1]:
        begins.append(best[begins[-1]][1])
    return begins[:0:-1]


def _cost(words: Sequence[str], place: int, language: str) -> float:
    opens, joined = _words()[language]
    found = opens.match(" ".join(words[place : place + 4]))
    cost = _ANYWHERE if found is None else _WEAK if found["strong"] is None else _STRONG
    return cost + (_TORN if words[place - 1].lower() in joined else 0.0)
