"""Gives summaries the length that was asked for: caps in words, sentences or tokens, and a least number of words.

    asked          | while the model writes                      | afterwards
    ---------------|---------------------------------------------|-------------------------------------------
    `Words(40)`    | room for 40 words and the last sentence     | whole sentences up to 40 words
    `Sentences(2)` | room for two long sentences                 | the first two
    `Tokens(60)`   | 60 tokens                                   | the last sentence, if it was not finished
    `min_words=20` | the end mark is held back, and no three     | -
                   | tokens may stand twice in the same order    |

A cap never holds the end mark back: a model that has said everything may stop. Where the first sentence alone is too
long, it is cut at a word's end and the summary says so. No summary is longer than its document.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, final

from precis.config import Settings
from precis.data.text.sentences import split_sentences
from precis.data.text.words import length_in_words, word_ends
from precis.decoding import GenerationSettings
from precis.errors import UserError

SENTENCE_ENDS = (".", "!", "?", "。", "！", "？", "।", "؟", "…")
# Steps, so that documents can share a batch without changing it.
_RATIOS = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0)
_LONGEST_SENTENCE = 80  # tokens that are enough for one
_BLOCKED = 3  # tokens that may not stand twice in the same order where the end mark is held back

Short = Literal["keep", "write"]


@final
@dataclass(frozen=True, kw_only=True)
class Words(Settings):
    """At most this many words; see `precis.data.text.words.word_ends` for what counts as one."""

    count: int

    def __post_init__(self) -> None:
        _check("words", self.count, most=20_000)

    def holds(self, text: str, *, tokens: int) -> bool:
        """Whether a text is within the cap."""
        return length_in_words(text) <= self.count


@final
@dataclass(frozen=True, kw_only=True)
class Sentences(Settings):
    """At most this many sentences."""

    count: int

    def __post_init__(self) -> None:
        _check("sentences", self.count, most=1_000)

    def holds(self, text: str, *, tokens: int) -> bool:
        """Whether a text is within the cap."""
        return len(split_sentences(text)) <= self.count


@final
@dataclass(frozen=True, kw_only=True)
class Tokens(Settings):
    """At most this many tokens of the model's."""

    count: int

    def __post_init__(self) -> None:
        _check("tokens", self.count, most=32_768)

    def holds(self, text: str, *, tokens: int) -> bool:
        """Whether a text is within the cap."""
        return tokens <= self.count


Cap = Words | Sentences | Tokens


@final
@dataclass(frozen=True, kw_only=True)
class Length(Settings):
    """How long a summary may be, and has to be.

    Attributes:
        cap: the most that is allowed; if None, the decoding settings decide.
        min_words: how many words, about, are written before the end mark is allowed.
        short: what becomes of a document that is within the cap as it is, or shorter than what the model wrote of it:
            "keep" gives it back, "write" gives what the model wrote.
    """

    cap: Cap | None = None
    min_words: int = 0
    short: Short = "keep"

    def __post_init__(self) -> None:
        if self.min_words < 0:
            raise UserError(f"min_words={self.min_words} must be 0 or more")
        if isinstance(self.cap, Words) and self.min_words > self.cap.count:
            raise UserError(f"min_words={self.min_words} is more than words={self.cap.count}")
        if self.min_words > 20_000:
            raise UserError(f"min_words={self.min_words} is above the limit of 20,000")

    def keeps(self, document: str, *, tokens: int) -> bool:
        """Whether a document is given back because it is within the cap."""
        return self.short == "keep" and self.cap is not None and self.cap.holds(document, tokens=tokens)


def make_length(
    *,
    words: int | None = None,
    sentences: int | None = None,
    tokens: int | None = None,
    min_words: int | None = None,
    short: Short = "keep",
) -> Length:
    """Return the length that was asked for as a value.

    Raises:
        UserError: if two caps are given, or a number is below 1 or beyond what anybody reads.
    """
    given = {"words": words, "sentences": sentences, "tokens": tokens}
    asked = [f"{name}={count}" for name, count in given.items() if count is not None]
    if asked[1:]:
        raise UserError(f"give one of words, sentences and tokens, not {' and '.join(asked)}")
    cap: Cap | None = None
    if words is not None:
        cap = Words(count=words)
    elif sentences is not None:
        cap = Sentences(count=sentences)
    elif tokens is not None:
        cap = Tokens(count=tokens)
    return Length(cap=cap, min_words=min_words or 0, short=short)


