"""Gives summaries the requested length: caps in words, sentences or tokens, and a minimum number of words.

    requested      | while the model writes                      | afterwards
    ---------------|---------------------------------------------|-------------------------------------------
    `Words(40)`    | room for 40 words and the last sentence     | keep whole sentences up to 40 words
    `Sentences(2)` | room for two long sentences                 | keep the first two
    `Tokens(60)`   | 60 tokens                                   | drop the last sentence if it is unfinished
    `min_words=20` | the end mark is blocked, and no sequence    | -
                   | of three tokens may occur twice             |

A cap never blocks the end mark, so the model may stop early. If the first sentence exceeds the cap, it is truncated at
the end of a word and the summary is marked as unfinished. No summary is longer than its document.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, TypedDict, Unpack, cast, final

from precis_text.config import Settings
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError
from precis_text.language import language_of, languages
from precis_text.sentences import split_sentences
from precis_text.words import length_in_words, word_ends

SENTENCE_ENDS = (".", "!", "?", "。", "！", "？", "।", "؟", "…")
# Coarse steps, so that documents can share a batch without changing it.
_RATIOS = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0)
_BETWEEN = ",;:–—-("
_LONGEST_SENTENCE = 80  # tokens that are enough for one
_BLOCKED = 3  # length of the token sequences that may not repeat while the end mark is blocked

Short = Literal["keep", "write"]


@final
@dataclass(frozen=True, kw_only=True)
class Words(Settings):
    """A cap in words, as counted by `precis_text.words.word_ends`."""

    count: int

    def __post_init__(self) -> None:
        _check("words", self.count, most=20_000)

    def holds(self, text: str, *, tokens: int) -> bool:
        """Return whether a text is within the cap."""
        return length_in_words(text) <= self.count


@final
@dataclass(frozen=True, kw_only=True)
class Sentences(Settings):
    """A cap in sentences."""

    count: int

    def __post_init__(self) -> None:
        _check("sentences", self.count, most=1_000)

    def holds(self, text: str, *, tokens: int) -> bool:
        """Return whether a text is within the cap."""
        return len(split_sentences(text)) <= self.count


@final
@dataclass(frozen=True, kw_only=True)
class Tokens(Settings):
    """A cap in tokens of the model."""

    count: int

    def __post_init__(self) -> None:
        _check("tokens", self.count, most=32_768)

    def holds(self, text: str, *, tokens: int) -> bool:
        """Return whether a text is within the cap."""
        return tokens <= self.count


Cap = Words | Sentences | Tokens


def holds(cap: Cap | None, text: str, count: Callable[[str], int]) -> bool:
    """Return whether a text is within a cap; `count` returns the tokens of a text, for a cap in tokens."""
    return cap is None or cap.holds(text, tokens=count(text) if isinstance(cap, Tokens) else 0)


@final
@dataclass(frozen=True, kw_only=True)
class Length(Settings):
    """The maximum and minimum length of a summary.

    Attributes:
        cap: the maximum; if None, the decoding settings apply.
        min_words: approximate number of words before the end mark is allowed.
        short: the summary of a document that is within the cap, or shorter than the model's summary of it:
            "keep" returns the document, "write" the model's summary.
    """

    cap: Cap | None = None
    min_words: int = 0
    short: Short = "keep"

    def __post_init__(self) -> None:
        if type(self.min_words) is not int:
            raise UserError(f"min_words={self.min_words!r} must be a whole number")
        if self.min_words < 0:
            raise UserError(f"min_words={self.min_words} must be 0 or more")
        if isinstance(self.cap, Words) and self.min_words > self.cap.count:
            raise UserError(f"min_words={self.min_words} is more than words={self.cap.count}")
        if self.min_words > 20_000:
            raise UserError(f"min_words={self.min_words} is above the limit of 20,000")

    def options(self) -> LengthOptions:
        """Return the keyword arguments of `make_length` for this length, the caps that it lacks as None."""
        counts = {name: self.cap.count if type(self.cap) is cap else None for name, cap in _CAPS.items()}
        return LengthOptions(
            words=counts["words"], sentences=counts["sentences"], tokens=counts["tokens"],
            min_words=self.min_words or None, short=self.short,
        )  # fmt: skip

    def keeps(self, document: str, *, tokens: int) -> bool:
        """Return whether the document is its own summary because it is within the cap."""
        return self.short == "keep" and self.cap is not None and self.cap.holds(document, tokens=tokens)


ANY_LENGTH = Length()
_CAPS: dict[str, type[Words | Sentences | Tokens]]
_CAPS = {"words": Words, "sentences": Sentences, "tokens": Tokens}


class LengthOptions(TypedDict, total=False):
    """A length as keyword arguments; `make_length` turns them into a `Length`.

    Attributes:
        words: at most this many words, in whole sentences if the first one fits; see `precis_text.words.word_ends`.
        sentences: at most this many sentences.
        tokens: at most this many tokens of the model. At most one of the three is given.
        min_words: at least about this many words; the model then may not repeat itself to reach it.
        short: the summary of a document that is within the cap, or shorter than the model's summary of it. "keep"
            returns the document itself; "write" returns the model's summary, as tables, questions and scores need.
    """

    words: int | None
    sentences: int | None
    tokens: int | None
    min_words: int | None
    short: Short


LENGTH_OPTIONS = tuple(LengthOptions.__annotations__)


def make_length(**options: Unpack[LengthOptions]) -> Length:
    """Return the requested length as a value.

    Raises:
        UserError: if two caps are given, or a number is below 1 or above its limit.
    """
    for name in options:
        if name not in LENGTH_OPTIONS:
            known = f"a length has {', '.join(LENGTH_OPTIONS)}; `settings` sets beams and the like"
            raise TypeError(f"unexpected keyword argument {name!r}; {known}")
    caps = {name: options.get(name) for name in _CAPS}
    counts = {name: count for name, count in caps.items() if count is not None}
    if len(counts) > 1:
        asked = " and ".join(f"{name}={count}" for name, count in counts.items())
        raise UserError(f"give one of words, sentences and tokens, not {asked}")
    cap: Cap | None = next((_CAPS[name](count=cast(int, count)) for name, count in counts.items()), None)
    return Length(cap=cap, min_words=options.get("min_words") or 0, short=options.get("short", "keep"))


def chosen_length(length: Length | None, options: LengthOptions) -> Length:
    """Return a length that is given as a value or as keyword arguments.

    Raises:
        UserError: if both are given, or the options are invalid.
    """
    if length is None:
        return make_length(**options)
    if options:
        raise UserError(f"length and {' and '.join(options)} exclude each other; give one of them")
    return length


def tokens_per_word(tokens: int, text: str) -> float:
    """Return the tokens per (white-space) word of a text, in coarse steps between 1 and 4."""
    ratio = tokens / max(1, len(text.split()))
    return next((step for step in _RATIOS if ratio <= step), _RATIOS[-1])


def decoding_window(
    settings: GenerationSettings, length: Length, *, ratio: float, document: int
) -> GenerationSettings:
    """Return the settings with token limits for a length, with room to finish the last sentence.

    Args:
        ratio: tokens per word of the document.
        document: tokens of the document. A longer summary is discarded, unless `short` is "write".
    """
    if length.cap is None and not length.min_words:
        return settings
    least = math.ceil(length.min_words * ratio)
    if length.cap is not None:
        room = _room(length.cap, settings, ratio)
        if length.short == "keep":  # coarse, so that documents of all lengths can share a batch
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
    """A text after trimming; `finished` is True if it ends with a sentence, or at the model's end mark."""

    text: str
    finished: bool


