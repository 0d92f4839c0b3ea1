"""English sentences that depend on the one before them: "It is ready." says nothing by itself.

The rules list first words and phrases, as extractive systems have long done; Edmundson (1969) gave such sentences a
penalty. They also list words that point back from inside, and for other languages how reports name their source.
"""

from __future__ import annotations

import re

from precis_text.tables import read_table
from precis_text.words import unicode_words

_TABLE = read_table("back_references.toml")
_WORDS = frozenset(_TABLE["words"].split())
_DOCUMENT, _EXPLETIVE = (re.compile(_TABLE[name]) for name in ("document", "expletive"))
_STARTS = tuple(f"{phrase.strip()} " for phrase in _TABLE["phrases"].split("|"))
_LONGEST = 6  # words that decide how a sentence starts
_INNER, _SECTION = (re.compile(_TABLE[name], re.I) for name in ("inner", "section"))
_FAR = 12  # words before a noun: a later one mostly points to the beginning of its own sentence
_STEM = 5  # letters that two forms of a noun share
_OWN = frozenset(_TABLE["own"].split())
_WITHIN = re.compile(
    r"^Further, |, (?:however|though|too|therefore|then)[,.;]|, for (?:example|instance)\.$", re.IGNORECASE
)


def has_back_reference(sentence: str) -> bool:
    """Check whether a sentence starts with a word that points back, or has one between commas or at its end.

    "This paper" and the like point to the document itself, so that they do not count.
    """
    words = unicode_words(sentence.lower())
    if not words:
        return False
    start = " ".join(words[:_LONGEST])
    points = words[0] in _WORDS or f"{start} ".startswith(_STARTS)
    begins = points and not (_DOCUMENT.match(start) or _EXPLETIVE.match(start))
    return begins or _WITHIN.search(sentence) is not None


def points_to_a_part(sentence: str) -> bool:
    """Check whether a sentence speaks of a part of its document: "This section describes", "Table 2 shows"."""
    return _SECTION.search(sentence) is not None


def has_inner_reference(sentence: str) -> bool:
    """Check whether a sentence speaks of "these samples" that it has not named, anywhere but in its first word."""
    for found in _INNER.finditer(sentence):
        before, noun = sentence[: found.start()].lower(), found[1].lower()
        is_near = before.strip() and len(before.split()) < _FAR
        if is_near and noun not in _OWN and noun[:_STEM] not in before:
            return True
    return False
