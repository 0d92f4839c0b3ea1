"""Words in any script, for ROUGE's Unicode tokenizer and the text statistics.

rouge-score keeps only `[a-z0-9]`, so identical Russian, Arabic or Hindi texts score 0. Here a word is a run of
letters, digits and their combining marks, by Unicode category. In scripts written without spaces (Chinese,
Japanese, Thai, Lao, Khmer, Burmese) each character is a word. On ASCII text the two tokenizers agree token for
token.

We rejected language-specific segmenters (MeCab, jieba): a score should not depend on a dictionary's version.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from functools import lru_cache

_ASCII_WORD = re.compile(r"[a-z0-9]+")

# Zero-width space: the one format character that separates words (Thai, Khmer). All others occur inside words.
_ZERO_WIDTH_SPACE = "\u200b"

# First and last code point of the scripts that are written without spaces between words: Thai and Lao; Burmese; Khmer;
# Tai Le, New Tai Lue; Tai Tham; ideographic iteration mark and zero; Hangzhou numerals; kana repeat marks; Hiragana and
# Katakana; Bopomofo; Bopomofo and Katakana extensions; Han extension A; Han; Burmese extension B; Burmese extension A,
# Tai Viet; Han compatibility; kana supplements; Han extensions B and later.
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x1950, 0x19DF), (0x1A20, 0x1AAF), (0x3005, 0x3007),
    (0x3021, 0x3029), (0x3031, 0x303C), (0x3041, 0x30FF), (0x3100, 0x312F), (0x31A0, 0x31FF), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xA9E0, 0xA9FE), (0xAA60, 0xAADF), (0xF900, 0xFAFF), (0x1B000, 0x1B16F), (0x20000, 0x3FFFF),
)  # fmt: skip


class _Kind(Enum):
    WORD = auto()  # letter or digit: joins its neighbours
    ALONE = auto()  # letter of an unspaced script: a word by itself
    MARK = auto()  # combining mark: belongs to the letter before it
    IGNORED = auto()  # joiners, soft hyphens, direction marks: dropped
    BREAK = auto()  # everything else


@lru_cache(maxsize=65536)
def _kind(character: str) -> _Kind:
    category = unicodedata.category(character)
    if category[0] == "M":
        return _Kind.MARK
    if category[0] in "LN":
        code = ord(character)
        return _Kind.ALONE if any(first <= code <= last for first, last in _UNSPACED) else _Kind.WORD
    if category == "Cf" and character != _ZERO_WIDTH_SPACE:
        return _Kind.IGNORED
    return _Kind.BREAK


def unicode_words(text: str) -> list[str]:
    """Return the lower-cased words of `text`: NFKC-normalized runs of letters, digits and marks.

    Punctuation, symbols and emoji are dropped, as in rouge-score. Composed and decomposed accents become
    equal, as do full-width and ordinary digits.
    """
    lowered = text.lower()
    if lowered.isascii():
        return _ASCII_WORD.findall(lowered)
    words: list[str] = []
    for chunk in unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower()).split():
        words += _ASCII_WORD.findall(chunk) if chunk.isascii() else _chunk_words(chunk)
    return words


def _chunk_words(chunk: str) -> list[str]:
    words: list[str] = []
    joins = False  # may the next letter continue the last word?
    marks = False  # may the next mark?
    for character in chunk:
        kind = _kind(character)
        if kind is _Kind.IGNORED:
            continue
        if kind is _Kind.BREAK:
            joins = marks = False
        elif (kind is _Kind.WORD and joins) or (kind is _Kind.MARK and marks):
            words[-1] += character
        else:
            words.append(character)
            joins, marks = kind is not _Kind.ALONE, True
    return words


def count_words(text: str) -> int:
    """Count the words of `text` as a reader would: chunks between white space that contain a letter or digit.

    In scripts written without spaces every character counts. `"don't"` and `"3.5"` are one word each.
    """
    total = 0
    for chunk in text.split():
        if chunk.isascii():
            total += _ASCII_WORD.search(chunk.lower()) is not None
            continue
        words = unicode_words(chunk)
        alone = sum(_kind(word[0]) is _Kind.ALONE for word in words)
        total += alone + (len(words) > alone)
    return total


def word_ends(text: str) -> Iterator[int]:
    """Yield the end of each word of `text`. For a word limit, any chunk between white space is a word.

    In scripts written without spaces every character is a word, with the marks after it.
    """
    for chunk in re.finditer(r"\S+", text):
        if not chunk.group().isascii():
            yield from _ends_inside(chunk.group(), chunk.start())
        yield chunk.end()


def _ends_inside(chunk: str, start: int) -> Iterator[int]:
    """Yield the ends of all words but the last in a chunk that starts at `start`."""
    before: _Kind | None = None  # of the last letter
    for place, character in enumerate(chunk, start=start):
        kind = _kind(character)
        if kind not in (_Kind.WORD, _Kind.ALONE):
            continue
        if before is not None and _Kind.ALONE in (kind, before):
            yield place
        before = kind


def length_in_words(text: str) -> int:
    """Return the length of `text` as a word limit counts it; see `word_ends`."""
    return sum(1 for _ in word_ends(text))


def non_latin_share(texts: Iterable[str]) -> float:
    """Return the share (0 to 1) of letters that are not Latin, with or without accents; 0 without letters."""
    return _share_of_letters(texts, lambda letter: not (letter.isascii() or _is_latin(letter)))


def beyond_ascii_share(texts: Iterable[str]) -> float:
    """Return the share (0 to 1) of letters beyond a to z, accented ones included; 0 without letters."""
    return _share_of_letters(texts, lambda letter: not letter.isascii())


def unspaced_share(texts: Iterable[str]) -> float:
    """Return the share (0 to 1) of letters in scripts written without spaces; 0 without letters."""
    return _share_of_letters(texts, lambda letter: _kind(letter) is _Kind.ALONE)


def _share_of_letters(texts: Iterable[str], wanted: Callable[[str], bool]) -> float:
    """Return the share of letters that match `wanted`; ASCII letters never do."""
    letters = found = 0
    for text in texts:
        letters += sum(map(str.isalpha, text))
        found += 0 if text.isascii() else sum(wanted(letter) for letter in filter(str.isalpha, text))
    return found / letters if letters else 0.0


@lru_cache(maxsize=65536)
def _is_latin(character: str) -> bool:
    return "LATIN" in unicodedata.name(character, "")
