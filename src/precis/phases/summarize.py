"""Documents to summaries, in order, with what went wrong stated where it happened.

A file of summaries is written as they come, finished in one move, and taken up again after a kill:

    out.jsonl.part    while the work goes on: a line that says what made it, then a line a document
    out.jsonl         when all documents are done; the other is gone then

Each line of the unfinished file has a digest of its document, so that what was done is never given to another one.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Self, Unpack

import xxhash

from precis.data.rows.lines import MAX_LINE, numbered_lines
from precis.data.text.marks import unmarked
from precis.data.text.words import length_in_words
from precis.errors import RunError, UserError
from precis.evaluation.faithfulness.marks import HINT, SourceText, Support
from precis.evaluation.predictions import cut_torn_line
from precis.files import appending, refuse_link, replacing, sync_directory, write_whole
from precis.generation.decoding import Watch
from precis.generation.extraction import AHEAD, ExtractOptions, Extractor
from precis.generation.summarizer import Summarizer, Summary, SummaryOptions
from precis.lock import locked_place
from precis.phases.documents import Document
from precis.untrusted import JsonError, look_at, parse_json, size

_FORMAT = "precis-summaries-1"
_MORE = ".part"
_BEGINNING = json.dumps({"format": _FORMAT})[:-1].encode()
_REMEDY = "go on as it was begun, remove it to begin anew, or name another file with --out"
_WRAPPING = 64  # levels and values of a record around a row
_WINDOW = 16  # batches that are read ahead, as `Summarizer.stream` sorts them


@dataclass(frozen=True)
class Result:
    """A document's summary, or None for one that has none: it cannot be read, or holds nothing that the model knows."""

    document: Document
    summary: Summary | None
    support: Support | None = None

    @property
    def problem(self) -> str:
        """Why there is no summary; empty where there is one."""
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
            **self._sources(summary),
            "document_tokens": summary.document_tokens,
            "tokens_read": summary.tokens_read,
            "summary_tokens": summary.summary_tokens,
            "words": length_in_words(summary.text),
            "finished": summary.finished,
            "read": summary.how,
            "pieces": summary.pieces,
            "kept": summary.kept,
            **({} if self.support is None else {"support": self.support.to_dict()}),
            **row,
        }

    def _sources(self, summary: Summary) -> dict[str, Any]:
        """Where the chosen sentences stand, if the format says so, and what of the file was not read."""
        passages = self.document.passages
        found = [passages.at(start).to_dict() for start, _ in summary.places]
        notes = {"left_out": [*passages.notes]} if passages.notes else {}
        return ({"sources": found} if any(found) else {}) | notes

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
    return _results(
        documents, write, full=lambda window: len(window) >= _WINDOW * batch_size, keep_going=keep_going
    )


def _says_something(text: str) -> bool:
    """Whether a text has a character besides white space and control characters."""
    return any(unicodedata.category(character)[0] not in "CZ" for character in text)


def extract_documents(
    extractor: Extractor,
    documents: Iterable[Document],
    *,
    keep_going: bool = False,
    **options: Unpack[ExtractOptions],
) -> Iterator[Result]:
    """`summarize_documents` for summaries of chosen sentences."""
    options["skip_empty"] = True
    choose = partial(extractor.stream, **options)
    return _results(
        documents,
        choose,
        full=lambda window: sum(len(document.text) for document in window) >= AHEAD,
        keep_going=keep_going,
    )


def _results(
    documents: Iterable[Document],
    summarize: Callable[[list[str]], Iterator[Summary]],
    *,
    full: Callable[[list[Document]], bool],
    keep_going: bool,
) -> Iterator[Result]:
    """The results of documents; those that are read until there are enough are summarized together."""
    stream = iter(documents)
    first = list(islice(stream, 2))
    for window in _windows(chain(first, stream), full):
        written = summarize([document.text for document in window])
        for document, summary in zip(window, written, strict=True):
            result = Result(document, summary if summary.document_tokens else None)
            if result.problem and not keep_going:
                raise result.failure(alone=len(first) == 1)
            yield result


def _windows(
    documents: Iterable[Document], full: Callable[[list[Document]], bool]
) -> Iterator[list[Document]]:
    """Documents in order. What ends their reading is raised when those before it are done."""
    window: list[Document] = []
    try:
        for document in documents:
            window.append(document)
            if full(window):
                yield window
                window = []
    except (UserError, RunError):
        if window:
            yield window
        raise
    if window:
        yield window