def tokens_per_word(tokens: int, text: str) -> float:
    """Tokens per (white-space) word of this document, in coarse steps between 1 and 4."""
    ratio = tokens / max(1, len(text.split()))
    return next((step for step in _RATIOS if ratio <= step), _RATIOS[-1])


def decoding_window(
    settings: GenerationSettings, length: Length, *, ratio: float, document: int
) -> GenerationSettings:
    """Return the settings with limits in tokens for a length; they leave room to finish the last sentence.

    Args:
        ratio: tokens per word of the document.
        document: tokens of the document. A longer summary would not be kept, unless `short` is "write".
    """
    if length.cap is None and not length.min_words:
        return settings
    least = math.ceil(length.min_words * ratio)
    if length.cap is not None:
        room = _room(length.cap, settings, ratio)
        if length.short == "keep":  # in steps, so that documents of all lengths can share a batch
            room = min(room, 2 ** math.ceil(math.log2(max(document, 1))) + _LONGEST_SENTENCE)
        own = settings.min_tokens if 2 * settings.min_tokens <= room else 0
        settings = replace(settings, min_tokens=min(max(own, least), room), max_tokens=room)
    elif least:
        settings = replace(settings, min_tokens=least, max_tokens=max(settings.max_tokens, 2 * least))
    if length.min_words:
        block = min(settings.no_repeat_ngram or _BLOCKED, _BLOCKED)
        settings = replace(settings, no_repeat_ngram=block)
    return settings


def _room(cap: Cap, settings: GenerationSettings, ratio: float) -> int:
    if isinstance(cap, Words):
        return math.ceil(1.6 * cap.count * ratio) + 16
    if isinstance(cap, Tokens):
        return cap.count
    return max(settings.max_tokens, _LONGEST_SENTENCE * cap.count)


@dataclass(frozen=True)
class Trimmed:
    """A text after trimming; `finished` says that it ends with a sentence, or where the model ended it."""

    text: str
    finished: bool


def trim(text: str, cap: Cap | None, *, ended: bool) -> Trimmed:
    """Bring a text within a cap: drop an unfinished last sentence and those beyond the cap.

    Args:
        ended: whether the model wrote its end mark, so that the last sentence is whole.
    """
    finished = ended or text.rstrip().endswith(SENTENCE_ENDS)
    if cap is None:
        return Trimmed(text, finished)
    sentences = split_sentences(text)
    if not finished and len(sentences) > 1:
        sentences, finished = sentences[:-1], True
    kept = len(sentences)
    if isinstance(cap, Sentences):
        kept = min(kept, cap.count)
    elif isinstance(cap, Words):
        while kept > 1 and length_in_words(_beginning(text, sentences[:kept])) > cap.count:
            kept -= 1
    short = _beginning(text, sentences[:kept])
    if isinstance(cap, Words) and length_in_words(short) > cap.count:
        return Trimmed(first_words(short, cap.count), False)
    return Trimmed(short, finished or kept < len(sentences))


def first_words(text: str, count: int) -> str:
    """Return the first `count` words of a text as they stand there."""
    return text[: next(islice(word_ends(text), count - 1, None), len(text))]


def _beginning(text: str, sentences: list[str]) -> str:
    """As much of `text` as holds these sentences, its line breaks kept."""
    left = sum(not character.isspace() for sentence in sentences for character in sentence)
    for position, character in enumerate(text):
        if left == 0:
            return text[:position].rstrip()
        left -= not character.isspace()
    return text.rstrip()


def _check(unit: str, count: int, *, most: int) -> None:
    if count < 1:
        raise UserError(f"a summary of {count} {unit} is empty; use 1 or more")
    if count > most:
        raise UserError(f"{unit}={count} is above the limit of {most:,}")
