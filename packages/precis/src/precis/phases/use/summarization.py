"""Summarizes documents in order; a problem is reported with its document."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from precis.extract.extractor import AHEAD, Extractor
from precis.generation.summary import Long, Summary
from precis.messages import OnPartial, OnProgress
from precis.phases.use.input_documents import CONTINUE, Document, has_more
from precis_text.abbreviations import spelled_out
from precis_text.control_characters import remove_marks
from precis_text.documents.passages import Passages
from precis_text.errors import RunError, UserError
from precis_text.forms.form import Form
from precis_text.forms.form_choice import PARAGRAPH
from precis_text.language import language_of
from precis_text.length import ANY_LENGTH, Length
from precis_text.selection import shown_texts
from precis_text.support.marks import Passage, SentenceSupport, SourceText, Support
from precis_text.units import extraction_units
from precis_text.words import length_in_words, unicode_words

if TYPE_CHECKING:
    from precis.generation.summarizer import Summarizer
    from precis.generation.writers.writer import Writer

_WINDOW = 16  # batches to read ahead, since `Summarizer.stream` sorts them


@dataclass(frozen=True)
class Result:
    """A document's summary, or None if it cannot be read or contains nothing that the model knows."""

    document: Document
    summary: Summary | None
    support: Support | None = None

    @property
    def problem(self) -> str:
        """The reason for a missing summary; empty if there is one."""
        if self.summary is not None:
            if _says_something(self.summary.text):
                return ""
            return "the model wrote nothing" + (" that can be read" if self.summary.text else "")
        if self.document.problem:
            return self.document.problem
        # The tokenizer may drop all characters of a text, or know none of them.
        known = "the document gives no tokens that the model knows"
        return known if self.document.text.strip() else "the document is empty"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values: the document's name, id and other columns if any, and the summary or an error."""
        document, summary = self.document, self.summary
        named = {"name": document.name} | ({} if document.id is None else {"id": document.id})
        row = {"row": dict(document.row)} if document.row else {}
        if summary is None:
            return {**named, "error": self.problem, **row}
        error = {"error": self.problem} if self.problem else {}
        return {
            **named, "summary": summary.text, **error, "mode": summary.mode, **self._form(summary),
            **({"places": [[*place] for place in summary.places]} if summary.places else {}),
            **self._sources(summary),
            **self._written(summary),
            "document_tokens": summary.document_tokens, "tokens_read": summary.tokens_read,
            "summary_tokens": summary.summary_tokens, "words": length_in_words(summary.text),
            "finished": summary.finished, "read": summary.how, "pieces": summary.pieces, "kept": summary.kept,
            **({} if self.support is None else {"support": self._support(self.support)}), **row,
        }  # fmt: skip

    def _form(self, summary: Summary) -> dict[str, Any]:
        """Return the form of a summary, unless it is a paragraph, and its lines with their places in the document."""
        answered = {} if summary.answered else {"answered": False}
        lines = {"lines": [line.to_dict() for line in summary.lines]} if summary.lines else {}
        return ({} if summary.form == "paragraph" else {"type": summary.form}) | answered | lines

    def _written(self, summary: Summary) -> dict[str, Any]:
        """Return the sentences of a writer, and whether it used its adapter for short summaries."""
        sentences = [each.to_dict() for each in summary.sentences]
        return {"sentences": sentences, "adapted": summary.adapted} if sentences else {}

    def _sources(self, summary: Summary) -> dict[str, Any]:
        """Return the places of the chosen sentences, if the format has any, and the parts of the file not read."""
        passages = self.document.passages
        found = [passages.at(start).to_dict() for start, _ in summary.places]
        notes = {"left_out": [*passages.notes]} if passages.notes else {}
        return ({"sources": found} if any(found) else {}) | notes

    def _support(self, support: Support) -> dict[str, Any]:
        """Return the support as JSON; each passage has its place, if the format has pages, headings or times."""
        record, passages = support.to_dict(), self.document.passages
        if passages.places:
            for sentence in record["sentences"]:
                sentence["aligned"] = [
                    {**passage, "place": passages.at(passage["start"]).to_dict()}
                    for passage in sentence["aligned"]
                ]
        return record

    def failure(self, *, alone: bool) -> UserError | RunError:
        """Return the problem as an exception; `alone` if there is only one document, so that nothing else remains."""
        advice = "" if alone else f"; {CONTINUE}"
        text = f"{self.document.name}: {self.problem}{advice}"
        return RunError(text) if self.summary is not None else UserError(text)


