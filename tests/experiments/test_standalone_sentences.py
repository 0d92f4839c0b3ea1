"""Labels of sentences become examples, and what trees say of them is measured."""

import csv
import json
import lzma
from pathlib import Path

import numpy as np
import pytest

from experiments.scripts.standalone_sentences import (
    LABELS,
    Labelled,
    area,
    folds,
    frequent_words,
    kappa,
    key_of,
    labelled,
    main,
    read,
    stumbles,
    sums,
    weights,
)
from precis_experiments.open_sets import SETS
from precis_text.standalone import STANDALONE_FEATURES

DOCUMENT = "The old bridge of Olm closes in May. It will be dear."


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / SETS[0].place
    folder.mkdir(parents=True)
    with lzma.open(folder / "train.jsonl.xz", "wt", encoding="utf-8") as file:
        file.write(json.dumps({"document": DOCUMENT, "summary": "The bridge closes."}) + "\n")
    return tmp_path


def labels_of(folder: Path, *rows: tuple[str, int]) -> Path:
    file = folder / "labels.tsv"
    lines = [f"{SETS[0].name}\t{document}\t{start}\tDr" for document, start in rows]
    file.write_text("\n".join(["set\tdocument\tstart\tletters", *lines]) + "\n", encoding="utf-8")
    return file


def test_a_label_finds_its_sentence_and_one_without_a_unit_is_left_out(data: Path) -> None:
    key = key_of(DOCUMENT)
    found = [*labelled(data, labels_of(data, (key, DOCUMENT.index("It")), (key, 3)))]
    ((document, units, letters),) = found
    assert (document, len(units), letters) == (key, 2, {1: "Dr"})
    words, (sentence,) = read(found)
    assert (words, sentence.letters, len(sentence.features)) == ([], "Dr", len(STANDALONE_FEATURES))
    assert sentence.features[STANDALONE_FEATURES.index("pattern")] == 0
    assert "after:." in sentence.found


def test_the_units_of_an_extract_are_read_in_it(data: Path) -> None:
    key = key_of(DOCUMENT)
    _, (first, second) = read([*labelled(data, labels_of(data, (key, 0), (key, DOCUMENT.index("It"))))])
    column = STANDALONE_FEATURES.index("is_after")
    assert (first.features[column], second.features[column]) == (0, 1)


def test_a_pattern_of_stumbles_gets_a_weight_and_a_rare_one_none() -> None:
    def one(letters: str, *found: str) -> Labelled:
        return Labelled("0", frozenset(found), np.zeros(1), letters)

    sentences = [
        *[one("D", "it", "a")] * 12,
        *[one("o", "the", "a")] * 12,
        *[one("dr", "the")] * 12,
        one("D", "so"),
    ]
    learnt = weights(sentences)
    assert learnt["it"] > 0 > learnt["the"]
    assert "so" not in learnt
    assert sums([one("o", "it", "the", "so")], learnt) == pytest.approx([learnt["it"] + learnt["the"]])


def test_each_sentence_is_held_out_once_with_its_document() -> None:
    sentences = [Labelled(f"{number % 9:x}", frozenset(), np.zeros(1), "o") for number in range(40)]
    total = np.zeros(40)
    for own, others, held in folds(sentences):
        total += own
        assert not {each.document for each in others} & {each.document for each in held}
    assert (total == 1).all()


def test_labels_without_their_documents_are_named(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = labels_of(data, ("0" * 16, 0))
    monkeypatch.setattr("sys.argv", ["standalone_sentences", "--data", str(data), "--labels", str(file)])
    with pytest.raises(SystemExit):
        main()
    assert f"no document of {file} is in {data}" in capsys.readouterr().err


def test_two_readers_agree_by_what_chance_does_not_give(tmp_path: Path) -> None:
    def labels(name: str, letters: str) -> Path:
        rows = "".join(f"set\t0\t{place}\t{each}\n" for place, each in enumerate(letters))
        (tmp_path / name).write_text(f"set\tdocument\tstart\tletters\n{rows}", encoding="utf-8")
        return tmp_path / name

    first = labels("first", "DDDooooo")
    assert kappa(first, first) == (8, 1.0)
    count, agreement = kappa(first, labels("second", "DDooood"))
    assert (count, round(agreement, 6)) == (7, 0.695652)
    assert kappa(first, labels("third", "ooooDDD"))[1] < 0


def test_what_is_missing_counts_more_than_a_remnant() -> None:
    assert [stumbles(each) for each in ("D", "Dr", "dr", "or", "o")] == [1.0, 1.0, 0.2, 0.2, 0.0]


def test_the_area_is_one_if_all_are_in_order_and_none_if_all_are_reversed() -> None:
    positive = np.array([False, False, True, True])
    assert area(np.array([0.1, 0.2, 0.3, 0.4]), positive) == 1
    assert area(np.array([0.4, 0.3, 0.2, 0.1]), positive) == 0
    assert area(np.array([0.1, 0.4, 0.2, 0.3]), positive) == 0.5
    assert area(np.zeros(4), positive) == 0.5


def test_the_labels_hold_no_text() -> None:
    with LABELS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert len(rows) > 15000
    assert len({(row["document"], row["start"]) for row in rows}) == len(rows)
    assert {row["letters"] for row in rows} <= {"o", "or", "r", "d", "dr", "D", "Dr"}
    assert all(len(row["document"]) == 16 and row["start"].isdecimal() for row in rows)


@pytest.mark.parametrize(
    ("least", "words"), [(1, ["a", "keel", "sank"]), (2, ["a", "keel"]), (3, ["keel"]), (4, [])]
)
def test_words_are_common_if_they_occur_often_enough(least: int, words: list[str]) -> None:
    assert frequent_words(["A keel. Keel 12", "keel sank a"], least) == words
