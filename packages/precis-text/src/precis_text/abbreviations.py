"""Abbreviations that a document defines, so that a summary can say what they mean: "APA [alternative polyadenylation]".

The sentence that defines an abbreviation is seldom chosen, and without it the others cannot be understood. Square
brackets are the usual mark of words that a quotation adds. The definitions are those of Schwartz and Hearst (2003, "A
simple algorithm for identifying abbreviation definitions in biomedical text").
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import chain, islice

from precis_text.units import TextUnit, as_shown

_CAPITAL = "[A-ZÀ-ÖØ-ÞΑ-ΩЀ-Я]"
_SHORT = re.compile(rf"(?=(?:[\w-]{{0,9}}{_CAPITAL}){{2}})[^\W_][\w-]{{0,8}}[^\W_]")  # two capitals at least
_BRACKET = re.compile(r"(?P<before>\S)\s{1,2}\((?P<inside>[^()\[\]\n]{2,80})\)")
_LONGEST = 200  # characters before a bracket that may hold a long form
_SENTENCE = re.compile(r"[.!?;:]\s|\n\s*\n")
_MEANING = re.compile(rf"({_SHORT.pattern}) \[([^\[\]]+)\]")
# In a long form: signs, names of files, the end of a sentence or a dash between words
_UNLIKELY = re.compile(r"[\[\](){}<>|=,_*`\"“”„‘]|://|\.\w{3}|^\W|(?:[^\W\d_]{5}\.|[:;!?-])$|\s[–—•-]\s")
_VERBS = frozenset(["is", "are", "was", "were"])
_INNER = re.compile(r"[^\W\d_]{3}[-/]$")  # a part of a word that the next one of its parts does not need
_PLACE = re.compile(rf"{_CAPITAL}\w{{1,30}}, $")  # before the state of a town: "Boston, MA"
# An abbreviation, but not in an address, the name of a file, a formula or a longer word
_USE = r"(?<![\w\-–\[(/.:@#$&=\\{])%s(?![\w\-–’'/@&=^*%%+$]|[.:]\w|\s?[(\[])"
_TABLE = tomllib.loads(files("precis_text").joinpath("abbreviations.toml").read_text("utf-8"))
_LINKS, _KNOWN = (frozenset(_TABLE[name].split()) for name in ("links", "known"))


def definitions(document: str) -> dict[str, str]:
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
        before = _SENTENCE.split(document[max(bracket.end("before") - _LONGEST, 0) : bracket.end("before")])[
            -1
        ]
        words = before.removesuffix("'s").removesuffix("’s").split()
        if _SHORT.fullmatch(first):
            short, long = first, _long_form(first, " ".join(words[-min(len(first) + 5, 2 * len(first)) :]))
        elif words and _SHORT.fullmatch(words[-1]) and _long_form(words[-1], first) == first:
            short, long = words[-1], first
        else:
            continue
        if long and found.setdefault(short, long).lower() != long.lower():
            twice.add(short)
    return {short: _inside(long, document) for short, long in found.items() if short not in twice}


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
    place = len(text)
    for at in range(len(short) - 1, -1, -1):
        letter = short[at].lower()
        if not letter.isalnum():
            continue
        place -= 1
        while place >= 0 and (
            text[place].lower() != letter or (at == 0 and place > 0 and text[place - 1].isalnum())
        ):
            place -= 1
        if place < 0:
            return ""
    start = text.rfind(" ", 0, place + 1) + 1
    is_inner = text[start].lower() != letters[0] and _INNER.search(text[start:place])
    long = text[place if is_inner else start :]
    return long if _names(long.split(), short) and _VERBS.isdisjoint(long.lower().split()) else ""


def _inside(long: str, document: str) -> str:
    """Return a long form as inside a sentence: with a small letter if the document has it, or its first word, so."""
    small = long[0].lower() + long[1:]
    is_plain = " " in long and long[1:].islower()
    return small if small in document or (is_plain and f" {small.split()[0]} " in document) else long


def _names(words: Sequence[str], short: str) -> bool:
    """Check whether words are a name that an abbreviation may have: about as many as it has letters, no sentence."""
    telling = [word for word in words if word.lower() not in _LINKS]
    is_about_as_long = len(telling) <= len(short) and len(" ".join(words)) > len(short) + 2
    is_other = short.removesuffix("s").lower() not in map(str.lower, words)
    is_plain = is_other and not _UNLIKELY.search(" ".join(words))
    return is_about_as_long and is_plain and words[0].lower() not in _LINKS


def spelled_out(
    document: str, units: Sequence[TextUnit], holds: Callable[[Sequence[TextUnit]], bool]
) -> list[TextUnit]:
    """Return the units of a summary, with what their abbreviations mean; see `meanings_told`."""
    names = [f"{unit.speaker}: " if unit.text.startswith(f"{unit.speaker}: ") else "" for unit in units]
    shown = [as_shown(unit).removeprefix(name) for name, unit in zip(names, units, strict=True)]

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
    found = definitions(document)
    for short in dict.fromkeys(used):
        long = found.get(short)
        if long is None or short in _KNOWN or _one_line(long) in _one_line(" ".join(texts)):
            continue
        for place, end in islice(_free_uses(short, texts), 1):
            longer = f"{texts[place][:end]} [{long}]{texts[place][end:]}"
            tried = [*texts[:place], longer, *texts[place + 1 :]]
            texts = tried if holds(tried) else texts
    return texts


def _one_line(text: str) -> str:
    return " ".join(text.lower().split())


def _free_uses(short: str, texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the place of each text that uses an abbreviation, with its end: not in code, brackets or lines of capitals.

    Two letters behind a town are its state.
    """
    use = re.compile(_USE % re.escape(short))
    for place, text in enumerate(texts):
        for found in use.finditer(text):
            before = text[: found.start()]
            is_open = before.count("`") % 2 == 1 or before.rfind("[") > before.rfind("]")
            is_state = len(short) == len("MA") and _PLACE.search(before)
            if not (is_open or is_state or text.isupper()):
                yield place, found.end()


def meanings_in(text: str) -> list[str]:
    """Return what follows abbreviations in square brackets, with these."""
    return [f"[{told[2]}]" for told in _MEANING.finditer(text)]


def without_meanings(text: str, document: str) -> str:
    """Return a text without what `spelled_out` adds to the units of a document."""
    if not _MEANING.search(text):
        return text
    found = definitions(document)
    return _MEANING.sub(lambda told: told[1] if found.get(told[1]) == told[2] else told[0], text)