def summarize_documents(
    summarizer: Summarizer | Writer,
    documents: Iterable[Document],
    *,
    length: Length = ANY_LENGTH,
    form: Form = PARAGRAPH,
    instruction: str | None = None,
    long: Long | None = None,
    beams: int | None = None,
    batch_size: int = 8,
    keep_going: bool = False,
    on_progress: OnProgress | None = None,
    on_partial: OnPartial | None = None,
) -> Iterator[Result]:
    """Yield results in the order of the documents, as they come.

    Args:
        length, form, instruction, long: see `Summarizer.stream`.
        beams: width of the search; if None, the summarizer's own.
        keep_going: yield a result with the reason for a document without a summary; else raise the error.
        on_partial: called with a document's index in its batch window, and the first sentences of its summary; see
            `Summarizer.stream`.

    Raises:
        UserError: an option does not fit the model, or, without `keep_going`, a document cannot be summarized.
        RunError: without `keep_going`, the model wrote nothing.
    """
    settings = summarizer.settings if beams is None else replace(summarizer.settings, beams=beams)
    write = partial(
        summarizer.stream, settings=settings, length=length, form=form, instruction=instruction, long=long,
        batch_size=batch_size, skip_empty=True, on_progress=on_progress, on_partial=on_partial,
    )  # fmt: skip
    return _results(documents, write, together=_WINDOW * batch_size, keep_going=keep_going)


def _says_something(text: str) -> bool:
    """Return whether a text has a character other than white space and control characters."""
    return any(unicodedata.category(character)[0] not in "CZ" for character in text)


def extract_documents(
    extractor: Extractor,
    documents: Iterable[Document],
    *,
    length: Length = ANY_LENGTH,
    form: Form = PARAGRAPH,
    keep_going: bool = False,
    on_progress: OnProgress | None = None,
) -> Iterator[Result]:
    """Yield summaries of chosen sentences; otherwise like `summarize_documents`."""
    choose = partial(extractor.stream, length=length, form=form, skip_empty=True, on_progress=on_progress)
    return _results(documents, choose, characters=AHEAD, keep_going=keep_going)


def _results(
    documents: Iterable[Document],
    summarize: Callable[[list[str | Passages]], Iterator[Summary]],
    *,
    together: float = math.inf,
    characters: float = math.inf,
    keep_going: bool,
) -> Iterator[Result]:
    """Yield the results; a window has `together` documents, or as many as reach `characters`."""
    stream = iter(documents)
    for number, window in enumerate(_windows(stream, together, characters)):
        written = summarize([_with_places(document) for document in window])
        for document, summary in zip(window, written, strict=True):
            result = Result(document, summary if summary.document_tokens else None)
            if result.problem and not keep_going and not document.problem:
                is_alone = number == 0 and len(window) == 1 and not has_more(stream)
                raise result.failure(alone=is_alone)
            yield result


def _with_places(document: Document) -> str | Passages:
    """Return the text of a document, with its headings and times if it has any."""
    passages = document.passages
    return passages if passages.places and passages.text == document.text else document.text


def _windows(documents: Iterator[Document], together: float, characters: float) -> Iterator[list[Document]]:
    """Yield windows of documents in order; raise an error of reading after the documents before it."""
    window: list[Document] = []
    size = 0
    try:
        for document in documents:
            window.append(document)
            size += len(document.text)
            if len(window) >= together or size >= characters:
                yield window
                window, size = [], 0
    except (UserError, RunError):
        if window:
            yield window
        raise
    if window:
        yield window


def with_support(results: Iterable[Result]) -> Iterator[Result]:
    """Yield the results, each summary compared with its document (`precis_text.support.marks`)."""
    for result in results:
        if result.summary is None or not result.summary.answered:
            yield result
            continue
        document = remove_marks(result.document.text)
        if result.summary.places or result.summary.kept:
            yield replace(result, support=chosen_support(document, result.summary))
        else:
            yield replace(result, support=SourceText(document).support(result.summary.text))


def chosen_support(document: str, summary: Summary) -> Support:
    """Return the support of sentences that were chosen: each was taken from its place word for word.

    Sentences are not searched for: two may be equal, and a summary may divide otherwise than its document.
    """
    units = {(unit.start, unit.stop): unit for unit in extraction_units(document)}
    places = [*units] if summary.kept else summary.places
    if summary.kept:
        shown = [document[start:stop] for start, stop in places]
    else:
        chosen = [] if summary.lines else [units[place] for place in places]
        told = spelled_out(
            document, chosen, lambda some: all(map(summary.text.__contains__, shown_texts(some)))
        )
        shown = [line.shown for line in summary.lines] or shown_texts(told)
    sentences, end = [], 0
    for (start, stop), text in zip(places, shown, strict=True):
        room = len(summary.text) - len(summary.text[end:].lstrip())
        begin = found if (found := summary.text.find(text, end)) >= 0 else room  # a cap cut it, or cut it off
        end = min(len(summary.text), begin + len(text))
        source = units[start, stop].text if (start, stop) in units else " ".join(document[start:stop].split())
        passage = Passage(start, stop, source, document.count("\n", 0, start) + 1)
        count = len(unicode_words(text))
        ngrams = tuple(1.0 if count >= n else None for n in (1, 2, 3))
        quoted = " ".join(summary.text[begin:end].split())
        if quoted:
            sentences.append(
                SentenceSupport(
                    start=begin, end=end, text=quoted, aligned=(passage,), copied=True, ngrams=ngrams
                )
            )
    return Support(sentences=tuple(sentences), marks=(), language=language_of(summary.text), unchecked={})
