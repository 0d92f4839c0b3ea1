"""The task table: lengths follow the stated rule, names resolve, local files come before the hub."""

import gzip
import json
import math
from pathlib import Path
from typing import Any

import datasets
import pytest

from precis.data.sources import Pair, ReadReport
from precis.data.tasks import TASKS, GenerationSettings, Task, resolve, task
from precis.errors import UserError

# Rows in the shape that the hub gives them, written for this test.
HUB_ROWS: dict[str, dict[str, Any]] = {
    "samsum": {"id": "1", "dialogue": "A: hi\nB: bye", "summary": "A greets B."},
    "dialogsum": {"id": "dev_0", "dialogue": "#Person1#: hi", "summary": "One greets.", "topic": "greeting"},
    "aeslc": {"email_body": "Dear all, lunch is at noon.", "subject_line": "Lunch"},
    "cnndm": {"article": "A long story.", "highlights": "A story .\nIt is long .", "id": "abc"},
    "scitldr": {
        "source": ["We study rivers.", "They flow."],
        "source_labels": [0, 1],
        "rouge_scores": [0.1, 0.9],
        "paper_id": "p1",
        "target": ["Rivers flow.", "A study of rivers."],
    },
    "e2e": {
        "gem_id": "e2e-1",
        "meaning_representation": "name[The Oak], food[Thai]",
        "target": "The Oak serves Thai food.",
        "references": ["The Oak serves Thai food.", "Thai food at The Oak."],
    },
    "webnlg": {
        "gem_id": "web-1",
        "input": ["Oslo | capitalOf | Norway", "Norway | currency | krone"],
        "target": "Oslo is the capital of Norway, where one pays in kroner.",
        "references": [],
        "category": "City",
        "webnlg_id": "Id1",
    },
}
READ = {
    "samsum": Pair("A: hi\nB: bye", "A greets B.", id="1"),
    "dialogsum": Pair("#Person1#: hi", "One greets.", id="dev_0"),
    "aeslc": Pair("Dear all, lunch is at noon.", "Lunch"),
    "cnndm": Pair("A long story.", "A story .\nIt is long .", id="abc"),
    "scitldr": Pair(
        "We study rivers. They flow.", "Rivers flow.", ("Rivers flow.", "A study of rivers."), id="p1"
    ),
    "e2e": Pair(
        "name[The Oak], food[Thai]",
        "The Oak serves Thai food.",
        ("The Oak serves Thai food.", "Thai food at The Oak."),
        id="e2e-1",
    ),
    "webnlg": Pair(
        "Oslo | capitalOf | Norway\nNorway | currency | krone",
        "Oslo is the capital of Norway, where one pays in kroner.",
        id="web-1",
    ),
}


@pytest.fixture(autouse=True)
def _no_shelf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRECIS_DATA", raising=False)


