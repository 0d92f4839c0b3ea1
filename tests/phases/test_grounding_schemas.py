"""The paper's own sets for grounded pre-training, as their publishers lay them out: every column of the public card
with its type, and rows that were made up for this test.
"""

import csv
import json
from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import Dataset, DatasetDict, Features, List, Value

from precis.data.tasks.tasks import task
from precis.phases.data.training_sets import find_sets
from precis.phases.train.grounding import read_set
from precis_text.errors import UserError

TEXT, NUMBER = Value("string"), Value("float32")
ON_HUB: dict[str, Features] = {
    "mediasum": Features(
        dict.fromkeys(("id", "program", "date", "url", "title", "summary"), TEXT)
        | {name: List(TEXT) for name in ("utt", "speaker")}
    ),
    "multi_news": Features({"document": TEXT, "summary": TEXT}),
}
#: NewsRoom's authors give out JSON lines, those of WikiHow a CSV file.
FROM_AUTHORS: dict[str, Features] = {
    "newsroom": Features(
        dict.fromkeys(("text", "summary", "title", "url", "date"), TEXT)
        | dict.fromkeys(("density_bin", "coverage_bin", "compression_bin"), TEXT)
        | dict.fromkeys(("density", "coverage", "compression"), NUMBER)
    ),
    "wikihow": Features(dict.fromkeys(("headline", "title", "text"), TEXT)),
}
ROWS: dict[str, list[dict[str, Any]]] = {
    "mediasum": [
        {
            "utt": ["Who built it?", "Two brothers."],
            "speaker": ["HOST", "A GUEST"],
            "summary": "A barn's past.",
        },
        {"utt": ["And the roof?", "Slate."], "speaker": ["HOST", "A GUEST"], "summary": "Talk of a roof."},
    ],
    "multi_news": [
        {"document": "The mill burned. ||||| A mill is lost.", "summary": "– A mill burned down."},
        {"document": "A ferry is late. ||||| Fog at sea.", "summary": "– Fog delays a ferry."},
    ],
    "newsroom": [
        {"text": "The mill burned on Friday.", "summary": "A mill burned.", "density_bin": "abstractive"},
        {"text": "Fog kept the ferry in port.", "summary": "Fog stops a ferry.", "density": 1.5},
    ],
    "wikihow": [
        {"text": "Fill it, then heat it.", "headline": "\nBoil water.", "title": "How to Make Tea"},
        {
            "text": 'Say "sit", and wait.',
            "headline": "\nTrain it,\nevery day.",
            "title": "How to Train a Dog",
        },
    ],
}
DOCUMENTS = {
    "mediasum": ["HOST: Who built it?\nA GUEST: Two brothers.", "HOST: And the roof?\nA GUEST: Slate."],
    "multi_news": [row["document"] for row in ROWS["multi_news"]],
    "newsroom": [row["text"] for row in ROWS["newsroom"]],
    "wikihow": [row["text"] for row in ROWS["wikihow"]],
}
SUMMARIES = {
    name: [row["headline" if name == "wikihow" else "summary"] for row in ROWS[name]] for name in ROWS
}


def of_card(features: Features, row: dict[str, Any]) -> dict[str, Any]:
    """The row with every column of the card; those that are not given are empty."""
    empty = {name: 0.0 if kind == NUMBER else "" for name, kind in features.items()}
    return {**empty, **row}


def write_as_the_authors(name: str, folder: Path) -> Path:
    rows = [of_card(FROM_AUTHORS[name], row) for row in ROWS[name]]
    folder.mkdir()
    for split in ("train", "dev"):
        if name == "wikihow":
            with (folder / f"{split}.csv").open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, fieldnames=list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)
        else:
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return folder


def assert_read(name: str, place: str | None) -> None:
    """The set as grounded pre-training reads it: all rows, an instruction before each document."""
    (chosen,) = find_sets([name if place is None else f"{name}={place}"])
    pairs = read_set(chosen, cap=10, dev_rows=10, seed=0)
    assert pairs.available == 2
    for found in (pairs.train, pairs.dev):
        assert [pair.summary for pair in found] == SUMMARIES[name]
        for pair, document in zip(found, DOCUMENTS[name], strict=True):
            instruction, _, rest = pair.document.partition(document)
            assert instruction.strip()
            assert not rest.strip()


@pytest.mark.parametrize("name", ON_HUB)
def test_a_set_of_the_hub_is_read_through_its_cards_schema(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PRECIS_DATA", raising=False)
    rows = [of_card(ON_HUB[name], row) for row in ROWS[name]]
    data = Dataset.from_list(rows, features=ON_HUB[name])
    asked: list[str] = []

    def load(where: str, **_: Any) -> DatasetDict:
        asked.append(where)
        return DatasetDict({"train": data, "validation": data, "test": data})

    monkeypatch.setattr(datasets, "load_dataset", load)
    assert_read(name, None)
    assert asked
    assert all((task(name).hub or "").startswith(where) for where in asked)


@pytest.mark.parametrize("name", FROM_AUTHORS)
def test_a_set_from_its_authors_is_read_through_its_schema(name: str, tmp_path: Path) -> None:
    assert_read(name, str(write_as_the_authors(name, tmp_path / name)))


@pytest.mark.parametrize("name", ["multi_news", *FROM_AUTHORS])
def test_a_set_that_was_saved_as_parquet_is_read_too(name: str, tmp_path: Path) -> None:
    features = (ON_HUB | FROM_AUTHORS)[name]
    data = Dataset.from_list([of_card(features, row) for row in ROWS[name]], features=features)
    folder = tmp_path / name
    folder.mkdir()
    for split in ("train", "dev"):
        data.to_parquet(folder / f"{split}.parquet")
    assert_read(name, str(folder))


def test_a_card_that_renamed_a_column_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRECIS_DATA", raising=False)
    data = Dataset.from_list([{"text": "a", "summary": "b"}])
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: DatasetDict(train=data, validation=data))
    (chosen,) = find_sets(["multi_news"])
    with pytest.raises(
        UserError, match="no column 'document' for the document; the columns are 'text', 'summary'"
    ):
        read_set(chosen, cap=10, dev_rows=10, seed=0)


def test_an_empty_guide_as_wikihow_has_them_is_named_or_passed_over(tmp_path: Path) -> None:
    folder = write_as_the_authors("wikihow", tmp_path / "wikihow")
    with (folder / "train.csv").open("a", encoding="utf-8") as file:
        file.write("\nTurn it off.,How to Turn It Off,\n".lstrip())
    (strict,) = find_sets([f"wikihow={folder}"])
    with pytest.raises(UserError, match=r"train\.csv.*the document \(column 'text'\) is empty"):
        read_set(strict, cap=10, dev_rows=10, seed=0)
    (lenient,) = find_sets([f"wikihow={folder}"], skip_bad=True)
    assert read_set(lenient, cap=10, dev_rows=10, seed=0).available == 2
