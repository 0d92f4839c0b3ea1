"""A linear model over the words of an English sentence: does it sound as if a reader of a summary understands it?

    words -> classes: common words as they are, others by their form -> single ones, pairs, the beginning -> a sum

`experiments/scripts/standalone_sentences.py` learns the weights by logistic regression. The sum is one feature of the
trees in `standalone.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise

_TOKENS = re.compile(r"\w+(?:['’]\w+)?|[^\w\s]")
_ENDINGS = ("ing", "ed", "ly", "tion", "s")
_BEGINNING = 4  # classes whose place counts
_OPENING = 3  # classes that count together at the beginning
_START, _END = "^", "$"


@dataclass(frozen=True)
class WordPatterns:
    """The words that are common enough to stand for themselves, and the weight of each pattern."""

    words: frozenset[str]
    weights: Mapping[str, float]

    @classmethod
    @cache
    def learnt(cls) -> WordPatterns:
        """Return what was learnt from labels."""
        values = json.loads(files("precis_text").joinpath("word_patterns.json").read_text("utf-8"))
        return cls(frozenset(values["words"]), values["weights"])

    def score(self, text: str, before: str, *, is_spoken: bool) -> float:
        """Return the sum of the weights of a sentence: the higher, the more readers stumble.

        Args:
            before: the sentence before it in the document, or "".
        """
        found = set(patterns(text, before, self.words, is_spoken=is_spoken))
        return sum(
            self.weights.get(each, 0.0) for each in sorted(found)
        )  # in one order: sums of floats depend on it


def patterns(text: str, before: str, words: Collection[str], *, is_spoken: bool) -> Iterator[str]:
    """Yield the patterns of a sentence."""
    classes = [_class(token, words) for token in _TOKENS.findall(text)]
    yield from classes
    framed = [_START, *classes, _END]
    yield from (f"{one} {two}" for one, two in pairwise(framed))
    yield from (f"{place}:{each}" for place, each in enumerate(classes[:_BEGINNING]))
    yield " ".join(framed[: _OPENING + 1])
    yield "spoken" if is_spoken else "written"
    last = [_class(token, words) for token in _TOKENS.findall(before)[-1:]]
    yield f"after:{''.join(last)}"


def _class(token: str, words: Collection[str]) -> str:
    """Return a common word in small letters, a mark, "0" for a number, and the form of other words: "C", "c-ing"."""
    lower = token.lower().replace("’", "'")
    if lower in words or not token[0].isalnum():
        return lower
    if token[0].isdigit():
        return "0"
    ending = next((each for each in _ENDINGS if lower.endswith(each)), "")
    return ("C" if token[0].isupper() else "c") + (f"-{ending}" if ending else "")
