"""`precis finetune --search`, `--curve` and `--examples` as a user meets them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_models import SMALL_RUN

Precis = Callable[..., Any]


@pytest.mark.slow
def test_a_search_ends_with_a_table_and_a_model_that_can_be_used(
    precis: Precis, pairs: Path, finished: Path, tmp_path: Path
) -> None:
    out = tmp_path / "search"
    command = ["finetune", "--data", pairs, "--model", finished, "--out", out, "--search", "--trials", 2]
    command += ["--steps", 2, "--batch-size", 8, "--max-source", 64, "--set", "generated_rows=2"]
    command += ["--set", "generation.max_tokens=6", "--space", "warmup_steps=0,1"]
    command += ["--space", "learning_rate=1e-4,1e-3", "--threads", 1]
    for name in ("length_penalty", "no_repeat_ngram"):
        command += ["--space", f"{name}=none"]
    outcome = precis(*command, "--space", "beams=1,2")
    assert outcome.code == 0, outcome.err
    assert "training" in outcome.out
    assert "decoding" in outcome.out
    assert f"model: {out}/model" in outcome.out
    assert "search: 2 of the 4 points" in outcome.err
    record = json.loads((out / "search.json").read_text())
    assert len(record["trials"]) == len(record["decodings"]) == 2
    (tmp_path / "a.txt").write_text("Ann sings in the hall.")
    assert precis("summarize", tmp_path / "a.txt", "--model", out).code == 0
    without = precis("finetune", "--data", pairs, "--out", out, *SMALL_RUN)
    assert (without.code, "contains a search" in without.error) == (2, True)


@pytest.mark.slow
def test_a_curve_ends_with_a_table_and_advice_against_the_model_in_the_box(
    precis: Precis, pairs: Path, tmp_path: Path
) -> None:
    command = ["finetune", "--data", pairs, "--out", tmp_path / "curve", *SMALL_RUN, "--steps", 2]
    outcome = precis(*command, "--curve", "10,20", "--seeds", 2)
    assert outcome.code == 0, outcome.err
    rows = [line.split() for line in outcome.out.splitlines()]
    assert [row[:2] for row in rows if row[:1] in (["10"], ["20"])] == [["10", "2"], ["20", "2"]]
    assert {"default", "LEAD-2"} <= {row[0] for row in rows if row}
    assert "advice: choose, do not write: after 20 pairs" in outcome.out
    assert "precis extractor --model default --tasks" in outcome.out
    own = (tmp_path / "curve" / "runs" / "10-1" / "run.toml").read_text()
    assert "curve = " not in own
    again = precis(
        "finetune", "--config", tmp_path / "curve" / "runs" / "10-1" / "run.toml", "--out", tmp_path / "x"
    )
    assert again.code == 0, again.err


@pytest.mark.long
def test_examples_bring_the_few_shot_settings(precis: Precis, pairs: Path, tmp_path: Path) -> None:
    small = [option for option in SMALL_RUN if option not in ("--batch-tokens", "2000")]
    brief = ["--steps", 2, "--set", "train.warmup_steps=1"]
    few = ["--examples", 10, "--sampling-seed", 3]
    outcome = precis("finetune", "--data", pairs, "--out", tmp_path / "run", *few, *small, *brief)
    assert outcome.code == 0, outcome.err
    assert "few-shot: at most 2 steps in batches of 10 pairs, or until 5 validations" in outcome.err
    assert "10 training pairs drawn at random (seed 3)" in outcome.err
    record = json.loads((tmp_path / "run" / "settings.json").read_text())
    assert record["run"]["batch_size"] == 10


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            ["--examples", "0", "--model", "m"],
            "`precis evaluate --model m --data {pairs} --out o/evaluation`",
        ),
        (["--examples", "0"], "zero-shot needs a trained model"),
        (["--examples", "-1"], "use 1 or more"),
        (["--sampling-seed", "1"], "add --examples"),
        (["--trials", "3"], "--trials is for a search"),
        (["--trials", "0"], "--trials 0: must be at least 1"),
        (["--space", "beams=1"], "--space is for a search"),
        (["--curve", "30", "--search"], "give one of them"),
        (["--curve", "many"], "--curve many: give numbers of pairs, such as --curve 30,100,300"),
        (["--curve", "30,30"], "--curve: give different numbers of pairs"),
        (["--curve", "41"], "--curve 41: 40 pairs are left to train on; use up to that number"),
        (["--search", "--lr", "1e-3", "--space", "learning_rate=1"], "train.learning_rate was also given"),
    ],
)
def test_options_that_do_not_go_together(options: list[str], says: str, pairs: Path, precis: Precis) -> None:
    outcome = precis("finetune", "--data", pairs, "--out", "o", *options)
    assert outcome.code == 2
    assert says.format(pairs=pairs) in outcome.error
