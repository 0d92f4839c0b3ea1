"""Choosing sentences from the command line: with the model that comes with precis, and with one that was taught."""

import json
from pathlib import Path

import pytest
from tiny_models import save

from precis.cli import main

TEXT = (
    "The council met on Monday evening. It voted to repair the old bridge before winter. "
    "The work will cost 40,000 crowns and begins in May. Two members were absent."
)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    (tmp_path / "report.txt").write_text(TEXT)
    return tmp_path / "report.txt"


def test_a_summary_needs_no_model_and_names_what_it_was_made_with(report, capsys) -> None:
    assert main(["summarize", str(report), "--sentences", "1"]) == 0
    out, err = capsys.readouterr()
    assert out.strip() in TEXT
    assert "the model that comes with precis" in err
    assert "word for word" in err


def test_json_names_the_mode_and_the_places(report, capsys) -> None:
    assert main(["summarize", str(report), "--words", "20", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mode"] == "extract"
    assert " ".join(TEXT[a:b] for a, b in found["places"]) == found["summary"]


@pytest.mark.parametrize(
    ("option", "named"),
    [
        (["--beams", "2"], "--beams"),
        (["--draft"], "--beams"),
        (["--long", "chunk"], "--long"),
        (["--instruction", "a"], "--instruction"),
        (["--max-source", "64"], "--max-source"),
    ],
)
def test_what_is_about_writing_is_refused(report, capsys, option, named) -> None:
    assert main(["summarize", str(report), *option]) == 2
    assert f"{named} has no effect with --mode extract" in capsys.readouterr().err


def test_the_default_model_refuses_to_write(report, capsys) -> None:
    assert main(["summarize", str(report), "--mode", "abstract"]) == 2
    assert "was not trained to write" in capsys.readouterr().err


def test_a_model_that_writes_refuses_to_choose(report, capsys, tmp_path) -> None:
    model = str(save("bart", tmp_path / "bart"))
    assert main(["summarize", str(report), "--mode", "extract", "--model", model]) == 2
    assert "precis extractor" in capsys.readouterr().err


def test_teach_choose_and_score(report, capsys, tmp_path) -> None:
    pairs = tmp_path / "pairs"
    pairs.mkdir()
    for split in ("train", "dev", "test"):
        rows = [
            {
                "document": f"Ann sings song {n}. Bob listens to it. It rains.",
                "summary": f"Ann sings song {n}.",
            }
            for n in range(24)
        ]
        (pairs / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    model, out = str(save("zcodepp", tmp_path / "tiny")), tmp_path / "out"
    small = ["--set", "scorer.width=16", "--set", "scorer.heads=2", "--epochs", "1"]
    command = ["extractor", "--model", model, "--tasks", str(pairs), "--out", str(out), *small]
    assert main(command) == 0
    assert "precis summarize FILE" in capsys.readouterr().out
    again = tmp_path / "again"
    assert main(["extractor", "--config", str(out / "run.toml"), "--out", str(again)]) == 0
    capsys.readouterr()
    weights = [(folder / "model" / "scorer.safetensors").read_bytes() for folder in (out, again)]
    assert weights[0] == weights[1]
    assert main(["summarize", str(report), "--model", str(out), "--sentences", "1"]) == 0
    assert capsys.readouterr().out.strip() in TEXT
    scores = tmp_path / "scores"
    assert main(["evaluate", "--model", str(out), "--data", str(pairs), "--out", str(scores)]) == 0
    assert "out extract" in capsys.readouterr().out
    assert main(
        ["summarize", str(report), "--model", str(out), "--mode", "abstract", "--short", "write"]
    ) in (0, 1)
