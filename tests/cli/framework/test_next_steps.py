"""The commands that a training prints name pairs that can be scored, with the options that read them."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from precis.phases.data.run_pairs import NamedPairs
from tests.tiny_models import SMALL_RUN, once

SHORT = ["--steps", "1", "--max-source", "32", "--set", "generated_rows=0", "--select", "loss"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("train", "test", "alone"):
        (tmp_path / f"{name}.jsonl").write_text('{"document": "Ann sings.", "summary": "Ann sings."}\n')
    return tmp_path


def test_a_source_with_a_test_split_is_scored_on_it(folder: Path) -> None:
    assert NamedPairs(data=str(folder)).to_test(str(folder)) == f"--data {folder} --split test"
    with_task = NamedPairs(task="samsum", data=str(folder)).to_test(str(folder))
    assert with_task == f"--task samsum --data {folder} --split test"
    assert NamedPairs(task="samsum").to_test("hub:knkarthick/samsum") == "--task samsum --split test"


def test_of_other_sources_the_user_names_a_file(folder: Path) -> None:
    file = str(folder / "alone.jsonl")
    assert NamedPairs(data=file).to_test(file) == "--data TEST_FILE"
    assert NamedPairs(task="samsum", data=file).to_test(file) == "--task samsum --data TEST_FILE"
    (folder / "test.jsonl").unlink()
    assert NamedPairs(data=str(folder)).to_test(str(folder)) == "--data TEST_FILE"


def test_columns_and_bad_rows_are_named_again_and_words_are_quoted() -> None:
    pairs = NamedPairs(data="my pairs", document_column="a b", summary_column="head", skip_bad=True)
    options = "--document-column 'a b' --summary-column head --skip-bad"
    assert pairs.typed == f"--data 'my pairs' {options}"
    assert pairs.to_test("nowhere") == f"--data TEST_FILE {options}"


def test_what_finetune_prints_can_be_typed(folder: Path, precis: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    lines = [f"Ann sings the song number {n}.,Ann sings.\n" for n in range(12)]
    file.write_text("article,head\n" + "".join(lines) + ",\n")
    columns = ["--document-column", "article", "--summary-column", "head", "--skip-bad"]
    run = tmp_path / "run"
    made = precis("finetune", "--data", file, "--out", run, *columns, *once(*SMALL_RUN, *SHORT))
    assert made.code == 0, made.err
    (line,) = [line for line in made.out.splitlines() if line.startswith("next:")]
    words = shlex.split(line.removeprefix("next:"))
    assert words[0] == "precis"
    typed = [str(file) if word == "TEST_FILE" else word for word in words[1:]]
    scored = precis(*typed, "--limit", 1, "--beams", 1)
    assert scored.code == 0, scored.err
