"""The worst rows come first, each kind of mistake has its rule, and the page shows texts as text."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from precis.evaluation.error_view import read_error_view
from precis.evaluation.offline_pages import counted_kinds, error_page
from precis_text.errors import UserError

Precis = Callable[..., Any]
REFERENCE = "The council repairs the old bridge in nine weeks."
DOCUMENT = "The bridge is old. " * 40 + "It ends <here>."
ROWS = [
    ("The council repairs the old bridge in nine weeks.", 100.0, []),
    ("The council repairs the bridge in 12 weeks & more.", 70.0, ["12 weeks"]),
    ("Bridge.", 20.0, []),
    ("Ann sings in the hall for a very long evening.", 15.0, ["Ann"]),
    ("", 0.0, []),
]


def evaluation(folder: Path, *, checked: bool = True, rows: int = len(ROWS)) -> Path:
    folder.mkdir(parents=True)
    lines = []
    for number, (text, score, marks) in enumerate(ROWS[:rows], start=1):
        entry: dict[str, Any] = {"prediction": text, "rouge1": 100 - score, "rougeL": score}
        if checked:
            entry["support"] = {"marks": [{"text": mark} for mark in marks]}
        system = {"first": entry, "LEAD-3": {**entry, "prediction": "lead"}}
        lines.append(
            json.dumps(
                {
                    "row": number,
                    "id": f"r{number}",
                    "document": DOCUMENT,
                    "references": [REFERENCE],
                    "systems": system,
                }
            )
        )
    (folder / "examples.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def test_rows_are_ranked_and_each_mistake_is_named(tmp_path: Path) -> None:
    evaluation(tmp_path / "run" / "evaluation")
    view = read_error_view(tmp_path / "run")
    assert (view.system, view.measure) == ("first", "rougeL")
    assert {row.row: row.kinds for row in view.rows} == {
        5: ("empty", "too short", "missing"),
        4: ("missing", "unsupported"),
        3: ("too short", "missing"),
        2: ("unsupported",),
        1: (),
    }
    assert [row.row for row in view.rows] == [5, 4, 3, 2, 1]
    assert [row.row for row in view.worst(9, kind="unsupported")] == [4, 2]
    assert [row.row for row in view.worst(9, kind="too-short")] == [5, 3]
    with pytest.raises(UserError, match="--kind shrt: no such kind"):
        view.worst(9, kind="shrt")
    assert [row.row for row in view.best(2)] == [1, 2]
    assert view.counts == {"empty": 1, "too short": 2, "missing": 3, "unsupported": 2}


def test_no_row_is_both_worst_and_best(tmp_path: Path) -> None:
    view = read_error_view(evaluation(tmp_path / "few", rows=3))
    assert [row.row for row in view.worst(2)] == [3, 2]
    assert [row.row for row in view.best(2)] == [1]
    assert view.best(5) == ()
    assert view.worst(1)[0].document == DOCUMENT
    assert (view.worst(1)[0].name, view.worst(1)[0].references) == ("r3", (REFERENCE,))


def test_another_system_and_measure_and_what_was_not_checked(tmp_path: Path) -> None:
    view = read_error_view(evaluation(tmp_path / "e", checked=False), system="LEAD-3", measure="rouge1")
    assert [row.row for row in view.rows] == [1, 2, 3, 4, 5]
    assert "unsupported" not in view.counts
    assert "not checked, score with precis evaluate --faithful" in counted_kinds(view)
    with pytest.raises(UserError, match="unsupported parts were not marked"):
        view.worst(1, kind="unsupported")


def test_the_page_shows_texts_as_text_with_marks(tmp_path: Path) -> None:
    page = error_page(read_error_view(evaluation(tmp_path / "e")), count=2)
    assert "<p>The council repairs the bridge in <mark>12 weeks</mark> &amp; more.</p>" in page
    assert "<p><mark>Ann</mark> sings in the hall for a very long evening.</p>" in page
    assert [line.count("<h2>Best</h2>") for line in page.split("<h2>Worst</h2>")] == [0, 1]
    assert page.count("Worst of:") == 4
    assert "<script" not in page
    assert REFERENCE in page


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"system": "frist"}, "lacks the system 'frist'.*did you mean 'first'"),
        ({"measure": "bleu"}, "lacks the measure 'bleu'; known: rouge1, rougeL"),
    ],
)
def test_an_unknown_name_is_refused(asked: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        read_error_view(evaluation(tmp_path / "e"), **asked)


def test_a_folder_without_an_evaluation_and_a_damaged_line_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="precis evaluate --model RUN --out RUN/evaluation"):
        read_error_view(tmp_path)
    with (evaluation(tmp_path / "e") / "examples.jsonl").open("a") as file:
        file.write('{"row": 6}\n')
    with pytest.raises(UserError, match="line 6: is not a row of an evaluation"):
        read_error_view(tmp_path / "e")


def test_the_page_holds_the_whole_document_folded(tmp_path: Path) -> None:
    page = error_page(read_error_view(evaluation(tmp_path / "e")), count=1)
    assert "<details><summary>Document</summary>" in page
    assert "It ends &lt;here&gt;." in page


def written(folder: Path, text: str, references: list[str], **scores: float) -> Path:
    """An evaluation of one row."""
    row = {"row": 1, "references": references, "systems": {"mine": {"prediction": text, **scores}}}
    (folder / "examples.jsonl").write_text(json.dumps(row) + "\n")
    return folder


@pytest.mark.parametrize(
    ("text", "references", "kinds"),
    [
        ("the old bridge", ["the old bridge is mended now"], ()),  # half of the words, half of them missing
        ("the old", ["the old bridge is mended now"], ("too short", "missing")),
        ("a new one", ["the old bridge is mended now", "a new one"], ()),
        ("a new", ["the old bridge is mended now", "a new one"], ()),
        ("a ferry", ["the old bridge is mended now", "a new one is built"], ("too short", "missing")),
        ("a new ferry", ["the old bridge is mended now today", "a new one"], ()),
        ("a river", ["!", "?"], ()),
    ],
)
def test_a_summary_is_too_short_or_misses_words_by_its_nearest_reference(
    text: str, references: list[str], kinds: tuple[str, ...], tmp_path: Path
) -> None:
    (row,) = read_error_view(written(tmp_path, text, references, rougeL=1.0)).rows
    assert row.kinds == kinds
    assert (row.name, row.document) == ("", "")


def test_without_rouge_l_the_first_measure_ranks_and_without_a_measure_nothing_does(tmp_path: Path) -> None:
    assert read_error_view(written(tmp_path, "a", ["a"], f1=1.0, rouge1=2.0)).measure == "f1"
    with pytest.raises(UserError, match="lacks a measure; score again"):
        read_error_view(written(tmp_path, "a", ["a"]))
    (tmp_path / "examples.jsonl").write_text("")
    with pytest.raises(UserError, match="is empty"):
        read_error_view(tmp_path)


def test_marks_are_found_one_after_the_other_and_what_is_not_there_is_not_marked(tmp_path: Path) -> None:
    text = "Ann met Ann. Bob left."
    marks = {"marks": [{"text": mark} for mark in ("Ann", "Ann", "", "Carl", "Bob", "met")]}
    row = {
        "row": 1,
        "references": ["Ann."],
        "systems": {"a": {"prediction": text, "f1": 0, "support": marks}},
    }
    (tmp_path / "examples.jsonl").write_text(json.dumps(row) + "\n")
    page = error_page(read_error_view(tmp_path), count=1)
    assert "<p><mark>Ann</mark> met <mark>Ann</mark>. <mark>Bob</mark> left.</p>" in page
