"""`precis data check` says by its exit code whether pairs are fit to train on and to score on."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Precis = Callable[..., Any]


def write(file: Path, *documents: str) -> None:
    file.write_text("".join(json.dumps({"document": d, "summary": "s"}) + "\n" for d in documents))


def test_a_document_in_two_splits_is_bad_input_after_all_was_printed(precis: Precis, tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", "Ann sings.", "Bob hums.")
    write(tmp_path / "test.jsonl", "Bob  hums.", "Eve reads.")
    outcome = precis("data", "check", tmp_path)
    assert outcome.code == 2
    assert "LEAK: 1 document is in train and in test" in outcome.out
    assert outcome.error == "error: splits share documents (LEAK above); keep each in only one split"


def test_bad_rows_and_a_leak_are_one_error(precis: Precis, tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", "Ann sings.", "")
    write(tmp_path / "test.jsonl", "Ann sings.")
    outcome = precis("data", "check", tmp_path)
    assert outcome.code == 2
    assert "bad row: " in outcome.err
    assert outcome.error.startswith(
        "error: 1 row cannot be used; fix it, or train and evaluate with --skip-bad; splits"
    )


def test_a_document_twice_in_one_split_is_counted_and_no_error(precis: Precis, tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", "Ann sings.", "Ann sings.")
    write(tmp_path / "test.jsonl", "Bob hums.")
    outcome = precis("data", "check", tmp_path)
    assert outcome.code == 0
    assert "1 document seen before" in outcome.out
    assert "the splits do not share documents" in outcome.out


@pytest.mark.parametrize("seed", [0, 1])
def test_the_synthetic_corpus_passes(seed: int, precis: Precis, tmp_path: Path) -> None:
    counts = ["--train", 300, "--dev", 60, "--test", 60]
    assert precis("data", "synthetic", "--out", tmp_path, "--seed", seed, *counts).code == 0
    assert precis("data", "check", tmp_path).code == 0
