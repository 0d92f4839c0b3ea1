"""Speech without what only a transcript shows: pauses ("um"), repeated words ("the the") and sounds ("[laughter]").

An extract quotes what people said, and newspapers leave the same out of quotations. Words that were not heard
("[inaudible]") keep their mark. `pauses.toml` has the words; some are pauses in one language only: "um" is a German
word.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise

from precis_text.language import language_of

_TABLE = tomllib.loads(files("precis_text").joinpath("pauses.toml").read_text("utf-8"))
_SOUNDS = re.compile(
    rf"[\[({{<](?:{'|'.join(filter(None, _TABLE['sounds'].splitlines()))})[\])}}>]|[♪♫]", re.IGNORECASE
)
_BROKEN_OFF = re.compile(_TABLE["broken_off"], re.IGNORECASE)
UNHEARD = re.compile(_TABLE["unheard"], re.IGNORECASE)
"""What a transcript writes for words that were not heard."""
_BETWEEN_TWO = re.compile("[-–—]|[bcdfghjklmnpqrstvwxz]{1,3}")  # of the same word: a dash, or its beginning
_BEGINNING = re.compile("[bcfgt]r|[bf]l|[cstw]h|s[kmnp]|s?[cpt]r|thr")  # of a word that was broken off
_PART = re.compile(rf"{_BEGINNING.pattern}|[bdfghjklmnpqstvwz]")  # the same, but not in names ("plan b")
_PHRASE = (2, 3)  # words that a speaker says twice
_MARKS = ".,!?…-–"
_ENDS = (".", "!", "?", "…", ":")


def blank_sounds(text: str) -> str:
    """Return a text with spaces in place of sounds, so that places stay and sentences part: "Good. [laughter] The"."""
    return _SOUNDS.sub(lambda sound: " " * len(sound.group()), text)


@dataclass(frozen=True)
class Pauses:
    """The pauses of a transcript.

    Attributes:
        language: ISO 639-1, or None if it is not known.
    """

    language: str | None

    @classmethod
    def of(cls, document: str) -> Pauses:
        """Return the pauses of a document's language."""
        return cls(language_of(document))

    def left_out(self, text: str, *, answers: bool = False) -> str:
        """Return a text on one line without pauses, repetitions and sounds; the text itself if nothing else is there.

        If a pause opened a sentence, its next word gets the capital letter. Sentences such as "Okay." go, too.

        Args:
            answers: whether the text answers a question, so that its first sentence stays.
        """
        words = _table("words", self.language)
        shown = _BROKEN_OFF.sub(" – ", _SOUNDS.sub(" ", text)).split()
        kept: list[str] = []
        is_after, capital = False, False  # whether the last word was a pause, and whether it had a capital
        for word in shown:
            opens = not kept or kept[-1].endswith(_ENDS)
            if _is_pause(word, words):
                capital = capital or (opens and word[0].isupper())
                _close(kept, word, opens=opens)
                is_after = True
            elif is_after and not word.strip(_MARKS) and (opens or word == ","):
                continue
            else:
                kept.append(word[0].upper() + word[1:] if capital and opens else word)
                is_after = capital = False
        told = self._told(_once(kept, self.language), answers=answers)
        return " ".join(told) if any(map(str.isalnum, "".join(told))) else text

    def _told(self, words: Sequence[str], *, answers: bool) -> list[str]:
        """Leave out sentences that say nothing, except an answer."""
        idle = _table("alone", self.language) | {""}
        ends = [place + 1 for place, word in enumerate(words) if word.endswith((".", "!", "…"))]
        told: list[str] = []
        for start, end in pairwise([0, *ends, len(words)]):
            says = {word.lower().strip(_MARKS) for word in words[start:end]} - idle
            told += words[start:end] if says or (answers and start == 0) else []
        return told or list(words)


def _once(words: Sequence[str], language: str | None) -> list[str]:
    """Leave out what a speaker began or said twice: "th the the boat", "on – on deck", "it was it was late".

    A word that people double on purpose ("very very") stays.
    """
    doubled = _table("repeated", language)
    kept: list[str] = []
    for word in words:
        core = word.lower()
        *_, before, last = "", "", *kept
        if last.lower() == core and core in doubled:
            continue
        if before.lower() == core and core in doubled and _BETWEEN_TWO.fullmatch(last):
            kept.pop()
            continue
        broken = _PART if not before.strip(_MARKS) or before.lower() in doubled else _BEGINNING
        if last and core.startswith(last) and broken.fullmatch(last):
            kept.pop()
        kept.append(word)
        for size in _PHRASE:
            again = [each.lower() for each in kept[-2 * size :]]
            if again[:size] == again[size:] and again[0] in doubled and all(map(str.isalpha, again)):
                del kept[-size:]
    return kept


def _is_pause(word: str, words: frozenset[str]) -> bool:
    core = word.strip(_MARKS)
    return core.lower() in words and not (core.isupper() and len(core) > 1)


def _close(kept: list[str], pause: str, *, opens: bool) -> None:
    """Give the mark behind a pause to the word before it: "the boat, um." -> "the boat."; two commas are none."""
    if opens:
        return
    if pause.endswith(_ENDS):
        kept[-1] = kept[-1].rstrip(",") + pause[len(pause.rstrip(_MARKS)) :]
    elif pause.endswith(",") and kept[-1].endswith(","):
        kept[-1] = kept[-1].rstrip(",")


@cache
def _table(name: str, language: str | None) -> frozenset[str]:
    """Return the words of all languages and those of one, in small letters."""
    return frozenset(f"{_TABLE[name].get('all', '')} {_TABLE[name].get(language or '', '')}".split())
