"""The units of a document with their tokens, counted by any tokenizer and without a model."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from precis_text.units import TextUnit, extraction_units
from precis_text.words import word_ends


@dataclass(frozen=True)
class UnitTokens:
    """A document's units as token ids, without empty units, and the tokens of the whole document."""

    units: tuple[TextUnit, ...]
    ids: tuple[Sequence[int], ...]
    document_tokens: int


@dataclass(frozen=True)
class ReadUnits:
    """A document's units as a scorer reads them.

    Attributes:
        units: their texts and offsets.
        tokens: number of tokens in each.
        read: number of tokens that were read.
        document_tokens: number of tokens in the document.
        pieces: number of inputs that the document was read in.
    """

    units: tuple[TextUnit, ...]
    tokens: tuple[int, ...]
    read: int
    document_tokens: int
    pieces: int

    @classmethod
    def whole(cls, document: UnitTokens) -> ReadUnits:
        """Return a document as read whole."""
        total = document.document_tokens
        return cls(document.units, tuple(map(len, document.ids)), total, total, 1)


@dataclass(frozen=True)
class UnitTokenizer:
    """Splits documents into units, and counts tokens.

    Attributes:
        encode: returns the ids of each text, without control tokens.
        decode: returns the text of ids, without control tokens.
        unknown: the id of what the tokenizer does not know, if it has one.
        most: maximum tokens to read of a document; if None, all.
    """

    encode: Callable[[Sequence[str]], list[list[int]]]
    decode: Callable[[Sequence[int]], str]
    unknown: int | None
    most: int | None = None

    def tokenize(self, documents: Sequence[str]) -> list[UnitTokens | None]:
        """Split documents into units and tokenize them; None for one without known tokens."""
        found = [extraction_units(document) for document in documents]
        rows = iter(self.encode([unit.text for units in found for unit in units]))
        return [self._known(units, [next(rows) for _ in units]) for units in found]

    def counts(self, *texts: str) -> list[int]:
        """Count the tokens of texts."""
        return [len(ids) for ids in self.encode(texts)]

    def beginning(self, text: str, tokens: int) -> str:
        """Return the first words of a text, up to `tokens` tokens, or a part of the first word."""
        ends = [*word_ends(text)]
        fits = bisect_right(ends, tokens, key=lambda end: self.counts(text[:end])[0])
        return text[: ends[fits - 1]] if fits else self.decode(self.encode([text])[0][:tokens])

    def _known(self, units: Sequence[TextUnit], ids: Sequence[list[int]]) -> UnitTokens | None:
        known = [(unit, row) for unit, row in zip(units, ids, strict=True) if row]
        total = sum(len(row) for _, row in known)
        if self.most is not None:
            known = known[: max(1, bisect_right([*accumulate(len(row) for _, row in known)], self.most))]
        if not any(token != self.unknown for _, row in known for token in row):
            return None
        return UnitTokens(tuple(unit for unit, _ in known), tuple(row for _, row in known), total)
