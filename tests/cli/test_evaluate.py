"""`precis evaluate`: how a model is asked to decode, and where its scores go."""

import json
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
    assert "out: is a file; --out names a folder" in outcome.error
