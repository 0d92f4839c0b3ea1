"""Words that look like names: capitals inside a sentence, acronyms, capitals inside a word.

At the start of a sentence a capital proves nothing, so a word there counts only next to another one. In German every
noun has a capital, so only consecutive words ("Angela Merkel") and acronyms are names. Headings, texts without capitals
and scripts without case are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from precis_text.language import Language
from precis_text.support.placed_words import Word

_STARTS = re.compile(r"(?:^|[:!?…•*|>\"“„«‘(\[]|[-–—]\s)\s*[\"“„«‘(\[*_`]*$")
_HEADING = 0.6  # share of capitalized longer words in a sentence above which capitals prove nothing
_NEARLY_ALL, _MANY = 0.85, 5  # the same for text that ends like a sentence
_LONGER = 4  # letters
_JOINED = 6  # fewest letters of a word that the source may write as two
_BEFORE = 20  # characters before a word to examine
_ENDINGS = re.compile(
    "(?:s|es|n|an|ian|ans|ians|ean|ish|ese|i|is|y|ies|ist|ists|ism|er|ers|e|en|em|a|ais|aise|al|ic|ly|ing|ed|d)?"
)
_FREE = 3  # last letters that may differ in languages that decline names
_DECLINING = ("cyrillic", "el", "armenian")


@dataclass(frozen=True)
class Names:
    """The words of a source for comparison with names."""

    text: str = field(repr=False)
    words: Sequence[Word] = field(repr=False)
    script: str | None

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(word.lower for word in self.words)

    @cached_property
    def _squeezed(self) -> str:
        """Only letters and digits, so that "Git Hub" is "GitHub"."""
        return re.sub(r"[\W_]+", "", self.text.lower())

    @cached_property
    def _by_start(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for word in self._known:
            found.setdefault(word[:3], []).append(word)
        return found

    @cached_property
    def _initials(self) -> str:
        """First letters of the capitalized words, in order, in one string; a space separates runs."""
        letters = []
        for word in self.words:
            if word.text[0].isupper():
                letters.append(word.text[0])
            elif len(word.text) > 3:
                letters.append(" ")
        return "".join(letters)

    @cached_property
    def _all_initials(self) -> str:
        return "".join(word.text[0].upper() for word in self.words)

    @cached_property
    def _pairs_of_initials(self) -> frozenset[str]:
        """First letters of two neighbouring words of more than three letters."""
        return frozenset(
            f"{one.text[0]}{two.text[0]}".upper()
            for one, two in pairwise(self.words)
            if min(len(one.text), len(two.text)) > 3
        )

    @cached_property
    def _acronyms(self) -> frozenset[str]:
        return frozenset(w.text for w in self.words if len(w.text) > 1 and w.text.isupper())

    def has(self, word: Word) -> bool:
        """Check whether the source has a word, an inflected form of it, or the words of an acronym."""
        lower = word.lower
        if lower in self._known or self._inflected(lower):
            return True
        if (_is_acronym(word) or len(lower) >= _JOINED) and re.sub(r"[\W_]+", "", lower) in self._squeezed:
            return True
        plain = re.sub(r"[^A-Z]", "", word.text)
        if len(plain) < 2 or lower not in (plain.lower(), f"{plain.lower()}s"):
            return False
        known = self._all_initials if len(plain) > 2 else self._pairs_of_initials
        return plain in known or plain in self._initials

    def has_acronym_of(self, run: Sequence[Word]) -> bool:
        """Check whether the source has the first letters of several words as an acronym."""
        return len(run) > 1 and "".join(word.text[0] for word in run) in self._acronyms

    def _inflected(self, word: str) -> bool:
        for other in self._by_start.get(word[:3], ()):
            shared = 0
            for ours, theirs in zip(word, other, strict=False):
                if ours != theirs:
                    break
                shared += 1
            rest, theirs_rest = word[shared:], other[shared:]
            if shared < 3 or shared < min(len(word), len(other)) - _FREE:
                continue
            if self.script in _DECLINING:
                if shared >= 3 and max(len(rest), len(theirs_rest)) <= _FREE:
                    return True
            elif shared >= 4 and _ENDINGS.fullmatch(rest) and _ENDINGS.fullmatch(theirs_rest):
                return True
        return False


def name_runs(text: str, words: Sequence[Word], language: Language | None) -> list[list[Word]]:
    """Find the runs of neighbouring words in one sentence that look like names."""
    if _is_heading(text, words) and not (language is not None and language.capitalizes_nouns):
        words = [word for word in words if _is_acronym(word)]
    # consecutive words in capitals are for emphasis
    loud = {
        w
        for n in zip(words, words[1:], words[2:], strict=False)
        if all(x.text.isupper() for x in n)
        for w in n
    }
    runs: list[list[Word]] = []
    for word in words:
        if word in loud or not _looks_like_name(word):
            continue
        if runs and not text[runs[-1][-1].end : word.start].strip(" -.'’"):
            runs[-1].append(word)
        else:
            runs.append([word])
    return [run for run in runs if _is_name(text, run, language)]


def _is_name(text: str, run: Sequence[Word], language: Language | None) -> bool:
    if any(_is_acronym(word) for word in run):
        return True
    opens = opens_sentence(text, run[0])
    if language is not None and language.capitalizes_nouns:
        return len(run) - opens > 1
    return len(run) > 1 or not opens


def _looks_like_name(word: Word) -> bool:
    return word.text[0].isupper() and (len(word.text) > 1) and not word.text.startswith(("I'", "I’"))


def _is_acronym(word: Word) -> bool:
    """Check for a capital after the first letter."""
    return any(letter.isupper() for letter in word.text[1:])


def _is_heading(text: str, words: Sequence[Word]) -> bool:
    """Check whether most longer words of a text without a full stop have a capital, or nearly all of many words."""
    longer = [word for word in words[1:] if len(word.text) >= _LONGER and word.text[0].isalpha()]
    capitals = sum(word.text[0].isupper() for word in longer)
    if text.rstrip(" \"'”’»)*_").endswith((".", "!", "?", "…")):
        return len(longer) >= _MANY and capitals > _NEARLY_ALL * len(longer)
    return len(longer) > 1 and capitals > _HEADING * len(longer)


def opens_sentence(text: str, word: Word) -> bool:
    """Check whether a word may have its capital because of its position."""
    return _STARTS.search(text[max(0, word.start - _BEFORE) : word.start]) is not None
