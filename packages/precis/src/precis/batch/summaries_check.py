"""Compares a file of summaries with the documents: each document's id must appear there exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import xxhash

from precis.batch.document_source import documents_of
from precis.data.rows.row_files import read_rows
from precis.phases.use.input_documents import Reading


@dataclass(frozen=True)
class Verification:
    """The result of a verification.

    Attributes:
        documents: number of documents read.
        failed: number of summaries without the status "ok".
        missing: names of documents without a summary.
        strange: names of summaries whose document is missing or has changed.
        twice: names of summaries that appear more than once.
        same: pairs of names of documents with the same text: the first one and each later one.
    """

    documents: int
    failed: int
    missing: list[str]
    strange: list[str]
    twice: list[str]
    same: list[tuple[str, str]]

    def problem(self) -> str:
        """Return what does not match, each with a number and the first name; "" if all match one to one."""
        parts = {
            "documents without a summary": self.missing,
            "summaries without a document": self.strange,
            "summaries that occur more than once": self.twice,
        }
        return "; ".join(
            f"{what}: {len(names):,} (first: {names[0]})" for what, names in parts.items() if names
        )

    def duplicates(self) -> str:
        """Return a line about the documents with the text of an earlier one; there must be some."""
        first, other = self.same[0]
        return f"duplicates of another document: {len(self.same):,} (first: {other} of {first})"


def verify(summaries: Path, files: Sequence[str], how: Reading) -> Verification:
    """Read the documents again and compare their ids with those of the summaries."""
    found: Counter[str] = Counter()
    names: dict[str, str] = {}
    failed = 0
    for row in _rows(summaries):
        found[row["id"]] += 1
        names[row["id"]] = row["name"]
        failed += row["status"] != "ok"
    wanted: set[str] = set()
    missing: list[str] = []
    firsts: dict[str, str] = {}
    same: list[tuple[str, str]] = []
    for file in files:
        for identity, document in documents_of(file, how):
            wanted.add(identity)
            if identity not in found:
                missing.append(document.name)
            if document.text:
                first = firsts.setdefault(xxhash.xxh3_128_hexdigest(document.text.encode()), document.name)
                if first != document.name:
                    same.append((first, document.name))
    strange = [names[identity] for identity in found if identity not in wanted]
    twice = [names[identity] for identity, count in found.items() if count > 1]
    return Verification(len(wanted), failed, missing, strange, twice, same)


def _rows(summaries: Path) -> Iterator[dict[str, Any]]:
    if summaries.suffix == ".parquet":
        for batch in parquet.ParquetFile(summaries).iter_batches(columns=["id", "name", "status"]):
            yield from batch.to_pylist()
        return
    for row in read_rows(summaries):
        yield dict(row.values)
