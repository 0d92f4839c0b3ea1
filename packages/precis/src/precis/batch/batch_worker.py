"""One worker of a batch: it makes the same summaries as `precis summarize`, from the same settings.

Ray restarts a worker that died, and gives it the same block. A document that always kills its worker must not block
the batch, so a worker records the documents in work; see `Attempts`.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as arrow

from precis.batch.document_source import unpacked
from precis.phases.use.input_documents import Document
from precis.phases.use.summarization import Result
from precis.phases.use.summary_job import SummaryJob
from precis.storage.atomic import write_file
from precis_text.errors import RunError, UserError, first_line

TRIES = 3
"""Workers of one command that may die on a document by itself before the document fails."""

_COUNTS = ("document_tokens", "tokens_read", "summary_tokens", "words")
ROWS = arrow.schema(
    [(name, arrow.string()) for name in ("id", "digest", "name", "status", "summary", "error", "record")]
    + [(name, arrow.int64()) for name in _COUNTS]
)


def results_of(
    make: Callable[[Iterable[Document]], Iterator[Result]], documents: Sequence[Document]
) -> list[tuple[Result, str]]:
    """Return each document's result and its error, if any; one document's error does not stop the others."""
    try:
        return [(result, result.problem) for result in make(documents)]
    except (UserError, RunError) as error:
        if len(documents) == 1:
            return [(Result(documents[0], None), first_line(error))]
    return [found for document in documents for found in results_of(make, [document])]


class Attempts:
    """A folder with one file for each group of documents in work; finished groups have none.

    A worker that dies leaves its file. Workers then take the documents of that file one at a time. Files of earlier
    commands never make a document fail: a user may have killed the command and its workers.

    Args:
        command: a unique name of the command that started the worker.
    """

    def __init__(self, folder: Path, command: str) -> None:
        self._folder, self._command = folder, command

    @contextmanager
    def at(self, ids: Sequence[str]) -> Iterator[None]:
        """Record these documents during the body; only a process that dies leaves the file."""
        file = self._folder / f"{self._command}-{uuid.uuid4().hex}.json"
        write_file(file, json.dumps([*ids]))
        try:
            yield
        finally:
            file.unlink(missing_ok=True)

    def deaths(self) -> tuple[set[str], Counter[str]]:
        """Return documents in a dead worker's group, and how often this command's workers died on one by itself.

        Documents in work elsewhere are included; no document is given to two workers.
        """
        suspected: set[str] = set()
        alone: Counter[str] = Counter()
        for file in self._folder.glob("*.json"):
            with suppress(FileNotFoundError):  # finished just now
                group = json.loads(file.read_bytes())
                suspected.update(group)
                if len(group) == 1 and file.name.startswith(f"{self._command}-"):
                    alone[group[0]] += 1
        return suspected, alone


class Worker:
    """A model on one machine; Ray starts it, and replaces it if it dies.

    Args:
        attempts: a folder that all workers can access.
        command: see `Attempts`.
    """

    def __init__(self, job: SummaryJob, attempts: Path, command: str) -> None:
        self._make = job.locate_model().load(keep_going=True).results
        self._attempts = Attempts(attempts, command)

    def __call__(self, block: arrow.Table) -> arrow.Table:
        """Summarize documents in the form of `document_source.SCHEMA`; return rows in the same order."""
        documents = dict(
            zip(block["id"].to_pylist(), map(unpacked, block["document"].to_pylist()), strict=True)
        )
        suspected, alone = self._attempts.deaths()
        groups = [[name for name in documents if name not in suspected]]
        groups += [[name] for name in documents if name in suspected]
        found: dict[str, dict[str, Any]] = {}
        for group in filter(None, groups):
            if alone[group[0]] >= TRIES:
                found[group[0]] = _given_up(documents[group[0]])
                continue
            with self._attempts.at(group):
                results = results_of(self._make, [documents[name] for name in group])
            found |= {name: _row(*result) for name, result in zip(group, results, strict=True)}
        digests = zip(documents, block["digest"].to_pylist(), strict=True)
        return arrow.Table.from_pylist(
            [{"id": name, "digest": d, **found[name]} for name, d in digests], ROWS
        )


def _row(result: Result, problem: str) -> dict[str, Any]:
    record = result.to_dict() | ({"error": problem} if problem else {})
    counts = {name: record.get(name) for name in _COUNTS}
    texts = {name: record.get(name) for name in ("name", "summary", "error")}
    status = "error" if problem else "ok"
    return {**texts, **counts, "status": status, "record": json.dumps(record, ensure_ascii=False)}


def _given_up(document: Document) -> dict[str, Any]:
    problem = f"its worker died {TRIES} times while it processed only this document; it may be too long for the memory"
    return {**_row(Result(document, None), problem), "status": "failed"}
