"""Raised characters: marks of footnotes are left out, powers and ordinals keep their meaning.

1931<sup>4</sup> or plan.<sup>3</sup>    a mark: 1931, plan.
10<sup>6</sup>, m<sup>2</sup>            a power: 10⁶, m²
19<sup>th</sup>, M<sup>me</sup>          letters: 19th, Mme
"""

from __future__ import annotations

import re

_RAISED = str.maketrans("0123456789+-−–=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁼⁽⁾ⁿ")
_POWER = re.compile(r"[+\-−–]?\d{1,4}|n|[+\-−–]\w{1,3}")
_MARK = re.compile(r"[\[(]?(?:\d{1,3}|[*†‡§¶#]+)(?:\s?[,;–-]\s?\d{1,3})*[\])]?")
_UNITS = frozenset([
    "m", "km", "cm", "mm", "dm", "µm", "μm", "nm", "hm", "ft", "yd", "mi", "kg", "s", "h", "px", "rad", "vh", "м",
    "км", "см", "мм",
])  # fmt: skip
_WORDS_OF_TWO = frozenset([
    "of", "in", "to", "is", "it", "at", "on", "by", "we", "he", "us", "or", "an", "as", "be", "do", "go", "if",
    "me", "my", "no", "so", "up", "am", "de", "la", "le", "et", "en", "il", "un", "du", "au", "es", "el", "al",
    "da", "di", "si", "ob", "um", "im", "am", "zu", "er",
])  # fmt: skip
_WORD = re.compile(r"(?:^|[^\w.])(\w+)$")


def power(text: str) -> str:
    """Write the exponent of a formula."""
    text = " ".join(text.split())
    raised = text.translate(_RAISED)
    return (
        raised
        if all(letter in "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ" for letter in raised)
        else f"^{text}"
        if len(text) == 1
        else f"^({text})"
    )


def raised_text(text: str, before: str, *, is_linked: bool = False) -> str | None:
    """Return what a raised text reads as; None if it is the mark of a footnote.

    Args:
        text: the raised characters.
        before: the text before them, at least its last word.
        is_linked: whether they link to another place, as marks do.
    """
    text = " ".join(text.split())
    if is_linked and _MARK.fullmatch(text):
        return None
    if _POWER.fullmatch(text) and _has_power(before, text):
        return text.translate(_RAISED)
    return None if _MARK.fullmatch(text) else text


def _has_power(before: str, power: str) -> bool:
    """Check whether the last word of `before` is a base: 10, one digit, one letter, a unit, a bracket."""
    if before.endswith((")", "]")):
        return not power.isdigit() or (len(power) == 1 and before[-2:-1].isalnum() and "=" in before[-40:])
    found = _WORD.search(before[-24:])
    if found is None:
        return False
    word = found.group(1)
    if word == "in":  # inches behind a number, else a word
        return bool(re.search(r"\d\s*in$", before))
    if word.isdigit():
        return word == "10" or len(word) == 1 or not power[0].isdigit()
    short = len(word) <= 2 and word.isascii() and word.isalpha()
    return (short and word not in ("a", "I") and word.lower() not in _WORDS_OF_TWO) or word in _UNITS
