"""Summarizes documents by choosing their units word for word: sentences, or turns of a dialogue.

    document -> units -> scores -> the best units that fit, in order

The scores come from hidden states (`precis.extract.encoder_extractor`), or from trees
(`precis.extract.ranked_extractor`). This module and the second one import neither torch nor transformers, so that the
default model starts at once.

An extract invents nothing, but may lack the context that its units refer to. Without a limit it has about as many
words as the scorer expects of a summary of the document.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Unpack

from precis.data.text.encoding import portions
from precis.extract.unit_tokens import ReadUnits, UnitTokenizer, UnitTokens
from precis.generation.summary import NOTHING, How, Summary, keep_whole, several
from precis.messages import OnProgress
from precis_text.central_choice import scores_in_language
from precis_text.control_characters import main_part, remove_marks
from precis_text.documents.passages import Passages, text_of
from precis_text.documents.subtitles import as_read
from precis_text.errors import UserError
from precis_text.extracts import extract_units
from precis_text.forms.form import Form, FormType, ScoredText
from precis_text.forms.form_choice import FormOptions, chosen_form, formed
from precis_text.length import Cap, Length, LengthOptions, Tokens, chosen_length, trim
from precis_text.row import checked_documents
from precis_text.selection import TOGETHER, join_units, most_words

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

AHEAD = 8 * TOGETHER
"""Approximate characters of documents read together, which give the tokens of one or two passes."""


class ExtractOptions(LengthOptions, FormOptions, total=False):
    """The options of `Extractor.stream`."""

    form: Form | None
    length: Length | None
    skip_empty: bool
    on_progress: OnProgress | None


class Extractor(ABC):
    """An extractive summarizer with the methods of `precis.generation.summarizer.Summarizer`.

    Attributes:
        tokens: splits documents into units, and counts tokens.
        max_source: the longest input in tokens that is read at once.
        languages: the languages that it was trained on; see `precis_text.central_choice.scores_in_language`.

    Examples:
        >>> extractor = open_extractor("runs/news")
        >>> (summary,) = extractor.summarize(["Ann sings in the hall. Bob listens to her. It rains."], sentences=1)
        >>> summary.mode
        'extract'
    """

    tokens: UnitTokenizer
    max_source: int
    languages: tuple[str, ...]

    @abstractmethod
    def read(
        self, documents: Sequence[UnitTokens], on_progress: OnProgress | None = None
    ) -> Sequence[ReadUnits]:
        """Read documents as the scorer needs them; `on_progress` gets the number of inputs read and their total."""

    @abstractmethod
    def how(self, read: ReadUnits) -> How:
        """Return how a document was read."""

    @abstractmethod
    def scored(
        self, read: Sequence[ReadUnits], cap: Cap | None, on_progress: OnProgress | None = None
    ) -> list[UnitScores]:
        """Score the units of each document independently, in the language of the scorer; see `scores`."""

    @abstractmethod
    def open_tokenizer(self) -> PreTrainedTokenizerBase:
        """Return the tokenizer as transformers opens it."""

    def scores(
        self, read: Sequence[ReadUnits], cap: Cap | None = None, on_progress: OnProgress | None = None
    ) -> list[UnitScores]:
        """Score the units of each document independently.

        Args:
            cap: the cap of the extract; a ranker chooses other units for a short one than for a long one.
            on_progress: called now and then while a ranker works, so that a service can let short documents in.
        """
        return [
            UnitScores(
                scores_in_language(each.units, found.units, self.languages),
                most_words(each.units, found.words),
            )
            for each, found in zip(read, self.scored(read, cap, on_progress), strict=True)
        ]

    def summarize(
        self, documents: Sequence[str | Passages], **options: Unpack[ExtractOptions]
    ) -> list[Summary]:
        """Return the extracts of `documents`, in their order. Options are those of `stream`."""
        return list(self.stream(several(documents), **options))

    def stream(
        self,
        documents: Iterable[str | Passages],
        *,
        form: Form | None = None,
        type: FormType | None = None,  # noqa: A002  the name of the option
        about: str | None = None,
        length: Length | None = None,
        skip_empty: bool = False,
        on_progress: OnProgress | None = None,
        **lengths: Unpack[LengthOptions],
    ) -> Iterator[Summary]:
        """Yield the extracts in the order of the documents. Options are those of `Summarizer.stream`.

        Raises:
            UserError: if a document lacks tokens (the error gives its number), or an option is invalid.
        """
        wanted = _Wanted(chosen_form(form, type, about), chosen_length(length, lengths))
        done = 0
        for window in portions(_own_texts(documents), _size, most=AHEAD):
            found = self.tokens.tokenize([passages.text for passages in window])
            if None in found and not skip_empty:
                place = found.index(None)
                is_blank = not window[place].text.strip()
                problem = "is empty" if is_blank else "contains no tokens that the model knows"
                raise UserError(f"document {done + place + 1} {problem}: there is nothing to summarize")
            yield from self._together(window, found, wanted, on_progress)
            done += len(window)

    def _together(
        self,
        documents: Sequence[Passages],
        found: Sequence[UnitTokens | None],
        wanted: _Wanted,
        on_progress: OnProgress | None,
    ) -> list[Summary]:
        """Return the extracts of documents that are read together."""
        to_read = {
            place: tokens
            for place, (passages, tokens) in enumerate(zip(documents, found, strict=True))
            if tokens is not None and not wanted.keeps(passages.text, tokens=tokens.document_tokens)
        }
        read = self.read([*to_read.values()], on_progress)
        found_scores = self.scores(read, wanted.length.cap, on_progress)
        chosen = {
            place: self._extract(documents[place].text, units, scores, wanted.length)
            if wanted.form.is_plain
            else self._formed(documents[place], units, scores, wanted)
            for place, units, scores in zip(to_read, read, found_scores, strict=True)
        }
        made = [
            NOTHING
            if tokens is None
            else chosen.get(place) or keep_whole(documents[place].text, tokens.document_tokens)
            for place, tokens in enumerate(found)
        ]
        counts = self.tokens.counts(*(summary.text for summary in made))
        return [
            replace(summary, mode="extract", summary_tokens=summary.summary_tokens if summary.kept else count)
            for summary, count in zip(made, counts, strict=True)
        ]

    def _extract(self, document: str, read: ReadUnits, scores: UnitScores, length: Length) -> Summary:
        """Return one extract, with its tokens still to be counted."""
        units = extract_units(document, read, scores.units, length, words=scores.words, count=self._count)
        if length.short == "keep" and length.cap is None and len(units) == len(read.units):
            return keep_whole(document, read.document_tokens)
        text, finished = join_units(document, units), True
        if isinstance(length.cap, Tokens):
            most = length.cap.count
            while units[1:] and self._count(text) > most:  # joined text can have more tokens
                text = join_units(document, units := units[:-1])
            if self._count(text) > most:
                text, finished = self.tokens.beginning(text, most), False
        trimmed = trim(text, length.cap, ended=finished)
        return Summary(
            text=trimmed.text, document_tokens=read.document_tokens, tokens_read=read.read, summary_tokens=0,
            finished=trimmed.finished and finished, how=self.how(read), pieces=read.pieces,
            places=tuple((unit.start, unit.stop) for unit in units),
        )  # fmt: skip

    def _count(self, text: str) -> int:
        return self.tokens.counts(text)[0]

    def _formed(self, document: Passages, read: ReadUnits, scores: UnitScores, wanted: _Wanted) -> Summary:
        """Return one extract in a form, with its tokens still to be counted."""
        source = ScoredText(document, read.units, read.tokens, scores.units, scores.words)
        made = formed(wanted.form, source, wanted.length, self._count)
        return Summary(
            text=made.text, document_tokens=read.document_tokens, tokens_read=read.read, summary_tokens=0,
            finished=made.finished, how=self.how(read), pieces=read.pieces,
            places=tuple((line.start, line.stop) for line in made.lines), form=wanted.form.name,
            lines=made.lines, answered=made.answered,
        )  # fmt: skip


@dataclass(frozen=True)
class UnitScores:
    """The scorer's output for a document.

    Attributes:
        units: the score of each unit, 0 to 1.
        words: the expected number of words in a summary of the document.
    """

    units: list[float]
    words: float


@dataclass(frozen=True)
class _Wanted:
    """The requested form and length."""

    form: Form
    length: Length

    def keeps(self, document: str, *, tokens: int) -> bool:
        """Return whether a document is its own summary, which has the form of a paragraph."""
        return self.form.is_plain and self.length.keeps(document, tokens=tokens)


def _size(passages: Passages) -> int:
    return len(passages.text)


def _own_texts(documents: Iterable[str | Passages]) -> Iterator[Passages]:
    """Yield each document's main text without marks; raise `UserError` if one is not text."""
    for document in checked_documents(map(as_read, documents)):
        own = remove_marks(main_part(text_of(document)))
        yield replace(document, text=own) if isinstance(document, Passages) else Passages(own)
