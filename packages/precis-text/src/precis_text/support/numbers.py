"""Numbers in a text, in any notation: 1,000 = 1.000 = one thousand; 3.5 million; 50% = half; 3rd; III.

A written number may have several values ("1.000" is a thousand in Berlin and one in Boston), so each has a set of them.
Two numbers agree if their sets intersect. That errs on the side of no mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from precis_text.language import Language
from precis_text.support.placed_words import Word, words_of

_DIGITS = re.compile(r"\d+(?:[.,'’\u00a0\u202f\u2009٫٬]\d+)*")
_GROUPED = re.compile(r"\d{1,3}(?:([.,'’\u00a0\u202f\u2009٬])\d{3})(?:\1\d{3})*")
_SHORT = {"k": 1e3, "m": 1e6, "mn": 1e6, "mm": 1e6, "b": 1e9, "bn": 1e9, "tn": 1e12}
_CJK = {"十": 1e1, "百": 1e2, "千": 1e3, "万": 1e4, "萬": 1e4, "億": 1e8, "亿": 1e8, "만": 1e4, "억": 1e8}
_ROMAN = re.compile(r"(?=[IVX]{2,})X{0,3}(?:IX|IV|V?I{0,3})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10}
_AFTER = re.compile(r"[\s\u00a0\u202f-]*([^\W\d_]+)")
_DECADE = re.compile(r"['’]?(?:s|er|ern)\b")
_DATE = re.compile(r"\b(?:\d{4}[-/.](\d{1,2})[-/.]\d{1,2}|(\d{1,2})[-/.](\d{1,2})[-/.]\d{2,4})\b")


@dataclass(frozen=True, slots=True)
class Number:
    """A number from `start` to `end`.

    Attributes:
        values: its possible values; empty for a version such as 1.2.3, which only equals itself.
        span: the first and last value that agree with it if it names a range, such as a decade or a century.
        spelled: whether it is written as a word.
    """

    start: int
    end: int
    text: str
    values: frozenset[float]
    span: tuple[float, float] | None = None
    spelled: bool = False
    idle: bool = False


def numbers_of(text: str, language: Language | None, *, words: Sequence[Word] | None = None) -> list[Number]:
    """Find the numbers of a text in order: digits, number words of the language, Roman numerals from II, months."""
    words = words_of(text) if words is None else words
    found = [*_written_in_digits(text, language), *_roman(words)]
    if language is not None:
        taken = {place for number in found for place in range(number.start, number.end)}
        found += [n for n in _spelled(text, words, language) if n.start not in taken]
    return sorted(found, key=lambda number: number.start)


def agrees(number: Number, known: Sequence[Number], *, rounded: bool) -> bool:
    """Check whether a number is among known ones.

    Args:
        rounded: a word before it marks it as inexact, so that a number that rounds to it also counts.
    """
    if not number.values:
        return any(number.text == other.text for other in known)
    if any(number.values & other.values for other in known):
        return True
    if number.span is not None:
        low, high = number.span
        return any(low <= value <= high for other in known for value in other.values)
    if any(o.span is not None and any(o.span[0] <= v <= o.span[1] for v in number.values) for o in known):
        return True
    return any(
        _rounds(value, wanted, digits=1 if rounded else 2)
        for wanted in number.values
        for other in known
        for value in other.values
    )


def _rounds(value: float, wanted: float, *, digits: int) -> bool:
    """Check whether `wanted` has at least `digits` digits, and `value` rounds or truncates to it."""
    written = f"{wanted:.12g}".replace(".", "").lstrip("0").rstrip("0")
    if len(written) < digits or not value or len(written) > 6:
        return False
    ours = f"{value:.12g}".replace(".", "").lstrip("0").rstrip("0")
    if len(ours) <= len(written):
        return False
    cut = len(written)
    near = abs(value - wanted) <= 0.5 * 10 ** -(cut - 1) * abs(wanted) * 10
    return near and (ours.startswith(written) or f"{value:.{cut - 1}e}" == f"{wanted:.{cut - 1}e}")


def month_of(word: Word, language: Language) -> int | None:
    """Return 1 to 12 for a month name with a capital, or for its first three letters before a full stop or a number."""
    lower = word.lower
    if language.code == "en" and not word.text[0].isupper():
        return None
    if lower in language.months:
        return language.months.index(lower) + 1
    short = [month for month in language.months if len(lower) in (3, 4) and month.startswith(lower)]
    return language.months.index(short[0]) + 1 if short and word.text[0].isupper() else None


def months_in_dates(text: str) -> set[int]:
    """Find the possible months of dates in digits."""
    return {int(part) for match in _DATE.finditer(text) for part in match.groups() if part}


def _written_in_digits(text: str, language: Language | None) -> Iterator[Number]:
    for match in _DIGITS.finditer(text):
        written, end = match.group(), match.end()
        values = set(_readings(written))
        span = None
        following = text[end : end + 30]
        if following.startswith("%") or re.match(
            r"\s?(?:%|percent|per cent|Prozent|por ciento|pour cent)", following
        ):
            values |= {value / 100 for value in values}
        after = _AFTER.match(following)
        if after is not None:
            scale, certain = _scale(after, language)
            scaled = {value * scale for value in values} if scale else set()
            values = scaled if certain and scaled else values | scaled
            if scaled and certain:
                end += after.end()
        if len(written) == 4 and written.isdecimal() and written.endswith("0") and _DECADE.match(following):
            span = (float(written), float(written) + (99 if written.endswith("00") else 9))
        if re.match(r"(?:st|nd|rd|th)\s+centur", following) and values:
            span = (100 * (min(values) - 1), 100 * min(values))
        yield Number(match.start(), end, text[match.start() : end], frozenset(values), span)


def _readings(written: str) -> Iterator[float]:
    """Yield the possible values of digits with separators."""
    plain = re.sub(r"\D", "", written)
    if plain == written:
        yield float(written)
        return
    if _GROUPED.fullmatch(written):
        yield float(plain)
    marks = re.sub(r"\d", "", written)
    last = marks[-1]
    if len(marks) == 1 or (len(set(marks[:-1])) == 1 and marks[-1] not in marks[:-1]):
        whole, _, fraction = written.rpartition(last)
        digits = re.sub(r"\D", "", whole)
        yield float(f"{digits}.{fraction}")


def _scale(after: re.Match[str], language: Language | None) -> tuple[float, bool]:
    """Return the factor named by the word after digits, 0 for none, and whether it can mean nothing else."""
    word, touching = after[1].lower(), after.start(1) == 0
    if word[0] in _CJK and touching:
        return _CJK[word[0]], False
    if language is not None and word in language.scale:
        return float(language.scale[word]), True
    return (_SHORT.get(word, 0.0), False) if touching else (0.0, False)


def _roman(words: Sequence[Word]) -> Iterator[Number]:
    for word in words:
        if _ROMAN.fullmatch(word.text):
            values = [_ROMAN_VALUES[letter] for letter in word.text]
            signs = [-1 if value < max(values[at:]) else 1 for at, value in enumerate(values)]
            total = sum(sign * value for sign, value in zip(signs, values, strict=True))
            yield Number(word.start, word.end, word.text, frozenset({float(total)}))


def _spelled(text: str, words: Sequence[Word], language: Language) -> Iterator[Number]:
    """Yield runs of number words, each as one number: twenty-five, one hundred and five, three million."""
    run: list[Word] = []
    for word in words:
        counts = word.lower in language.numbers or word.lower in language.scale
        if run and not _goes_on(text, run, word, counts=counts, language=language):
            yield from _number(text, run, language)
            run = []
        if counts or run:
            run.append(word)
    yield from _number(text, run, language)


def _goes_on(text: str, run: Sequence[Word], word: Word, *, counts: bool, language: Language) -> bool:
    """Check whether a word continues a number: "twenty" and "five" do, "two" and "three" do not."""
    between = text[run[-1].end : word.start]
    if between.strip(" -\n") or not between:
        return False
    if word.lower in language.joins:
        return run[-1].lower in language.scale or language.code != "en"
    if not counts:
        return False
    last = run[-1].lower
    if last in language.joins or last in language.scale or word.lower in language.scale:
        return True
    before, value = language.numbers.get(last, 0), language.numbers.get(word.lower, 0)
    return before >= 20 and before % 10 == 0 and 0 < value < 20


def _number(text: str, run: Sequence[Word], language: Language) -> Iterator[Number]:
    while run and run[-1].lower in language.joins:
        run = run[:-1]
    if not run:
        return
    total = current = 0.0
    for word in run:
        if word.lower in language.scale:
            scale = language.scale[word.lower]
            current = (current or 1) * scale
            if scale >= 1000:
                total, current = total + current, 0.0
        else:
            current += language.numbers.get(word.lower, 0)
    value = total + current
    values = {value, 100 * value} if 0 < value < 1 else {value}
    start, end = run[0].start, run[-1].end
    idle = len(run) == 1 and (run[0].lower in language.idle or run[0].lower in language.scale)
    yield Number(start, end, text[start:end], frozenset(values), spelled=True, idle=idle)
