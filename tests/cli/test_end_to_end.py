"""From pairs to scores by the commands that the help texts name."""

import json
import shutil
import sys
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_models import SMALL_RUN, once, save

Precis = Callable[..., Any]
SHORT = ["--steps", 2, "--max-source", 64, "--set", "generated_rows=0", "--select", "loss"]


def test_a_run_leaves_what_it_promises(finished: Path) -> None:
    for name in ("settings.json", "metrics.jsonl", "curves.png", "tensorboard", "tokenizer", "checkpoints"):
        assert (finished / name).exists(), name
    model = {file.name for file in (finished / "model").iterdir()}
    assert {"config.json", "model.safetensors", "generation_config.json", "tokenizer.json"} <= model
    settings = json.loads((finished / "settings.json").read_text())
    assert settings["run"]["train"]["steps"] == 6
    assert settings["versions"]["torch"]
    assert settings["identity"]["data"]
    assert json.loads((finished / "model" / "precis.json").read_text())["max_source"] == 96


def test_validation_measured_loss_and_generated_rouge(finished: Path) -> None:
    records = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    validations = [record for record in records if record["kind"] == "validation"]
    assert validations[-1]["step"] == 6
    assert {"loss", "nll", "rouge1", "rouge2", "rougeL"} <= set(validations[-1])


def test_the_same_command_again_finds_nothing_left_to_do(finished: Path, pairs: Path, precis: Precis) -> None:
    command = json.loads((finished / "settings.json").read_text())
    steps = len((finished / "metrics.jsonl").read_text().splitlines())
    assert command["sources"]["train"]["source"] == str(pairs)
    outcome = precis("finetune", "--data", pairs, "--out", finished, "--steps", 6, *SMALL_RUN)
    assert outcome.code == 0
    assert "step-00000006" in outcome.err
    assert len((finished / "metrics.jsonl").read_text().splitlines()) == steps


def test_another_seed_in_the_same_folder_is_refused(finished: Path, pairs: Path, precis: Precis) -> None:
    before = (finished / "settings.json").read_text()
    options = ["--steps", 6, *SMALL_RUN, "--seed", 9]
    outcome = precis("finetune", "--data", pairs, "--out", finished, *options)
    assert outcome.code == 2
    assert "started with --seed 0, now 9" in outcome.error
    assert "--restart" in outcome.error
    assert (finished / "settings.json").read_text() == before


def test_what_will_happen_is_said_before_it_does(pairs: Path, precis: Precis, tmp_path: Path) -> None:
    outcome = precis("finetune", "--data", pairs, "--out", tmp_path / "run", *once(*SMALL_RUN, *SHORT))
    assert outcome.code == 0, outcome.err
    assert "train: 40 pairs" in outcome.err
    assert "M parameters, new, recipe zcodepp-micro" in outcome.err
    assert "are longer than 64 tokens and are truncated: raise --max-source" in outcome.err
    assert f"model: {tmp_path}/run/model" in outcome.out
    assert f"--data {pairs} --split test --out {tmp_path}/run/evaluation" in outcome.out
    assert "precis summarize FILE --model" in outcome.out


def test_few_examples_and_a_tokenizer_of_ones_own(pairs: Path, precis: Precis, tmp_path: Path) -> None:
    words = tmp_path / "words"
    made = precis("tokenizer", "--data", pairs, "--vocab-size", 500, "--out", words)
    assert made.code == 0
    assert "tokenizer with 500 entries" in made.out
    options = once(*SMALL_RUN, *SHORT, "--tokenizer", words, "--examples", 8)
    outcome = precis("finetune", "--data", pairs, "--out", tmp_path / "run", *options)
    assert outcome.code == 0, outcome.err
    assert "few-shot: 8 training pairs" in outcome.err
    assert "500 tokens" in outcome.err


