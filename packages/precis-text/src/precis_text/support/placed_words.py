"""Words with their positions, for marks to refer to."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_WORD = re.compile(r"[^\W_][^\W_\u0300-\u036f]*(?:[\u0300-\u036f]+[^\W_]*)*(?:['’][^\W\d_]+)*")
_POSSESSIVE = re.compile(r"['’]s$", re.IGNORECASE)
_NOT = re.compile(r"n['’]t$")


@dataclass(frozen=True, slots=True)
class Word:
    """A word: `text` is the original from `start` to `end`, and `lower` the form for comparison."""

    text: str
    start: int
    end: int

    @property
    def lower(self) -> str:
        """The word in lower case, without a possessive ending."""
        return _POSSESSIVE.sub("", unicodedata.normalize("NFKC", self.text).lower())

    @property
    def is_contracted_not(self) -> bool:
        """True if the word ends with n't."""
        return _NOT.search(self.text.lower()) is not None


def words_of(text: str, *, start: int = 0) -> list[Word]:
    """Return the words of a text that starts at position `start`; hyphens separate words, apostrophes do not."""
    return [Word(match.group(), start + match.start(), start + match.end()) for match in _WORD.finditer(text)]
