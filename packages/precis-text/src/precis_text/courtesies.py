"""Messages and sentences of a talk that only greet, thank, agree or lead through a meeting.

`exchanges.toml` has their words.
"""

from __future__ import annotations

import re

from precis_text.sentences import split_sentences
from precis_text.tables import read_table
from precis_text.words import unicode_words

TABLE = read_table("exchanges.toml")
COURTESIES = frozenset(TABLE["courtesies"].replace("'", " ").split())
_REPLIES = frozenset(f"{TABLE['answers']} {TABLE['replies']}".split())
_GREETINGS = frozenset(TABLE["greetings"].split())
MODERATES, CHAIRS, MEETS = (
    re.compile(TABLE[name], re.IGNORECASE) for name in ("moderates", "chairs", "meets")
)
_FRAMES = re.compile(f"(?:{TABLE['leads_in']})*(?:{'|'.join(filter(None, TABLE['frames'].splitlines()))})")
# A name, behind a comma: "Thanks, Ann"
_NO_NAME = f"{TABLE['no_names']}|{TABLE['decisions']}"
_ADDRESS = re.compile(rf"(?<=,)\s*+(?!(?i:{_NO_NAME}))[^\W\d_a-z][^\W\d_]+(?=\s?[,.!?]|$)")
_LONGEST, _LONGEST_FRAME = 8, 40  # words


def is_courteous(said: str) -> bool:
    """Check whether a text only greets, thanks, agrees or opens a meeting; it may address a person by name."""
    sentences = split_sentences(said)
    return _is_polite(_unnamed(said), leads=True) or (
        len(sentences) > 1 and all(map(is_courteous, sentences))
    )


def is_frame(said: str) -> bool:
    """Check whether a sentence only runs a meeting, greets or laughs: "Okay, any other comments?"."""
    words = unicode_words(said.lower())
    return len(words) <= _LONGEST_FRAME and _FRAMES.fullmatch(" ".join(words)) is not None


def only_greets(said: str) -> bool:
    """Check whether a text greets or thanks, and neither answers nor promises: "No. Done." does both."""
    return is_frame(said) or (_is_polite(_unnamed(said)) and _REPLIES.isdisjoint(unicode_words(said.lower())))


def _unnamed(said: str) -> str:
    """Return a text that greets or thanks without the names behind its commas, another text as it is."""
    return _ADDRESS.sub(" ", said) if _GREETINGS.intersection(unicode_words(said.lower())) else said


def _is_polite(said: str, *, leads: bool = False) -> bool:
    words = unicode_words((MODERATES.sub(" ", said) if leads else said).lower())
    is_short = any(map(str.isalnum, said)) and len(words) <= _LONGEST
    return is_frame(said) or (is_short and COURTESIES.issuperset(words))
