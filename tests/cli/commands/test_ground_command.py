"""`precis ground` as a user meets it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from precis.data.tasks.instructions import GENERAL
from precis.data.tasks.tasks import TASKS
from tests.tiny_models import save

BRIEF = "--steps 2 --lr 1e-3 --set train.warmup_steps=1 --max-source 48 --max-target 16 --batch-tokens 600 --threads 1"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("zcodepp", tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    for task, document in (("samsum", "Ann: I sing song {}."), ("aeslc", "Dear all, song {} is sung.")):
        folder = tmp_path / "shelf" / task
        folder.mkdir(parents=True)
        for split, count in (("train", 8), ("dev", 3)):
            rows = [{"document": document.format(n), "summary": "Ann sings."} for n in range(count)]
            (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "shelf"


@pytest.mark.long
def test_a_model_is_grounded_then_asked_without_further_training(
    model: Path, shelf: Path, tmp_path: Path, precis: Callable[..., Any]
) -> None:
    out = tmp_path / "run"
    arguments = ["ground", "--model", model, "--tasks", "all", "--leave-out", "aeslc", "--data", shelf]
    first = precis(*arguments, "--out", out, *BRIEF.split())
    assert first.code == 0, first.err
    assert "trained on: samsum;" in first.err
    assert "left out: aeslc" in first.err
    assert first.out.splitlines()[0] == f"model: {out / 'model'}"
    use = json.loads((out / "model" / "precis.json").read_text())
    assert (use["grounded_on"], use["instruction"]) == (["samsum"], GENERAL)
    (tmp_path / "note.txt").write_text("Ann: I sing.")
    written = precis(
        "summarize", tmp_path / "note.txt", "--model", out, "--instruction", "Sum up:", "--threads", 1
    )
    assert written.code == 0, written.err
    dev = ["evaluate", "--model", out, "--task", "samsum", "--data", shelf, "--split", "dev", "--beams", 1]
    scored = precis(*dev, "--out", tmp_path / "scores", "--threads", 1)
    assert f"instruction before every document: {TASKS['samsum'].instruction}" in scored.err
    scored = precis(*dev, "--out", tmp_path / "others", "--threads", 1, "--instruction", "Sum up:")
    assert "instruction before every document: Sum up:" in scored.err
    again = precis(*arguments, "--out", out, *BRIEF.split())
    assert again.code == 0
    other = precis(*arguments, "--out", out, *BRIEF.split(), "--cap", 5)
    assert (other.code, "was started with" in other.error) == (2, True)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--tasks", "samsun"], "'samsun' is neither a task nor a file or folder; did you mean 'samsum'"),
        (["--tasks", "samsum", "--cap", "0"], "--cap 0: use 1 or more"),
        (["--tasks", "samsum", "--recipe", "zcodepp-mikro"], "unknown recipe"),
        (["--tasks", "samsum,", "--leave-out", "samsum"], "no set to train on"),
        (["--tasks", "qmsum"], "no such folder; name the task's place with --tasks qmsum=PLACE"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    options: list[str], says: str, model: Path, shelf: Path, tmp_path: Path, precis: Callable[..., Any]
) -> None:
    outcome = precis("ground", "--model", model, "--data", shelf, "--out", tmp_path / "run", *options)
    assert outcome.code == 2
    assert says in outcome.error
    assert not (tmp_path / "run").exists()


def test_a_missing_model_is_said_before_anything_is_read(tmp_path: Path, precis: Callable[..., Any]) -> None:
    outcome = precis("ground", "--model", "./none", "--tasks", "samsum", "--out", tmp_path / "run")
    assert (outcome.code, "./none: no such folder" in outcome.error) == (2, True)


def test_settings_that_cannot_train_leave_no_folder(
    model: Path, shelf: Path, tmp_path: Path, precis: Callable[..., Any]
) -> None:
    out = tmp_path / "run"
    for option in ("batch_size=0", "train.select=rougeL", "train.select=foo"):
        arguments = ["ground", "--model", model, "--tasks", "samsum", "--data", shelf, "--out", out]
        outcome = precis(*arguments, "--set", option)
        assert outcome.code == 2
        assert option.partition("=")[2] in outcome.error
        assert not out.exists()
