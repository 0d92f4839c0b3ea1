"""SQuAD's layouts give the same questions; Du's split is cut by titles; Zhao's exchanges dev and test."""

import json
from pathlib import Path
from typing import Any

import datasets
import pytest

from precis.data.pairs.pair import Pair
from precis.data.pairs.pair_reader import ReadReport, read_pairs
from precis.data.pairs.question_generation import DU, TITLES, ZHAO, question_rows
from precis.phases.data.run_pairs import NamedPairs, splits_of
from precis_text.control_characters import join_parts
from precis_text.errors import UserError
from precis_text.row import Row

PASSAGE = "The mill in Arlen burned down in 1904. It was built in 1871."


def paragraph(title: str, passage: str = PASSAGE, column: str = "document") -> dict[str, Any]:
    return {
        "id": f"{title}#0",
        "title": title,
        column: f"{title}: {passage}",
        "qas": [
            {"question": " When did the mill burn down? ", "answers": ["1904", "in 1904"]},
            {"question": "When was the mill built?", "answers": ["1871"]},
            {"question": "In which year did it burn?", "answers": ["1904"]},
        ],
    }


def questions(title: str) -> list[Pair]:
    document = f"{title}: {PASSAGE}"
    asked = [
        ("1904", "When did the mill burn down?"),
        ("1871", "When was the mill built?"),
        ("1904", "In which year did it burn?"),
    ]
    return [
        Pair(join_parts(answer, document), question, id=f"{title}#0-{number}")
        for number, (answer, question) in enumerate(asked, start=1)
    ]


def merged(title: str) -> list[Pair]:
    burned, built, again = questions(title)
    return [Pair(burned.document, burned.summary, (burned.summary, again.summary), burned.id), built]


def write(folder: Path, **splits: list[dict[str, Any]]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in splits.items():
        (folder / f"{split}.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    return str(folder)


@pytest.fixture
def squad(tmp_path: Path) -> str:
    """Its public files, train and dev, with the list of articles."""
    (tmp_path / TITLES).write_text(json.dumps({"train": ["Arlen"], "dev": ["Corby"], "test": ["Brook"]}))
    return write(tmp_path, train=[paragraph("Arlen"), paragraph("Brook")], dev=[paragraph("Corby")])


def test_dus_test_set_is_cut_from_the_training_set_by_titles(squad: str) -> None:
    assert splits_of(DU + squad) == ["train", "dev", "test"]
    assert list(read_pairs(DU + squad, split="train")) == questions("Arlen")
    assert list(read_pairs(DU + squad, split="dev")) == merged("Corby")
    assert list(read_pairs(DU + squad, split="validation")) == merged("Corby")
    assert list(read_pairs(DU + squad, split="test")) == merged("Brook")


def test_zhaos_split_is_the_same_with_dev_and_test_exchanged(squad: str) -> None:
    assert splits_of(ZHAO + squad) == ["train", "dev", "test"]
    for theirs, dus in (("train", "train"), ("dev", "test"), ("test", "dev")):
        assert list(read_pairs(ZHAO + squad, split=theirs)) == list(read_pairs(DU + squad, split=dus))


def test_files_that_are_cut_already_need_no_titles(tmp_path: Path) -> None:
    folder = write(tmp_path, train=[paragraph("Arlen")], dev=[paragraph("Corby")], test=[paragraph("Brook")])
    assert list(read_pairs(DU + folder, split="test")) == merged("Brook")
    assert list(read_pairs(ZHAO + folder, split="test")) == merged("Corby")


def test_without_the_list_of_articles_there_is_no_training_set_that_could_hold_the_test_set(
    squad: str,
) -> None:
    (Path(squad) / TITLES).unlink()
    with pytest.raises(UserError, match=f"lacks a test split; add {TITLES} with the articles"):
        list(read_pairs(DU + squad, split="train"))
    (Path(squad) / TITLES).write_text("{}")
    with pytest.raises(UserError, match=f"{TITLES}: must be a JSON object"):
        splits_of(DU + squad)
    (Path(squad) / TITLES).write_text(json.dumps({"train": ["Esher"], "test": ["Filey"]}))
    with pytest.raises(UserError, match=r"train\.jsonl: contains no article that du_split_titles.json lists"):
        list(read_pairs(DU + squad, split="train"))


def test_the_layouts_of_the_official_file_and_of_the_hub_give_the_same_questions() -> None:
    ours = paragraph("Arlen")
    nested = {"title": "Arlen", "context": ours["document"], "qas": []}
    for number, entry in enumerate(ours["qas"], start=1):
        answers = [{"text": text, "answer_start": 0} for text in entry["answers"]]
        nested["qas"].append({"id": f"Arlen#0-{number}", "question": entry["question"], "answers": answers})
    official = {"version": "1.1", "data": [{"title": "Arlen", "paragraphs": [nested]}]}
    hub = [
        {
            "id": f"Arlen#0-{number}",
            "title": "Arlen",
            "context": ours["document"],
            "question": entry["question"],
            "answers": {"text": entry["answers"], "answer_start": [0] * len(entry["answers"])},
        }
        for number, entry in enumerate(ours["qas"], start=1)
    ]
    wanted = [row.values for row in question_rows([Row("line 1", ours)])]
    assert [row.values for row in question_rows([Row("line 1", official)])] == wanted
    assert [row.values for row in question_rows(Row(f"row {n}", row) for n, row in enumerate(hub))] == wanted


def test_the_hubs_data_set_that_is_cut_already_is_read_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"paragraph": PASSAGE, "question": "When?", "answer": "1904", "sentence": "", "paragraph_id": "7"},
        {
            "paragraph": PASSAGE,
            "question": "In which year?",
            "answer": "1904",
            "sentence": "",
            "paragraph_id": "7",
        },
    ]
    data = {split: datasets.Dataset.from_list(rows) for split in ("train", "validation", "test")}
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: datasets.DatasetDict(data))
    monkeypatch.delenv("PRECIS_DATA", raising=False)
    sources = NamedPairs(task="squad-qg").sources()
    assert [pair.summary for pair in sources.train.read()] == ["When?", "In which year?"]
    (pair,) = NamedPairs(task="squad-qg-zhao").part().read()
    assert pair == Pair(join_parts("1904", PASSAGE), "When?", ("When?", "In which year?"))
    del data["test"]  # as in rajpurkar/squad
    with pytest.raises(UserError, match="hub:rajpurkar/squad: lacks a test split"):
        next(NamedPairs(task="squad-qg", data="hub:rajpurkar/squad").part("train").read())


