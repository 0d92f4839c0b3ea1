"""Guess the character set of an old text by its letters.

Latin letters     the first alphabet that has nearly all of them
other scripts     the one whose ten commonest letters are most of them: the sets share their bytes
"""

from __future__ import annotations

_ENOUGH = 0.97  # of the letters beyond ASCII that one alphabet must have
_WESTERN = ("Western European", "cp1252")
_ALPHABETS = (
    (*_WESTERN, "äöüß"),
    (*_WESTERN, "àâæçéèêëîïôùûüœÿ"),
    (*_WESTERN, "áéíñóúü"),
    (*_WESTERN, "áâãàçéêíóôõú"),
    (*_WESTERN, "àèéìíòóùúïüç"),
    (*_WESTERN, "æøåéòóôäö"),
    (*_WESTERN, "áéíóúýþæöð"),
    ("Central European", "cp1250", "ąćęłńóśźż"),
    ("Central European", "cp1250", "áčďéěíňóřšťúůýž"),
    ("Central European", "cp1250", "áäčďéíĺľňóôŕšťúýž"),
    ("Central European", "cp1250", "áéíóöőúüű"),
    ("Central European", "cp1250", "čćđšž"),
    ("Central European", "cp1250", "ăâîşţ"),
    ("Turkish", "cp1254", "çğıöşüâîû\u0307"),
)
"""Name, codec and letters beyond ASCII. Western alphabets are tried one by one: together they explain any bytes."""
_SCRIPTS = (
    ("Cyrillic", "cp1251", "оеаинтсрвл"),
    ("Greek", "cp1253", "αοιετσνηυρ"),
    ("Hebrew", "cp1255", "יוהלאשרבתמ"),
    ("Arabic", "cp1256", "اليمنورتهب"),
)
_COMMON = 0.4  # of the letters beyond ASCII that these ten must be
_SIGNS = "’‘“”„«»–—…¿¡°€·©®™\u00a0•§،؛؟´"
"""Signs of punctuation, which every language may have."""


def guessed(content: bytes) -> tuple[str, str]:
    """Return the name and codec of the character set that explains the letters best; Western European if none does.

    Args:
        content: a text that is not UTF-8.
    """
    for name, codec, letters in _ALPHABETS:
        if _share(content, codec, letters) >= _ENOUGH:
            return name, codec
    shares = {(name, codec): _share(content, codec, letters) for name, codec, letters in _SCRIPTS}
    best = max(shares, key=lambda each: shares[each])
    return best if shares[best] >= _COMMON else _WESTERN


def _share(content: bytes, codec: str, letters: str) -> float:
    """Return the share of the letters beyond ASCII that are among these, from 0 to 1."""
    text = content.decode(codec, "replace").lower()
    beyond = [sign for sign in text if sign > "\x7f" and sign not in _SIGNS]
    return sum(sign in letters for sign in beyond) / len(beyond) if beyond else 1.0
