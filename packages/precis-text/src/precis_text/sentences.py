"""A deterministic, rule-based sentence splitter for extracts, length limits and ROUGE-Lsum.

Nothing is learned or downloaded; the same text gives the same sentences on every machine. `RULES` names the
version of the rules and is part of the ROUGE signature: change it when a rule changes.

The rules, in order:
1. A blank line ends a sentence; a single line break is white space. Invisible characters decide nothing.
2. Items of a list within a line ("1. The quay ... 2. The wall ...") open sentences, if they count up from the first.
3. Nothing ends within a quotation or brackets of up to 200 characters; the stop before the closing mark may.
4. Full stops of scripts without spaces or with their own punctuation (Chinese, Japanese, Devanagari, Urdu,
   Armenian, Ethiopic, Burmese, Khmer, Arabic question mark ...) end one, except between digits. If a closing quote or
   bracket follows, they do so only before white space or the text's end: Japanese continues after a quoted sentence.
   A semicolon behind a Greek letter is a question mark.
5. `.`, `!`, `?` and `…` end one only before white space or the text's end, so decimals, versions, times,
   addresses and file names stay whole. A missing space ("planning.The quay") is recognized between two words.
6. They end nothing before a lower-case letter, unless the text contains no capitals. `[...]` and ` . . . ` end nothing.
7. A smiley (":(") before a capital ends a sentence, and one behind a full stop belongs to it.
8. A single full stop ends nothing after a title or an abbreviation that needs a continuation ("Dr.", "e.g."). Nor
   does it after "No.", "Fig." and the like before a digit or a code ("No. F01"), after the number that opens a
   sentence ("1. First"), after an ordinal ("3. März"), or within a date ("1. 3. 2025").
9. After initials, dotted abbreviations and those that may close a sentence ("J.", "U.S.", "etc.", "Inc."),
   it ends one only before a common opening word ("The", "He", "However").

The words are in `sentence_words.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from precis_text.inline_items import item_starts
from precis_text.quoted_spans import QuotedSpans
from precis_text.tables import read_table

RULES = "precis-rules-7"

_TABLE = read_table("sentence_words.toml")
_DATE = re.compile(_TABLE.pop("date"))
_WORDS = {name: frozenset(words.split()) for name, words in _TABLE.items()}
ORDERED = _WORDS["months"] | _WORDS["after_ordinal"]
"""Words behind an ordinal: "3. März"."""

_OWN_STOPS = "。！？｡．؟۔।॥։።፧។៕‼⁇⁈⁉\u037e"
_SPACED_STOPS = ".!?…"
_CLOSERS = "\"'”’»›)]}」』】）》〉］｝"
_LATE_CLOSERS = "“‘«‹"  # close a quotation directly behind a stop: „Ja.“
_OPENERS = "\"'“‘«‹([{「『【（《〈［｛¿¡„-–—•*⁃▪◦‣"
_SMILEY = r"[:;=]['’]?-?[()DP](?= |$)"
_STOP = re.compile(
    rf"(?P<spaced>\.(?: \.)+)"
    rf"|(?P<smiley>(?<= ){_SMILEY})"
    rf"|(?:[{re.escape(_OWN_STOPS + _SPACED_STOPS)}]+|(?<=[\u0370-\u03ff\u1f00-\u1fff]);)"
    rf"(?P<closed>(?:[{re.escape(_CLOSERS + _LATE_CLOSERS)}]| [»›](?=[\s.,;:!?)]|$))*)(?: {_SMILEY})*"
)
_BLANK_LINE = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_ORDINAL = re.compile(r"(?:\d{1,3}\.?[/–-])?\d{1,3}|[IVX]{1,5}")  # "11./12. Mai"
_NUMBERING = re.compile(r"\(?(?:\d{1,3}(?:\.\d{1,3})*|[IVX]{1,5}|[A-Za-z])")
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_WORD = re.compile(r"[^\W\d_]+")
_GLUED = re.compile(r"(?<=[^\W\d_A-Z]{2})[.!?](?=[A-Z][a-z]*[ ,])")
_GREEK_WORD = re.compile("[\u0370-\u03ff\u1f00-\u1fff]{5,}")
_ELIDED = re.compile(r"^[^\W\d_]{1,4}['’](?=[^\W\d_])")  # Italian "l'Ing."
_STREET = "str"  # "Hafenstr. 12"
_LOOK_BACK = 200  # characters that decide about a stop
_SHORTEST_EVENING = 4  # words before "p.m." of a sentence that may end there before a title


def split_sentences(text: str) -> list[str]:
    """Split `text` into stripped, non-empty sentences; a run of white space becomes one space.

    Joined by spaces they contain exactly the words and marks of `text`, so the split affects only ROUGE-Lsum.
    """
    is_lower = not any(map(str.isupper, text))
    sentences = []
    for paragraph in _BLANK_LINE.split(text):
        paragraph = " ".join(paragraph.split())
        start = 0
        for end in _ends(paragraph, is_lower=is_lower):
            sentences.append(paragraph[start:end])
            start = end
        sentences.append(paragraph[start:])
    return [sentence.strip() for sentence in sentences if sentence.strip()]


def _ends(paragraph: str, *, is_lower: bool) -> list[int]:
    """Return the offsets in a paragraph on one line at which a sentence ends and another one follows."""
    if not _INVISIBLE.search(paragraph):
        return [*_Paragraph(paragraph, is_lower=is_lower)]
    kept = [place for place, sign in enumerate(paragraph) if not _INVISIBLE.match(sign)]
    places: list[int] = []  # of the characters of the text below, in which a run of spaces is one
    for place in kept:
        if not (paragraph[place] == " " and places and paragraph[places[-1]] == " "):
            places.append(place)
    text = "".join(map(paragraph.__getitem__, places))
    return [places[end] for end in _Paragraph(text, is_lower=is_lower) if end < len(places)]


class _Paragraph:
    """The ends of the sentences of a paragraph, as an iterable of offsets."""

    def __init__(self, text: str, *, is_lower: bool) -> None:
        self.text, self._is_lower = text, is_lower
        self._held = QuotedSpans(text)
        self._items = [*item_starts(text, counted=_WORDS["counted"])]
        self._dates = {place for found in _DATE.finditer(text) for place in map(found.start, (1, 2, 3))}
        self._is_glued = len([*_GLUED.finditer(text)]) > 1

    def __iter__(self) -> Iterator[int]:
        start, items = 0, iter([*self._items, len(self.text)])
        item = next(items)
        for stop in _STOP.finditer(self.text):
            while item <= stop.start():
                if item > start:
                    yield item
                start, item = max(start, item), next(items)
            end = self._end(start, stop)
            if end is not None:
                yield end
                start = end
        yield from (each for each in (item, *items) if start < each < len(self.text))

    def _end(self, start: int, stop: re.Match[str]) -> int | None:
        """Return where a stop ends the sentence that began at `start`, or None if it does not."""
        if stop.start() in self._dates or self._held.cover(stop.start(), stop.end()):
            return None
        rest = self.text[stop.end() : stop.end() + 80]
        following = rest.lstrip(_OPENERS + " ")
        if stop["smiley"]:
            return stop.end() if following[:1].isupper() else None
        if stop["spaced"]:
            return self._spaced_end(stop, rest, following)
        marks = stop.group().split(" ")[0].rstrip(_CLOSERS + _LATE_CLOSERS)
        if self._ends(start, stop, marks, rest):
            return stop.end()
        return None

    def _spaced_end(self, stop: re.Match[str], rest: str, following: str) -> int | None:
        """Return the end at ` . . . `; an omission behind a full stop belongs to the next sentence."""
        dots = stop.group().count(".")
        is_attached = stop.start() > 0 and self.text[stop.start() - 1] != " "
        if not rest or not following[:1].isupper() or rest[0] != " ":
            return None
        if is_attached:
            return stop.start() + 1 if dots > 3 else stop.end()
        return stop.end() if dots > 3 else None

    def _ends(self, start: int, stop: re.Match[str], marks: str, rest: str) -> bool:
        is_own = any(mark in _OWN_STOPS for mark in marks)
        before = self.text[max(start, stop.start() - _LOOK_BACK) : stop.start()]
        if not rest:
            return True
        if is_own and not stop["closed"]:
            return not (marks == "．" and before[-1:].isdigit() and rest[0].isdigit())
        if rest[0] != " ":
            return self._lacks_space(stop, before, rest)
        if is_own:
            return True
        return self._ends_before_space(before, marks, rest, closed=stop["closed"] or "")

    def _ends_before_space(self, before: str, marks: str, rest: str, *, closed: str) -> bool:
        following = rest.lstrip(_OPENERS + " ")
        is_omission = before[-1:] in ("[", "(") and closed[:1] in ("]", ")")  # [...]
        if is_omission or re.match(" [:;,] ", rest):  # French "Tél. : 12"
            return False
        if following[:1].islower() and not self._may_open(before, following):
            return False
        if marks == ";":
            return not following[:1].islower()
        if marks != ".":
            return not (marks == "!" and _is_name_with_mark(before, following))
        if closed:  # "1.) First" is numbered, too
            return not (closed == ")" and _NUMBERING.fullmatch(before.strip(_OPENERS + " ")))
        return self._full_stop_ends(before, rest, following)

    def _may_open(self, before: str, following: str) -> bool:
        """Check whether a small letter may open a sentence: the text lacks capitals, or a long Greek word ends."""
        words = before.split()
        last = words[-1].lstrip(_OPENERS) if words else ""
        if self._is_lower:
            return len(last) > 1 or last.isdigit()
        return _GREEK_WORD.fullmatch(last) is not None and "\u0370" <= following[0] < "\u2000"

    def _lacks_space(self, stop: re.Match[str], before: str, rest: str) -> bool:
        """Check whether a stop within a token ends a sentence whose space is missing: "planning.The quay"."""
        if stop.group() not in (".", "!", "?"):
            return False
        left = before.rpartition(" ")[2].lstrip(_OPENERS)
        right = rest.partition(" ")[0].rstrip(".,;:!?\"')”’")
        if not left.replace("-", "").replace("’", "").replace("'", "").isalpha() or len(left) < 2:
            return False
        if not right.isalpha() or not right[0].isupper() or (right[1:] and not right[1:].islower()):
            return False
        if left.lower() in _WORDS["never_last"] | _WORDS["may_be_last"] | _WORDS["before_digit"]:
            return False
        return self._is_glued or right.lower() in _WORDS["opening"]

    def _full_stop_ends(self, before: str, rest: str, following: str) -> bool:
        """Check whether the full stop between `before` (its sentence so far) and `rest` ends the sentence."""
        pieces = [piece for piece in before.split() if piece.strip(_OPENERS)]
        if not pieces:
            return True
        word = _ELIDED.sub("", pieces[-1].lstrip(_OPENERS))
        if len(pieces) > 1 and re.fullmatch(r"\d{1,3}\.", pieces[-2]) and pieces[-1][0] in "-–":
            del pieces[-2]  # "dem 1. -3. Jahrhundert"
        is_numbering = len(pieces) == 1 or (len(pieces) == 2 and pieces[0].lower() in _WORDS["numbered"])
        if is_numbering and _NUMBERING.fullmatch(word):
            return False
        is_code = re.match(r"[A-Z]{1,4}[/-]?\d", following) and word in _WORDS["before_code"] and pieces[1:]
        if is_code or _needs_more(word, rest, following) or _is_ordinal(pieces, word, following):
            return False
        if self._is_lower and word == "ms" and not "".join(pieces[:-1])[-1:].isdigit():
            return False  # "ms. jones", not "5 ms."
        is_series = len(pieces) > 1 and re.fullmatch(r"[^\W\d_]\.", pieces[-2]) is not None  # "d. h."
        is_initial = len(word) == 1 and word.isalpha() and (is_series or not word.islower())
        if not (is_initial or _may_be_last(word)):
            return True
        opening = _WORD.match(following)
        if opening is None or not opening[0][0].isupper():
            return self._is_lower and opening is not None and opening[0] in _WORDS["opening"]
        if word.lower().endswith(".m") and opening[0].lower() in _WORDS["titles"]:
            return len(pieces) > _SHORTEST_EVENING
        known = opening[0].lower() in _WORDS["opening"]
        return known or (not is_initial and opening[0].lower() in _WORDS["opening_elsewhere"])


def _needs_more(word: str, rest: str, following: str) -> bool:
    """Check whether an abbreviation needs the text that follows."""
    lowered = word.lower()
    if lowered in _WORDS["never_last"] or word in _WORDS["never_last_capital"]:
        return True
    if following[:1].isdigit() and (
        lowered in _WORDS["before_digit"]
        or lowered.endswith(_STREET)
        or (len(word) == 1 and word.isalpha())
        or rest[1:2] in ("-", "–")
    ):
        return True
    is_letter = len(word) == 1 and word.isalpha()
    return is_letter and re.match(r"[^\W\d_]\.", following) is not None  # "z. B.", "S. A."


def _is_ordinal(pieces: list[str], word: str, following: str) -> bool:
    """Check whether a number with a full stop, after other words, is an ordinal: "3. März", "im 19. Jahrhundert"."""
    if not _ORDINAL.fullmatch(word):
        return False
    found = _WORD.match(following)
    name = found[0].lower() if found else ""
    if name in ORDERED:
        return True
    is_known = name in _WORDS["opening"] or name in _WORDS["opening_elsewhere"]
    first, before = (piece.lower() for piece in ["", "", *pieces][-3:-1])
    is_second = before in ("und", "oder", "bis") and re.fullmatch(r"\d{1,3}\.", first) is not None
    is_counted = before == "als" and first in _WORDS["comparatives"]
    return (
        (before in _WORDS["before_ordinal"] or is_second) and not is_counted and bool(name) and not is_known
    )


def _may_be_last(word: str) -> bool:
    """Check whether an abbreviation may close a sentence."""
    return (
        word.lower() in _WORDS["may_be_last"]
        or word in _WORDS["may_be_last_capital"]
        or _DOTTED.fullmatch(word) is not None
    )


def _is_name_with_mark(before: str, following: str) -> bool:
    """Check whether "!" belongs to a name: "Yahoo! Japan"."""
    word = before.rpartition(" ")[2].lstrip(_OPENERS)
    opening = _WORD.match(following)
    is_name = word[:1].isupper() and word.lower() in _WORDS["exclaimed"]
    return is_name and (opening is None or opening[0].lower() not in _WORDS["opening"])
