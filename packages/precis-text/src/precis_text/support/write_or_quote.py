"""Write or quote: each written sentence is supported by the document, or its closest source sentence replaces it.

    written sentence -> marks, content, repetition -> stays | the closest source sentence, unless the summary has it

A sentence that stays may still be wrong: nothing here understands it. A quotation is word for word.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, Literal

from precis_text.language import language_of
from precis_text.support.marks import Mark, SentenceSupport, SourceText
from precis_text.units import TextUnit
from precis_text.words import unicode_words

Origin = Literal["written", "quoted"]

LEAST_SHARE = 0.55
"""The least share of a written sentence's content words in its source sentences.

`python -m benchmarks.writers.threshold` learns it; its error rates are in `docs/experiments/marks.md`.
"""

SMALL_CLOSENESS = 1.0
"""The least closeness of a sentence of the small model `writer`: it may shorten a sentence of the document, and little
more. `docs/experiments/writers.md` says why."""

_FEWEST = 2  # distinct words of a sentence; a single word supports itself, whatever the document says of it
_LOOP = 12  # words from which a sentence may be a loop
_DISTINCT = 0.6  # least share of distinct word pairs in one that is none
_SAME = 0.8  # share of words that two sentences have in common if one repeats the other


@dataclass(frozen=True)
class SummarySentence:
    """A sentence of a summary.

    Attributes:
        text: the sentence in one line.
        origin: "written" by the model, or "quoted" from the document.
        place: (start, stop) offsets of the quotation or of the closest source sentence in the document; None if no
            source sentence is close.
        reason: why the model's sentence was replaced, or "".
    """

    text: str
    origin: Origin
    place: tuple[int, int] | None = None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary, without what is empty."""
        found = {name: value for name, value in asdict(self).items() if value}
        return found | ({} if self.place is None else {"place": [*self.place]})


def write_or_quote(
    source: SourceText,
    written: str,
    *,
    language: str | None = None,
    least: float = LEAST_SHARE,
    closeness: float = -1.0,
    readable: Sequence[TextUnit] | None = None,
) -> list[SummarySentence]:
    """Return the sentences of a summary that the source supports, and quotations in place of the others.

    Args:
        written: the model's text.
        language: the code of the expected language; a text in another one is replaced. None expects any.
        least: the least share of content words, 0 to 1, in the source sentences.
        closeness: the least of `SourceText.closeness`; -1 allows any, and parts of sentences.
        readable: the units of the source that the model may read; others support nothing. Headings and asides among
            them support, but are not quoted. None allows all.

    Examples:
        >>> source = SourceText("Ann sold 3 boats to Bob. It rained on Sunday.")
        >>> [each.origin for each in write_or_quote(source, "Ann sold Bob 3 boats. Carl paid 5 pounds on Sunday.")]
        ['written', 'quoted']
    """
    support = source.support(written)
    found = language_of(written)
    other = f"it is in another language ({found})" if language and found and found != language else ""
    allowed = source.units if readable is None else readable
    support_by = {unit.start for unit in allowed}
    asides = {unit.text for unit in allowed if unit.aside}
    chosen = _Chosen({unit.start for unit in allowed if not (unit.heading or unit.aside)})
    for sentence in support.sentences:
        if len(set(unicode_words(sentence.text))) < _FEWEST:
            continue
        inside = [mark for mark in support.marks if sentence.start <= mark.start < sentence.end]
        label = "it is a label or a row of a table" if sentence.text in asides else ""
        problem = other or label or _problem(source, sentence, inside, least, support_by)
        if not (problem or sentence.copied) and source.closeness(sentence) < closeness:
            problem = "no sentence of the source has enough of its content"
        if not problem and closeness > -1.0 and source.is_torn(sentence):
            problem = "it is a part of a sentence"
        chosen.add(sentence, problem)
    return chosen.sentences


def quotations(units: Iterable[TextUnit], *, reason: str = "") -> list[SummarySentence]:
    """Return units of the document as quotations."""
    return [SummarySentence(unit.text, "quoted", (unit.start, unit.stop), reason) for unit in units]


def as_written(source: SourceText, written: str) -> list[SummarySentence]:
    """Return the sentences of a summary unchecked, each with its closest source sentence."""
    return [_kept(sentence) for sentence in source.support(written).sentences]


@cache
def rules_digest() -> str:
    """Return a digest of the rules of this package, for the settings of work that is resumed."""
    rules = sorted(file.name for file in files(__package__).iterdir() if file.name.endswith((".py", ".toml")))
    return hashlib.sha256(
        b"".join(files(__package__).joinpath(name).read_bytes() for name in rules)
    ).hexdigest()[:16]


def is_loop(text: str) -> bool:
    """Return whether a text repeats a few words again and again."""
    words = unicode_words(text)
    pairs = [*pairwise(words)]
    return len(words) >= _LOOP and len(set(pairs)) < _DISTINCT * len(pairs)


@dataclass
class _Chosen:
    """The sentences of the summary so far."""

    quotable: set[int]
    sentences: list[SummarySentence] = field(default_factory=list)

    def add(self, sentence: SentenceSupport, problem: str) -> None:
        """Add a written sentence, or a quotation if it has a problem; nothing if the summary has either."""
        if not problem:
            made = _kept(sentence)
            if not self._stands(made):
                self.sentences.append(made)
            return
        for passage in sentence.aligned:
            made = SummarySentence(passage.text, "quoted", (passage.start, passage.end), problem)
            if passage.start in self.quotable:
                if not self._stands(made):
                    self.sentences.append(made)
                return

    def _stands(self, made: SummarySentence) -> bool:
        words = set(unicode_words(made.text))
        return any(
            (made.origin == each.origin == "quoted" and made.place == each.place)
            or _overlap(words, set(unicode_words(each.text))) >= _SAME
            for each in self.sentences
        )


def _kept(sentence: SentenceSupport) -> SummarySentence:
    place = (sentence.aligned[0].start, sentence.aligned[0].end) if sentence.aligned else None
    return SummarySentence(sentence.text, "quoted" if sentence.copied else "written", place)


def _problem(
    source: SourceText, sentence: SentenceSupport, marks: Sequence[Mark], least: float, support_by: set[int]
) -> str:
    """Return why a written sentence cannot stay, or ""."""
    if marks:
        return f"{marks[0].kind} {marks[0].text!r}: {marks[0].reason}"
    if not sentence.copied and (speaker := source.said_by_other(sentence.text)):
        return f"these are words of {speaker}"
    if is_loop(sentence.text):
        return "it repeats itself"
    if not all(passage.start in support_by for passage in sentence.aligned):
        return "its source is an instruction to a model"
    share = source.content_share(sentence)
    if not sentence.aligned or share < least:
        return f"its source sentences have {share:.0%} of its content, less than {least:.0%}"
    return ""


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(1, min(len(one), len(other)))
