"""One pair, one document, one step: messages say "1 pair", never "1 pairs"."""

import json
import re
from pathlib import Path

import pytest

from precis.phases.train.pair_training import advise_on_validation
from tests.outcomes import Run
from tests.tiny_models import SMALL_RUN

NOUNS = "pairs|documents|steps|tokens|words|processes|blocks|rows|units|summaries|sentences|validations|systems|are"
WRONG = re.compile(rf"(?<![\d.,])1 (?:[a-z-]+ )?(?:{NOUNS})\b")
PAIR = {
    "document": "Ann sings in the hall. Bob listens to her. It rains on the roof.",
    "summary": "Ann sings.",
}


@pytest.fixture
def one(tmp_path: Path) -> Path:
    for split, words in {"train": "", "dev": " Cem reads.", "test": " Dora swims."}.items():
        row = {**PAIR, "document": f"{PAIR['document']}{words}"}
        (tmp_path / f"{split}.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "word.txt").write_text("Sun")
    return tmp_path


def told(precis: Run, *words: object, code: int = 0) -> str:
    made = precis(*words)
    assert made.code == code, made.err
    return f"{made.out}\n{made.err}"


def test_training_scoring_and_choosing_with_one_pair_and_one_step(
    precis: Run, one: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    short = ["--steps", 1, "--validate-every", 1]
    said = told(precis, "finetune", "--data", one, "--out", run, *short, *SMALL_RUN)
    said += told(
        precis, "evaluate", "--data", one, "--model", run, "--limit", 1, "--out", tmp_path / "scores"
    )
    said += told(
        precis, "extractor", "--model", run, "--tasks", one, "--epochs", 1, "--out", tmp_path / "chooses"
    )
    said += told(precis, "data", "check", one / "train.jsonl") + told(
        precis, "data", "show", one, "--rows", 1
    )
    assert WRONG.findall(said) == [], said


def test_packing_in_one_process(precis: Run, one: Path, finished: Path, tmp_path: Path) -> None:
    (one / "book.txt").write_text(
        " ".join(f"Ann sang song {number} in hall {number % 7}." for number in range(900))
    )
    (one / "other.txt").write_text(
        " ".join(f"Bob read page {number} on day {number % 9}." for number in range(900))
    )
    pack = [
        "data",
        "pack",
        one / "book.txt",
        one / "other.txt",
        "--tokenizer",
        finished / "model",
        "--workers",
        1,
    ]
    said = told(precis, *pack, "--dev-share", 0, "--document-column", "text", "--out", tmp_path / "pack")
    assert WRONG.findall(said) == [], said


def test_a_document_of_one_word(precis: Run, one: Path) -> None:
    assert WRONG.findall(told(precis, "summarize", one / "word.txt")) == []


@pytest.mark.parametrize("shared", [0, 1])
def test_warnings_about_one_validation_pair(shared: int) -> None:
    said: list[str] = []
    advise_on_validation(dev_pairs=1, shared=shared, notify=said.append)
    assert said
    assert WRONG.findall("\n".join(said)) == []
