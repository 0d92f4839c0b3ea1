"""Plain text: words divided at line ends ("Veld-" and "mouth") are joined, chats and transcripts become turns.

Each turn gets a line with its speaker, and its time as the place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from precis_text.documents.passages import Passages, Writer
from precis_text.language import language_of
from precis_text.tables import read_table
from precis_text.turns import PROGRAM_LINES, Turn, turns_of, without_quotes, without_stamps
from precis_text.unmarked_speech import language_of_unmarked
from precis_text.word_patterns import WordPatterns

_TABLE = read_table("documents/divided_words.toml")
_DIVIDED = re.compile(_TABLE["divided"])
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_FEWEST = 2  # divided words, from which on a text counts as one of divided words
# Languages in which "-" and a small letter on the next line mostly divide a word, but not in French "peut-\nêtre"
_DIVIDING = ("de", "es", "fr", "it")
_OPTION = re.compile(r"(?:\A|[\s`'\"(\[])--\Z")  # of a command
_ROMANCE = ("es", "fr", "it")  # a single letter may stand at a line's end
_OWN_HYPHEN = re.compile(_TABLE["own_hyphen"])
_JOINING = ("and", "und", "oder", "sowie", "bzw")  # behind "pre-" and "Vor-"
_OR, _ET, _INNER = ("or", "to"), ("et", "ou", "y", "o"), 3  # letters of "in" in "mother-in-law"
_COMPOUND, _ENGLISH = (re.compile(_TABLE[name]) for name in ("compound", "english"))


class DividedWords:
    """The other words of a text, which decide whether a word that the end of a line divides has a hyphen."""

    def __init__(self, text: str, pieces: Sequence[tuple[str, str]]) -> None:
        """Count the words of a text, except the pieces of divided words."""
        self._words = Counter(_WORD.findall(text.lower()))
        self._words.subtract(piece.lower() for pair in pieces for piece in pair)
        self._language = language_of(text)
        self._common = WordPatterns.learnt().words if self._language == "en" else frozenset()

    def hyphen(self, first: str, second: str) -> str:
        """Return what joins the pieces of a divided word: a hyphen, or nothing; "- " in "pre- and postwar"."""
        is_short = first.isupper() or first in ("x", "e")
        is_short = is_short and (len(first) > 1 or self._language not in _ROMANCE)
        first, second = first.lower(), re.split("['’]", second.lower())[0]
        whole, parted = self._words[first + second], self._words[f"{first}-{second}"]
        if whole or parted:
            return "-" if parted > whole else ""
        if self._language == "fr" and _OWN_HYPHEN.fullmatch(f"{first}-{second}"):
            return "-"
        is_kept = is_short or (self._language in ("en", None) and _ENGLISH.fullmatch(f"{first}-{second}"))
        is_known = self._common and (is_kept or first in self._common or self._words[first] > 0)
        if second in _JOINING or second in ((_OR if is_known else ()) if self._common else _ET):
            return "- "
        if is_kept:
            return "-"
        inner, hyphen, _ = second.partition("-")
        if hyphen:
            return "-" if inner in self._common and len(inner) <= _INNER else self.hyphen(first, inner)
        return "-" if is_known and _COMPOUND.fullmatch(f"{first}-{second}") else ""

    def knows(self, first: str, second: str) -> bool:
        """Check whether a divided word is surely one: by its hyphen, its language, or elsewhere in the text."""
        if self.hyphen(first, second) == "-":
            return True
        whole = (first + second).lower()
        is_word = whole in self._common or (self._language in _DIVIDING and min(len(first), len(second)) > 1)
        return is_word or self._words[whole] + self._words[f"{first}-{second}".lower()] > 0


def with_words_joined(text: str) -> tuple[str, int]:
    """Join divided words; each line break moves behind the word or before it, so that no line changes its number.

    A word keeps its hyphen where `DividedWords` says so. Nothing is joined before a capital letter. A single divided
    word is joined only if the text has it elsewhere, if it is a common English word, or in German, Spanish, French or
    Italian.

    Returns:
        The text, and the number of words joined.
    """
    if "-\n" not in text and "\u2010" not in text and "\u00ad" not in text and "- \n" not in text:
        return text, 0
    candidates = [found for found in _DIVIDED.finditer(text) if found.group(4)[0].islower()]
    words = DividedWords(text, [(found[2], found[4]) for found in candidates])
    joined = 0

    def join(found: re.Match[str]) -> str:
        nonlocal joined
        space, first, hyphen, second, end, _ = found.groups()
        is_option = _OPTION.search(text, max(0, found.start(2) - 3), found.start(2)) is not None
        is_sure = is_option or len(candidates) >= _FEWEST or words.knows(first, second)
        if not second[0].islower() or not is_sure:
            return found.group()
        joined += 1
        between = "-" if is_option else words.hyphen(first, second)
        word = f"{first}{between if hyphen == '-' else ''}{second}{end}"
        if found.end() < len(text) and text[found.end()] != "\n":
            return f"{space}{word}\n"
        return f"\n{word}" if space else word  # a line of its own, or the text would get a blank line

    return _DIVIDED.sub(join, text), joined


def passages_of(text: str) -> Passages:
    """Return a text as passages. The stamps of a chat or transcript become places, and its notices are left out."""
    if not turns_of(text):
        return Passages(text)
    own = without_quotes(text)
    plain, notices = PROGRAM_LINES.subn("", own)
    turns, writer = turns_of(plain), Writer()
    if own != text:
        writer.notes.append("quotations and signatures of posts left out")
    if not any(turn.speaker for turn in turns):
        return _spoken(plain, turns, notices)
    writer.add(plain[: turns[0].start].strip())
    between = "\n\n"
    for turn in turns:
        if turn.is_notice:
            notices += bool(turn.text)
            continue
        writer.at(time=turn.time)
        writer.add(turn.line, between=between)
        between = "\n"
    return _noted(writer, notices)


def _noted(writer: Writer, notices: int) -> Passages:
    if notices:
        writer.notes.append(f"{notices:,} {'line' if notices == 1 else 'lines'} of the chat program left out")
    return writer.finished()


def _spoken(text: str, turns: Sequence[Turn], notices: int) -> Passages:
    """Return a transcript without speakers: each piece between two stamps has a time."""
    blanked = without_stamps(text, turns, in_pieces=not language_of_unmarked(text))
    writer, done = Writer(), 0
    writer.add(blanked[: turns[0].start].strip())
    between = "\n\n"
    for turn in turns:
        gap = blanked[done : turn.body]
        between = gap[: len(gap) - len(gap.lstrip())] if done else between
        writer.at(time=turn.time)
        body = blanked[turn.body : turn.stop]
        lead = len(body) - len(body.lstrip())
        lines = (between + body[:lead]).count("\n")
        writer.add(body.strip(), between=" " if not lines else "\n" * min(lines, 2))
        done = turn.stop
    return _noted(writer, notices)
