"""GLUE (Wang et al., 2019) as text to text: the document is one or two sentences, the summary is the label's word.

Rows may be those of the official files, of the hub, or of this project's layout:

    {"sentence1" | "premise" | "question1" | "question" | "sentence": ..., "sentence2" | ...: ..., "label": 1}
    {"text_a": ..., "text_b": ..., "label": "entailment"}

The words for labels are T5's (Raffel et al., 2020, appendix D). A similarity of STS-B is rounded to the nearest fifth
("3.8"), as in T5. The reference keeps the number as given, so that correlations are those of the data. The document
names its texts ("premise: ... hypothesis: ..."), so that one model can distinguish the tasks. A unit mark, which is not
a token, separates the two texts, so that a classifier finds the second one whatever the first one says.

The official files are separated by tabs without quoting; CoLA's lack a header.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from precis.data.rows.row_files import read_rows
from precis_text.control_characters import UNIT_MARK, join_parts, remove_marks
from precis_text.errors import UserError
from precis_text.row import Row, Unreadable, invalid_text, list_names
from precis_text.text_lines import numbered_lines

_COLA_HEADER = ["source", "label", "star", "sentence"]
_LABELS = ("label", "gold_label", "Quality", "is_duplicate", "score")
_HIGHEST, _STEPS = 5.0, 5  # STS-B: the highest similarity, and the steps per point


@dataclass(frozen=True, kw_only=True)
class GlueTask:
    """One task of GLUE.

    Attributes:
        official: its name in the official archive.
        texts: the name of each text in the document, with the columns that may hold it.
        words: the word for each class, in the order of the hub's numbers; empty for a number (STS-B).
        header: columns of official files without a header.
    """

    official: str
    texts: Mapping[str, tuple[str, ...]]
    words: tuple[str, ...] = ()
    header: list[str] | None = None


_SENTENCE = {"sentence": ("sentence", "text_a")}
_TWO = {"sentence1": ("sentence1", "#1 String", "text_a"), "sentence2": ("sentence2", "#2 String", "text_b")}
_NLI = {"premise": ("premise", "sentence1", "text_a"), "hypothesis": ("hypothesis", "sentence2", "text_b")}
_DUPLICATES = {"question1": ("question1", "text_a"), "question2": ("question2", "text_b")}
_QUESTION = {"question": ("question", "text_a"), "sentence": ("sentence", "text_b")}
_ENTAILED = ("entailment", "not_entailment")
_INFERENCE = ("entailment", "neutral", "contradiction")

GLUE: Mapping[str, GlueTask] = {
    "cola": GlueTask(
        official="CoLA", texts=_SENTENCE, words=("unacceptable", "acceptable"), header=_COLA_HEADER
    ),
    "sst2": GlueTask(official="SST-2", texts=_SENTENCE, words=("negative", "positive")),
    "mrpc": GlueTask(official="MRPC", texts=_TWO, words=("not_equivalent", "equivalent")),
    "stsb": GlueTask(official="STS-B", texts=_TWO),
    "qqp": GlueTask(official="QQP", texts=_DUPLICATES, words=("not_duplicate", "duplicate")),
    "mnli": GlueTask(official="MNLI", texts=_NLI, words=_INFERENCE),
    "qnli": GlueTask(official="QNLI", texts=_QUESTION, words=_ENTAILED),
    "rte": GlueTask(official="RTE", texts=_NLI, words=_ENTAILED),
}


def read_glue_file(file: Path, task: GlueTask) -> Iterator[Row]:
    """Yield a file's rows; `.tsv` without quoting, as GLUE writes it; raise `UserError` if it cannot be read."""
    if file.suffix.lower() != ".tsv":
        yield from read_rows(file)
        return
    header = task.header
    for number, line in numbered_lines(file, skip_blank=True):
        fields = line.decode(errors="surrogateescape").rstrip("\r\n").split("\t")
        if header is None:
            header = fields
        elif len(fields) == len(header):
            yield Row(f"line {number}", dict(zip(header, fields, strict=True)))
        elif any(fields):
            told = f"{len(fields):,} fields between tabs where the header has {len(header):,}"
            yield Row(f"line {number}", problem=told)


