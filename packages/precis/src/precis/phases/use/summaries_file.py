"""A file of summaries, written as they come and renamed when complete; an interrupted command resumes from it.

    out.jsonl.part    during the work: a journal (`precis.storage.journal`) with a line per document
    out.jsonl         when all documents are done; the other is then removed

Each line of the unfinished file has a digest of its document, so that no summary is assigned to another document.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import xxhash

from precis.storage.atomic import refuse_link, remove_leftovers, replacing
from precis.storage.journal import Journal, JournalFormat, LongRecordError
from precis.storage.locks import remove_left_lock
from precis_text.bounded_io import is_folder, size, stat_or_none
from precis_text.errors import UserError
from precis_text.text_lines import MAX_LINE

if TYPE_CHECKING:
    from precis.phases.use.input_documents import Document
    from precis.phases.use.summarization import Result
    from precis.phases.use.summary_format import Render

_MORE = ".part"
_REMEDY = "resume with the same options, remove it to start again, or name another file with --out"
_FORMAT = JournalFormat(
    name="precis-summaries-1",
    remedy=_REMEDY,
    wrapping=64,  # levels and values that a record adds around a row
)


def refuse_existing(path: Path, sources: Sequence[str] = ()) -> None:
    """Refuse a file that exists, unless an interrupted command has almost finished it; remove a lock that it left.

    Args:
        sources: the files and folders to summarize, which must not be overwritten.

    Raises:
        UserError: it is a link, it is one of the sources or in one, or it exists already.
    """
    if (found := stat_or_none(path)) is not None:
        for source in map(Path, sources):
            place = stat_or_none(source)
            if place is not None and os.path.samestat(place, found):
                raise UserError(
                    f"{path}: is the input itself, so nothing was summarized; name another file with --out"
                )
            if place is not None and is_folder(source) and source.resolve() in path.resolve().parents:
                raise UserError(
                    f"{path}: is in the folder to summarize, {source}, so nothing was summarized; "
                    "name a new file with --out"
                )
    refuse_link(path)
    # Both exist after a kill between the last two steps.
    if found is not None and stat_or_none(_unfinished(path)) is None:
        remove_left_lock(path)
        raise UserError(
            f"{path}: already exists, so nothing was summarized; remove it, or name another file with --out"
        )


def _unfinished(path: Path) -> Path:
    return path.with_name(path.name + _MORE)


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
        self.path, self._part = path, _unfinished(path)
        self._made_by, self._render = made_by, render
        self.done = self.failed = 0
        self.first_failure = ""
        self._digests: list[str] = []
        refuse_existing(path)

    def __enter__(self) -> Self:
        self._journal = Journal(
            self._part, _FORMAT, made_by=self._made_by, replay=self._take_up, place=self.path
        )
        remove_leftovers(self.path)
        return self

    def __exit__(self, *error: Any) -> None:
        self._journal.__exit__(*error)

    def left(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the documents without a summary so far; raise `UserError` if the file's are of other documents."""
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
        """Write the result of the next document.

        Raises:
            UserError: the row of the document is too long.
            RunError: another program has replaced, deleted or changed the unfinished file.
        """
        record = result.to_dict()
        try:
            self._journal.append({"document": _digest(result.document), "result": record})
        except LongRecordError:
            problem = f"with its other columns it is larger than {size(MAX_LINE)}; remove some of them"
            raise UserError(f"{record['name']}: {problem}") from None
        self._count(record)

    def finish(self) -> None:
        """Write the finished file.

        Raises:
            UserError: a file has appeared there in the meantime.
            RunError: another program has replaced, deleted or changed the unfinished file.
        """
        if stat_or_none(self.path) is not None and not self._is_finished():
            raise UserError(
                f"{self.path}: already exists; move it away and repeat the command to finish {self._part}"
            )
        with replacing(self.path) as file:
            for text in self._rendered():
                file.write(text)
        self._journal.remove()

    def _rendered(self) -> Iterator[bytes]:
        return (self._render(record["result"]).encode() for record in self._journal.records())

    def _is_finished(self) -> bool:
        """Return whether the existing file is identical to the finished one."""
        with self.path.open("rb") as file:
            return all(file.read(len(text)) == text for text in self._rendered()) and not file.read(1)

    def _take_up(self, line: int, record: Mapping[str, Any]) -> None:
        if not isinstance(record.get("result"), dict):
            raise UserError(f"{self._part}, line {line}: is not a summary")
        self._digests.append(str(record.get("document")))
        self._count(record["result"])

    def _count(self, record: Mapping[str, Any]) -> None:
        self.done += 1
        if "error" in record:
            self.failed += 1
            self.first_failure = self.first_failure or f"{record.get('name')}: {record['error']}"


def _digest(document: Document) -> str:
    text = json.dumps([document.name, document.text, document.problem])
    return xxhash.xxh3_128(text.encode()).hexdigest()
