"""Which files `--task`, `--data` and `--dev` mean."""

import json
from dataclasses import replace
from pathlib import Path

import datasets
import pytest

import precis
from precis.data.pairs.pair import Columns
from precis.data.synthetic.corpus import make_pairs
from precis.phases.data.run_pairs import NamedPairs, PairReader, hold_out, sample
from precis_text.control_characters import join_parts, main_part
from precis_text.errors import UserError

PAIRS = list(make_pairs(40, seed=1))


def write(path: Path, rows: int = 3) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps({"document": p.document, "summary": p.summary}) for p in PAIRS[:rows])
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_folder_gives_its_splits(tmp_path: Path) -> None:
    for name in ("train", "validation", "test"):
        write(tmp_path / f"{name}.jsonl")
    sources = NamedPairs(data=str(tmp_path)).sources()
    assert sources.train.split == "train"
    assert sources.dev is not None
    assert sources.dev.split == "dev"
    assert len(list(sources.dev.read())) == 3
    assert NamedPairs(data=str(tmp_path)).part().split == "test"
    assert NamedPairs(data=str(tmp_path)).part("train").split == "train"


def test_a_file_is_the_training_set_and_dev_a_file_of_its_own(tmp_path: Path) -> None:
    train, dev = write(tmp_path / "a.jsonl"), write(tmp_path / "b.jsonl", rows=2)
    sources = NamedPairs(data=str(train), dev=str(dev)).sources()
    assert sources.dev is not None
    assert (sources.train.source, sources.dev.source) == (str(train), str(dev))
    assert NamedPairs(data=str(train)).sources().dev is None
    assert NamedPairs(data=str(train)).part().split is None


def test_a_task_is_found_in_a_shelf_of_folders(tmp_path: Path) -> None:
    write(tmp_path / "e2e" / "train.jsonl")
    write(tmp_path / "e2e" / "dev.jsonl")
    sources = NamedPairs(task="e2e", data=str(tmp_path)).sources()
    assert (sources.train.source, sources.task) == (str(tmp_path / "e2e"), "e2e")


def test_named_columns_win(tmp_path: Path) -> None:
    part = NamedPairs(data=str(write(tmp_path / "a.jsonl")), document_column="summary").part()
    assert [pair.document for pair in part.read()] == [pair.summary for pair in PAIRS[:3]]


@pytest.mark.parametrize(
    ("options", "message"), [({}, "--task NAME, or --data"), ({"task": "samsun"}, "did you mean 'samsum'")]
)
def test_what_is_missing_is_said(options: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        NamedPairs(**options).sources()  # type: ignore[arg-type]


def test_a_folder_without_training_pairs_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "test.jsonl")
    with pytest.raises(UserError, match="no train file"):
        NamedPairs(data=str(tmp_path)).sources()


def test_a_missing_dev_file_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        NamedPairs(data=str(write(tmp_path / "a.jsonl")), dev=str(tmp_path / "b.jsonl")).sources()


@pytest.mark.parametrize("repeated", [False, True])
def test_a_limit_below_one_is_refused(repeated: bool, tmp_path: Path) -> None:
    part = replace(
        NamedPairs(data=str(write(tmp_path / "a.jsonl"))).part(), columns=Columns(repeated=repeated)
    )
    with pytest.raises(UserError, match="limit=0 must be 1 or more"):
        list(part.read(limit=0))


def test_the_digest_tells_texts_apart(tmp_path: Path) -> None:
    readers = [
        PairReader(NamedPairs(data=str(write(tmp_path / f"{n}.jsonl", rows=n))).part()) for n in (2, 3)
    ]
    assert [len(list(reader)) for reader in readers] == [2, 3]
    assert readers[0].digest != readers[1].digest
    before = readers[0].digest
    assert len(list(readers[0])) == 2
    assert readers[0].digest == before


def test_the_digest_covers_every_reference(tmp_path: Path) -> None:
    def digest(**more: list[str]) -> str:
        row = {"document": "Ann sings.", "summary": "She sings.", **more}
        (tmp_path / "dev.jsonl").write_text(json.dumps(row) + "\n")
        reader = PairReader(NamedPairs(data=str(tmp_path / "dev.jsonl")).part())
        assert len(list(reader)) == 1
        return reader.digest

    references = [[], ["Ann does."], ["She sings.", "Ann does."], ["Ann does.", "She sings."]]
    assert len({digest(summaries=texts) for texts in references}) == len(references)
    assert digest(summaries=["She sings."]) == digest()  # the same one reference, written twice


def test_few_examples_are_drawn_the_same_for_a_seed() -> None:
    assert sample(PAIRS, 5, seed=3) == sample(PAIRS, 5, seed=3)
    assert sample(PAIRS, 5, seed=3) != sample(PAIRS, 5, seed=4)
    with pytest.raises(UserError, match="--examples 41"):
        sample(PAIRS, 41, seed=3)


def test_what_is_held_out_shares_no_document_with_training() -> None:
    doubled = [*PAIRS, *PAIRS]
    train, dev = hold_out(doubled, seed=0)
    assert len(train) + len(dev) == 80
    assert len(dev) == 4
    assert not {p.document for p in train} & {p.document for p in dev}
    with pytest.raises(UserError, match="one document"):
        hold_out(PAIRS[:1], seed=0)


def test_two_answers_from_one_passage_are_held_out_together() -> None:
    asked = [
        replace(pair, document=join_parts(answer, pair.document)) for pair in PAIRS for answer in ("a", "b")
    ]
    train, dev = hold_out(asked, seed=0)
    assert len(dev) == 4
    assert not {main_part(p.document) for p in train} & {main_part(p.document) for p in dev}


def test_a_data_set_of_the_hub_without_validation_holds_some_of_its_training_pairs_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = datasets.Dataset.from_list([{"document": p.document, "summary": p.summary} for p in PAIRS[:4]])
    hub = {"train": rows, "test": rows}
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: datasets.DatasetDict(hub))
    sources = NamedPairs(data="hub:o/n").sources()
    assert (sources.train.split, sources.dev) == ("train", None)
    given = NamedPairs(data="hub:o/n", dev=str(write(tmp_path / "dev.jsonl"))).sources().dev
    assert given is not None
    hub["validation"] = rows
    found = NamedPairs(data="hub:o/n").sources().dev
    assert found is not None
    assert found.split == "dev"
    del hub["train"]
    with pytest.raises(UserError, match="hub:o/n: has test, dev but no train split"):
        NamedPairs(data="hub:o/n").sources()


def test_the_hub_is_not_asked_for_the_splits_of_our_own_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRECIS_DATA", raising=False)
    dev = NamedPairs(task="samsum").sources().dev
    assert dev is not None
    assert dev.split == "dev"


def test_columns_of_ones_own_are_read_from_python(tmp_path: Path) -> None:
    (tmp_path / "posts.csv").write_text("body,title\nAnn sings.,Songs\n")
    (pair,) = precis.read_pairs(tmp_path / "posts.csv", document_column="body", summary_column="title")
    assert (pair.document, pair.summary) == ("Ann sings.", "Songs")
