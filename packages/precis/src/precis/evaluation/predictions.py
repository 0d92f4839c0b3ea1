"""Predictions on disk, one JSON line each, written one by one: an interrupted evaluation resumes from them.

The first line records how they were made; each further line names its example and a digest of its document. Both
are checked before any append, so summaries of two models or of two test sets never mix.

Each line ends with a seal: a digest of this line and of the seal before it. Every read checks the seals, so it finds a
line that was changed, removed or inserted. Lines without a seal (an earlier version's) are read unchecked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import xxhash

from precis.data.pairs.pair import Pair
from precis.storage.atomic import appending, refuse_link, write_whole
from precis_text.bounded_io import MIB, JsonError, open_regular, parse_json, stat_or_none
from precis_text.control_characters import unmarked
from precis_text.errors import UserError
from precis_text.row import invalid_text, kind_of, named
from precis_text.text_lines import numbered_lines

_FORMAT = "precis-predictions-2"
_UNSEALED = "precis-predictions-1"  # the same without seals
_BEGINNING = b'{"format": "precis-predictions-'
_NO_SEAL = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """One summary. `tokens_read` < `document_tokens` means that the model did not read the whole document."""

    id: str
    prediction: str
    document_tokens: int
    tokens_read: int


class PredictionWriter:
    """Writer that appends predictions for `pairs`, in their order, and flushes each.

    with PredictionWriter(path, pairs, made_by={"model": name, "beams": 4}) as writer:
        for pair in pairs[writer.done :]:
            writer.append(...)

    Args:
        path: a file that may contain the start of the same work; a torn last line (after a kill) is removed.
        made_by: JSON-ready facts that determine the predictions (model, settings); they must equal the file's.

    Raises:
        UserError: the file has other settings or other examples, or is not a predictions file.
    """

    def __init__(
        self, path: str | Path, pairs: Sequence[Pair], *, made_by: Mapping[str, Any] | None = None
    ) -> None:
        self.path = Path(path)
        self._keys = [_key(pair, row) for row, pair in enumerate(pairs)]
        self._made_by = json.loads(json.dumps(dict(made_by or {})))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._seal: str | None = _NO_SEAL
        self.done = self._resume()
        self._file = appending(self.path)
        if self.path.stat().st_size == 0:
            self._write({"format": _FORMAT, "made_by": self._made_by})

    def append(self, prediction: str, *, document_tokens: int = 0, tokens_read: int = 0) -> None:
        """Write the prediction for the next pair.

        Raises:
            UserError: every pair already has a prediction.
        """
        if self.done == len(self._keys):
            raise UserError(f"{self.path} already holds all {self.done} predictions")
        identity, digest = self._keys[self.done]
        fields = Prediction(
            id=identity, prediction=prediction, document_tokens=document_tokens, tokens_read=tokens_read
        )
        self._write({**asdict(fields), "document": digest})
        self.done += 1

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, record: Mapping[str, Any]) -> None:
        if self._seal is not None:
            self._seal = _seal(self._seal, record)
            record = {**record, "seal": self._seal}
        line = (json.dumps(record, ensure_ascii=False) + "\n").encode()
        write_whole(self.path, self._file, line)  # the next resume cuts off a torn line

    def _resume(self) -> int:
        """Check the contents of the file, cut off a torn last line, and count the predictions."""
        refuse_link(self.path)
        if stat_or_none(self.path) is None:
            return 0
        try:
            header, records = _read(self.path)
            if header is None and not is_predictions(self.path):
                raise UserError(f"{self.path}, row 1: not a {_FORMAT} file")
            if header is not None:
                self._seal = [header, *records][-1].get("seal")
                self._check_made_by(header["made_by"])
                if len(records) > len(self._keys):
                    raise UserError(
                        f"{self.path} holds {len(records)} predictions for {len(self._keys)} examples"
                    )
                _check_examples(self.path, records, self._keys)
        except UserError as error:
            raise UserError(f"{error}; delete the file or choose another one") from None
        truncate_partial_line(self.path)
        return len(records)

    def _check_made_by(self, found: Mapping[str, Any]) -> None:
        wanted = self._made_by
        for name in sorted({*found, *wanted}):
            if found.get(name) != wanted.get(name):
                raise UserError(
                    f"{self.path} was made with {name}={found.get(name)!r}, but now it is {wanted.get(name)!r}"
                )


def read_predictions(path: str | Path, pairs: Sequence[Pair] | None = None) -> list[Prediction]:
    """Read the predictions in a file, in order; ignore a torn last line, left by a kill.

    Args:
        pairs: the examples that they must be for, one each; if None, they are not checked.

    Raises:
        UserError: the file is missing, is not a predictions file, or belongs to other examples; the message
            names the row.
    """
    if stat_or_none(Path(path)) is None:
        raise UserError(f"{path}: no such predictions file")
    _, records = _read(Path(path))
    if pairs is not None:
        if len(records) != len(pairs):
            raise UserError(f"{path}: has {len(records)} predictions for {len(pairs)} examples")
        _check_examples(Path(path), records, [_key(pair, row) for row, pair in enumerate(pairs)])
    names = Prediction.__dataclass_fields__
    return [Prediction(**{name: record[name] for name in names}) for record in records]


def is_predictions(path: Path) -> bool:
    """Check for the header of `PredictionWriter`; a file that a kill left empty or torn also counts."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return _BEGINNING.startswith(file.read(len(_BEGINNING)))


