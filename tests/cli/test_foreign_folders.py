"""No command changes what is not its own: every one with `--out` is found in the app and tried on foreign folders."""

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from precis.cli.application import app
from tests.tiny_models import SMALL_RUN

_NAMES = (
    "train.jsonl",
    "tokenizer.json",
    "metrics.jsonl",
    "seal.json",
    "settings.json",
    "curves.png",
    "scores.json",
)
_MORE = (
    "config.json",
    "table.md",
    "pack.json",
    "tokens.bin",
    "study.json",
    "bench-x.txt",
    "out.old",
    "thesis.txt",
)


def _commands_with_out(group: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands_with_out(command, (*path, name))
        elif any("--out" in parameter.opts for parameter in command.params):
            yield " ".join((*path, name))


Run = Callable[..., Any]
COMMANDS = sorted(_commands_with_out(typer.main.get_command(app)))


@pytest.fixture
def lines(pairs: Path, finished: Path, tmp_path: Path) -> dict[str, list[str]]:
    """A valid command line for each command, but for `--out`."""
    data, run = str(pairs), str(finished)
    texts = tmp_path / "texts"
    texts.mkdir()
    for number in range(12):
        (texts / f"{number}.txt").write_text(
            f"Text {number} says that the ferry was late. It left at noon.\n"
        )
    scored = tmp_path / "scored.csv"
    scored.write_text("id,system,output,document,score\n1,a,Ann sings.,Ann sings. Bob listens.,3\n")
    for name in ("ours", "theirs"):
        rows = [{"id": n, "document": f"Ferry {n} was late.", "summary": f"{name} {n}"} for n in range(3)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    points = tmp_path / "points.csv"
    points.write_text("metric,line,x,mean,low,high,runs\n")
    return {
        "batch": [str(texts), "--model", run],
        "compare": [str(texts / "0.txt"), "--model", run],
        "convert": [run],
        "data pack": [str(texts), "--vocab-size", "400", "--workers", "1", "--dev-share", "0.2"],
        "data synthetic": ["--train", "5", "--dev", "2", "--test", "2"],
        "evaluate": ["--model", run, "--data", data, "--limit", "2"],
        "export onnx": [run],
        "extractor": ["--tasks", data, "--model", run],
        "finetune": ["--data", data, *SMALL_RUN, "--steps", "2"],
        "ground": ["--tasks", data, "--model", run],
        "judge new": [f"--predictions={tmp_path / name}.jsonl" for name in ("ours", "theirs")],
        "pretrain": ["--corpus", str(texts)],
        "probe attention": ["--model", run, "--data", data],
        "probe curves": [run, "--by", "layer"],
        "probe metrics": [str(scored), "--samples", "10"],
        "probe spectrum": ["--adapter", run, "--data", data],
        "reproduce": ["zcodepp-fewshot", "--scale", "smoke", "--data", data],
        "summarize": [str(texts), "--model", run],
        "tokenizer": ["--data", data, "--vocab-size", "400"],
        "tune": ["--model", run, "--data", data],
    }


def _fill(folder: Path) -> None:
    """Somebody's folder: with names that we use, a link out of it, and folders."""
    folder.mkdir()
    for name in (*_NAMES, *_MORE):
        (folder / name).write_text(f'{{"mine": "{name}"}}\n')
    for name in ("model", "checkpoints", "step-10", "model.old", "predictions", "tokenizer", "adapter"):
        (folder / name).mkdir()
        (folder / name / "model.safetensors").write_bytes(b"mine")
    (folder / "link.jsonl").symlink_to(folder / "thesis.txt")
    (folder / "lock").symlink_to(folder / "thesis.txt")


def _everything(folder: Path) -> dict[str, tuple[int, bytes | str]]:
    """Every path below a folder with its mode and its content or target."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content: bytes | str = ""
        if stat.S_ISLNK(mode):
            content = str(path.readlink())
        elif stat.S_ISREG(mode):
            content = path.read_bytes()
        found[str(path.relative_to(folder))] = (mode, content)
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_a_foreign_folder_is_refused_and_stays_as_it_is(
    precis: Run, lines: dict[str, list[str]], tmp_path: Path, command: str
) -> None:
    assert command in lines, f"{command} has --out and no line in this test"
    place = tmp_path / "place"
    place.mkdir()
    _fill(place / "out")
    (place / "out.lock.txt").write_text("mine")
    before = _everything(place)
    done = precis(*command.split(), *lines[command], "--out", place / "out")
    assert done.code == 2
    assert str(place / "out") in done.error
    assert _everything(place) == before


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["thesis.txt", "train.jsonl", "seal.json", "model"])
def test_one_foreign_name_is_enough_and_is_named(
    precis: Run, lines: dict[str, list[str]], tmp_path: Path, command: str, name: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    if name == "model":
        (out / name).mkdir()
        (out / name / "notes").write_text("mine")
    else:
        (out / name).write_text("mine\n")
    before = _everything(out)
    done = precis(*command.split(), *lines[command], "--out", out)
    assert done.code == 2
    if command != "summarize":  # its --out is a file
        assert name in done.error
    assert _everything(out) == before


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
@pytest.mark.parametrize("command", ["data synthetic", "tokenizer", "data pack", "evaluate"])
def test_an_empty_folder_gets_declared_names_with_the_usual_mode_and_nothing_beside_it_changes(
    precis: Run, lines: dict[str, list[str]], tmp_path: Path, command: str, umask: int
) -> None:
    declared = {
        "data synthetic": {"train.jsonl", "dev.jsonl", "test.jsonl"},
        "tokenizer": {"tokenizer.json", "tokenizer_config.json", "seal.json"},
        "data pack": {
            "tokens.bin",
            "documents.bin",
            "sentences.bin",
            "pack.json",
            "dev",
            "tokenizer",
            "seal.json",
        },
        "evaluate": {"predictions", "scores.json", "table.md", "examples.jsonl", "lock"},
    }
    place = tmp_path / "place"
    place.mkdir()
    for name in ("out.old", "out.new", "out.tmp", "out.tmp-1", "model.old"):
        (place / name).mkdir()
        (place / name / "mine").write_text("mine")
    before = _everything(place)
    previous = os.umask(umask)
    try:
        done = precis(*command.split(), *lines[command], "--out", place / "out")
    finally:
        os.umask(previous)
    assert done.code == 0, done.err
    after = _everything(place)
    assert {path: after[path] for path in before} == before
    assert {path for path in after if "/" not in path} == {path for path in before if "/" not in path} | {
        "out"
    }
    assert {path.name for path in (place / "out").iterdir()} == declared[command]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (place / "out").rglob("*") if path.is_file()}
    assert modes == {0o666 & ~umask}


def test_a_trained_models_files_have_the_usual_mode(finished: Path) -> None:
    umask = os.umask(0)
    os.umask(umask)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (finished / "model").iterdir()}
    assert set(modes.values()) == {0o666 & ~umask}, modes


def test_a_second_run_of_each_command_takes_its_own_folder_again(
    precis: Run, lines: dict[str, list[str]], tmp_path: Path
) -> None:
    for command in ("data synthetic", "tokenizer", "data pack", "evaluate"):
        out = tmp_path / command.replace(" ", "-")
        for _ in range(2):
            done = precis(*command.split(), *lines[command], "--out", out)
            assert done.code == 0, done.err


def test_names_like_those_of_an_evaluation_do_not_make_a_folder_ours(
    precis: Run, lines: dict[str, list[str]], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "scores.json").write_text('{"mine": 1}')
    (out / "examples.jsonl").write_text('{"my": "examples"}\n')
    before = _everything(out)
    done = precis("evaluate", *lines["evaluate"], "--out", out)
    assert done.code == 2
    assert "which precis did not write" in done.error
    assert _everything(out) == before


def test_a_link_in_a_folder_of_ours_is_not_written_through(
    precis: Run, lines: dict[str, list[str]], tmp_path: Path
) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert precis("evaluate", *lines["evaluate"], "--out", out).code == 0
    (out / "predictions").rename(tmp_path / "moved")
    (out / "predictions").symlink_to(elsewhere)
    done = precis("evaluate", *lines["evaluate"], "--out", out)
    assert done.code == 2
    assert "predictions: is a link" in done.error
    assert list(elsewhere.iterdir()) == []
