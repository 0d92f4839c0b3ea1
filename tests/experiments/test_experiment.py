"""What a study's steps do with the data: which tasks they can be done on, and what validates a training."""

import json
from pathlib import Path

import pytest

from precis_experiments.experiment import Runner
from precis_experiments.resumable_steps import Study
from precis_experiments.scales import SCALES
from precis_text.control_characters import join_parts


def jsonl(file: Path, rows: list[dict[str, object]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_labels(folder: Path, *splits: str, rows: int = 30) -> None:
    """Files of MNLI; a label is the number of the row, modulo three."""
    pairs = [{"premise": f"Ann has {n}.", "hypothesis": f"Bob has {n}.", "label": n % 3} for n in range(rows)]
    for split in splits:
        jsonl(folder / "glue" / f"MNLI.{split}.jsonl", pairs)


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def runner(tmp_path: Path, told: list[str]) -> Runner:
    data = tmp_path / "data"
    data.mkdir()
    study = Study(tmp_path / "out", SCALES["smoke"], name="x", data=data)
    return Runner(study, data, told.append)


def test_tasks_without_a_folder_or_without_test_rows_are_left_out_and_told(
    runner: Runner, told: list[str]
) -> None:
    row: dict[str, object] = {"document": "d", "summary": "s"}
    for name, splits in (("samsum", ("train", "dev", "test")), ("cnndm", ("train", "dev"))):
        for split in splits:
            jsonl(runner.data / name / f"{split}.jsonl", [row])
    write_labels(runner.data, "train", "dev")
    assert runner.tasks(["samsum", "mnli", "xsum", "cnndm"]) == ["samsum", "mnli"]
    assert told == [
        f"{runner.data} lacks xsum: continuing without it",
        f"{runner.data} lacks test rows of cnndm: continuing without it",
    ]


def test_mnli_is_scored_on_mismatched_genres_where_they_are_there(runner: Runner, told: list[str]) -> None:
    jsonl(runner.data / "mnli" / "test.jsonl", [{"document": "d", "summary": "neutral"}])
    assert runner.test_sets("mnli") == ["mnli"]  # no folder of the further set
    told.clear()
    write_labels(runner.data, "train", "dev")
    assert runner.test_sets("mnli") == ["mnli"]
    assert told == [f"{runner.data} lacks test rows of mnli-mm: skipped"]
    write_labels(runner.data, "dev_mismatched")
    assert runner.test_sets("mnli") == ["mnli", "mnli-mm"]
    assert runner.test_sets("samsum") == ["samsum"]


def test_dev_pairs_validate_where_there_are_some_and_never_rows_that_are_scored(
    runner: Runner, tmp_path: Path
) -> None:
    marked = join_parts("a question", "a passage")
    rows: list[dict[str, object]] = [{"document": f"{n} {marked}", "summary": "s"} for n in range(20)]
    for split in ("train", "dev", "test"):
        jsonl(runner.data / "samsum" / f"{split}.jsonl", rows)
    sources = runner.sources("samsum", 4, tmp_path)
    assert sources.dev is not None
    assert [pair.document.split()[0] for pair in sources.dev.read()] == ["0", "6", "13", "19"]
    write_labels(runner.data, "train", "dev")
    assert runner.sources("mnli", 4, tmp_path).dev is None  # held out of train; the dev rows are scored on
