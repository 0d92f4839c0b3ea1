"""Marks on the command line: `summarize --support`, `evaluate --faithful`, `probe metrics`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_models import save, save_classifier

Precis = Callable[..., Any]
DOCUMENT = (
    "Ann Velmark sings in the old hall on 14 March 2027. Bob did not listen to her. The hall has 300 seats."
)


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_classifier(tmp_path_factory.mktemp("checker"))


def test_summarize_shows_the_source_of_each_sentence(precis: Precis, tmp_path: Path) -> None:
    file = tmp_path / "doc.txt"
    file.write_text(DOCUMENT)
    shown = precis("summarize", file, "--sentences", 1, "--support")
    assert shown.code == 0, shown.err
    assert "[1] word for word, line 1: " in shown.out
    assert "marks are hints" not in shown.out
    assert "verified" not in shown.out
    record = json.loads(precis("summarize", file, "--sentences", 1, "--support", "--json").out)
    (sentence,) = record["support"]["sentences"]
    assert sentence["copied"]
    assert record["support"]["marks"] == []
    passage = sentence["aligned"][0]
    assert passage["line"] == 1
    assert DOCUMENT[passage["start"] : passage["end"]] == passage["text"] == record["summary"]
    assert "support" not in json.loads(precis("summarize", file, "--sentences", 1, "--json").out)


def test_support_is_part_of_what_an_unfinished_file_was_made_by(precis: Precis, tmp_path: Path) -> None:
    file, empty, out = tmp_path / "doc.txt", tmp_path / "empty.txt", tmp_path / "out.txt"
    file.write_text(DOCUMENT)
    empty.write_text("")
    assert precis("summarize", file, empty, "--support", "--out", out).code == 2
    other = precis("summarize", file, "--out", out)
    assert other.code == 2
    assert "was started with" in other.error
    empty.write_text(DOCUMENT)
    assert precis("summarize", file, empty, "--support", "--out", out).code == 0
    assert out.read_text().count("[1] ") == 2
    assert out.read_text().count("[1] word for word, line 1: ") == 2


def test_evaluate_marks_summaries_and_asks_the_judges(precis: Precis, checker: Path, tmp_path: Path) -> None:
    rows = [{"document": DOCUMENT, "summary": "Ann Velmark sings."}] * 2
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "mine.txt").write_text("Ann Velmark sings to Carl in 2028.\nBob did listen to her.\n")
    out = tmp_path / "out"
    scored = (
        "evaluate",
        "--predictions",
        tmp_path / "mine.txt",
        "--data",
        tmp_path / "test.jsonl",
        "--no-baselines",
    )
    judges = ("--likelihood", save("bart", tmp_path / "bart", positions=128), "--checker", checker)
    outcome = precis(*scored, "--faithful", *judges, "--out", out)
    assert outcome.code == 0, outcome.err
    assert "negations" in outcome.out
    assert "arks are hints" in outcome.out
    assert "verified" not in outcome.out
    assert "licence: mit" in outcome.err
    first, second = map(json.loads, (out / "examples.jsonl").read_text().splitlines())
    marks = [m["text"] for row in (first, second) for m in row["systems"]["mine"]["support"]["marks"]]
    assert marks == ["Carl", "2028", "listen"]
    assert 0 <= first["systems"]["mine"]["checker"] <= 1
    found = json.loads((out / "scores.json").read_text())["faithful"]
    assert found["mine"]["marked"]["mean"] == 100
    assert found["mine"]["names"]["mean"] == found["mine"]["negations"]["mean"] == 0.5
    assert found["references"]["marked"]["mean"] == 0
    assert found["mine"]["logp_summary_given_document"]["mean"] < 0
    plain = precis(*scored, "--out", tmp_path / "plain")
    assert plain.code == 0
    assert "faithful" not in json.loads((tmp_path / "plain" / "scores.json").read_text())


def test_a_checker_that_is_none_is_refused_in_one_line(precis: Precis, tmp_path: Path) -> None:
    (tmp_path / "test.jsonl").write_text(json.dumps({"document": DOCUMENT, "summary": "Ann sings."}) + "\n")
    (tmp_path / "mine.txt").write_text("Ann sings.\n")
    scored = ("evaluate", "--predictions", tmp_path / "mine.txt", "--data", tmp_path / "test.jsonl")
    outcome = precis(*scored, "--checker", tmp_path / "none", "--out", tmp_path / "out")
    assert outcome.code == 2
    assert "contains no model; give a folder with config.json" in outcome.error
    other = save("bart", tmp_path / "bart")
    outcome = precis(*scored, "--checker", other, "--out", tmp_path / "out")
    assert outcome.code == 2
    assert "folder of a trained classifier" in outcome.error


def test_probe_metrics_prints_a_table_for_each_human_score(precis: Precis, tmp_path: Path) -> None:
    texts = ("Ann Velmark sings.", "Ann sings to Carl.", "Carl Sundby sings to Dora in 2028.")
    rows = [
        {
            "id": str(d),
            "system": str(s),
            "output": text,
            "document": DOCUMENT,
            "reference": texts[0],
            "true": -s,
            "clear": s,
        }
        for d in range(4)
        for s, text in enumerate(texts)
    ]
    file = tmp_path / "scored.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    outcome = precis("probe", "metrics", file, "--samples", 20, "--out", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    assert "12 summaries of 4 documents by 3 systems" in outcome.out
    found = json.loads((tmp_path / "out" / "metrics.json").read_text())["agreement"]
    assert found["true"]["marks: names"]["spearman"]["mean"] == pytest.approx(1.0)
    assert found["clear"]["marks: names"]["system_tau"]["mean"] == pytest.approx(-1.0)
    foreign = tmp_path / "theirs"
    foreign.mkdir()
    (foreign / "notes.txt").write_text("mine")
    refused = precis("probe", "metrics", file, "--out", foreign)
    assert refused.code == 2
    assert "precis did not write" in refused.error
