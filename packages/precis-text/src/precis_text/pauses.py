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

from precis_text.courtesies import only_greets
from precis_text.language import language_of
from precis_text.sentences import split_sentences

_TABLE = tomllib.loads(files("precis_text").joinpath("pauses.toml").read_text("utf-8"))
# BREAKS_OFF is how a message ends that breaks off, UNHEARD what a transcript writes for words that were not heard.
_SOUNDS, _LAUGHS, _BROKEN_OFF, _UNFOLLOWED, BREAKS_OFF, UNHEARD = (
    re.compile(_TABLE[name].replace("\n", ""), re.IGNORECASE)
    for name in ("sounds", "laughs", "broken_off", "unfollowed", "breaks_off", "unheard")
)
_CUT = re.compile(r"(?:\s-|\s?[–—])+$")
_WORD = r"[^\W\d_][\w'’]*"
_AGAIN = re.compile(rf"\b({_WORD})(?:{_TABLE['broken_off']}\s*\1\b)+", re.IGNORECASE)
_ANEW = re.compile(rf"\b((?:{_WORD} ){{1,5}}{_WORD})(?: [-–—] |—)({_WORD})(?=((?: {_WORD}){{1,7}}))")
_SPELLED = re.compile(r"\b(?:[A-Z]_)+(?=s?\b|\W|$)")  # letters said one by one: "L_C_D_", "C_D_s"
_BETWEEN_TWO = re.compile("[-–—]|[bcdfghjklmnpqrstvwxz]{1,3}")  # of the same word: a dash, or its beginning
_BEGINNING = re.compile("[bcfgt]r|[bf]l|[cstw]h|s[kmnp]|s?[cpt]r|thr")  # of a word that was broken off
_PART = re.compile(rf"{_BEGINNING.pattern}|[bdfghjklmnpqstvwz]")  # the same, but not in names ("plan b")
_PARTICLES = ("on", "in")  # "turned the light on on the quay"
_PHRASAL = re.compile(
    r"(?:turn|switch|log|sign|check|mov|carr|hand|call|hold|keep|leav)\w{0,4}|(?:go|com|tak|bring|put|get)(?:e|e?s|t?ing)?|"
    "went|gone|came|took|taken|brought|held|kept|left|got"
)
_PHRASE = range(2, 7)  # words that a speaker says twice
_ON_PURPOSE = 2  # most words of a phrase that somebody says twice on purpose
_STATEMENT = 4  # fewest words that something can open, or a broken end follow, which has no more of them
_MARKS = ".,!?…-–—"
_ENDS = (".", "!", "?", "…", ":")
_NEGATION = re.compile(r"\b(?:not|no|never|hardly)\b|n['’]t\b")  # "it did – it did not" is no repetition
_PRONOUNS = ("i", "we")  # "I, I think", and not "you and I, I think" or "what I, I alone, know"


def blank_sounds(text: str) -> str:
    """Return a text with spaces in place of sounds, so that places stay and sentences part: "Good. [laughter] The"."""
    return _SOUNDS.sub(lambda sound: " " * len(sound.group()), text)