def glue_rows(rows: Iterable[Row], task: GlueTask) -> Iterator[Row]:
    """Yield rows with the default names of `precis.data.pairs.pair.Columns`; an unusable row has a problem."""
    for row in rows:
        if row.problem:
            yield row
            continue
        try:
            yield Row(row.place, _values(row.values, task))
        except _UnusableError as error:
            yield Row(row.place, problem=str(error))


def glue_task(scheme: str) -> GlueTask | None:
    """Return the task that a scheme of `precis.data.pairs.dataset_adapters` reads; None if the scheme is not GLUE's."""
    return next(
        (task for name, task in GLUE.items() if scheme in (f"glue-{name}:", f"glue-{name}-mm:")), None
    )


def as_parts(document: str, task: GlueTask) -> str:
    """Remove the names of its texts from a document of `glue_rows`; put a mark ("[SEP]" to a model) between two.

    A typed document does not have a unit mark. Its second text then begins at the first mention of that text's name.
    """
    first, *others = task.texts
    if not others:
        return remove_marks(document).removeprefix(f"{first}: ")
    typed = f" {others[0]}: "
    border = f" {UNIT_MARK}{others[0]}: "
    one, _, two = document.partition(border if border in document else typed)
    return join_parts(remove_marks(one).removeprefix(f"{first}: "), remove_marks(two))


def label_word(label: Any, task: GlueTask) -> str:
    """Return the word for a label, which may be the hub's number, its digits, or the word itself.

    Raises:
        UserError: the task does not have this label.
    """
    text = str(label).strip()
    if text in task.words:
        return text
    if text.isdecimal() and int(text) < len(task.words):
        return task.words[int(text)]
    known = ", ".join(f"{number} or {word}" for number, word in enumerate(task.words))
    hint = "; the labels of GLUE's test sets are not public" if text == "-1" else ""
    raise UserError(f"unknown label {text!r} for {task.official}, use {known}{hint}")


def similarity(label: Any) -> tuple[str, str]:
    """Return a similarity as text, to the nearest fifth and as given; raise `UserError` if it is not 0 to 5."""
    try:
        number = float(label)
    except (TypeError, ValueError):
        number = -1.0
    if not 0.0 <= number <= _HIGHEST:
        raise UserError(f"similarity {label!r} is not a number from 0 to 5")
    return f"{round(number * _STEPS) / _STEPS:.1f}", str(label).strip()


class _UnusableError(ValueError):
    """The error for a row that cannot be used."""


def _values(values: Mapping[str, Any], task: GlueTask) -> dict[str, Any]:
    texts = [f"{name}: {remove_marks(_text(values, columns))}" for name, columns in task.texts.items()]
    if (label := next((values[name] for name in _LABELS if name in values), None)) is None:
        looked = f"looked for {list_names(_LABELS)}, the columns are {list_names(values)}"
        raise _UnusableError(f"no label; {looked}")
    try:
        word, given = (label_word(label, task), None) if task.words else similarity(label)
    except UserError as error:
        raise _UnusableError(str(error)) from None
    return {
        "document": f" {UNIT_MARK}".join(texts),
        "summary": word,
        "summaries": None if given is None else [given],
    }


def _text(values: Mapping[str, Any], columns: tuple[str, ...]) -> str:
    if (column := next((name for name in columns if name in values), None)) is None:
        lacks = f"has none of the columns {list_names(columns)}"
        raise _UnusableError(f"{lacks}; the columns are {list_names(values)}")
    text = values[column]
    if isinstance(text, Unreadable):
        raise _UnusableError(f"column {column!r} {text.why}")
    if not isinstance(text, str) or not text.strip():
        raise _UnusableError(f"column {column!r} must hold a text, not {text!r}")
    if problem := invalid_text(text):
        raise _UnusableError(f"column {column!r} {problem}")
    return text.strip()
