"""How far a model's name travels in `precis evaluate`, and how often its folder is opened."""

import json
from pathlib import Path

import pytest

from precis.cli import main
from tests.tiny_models import save
from tests.walks import openings, stays

MOST_STAYS, MOST_FILES = 60, 16
CHECKED, DIGESTED = 1, 1  # precis reads each file once to check it, and once for the fingerprint
BY_TRANSFORMERS = 3  # reads of its own: the configuration of the tokenizer three times


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """Words that evaluate a tiny model on four pairs."""
    save("zcodepp", tmp_path / "tiny")
    rows = [
        {"document": f"{name} sings in the hall. It rains.", "summary": f"{name} sings."}
        for name in ("Ann", "Bob", "Tom", "Kim")
    ]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("--model", tmp_path / "tiny", "--data", tmp_path / "test.jsonl", "--out", tmp_path / "out")
    return ["evaluate", *map(str, words), "--no-baselines"]


def test_a_models_name_stays_at_most_sixty_times_in_sixteen_files(command: list[str], tmp_path: Path) -> None:
    way = stays(lambda: main(command), place=tmp_path / "tiny")
    assert "precis.generation.model_location" in way
    assert (tmp_path / "out" / "scores.json").is_file()
    assert len(way) <= MOST_STAYS, way
    assert len(set(way)) <= MOST_FILES, sorted(set(way))


def test_each_file_of_the_folder_is_opened_once_to_check_it(command: list[str], tmp_path: Path) -> None:
    with openings(tmp_path / "tiny") as counts:
        assert main(command) == 0
    ours = {name: count for (name, opener), count in counts.items() if name and opener == "precis"}
    assert {"config.json", "generation_config.json", "tokenizer.json", "model.safetensors"} <= ours.keys()
    grown = {"tokenizer.json": 1}  # read once more, to see that no character grows without end
    assert all(count <= CHECKED + DIGESTED + grown.get(name, 0) for name, count in ours.items()), ours
    theirs = {name: count for (name, opener), count in counts.items() if name and opener != "precis"}
    assert max(theirs.values()) <= BY_TRANSFORMERS, theirs