def _key(pair: Pair, row: int) -> tuple[str, str]:
    digest = hashlib.sha256(unmarked(pair.document).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return pair.id or f"row-{row + 1}", digest


def _check_examples(
    path: Path, records: Sequence[Mapping[str, Any]], keys: Sequence[tuple[str, str]]
) -> None:
    """Check that each record was made for the example at its position."""
    for row, (record, (identity, digest)) in enumerate(zip(records, keys, strict=False), start=2):
        if (record["id"], record["document"]) != (identity, digest):
            found, wanted = named([record["id"]]), named([identity])
            raise UserError(
                f"{path}, row {row}: made for example {found}, not for {wanted} with this document"
            )


def truncate_partial_line(path: Path) -> None:
    """Cut off the text after the last line break: a line that a kill left unfinished."""
    whole = place = 0
    with open_regular(path) as file:
        while chunk := file.read(MIB):
            if (last := chunk.rfind(b"\n")) >= 0:
                whole = place + last + 1
            place += len(chunk)
    if whole < place:
        with path.open("r+b") as file:
            file.truncate(whole)


def _read(path: Path) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    # text after the last line break is torn
    lines = ((row, line) for row, line in numbered_lines(path) if line.endswith(b"\n"))
    rows = [_parse(path, row, line) for row, line in lines]
    if not rows:
        return None, []
    if rows[0].get("format") not in (_FORMAT, _UNSEALED) or not isinstance(rows[0].get("made_by"), dict):
        raise UserError(f"{path}, row 1: not a {_FORMAT} file")
    for row, record in enumerate(rows[1:], start=2):
        for name, kind in _KINDS.items():
            if name not in record:
                raise UserError(f"{path}, row {row}: {name!r} is missing")
            value = record[name]
            if not isinstance(value, kind) or isinstance(value, bool):
                raise UserError(f"{path}, row {row}: {name!r} must be {_CALLED[kind]}, not {kind_of(value)}")
            if isinstance(value, str) and (problem := invalid_text(value)):
                raise UserError(f"{path}, row {row}: {name!r}: {problem}")
    if rows[0]["format"] == _FORMAT:
        _check_seals(path, rows)
    return rows[0], rows[1:]


_KINDS = {"id": str, "prediction": str, "document_tokens": int, "tokens_read": int, "document": str}
_CALLED = {str: "text", int: "a whole number"}


def _check_seals(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    seal = _NO_SEAL
    for row, record in enumerate(rows, start=1):
        seal = _seal(seal, {name: value for name, value in record.items() if name != "seal"})
        if record.get("seal") != seal:
            raise UserError(
                f"{path}, row {row}: has changed since it was written, or an earlier row is missing"
            )


def _seal(before: str, record: Mapping[str, Any]) -> str:
    """Return the digest of a record and of all before it."""
    text = json.dumps([before, record], ensure_ascii=True, sort_keys=True)
    return xxhash.xxh3_128(text.encode()).hexdigest()


def _parse(path: Path, row: int, line: bytes) -> dict[str, Any]:
    try:
        record = parse_json(line)
    except JsonError as error:
        raise UserError(f"{path}, row {row}: not JSON ({error})") from None
    if not isinstance(record, dict):
        raise UserError(f"{path}, row {row}: not a JSON object")
    return record