@dataclass(frozen=True)
class Pauses:
    """The pauses of a transcript.

    Attributes:
        language: ISO 639-1, or None if it is not known.
        spells: whether the transcript marks letters that speakers say one by one: "the L_C_D_".
    """

    language: str | None
    spells: bool = False

    @classmethod
    def of(cls, document: str) -> Pauses:
        """Return the pauses of a document."""
        return cls(language_of(document), len(_SPELLED.findall(document)) > 1)

    def left_out(self, text: str, *, answers: bool = False) -> str:
        """Return a text on one line without pauses, repetitions and sounds; the text itself if nothing else is there.

        If a pause opened a sentence, its next word gets the capital letter. Sentences such as "Okay." go, too.

        Args:
            answers: whether the text answers a question, so that its first sentence stays.
        """
        words = _table("words", self.language)
        spelled = _SPELLED.sub(lambda said: said.group().replace("_", ""), text) if self.spells else text
        shown = _BROKEN_OFF.sub(" – ", _AGAIN.sub(r"\1", _LAUGHS.sub("", _SOUNDS.sub(" ", spelled)))).split()
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
        begun = _UNFOLLOWED.sub("", _ANEW.sub(_said_anew, " ".join(kept)))
        told = self._told(self._once(begun.split()), answers=answers)
        return " ".join(told) if any(map(str.isalnum, "".join(told))) else spelled

    def told(self, text: str) -> str:
        """Return what a summary shows of a text on one line: no "Okay, so", "Good morning." or "And the" at its end."""
        sentences = split_sentences(text)
        told = [
            sentence
            for before, sentence in pairwise(["", *sentences])
            if not only_greets(sentence) or (before.endswith("?") and not only_greets(before))
        ]
        if told and _is_rest(told[-1]) and len(" ".join(told[:-1]).split()) >= _STATEMENT:
            told.pop()
        shown = " ".join(told) if len(" ".join(told).split()) >= _STATEMENT else text
        opening = self._opening_words(shown)
        rest = shown.removeprefix(opening).lstrip()
        return _CUT.sub("", rest[0].upper() + rest[1:] if opening[:1].isupper() else rest)

    def _opening_words(self, text: str) -> str:
        """Return "Okay, so" before a subject or a comma; "Right, we" has one, "Right, left and centre" has none."""
        found = _opener(self.language).match(text)
        rest = text[found.end() :].lower().split() if found else []
        if not found or len(rest) < _STATEMENT:
            return ""
        last, opening = found["last"].lower(), found.group().rstrip()
        is_comma = opening.endswith(",")
        is_subject = rest[0].strip(_MARKS) in _table("subjects", self.language)
        is_purpose = last == "so" and rest[1].strip(_MARKS) in _table("purposes", self.language)
        adjectives = _table("opening_adjectives", self.language)
        opens = is_subject and is_comma if last in adjectives else is_subject or is_comma
        is_greeting = last.split()[0] in _table("greetings", self.language)
        return opening if (opens or is_greeting) and not is_purpose else ""

    def _told(self, words: Sequence[str], *, answers: bool) -> list[str]:
        """Leave out sentences that say nothing, except an answer."""
        idle, tags = _table("alone", self.language) | {""}, _table("tags", self.language) | {""}
        ends = [place + 1 for place, word in enumerate(words) if word.endswith(_ENDS[:4])]
        told: list[str] = []
        for start, end in pairwise([0, *ends, len(words)]):
            asks = end > start and words[end - 1].endswith("?")
            says = {word.lower().strip(_MARKS) for word in words[start:end]} - (tags if asks else idle)
            told += words[start:end] if says or answers else []
            answers = asks
        return told or list(words)

    def _once(self, words: Sequence[str]) -> list[str]:
        """Leave out what a speaker began or said twice: "th the the boat", "on – on deck", "it was it was late".

        A word that people double on purpose ("very very") stays.
        """
        kept: list[str] = []
        for word in words:
            if self._is_said(word, kept):
                continue
            if kept and self._is_begun(kept, word):
                kept.pop()
            kept.append(word)
            for size in _PHRASE:
                if start := self._twice(kept, size):
                    kept[start:] = [kept[start], *kept[1 - size :]]
        return kept

    def _is_said(self, word: str, kept: list[str]) -> bool:
        """Check whether a word repeats the last one, and remove what is between the two."""
        last, before, third = (kept[-back] if len(kept) >= back else "" for back in (1, 2, 3))
        core = word.lower()
        doubled, stammered = _table("repeated", self.language), _table("stammered", self.language)
        if last.lower() == core and core in doubled:
            return core not in _PARTICLES or not any(_PHRASAL.fullmatch(w.lower()) for w in kept[-5:-1])
        if before.lower() == core and core in doubled and _BETWEEN_TWO.fullmatch(last):
            kept.pop()
            return True
        core = core.rstrip(",")
        if core not in stammered:
            return False
        between, said, earlier = (1, before, third) if last == "," else (0, last, before)
        is_free = core not in _PRONOUNS or not earlier or earlier.endswith(_ENDS)
        if said.lower() != (core if between else f"{core},") or not is_free:
            return False
        del kept[len(kept) - between :]
        kept[-1] = kept[-1].rstrip(",")
        return True

    def _is_begun(self, kept: Sequence[str], word: str) -> bool:
        """Check whether the last word is the beginning of a word, which was broken off."""
        last, before = kept[-1], kept[-2] if len(kept) > 1 else ""
        if not word.lower().startswith(last):
            return False
        is_free = not before.strip(_MARKS) or before.lower() in _table("repeated", self.language)
        return (_PART if is_free else _BEGINNING).fullmatch(last) is not None

    def _twice(self, kept: Sequence[str], size: int) -> int:
        """Return where words begin that the last `size` words say again, perhaps after a mark; 0 if they do not.

        Two words around a comma may be two clauses: "Whatever it is, it is good".
        """
        for between in ("", ",", "–", "-"):
            start = -2 * size - len(between)
            if len(kept) < -start or kept[start + size - 1].lower().rstrip(",") != kept[-1].lower().rstrip(
                ","
            ):
                continue
            first, again = kept[start : start + size], kept[-size:]
            cores = [word.lower().rstrip(",") for word in first]
            is_same = cores == [word.lower().rstrip(",") for word in again] and all(map(_is_word, cores))
            if not is_same or (between and kept[-size - 1] != between):
                continue
            is_clause = size == _PHRASE[0] and (between == "," or first[-1].endswith(","))
            is_long = size > _ON_PURPOSE and len(set(cores)) > 1
            if is_long or (cores[0] in _table("repeated", self.language) and not is_clause):
                return start
        return 0


def _said_anew(found: re.Match[str]) -> str:
    """Return words before and after a dash without those that a speaker says again: "I saw—I really saw"."""
    before, after = found[1].split(), f"{found[2]}{found[3]}".lower().split()
    for start in range(len(before) - 1):
        begun = [word.lower() for word in before[start:]]
        anew = after[: len(begun) + 2]
        said, added = iter(anew), " ".join({*anew} - {*begun})
        if begun[0] == anew[0] and all(word in said for word in begun) and not _NEGATION.search(added):
            return " ".join(before[: start + 1])
    return found.group()


def _is_rest(sentence: str) -> bool:
    """Check whether a sentence is a short beginning that breaks off: "And the"."""
    is_short = len(sentence.split()) <= _STATEMENT and not re.search(r"[\d,.!?]", sentence)
    return is_short and BREAKS_OFF.search(sentence) is not None and not _NEGATION.search(sentence)


def _is_word(core: str) -> bool:
    return core.replace("'", "").replace("’", "").isalpha()


def _is_pause(word: str, words: frozenset[str]) -> bool:
    core = word.strip(_MARKS)
    return core.lower() in words and not core.isupper()


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


@cache
def _opener(language: str | None) -> re.Pattern[str]:
    """Return what words match that only open a sentence, in a row."""
    words = "|".join(filter(None, _TABLE["openers"].get(language or "", "(?!)").splitlines()))
    between = rf"(?![\w'’-])[\s{re.escape(_MARKS)}]*"
    return re.compile(rf"(?:(?P<last>{words}){between})+(?<!\S)", re.IGNORECASE)
