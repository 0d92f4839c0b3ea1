"""Messages and sentences of a talk that only greet, thank, agree or lead through a meeting.

`exchanges.toml` has their words.
"""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files

from precis_text.words import unicode_words

TABLE = tomllib.loads(files("precis_text").joinpath("exchanges.toml").read_text("utf-8"))
COURTESIES = frozenset(TABLE["courtesies"].replace("'", " ").split())
_REPLIES = frozenset(f"{TABLE['answers']} {TABLE['replies']}".split())
_GREETINGS = frozenset(TABLE["greetings"].split())
MODERATES = re.compile(TABLE["moderates"].replace("\n", ""), re.IGNORECASE)
_FRAMES = re.compile(f"(?:{TABLE['leads_in']})*(?:{'|'.join(filter(None, TABLE['frames'].splitlines()))})")
_ADDRESS = re.compile(r"(?<=,)\s*[^\W\d_a-z][^\W\d_]+(?=\s?[,.!?]|$)")  # a name, behind a comma
_ADDRESSED = re.compile(r"^[^\W\d_a-z][^\W\d_]+\s?,\s")  # the same at the beginning
_LONGEST = 8  # words


def is_courteous(said: str) -> bool:
    """Check whether a text only greets, thanks, agrees or opens a meeting; it may address a person by name."""
    if is_frame(said):
        return True
    greeted = _ADDRESS.sub(" ", said) if _GREETINGS.intersection(unicode_words(said.lower())) else said
    words = unicode_words(MODERATES.sub(" ", greeted).lower())
    is_said = any(map(str.isalnum, said))
    return is_said and len(words) <= _LONGEST and COURTESIES.issuperset(words)


def is_frame(said: str) -> bool:
    """Check whether a sentence only runs a meeting, greets or laughs: "Okay, any other comments?"."""
    bare = _ADDRESSED.sub("", _ADDRESS.sub("", said))
    return any(_FRAMES.fullmatch(" ".join(unicode_words(each.lower()))) for each in (said, bare))


def only_greets(said: str) -> bool:
    """Check whether a text greets or thanks, and neither answers nor promises: "No. Done." does both."""
    return is_frame(said) or (is_courteous(said) and _REPLIES.isdisjoint(unicode_words(said.lower())))