def test_a_file_alone_is_read_whole(squad: str) -> None:
    part = NamedPairs(task="squad-qg", data=f"{squad}/train.jsonl").part()
    assert list(part.read()) == [*questions("Arlen"), *questions("Brook")]
    sources = NamedPairs(task="squad-qg", data=f"{squad}/train.jsonl", dev=f"{squad}/dev.jsonl").sources()
    assert sources.dev is not None
    assert list(sources.dev.read()) == questions("Corby")


def test_equal_questions_are_one_reference() -> None:
    row = paragraph("Arlen")
    row["qas"][2]["question"] = "When did the mill burn down?"
    first, _ = question_rows([Row("line 1", row)], merge=True)
    assert first.values["summaries"] is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"qas": "none"}, "column 'qas' must hold a list"),
        (
            {"qas": [{"question": "Why?", "answers": []}]},
            "line 2, question 1: the answer is missing or empty",
        ),
        ({"qas": [{"question": " ", "answers": ["1904"]}]}, "the question is missing or empty"),
        ({"qas": [{"question": 7, "answers": ["1904"]}]}, "the question must be text"),
        ({"qas": [{"answers": ["1904"]}]}, "not a SQuAD row: it needs 'context', 'question' and 'answers'"),
        ({"qas": None}, "not a SQuAD row"),
        ({"title": None}, f"no title, which {TITLES} needs to split the rows"),
    ],
)
def test_a_bad_row_is_named_and_can_be_passed_over(change: dict[str, Any], says: str, squad: str) -> None:
    write(Path(squad), train=[paragraph("Arlen"), {**paragraph("Arlen"), **change}])
    with pytest.raises(UserError, match=says):
        list(read_pairs(DU + squad, split="train"))
    report = ReadReport()
    assert list(read_pairs(DU + squad, split="train", skip_bad=True, report=report)) == questions("Arlen")
    assert report.rows == report.kept + report.skipped_count


def test_pairs_of_another_kind_are_refused_by_name(tmp_path: Path) -> None:
    folder = write(tmp_path, test=[{"document": "Ann sings.", "summary": "A song."}])
    with pytest.raises(UserError, match=r"line 1: not a SQuAD row: .* has 'document', 'summary'"):
        list(NamedPairs(task="squad-qg", data=folder).part().read())
    with pytest.raises(UserError, match="no split 'dev'; it has test"):
        list(NamedPairs(task="squad-qg", data=folder).part("dev").read())
