"""The form of a summary: what is chosen of a document, and how it is written down.

A form turns a document's scored units into lines. Each line is taken word for word from one place of the document.
`precis_text.forms.form_choice` makes a form from its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from precis_text.config import Settings
from precis_text.documents.passages import Passages
from precis_text.length import Length, Sentences, Tokens, Trimmed, holds, trim
from precis_text.sentences import split_sentences
from precis_text.units import TextUnit

FormType = Literal["paragraph", "tldr", "key-points", "headline", "teaser", "outline", "minutes"]

Count = Callable[[str], int]
"""Returns the tokens of a text."""


@dataclass(frozen=True)
class ScoredText:
    """A document with its units and their scores, which a form chooses from.

    Attributes:
        passages: the text, with the page, heading or time of each part if the format has any.
        units: the units of the text, in order.
        tokens: the tokens of each unit.
        scores: the worth of each unit in a summary, 0 to 1.
        words: the expected words of a summary without a limit.
    """

    passages: Passages
    units: Sequence[TextUnit]
    tokens: Sequence[int]
    scores: Sequence[float]
    words: float

    @property
    def document(self) -> str:
        return self.passages.text


@dataclass(frozen=True)
class FormLine:
    """A line of a summary: `document[start:stop]`, shown as `shown`.

    Attributes:
        shown: the text in the summary, without a bullet.
        part: the part of the minutes that it belongs to, such as "decisions"; else "".
        heading: the heading of its section in an outline, or "".
        time: the time of its place, or "".
        speaker: its speaker, or "".
        turn: the number of its turn, from 1; 0 in a document without turns.
        owner: who does what an action asks for, if the document says it.
        due: when it is due, in the words of the document, if the document says it.
        worth: lines of the lowest worth go first if a length does not hold all.
        shorter: what is shown instead if the length does not hold it; "" without a shorter form.
    """

    shown: str
    start: int
    stop: int
    part: str = ""
    heading: str = ""
    time: str = ""
    speaker: str = ""
    turn: int = 0
    owner: str = ""
    due: str = ""
    worth: float = 0.0
    shorter: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the known fields, JSON-ready; `place` are the offsets in the document."""
        names = ("part", "heading", "time", "speaker", "turn", "owner", "due")
        known = {name: getattr(self, name) for name in names}
        place = {"text": self.shown, "place": [self.start, self.stop]}
        return place | {name: value for name, value in known.items() if value}


@dataclass(frozen=True, kw_only=True)
class Form(Settings, ABC):
    """The base of all forms.

    Attributes:
        about: the question that the summary answers; "" for a summary of the whole document.
    """

    about: str = ""
    name: ClassVar[FormType]

    @property
    def is_plain(self) -> bool:
        """True for the paragraph without a question, which models make without a form."""
        return False

    def length(self, wanted: Length) -> Length:
        """Return the wanted length, or the form's own if the caller sets no cap."""
        return wanted

    @abstractmethod
    def lines(self, source: ScoredText, length: Length) -> list[FormLine]:
        """Return the lines of a document in their order; none if it lacks what the form shows.

        Args:
            length: the result of `length`; `fitted` drops lines beyond it.
        """

    def render(self, lines: Sequence[FormLine], source: ScoredText) -> str:
        """Return the lines as one text: a list with bullets."""
        return "\n".join(f"- {line.shown}" for line in lines)


def fitted(
    form: Form, lines: Sequence[FormLine], source: ScoredText, length: Length, count: Count
) -> tuple[list[FormLine], Trimmed]:
    """Return the lines that a length holds, and their text.

    Lines of the lowest worth are shown shorter, and are then dropped. Only the last line is cut in itself. A cap in
    sentences counts those of the lines, without labels.

    Args:
        count: returns the tokens of a text, for a cap in tokens.
    """
    kept = [*lines]
    while kept and not _holds(form.render(kept, source), kept, length, count):
        place = min(range(len(kept)), key=lambda each: (not kept[each].shorter, kept[each].worth))
        if kept[place].shorter:
            kept[place] = replace(kept[place], shown=kept[place].shorter, shorter="")
        elif len(kept) > 1:
            del kept[place]
        else:
            break
    text = form.render(kept, source)
    if not kept or _holds(text, kept, length, count):
        return kept, Trimmed(text, True)
    return kept, _beginning(text, length, count)


def _holds(text: str, lines: Sequence[FormLine], length: Length, count: Count) -> bool:
    cap = length.cap
    if isinstance(cap, Sentences):
        return sum(len(split_sentences(line.shown)) for line in lines) <= cap.count
    return holds(cap, text, count)


def _beginning(text: str, length: Length, count: Count) -> Trimmed:
    """Return the beginning of one line that a cap holds, in whole sentences if one fits."""
    cap = length.cap
    if not isinstance(cap, Tokens):
        return trim(text, cap, ended=True)
    low, high = 0, len(text)
    while low < high:  # the longest beginning within the tokens
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle]) <= cap.count else (low, middle - 1)
    return Trimmed(text[:low].rstrip(), False)
