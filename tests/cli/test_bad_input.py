"""Bad input gives one line that names what, where and the remedy, or a stated behaviour; never a traceback."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tiny_models import save

Precis = Callable[..., Any]
GOOD = {"document": "Ann sings in the hall. Bob listens to her.", "summary": "Ann sings."}
MEGABYTES_10 = 10 * 1024 * 1024


def rows(file: Path, *lines: object) -> Path:
    content = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    file.write_bytes(b"\n".join(content) + b"\n")
    return file


def reading_commands(file: Path, tmp_path: Path) -> dict[str, list[object]]:
    """Every command that reads pairs, on this file."""
    out = tmp_path / "out"
    return {
        "tokenizer": ["tokenizer", "--data", file, "--vocab-size", 500, "--out", out],
        "finetune": ["finetune", "--data", file, "--recipe", "zcodepp-micro", "--out", out],
        "evaluate": ["evaluate", "--predictions", file, "--data", file, "--out", out],
        "show": ["data", "show", file],
        "check": ["data", "check", file],
    }


@pytest.mark.parametrize("command", ["tokenizer", "finetune", "evaluate", "show", "check"])
def test_a_missing_file(command: str, precis: Precis, tmp_path: Path) -> None:
    outcome = precis(*reading_commands(tmp_path / "none.jsonl", tmp_path)[command])
    assert outcome.code == 2
    assert "none.jsonl: no such file" in outcome.error
    near = rows(tmp_path / "nonne.jsonl", GOOD)
    assert (
        f"did you mean {near}?" in precis(*reading_commands(tmp_path / "none.jsonl", tmp_path)[command]).error
    )


@pytest.mark.parametrize("command", ["tokenizer", "finetune", "evaluate", "show", "check"])
def test_an_empty_file(command: str, precis: Precis, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    outcome = precis(*reading_commands(tmp_path / "empty.jsonl", tmp_path)[command])
    assert outcome.code == 2
    assert "empty.jsonl: is empty" in outcome.error


@pytest.mark.parametrize("command", ["tokenizer", "finetune", "evaluate", "show", "check"])
def test_wrong_columns(command: str, precis: Precis, tmp_path: Path) -> None:
    file = rows(tmp_path / "pairs.jsonl", {"article": "Ann sings.", "headline": "Song"})
    outcome = precis(*reading_commands(file, tmp_path)[command])
    assert outcome.code == 2
    assert "'article', 'headline'" in outcome.error
    assert "--document-column" in outcome.error


def test_named_columns_are_read(precis: Precis, tmp_path: Path) -> None:
    file = rows(tmp_path / "pairs.jsonl", {"article": "Ann sings.", "headline": "Song"})
    named = ["--document-column", "article", "--summary-column", "headline"]
    assert precis("data", "check", file, *named).code == 0


BAD_LINES = {
    "malformed": b'{"document": "Ann sings.", "summary": ',
    "a number": b"12",
    "wrong type": b'{"document": ["Ann"], "summary": "A"}',
    "invalid UTF-8": b'{"document": "Ann \xff sings.", "summary": "A"}',
    "empty document": b'{"document": " ", "summary": "A"}',
    "empty summary": b'{"document": "Ann sings.", "summary": ""}',
    "10 MB without end": b'{"document": "' + b"a" * MEGABYTES_10,
}


@pytest.mark.parametrize("kind", BAD_LINES)
@pytest.mark.parametrize("command", ["tokenizer", "finetune", "evaluate"])
def test_a_bad_row_is_named_by_file_and_line(kind: str, command: str, precis: Precis, tmp_path: Path) -> None:
    file = rows(tmp_path / "pairs.jsonl", GOOD, BAD_LINES[kind], GOOD)
    outcome = precis(*reading_commands(file, tmp_path)[command])
    assert outcome.code == 2
    assert "pairs.jsonl: line 2" in outcome.error
    assert "--skip-bad" in outcome.error
    assert len(outcome.error) < 600


@pytest.mark.parametrize("kind", BAD_LINES)
def test_skip_bad_keeps_the_good_rows_and_counts_the_others(
    kind: str, precis: Precis, tmp_path: Path
) -> None:
    file = rows(tmp_path / "pairs.jsonl", GOOD, BAD_LINES[kind], GOOD)
    outcome = precis(*reading_commands(file, tmp_path)["tokenizer"], "--skip-bad")
    assert outcome.code == 0
    assert "2 pairs" in outcome.err
    assert "1 skipped" in outcome.err
    assert "line 2" in outcome.err


def test_check_names_all_bad_rows_and_says_so_by_its_exit_code(precis: Precis, tmp_path: Path) -> None:
    file = rows(tmp_path / "pairs.jsonl", GOOD, *BAD_LINES.values(), GOOD)
    outcome = precis("data", "check", file)
    assert outcome.code == 2
    assert outcome.err.count("bad row: ") == len(BAD_LINES)
    assert f"error: {len(BAD_LINES)} rows cannot be used" in outcome.err


def test_a_10_mb_line_that_is_sound_is_read(precis: Precis, tmp_path: Path) -> None:
    long = {"document": "Ann sings. " * (MEGABYTES_10 // 11), "summary": "Ann sings."}
    outcome = precis("data", "check", rows(tmp_path / "pairs.jsonl", GOOD, long))
    assert outcome.code == 0
    assert "2 usable" in outcome.out


@pytest.mark.slow
def test_a_10_mb_document_is_cut_and_says_so(finished: Path, precis: Precis, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("Ann sings. " * (MEGABYTES_10 // 11))
    outcome = precis("summarize", tmp_path / "long.txt", "--model", finished, "--long", "truncate")
    assert outcome.code == 0
    assert "read only the first 94 of" in outcome.err


@pytest.mark.parametrize("command", ["finetune", "evaluate", "tokenizer"])
def test_an_unknown_task_names_the_nearest(command: str, precis: Precis, tmp_path: Path) -> None:
    extra = ["--predictions", tmp_path] if command == "evaluate" else []
    outcome = precis(command, "--task", "samsun", "--out", tmp_path / "out", *extra)
    assert outcome.code == 2
    assert "did you mean 'samsum'" in outcome.error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--select", "foo"], "unknown metric 'foo'"),
        (["--set", "generated_rows=0"], "generated_rows=0 disables them"),
        (["--batch-size", 0], "--batch-size 0: must be at least 1"),
        (["--batch-tokens", 0], "--batch-tokens 0: must be at least 1"),
    ],
)
def test_settings_that_cannot_train_leave_no_folder(
    options: list[object], message: str, precis: Precis, pairs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    outcome = precis("finetune", "--data", pairs, "--recipe", "zcodepp-micro", "--out", out, *options)
    assert outcome.code == 2
    assert message in outcome.error
    assert not out.exists()


def test_neither_task_nor_data(precis: Precis, tmp_path: Path) -> None:
    outcome = precis("finetune", "--out", tmp_path / "out")
    assert outcome.code == 2
    assert "--data" in outcome.error


# --- models


def broken_models(folder: Path, finished: Path) -> dict[str, Path]:
    """Folders that hold no usable model, by what is wrong with them."""
    other = save("bart", folder / "other")
    swapped = folder / "swapped"
    unsealed = shutil.ignore_patterns("seal.json")  # as models are that somebody else made
    shutil.copytree(finished / "model", swapped, ignore=unsealed)
    shutil.copy(other / "model.safetensors", swapped / "model.safetensors")
    pickled = folder / "pickled"
    shutil.copytree(finished / "model", pickled, ignore=unsealed)
    (pickled / "model.safetensors").unlink()
    (pickled / "pytorch_model.bin").write_bytes(pickle.dumps({"weight": [1.0]}))
    file = folder / "weights.bin"
    file.write_bytes(pickle.dumps({}))
    (folder / "bare").mkdir()
    return {
        "another model's checkpoint": swapped,
        "a folder with a pickle": pickled,
        "a pickle file": file,
        "an empty folder": folder / "bare",
        "nothing there": folder / "nowhere",
    }


BROKEN = {
    "another model's checkpoint": "weights",
    "a folder with a pickle": "any code",
    "a pickle file": "any code",
    "an empty folder": "no model here",
    "nothing there": "no such folder",
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("command", ["summarize", "evaluate", "finetune"])
def test_a_model_that_cannot_be_used(
    kind: str, command: str, precis: Precis, finished: Path, pairs: Path, tmp_path: Path
) -> None:
    model = broken_models(tmp_path, finished)[kind]
    text = tmp_path / "a.txt"
    text.write_text(GOOD["document"])
    rest = [text] if command == "summarize" else ["--data", pairs, "--out", tmp_path / "out"]
    outcome = precis(command, "--model", model, *rest)
    assert outcome.code == 2
    assert BROKEN[kind] in outcome.error
    assert str(model) in outcome.error


def test_a_pickle_is_never_opened(precis: Precis, finished: Path, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    folder = broken_models(tmp_path, finished)["a folder with a pickle"]
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(_Trap(trap)))
    (tmp_path / "a.txt").write_text("Ann sings.")
    assert precis("summarize", tmp_path / "a.txt", "--model", folder).code == 2
    assert not trap.exists()


class _Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._file,)


def wrong_checkpoints(folder: Path) -> dict[str, Path]:
    """Files that hold no ProphetNet, by what is wrong with them."""
    trap, other, text = folder / "trap.pt", folder / "other.pt", folder / "text.pt"
    torch.save({"model": _Trap(folder / "sprung")}, trap)
    torch.save({"model": {"encoder.lstm.weight": torch.zeros(2)}}, other)
    text.write_text("no checkpoint")
    return {
        "another object": trap,
        "another model": other,
        "text": text,
        "nothing": folder / "none.pt",
        "another kind of folder": save("bart", folder / "bart"),
    }


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("another object", "holds more than tensors and plain values"),
        ("another model", "encoder.lstm.weight: not the name of a ProphetNet weight"),
        ("text", "text.pt: "),
        ("nothing", "none.pt: no such file"),
        ("another kind of folder", "bart: not a ProphetNet of transformers"),
    ],
)
def test_a_checkpoint_that_cannot_be_converted(
    kind: str, message: str, precis: Precis, tmp_path: Path
) -> None:
    outcome = precis("convert", wrong_checkpoints(tmp_path)[kind], "--out", tmp_path / "out")
    assert outcome.code == 2
    assert message in outcome.error
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "sprung").exists()


# --- documents to summarize

SUNG = "Ann sings in the hall. "


def test_an_empty_document(finished: Path, precis: Precis, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(" \n")
    outcome = precis("summarize", tmp_path / "a.txt", "--model", finished)
    assert outcome.code == 2
    assert "a.txt: the document is empty" in outcome.error


def test_an_empty_document_is_told_although_a_later_one_cannot_be_read(
    finished: Path, precis: Precis, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text(" \n")
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.7 broken")
    outcome = precis("summarize", tmp_path / "a.txt", tmp_path / "b.pdf", "--model", finished)
    assert (outcome.code, "b.pdf" in outcome.error) == (2, False)
    assert "a.txt: the document is empty; --keep-going continues with the others" in outcome.error


def test_an_empty_document_among_others_ends_the_work_or_is_stated_in_its_place(
    finished: Path, precis: Precis, tmp_path: Path
) -> None:
    files = []
    for name, text in {"a": SUNG, "b": "", "c": SUNG}.items():
        files.append(tmp_path / f"{name}.txt")
        files[-1].write_text(text)
    command = ["summarize", *files, "--model", finished, "--json", "--sentences", 2]
    ended = precis(*command)
    assert (ended.code, len(ended.out.splitlines())) == (2, 1)
    assert "b.txt: the document is empty; --keep-going continues with the others" in ended.error
    outcome = precis(*command, "--keep-going")
    assert outcome.code == 1
    lines = [json.loads(line) for line in outcome.out.splitlines()]
    assert [("summary" in line, "error" in line) for line in lines] == [(1, 0), (0, 1), (1, 0)]
    assert "1 of 3 documents could not be summarized (first:" in outcome.error


def test_a_file_of_summaries_is_whole_and_never_overwritten(
    finished: Path, precis: Precis, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("id,document,title\n7,Ann sings.,Choir\n8,Bob hums.,Hall\n")
    out = tmp_path / "out.jsonl"
    command = ["summarize", tmp_path / "rows.csv", "--model", finished, "--words", 9, "--out", out]
    outcome = precis(*command)
    assert (outcome.code, outcome.out) == (0, "")
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(r["id"], r["row"], r["summary"]) for r in records] == [
        ("7", {"title": "Choir"}, "Ann sings."),
        ("8", {"title": "Hall"}, "Bob hums."),
    ]
    again = precis(*command)
    assert again.code == 2
    assert "already exists, so nothing was summarized" in again.error


@pytest.mark.parametrize("device", ["cuda:77", "nowhere", "meta"])
def test_a_device_that_is_not_there(device: str, finished: Path, precis: Precis, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(SUNG)
    outcome = precis("summarize", tmp_path / "a.txt", "--model", finished, "--device", device)
    assert outcome.code == 2
    assert device in outcome.error


def test_documents_are_looked_at_before_a_model_is_loaded(precis: Precis, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xff")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "config.json").write_text("{")
    assert "a.txt" in precis("summarize", tmp_path / "a.txt", "--model", tmp_path / "empty").error


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Ann \xff sings", "invalid UTF-8 at byte 5"),
        (b"%PDF\0\0binary", "is a PDF"),
        (b"a\0b", "is not text"),
    ],
)
def test_a_file_that_is_not_text(
    content: bytes, message: str, finished: Path, precis: Precis, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    outcome = precis("summarize", tmp_path / "a.txt", "--model", finished)
    assert outcome.code == 2
    assert message in outcome.error


def test_a_missing_document_is_found_before_any_work(finished: Path, precis: Precis, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Ann sings.")
    outcome = precis("summarize", tmp_path / "a.txt", tmp_path / "b.txt", "--model", finished)
    assert outcome.code == 2
    assert "b.txt: no such file" in outcome.error
    assert outcome.out == ""


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (None, "by fusion-in-encoder, more than the 96"),
        ("fie", "by fusion-in-encoder"),
        ("chunk", "pieces, then summarized"),
        ("truncate", "read only the first 94 of"),
    ],
)
def test_a_document_longer_than_the_model_reads(
    how: str | None, said: str, finished: Path, precis: Precis, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("Ann sings in the hall. Bob listens to her.\n" * 40)
    chosen = ["--long", how] if how else []
    outcome = precis("summarize", tmp_path / "a.txt", "--model", finished, *chosen)
    assert outcome.code == 0
    assert said in outcome.err


# --- the command line itself


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sumarize"], "No such command"),
        (["summarize", "--modle", "x"], "--modle"),
        (["summarize", "a.txt"], "no such file"),
        (["summarize", "a.txt", "--model", "x", "--words", "many"], "--words"),
        (["summarize", "a.txt", "--model", "x", "--long", "cut"], "--long"),
        (["finetune", "--data", "d", "--out", "o", "--recipe", "zcodepp-tiny"], "unknown recipe"),
        (
            ["finetune", "--data", "d", "--out", "o", "--set", "train.lr=1"],
            "--set train.lr: unknown setting of train",
        ),
        (
            ["finetune", "--data", "d", "--out", "o", "--epochs", "2", "--steps", "3"],
            "either steps or epochs",
        ),
        (["finetune", "--data", "d", "--out", "o", "--lr", "0"], "above 0"),
        (["evaluate", "--data", "d", "--out", "o"], "--model M, or --predictions"),
    ],
)
def test_a_command_line_that_cannot_be_meant(
    arguments: list[str], message: str, pairs: Path, precis: Precis
) -> None:
    outcome = precis(*(pairs if word == "d" else word for word in arguments))
    assert outcome.code == 2
    assert message in outcome.error


def test_an_unexpected_error_is_one_line_and_debug_shows_where(
    precis: Precis, monkeypatch: pytest.MonkeyPatch
) -> None:
    import precis.phases.data.pair_checks as check_data

    monkeypatch.setattr(check_data, "check_data", lambda *_, **__: 1 // 0)
    outcome = precis("data", "check", "x")
    assert outcome.code == 1
    assert outcome.error.startswith("error: unexpected ZeroDivisionError")
    assert "--debug" in outcome.error
    assert "Traceback" in precis("data", "check", "x", "--debug").err


def test_an_interrupt_is_130(precis: Precis, monkeypatch: pytest.MonkeyPatch) -> None:
    import precis.phases.data.pair_checks as check_data

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(check_data, "check_data", interrupted)
    assert precis("data", "check", "x").code == 130


def test_a_failed_run_is_1(precis: Precis, monkeypatch: pytest.MonkeyPatch) -> None:
    import precis.phases.data.pair_checks as check_data
    from precis_text.errors import RunError

    def failed(*_: object, **__: object) -> None:
        raise RunError("the disk is full")

    monkeypatch.setattr(check_data, "check_data", failed)
    outcome = precis("data", "check", "x")
    assert (outcome.code, outcome.error) == (1, "error: the disk is full")


def test_a_character_that_the_terminal_lacks_does_not_end_the_command(tmp_path: Path) -> None:
    file = rows(tmp_path / "pairs.jsonl", {"document": "Zoë sings.", "summary": "Zoë ☃"})
    command = [sys.executable, "-c", "import sys; from precis.cli import main; sys.exit(main())"]
    shown = subprocess.run(
        [*command, "data", "show", file],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "Zo? sings." in shown.stdout
    assert "Zo? ?" in shown.stdout
