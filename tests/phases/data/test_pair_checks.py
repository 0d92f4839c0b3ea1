"""`precis data`: what is counted, and that the corpus on disk is the corpus."""

import json
from pathlib import Path

import datasets
import pytest

from precis.data.synthetic.corpus import make_pair
from precis.phases.data.pair_checks import check_data, count_words, first_pairs, write_synthetic
from precis.phases.data.run_pairs import NamedPairs
from precis_text.errors import UserError


def rows(path: Path, pairs: list[tuple[str, str]]) -> None:
    path.write_text("".join(json.dumps({"document": d, "summary": s}) + "\n" for d, s in pairs))


def test_every_oddity_is_counted(tmp_path: Path) -> None:
    rows(
        tmp_path / "train.jsonl",
        [("a b c", "a"), ("a  b c", "b"), ("a b c", "a"), ("d", "d e f"), ("", "x"), ("g h", "g")],
    )
    rows(tmp_path / "test.jsonl", [("g h", "g"), ("i j", "i")])
    checked = check_data(NamedPairs(data=str(tmp_path)).part())
    train, test = checked.splits
    assert (train.name, test.name) == ("train", "test")
    assert (train.report.rows, train.report.kept, train.report.empty_documents) == (6, 5, 1)
    assert (train.repeated_documents, train.repeated_pairs, train.longer_summaries) == (2, 1, 1)
    assert (train.documents.longest, train.summaries.longest) == (3, 3)
    assert checked.shared == {("train", "test"): 1}
    assert checked.bad_rows == 1


def test_a_single_file_is_one_set(tmp_path: Path) -> None:
    rows(tmp_path / "pairs.jsonl", [("a b", "a")])
    checked = check_data(NamedPairs(data=str(tmp_path / "pairs.jsonl")).part())
    assert [split.name for split in checked.splits] == [str(tmp_path / "pairs.jsonl")]


def test_the_first_pairs_are_shown(tmp_path: Path) -> None:
    rows(tmp_path / "pairs.jsonl", [("a", "x"), ("b", "y"), ("c", "z")])
    assert [
        pair.document for pair in first_pairs(NamedPairs(data=str(tmp_path / "pairs.jsonl")).part(), 2)
    ] == ["a", "b"]


def test_bad_rows_before_the_first_pairs_are_told(tmp_path: Path) -> None:
    rows(tmp_path / "pairs.jsonl", [("", "x"), ("b", "y"), ("c", "z")])
    told: list[str] = []
    assert [
        p.document
        for p in first_pairs(NamedPairs(data=str(tmp_path / "pairs.jsonl")).part(), 1, notify=told.append)
    ] == ["b"]
    assert "1 row skipped" in told[0]
    assert "line 1" in told[0]


def test_the_first_pairs_are_whole_where_rows_of_one_document_are_put_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = ("One.", "Two.", "Three.")
    test = [{"id": d, "dialogue": d, "summary": text} for d in ("a", "b", "c") for text in texts]
    data = datasets.DatasetDict({"test": datasets.Dataset.from_list(test)})
    monkeypatch.delenv("PRECIS_DATA", raising=False)
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: data)
    shown = first_pairs(NamedPairs(task="dialogsum").part("test"), 2)
    assert [(pair.document, pair.references) for pair in shown] == [("a", texts), ("b", texts)]


def test_test_pairs_do_not_depend_on_the_number_of_training_pairs(tmp_path: Path) -> None:
    few = write_synthetic(tmp_path / "few", {"train": 2, "dev": 2, "test": 3}, seed=4)
    many = write_synthetic(tmp_path / "many", {"train": 9, "dev": 2, "test": 3}, seed=4)
    assert [file.name for file in few] == ["train.jsonl", "dev.jsonl", "test.jsonl"]
    assert few[2].read_bytes() == many[2].read_bytes()
    first = json.loads(many[0].read_text().splitlines()[0])
    assert first["document"] == make_pair(0, seed=4).document


def test_splits_share_no_document(tmp_path: Path) -> None:
    write_synthetic(tmp_path, {"train": 300, "dev": 100, "test": 100}, seed=0)
    assert not check_data(NamedPairs(data=str(tmp_path)).part()).shared


@pytest.mark.parametrize("counts", [{"train": -1}, {"test": 10**9}])
def test_impossible_counts_are_refused(tmp_path: Path, counts: dict[str, int]) -> None:
    with pytest.raises(UserError, match="use 0 to"):
        write_synthetic(tmp_path, counts, seed=0)


def test_an_unknown_split_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown split 'tets'; did you mean 'test'"):
        write_synthetic(tmp_path, {"tets": 5})
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("old", ["dev.jsonl", "validation.csv", "train.parquet"])
def test_an_old_split_beside_the_new_pairs_is_refused_and_left_alone(tmp_path: Path, old: str) -> None:
    (tmp_path / old).write_text("old")
    with pytest.raises(UserError, match=rf"contains {old}, which would be read together with the new pairs"):
        write_synthetic(tmp_path, {"train": 2, "dev": 0, "test": 1}, seed=0)
    assert [file.name for file in tmp_path.iterdir()] == [old]


def test_the_same_splits_are_written_anew(tmp_path: Path) -> None:
    for count in (3, 2):
        write_synthetic(tmp_path, {"train": count, "dev": 0, "test": 1}, seed=0)
    assert len((tmp_path / "train.jsonl").read_text().splitlines()) == 2


def test_a_data_set_of_the_hub_is_checked_by_the_splits_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = datasets.Dataset.from_list([{"document": "a b", "summary": "a"}])
    data = datasets.DatasetDict({"train": rows, "validation": rows, "extra": rows})
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: data)
    assert [split.name for split in check_data(NamedPairs(data="hub:o/n").part()).splits] == [
        "train",
        "dev",
        "extra",
    ]


def test_pairs_of_somebody_are_not_overwritten_and_its_own_are_written_again(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "train.jsonl").write_text('{"document": "Mine.", "summary": "Mine."}\n')
    with pytest.raises(UserError, match=r"train\.jsonl: contains other pairs, which would be lost"):
        write_synthetic(own, {"train": 2, "dev": 1, "test": 1}, seed=0)
    assert sorted(path.name for path in own.iterdir()) == ["train.jsonl"]
    assert "Mine" in (own / "train.jsonl").read_text()
    made = write_synthetic(tmp_path / "made", {"train": 4, "dev": 1, "test": 1}, seed=0)
    whole = made[0].read_bytes()
    made[0].write_bytes(whole[: len(whole) // 2])  # a command that was ended
    write_synthetic(tmp_path / "made", {"train": 4, "dev": 1, "test": 1}, seed=0)
    assert made[0].read_bytes() == whole
    with pytest.raises(UserError, match="contains other pairs"):
        write_synthetic(tmp_path / "made", {"train": 4, "dev": 1, "test": 1}, seed=1)


def test_marks_of_missing_values_are_counted(tmp_path: Path) -> None:
    rows(tmp_path / "pairs.jsonl", [("nan", "a"), ("a b", "NULL"), ("None of them came", "None came")])
    (split,) = check_data(NamedPairs(data=str(tmp_path / "pairs.jsonl")).part()).splits
    assert (split.report.kept, split.missing_marks) == (3, 2)


def test_words_of_a_long_text_are_counted_in_pieces() -> None:
    text = "ab\u2003c \n d" * 70_000 + " x"
    assert count_words(text) == len(text.split())
    assert count_words(" ") == count_words("") == 0