@pytest.mark.long
def test_a_model_of_another_make_is_tuned_on_a_single_file(
    pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    start = save("bart", tmp_path / "bart", positions=48)
    options = ["--model", start, *SHORT, "--batch-size", 4, "--instruction", "Be brief:"]
    outcome = precis("finetune", "--data", pairs / "train.jsonl", "--out", tmp_path / "run", *options)
    assert outcome.code == 0, outcome.err
    assert "reads at most 48 tokens: max_source is 48 instead of 64" in outcome.err
    assert "writes at most 46 tokens: max_target is 46 instead of 128" in outcome.err
    assert "held out for validation" in outcome.err
    assert "no --recipe: the settings for pre-trained models" in outcome.err
    assert json.loads((tmp_path / "run/model/config.json").read_text())["model_type"] == "bart"
    assert json.loads((tmp_path / "run/model/precis.json").read_text())["instruction"] == "Be brief:"
    (tmp_path / "a.txt").write_text("Ann sings in the hall. Bob listens to her.")
    assert precis("summarize", tmp_path / "a.txt", "--model", tmp_path / "run").code == 0


def test_evaluation_prints_the_model_beside_baselines(
    finished: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    options = ["--beams", 1, "--beams", 2, "--bleu"]
    outcome = precis("evaluate", "--model", finished, "--data", pairs, "--out", tmp_path, *options)
    assert outcome.code == 0, outcome.err
    for name in (
        "tiny greedy",
        "tiny beam 2",
        "LEAD-3",
        "LONGEST-3",
        "LEXRANK-3",
        "TEXTRANK-3",
        "ORACLE",
        "BLEU",
    ):
        assert name in outcome.out
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["examples"] == 5
    assert {"mean", "low", "high"} == set(scores["systems"]["tiny greedy"]["metrics"]["rouge1"])
    predictions = tmp_path / "predictions" / "tiny-greedy.jsonl"
    scored = ["--data", pairs, "--out", tmp_path / "again", "--no-baselines", "--limit", 5]
    again = precis("evaluate", "--predictions", predictions, *scored)
    assert again.code == 0
    assert "LEAD-3" not in again.out


def test_a_small_model_of_ours_is_tuned_further_at_the_rate_of_its_size(
    finished: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    options = [*SHORT, "--batch-size", 8, "--threads", 1]
    outcome = precis("finetune", "--data", pairs, "--model", finished, "--out", tmp_path, *options)
    assert outcome.code == 0, outcome.err
    assert "no --recipe: the training settings of zcodepp-micro, the size of this model" in outcome.err
    assert json.loads((tmp_path / "settings.json").read_text())["run"]["train"]["learning_rate"] == 1e-3


def test_summaries_alone_go_to_standard_output(finished: Path, precis: Precis, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Ann sings in the hall. Bob listens to her.")
    outcome = precis("summarize", tmp_path / "a.txt", "--model", finished, "--beams", 1)
    assert outcome.code == 0
    assert len(outcome.out.strip().splitlines()) <= 1
    assert outcome.err.count("\n") == 1
    assert "a.txt: read all" in outcome.err


def test_standard_input_is_a_document(
    finished: Path, precis: Precis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"Ann sings in the hall.")))
    outcome = precis("summarize", "--model", finished, "--json", "--sentences", 1)
    assert outcome.code == 0
    row = json.loads(outcome.out)
    assert row["name"] == "standard input"
    assert row["tokens_read"] == row["document_tokens"] > 0


def test_a_file_of_rows_has_a_summary_for_each(finished: Path, pairs: Path, precis: Precis) -> None:
    outcome = precis("summarize", pairs / "test.jsonl", "--model", finished, "--words", 8, "--json")
    assert outcome.code == 0
    assert len(outcome.out.splitlines()) == 5


def test_tasks_are_listed_and_pairs_shown(precis: Precis, pairs: Path) -> None:
    assert "samsum" in precis("data", "list").out
    shown = precis("data", "show", pairs, "--rows", 2)
    assert shown.out.count("--> summary") == 2


def test_beginning_anew_forgets_the_old_model(
    finished: Path, pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    shutil.copytree(finished, tmp_path / "run")
    options = once(*SMALL_RUN, *SHORT, "--seed", 3, "--restart")
    outcome = precis("finetune", "--data", pairs, "--out", tmp_path / "run", *options)
    assert outcome.code == 0, outcome.err
    assert json.loads((tmp_path / "run" / "settings.json").read_text())["run"]["train"]["seed"] == 3
    assert json.loads((tmp_path / "run" / "model" / "precis.json").read_text())["max_source"] == 64


def test_another_vocabulary_in_the_same_folder_is_refused(
    finished: Path, pairs: Path, precis: Precis
) -> None:
    options = once("--steps", 6, *SMALL_RUN, "--set", "model.vocab_size=650")
    outcome = precis("finetune", "--data", pairs, "--out", finished, *options)
    assert outcome.code == 2
    assert "vocab_size=600" in outcome.error


@pytest.mark.long
def test_a_damaged_checkpoint_is_named_and_the_run_goes_on(
    pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    every = ["--steps", 4, "--validate-every", 4, "--set", "train.save_every=2"]
    options = ["finetune", "--data", pairs, "--out", run, *every, *SMALL_RUN]
    assert precis(*options).code == 0
    (run / "checkpoints" / "step-00000004" / "state.json").unlink()
    outcome = precis(*options)
    assert outcome.code == 0, outcome.err
    assert "note: skipped damaged checkpoint" in outcome.err
    assert "step-00000004: state.json is missing" in outcome.err
    assert "step-00000002" in outcome.err


def test_several_documents_come_under_their_names(finished: Path, pairs: Path, precis: Precis) -> None:
    outcome = precis("summarize", pairs / "test.jsonl", "--model", finished)
    assert outcome.out.count("test.jsonl: ") == 5
