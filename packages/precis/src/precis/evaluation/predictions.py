"""Predictions on disk, one JSON line each, written one by one: an interrupted evaluation resumes from them.

They are a journal (`precis.storage.journal`). Its first line records how they were made; each further line names its
example and a digest of its document. Both are checked before any append, so summaries of two models or of two test
sets never mix.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from precis.data.pairs.pair import Pair
from precis.data.rows.row_files import read_rows
from precis.storage.journal import Journal, JournalFormat, is_journal, read_journal
from precis_text.bounded_io import stat_or_none
from precis_text.control_characters import remove_marks
from precis_text.errors import UserError
from precis_text.row import Row, invalid_text, kind_of, list_names, pluralize

FORMAT = JournalFormat(name="precis-predictions-1", remedy="delete the file after retraining, or use another")
_TEXTS = ("summary", "prediction")  # fields of another program's rows


class OtherPairsError(UserError):
    """Predictions were made for other pairs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """One summary, with `details` of its maker; `tokens_read` < `document_tokens`: the model did not read the whole."""

    id: str
    prediction: str
    document_tokens: int
    tokens_read: int
    details: Mapping[str, Any] = field(default_factory=dict)


class PredictionWriter(AbstractContextManager["PredictionWriter"]):
    """Writer that appends predictions for `pairs`, in their order, and flushes each.

    with PredictionWriter(path, pairs, made_by={"model": name, "beams": 4}) as writer:
        for pair in pairs[writer.done :]:
            writer.append(...)

    Args:
        path: a file that may contain the start of the same work; a torn last line (after a kill) is removed.
        made_by: JSON-ready values that determine the predictions (model, settings); they must equal the file's.

    Raises:
        UserError: the file has other settings or other examples, or is not a predictions file.
        HeldError: another process is writing it.
    """

    def __init__(
        self, path: str | Path, pairs: Sequence[Pair], *, made_by: Mapping[str, Any] | None = None
    ) -> None:
        self.path = Path(path)
        self._keys = [_key(pair, row) for row, pair in enumerate(pairs)]
        self._journal = Journal(self.path, FORMAT, made_by=made_by or {}, replay=self._check)

    @property
    def done(self) -> int:
        """Pairs that have a prediction."""
        return self._journal.count

    def append(
        self,
        prediction: str,
        *,
        document_tokens: int = 0,
        tokens_read: int = 0,
        details: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Write the prediction for the next pair.

        Args:
            details: further JSON values to keep with it.

        Raises:
            UserError: every pair already has a prediction.
            RunError: another program has replaced, deleted or changed the file.
        """
        if self.done == len(self._keys):
            raise UserError(f"{self.path} already holds all {self.done} predictions")
        identity, digest = self._keys[self.done]
        fields = Prediction(
            id=identity,
            prediction=prediction,
            document_tokens=document_tokens,
            tokens_read=tokens_read,
            details={**details},
        )
        kept = {name: value for name, value in asdict(fields).items() if name != "details" or value}
        self._journal.append({**kept, "document": digest})

    def close(self) -> None:
        self._journal.close()

    def __exit__(self, *error: Any) -> None:
        self._journal.__exit__(*error)

    def _check(self, line: int, record: Mapping[str, Any]) -> None:
        """Check an existing prediction."""
        _check_types(self.path, line, record)
        if line - 1 > len(self._keys):
            count = len(self._keys)
            raise OtherPairsError(
                f"{self.path} holds more than {count:,} predictions, but there are {count:,} examples"
            )
        _check_example(self.path, line, record, self._keys[line - 2])


def read_predictions(path: str | Path, pairs: Sequence[Pair] | None = None) -> list[Prediction]:
    """Read the predictions in a file, in order; ignore a torn last line, left by a kill.

    Args:
        pairs: the examples that they must be for, one each; if None, they are not checked.

    Raises:
        UserError: the file is missing, is not a predictions file, or belongs to other examples; the message
            names the line.
    """
    path = Path(path)
    if stat_or_none(path) is None:
        raise UserError(f"{path}: no such predictions file")
    found = list(read_journal(path, FORMAT))
    for line, record in found:
        _check_types(path, line, record)
    if pairs is not None:
        if len(found) != len(pairs):
            raise UserError(f"{path}: has {len(found)} predictions for {len(pairs)} examples")
        for (line, record), (row, pair) in zip(found, enumerate(pairs), strict=True):
            _check_example(path, line, record, _key(pair, row))
    names = Prediction.__dataclass_fields__
    return [Prediction(**{name: record[name] for name in names if name in record}) for _, record in found]


def read_texts(path: Path, pairs: Sequence[Pair]) -> list[str]:
    """Read the summaries of another program, JSON rows that the ids of the pairs match, in the order of the pairs.

    Raises:
        UserError: a row lacks an id or a text, or pairs and rows do not match one to one.
    """
    rows = read_rows_by_id(path)
    keys = [_key(pair, row)[0] for row, pair in enumerate(pairs)]
    wanted = Counter(keys)
    if twice := [key for key, count in wanted.items() if count > 1]:
        told = f"two pairs have the id {list_names(twice[:1])}, so that it matches no row"
        raise UserError(f"{path}: {told}; use text with one summary per line")
    if missing := [key for key in keys if key not in rows]:
        lacks = pluralize(len(missing), "document")
        raise UserError(f"{path} lacks the summaries of {lacks}, the first is {list_names(missing[:1])}")
    if further := [key for key in rows if key not in wanted]:
        more = f"{pluralize(len(further), 'row')} without a pair to score on, the first is {list_names(further[:1])}"
        raise UserError(f"{path}: has {more}; remove them")
    return [text_of(path, rows[key]) for key in keys]


def read_rows_by_id(path: Path) -> dict[str, Row]:
    """Return a file's rows by their ids, names or numbers; raise `UserError` if an id is missing or occurs twice."""
    found: dict[str, Row] = {}
    for row in read_rows(path):
        if row.problem:
            raise UserError(f"{path}, {row.place}: {row.problem}")
        value = row.values.get("id")
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            told = "'id' must be a name or a number, by which summaries are matched"
            raise UserError(f"{path}, {row.place}: {told}; or use text with one summary per line")
        if str(value) in found:
            raise UserError(
                f"{path}, {row.place}: {list_names([str(value)])} appears a second time; use unique ids"
            )
        found[str(value)] = row
    if not found:
        raise UserError(f"{path} is empty; name a file with rows")
    return found


def text_of(path: Path, row: Row) -> str:
    """Return the summary of another program's row; raise `UserError` without exactly one text in its fields."""
    there = [name for name in _TEXTS if name in row.values]
    if len(there) != 1:
        but = ", but has both; remove one" if there else ""
        raise UserError(f"{path}, {row.place}: needs one text in {' or '.join(map(repr, _TEXTS))}{but}")
    value = row.values[there[0]]
    if not isinstance(value, str):
        raise UserError(f"{path}, {row.place}: needs a text in {there[0]!r}, not {kind_of(value)}")
    if problem := invalid_text(value):
        raise UserError(f"{path}, {row.place}: {there[0]!r}: {problem}")
    return value


def is_predictions(path: Path) -> bool:
    """Check for the header of `PredictionWriter`; a file that a kill left empty or torn also counts."""
    return is_journal(path, FORMAT)


def _key(pair: Pair, row: int) -> tuple[str, str]:
    digest = hashlib.sha256(remove_marks(pair.document).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return pair.id or f"row-{row + 1}", digest


def _check_example(path: Path, line: int, record: Mapping[str, Any], key: tuple[str, str]) -> None:
    """Check that a record was made for the example at its position."""
    if (record["id"], record["document"]) != key:
        found, wanted = list_names([record["id"]]), list_names([key[0]])
        raise OtherPairsError(
            f"{path}, line {line}: made for example {found}, not for {wanted} with this document"
        )


_KINDS = {"id": str, "prediction": str, "document_tokens": int, "tokens_read": int, "document": str}
_CALLED = {str: "text", int: "a whole number"}


def _check_types(path: Path, line: int, record: Mapping[str, Any]) -> None:
    for name, kind in _KINDS.items():
        if name not in record:
            raise UserError(f"{path}, line {line}: {name!r} is missing")
        value = record[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise UserError(f"{path}, line {line}: {name!r} must be {_CALLED[kind]}, not {kind_of(value)}")
        if isinstance(value, str) and (problem := invalid_text(value)):
            raise UserError(f"{path}, line {line}: {name!r}: {problem}")
    if not isinstance(details := record.get("details", {}), dict):
        raise UserError(f"{path}, line {line}: 'details' must be an object, not {kind_of(details)}")
