"""Speech without what only a transcript shows: pauses ("um"), repeated words ("the the") and sounds ("[laughter]").

An extract quotes what people said, and newspapers leave the same out of quotations. Words that were not heard
("[inaudible]") keep their mark. `pauses.toml` has the words; some are pauses in one language only: "um" is a German
word.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from precis_text.courtesies import TABLE as EXCHANGES
from precis_text.courtesies import is_frame, only_greets
from precis_text.language import language_of, languages
from precis_text.sentences import split_sentences
from precis_text.tables import read_table
from precis_text.words import unicode_words

_TABLE = read_table("pauses.toml")
# BREAKS_OFF is how a message ends that breaks off, UNHEARD what a transcript writes for words that were not heard.
_SOUNDS, _LAUGHS, _BROKEN_OFF, _UNFOLLOWED, _BEGUN, _WORD_AGAIN, _PRONOUN_AGAIN, BREAKS_OFF, UNHEARD, _NOTED = (
    re.compile(_TABLE[name], re.IGNORECASE)
    for name in (
        "sounds", "laughs", "broken_off", "unfollowed", "begun", "word_again", "pronoun_again", "breaks_off", "unheard",
        "noted",
    )
)  # fmt: skip
_SMILEY = re.compile(r"(?<=[^\W\d]|[.!?…])\s+[:=]['’]?-?(?:\)+|\(+)\s*$")
_CUT = re.compile(r"(?:\s-|\s?[–—])+$")
_TAIL = re.compile(_TABLE["tail"])  # "That is our aim, so."
_WORD = r"[^\W\d_][\w'’]*+"
_AGAIN = re.compile(rf"\b({_WORD}(?: {_WORD}){{0,4}})(?:{_TABLE['broken_off']}\s*\1\b)+", re.IGNORECASE)
_ADDED = rf"((?: (?:{_TABLE['emphases']}))?)"
_ANEW = re.compile(_TABLE["anew"].format(word=_WORD, added=_ADDED), re.I)  # "I saw—I really saw"
_PAUSED = re.compile(_TABLE["paused"].format(word=_WORD), re.I)  # "Long naps, uh, long naps help"
_JOINED = re.compile(_TABLE["joined"].format(word=_WORD), re.I)  # "We need to and we need to decide"
_TWICE = re.compile(rf"(?<![\w'’-])({_WORD}(?: {_WORD}){{1,5}}?)(?:(?:\s?,| [-–])? \1(?![\w'’-]))+", re.I)
_SPELLED = re.compile(r"\b(?:[A-Z]_)+(?=s?\b|\W|$)")  # letters said one by one: "L_C_D_", "C_D_s"
_BETWEEN_TWO = re.compile("[-–—,]|[bcdfghjklmnpqrstvwxz]{1,3}")  # of the same word: a mark, or its beginning
_BEGINNING = re.compile("[bcfgt]r|[bf]l|[cstw]h|s[kmnp]|s?[cpt]r|thr")  # of a word that was broken off
_PART = re.compile(rf"{_BEGINNING.pattern}|[bdfghjklmnpqstvwz]")  # the same, but not in names ("plan b")
_STATEMENT = 4  # fewest words that something can open, or a broken end follow, which has no more of them
_PAIR = 2  # words that may be a clause
_NEAR = 40  # characters before a phrase that have a word, and at an end that have its dashes
_MARKS = ".,!?…-–—"
_ENDS = (".", "!", "?", "…", ":")
_STATES = re.compile(r"later\W*|.*\bis\b.*", re.IGNORECASE)  # courtesies that state something: "All is well."
_JOINING, _ONWARD = ("and", "und", "et", "y"), ("on", "by", "in", "auf")
_UNITS = ("hm", "em")  # pauses that are no pauses behind a number
_ANSWERS = frozenset(EXCHANGES["answers"].split())
_LIMITED = re.compile("(?:but|if|except|only|unless)\\b", re.IGNORECASE)  # "Yes, but only on Monday"
_DECISIONS = re.compile(EXCHANGES["decisions"], re.IGNORECASE)


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
        serious = _without_smiley(_LAUGHS.sub(_without_laugh, _SOUNDS.sub(" ", _PAUSED.sub(r"\1", spelled))))
        shown = _BROKEN_OFF.sub(" – ", _AGAIN.sub(r"\1", serious)).split()
        kept: list[str] = []
        is_after, capital = False, False  # whether the last word was a pause, and whether it had a capital
        for word in shown:
            opens = not kept or kept[-1].endswith(_ENDS)
            if _is_pause(word, words, kept[-1] if kept else ""):
                capital = capital or (opens and word[0].isupper())
                _close(kept, word, opens=opens)
                is_after = True
            elif is_after and not word.strip(_MARKS) and (opens or word == ","):
                if word == "," and kept[1:] and kept[-1] == "," and self._continues(kept[-2]):
                    kept.pop()
            else:
                kept.append(word[0].upper() + word[1:] if capital and opens else word)
                is_after = capital = False
        begun = _ANEW.sub(r"\1\3\2", _JOINED.sub(r"\1", self._whole_words(" ".join(kept))))
        begun = _BEGUN.sub(_capital_of, _UNFOLLOWED.sub("", begun))
        once = _TWICE.sub(self._said_twice, " ".join(self._once(begun.split())))
        told = self._told(once.split(), answers=answers)
        return " ".join(told) if any(map(str.isalnum, "".join(told))) else spelled

    def told(self, text: str, *, asked: str = "") -> str:
        """Return what a summary shows of a text on one line: no "Okay, so", "Good morning." or "And the" at its end.

        Args:
            asked: the question that the text answers, so that its sentences stay; a decision keeps its "Yes", too.
        """
        text = _NOTED.sub("", text)
        if asked:
            opened = self._opened(text)
            said = {*unicode_words(self._opening_words(text).lower())}
            is_meant = not said.isdisjoint(unicode_words(asked.lower())) or _LIMITED.match(opened)
            return text if is_meant or _DECISIONS.search(f"{asked} {text}") else opened
        return self._opened(self._without_greetings(text))

    def _without_greetings(self, text: str) -> str:
        """Leave out sentences that greet or run a meeting, and a beginning that breaks off at the end."""
        sentences, told = split_sentences(text), list[str]()
        if sentences and _is_rest(sentences[-1]) and len(" ".join(sentences[:-1]).split()) >= _STATEMENT:
            sentences.pop()
        is_followed = False  # whether the next sentence, perhaps an answer, is shown
        for before, sentence in reversed([*pairwise(["", *sentences])]):
            answers = before.endswith("?") and not _says_nothing(before)
            is_asked = is_followed and sentence.endswith("?")
            is_followed = answers or is_asked or not _says_nothing(sentence)
            told = [sentence, *told] if is_followed else told
        return " ".join(told) if len(" ".join(told).split()) >= _STATEMENT else text

    def _opened(self, shown: str) -> str:
        """Leave out what only opens or ends a text: "Okay, so", ", so."."""
        opening = self._opening_words(shown)
        rest = shown.removeprefix(opening).lstrip()
        capital = rest[0].upper() + rest[1:] if opening[:1].isupper() else rest
        told_rest = capital[:-_NEAR] + _CUT.sub("", capital[-_NEAR:])
        return _TAIL.sub("", told_rest) if self.language == "en" else told_rest

    def _opening_words(self, text: str) -> str:
        """Return "Okay, so" before a subject or a comma; "Right, we" has one, "Right, left and centre" has none."""
        found = _opener(self.language).match(text)
        rest = text[found.end() :].lower().split() if found else []
        if not found or len(rest) < _STATEMENT:
            return ""
        last, opening = found["last"].lower(), found.group().rstrip()
        is_comma = opening.endswith(",")
        is_subject = rest[0].strip(_MARKS) in _table("subjects", self.language)
        is_purpose = last == "so" and not _table("purposes", self.language).isdisjoint(rest[1:4])
        adjectives = _table("opening_adjectives", self.language)
        opens = is_subject and is_comma if last in adjectives else is_subject or is_comma
        follows = re.search(r", ([\w'’]+)", " ".join(rest))
        has_clause = follows is not None and follows[1].replace("’", "'") in _table("subjects", self.language)
        is_bound = (
            rest[0].strip(_MARKS).replace("’", "'") in _table("bound", self.language) and not has_clause
        )
        is_greeting = last.split()[0] in _table("greetings", self.language)
        return opening if (opens or is_greeting) and not (is_purpose or is_bound) else ""

    def _told(self, words: Sequence[str], *, answers: bool) -> list[str]:
        """Leave out sentences that say nothing, except an answer, and tags behind a statement: "Right?"."""
        idle, tags = _table("alone", self.language) | {""}, _table("tags", self.language)
        ends = [place + 1 for place, word in enumerate(words) if word.endswith(_ENDS[:4])]
        told: list[str] = []
        for start, end in pairwise([0, *ends, len(words)]):
            asks = end > start and words[end - 1].endswith("?")
            cores = [word.lower().replace("’", "'").strip(_MARKS) for word in words[start:end]]
            following = {word.lower().strip(_MARKS) for word in words[end : end + 3]}
            is_tag = told and "_".join(filter(None, cores)) in tags and _ANSWERS.isdisjoint(following)
            says = not is_tag if asks else {*cores} - idle
            told += words[start:end] if says or answers else []
            answers = asks
        return told or list(words)

    def _whole_words(self, text: str) -> str:
        """Leave out the beginning of a word that its speaker repeats as a whole: "what happ what happens"."""
        return _WORD_AGAIN.sub(r"\1 ", _PRONOUN_AGAIN.sub("", text)) if self.language == "en" else text

    def _continues(self, word: str) -> bool:
        """Check whether a clause continues behind a word, so that it needs no comma: "by , um , the wall"."""
        return word.lower() in _table("repeated", self.language)

    def _once(self, words: Sequence[str]) -> list[str]:
        """Leave out words that a speaker began or said twice, but not on purpose: "th the the very very big"."""
        kept: list[str] = []
        for word in words:
            if self._is_said(word, kept):
                continue
            if kept and self._is_begun(kept, word):
                kept.pop()
            kept.append(word)
        return kept

    def _is_said(self, word: str, kept: list[str]) -> bool:
        """Check whether a word repeats the last one, and remove what is between the two."""
        last, before, third = (kept[-back] if len(kept) >= back else "" for back in (1, 2, 3))
        core, between = word.lower().rstrip(","), _BETWEEN_TWO.fullmatch(last) is not None
        said, earlier = (before, third) if between else (last, before)
        is_free = core in _table("doubled", self.language)
        if between or said.endswith(","):
            begins = last.isalpha() or self._begins(earlier)
            repeats = begins and core in _table("repeated", self.language)
            is_free = repeats or core in _table("stammered", self.language)
        if said.lower().rstrip(",") != core or not is_free:
            return False
        del kept[len(kept) - between :]
        kept[-1] = kept[-1].rstrip(",")
        return True

    def _begins(self, before: str) -> bool:
        """Check whether a sentence or a clause begins behind a word."""
        return not before or before[-1] in _MARKS or before.lower() in _table("alone", self.language)

    def _is_begun(self, kept: Sequence[str], word: str) -> bool:
        """Check whether the last word is the beginning of a word, which was broken off."""
        last, before = kept[-1], kept[-2] if len(kept) > 1 else ""
        if not word.lower().startswith(last):
            return False
        is_free = not before.strip(_MARKS) or before.lower() in _table("repeated", self.language)
        return (_PART if is_free else _BEGINNING).fullmatch(last) is not None

    def _said_twice(self, found: re.Match[str]) -> str:
        """Return a phrase once, unless it may be two clauses: "What it is it is", "I saw the man, the man saw me"."""
        words, said = found[1].lower().split(), found.group()
        repeated = _table("repeated", self.language)
        before = found.string[max(0, found.start() - _NEAR) : found.start()].split()[-1:]
        following = found.string[found.end() : found.end() + _NEAR]
        repeats = words[0] in repeated and not re.search("[-–,]", said)
        goes_on = repeats and words[-1] in _table("doubled", self.language)
        is_phrase = goes_on or (
            (len({*words}) > 1 if len(words) > _PAIR else repeats) and self._begins("".join(before))
        )
        return found[1] if is_phrase and not _is_idiom(words, following, repeated) else said


def _is_idiom(words: Sequence[str], following: str, stammered: Collection[str]) -> bool:
    """Check whether speakers repeat a phrase on purpose: "on and on and on", "and again and again"."""
    if words[0] in _JOINING:
        return words[-1] in _ONWARD or (len(words) == _PAIR and words[-1] not in stammered)
    again = unicode_words(following.lower())[: len(words) - 1]
    return words[-1] in _JOINING and (words[-2] in _ONWARD or again == words[:-1])


def _without_laugh(found: re.Match[str]) -> str:
    """Return the beginning of what follows laughter, with a capital."""
    return "" if found["next"] is None else f" {found['next'].upper()}"


def _capital_of(begun: re.Match[str]) -> str:
    """Return the beginning of what follows a beginning that was broken off, with a capital where a sentence begins."""
    opens = not begun.start() or begun.string[: begun.start()].rstrip()[-1] in ".!?…"
    first: str = begun["next"] or begun["anew"]
    return first.upper() if opens and begun.group()[0].isupper() else first


def _without_smiley(text: str) -> str:
    """Return a text without a smiley at its end, which may close a bracket as well."""
    smiley = _SMILEY.search(text)
    return text if smiley is None or "(" in text[: smiley.start()] else text[: smiley.start()]


def _says_nothing(sentence: str) -> bool:
    """Check whether a sentence greets or runs a meeting, and states nothing."""
    return only_greets(sentence) and (is_frame(sentence) or not _STATES.fullmatch(sentence))


def _is_rest(sentence: str) -> bool:
    """Check whether a sentence is a short beginning that breaks off: "And the"."""
    is_short = len(sentence.split()) <= _STATEMENT and not re.search(r"[\d,.!?]|n['’]t\b", sentence)
    limits = not _limits().isdisjoint(unicode_words(sentence.lower()))
    return is_short and BREAKS_OFF.search(sentence) is not None and not limits


def _is_pause(word: str, words: frozenset[str], before: str) -> bool:
    core = word.strip(_MARKS)
    is_unit = core in _UNITS and before[-1:].isdigit()
    return core.lower() in words and not core.isupper() and not is_unit


def _close(kept: list[str], pause: str, *, opens: bool) -> None:
    """Give the mark behind a pause to the word before it: "the boat, um." -> "the boat."; two commas are none."""
    if opens:
        return
    if pause.endswith(_ENDS):
        kept[-1] = kept[-1].rstrip(",") + pause[len(pause.rstrip(_MARKS)) :]
    elif pause.endswith(",") and kept[-1].endswith(","):
        kept[-1] = kept[-1].rstrip(",")


@cache
def _limits() -> frozenset[str]:
    """Return the words that deny or limit something, in any language: "Except for the"."""
    return frozenset(_TABLE["limits"].split()).union(
        *(w.negations | w.negative for w in languages().values())
    )


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
