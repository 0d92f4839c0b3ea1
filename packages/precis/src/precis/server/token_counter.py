"""Tokens of documents, counted before the model is touched: by its tokenizer, so that every script has its own rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from tokenizers import Tokenizer


class TokenCounter(Protocol):
    """A counter of tokens, for any thread."""

    def at_least(self, text: str) -> int:
        """Return a lower bound on the tokens of a text, in a fraction of the time."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of each text, without the marks around it."""


class ByTokenizer:
    """A counter with a copy of a fast tokenizer, since encoding for the model changes that one's state."""

    def __init__(self, tokenizer: Any) -> None:
        self._own = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        self._own.no_truncation()
        self._own.no_padding()
        self._longest = max(map(len, self._own.get_vocab()))  # characters

    def at_least(self, text: str) -> int:
        """Return the number of words, or of the longest tokens that it could be; normalizing may halve a text."""
        words = text.split()
        return max(len(words), sum(map(len, words)) // (2 * self._longest))

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of each text."""
        found = self._own.encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(one) for one in found]


class ByBytes:
    """A counter of bytes, for a tokenizer without a fast form: it makes at most one token of a byte."""

    def at_least(self, text: str) -> int:
        """Return the number of words."""
        return len(text.split())

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the bytes of each text."""
        return [len(text.encode()) for text in texts]


def counter_of(tokenizer: Any) -> TokenCounter:
    """Return a counter for a tokenizer of transformers."""
    return ByTokenizer(tokenizer) if tokenizer.is_fast else ByBytes()
