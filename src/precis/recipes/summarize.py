"""Documents from files to summaries, in order, with what went wrong stated where it happened."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from precis.data.rows import known_endings
from precis.data.sources import Columns, ReadReport, read_pairs
from precis.data.texts import NotTextError, decode_text, document_files
from precis.data.words import length_in_words
from precis.errors import UserError
from precis.generation.decoding import Watch
from precis.generation.length import Short
from precis.generation.reading import Long
from precis.generation.summarizer import Summarizer, Summary

STANDARD_INPUT = "-"
_WINDOW = 16  # batches that are read ahead, as `Summarizer.stream` sorts them


@dataclass(frozen=True)
class Document:
    """A text and what to call it: its file, or file and row."""

    name: str
    text: str


@dataclass(frozen=True)
class Result:
    """A document's summary, or None for one without tokens, which has none."""

    document: Document
    summary: Summary | None

    @property
    def problem(self) -> str:
        """Why there is no summary. The tokenizer may drop all characters of a text, or know none of them."""
        known = "the document gives no tokens that the model knows"
        return known if self.document.text.strip() else "the document is empty"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: the summary's fields, or an error."""
        if self.summary is None:
            return {"document": self.document.name, "error": self.problem}
        summary = self.summary
        return {
            "document": self.document.name,
            "summary": summary.text,
            "document_tokens": summary.document_tokens,
            "tokens_read": summary.tokens_read,
            "summary_tokens": summary.summary_tokens,
            "words": length_in_words(summary.text),
            "finished": summary.finished,
            "read": summary.how,
            "pieces": summary.pieces,
            "kept": summary.kept,
        }


def read_documents(
    files: Sequence[str],
    *,
    column: str | None = None,
    units: str | None = None,
    skip_bad: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[Document]:
    """The documents of `files`, one by one.

    A .jsonl, .csv or .parquet file has one in every row, a folder one in every .txt file, any other file is
    one as a whole; "-" is the standard input. All files are looked for before the first is read.

    Raises:
        UserError: a file is missing, cannot be opened or is not UTF-8 text, or a row cannot be used.
    """
    for file in files:
        if file != STANDARD_INPUT and not Path(file).exists():
            raise UserError(f"{file}: no such file")
    columns = replace(Columns(document=column) if column else Columns(), units=units)
    return (document for file in files for document in _read(file, columns, skip_bad=skip_bad, tell=tell))


def holds_many(file: str) -> bool:
    """Whether a file may hold several documents: a folder, or rows."""
    return file != STANDARD_INPUT and (Path(file).is_dir() or _has_rows(file))


def _has_rows(file: str) -> bool:
    return file.lower().endswith(tuple(known_endings()))


def _read(file: str, columns: Columns, *, skip_bad: bool, tell: Callable[[str], None]) -> Iterator[Document]:
    if file == STANDARD_INPUT:
        yield Document("standard input", _decode(sys.stdin.buffer.read(), "standard input"))
    elif Path(file).is_dir():
        yield from _read_folder(Path(file))
    elif _has_rows(file):
        report = ReadReport()
        rows = read_pairs(file, columns=columns, need_summary=False, skip_bad=skip_bad, report=report)
        for pair in rows:
            yield Document(f"{file}: {pair.id or f'row {report.rows}'}", pair.document)
        if report.skipped_count:
            tell(f"{file}: {report.skipped_count:,} rows skipped (first: {report.skipped[0]})")
    else:
        yield Document(file, _read_text(Path(file)))


def _read_folder(folder: Path) -> Iterator[Document]:
    next(folder.iterdir(), None)  # raises where there is no right to look: a pattern would find nothing
    texts = document_files(folder)
    if not texts:
        raise UserError(f"{folder}: no .txt file in this folder; name files of rows one by one")
    for path in texts:
        yield Document(str(path), _read_text(path))


def _read_text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error
    return _decode(content, str(path))


def _decode(content: bytes, name: str) -> str:
    if b"\0" in content[:1000]:
        raise UserError(f"{name}: is not text; give plain text in UTF-8, or .jsonl, .csv, .parquet rows")
    try:
        return decode_text(content)
    except NotTextError as error:
        raise UserError(f"{name}: {error}; save it as UTF-8") from None


def summarize_documents(
    summarizer: Summarizer,
    documents: Iterable[Document],
    *,
    words: int | None = None,
    sentences: int | None = None,
    tokens: int | None = None,
    min_words: int | None = None,
    short: Short = "keep",
    beams: int | None = None,
    instruction: str | None = None,
    batch_size: int = 8,
    long: Long | None = None,
    watch: Watch | None = None,
) -> Iterator[Result]:
    """Results in the order of the documents, as they come. Options are those of `Summarizer.stream`.

    Raises:
        UserError: an option does not fit the model, or the only document has no tokens.
    """
    settings = summarizer.settings if beams is None else replace(summarizer.settings, beams=beams)
    stream = iter(documents)
    first = list(islice(stream, 2))
    stream = chain(first, stream)
    while window := list(islice(stream, _WINDOW * batch_size)):
        written = summarizer.stream(
            [document.text for document in window],
            settings=settings,
            words=words,
            sentences=sentences,
            tokens=tokens,
            min_words=min_words,
            short=short,
            instruction=instruction,
            batch_size=batch_size,
            long=long,
            skip_empty=True,
            watch=watch,
        )
        for document, summary in zip(window, written, strict=True):
            result = Result(document, summary if summary.document_tokens else None)
            if result.summary is None and len(first) == 1:
                raise UserError(f"{document.name}: {result.problem}, there is nothing to summarize")
            yield result


def told(result: Result, *, max_source: int | None) -> str:
    """How much of the document was read and what the summary's length is, in one line."""
    summary = result.summary
    if summary is None:
        return f"{result.document.name}: {result.problem}, no summary"
    total = f"{summary.document_tokens:,}"
    if summary.kept:
        return f"{result.document.name}: given back as it is, {total} tokens are no more than a summary would have"
    read = {
        "whole": f"read all {total} tokens",
        "fie": f"read all {total} tokens by fusion-in-encoder, more than the {max_source} it was trained on",
        "chunk": f"read all {total} tokens in {summary.pieces} pieces, then summarized their summaries",
        "truncate": f"read only the first {summary.tokens_read:,} of {total} tokens",
    }[summary.how]
    words = length_in_words(summary.text)
    ending = "" if summary.finished else ", cut off mid-sentence"
    return f"{result.document.name}: {read}; {words} {'word' if words == 1 else 'words'}{ending}"