def write(folder: Path, *splits: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for split in splits:
        row = {"id": split, "document": f"the {split} document", "summary": "s", "summaries": ["s", "t"]}
        (folder / f"{split}.jsonl.gz").write_bytes(gzip.compress(json.dumps(row).encode()))
    return folder


def test_the_seven_tasks_are_there() -> None:
    assert list(TASKS) == ["samsum", "dialogsum", "aeslc", "cnndm", "scitldr", "e2e", "webnlg"]
    assert all(task(name).name == name for name in TASKS)


def test_the_papers_percentiles_are_those_of_table_2() -> None:
    printed = {name: t.percentiles for name, t in TASKS.items() if t.percentiles_from == "paper"}
    assert printed == {"aeslc": (440, 13), "samsum": (331, 52), "cnndm": (1682, 127)}


@pytest.mark.parametrize("name", TASKS)
def test_limits_follow_the_stated_rule(name: str) -> None:
    source, target = task(name).percentiles
    assert task(name).max_source == 128 * math.ceil(1.2 * source / 128)
    assert task(name).max_target == 32 * math.ceil(1.5 * target / 32)


@pytest.mark.parametrize("name", TASKS)
def test_generation_settings_lie_within_the_papers_table_8(name: str) -> None:
    chosen = task(name).generation
    assert chosen.beams in (2, 4, 5, 8)
    assert 0.5 <= chosen.length_penalty <= 1.2
    assert chosen.no_repeat_ngram in (0, 3)
    assert chosen.max_tokens <= task(name).max_target


@pytest.mark.parametrize("name", TASKS)
def test_a_task_survives_the_trip_through_json(name: str) -> None:
    assert Task.from_dict(json.loads(json.dumps(task(name).to_dict()))) == task(name)


def test_an_unknown_task_names_the_nearest() -> None:
    with pytest.raises(UserError, match=r"unknown task 'samsun'; did you mean 'samsum'\?"):
        task("samsun")
    with pytest.raises(UserError, match="known: aeslc, cnndm"):
        task("qqqq")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"beams": 0}, "beams=0 must be 1 or more"),
        ({"max_tokens": 0}, "max_tokens=0"),
        ({"no_repeat_ngram": -1}, "no_repeat_ngram=-1"),
        ({"min_tokens": 9, "max_tokens": 8}, "min_tokens=9 is more than max_tokens=8"),
    ],
)
def test_impossible_generation_settings_are_refused(wrong: dict[str, int], says: str) -> None:
    with pytest.raises(UserError, match=says):
        GenerationSettings(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", TASKS)
def test_each_task_reads_rows_of_the_hubs_schema(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = datasets.DatasetDict(
        {split: datasets.Dataset.from_list([HUB_ROWS[name]]) for split in ("train", "validation", "test")}
    )
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: data)
    found = resolve(task(name))
    assert str(found.source).startswith("hub:")
    for split in ("train", "dev", "test"):
        assert list(found.read(split)) == [READ[name]]


def test_dialogsums_three_test_rows_on_the_hub_are_one_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": f"test_{i // 3}", "dialogue": f"d{i // 3}", "summary": f"s{i}"} for i in range(6)]
    data = datasets.DatasetDict({split: datasets.Dataset.from_list(rows) for split in ("train", "test")})
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: data)
    found = resolve(task("dialogsum"))
    assert [pair.references for pair in found.read("test")] == [("s0", "s1", "s2"), ("s3", "s4", "s5")]
    assert len(list(found.read("train"))) == 6


@pytest.mark.parametrize("name", TASKS)
def test_each_task_reads_local_files(name: str, tmp_path: Path) -> None:
    write(tmp_path / name, "train", "dev", "test")
    found = resolve(task(name), tmp_path)
    report = ReadReport()
    (pair,) = found.read("dev", report=report)
    assert pair == Pair("the dev document", "s", ("s", "t"), "dev")
    assert report.kept == 1


def test_data_may_be_the_folder_itself_a_folder_of_folders_or_a_file(tmp_path: Path) -> None:
    own = write(tmp_path / "own", "train")
    assert resolve(task("samsum"), own).source == own
    inner = write(tmp_path / "own" / "samsum", "train")
    assert resolve(task("samsum"), own).source == inner
    file = own / "train.jsonl.gz"
    assert next(resolve(task("samsum"), file).read(None)).id == "train"


def test_the_variable_is_asked_before_the_hub_and_after_the_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = write(tmp_path / "shelf" / "e2e", "train")
    given = write(tmp_path / "given", "train")
    monkeypatch.setenv("PRECIS_DATA", str(tmp_path / "shelf"))
    assert resolve(task("e2e")).source == shelf
    assert resolve(task("e2e"), given).source == given
    assert str(resolve(task("samsum")).source) == "hub:knkarthick/samsum"


def test_a_folder_without_the_task_is_refused_rather_than_replaced_by_the_hub(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no train, dev or test file of task 'e2e', neither here nor in"):
        resolve(task("e2e"), tmp_path)
    with pytest.raises(UserError, match="no such file or folder"):
        resolve(task("e2e"), tmp_path / "none")


def test_a_hub_name_can_be_given_in_place_of_a_folder() -> None:
    other = resolve(task("samsum"), "hub:me/mine")
    assert (other.source, other.columns) == ("hub:me/mine", task("samsum").columns)
    assert resolve(task("samsum"), "hub:knkarthick/samsum").columns.document == "dialogue"
