"""What `from precis import ...` offers."""

import doctest
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import precis
import precis_text
from precis.cli import main
from tests.tiny_models import tiny


def test_at_most_thirty_names_each_once() -> None:
    assert len(precis.__all__) <= 30
    assert len(set(precis.__all__)) == len(precis.__all__)
    assert "__version__" not in precis.__all__


@pytest.mark.parametrize("name", precis.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(precis, name).__name__ == name


def test_each_of_the_three_systems_has_its_entry_points() -> None:
    assert {
        "ZCodePPForConditionalGeneration",
        "ProphetNetForConditionalGeneration",
        "attach",
        "load_adapter",
        "method",
        "Prefix",
    } <= set(precis.__all__)


def test_the_guide_uses_every_name() -> None:
    page = (Path(__file__).parent.parent / "docs" / "guide" / "python.md").read_text()
    assert [name for name in precis.__all__ if not re.search(rf"\b{name}\(|\b{name}\.", page)] == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with pairs, a model that looks like a run's, and an adapter for it."""
    place = tmp_path_factory.mktemp("examples")
    row = {"document": "Ann sings in the hall. Bob listens to her.", "summary": "Ann sings."}
    (place / "pairs").mkdir()
    for split in ("train", "dev", "test"):
        (place / "pairs" / f"{split}.jsonl").write_text(f"{json.dumps(row)}\n" * 4)
    model, tokenizer = tiny("bart")
    model.save_pretrained(place / "runs" / "news" / "model")
    tokenizer.save_pretrained(place / "runs" / "news" / "model")
    precis.attach(model, precis.method("uniblock", precis.Prefix(length=4))).save(place / "adapter")
    texts = [f"Ann sings in the hall. Bob listens to her on day {day}. It rains." for day in range(200)]
    (place / "books.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    pack = ["data", "pack", str(place / "books.jsonl"), "--out", str(place / "packs" / "books")]
    assert main([*pack, "--vocab-size", "400", "--dev-share", "0.2"]) == 0
    return place


@pytest.mark.parametrize("name", precis.__all__)
def test_the_example_of_every_name_runs(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    names = {"precis": precis, "torch": torch, "Path": Path, name: getattr(precis, name)}
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(precis, name), name, globs=names)
    assert example.examples
    flags = doctest.ELLIPSIS | doctest.FAIL_FAST
    assert doctest.DocTestRunner(optionflags=flags).run(example).failed == 0


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="does not have the attribute 'Sumarizer'"):
        _ = precis.Sumarizer  # type: ignore[attr-defined]


def test_importing_precis_loads_neither_torch_nor_transformers() -> None:
    code = "import precis, sys; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_importing_precis_costs_little() -> None:
    heavy = {"ctypes", "pathlib", "signal", "threading", "urllib.parse"}
    code = (
        f"import sys; before = set(sys.modules); import precis; print({heavy} & (set(sys.modules) - before))"
    )
    sources = os.pathsep.join(str(Path(str(each.__file__)).parents[1]) for each in (precis, precis_text))
    done = subprocess.run(  # without site, which imports some of them
        [sys.executable, "-S", "-c", code],
        env={**os.environ, "PYTHONPATH": sources},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "set()\n"
