"""The worst and the best rows of an evaluation, by kind of mistake.

    examples.jsonl -> rows of one system, ranked by a measure -> kinds of each -> terminal, or one HTML page

kind         a summary has it if
-----------  -----------------------------------------------------------------------
empty        it lacks text
too short    it has less than half of the words of its shortest reference
missing      it lacks more than half of the different words of each reference
unsupported  `precis evaluate --faithful` marked a part that the document does not support
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from precis.evaluation.rouge import Rouge
from precis_text.bounded_io import JsonError, open_regular, parse_json
from precis_text.config import nearest
from precis_text.errors import UserError

EXAMPLES_FILE = "examples.jsonl"
EVALUATION_FOLDER = "evaluation"
KINDS = ("empty", "too short", "missing", "unsupported")
_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class JudgedRow:
    """One row of an evaluation.

    Attributes:
        row: its number, from 1.
        name: the pair's id; "" without one.
        score: the measure of the summary, 0 to 100.
        document: the document; "" if the evaluation lacks it.
        marks: the unsupported parts of the summary.
        kinds: its kinds of mistake, of `KINDS`.
    """

    row: int
    name: str
    score: float
    document: str
    summary: str
    references: tuple[str, ...]
    marks: tuple[str, ...]
    kinds: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ErrorView:
    """The rows of one system, the worst first.

    Attributes:
        system: name of the system, as in the table of scores.
        measure: the measure that ranks, such as `rougeL`.
        rows: all rows, the lowest score first; equal scores in the order of the file.
        is_checked: whether unsupported parts were looked for.
    """

    system: str
    measure: str
    rows: tuple[JudgedRow, ...]
    is_checked: bool

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows of each kind of mistake."""
        found = Counter(kind for row in self.rows for kind in row.kinds)
        return {kind: found[kind] for kind in KINDS if self.is_checked or kind != "unsupported"}

    def worst(self, count: int, *, kind: str | None = None) -> tuple[JudgedRow, ...]:
        """Return the rows with the lowest scores, of one kind of mistake if given, in which "-" stands for a space.

        Raises:
            UserError: the kind is unknown, or unsupported parts were not looked for.
        """
        known = {name.replace(" ", "-"): name for name in KINDS}
        wanted = known.get(kind or "", kind)
        if wanted is not None and wanted not in KINDS:
            raise UserError(f"--kind {kind}: no such kind{nearest(wanted, known)}")
        if wanted == "unsupported" and not self.is_checked:
            raise UserError(
                f"{self.system}: unsupported parts were not marked; score again with precis evaluate --faithful"
            )
        return tuple(row for row in self.rows if wanted is None or wanted in row.kinds)[:count]

    def best(self, count: int) -> tuple[JudgedRow, ...]:
        """Return the rows with the highest scores, the highest first, without those that `worst` returns."""
        return self.rows[::-1][: min(count, max(0, len(self.rows) - count))]


def read_error_view(place: str | Path, *, system: str | None = None, measure: str | None = None) -> ErrorView:
    """Read the rows of an evaluation.

    Args:
        place: a folder that `precis evaluate` wrote, or a run folder with one at evaluation/.
        system: a system of the evaluation; if None, the first.
        measure: a measure of each example; if None, rougeL, or the first if that was not measured.

    Raises:
        UserError: the evaluation is missing, a line is damaged, or a system or measure is unknown.
    """
    file = _file_of(Path(place))
    examples = [*_read(file)]
    if not examples:
        raise UserError(f"{file}: is empty; score again with precis evaluate")
    systems = examples[0]["systems"]
    name = _known(system, [*systems], default=next(iter(systems), ""), what="system", file=file)
    measures = [key for key, value in systems[name].items() if isinstance(value, int | float)]
    usual = "rougeL" if "rougeL" in measures else next(iter(measures), "")
    by = _known(measure, measures, default=usual, what="measure", file=file)
    rouge = Rouge.choose(text for example in examples for text in example["references"])
    try:
        rows = [_row(example, example["systems"][name], by, rouge) for example in examples]
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{file}: lacks an entry ({error}); score again with precis evaluate") from error
    return ErrorView(
        system=name,
        measure=by,
        rows=tuple(sorted(rows, key=lambda row: row.score)),
        is_checked="support" in systems[name],
    )


def _file_of(place: Path) -> Path:
    for folder in (place, place / EVALUATION_FOLDER):
        if (folder / EXAMPLES_FILE).is_file():
            return folder / EXAMPLES_FILE
    raise UserError(
        f"{place}: lacks {EXAMPLES_FILE}; name a folder that precis evaluate wrote, or a run scored with "
        f"precis evaluate --model RUN --out RUN/{EVALUATION_FOLDER}"
    )


def _read(file: Path) -> Iterator[dict[str, Any]]:
    with open_regular(file) as lines:
        for number, line in enumerate(lines, start=1):
            try:
                example = parse_json(line)
            except JsonError as error:
                raise UserError(f"{file}, line {number}: {error}; score again with precis evaluate") from None
            if not (isinstance(example, dict) and {"systems", "references", "row"} <= example.keys()):
                raise UserError(
                    f"{file}, line {number}: is not a row of an evaluation; score again with precis evaluate"
                )
            yield example


def _known(wanted: str | None, known: Sequence[str], *, default: str, what: str, file: Path) -> str:
    if wanted is not None and wanted not in known:
        hint = nearest(wanted, known) or f"; known: {', '.join(known)}"
        raise UserError(f"{file}: lacks the {what} {wanted!r}{hint}")
    if wanted is None and not default:
        raise UserError(f"{file}: lacks a {what}; score again with precis evaluate")
    return default if wanted is None else wanted


def _row(example: Mapping[str, Any], found: Mapping[str, Any], measure: str, rouge: Rouge) -> JudgedRow:
    summary, references = str(found["prediction"]), tuple(map(str, example["references"]))
    marks = tuple(str(mark["text"]) for mark in (found.get("support") or {}).get("marks", ()))
    return JudgedRow(
        row=int(example["row"]), name=str(example.get("id") or ""), score=float(found[measure]),
        document=str(example.get("document") or ""), summary=summary, references=references, marks=marks,
        kinds=tuple(_kinds(summary, references, marks, rouge)),
    )  # fmt: skip


def _kinds(summary: str, references: Iterable[str], marks: Sequence[str], rouge: Rouge) -> Iterator[str]:
    """Yield the kinds of mistake of a summary, in the order of `KINDS`."""
    words = rouge.tokenize(summary)
    wanted = [tokens for text in references if (tokens := rouge.tokenize(text))]
    if not summary.strip():
        yield "empty"
    if wanted and len(words) < _SHARE * min(map(len, wanted)):
        yield "too short"
    if wanted and min(len({*tokens} - {*words}) / len({*tokens}) for tokens in wanted) > _SHARE:
        yield "missing"
    if marks:
        yield "unsupported"
