"""Reads human-scored summaries: precis rows, and the public formats of SummEval, FRANK and DialSummEval.

ours           id, system, output, document, reference or references, and score or scores or other numeric columns
SummEval       model_annotations.aligned.jsonl: decoded, expert_annotations, references; paired files have text
FRANK          a folder with benchmark_data.json and human_annotations.json
DialSummEval   human_judgment.jsonl: dialogue, summary, annotations, model_id; no references
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from precis.data.rows.row_files import read_rows
from precis_text.bounded_io import JsonError, is_folder, parse_json, read_bounded
from precis_text.errors import UserError

_LARGEST = 1 << 28  # bytes of a JSON file
_TEXTS = frozenset({"id", "system", "output", "document", "reference", "references", "scores"})
_FRANK = ("benchmark_data.json", "human_annotations.json")

Values = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ScoredSummary:
    """A human-scored summary.

    Attributes:
        id: the document's id.
        document: "" if the file does not contain it.
        scores: human score by name; the mean of several judges.
    """

    id: str
    system: str
    output: str
    document: str
    references: tuple[str, ...]
    scores: Mapping[str, float]


def read_scored(path: Path, *, reference_system: str | None = None) -> list[ScoredSummary]:
    """Read the scored summaries of a file, or of a FRANK folder.

    Args:
        reference_system: a system whose outputs are the references of the others; its own rows are skipped.

    Raises:
        UserError: the file cannot be read, has another format, or lacks that system; the message names the row.
    """
    rows = list(_read_frank(path)) if is_folder(path) else list(_read_rows(path))
    if not rows:
        raise UserError(f"{path}: contains no scored summaries")
    if reference_system is None:
        return rows
    written = {row.id: row.output for row in rows if row.system == reference_system}
    if not written:
        known = ", ".join(sorted({row.system for row in rows}))
        raise UserError(f"{path}: unknown system {reference_system!r}; use one of {known}")
    return [
        replace(row, references=(written[row.id],) if row.id in written else row.references)
        for row in rows
        if row.system != reference_system
    ]


def _read_rows(path: Path) -> Iterator[ScoredSummary]:
    for row in read_rows(path):
        values = row.values
        if row.problem:
            raise UserError(f"{path}, {row.place}: {row.problem}")
        try:
            yield _reader(values)(values)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path}, {row.place}: {_problem(error)}") from None


def _problem(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"lacks {error.args[0]!r}; see the columns in `precis probe metrics --help`"
    return str(error)


def _reader(values: Values) -> Callable[[Values], ScoredSummary]:
    if "expert_annotations" in values:
        return _of_summeval
    if "annotations" in values and "dialogue" in values:
        return _of_dialsummeval
    return _of_ours


def _made(values: Values, scores: Mapping[str, float], **names: str) -> ScoredSummary:
    """Make a summary from a row; `names` maps our fields to the format's."""
    if not scores:
        raise KeyError("score")
    many, one = values.get("references"), values.get("reference")
    return ScoredSummary(
        id=str(values[names.get("id", "id")]),
        system=str(values[names.get("system", "system")]),
        output=str(values[names.get("output", "output")]),
        document=str(values.get(names.get("document", "document")) or ""),
        references=tuple(map(str, many)) if isinstance(many, list) else ((str(one),) if one else ()),
        scores=scores,
    )


def _of_ours(values: Values) -> ScoredSummary:
    scores = values.get("scores")
    if scores is None:
        scores = {name: value for name, value in values.items() if name not in _TEXTS and _is_number(value)}
    return _made(values, {str(name): float(value) for name, value in scores.items()})


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return True
    return isinstance(value, int | float) and not isinstance(value, bool)


def _of_summeval(values: Values) -> ScoredSummary:
    scores = _means(values["expert_annotations"], "")
    scores |= _means(values.get("turker_annotations") or (), "turker ")
    return _made(values, scores, system="model_id", output="decoded", document="text")


def _of_dialsummeval(values: Values) -> ScoredSummary:
    turns = [turn.strip() for turn in str(values["dialogue"]).split("|")]
    read = {**values, "document": "\n".join(turn for turn in turns if turn)}
    return _made(read, _means(values["annotations"], ""), system="model_id", output="summary")


def _means(judges: Sequence[Values], before: str) -> dict[str, float]:
    """Return each score's mean over the judges."""
    names = list(dict.fromkeys(name for judge in judges for name in judge))
    return {before + name: fmean(float(judge[name]) for judge in judges if name in judge) for name in names}


def _read_frank(folder: Path) -> Iterator[ScoredSummary]:
    """Yield FRANK's summaries with their factuality, 0 to 1, joined by `hash` and `model_name`."""
    data, said = (_list_in(folder / name) for name in _FRANK)
    scores = {(row.get("hash"), row.get("model_name")): row for row in said}
    for number, row in enumerate(data, start=1):
        found = scores.get((row.get("hash"), row.get("model_name")))
        if found is None:
            continue
        try:
            factuality = {"factuality": float(found["Factuality"])}
            yield _made(row, factuality, id="hash", system="model_name", output="summary", document="article")
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{folder / _FRANK[0]}, entry {number}: {_problem(error)}") from None


def _list_in(path: Path) -> list[Values]:
    try:
        found = parse_json(read_bounded(path, limit=_LARGEST))
    except JsonError as error:
        raise UserError(f"{path}: {error}") from None
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise UserError(f"{path}: is not a list of JSON objects, FRANK's format")
    return found
