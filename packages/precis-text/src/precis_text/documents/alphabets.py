"""Guess the character set of an old text by its letters.

Latin letters     the first alphabet that has nearly all of them
other scripts     the one whose ten commonest letters are most of them: the sets share their bytes
East Asia         the one whose commonest signs are frequent: the sets share their bytes, and words have many signs
"""

from __future__ import annotations

import re

from precis_text.language import language_of
from precis_text.tables import read_table

_ENOUGH = 0.97  # of the letters beyond ASCII that one alphabet must have
_WESTERN = ("Western European", "cp1252")
_TABLE = read_table("documents/alphabets.toml")
_ALPHABETS, _SCRIPTS, _EAST = (_TABLE[name] for name in ("alphabets", "scripts", "east"))
_FREQUENT, _FEWEST = 0.18, 4  # least share of such signs among those beyond ASCII, and their least number
_COMMON = 0.4  # of the letters beyond ASCII that these ten must be
_FEWEST_BEYOND, _MOST_BEYOND = 2, 0.2  # bytes beyond ASCII of a text, and their largest share
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f\x81\x8d\x8f\x90\x9d]")
_SIGNS = "’‘“”„«»–—…¿¡°²³¼½¾±×€£·©®™\u00a0•§،؛؟´"
"""Signs of punctuation, which every language may have."""
_IN_A_WORD = re.compile(
    "[²³¹º¼½¾][a-zà-öø-ÿœšž]|[a-zà-öø-ÿœšž][¼½¾¿]", re.IGNORECASE
)  # letters of other sets


def guessed(content: bytes) -> tuple[str, str]:
    """Return the name and codec of the character set that explains the letters best; Western European if none does.

    Args:
        content: a text that is not UTF-8.
    """
    if east := _of_the_east(content):
        return east
    for name, codec, letters, *_ in _ALPHABETS:
        if _share(content, codec, letters) >= _ENOUGH:
            return name, codec
    shares = {(name, codec): _share(content, codec, letters) for name, codec, letters in _SCRIPTS}
    best = max(shares, key=lambda each: shares[each])
    return best if shares[best] >= _COMMON else _WESTERN


def is_western(content: bytes) -> bool:
    """Check whether a text that is not UTF-8 is surely Windows-1252: a language of it, and letters of its alphabet."""
    beyond = sum(byte > 0x7F for byte in content)
    is_text = _FEWEST_BEYOND <= beyond <= _MOST_BEYOND * len(content) and not _CONTROL.search(content)
    text = content.decode("cp1252", "replace") if is_text else ""
    if not is_text or _IN_A_WORD.search(text):
        return False
    language = language_of(text)
    return any(
        language in languages[0].split() and _share(content, codec, letters) >= _ENOUGH
        for _, codec, letters, *languages in _ALPHABETS
        if codec == _WESTERN[1]
    )


def _of_the_east(content: bytes) -> tuple[str, str] | None:
    """Return the set of East Asia that decodes a text without a fault into frequent signs; None if none does."""
    best, most = None, _FREQUENT
    for name, codec, signs in _EAST:
        try:
            text = content.decode(codec)
        except UnicodeDecodeError:
            continue
        beyond = [sign for sign in text if sign > "\u2e7f" and sign.isalpha()]
        count = sum(sign in signs for sign in beyond)
        others = sum("\x7f" < sign <= "\u2e7f" and sign.isalpha() for sign in text)
        share = count / (len(beyond) + others) if beyond else 0.0
        if count >= _FEWEST and share > most:
            best, most = (name, codec), share
    return best


def _share(content: bytes, codec: str, letters: str) -> float:
    """Return the share of the letters beyond ASCII that are among these, from 0 to 1."""
    text = content.decode(codec, "replace").lower()
    beyond = [sign for sign in text if sign > "\x7f" and sign not in _SIGNS]
    return sum(sign in letters for sign in beyond) / len(beyond) if beyond else 1.0
