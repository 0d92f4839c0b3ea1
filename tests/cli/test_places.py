"""A command is refused in one line, before it reads or computes anything, where its --out can be no folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Precis = Callable[..., Any]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(
    "command",
    [
        "tokenizer --data {pairs} --vocab-size 500",
        "data pack {pairs}/test.jsonl --tokenizer {model}/tokenizer",
        "data synthetic --train 1 --dev 1 --test 1",
        "convert {pairs}/test.jsonl",
        "pretrain --corpus {pairs}",
        "finetune --data {pairs} --recipe zcodepp-micro",
        "finetune --data {pairs} --recipe zcodepp-micro --search",
        "ground --tasks {pairs} --model {model}",
        "tune --data {pairs} --model {model}",
        "reproduce zcodepp-fewshot --data {pairs} --scale smoke",
    ],
)
def test_a_file_where_a_folder_is_to_be(
    command: str, inside: bool, pairs: Path, finished: Path, precis: Precis, tmp_path: Path
) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("mine")
    words = [word.format(pairs=pairs, model=finished) for word in command.split()]
    outcome = precis(*words, "--out", file / "deeper" / "still" if inside else file)
    assert (outcome.code, file.read_text()) == (2, "mine")
    assert f"{file}: is a file; name a folder with --out" in outcome.error


def test_a_tokenizer_is_never_written_over_a_folder_of_somebody(
    pairs: Path, precis: Precis, tmp_path: Path
) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    words = ["tokenizer", "--data", pairs, "--vocab-size", 500, "--out"]
    outcome = precis(*words, tmp_path)
    assert outcome.code == 2
    assert (
        f"{tmp_path}: contains thesis.txt, which this command did not write and would delete" in outcome.error
    )
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    for _ in range(2):
        assert precis(*words, tmp_path / "words").code == 0
