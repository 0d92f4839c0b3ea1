"""`precis evaluate`: how a model is asked to decode, and where its scores go."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Precis = Callable[..., Any]


def test_a_model_decodes_as_the_task_table_says_if_asked_to(
    finished: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    scored = ["evaluate", "--model", finished, "--data", pairs, "--limit", 1, "--no-baselines"]
    outcome = precis(*scored, "--task", "e2e", "--decoding", "task", "--out", tmp_path)
    assert outcome.code == 0, outcome.err
    first = (tmp_path / "predictions" / "tiny-beam-5.jsonl").read_text().splitlines()[0]
    assert json.loads(first)["made_by"]["settings"]["max_tokens"] == 64
    refused = precis(*scored, "--decoding", "task", "--out", tmp_path / "other")
    assert (refused.code, "--decoding task: name the task with --task" in refused.error) == (2, True)


@pytest.mark.parametrize("inside", [False, True])
def test_a_file_in_the_place_of_the_scores_is_refused_before_anything_is_read(
    inside: bool, precis: Precis, tmp_path: Path
) -> None:
    (tmp_path / "out").write_text("mine")
    out = tmp_path / "out" / "deeper" if inside else tmp_path / "out"
    outcome = precis("evaluate", "--model", tmp_path / "none", "--data", tmp_path / "none", "--out", out)
    assert outcome.code == 2
    assert "out: is a file; name a folder with --out" in outcome.error


def predictions(file: Path, text: str) -> Path:
    file.write_text(f"{text}\n" * 5)
    return file


def test_each_further_file_stands_beside_the_first(pairs: Path, precis: Precis, tmp_path: Path) -> None:
    files = [predictions(tmp_path / f"{name}.txt", f"The {name}.") for name in ("old", "new", "newer")]
    scored = ["evaluate", "--data", pairs, "--no-baselines", "--out", tmp_path / "out"]
    outcome = precis(*scored, *(word for file in files for word in ("--predictions", file)))
    assert outcome.code == 0, outcome.err
    assert "difference to old" in outcome.out
    below = outcome.out.split("difference to old")[1].splitlines()
    rows = [line.split()[:2] for line in below if "ROUGE-1" in line or "ROUGE-2" in line]
    assert rows == [[name, measure] for name in ("new", "newer") for measure in ("ROUGE-1", "ROUGE-2")]
    found = json.loads((tmp_path / "out" / "scores.json").read_text())["differences_to_first"]
    assert set(found["newer"]["rougeL"]) == {"mean", "low", "high", "p_value"}
    alone = precis(*scored, "--predictions", files[0])
    assert (alone.code, "difference" in alone.out) == (0, False)


def test_a_model_is_scored_beside_summaries_on_disk(
    finished: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    other = predictions(tmp_path / "theirs.txt", "The pool.")
    both = ["--model", finished, "--beams", 1, "--predictions", other]
    outcome = precis("evaluate", *both, "--data", pairs, "--no-baselines", "--out", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    assert "difference to tiny greedy" in outcome.out
    other.write_text("too few\n")  # said before the model writes anything
    refused = precis("evaluate", *both, "--data", pairs, "--out", tmp_path / "none")
    assert (refused.code, "theirs.txt: has 1 prediction for" in refused.error) == (2, True)
    assert not (tmp_path / "none").exists()


def test_several_models_stand_in_one_table_with_their_differences(
    finished: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    other = tmp_path / "elsewhere" / "tiny"  # of the same name
    shutil.copytree(finished / "model", other)
    out = tmp_path / "out"
    scored = ["evaluate", "--data", pairs, "--no-baselines", "--beams", 1, "--out", out]
    outcome = precis(*scored, "--model", finished, "--model", other)
    assert outcome.code == 0, outcome.err
    first, second = f"{finished.parent.name}/tiny greedy", "elsewhere/tiny greedy"
    found = json.loads((out / "scores.json").read_text())
    assert list(found["systems"]) == [first, second]
    assert found["differences_to_first"][second]["rougeL"]["mean"] == 0
    assert f"difference to {first}" in outcome.out
    names = sorted(file.name for file in (out / "predictions").glob("*.jsonl"))
    assert names == sorted([f"{finished.parent.name}-tiny-greedy.jsonl", "elsewhere-tiny-greedy.jsonl"])
    # as a kill in the second model leaves it: the first is not written again, the second goes on
    file = out / "predictions" / "elsewhere-tiny-greedy.jsonl"
    whole = file.read_text()
    file.write_text("".join(whole.splitlines(keepends=True)[:3]))
    again = precis(*scored, "--model", finished, "--model", other)
    assert (again.code, again.out) == (0, outcome.out)
    assert f"{first}: 5 of 5 summaries" in again.err
    assert f"{second}: 2 of 5 summaries" in again.err
    assert [json.loads(line).get("id") for line in file.read_text().splitlines()] == [
        json.loads(line).get("id") for line in whole.splitlines()
    ]


def test_several_models_that_cannot_be_scored_together(
    finished: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    scored = ["evaluate", "--data", pairs, "--out", out, "--model", finished]
    twice = precis(*scored, "--model", finished / "model")
    assert (twice.code, "is given twice, also as" in twice.error) == (2, True)
    missing = precis(*scored, "--model", tmp_path / "none")
    assert (missing.code, "none: no such folder" in missing.error) == (2, True)
    adapted = precis(*scored, "--model", finished, "--adapter", tmp_path)
    assert (adapted.code, "needs exactly one --model, but 2 are given" in adapted.error) == (2, True)
    assert not out.exists()


@pytest.mark.parametrize("columns", ["20", "80", "300"])
def test_a_signature_is_a_whole_line_however_wide_the_terminal(
    columns: str, pairs: Path, precis: Precis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    file = predictions(tmp_path / "mine.txt", "A short text.")
    scored = ("evaluate", "--predictions", file, "--data", pairs, "--bleu", "--out", tmp_path / "out")
    outcome = precis(*scored, "--no-baselines")
    assert outcome.code == 0, outcome.err
    signatures = json.loads((tmp_path / "out" / "scores.json").read_text())["signatures"]
    assert set(signatures) == {"rouge", "bleu"}
    assert set(signatures.values()) <= set(outcome.out.splitlines())
    assert {f"- `{each}`" for each in signatures.values()} <= set(
        (tmp_path / "out" / "table.md").read_text().splitlines()
    )
