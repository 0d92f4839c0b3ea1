"""Abbreviations that a document defines, so that a summary can say what they mean: "APA [alternative polyadenylation]".

The sentence that defines an abbreviation is seldom chosen, and without it the others cannot be understood. Square
brackets are the usual mark of words that a quotation adds. The definitions are those of Schwartz and Hearst (2003, "A
simple algorithm for identifying abbreviation definitions in biomedical text").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain

from precis_text.tables import read_table
from precis_text.units import TextUnit, name_before

_CAPITAL = "[A-ZÀ-ÖØ-ÞΑ-ΩЀ-Я]"
_SHORT = re.compile(rf"(?=(?:[\w-]{{0,9}}{_CAPITAL}){{2}})[^\W_][\w-]{{0,8}}[^\W_]")  # two capitals at least
_BRACKET = re.compile(r"(?P<before>\S)\s{1,2}\((?P<inside>[^()\[\]\n]{2,80})\)")
_LONGEST = 200  # characters before a bracket that may hold a long form
_SENTENCE = re.compile(r"(?<![A-Z]\.[A-Z])[.!?;:]\s|\n\s*\n")  # "U.S. Department" goes on
_QUOTATION = re.compile(r"[\"“„]([^\"“”„]+ [^\"“”„]+)[\"”“]$")  # of two words or more
_MEANING = re.compile(rf"({_SHORT.pattern}) \[([^\[\]]+)\]")
_TABLE = read_table("abbreviations.toml")
_LINKS, _KNOWN = (frozenset(_TABLE[name].split()) for name in ("links", "known"))
_UNLIKELY, _INNER, _APART = (re.compile(_TABLE[name]) for name in ("unlikely", "inner", "apart"))


@lru_cache(maxsize=4)
def definitions(document: str) -> Mapping[str, str]:
    """Return the long form of each abbreviation that a document defines in one way, in brackets behind it or before it.

    Examples:
        >>> definitions("Sites of alternative polyadenylation (APA) differ. The WTO (World Trade Organization) met.")
        {'APA': 'alternative polyadenylation', 'WTO': 'World Trade Organization'}
    """
    found: dict[str, str] = {}
    twice = set[str]()
    document = document.replace("**", "")
    for bracket in _BRACKET.finditer(document):
        first = re.split(r"[,;]", bracket["inside"])[0].strip()
        end = bracket.end("before")
        before = _SENTENCE.split(document[max(end - _LONGEST, 0) : end])[-1]
        if quoted := _QUOTATION.search(before):
            before = quoted[1]
        words = before.removesuffix("'s").removesuffix("’s").split()
        if _SHORT.fullmatch(first):
            short, long = first, _long_form(first, " ".join(words[-min(len(first) + 5, 2 * len(first)) :]))
        elif words and _SHORT.fullmatch(words[-1]) and _long_form(words[-1], first) == first:
            short, long = words[-1], first
        else:
            continue
        if long and found.setdefault(short, long).lower() != long.lower():
            twice.add(short)
    common = _common(document) if found else frozenset[str]()
    return {short: _inside(long, document, common) for short, long in found.items() if short not in twice}


def _common(document: str) -> frozenset[str]:
    """Return the words that a document has in small letters, and never with a capital inside a sentence."""
    names = map(str.lower, re.findall(r"(?<=[a-z,;] )[A-Z]\w+", document))
    return frozenset(re.findall(r"\w+", document)).difference(names)


def _long_form(short: str, text: str) -> str:
    """Return the end of a text that an abbreviation stands for; "" if there is none.

    These are the words whose first letters it has, or else the fewest that have all of its letters in their order.
    """
    words = text.split()
    letters = short.removesuffix("s").lower()
    for start in range(len(words) - 1, -1, -1):
        firsts = [word[0].lower() for word in words[start:]]
        telling = [word[0].lower() for word in words[start:] if word.lower() not in _LINKS]
        if letters in ("".join(firsts), "".join(telling)) and _names(words[start:], short):
            return " ".join(words[start:])
    first, *others = filter(str.isalnum, short.lower())
    lower, place = text.lower(), len(text)
    for letter in reversed(others):
        place = lower.rfind(letter, 0, max(place, 0))
    starts = [at for at in range(place) if lower[at] == first and not lower[at - 1 : at].isalnum()]
    if not starts:
        return ""
    place = starts[-1]
    start = text.rfind(" ", 0, place + 1) + 1
    is_inner = text[start].lower() != letters[0] and _INNER.search(text[start:place])
    long = text[place if is_inner else start :]
    return long if _names(long.split(), short) else ""


def _inside(long: str, document: str, words: Collection[str]) -> str:
    """Return a long form as inside a sentence: with a small letter if the document has it, or its first word, so."""
    small = long[0].lower() + long[1:]
    is_plain = " " in long and long[1:].islower()
    return small if small in document or (is_plain and small.split()[0] in words) else long


def _names(words: Sequence[str], short: str) -> bool:
    """Check whether words are a name that an abbreviation may have: about as many as it has letters, no sentence."""
    telling = [word for word in words if word.lower() not in _LINKS]
    is_about_as_long = len(telling) <= len(short) and len(" ".join(words)) > len(short) + 2
    repeats = short.removesuffix("s").lower() in map(str.lower, words)
    is_plain = not (repeats or _UNLIKELY.search(" ".join(words)))
    return is_about_as_long and is_plain and words[0].lower() not in _LINKS


def spelled_out(
    document: str, units: Sequence[TextUnit], holds: Callable[[Sequence[TextUnit]], bool]
) -> list[TextUnit]:
    """Return the units of a summary, with what their abbreviations mean; see `meanings_told`."""
    shown = [unit.shown or unit.text.removeprefix(name_before(unit)) for unit in units]

    def with_texts(texts: Sequence[str]) -> list[TextUnit]:
        changed = zip(units, shown, texts, strict=True)
        return [unit if before == text else replace(unit, shown=text) for unit, before, text in changed]

    return with_texts(meanings_told(document, shown, lambda texts: holds(with_texts(texts))))


def meanings_told(
    document: str, texts: Sequence[str], holds: Callable[[Sequence[str]], bool]
) -> Sequence[str]:
    """Return the parts of a summary, with what their abbreviations mean behind the first use of each.

    Nothing is added to an abbreviation that the summary defines, that most readers know, or whose long form it has.

    Args:
        holds: whether the length of the summary has room for such parts.
    """
    used = [*chain.from_iterable(map(_SHORT.findall, texts))]
    if not used or "(" not in document:
        return texts
    found, whole = definitions(document), " ".join(" ".join(texts).lower().split())
    for short in dict.fromkeys(used):
        long = found.get(short)
        if long is None or short in _KNOWN or long.lower() in whole:
            continue
        use = re.compile(_TABLE["use"].replace("<<short>>", re.escape(short)))
        for place, text in enumerate(texts):
            first = use.search(_APART.sub(lambda apart: "[" * len(apart.group()), text))
            if first and not text.isupper():
                longer = f"{text[: first.end()]} [{long}]{text[first.end() :]}"
                tried = [*texts[:place], longer, *texts[place + 1 :]]
                texts = tried if holds(tried) else texts
                break
    return texts


def meanings_in(text: str) -> list[str]:
    """Return what follows abbreviations in square brackets, with these."""
    return [f"[{told[2]}]" for told in _MEANING.finditer(text)]


def without_meanings(text: str, found: Mapping[str, str]) -> str:
    """Return a text without what `spelled_out` adds to the units of a document that has these `definitions`."""
    return _MEANING.sub(lambda told: told[1] if found.get(told[1]) == told[2] else told[0], text)