def with_support(results: Iterable[Result]) -> Iterator[Result]:
    """The results, each summary compared with its document (`precis.evaluation.faithfulness.marks`)."""
    for result in results:
        if result.summary is None:
            yield result
        else:
            source = SourceText(unmarked(result.document.text))
            yield replace(result, support=source.support(result.summary.text))


def told(result: Result, *, max_source: int | None) -> str:
    """How much of the document was read and what the summary's length is, in one line."""
    summary, name = result.summary, result.document.name
    if summary is None or result.problem:
        return f"{name}: {result.problem}, no summary"
    total = f"{summary.document_tokens:,}"
    if summary.kept:
        notes = "".join(f"; {note}" for note in result.document.passages.notes)
        return f"{name}: given back as it is, {total} tokens are no more than a summary would have{notes}"
    read = {
        "whole": f"read all {total} tokens",
        "fie": f"read all {total} tokens by fusion-in-encoder, more than the {max_source} it was trained on",
        "chunk": f"read all {total} tokens in {summary.pieces} pieces, then summarized their summaries",
        "truncate": f"read only the first {summary.tokens_read:,} of {total} tokens",
    }[summary.how]
    words = length_in_words(summary.text)
    ending = "" if summary.finished else ", cut off mid-sentence"
    chosen = ", chosen word for word" if summary.mode == "extract" else ""
    passages = result.document.passages
    places = passages.told(start for start, _ in summary.places)
    notes = "".join(f"; {note}" for note in passages.notes)
    return (
        f"{name}: {read}; {words} {'word' if words == 1 else 'words'}{chosen}{ending}"
        f"{f' ({places})' if places else ''}{notes}"
    )


Render = Callable[[Mapping[str, Any]], str]


def as_json(record: Mapping[str, Any]) -> str:
    """A line of JSON."""
    return json.dumps(record, ensure_ascii=False) + "\n"


def as_text(record: Mapping[str, Any]) -> str:
    """A summary under its document's name."""
    text = record.get("summary") or f"(no summary: {record['error']})"
    return f"{record['name']}\n{text}\n{support_text(record)}\n"


def as_text_alone(record: Mapping[str, Any]) -> str:
    """The summary of the only document."""
    return f"{record['summary']}\n{support_text(record)}"


def support_text(record: Mapping[str, Any]) -> str:
    """The sentences of a summary with their source sentences and marks, to be read below it; "" if nobody asked."""
    if "support" not in record:
        return ""
    support, lines = record["support"], [""]
    for number, sentence in enumerate(support["sentences"], start=1):
        lines.append(f"[{number}] {sentence['text']}")
        shares = zip(("words", "pairs", "triples"), sentence["ngrams"], strict=True)
        found = ", ".join(f"{name} {share:.0%}" for name, share in shares if share is not None)
        lines.append("    " + ("word for word" if sentence["copied"] else f"in the source: {found}"))
        if not sentence["copied"]:
            lines += [f"    source: {passage['text']}" for passage in sentence["aligned"]]
        inside = [m for m in support["marks"] if sentence["start"] <= m["start"] < sentence["end"]]
        lines += [f"    ? {mark['kind']} {mark['text']!r}: {mark['reason']}" for mark in inside]
    lines += [f"not checked: {kind}s, as {reason}" for kind, reason in support["unchecked"].items()]
    return "\n".join([*lines, f"({HINT})", ""])


