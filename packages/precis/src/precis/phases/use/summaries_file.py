"""A file of summaries, written as they come and renamed when complete; an interrupted command resumes from it.

    out.jsonl.part    during the work: a line with the model and options, then a line per document
    out.jsonl         when all documents are done; the other is then removed

Each line of the unfinished file has a digest of its document, so that no summary is assigned to another document.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Self

import xxhash

from precis.evaluation.predictions import truncate_partial_line
from precis.phases.use.input_documents import Document
from precis.phases.use.summarization import Result
from precis.phases.use.summary_format import Render, as_json
from precis.storage.atomic import appending, refuse_link, replacing, sync_directory, write_whole
from precis.storage.locks import locked_place
from precis_text.bounded_io import JsonError, parse_json, size, stat_or_none
from precis_text.errors import UserError
from precis_text.text_lines import MAX_LINE, numbered_lines

_FORMAT = "precis-summaries-1"
_MORE = ".part"
_BEGINNING = json.dumps({"format": _FORMAT})[:-1].encode()
_REMEDY = "resume with the same options, remove it to start again, or name another file with --out"
_WRAPPING = 64  # levels and values that a record adds around a row


class SummariesFile:
    """One file of summaries.

    with SummariesFile(path, made_by={"model": digest}, render=as_json) as file:
        for result in summarize_documents(summarizer, file.left(documents)):
            file.append(result)
        file.finish()

    Attributes:
        done: documents that have their line.
        failed: those of them without a summary; `first_failure` names the first and the reason.

    Args:
        made_by: JSON-ready values that determine the summaries; they must equal those of the unfinished file.
        render: formats a record (`Result.to_dict`) for the finished file.

    Raises:
        UserError: `path` already exists, its unfinished file was made with another model or options, or another
            process is writing it.
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
        # Both exist after a kill between the last two steps.
        if stat_or_none(path) is not None and stat_or_none(self._part) is None:
            raise UserError(
                f"{path}: already exists, so nothing was summarized; remove it, or name another file with --out"
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
        """Yield the documents without a summary so far.

        Raises:
            UserError: the existing summaries belong to other documents.
        """
        found = 0
        for found, document in enumerate(documents, start=1):
            if found > len(self._digests):
                self._digests.append(_digest(document))
                yield document
            elif _digest(document) != self._digests[found - 1]:
                raise UserError(
                    f"{self._part}: its summary {found:,} does not belong to {document.name}; {_REMEDY}"
                )
        if found < len(self._digests):
            more = f"{len(self._digests):,} summaries, but there are {found:,} documents"
            raise UserError(f"{self._part}: contains {more}; {_REMEDY}")

    def append(self, result: Result) -> None:
        """Write the result of the next document."""
        self._write({"document": _digest(result.document), "result": result.to_dict()})
        self._count(result.to_dict())

    def finish(self) -> None:
        """Write the finished file.

        Raises:
            UserError: a file has appeared there in the meantime.
        """
        if stat_or_none(self.path) is not None and not self._is_finished():
            raise UserError(
                f"{self.path}: already exists; move it away and repeat the command to finish {self._part}"
            )
        with replacing(self.path) as file:
            for text in self._rendered():
                file.write(text)
        self._part.unlink()
        sync_directory(self.path.parent)

    def _rendered(self) -> Iterator[bytes]:
        return (self._render(record["result"]).encode() for record in self._records())

    def _is_finished(self) -> bool:
        """Return whether the existing file is identical to the finished one."""
        with self.path.open("rb") as file:
            return all(file.read(len(text)) == text for text in self._rendered()) and not file.read(1)

    def _write(self, record: Mapping[str, Any]) -> None:
        assert self._file is not None
        line = as_json(record).encode()
        if len(line) > MAX_LINE:
            problem = f"with its other columns it is larger than {size(MAX_LINE)}; remove some of them"
            raise UserError(f"{record['result']['name']}: {problem}")
        write_whole(self._part, self._file, line)

    def _take_up(self) -> None:
        refuse_link(self._part)
        if stat_or_none(self._part) is None:
            return
        with self._part.open("rb") as file:
            if not _BEGINNING.startswith(file.read(len(_BEGINNING))):
                raise UserError(f"{self._part}: was not written by precis summarize; {_REMEDY}")
        truncate_partial_line(self._part)
        for record in self._records():
            self._digests.append(str(record["document"]))
            self._count(record["result"])

    def _count(self, record: Mapping[str, Any]) -> None:
        self.done += 1
        if "error" in record:
            self.failed += 1
            self.first_failure = self.first_failure or f"{record.get('name')}: {record['error']}"

    def _records(self) -> Iterator[dict[str, Any]]:
        """Yield the lines after the first, each checked."""
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
                raise UserError(f"{self._part}: was started with {name}={was!r}, not {now!r}; {_REMEDY}")


def _digest(document: Document) -> str:
    text = json.dumps([document.name, document.text, document.problem])
    return xxhash.xxh3_128(text.encode()).hexdigest()
