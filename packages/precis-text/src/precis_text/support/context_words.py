"""Numbers and names of the source next to words that the source has only next to others.

Examples: "2 minutes", if the source has a 2 but only "3 minutes"; "Ann Jones", if it has "Ann Smith" and "Tom Jones". A
word that is not next to a number, or to a name, in the source proves nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise

from precis_text.language import Language
from precis_text.support.numbers import Number, agrees
from precis_text.support.placed_words import Word

_AROUND = 6  # words on each side of a number to search for its context word
_BETWEEN = 4  # most words between two names of the source, "Mayor Dr. Ann Smith"
_SYMBOLS = 25  # characters on each side of a number in which a symbol may apply to several numbers
_GAPS = (" ", "\n", "-", "\u00a0")
_SHORTEST = 3  # fewest letters of a context word
_PERCENT = re.compile(r"\s?(?:%|percent\b|per cent\b|Prozent\b|pour cent\b|por ciento\b)")
# a word before "15 through 25" may precede only other numbers between them
_RANGE = re.compile(r"\s*(?:[-–/]|(?:to|through|and|or|bis|und|oder|à|et|ou|a|y|o)\s)\s*\d")
_CURRENCIES = "$€£¥"
_FOLD = "fold"  # "three-fold": the counted word is elsewhere


class NumberContext:
    """The words and symbols next to the numbers of a source.

    A context word is the content word right after a number, the one right before a number in digits ("version 3"), a
    percent sign or a currency.
    """

    def __init__(
        self, text: str, words: Sequence[Word], numbers: Sequence[Number], language: Language | None
    ) -> None:
        self._language = language
        self._beside: dict[str, list[Number]] = defaultdict(list)
        self._around: dict[str, list[Number]] = defaultdict(list)
        starts = [word.start for word in words]
        for number in numbers:
            first, behind = bisect_left(starts, number.start), bisect_left(starts, number.end)
            if not number.idle:
                for context in self._context(text, words, first, behind, number):
                    self._beside[context].append(number)
            for word in [*words[max(0, first - _AROUND) : first], *words[behind : behind + _AROUND]]:
                self._around[self._stem(word)].append(number)
            near = text[max(0, number.start - _SYMBOLS) : number.end + _SYMBOLS]
            for symbol in ("%", *_CURRENCIES):
                if symbol in near or (symbol == "%" and _PERCENT.search(near)):
                    self._around[symbol].append(number)

    def contradict(self, number: Number, text: str, words: Sequence[Word]) -> bool:
        """Check whether the source has a context word of a number next to other numbers, but not near this one.

        Args:
            text, words: the sentence with the number, and its words.
        """
        starts = [word.start for word in words]
        first, behind = bisect_left(starts, number.start), bisect_left(starts, number.end)
        return any(
            context in self._beside
            and not agrees(number, self._around.get(context.removeprefix("<"), ()), rounded=False)
            for context in self._context(text, words, first, behind, number)
        )

    def _context(
        self, text: str, words: Sequence[Word], first: int, behind: int, number: Number
    ) -> Iterator[str]:
        """Yield the stems next to a number, with "<" for the one before it, and symbols.

        Args:
            first, behind: indices of the first word of the number, and of the first word after it.
        """
        if number.text.endswith("%") or _PERCENT.match(text, number.end):
            yield "%"
        elif behind < len(words) and text[number.end : words[behind].start] in _GAPS:
            yield from self._context_word(words[behind])
        if not number.spelled and not _RANGE.match(text, number.end):
            if first and text[words[first - 1].end : number.start] in _GAPS:
                yield from (f"<{stem}" for stem in self._context_word(words[first - 1]))
            if number.start and text[number.start - 1] in _CURRENCIES:
                yield text[number.start - 1]

    def _context_word(self, word: Word) -> Iterator[str]:
        """Yield the stem of a word if it can be a context word."""
        known, lower = self._language, word.lower
        if len(lower) < _SHORTEST or not lower.isalpha() or lower == _FOLD:
            return
        if known is None or not (
            lower in known.function
            or lower in known.numbers
            or lower in known.scale
            or lower in known.rounded
        ):
            yield self._stem(word)

    def _stem(self, word: Word) -> str:
        return word.lower if self._language is None else self._language.stem(word.lower)


class NameContext:
    """The capitalized words that are next to each other in a source."""

    def __init__(self, text: str, words: Sequence[Word], language: Language | None) -> None:
        self._text, self._words, self._language = text, words, language

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for at, word in enumerate(self._words):
            found[self._stem(word)].append(at)
        return found

    @cached_property
    def _sides(self) -> tuple[frozenset[str], frozenset[str]]:
        """Stems before another capitalized word, and after one."""
        together = [
            (self._stem(one), self._stem(two))
            for one, two in pairwise(self._words)
            if _is_plain(one) and _is_plain(two) and self._text[one.end : two.start] in (" ", "\n")
        ]
        return frozenset(one for one, _ in together), frozenset(two for _, two in together)

    def contradicted(self, run: Sequence[Word]) -> Iterator[tuple[Word, Word]]:
        """Yield neighbours in a name that the source has only next to other names, and that nothing in it joins.

        "President Smith" and "Ann Smith" join "President Ann Smith".
        """
        for one, two in pairwise(run):
            if not (_is_plain(one) and _is_plain(two)):
                continue
            before, behind = self._sides
            if self._stem(one) not in before or self._stem(two) not in behind:
                continue
            if not any(self._are_near(one, other) and self._are_near(other, two) for other in run):
                yield one, two

    def _are_near(self, one: Word, two: Word) -> bool:
        """Check whether two words are near each other in the source; each word is near itself."""
        places = self._places[self._stem(two)]
        return any(abs(at - other) <= _BETWEEN for at in self._places[self._stem(one)] for other in places)

    def _stem(self, word: Word) -> str:
        return word.lower if self._language is None else self._language.stem(word.lower)


def _is_plain(word: Word) -> bool:
    """Check whether only the first letter of a word is a capital; an acronym abbreviates several words."""
    return (
        word.text[0].isupper()
        and len(word.text) > 1
        and not any(letter.isupper() for letter in word.text[1:])
    )
