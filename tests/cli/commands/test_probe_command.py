"""`precis probe` as a user meets it: pictures and numbers, or one line of what is wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from precis.tuning import Prefix, attach, method
from tests.tiny_models import save, tiny

Precis = Callable[..., Any]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("bart", tmp_path_factory.mktemp("probed") / "base")


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "mine" / "adapter"
    torch.manual_seed(1)
    attachment = attach(tiny("bart")[0], method("hierblock", Prefix(length=4)))
    attachment.save(folder)
    return folder


@pytest.mark.long
def test_attention_is_drawn_and_told(
    precis: Precis, base: Path, adapter: Path, pairs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    options = ["--model", base, "--data", pairs, "--rows", 3, "--max-source", 30, "--out", out]
    outcome = precis("probe", "attention", "--adapter", adapter.parent, *options)
    assert outcome.code == 0, outcome.err
    assert "attention on the prefix, cross-attention, from the lowest layer: " in outcome.out
    assert "3 of 3 documents (100.0%) are truncated to 30 tokens" in outcome.err
    assert (out / "attention-encoder.png").is_file()
    assert json.loads((out / "attention.json").read_text())["documents"] == 3


@pytest.mark.long
def test_a_model_alone_is_drawn_too(precis: Precis, base: Path, pairs: Path, tmp_path: Path) -> None:
    options = ["--model", base, "--data", pairs, "--rows", 2, "--max-source", 20, "--out", tmp_path / "out"]
    outcome = precis("probe", "attention", *options)
    assert outcome.code == 0, outcome.err
    assert "attention on the prefix" not in outcome.out
    assert not (tmp_path / "out" / "prefix-share.png").exists()
    assert json.loads((tmp_path / "out" / "attention.json").read_text())["adapter"] is None


def test_a_spectrum_is_drawn_and_told(
    precis: Precis, base: Path, adapter: Path, pairs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    options = ["--model", base, "--data", pairs, "--rows", 3, "--max-source", 30, "--out", out]
    outcome = precis("probe", "spectrum", "--adapter", adapter, *options)
    assert outcome.code == 0, outcome.err
    assert "lower layers, mine: 90% in" in outcome.out
    assert (out / "spectrum.png").is_file()
    assert (out / "spectrum.csv").is_file()


def test_curves_are_drawn_from_a_list(precis: Precis, tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("line,x,rougeL\nprefix,5,20\nprefix,50,30\n")
    outcome = precis("probe", "curves", tmp_path / "runs.csv", "--by", "share", "--out", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    assert "2 runs, 1 line, rougeL" in outcome.out
    assert (tmp_path / "out" / "curves.png").is_file()


def test_what_cannot_be_probed_is_refused_in_one_line(
    precis: Precis, base: Path, pairs: Path, tmp_path: Path
) -> None:
    out = ["--data", pairs, "--out", tmp_path / "out"]
    for command, message in {
        ("attention", "--model", base, "--adapter", tmp_path): "no adapter here",
        ("attention", "--model", base, "--max-source", 400): "--max-source 400",
        ("attention", "--model", tmp_path / "none"): "no such folder",
        ("spectrum", "--model", base): "give --adapter",
        ("spectrum", "--model", base, "--lower-share", 0): "--lower-share 0",
    }.items():
        outcome = precis("probe", *command, *out)
        assert outcome.code == 2
        assert message in outcome.error
        assert not (tmp_path / "out").exists()
    outcome = precis("probe", "curves", tmp_path / "none.csv", "--by", "layer", "--out", tmp_path / "out")
    assert outcome.code == 2
    assert "none.csv: no such run folder or list" in outcome.error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["attention", "spectrum", "curves"])
@pytest.mark.parametrize("inside", [False, True])
def test_a_file_in_the_place_of_the_folder_is_refused_before_anything_is_read(
    command: str, inside: bool, precis: Precis, tmp_path: Path
) -> None:
    file = tmp_path / "out"
    file.write_text("mine")
    what = (tmp_path / "none.csv", "--by", "share") if command == "curves" else ("--model", tmp_path / "none")
    outcome = precis("probe", command, *what, "--out", file / "deeper" if inside else file)
    assert outcome.code == 2
    assert f"{file}: is a file; name a folder with --out" in outcome.error
    assert file.read_text() == "mine"