def trim(text: str, cap: Cap | None, *, ended: bool) -> Trimmed:
    """Trim a text to a cap: drop an unfinished last sentence and those beyond the cap.

    Args:
        ended: whether the model wrote its end mark, so that the last sentence is complete.
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
        while kept > 1 and length_in_words(beginning_of(text, sentences[:kept])) > cap.count:
            kept -= 1
    short = beginning_of(text, sentences[:kept])
    if isinstance(cap, Words) and length_in_words(short) > cap.count:
        return Trimmed(first_words(short, cap.count), False)
    return Trimmed(short, finished)


def cut_at(text: str, count: int) -> str:
    """Return the first `count` words of a text."""
    return text[: next(islice(word_ends(text), count - 1, None), len(text))]


def first_words(text: str, count: int) -> str:
    """Return the first `count` words of a text, without function words at its end: "for all who" ends with "all"."""
    cut = cut_at(text, count)
    known = languages().get(language_of(text) or "")
    if cut == text or known is None:
        return cut
    words = cut.split(" ")
    while len(words) > 1 and words[-1].strip(_BETWEEN).lower() in known.function | {""}:
        words.pop()
    return " ".join(words).rstrip(_BETWEEN)


def beginning_of(text: str, sentences: list[str]) -> str:
    """Return the start of `text` that contains these sentences, with its line breaks."""
    left = sum(not character.isspace() for sentence in sentences for character in sentence)
    for position, character in enumerate(text):
        if left == 0:
            return text[:position].rstrip()
        left -= not character.isspace()
    return text.rstrip()


def _check(unit: str, count: int, *, most: int) -> None:
    if type(count) is not int:
        raise UserError(f"{unit}={count!r} must be a whole number")
    if count < 1:
        raise UserError(f"a summary of {count} {unit} is empty; use 1 or more")
    if count > most:
        raise UserError(f"{unit}={count} is above the limit of {most:,}")
