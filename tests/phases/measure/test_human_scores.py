"""Each public format is read from a tiny file of its schema; the texts are written here."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from precis.phases.measure.human_scores import read_scored
from precis.phases.measure.metric_probe import judge_metrics
from precis_text.errors import UserError


def lines(path: Path, *rows: Mapping[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_summeval(tmp_path: Path) -> None:
    row = {
        "id": "dm-test-1",
        "decoded": "Ann sings.",
        "expert_annotations": [{"coherence": 2, "fluency": 5}, {"coherence": 3, "fluency": 5}],
        "turker_annotations": [{"coherence": 1, "fluency": 4}],
        "references": ["Ann sang.", "Ann is singing."],
        "model_id": "M11",
        "filepath": "stories/1.story",
    }
    plain, paired = read_scored(lines(tmp_path / "a.jsonl", row, {**row, "text": "Ann sings in the hall."}))
    assert (plain.id, plain.system, plain.output, plain.document) == ("dm-test-1", "M11", "Ann sings.", "")
    assert plain.references == ("Ann sang.", "Ann is singing.")
    assert plain.scores == {"coherence": 2.5, "fluency": 5.0, "turker coherence": 1.0, "turker fluency": 4.0}
    assert paired.document == "Ann sings in the hall."


def test_frank(tmp_path: Path) -> None:
    row = {
        "hash": "1",
        "model_name": "bart",
        "article": "Ann sings.",
        "summary": "Ann.",
        "reference": "A.",
        "split": "test",
    }
    (tmp_path / "benchmark_data.json").write_text(json.dumps([row, {**row, "hash": "2"}]))
    said = [{"hash": "1", "model_name": "bart", "Factuality": 0.5, "Discourse_Errors": 1.0, "split": "test"}]
    (tmp_path / "human_annotations.json").write_text(json.dumps(said))
    (found,) = read_scored(tmp_path)
    assert (found.id, found.system, found.output, found.document) == ("1", "bart", "Ann.", "Ann sings.")
    assert (found.references, found.scores) == (("A.",), {"factuality": 0.5})


def test_dialsummeval_with_one_system_as_the_reference(tmp_path: Path) -> None:
    row = {
        "id": "13",
        "dialogue": "| Ann: I sing. | Bob: Where?",
        "summary": "Ann sings.",
        "annotations": [{"consistency": 5, "fluency": 4}, {"consistency": 3, "fluency": 4}],
        "model_id": "A",
    }
    file = lines(
        tmp_path / "human_judgment.jsonl", row, {**row, "model_id": "N", "summary": "Ann is singing."}
    )
    (found,) = read_scored(file, reference_system="N")
    assert found.document == "Ann: I sing.\nBob: Where?"
    assert (found.references, found.scores) == (("Ann is singing.",), {"consistency": 4.0, "fluency": 4.0})
    with pytest.raises(UserError, match="unknown system 'Z'; use one of A, N"):
        read_scored(file, reference_system="Z")


def test_rows_of_our_own(tmp_path: Path) -> None:
    table = tmp_path / "scored.csv"
    table.write_text("id,system,output,document,reference,clear,true\n1,a,Ann.,Ann sings.,Ann sang.,4,0.5\n")
    (found,) = read_scored(table)
    assert (found.references, found.scores) == (("Ann sang.",), {"clear": 4.0, "true": 0.5})
    row = {"id": 1, "system": "a", "output": "Ann.", "scores": {"true": 1}, "references": ["A.", "B."]}
    (other,) = read_scored(lines(tmp_path / "scored.jsonl", row))
    assert (other.id, other.references, other.scores) == ("1", ("A.", "B."), {"true": 1.0})


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"id": "1", "output": "Ann.", "score": 1}, "line 2: lacks 'system'"),
        ({"id": "1", "system": "a", "output": "Ann."}, "line 2: lacks 'score'"),
        (
            {"id": "1", "system": "a", "output": "Ann.", "scores": {"true": "much"}},
            "line 2: could not convert",
        ),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, row: Mapping[str, Any], problem: str) -> None:
    good = {"id": "1", "system": "a", "output": "Ann.", "score": 1}
    with pytest.raises(UserError, match=problem):
        read_scored(lines(tmp_path / "scored.jsonl", good, row))


@pytest.mark.long
def test_a_metric_that_sees_the_errors_agrees_with_people_who_saw_them(tmp_path: Path) -> None:
    document = "Ann Velmark sings in the old hall. Bob Harstad did not listen to her in {}."
    said = [
        ("good", "Ann Velmark sings. Bob did not listen.", 5),
        ("name", "Ann Velmark sings for Carl Sundby. Bob did not listen.", 3),
        ("more", "Ann Velmark sings for Carl Sundby and Dora Lindqvist. Bob did not listen.", 1),
    ]
    rows = [
        {"id": str(year), "system": system, "output": text, "document": document.format(year), "score": score}
        for year in range(2000, 2006)
        for system, text, score in said
    ]
    table = judge_metrics(read_scored(lines(tmp_path / "scored.jsonl", *rows)))
    found = table.found["score"]["marks: names"]
    assert found.spearman is not None
    assert found.spearman.mean == pytest.approx(1.0)
    assert found.system_tau is not None
    assert found.system_tau.mean == pytest.approx(1.0)
    assert table.found["score"]["marks: numbers"].spearman is None
    assert "18 summaries of 6 documents by 3 systems" in table.about
    assert "no ROUGE" in table.about
    table.write(tmp_path / "out")
    assert "| marks: names | 18 | 1.00 [1.00, 1.00] |" in (tmp_path / "out" / "metrics.md").read_text()