class SummariesFile:
    """One file of summaries.

    with SummariesFile(path, made_by={"model": digest}, render=as_json) as file:
        for result in summarize_documents(summarizer, file.left(documents)):
            file.append(result)
        file.finish()

    Attributes:
        done: documents that have their line.
        failed: those of them without a summary; `first_failure` says which was the first, and why.

    Args:
        made_by: JSON-ready facts that decide the summaries; they must equal those of the unfinished file.
        render: what the finished file shows of a record (`Result.to_dict`).

    Raises:
        UserError: `path` is there already, its unfinished file was made by something else, or another process is
            writing it.
    """

    def __init__(self, path: Path, *, made_by: Mapping[str, Any], render: Render) -> None:
        self.path, self._part = path, path.with_name(path.name + _MORE)
        self._made_by, self._render = json.loads(json.dumps(dict(made_by))), render
        self.done = self.failed = 0
        self.first_failure = ""
        self._digests: list[str] = []
        self._stack = ExitStack()
        self._file: BinaryIO | None = None
        refuse_link(path)
        # Both are there if a kill came between the last two steps.
        if look_at(path) is not None and look_at(self._part) is None:
            raise UserError(
                f"{path}: is there already, nothing was summarized; remove it, or name another file with --out"
            )
        path.parent.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        self._stack.enter_context(locked_place(self.path, doing="writing"))
        try:
            self._take_up()
            self._file = self._stack.enter_context(appending(self._part))
            if not self._part.stat().st_size:
                self._write({"format": _FORMAT, "made_by": self._made_by})
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def left(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The documents without a summary so far.

        Raises:
            UserError: what was done was done for other documents.
        """
        found = 0
        for found, document in enumerate(documents, start=1):
            if found > len(self._digests):
                self._digests.append(_digest(document))
                yield document
            elif _digest(document) != self._digests[found - 1]:
                raise UserError(
                    f"{self._part}: its summary {found:,} was not made of {document.name}; {_REMEDY}"
                )
        if found < len(self._digests):
            more = f"{len(self._digests):,} summaries, and there are {found:,} documents"
            raise UserError(f"{self._part}: holds {more}; {_REMEDY}")

    def append(self, result: Result) -> None:
        """Write the result of the next document."""
        self._write({"document": _digest(result.document), "result": result.to_dict()})
        self._count(result.to_dict())

    def finish(self) -> None:
        """Put the finished file in its place.

        Raises:
            UserError: a file has appeared there meanwhile.
        """
        if look_at(self.path) is not None and not self._is_finished():
            raise UserError(
                f"{self.path}: is there already; move it away, and the same command ends with {self._part}"
            )
        with replacing(self.path) as file:
            for text in self._rendered():
                file.write(text)
        self._part.unlink()
        sync_directory(self.path.parent)

    def _rendered(self) -> Iterator[bytes]:
        return (self._render(record["result"]).encode() for record in self._records())

    def _is_finished(self) -> bool:
        """Whether the file in the place is the one that would be put there."""
        with self.path.open("rb") as file:
            return all(file.read(len(text)) == text for text in self._rendered()) and not file.read(1)

    def _write(self, record: Mapping[str, Any]) -> None:
        assert self._file is not None
        line = as_json(record).encode()
        if len(line) > MAX_LINE:
            problem = f"with its other columns it is larger than {size(MAX_LINE)}; leave some of them out"
            raise UserError(f"{record['result']['name']}: {problem}")
        write_whole(self._part, self._file, line)

    def _take_up(self) -> None:
        refuse_link(self._part)
        if look_at(self._part) is None:
            return
        with self._part.open("rb") as file:
            if not _BEGINNING.startswith(file.read(len(_BEGINNING))):
                raise UserError(f"{self._part}: was not written by precis summarize; {_REMEDY}")
        cut_torn_line(self._part)
        for record in self._records():
            self._digests.append(str(record["document"]))
            self._count(record["result"])

    def _count(self, record: Mapping[str, Any]) -> None:
        self.done += 1
        if "error" in record:
            self.failed += 1
            self.first_failure = self.first_failure or f"{record.get('name')}: {record['error']}"

    def _records(self) -> Iterator[dict[str, Any]]:
        """The lines behind the first, each checked."""
        for number, line in numbered_lines(self._part):
            try:
                record = parse_json(line, wrapping=_WRAPPING)
            except JsonError:
                record = None
            name = "made_by" if number == 1 else "result"
            if not (isinstance(record, dict) and isinstance(record.get(name), dict)):
                raise UserError(
                    f"{self._part}, line {number}: was not written by precis summarize; {_REMEDY}"
                )
            if number > 1:
                yield record
            else:
                self._refuse_other(record["made_by"])

    def _refuse_other(self, made_by: Mapping[str, Any]) -> None:
        for name in sorted({*made_by, *self._made_by}):
            was, now = made_by.get(name), self._made_by.get(name)
            if was != now:
                raise UserError(f"{self._part}: was begun with {name}={was!r}, now it is {now!r}; {_REMEDY}")


def _digest(document: Document) -> str:
    text = json.dumps([document.name, document.text, document.problem])
    return xxhash.xxh3_128(text.encode()).hexdigest()
