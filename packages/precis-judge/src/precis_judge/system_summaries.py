"""Documents and their summaries by several systems, from files of predictions."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from precis.data.pairs.pair import BadRowError, Columns, Pair, pair_of
from precis.data.rows.row_files import read_rows
from precis.evaluation.predictions import is_predictions, read_rows_by_id, text_of
from precis_text.bounded_io import is_folder, stat_or_none, suggest
from precis_text.control_characters import readable
from precis_text.errors import UserError
from precis_text.row import Row, invalid_text, list_names

REFERENCE = "reference"
_DOCUMENTS = "documents.jsonl"  # of precis compare, next to its predictions/


@dataclass(frozen=True, kw_only=True)
class JudgedDocument:
    """A source document and its summary by each system: system -> summary.

    Attributes:
        truth: the human summary that judges see next to both summaries; "" for none.
    """

    id: str
    document: str
    summaries: Mapping[str, str]
    truth: str = ""


def prediction_files(places: Sequence[Path]) -> dict[str, Path]:
    """Return system -> file. A folder of `precis evaluate` or `compare` gives the files in its `predictions/`.

    Raises:
        UserError: a place contains no file, two files have the same name, or one has the name of the references.
    """
    found: dict[str, Path] = {}
    for place in places:
        for file in _files(place):
            if file.stem in found:
                raise UserError(
                    f"{file}: {found[file.stem]} has the same name {file.stem!r}, and the file name is the name of "
                    "the system; rename one"
                )
            if file.stem == REFERENCE:
                raise UserError(f"{file}: {REFERENCE!r} is the name of the human references; rename the file")
            found[file.stem] = file
    return found


def _files(place: Path) -> list[Path]:
    if not is_folder(place):
        if stat_or_none(place) is None:
            raise UserError(f"{place} does not exist; name a file of predictions{suggest(place)}")
        return [place]
    files = sorted((place / "predictions").glob("*.jsonl"))
    if not files:
        raise UserError(
            f"{place} does not contain predictions/*.jsonl; name a file, or a folder of precis evaluate --out"
        )
    return files


def compared_pairs(places: Sequence[Path]) -> list[Pair] | None:
    """Return the documents of the first folder of `precis compare` among these places; None without one.

    Raises:
        UserError: a row is damaged.
    """
    file = next(
        (place / _DOCUMENTS for place in places if stat_or_none(place / _DOCUMENTS) is not None), None
    )
    if file is None:
        return None
    found = []
    for row in read_rows(file):
        try:
            found.append(pair_of(row, Columns(), need_summary=False))
        except BadRowError as error:
            raise UserError(f"{file}: {row.place}: {error}; repeat precis compare") from None
    return found


def judged_documents(
    files: Mapping[str, Path],
    pairs: Sequence[Pair] | None,
    *,
    with_reference: bool = False,
    show_truth: bool = False,
) -> list[JudgedDocument]:
    """Return every document with the summary of every system.

    Args:
        files: system -> its predictions: those of `precis evaluate`, JSON lines of rows, or text, one summary a line.
        pairs: the documents, in the order of the predictions; if None, the rows contain them.
        with_reference: treat the pairs' own summaries as a system called "reference".
        show_truth: show the pairs' own summaries next to both summaries.

    Raises:
        UserError: a file cannot be read, systems summarized different documents, or sources are missing.
    """
    if show_truth and with_reference:
        raise UserError(
            "--show-reference would show judges which summary is the human one; omit it, or --reference"
        )
    if pairs is None:
        if with_reference or show_truth:
            raise UserError(
                "human references come with the documents; name the documents with --data or --task"
            )
        return _from_rows(files)
    # loads torch, which an existing study does not need
    from precis.phases.measure.evaluation_inputs import given_predictions

    systems = {name: given_predictions(file, pairs) for name, file in files.items()}
    if with_reference:
        systems[REFERENCE] = [_reference(pair, row) for row, pair in enumerate(pairs, start=1)]
    return _unique(
        JudgedDocument(
            id=pair.id or f"row-{row + 1}",
            document=readable(pair.document),
            summaries={name: texts[row] for name, texts in systems.items()},
            truth=_reference(pair, row + 1) if show_truth else "",
        )
        for row, pair in enumerate(pairs)
    )


def sample(documents: list[JudgedDocument], count: int | None, *, seed: int) -> list[JudgedDocument]:
    """Draw `count` documents and keep their order; if `count` is None, return all.

    Raises:
        UserError: there are fewer.
    """
    if count is None:
        return documents
    if count > len(documents):
        raise UserError(f"--documents {count}: only {len(documents):,} are available; use at most that many")
    chosen = random.Random(f"precis judge documents {seed}").sample(range(len(documents)), count)
    return [documents[place] for place in sorted(chosen)]


def _reference(pair: Pair, row: int) -> str:
    if not pair.summary.strip():
        raise UserError(
            f"pair {row} lacks a summary; --reference and --show-reference need one in every pair"
        )
    return pair.summary


def _has_rows(file: Path) -> bool:
    return file.suffix == ".jsonl" and not is_predictions(file)


def _unique(documents: Any) -> list[JudgedDocument]:
    found: dict[str, JudgedDocument] = {}
    for one in documents:
        if one.id in found:
            raise UserError(f"two documents have the id {list_names([one.id])}; give each its own")
        found[one.id] = one
    if not found:
        raise UserError("the files contain no documents to judge; name other files")
    return list(found.values())


def _from_rows(files: Mapping[str, Path]) -> list[JudgedDocument]:
    """Return the documents of JSON lines with id, document and summary; all files must have the same ones."""
    documents: dict[str, str] = {}
    summaries: dict[str, dict[str, str]] = {}
    for name, file in files.items():
        if not _has_rows(file):
            raise UserError(f"{file} does not contain source documents; name them with --data or --task")
        rows = read_rows_by_id(file)
        first = next(iter(files.values()))
        _same_ids(file, rows, first, documents or rows)
        summaries[name] = {}
        for identity, row in rows.items():
            document = _text(file, row, "document", hint="; or name the documents with --data")
            if documents.setdefault(identity, document) != document:
                raise UserError(
                    f"{file}, {row.place}: {list_names([identity])} has a different document in {first}"
                )
            summaries[name][identity] = text_of(file, row)
    return _unique(
        JudgedDocument(
            id=identity, document=text, summaries={name: summaries[name][identity] for name in files}
        )
        for identity, text in documents.items()
    )


def _same_ids(file: Path, rows: Mapping[str, object], first: Path, wanted: Mapping[str, object]) -> None:
    for one, other, keys in (
        (file, first, wanted.keys() - rows.keys()),
        (first, file, rows.keys() - wanted.keys()),
    ):
        if keys:
            raise UserError(
                f"{one} lacks a row with the id {list_names(sorted(keys)[:1])}, which {other} contains"
            )


def _text(file: Path, row: Row, column: str, *, hint: str = "") -> str:
    value = row.values.get(column)
    if not isinstance(value, str):
        raise UserError(f"{file}, {row.place}: needs a text in {column!r}{hint}")
    if problem := invalid_text(value):
        raise UserError(f"{file}, {row.place}: {column!r}: {problem}")
    return value
