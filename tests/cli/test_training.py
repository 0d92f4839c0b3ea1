"""What a training command says before it starts, and how it ends where it learnt nothing."""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from precis.phases.train import pair_training as module
from tests.tiny_models import SMALL_RUN, once, save

Precis = Callable[..., Any]
SHORT = ["--steps", 2, "--set", "generated_rows=0", "--select", "loss", "--precision", "fp32"]


@pytest.mark.parametrize("steps", [6, pytest.param(30, marks=pytest.mark.slow)])
def test_a_rate_that_no_model_survives_ends_with_one_line_and_no_model(
    steps: int, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    options = ["--steps", steps, "--validate-every", 3, "--lr", "1e9", "--precision", "fp32"]
    for _ in range(2):
        outcome = precis("finetune", "--data", pairs, "--out", out, *once(*SMALL_RUN, *options))
        assert outcome.code == 1
        assert "start again with --restart and a learning rate (--lr) below 1e+09" in outcome.error
        assert "(best so far)" not in outcome.err
        assert not (out / "model").exists()
    assert "warning: a learning rate of 1e+09" in outcome.err
    again = precis("finetune", "--data", pairs, "--out", out, *once(*SMALL_RUN, *SHORT, "--restart"))
    assert again.code == 0
    assert (out / "model").is_dir()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seed", -1], "--seed -1: use 0 to 4294967295"),
        (["--examples", 4, "--sampling-seed", -2], "--sampling-seed -2: use 0 to 4294967295"),
        (["--lr", "nan"], "--lr nan: must be a finite number"),
        (["--lr", "inf"], "--lr inf: must be a finite number"),
        (["--set", "train.weight_decay=nan"], "'nan' is not a finite number"),
        (["--set", "label_smoothing=1.5"], "label_smoothing=1.5 is outside [0, 1)"),
        (["--epochs", "inf"], "--epochs inf: must be a finite number"),
        (["--recipe", "prophetnet-micro", "--set", "stream_weights=1,nan"], "'nan' is not a finite number"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused_before_any_work(
    options: list[object], message: str, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    recipe = [] if "--recipe" in options else ["--recipe", "zcodepp-micro"]
    outcome = precis("finetune", "--data", pairs, "--out", tmp_path / "run", *recipe, *options)
    assert outcome.code == 2
    assert message in outcome.error
    assert not (tmp_path / "run").exists()


def test_without_a_recipe_few_pairs_take_the_small_one_and_a_run_keeps_the_one_it_began_with(
    pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    shape = SMALL_RUN[2:]
    first = precis("finetune", "--data", pairs, "--out", out, *once(*shape, *SHORT))
    assert first.code == 0, first.err
    assert "no --recipe and no --model: a new model by --recipe zcodepp-few, for 40 pairs" in first.err
    assert "warmup_steps=200 is not below steps=2" in first.err
    older = tmp_path / "older"  # when the default was another
    assert precis("finetune", "--data", pairs, "--out", older, *once(*SMALL_RUN, *SHORT)).code == 0
    again = precis("finetune", "--data", pairs, "--out", older, *once(*shape, *SHORT))
    assert again.code == 0, again.err
    assert "recipe zcodepp-micro" in again.err


@pytest.mark.slow
def test_few_pairs_train_the_model_that_comes_with_precis_which_writes_then_and_the_run_file_repeats_it(
    pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    out, again = tmp_path / "run", tmp_path / "again"
    brief = ("--batch-tokens", 512, "--validate-every", 1, "--set", "generated_rows=1")
    first = precis("finetune", "--data", pairs, "--out", out, "--steps", 1, *brief)
    assert first.code == 0, first.err
    assert "40 English pairs are few, so training starts from the model that comes with precis" in first.err
    assert "30.0 M parameters, from " in first.err
    (tmp_path / "a.txt").write_text("Ann sings in the hall. Bob listens to her.")
    assert precis("summarize", tmp_path / "a.txt", "--model", out, "--json").code == 0
    repeated = precis("finetune", "--config", out / "run.toml", "--out", again)
    assert repeated.code == 0, repeated.err
    assert "30.0 M parameters, from " in repeated.err


def test_validation_on_training_rows_is_said_before_training_starts(
    pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    options = ["--dev", pairs / "train.jsonl", "--out", tmp_path / "run", *once(*SMALL_RUN, *SHORT)]
    outcome = precis("finetune", "--data", pairs / "train.jsonl", *options)
    assert outcome.code == 0
    before = outcome.err.partition("training 65,280")[0]
    assert "warning: training documents are among the validation documents (40 of 40), so" in before


def test_a_signal_while_the_model_is_written_waits_for_it_and_ends_as_elsewhere(
    pairs: Path, precis: Precis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = module.export_model  # type: ignore[attr-defined]

    def interrupted(*arguments: Any, **options: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        export(*arguments, **options)

    monkeypatch.setattr(module, "export_model", interrupted)
    out = tmp_path / "run"
    outcome = precis("finetune", "--data", pairs, "--out", out, *once(*SMALL_RUN, *SHORT))
    assert outcome.code == 130
    assert "stopped by a signal after the model was written" in outcome.err
    (tmp_path / "a.txt").write_text("Ann sings in the hall. Bob listens to her.")
    assert precis("summarize", tmp_path / "a.txt", "--model", out).code == 0


def test_data_that_changed_are_named_in_words(pairs: Path, precis: Precis, tmp_path: Path) -> None:
    data = shutil.copytree(pairs, tmp_path / "pairs")
    command = [
        "finetune",
        "--data",
        data,
        "--out",
        tmp_path / "run",
        "--model",
        save("zcodepp", tmp_path / "m"),
    ]
    assert precis(*command, *SHORT, "--batch-size", 4).code == 0
    lines = (data / "dev.jsonl").read_text().splitlines(keepends=True)
    (data / "dev.jsonl").write_text("".join(lines[1:]))
    outcome = precis(*command, *SHORT, "--batch-size", 4)
    assert outcome.code == 2
    assert "was started with other validation pairs; use the original ones" in outcome.error


@pytest.mark.parametrize("command", ["finetune", "tune", "ground"])
def test_several_seeds_end_with_one_table_and_the_command_that_pools_them(
    command: str, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    out, base = tmp_path / "run", save("bart", tmp_path / "base", positions=128)
    data = ["--tasks", pairs] if command == "ground" else ["--data", pairs]
    start = (
        [*SMALL_RUN] if command == "finetune" else ["--model", base, "--batch-size", 4, "--max-source", 64]
    )
    short = [*SHORT[:4], *(SHORT[4:6] if command != "ground" else ()), "--precision", "fp32"]
    words = once(command, *data, *start, *short, "--out", out, "--seeds", 2)
    made = precis(*words)
    assert made.code == 0, made.err
    assert "seed 1 (2 of 2): " in made.err
    assert made.out.count("mean") == 1
    assert f" precis evaluate --model {out} " in made.out
    assert {"seed-0", "seed-1", "seeds.json"} <= {path.name for path in out.iterdir()}
    assert "seeds = " not in (out / "seed-1" / "run.toml").read_text()
    assert '"train.seed" = "1"' in (out / "seed-1" / "run.toml").read_text()


def test_several_seeds_and_a_search_exclude_each_other(pairs: Path, precis: Precis, tmp_path: Path) -> None:
    outcome = precis("finetune", "--data", pairs, "--seeds", 2, "--search", "--out", tmp_path / "run")
    assert outcome.code == 2
    assert "--seeds and --search exclude each other" in outcome.error
