"""Sources whose rows are not pairs: `SCHEME:PLACE`, where PLACE is a file, a folder or `hub:owner/name`.

    squad-qg:PLACE  squad-qg-zhao:PLACE    SQuAD's questions, see `question_generation`
    squad-qa:PLACE                         SQuAD's answers, see `question_generation`
    glue-cola:PLACE  glue-mnli:PLACE  ...  a task of GLUE, see `glue`; glue-mnli-mm: is scored on mismatched genres
    persona:PLACE                          dialogue response (PersonaChat, Zhang et al., 2018), see `response_rows`
    webnlg-seen:PLACE  webnlg-unseen:PLACE WebNLG's test rows of categories seen in training, or unseen

WebNLG's challenge of 2017 trained on ten categories and tested on five more, which later releases also have in their
training rows. Both schemes leave these out of train, and the three that were new in 2020.

Except for question generation, the data lack a public test set, and papers report scores on the dev set. So the public
dev set is the test split here. Rows for choosing checkpoints are held out of train, never taken from the dev set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from precis.data.pairs import question_generation
from precis.data.pairs.glue import GLUE, glue_rows, read_glue_file
from precis.data.pairs.question_generation import DU, ZHAO, Cut, answer_rows
from precis.data.rows.row_files import read_rows
from precis_text.control_characters import join_parts
from precis_text.row import Row, invalid_text, kind_of

UNSEEN = (
    *("Artist", "Athlete", "CelestialBody", "MeanOfTransportation", "Politician"),  # 2017
    *("Film", "MusicalWork", "Scientist"),  # 2020
)
GLUE_FOLDER = "glue"  # a folder with files of several tasks, such as SST-2.train.jsonl


@dataclass(frozen=True, kw_only=True)
class DatasetAdapter:
    """The functions and names with which a scheme reads its data set.

    Attributes:
        rows: converts rows to rows of pairs.
        read: reads a file.
        held: the published split to score on.
        part: leaves rows out of a split, given its name.
        prefix: precedes the name of a split in a folder of several tasks.
    """

    rows: Callable[[Iterable[Row]], Iterator[Row]]
    read: Callable[[Path], Iterator[Row]] = read_rows
    held: str = "dev"
    part: Callable[[str, Iterable[Row]], Iterator[Row]] = lambda _, rows: iter(rows)
    prefix: str = ""


def _glue(name: str, *, held: str = "dev") -> DatasetAdapter:
    task = GLUE[name]
    return DatasetAdapter(
        rows=partial(glue_rows, task=task),
        read=partial(read_glue_file, task=task),
        held=held,
        prefix=f"{task.official}.",
    )


def _of_categories(split: str, rows: Iterable[Row], *, unseen: bool) -> Iterator[Row]:
    """Yield training rows of seen categories only, or the test rows of seen categories, or of the others."""
    wanted, read, kept = unseen and split != "train", 0, 0
    for row in rows:
        read += 1
        category = row.values.get("category")
        if row.problem or not isinstance(category, str):
            kept += 1
            yield Row(row.place, problem=row.problem or "lacks 'category', which separates seen from unseen")
        elif (category in UNSEEN) == wanted:
            kept += 1
            yield row
    if read and not kept:
        what = "an unseen" if wanted else "a seen"
        yield Row(f"all {read:,} rows", problem=f"none has {what} category")


def _webnlg(*, unseen: bool) -> DatasetAdapter:
    return DatasetAdapter(rows=iter, held="webnlg_test", part=partial(_of_categories, unseen=unseen))


def response_rows(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows with the default names of `precis.data.pairs.pair.Columns`, one for each answer.

    A row is a conversation or, as on the hub, an utterance. The lists `train` and `valid` of the ConvAI2 file from
    transfer-learning-conv-ai hold conversations (`jq -c '.train[]' FILE > train.jsonl`). The last candidate is the
    real answer; the others are distractors and are not read. The document has the sentences about the speaker, one per
    line, a mark, and the turns so far, one per line.

        {"personality": [...], "utterances": [{"history": [...], "candidates": [..., answer]}, ...]}
        {"personality": [...], "history": [...], "candidates": [..., answer], "conv_id": 7, "utterance_idx": 0}
    """
    for row in rows:
        utterances = row.values.get("utterances")
        if row.problem:
            yield row
        elif utterances is None:
            yield _answer(row.place, row.values, row.values)
        elif not isinstance(utterances, list):
            yield Row(row.place, problem="column 'utterances' must hold a list")
        else:
            for number, utterance in enumerate(utterances, start=1):
                said = utterance if isinstance(utterance, Mapping) else {}
                yield _answer(f"{row.place}, utterance {number}", row.values, said)


def _answer(place: str, conversation: Mapping[str, Any], utterance: Mapping[str, Any]) -> Row:
    texts: dict[str, Any] = {
        "personality": conversation.get("personality"),
        "history": utterance.get("history"),
        "candidates": utterance.get("candidates"),
    }
    for column, value in texts.items():
        if problem := _problem(value, may_be_empty=column == "history"):
            return Row(place, problem=f"column {column!r} {problem}")
    persona, history, candidates = texts.values()
    name = "-".join(str(conversation[key]) for key in ("conv_id", "utterance_idx") if key in conversation)
    document = join_parts("\n".join(persona), "\n".join(history))
    return Row(place, {"id": name or None, "document": document, "summary": candidates[-1]})


def _problem(texts: Any, *, may_be_empty: bool) -> str:
    """Return the reason why a value is not a list of texts; empty if it is one."""
    if not isinstance(texts, list):
        return f"must hold a list of texts, not {kind_of(texts)}"
    if not texts and not may_be_empty:
        return "must hold at least one text"
    if any(not isinstance(text, str) for text in texts):
        return "must hold only texts"
    return next(filter(None, map(invalid_text, texts)), "")


ADAPTERS: Mapping[str, DatasetAdapter] = {
    "squad-qa:": DatasetAdapter(rows=answer_rows), "persona:": DatasetAdapter(rows=response_rows),
    "webnlg-seen:": _webnlg(unseen=False), "webnlg-unseen:": _webnlg(unseen=True),
    **{f"glue-{name}:": _glue(name) for name in GLUE}, "glue-mnli:": _glue("mnli", held="matched"),
    "glue-mnli-mm:": _glue("mnli", held="mismatched"),
}  # fmt: skip


def split_scheme(source: str) -> tuple[str, str]:
    """Split a source into (scheme, place); the scheme is "" if the rows are pairs."""
    for scheme in (DU, ZHAO, *ADAPTERS):
        if source.startswith(scheme):
            return scheme, source.removeprefix(scheme)
    return "", source


def prefix_of(scheme: str) -> str:
    """Return the prefix of the names of splits in a folder of several tasks, or an empty string."""
    return ADAPTERS[scheme].prefix if scheme in ADAPTERS else ""


def splits_cut(scheme: str, place: str, own: Iterable[str]) -> dict[str, Cut]:
    """Return the splits of a source by name.

    Args:
        scheme: as `split_scheme` gives it.
        place: the source without its scheme.
        own: the splits of its files.

    Raises:
        UserError: questions lack both a test split and a list of articles from which to make it.
    """
    if scheme in (DU, ZHAO):
        return question_generation.splits_cut(scheme, place, own)
    train = {"train": Cut(split="train")} if "train" in own else {}
    return {**train, "test": Cut(split=ADAPTERS[scheme].held)}
