"""Documents to summaries, in order, with what went wrong stated where it happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any, Unpack

from precis.data.text.words import length_in_words
from precis.errors import RunError, UserError
from precis.generation.decoding import Watch
from precis.generation.extraction import ExtractOptions, Extractor
from precis.generation.summarizer import Summarizer, Summary, SummaryOptions
from precis.phases.documents import Document

_WINDOW = 16  # batches that are read ahead, as `Summarizer.stream` sorts them


@dataclass(frozen=True)
class Result:
    """A document's summary, or None for one that has none: it cannot be read, or holds nothing that the model knows."""

    document: Document
    summary: Summary | None

    @property
    def problem(self) -> str:
        """Why there is no summary; empty where there is one."""
        if self.summary is not None:
            return "" if self.summary.text else "the model wrote nothing"
        if self.document.problem:
            return self.document.problem
        # The tokenizer may drop all characters of a text, or know none of them.
        known = "the document gives no tokens that the model knows"
        return known if self.document.text.strip() else "the document is empty"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: the document's name, its id and other columns where it has any, and the summary or an error."""
        document, summary = self.document, self.summary
        named = {"name": document.name} | ({} if document.id is None else {"id": document.id})
        row = {"row": dict(document.row)} if document.row else {}
        if summary is None:
            return {**named, "error": self.problem, **row}
        error = {"error": self.problem} if self.problem else {}
        return {
            **named,
            "summary": summary.text,
            **error,
            "mode": summary.mode,
            **({"places": [[*place] for place in summary.places]} if summary.places else {}),
            "document_tokens": summary.document_tokens,
            "tokens_read": summary.tokens_read,
            "summary_tokens": summary.summary_tokens,
            "words": length_in_words(summary.text),
            "finished": summary.finished,
            "read": summary.how,
            "pieces": summary.pieces,
            "kept": summary.kept,
            **row,
        }

    def failure(self, *, alone: bool) -> UserError | RunError:
        """What went wrong, to be raised.

        Args:
            alone: it is the only document, so that nothing else is left to be done.
        """
        advice = "" if alone else "; --keep-going goes on with the others"
        text = f"{self.document.name}: {self.problem}{advice}"
        return RunError(text) if self.summary is not None else UserError(text)


def summarize_documents(
    summarizer: Summarizer,
    documents: Iterable[Document],
    *,
    beams: int | None = None,
    batch_size: int = 8,
    keep_going: bool = False,
    watch: Watch | None = None,
    **options: Unpack[SummaryOptions],
) -> Iterator[Result]:
    """Results in the order of the documents, as they come.

    Args:
        beams: width of the search; if None, the summarizer's own.
        keep_going: a document without a summary is a result that says why; else it ends the work.

    Raises:
        UserError: an option does not fit the model, or, without `keep_going`, a document cannot be summarized.
        RunError: without `keep_going`, the model wrote nothing.
    """
    settings = summarizer.settings if beams is None else replace(summarizer.settings, beams=beams)
    write = partial(
        summarizer.stream, settings=settings, batch_size=batch_size, skip_empty=True, watch=watch, **options
    )
    return _results(documents, write, at_once=_WINDOW * batch_size, keep_going=keep_going)


def extract_documents(
    extractor: Extractor,
    documents: Iterable[Document],
    *,
    keep_going: bool = False,
    **options: Unpack[ExtractOptions],
) -> Iterator[Result]:
    """`summarize_documents` for summaries of chosen sentences; each document is worked on by itself."""
    choose = partial(extractor.stream, skip_empty=True, **options)
    return _results(documents, choose, at_once=1, keep_going=keep_going)


def _results(
    documents: Iterable[Document],
    summarize: Callable[[list[str]], Iterator[Summary]],
    *,
    at_once: int,
    keep_going: bool,
) -> Iterator[Result]:
    """The results of documents, of which `at_once` are summarized together."""
    stream = iter(documents)
    first = list(islice(stream, 2))
    stream = chain(first, stream)
    while window := list(islice(stream, at_once)):
        written = summarize([document.text for document in window])
        for document, summary in zip(window, written, strict=True):
            result = Result(document, summary if summary.document_tokens else None)
            if result.problem and not keep_going:
                raise result.failure(alone=len(first) == 1)
            yield result


def told(result: Result, *, max_source: int | None) -> str:
    """How much of the document was read and what the summary's length is, in one line."""
    summary, name = result.summary, result.document.name
    if summary is None or result.problem:
        return f"{name}: {result.problem}, no summary"
    total = f"{summary.document_tokens:,}"
    if summary.kept:
        return f"{name}: given back as it is, {total} tokens are no more than a summary would have"
    read = {
        "whole": f"read all {total} tokens",
        "fie": f"read all {total} tokens by fusion-in-encoder, more than the {max_source} it was trained on",
        "chunk": f"read all {total} tokens in {summary.pieces} pieces, then summarized their summaries",
        "truncate": f"read only the first {summary.tokens_read:,} of {total} tokens",
    }[summary.how]
    words = length_in_words(summary.text)
    ending = "" if summary.finished else ", cut off mid-sentence"
    chosen = ", chosen word for word" if summary.mode == "extract" else ""
    return f"{name}: {read}; {words} {'word' if words == 1 else 'words'}{chosen}{ending}"
