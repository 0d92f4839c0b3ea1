"""A deterministic, rule-based sentence splitter for ROUGE-Lsum, which compares sentence by sentence.

Nothing is learned or downloaded; the same text gives the same sentences on every machine. `RULES` names the
version of the rules and is part of the ROUGE signature: change it when a rule changes.

The rules, in order:
1. A blank line ends a sentence; a single line break is white space.
2. Full stops of scripts without spaces or with their own punctuation (Chinese, Japanese, Devanagari, Urdu,
   Armenian, Ethiopic, Burmese, Khmer, Arabic question mark ...) end one. If a closing quote or bracket follows,
   they do so only before white space or the text's end: Japanese continues after a quoted sentence.
3. `.`, `!`, `?` and `…` end one only before white space or the text's end, so decimals, versions, times,
   addresses and file names stay whole. A missing space ("end.Next") is therefore not repaired.
4. A full stop or ellipsis before a lower-case letter ends nothing, nor does `!` or `?` before a closing quote
   and a lower-case letter.
5. A single full stop ends nothing after a title or an abbreviation that needs a continuation ("Dr.", "e.g."). Nor
   does it after "No.", "Fig." and the like before a digit, or after the number that opens a sentence ("1. First").
6. After initials, dotted abbreviations and those that may close a sentence ("J.", "U.S.", "etc.", "Inc."),
   it ends one only before a common opening word ("The", "He", "However").

Known limit: ordinals written with a full stop (German "3. Oktober") are split before a capital letter.
"""

from __future__ import annotations

import re

RULES = "precis-rules-1"

_OWN_STOPS = "。！？｡．؟۔।॥։።፧။។៕‼⁇⁈⁉"
_SPACED_STOPS = ".!?…"
_CLOSERS = "\"'”’»›)]}」』】）》〉］｝"
_OPENERS = "\"'“‘«‹([{「『【（《〈［｛¿¡„-–—•*"

_STOP = re.compile(f"[{re.escape(_OWN_STOPS + _SPACED_STOPS)}]+[{re.escape(_CLOSERS)}]*")
_BLANK_LINE = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NEVER_LAST = _set(
    "mr mrs ms mx dr prof gen sen rep gov capt cpt lt col sgt cmdr maj adm rev pres supt messrs mmes"
    " vs viz cf e.g i.e eg ie ca approx"
)
_BEFORE_DIGIT = _set(
    "no nos nr fig figs eq eqs sec secs ch chap art vol vols p pp para ref refs tab"
    " jan feb mar apr jun jul aug sep sept oct nov dec"
)
_MAY_BE_LAST = _set(
    "st mt hon etc inc ltd co corp bros jr sr esq al resp dept est excl incl"
    " ph.d m.d b.a m.a a.m p.m u.s u.k u.n e.u d.c"
)
_OPENING_WORDS = _set(
    "the a an he she it they we i you his her its their our my this that these those there here"
    " who what when where why how which in on at for from by with after before since while although though"
    " as if but and or so yet then"
    " however meanwhile moreover also later now today no not one some many most all both each every"
)


def split_sentences(text: str) -> list[str]:
    """Split `text` into stripped, non-empty sentences; a run of white space becomes one space.

    Joined by spaces they contain exactly the words and marks of `text`, so the split affects only ROUGE-Lsum.
    """
    sentences = []
    for paragraph in _BLANK_LINE.split(text):
        paragraph = " ".join(paragraph.split())
        start = 0
        for stop in _STOP.finditer(paragraph):
            if _ends_sentence(paragraph, start, stop):
                sentences.append(paragraph[start : stop.end()])
                start = stop.end()
        sentences.append(paragraph[start:])
    return [sentence.strip() for sentence in sentences if sentence.strip()]


def _ends_sentence(text: str, start: int, stop: re.Match[str]) -> bool:
    marks = stop.group().rstrip(_CLOSERS)
    quoted = len(marks) < len(stop.group())
    own = any(mark in _OWN_STOPS for mark in marks)
    rest = text[stop.end() : stop.end() + 80]
    if not rest or (own and not quoted):
        return True
    if rest[0] != " ":
        return False
    if own:
        return True
    following = rest.lstrip(_OPENERS + " ")
    asks = "!" in marks or "?" in marks
    if following[:1].islower() and (quoted or not asks):
        return False
    if marks != ".":
        return True
    return _full_stop_ends(text[start : stop.start()], following)


def _full_stop_ends(before: str, following: str) -> bool:
    """Check whether the full stop between `before` (its sentence so far) and `following` ends the sentence."""
    pieces = before.split()
    if not pieces:
        return True
    word = pieces[-1].lstrip(_OPENERS)
    lowered = word.lower()
    if lowered in _NEVER_LAST or (len(pieces) == 1 and word.isdigit()):
        return False
    if lowered in _BEFORE_DIGIT and following[:1].isdigit():
        return False
    initial = len(word) == 1 and word.isupper()
    if initial or lowered in _MAY_BE_LAST or _DOTTED.fullmatch(word):
        opening = re.match(r"[^\W\d_]+", following)
        return opening is not None and opening[0][0].isupper() and opening[0].lower() in _OPENING_WORDS
    return True
