"""Sources whose rows are not pairs: official files of GLUE, SQuAD's answers, conversations, and which split is what."""

import json
from pathlib import Path

import pytest

from precis.data.pairs.pair import Pair
from precis.data.pairs.pair_reader import ReadReport, read_pairs
from precis.phases.data.run_pairs import NamedPairs
from precis_text.control_characters import join_parts
from precis_text.errors import UserError

# Files as GLUE's archive has them: tabs, no quoting, other columns for each task. The rows were written for this test.
OFFICIAL = {
    "cola": ("CoLA", 'gj04\t1\t\tAnn "sings.\ngj04\t0\t*\tSings Ann the.\n', ["acceptable", "unacceptable"]),
    "sst2": ("SST-2", 'sentence\tlabel\na "dull film \t0\nfine \t1\n', ["negative", "positive"]),
    "mrpc": (
        "MRPC",
        "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tAnn sings .\tAnn sang .\n",
        ["equivalent"],
    ),
    "stsb": (
        "STS-B",
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
        "0\tn\tf\t2012\t1\tnone\tnone\tAnn sings.\tAnn eats.\t1.333\n",
        ["1.4"],
    ),
    "qqp": (
        "QQP",
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tWho sings?\tWho is it that sings?\t1\n",
        ["duplicate"],
    ),
    "mnli": (
        "MNLI",
        "index\tpairID\tsentence1\tsentence2\tlabel1\tgold_label\n0\t1e\tAnn sings.\tAnn eats.\tneutral\tneutral\n",
        ["neutral"],
    ),
    "qnli": (
        "QNLI",
        "index\tquestion\tsentence\tlabel\n0\tWho sings?\tAnn sings.\tentailment\n",
        ["entailment"],
    ),
    "rte": (
        "RTE",
        "index\tsentence1\tsentence2\tlabel\n0\tAnn sings.\tAnn eats.\tnot_entailment\n",
        ["not_entailment"],
    ),
}


@pytest.mark.parametrize("name", OFFICIAL)
def test_official_files_of_glue_are_read_as_they_are(name: str, tmp_path: Path) -> None:
    folder, text, words = OFFICIAL[name]
    held = "dev_matched" if name == "mnli" else "dev"
    (tmp_path / folder).mkdir()
    for split in ("train", held):
        (tmp_path / folder / f"{split}.tsv").write_text(text)
    sources = NamedPairs(task=name, data=str(tmp_path)).sources()
    assert [pair.summary for pair in sources.train.read()] == words
    assert sources.dev is None  # validation rows are held out of train
    assert [pair.summary for pair in NamedPairs(task=name, data=str(tmp_path)).part().read()] == words


def test_quotation_marks_of_glue_are_letters(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text(OFFICIAL["sst2"][1])
    first, second = read_pairs(f"glue-sst2:{tmp_path}", split="train")
    assert (first.document, second.document) == ('sentence: a "dull film', "sentence: fine")


def test_matched_and_mismatched_are_scored_each_on_its_file(tmp_path: Path) -> None:
    header, row = OFFICIAL["mnli"][1].splitlines()
    for file in ("train", "dev_matched", "dev_mismatched"):
        (tmp_path / f"{file}.tsv").write_text(f"{header}\n{row.replace('eats', file)}\n")
    for name, file in (("mnli", "dev_matched"), ("mnli-mm", "dev_mismatched")):
        (pair,) = NamedPairs(task=name, data=str(tmp_path)).part().read()
        assert pair.document == f"premise: Ann sings. \x1ehypothesis: Ann {file}."


def test_a_folder_of_several_tasks_has_their_names_before_the_splits(tmp_path: Path) -> None:
    shelf = tmp_path / "glue"
    shelf.mkdir()
    for task, label in (("SST-2", "1"), ("RTE", "entailment")):
        row = json.dumps({"text_a": "Ann sings.", "text_b": "Ann is.", "label": label})
        (shelf / f"{task}.train.jsonl").write_text(row + "\n")
        (shelf / f"{task}.dev.jsonl").write_text(row + "\n")
    for data in (tmp_path, shelf):
        assert list(NamedPairs(task="sst2", data=str(data)).part().read()) == [
            Pair("sentence: Ann sings.", "positive")
        ]
        assert list(NamedPairs(task="rte", data=str(data)).sources().train.read()) == [
            Pair("premise: Ann sings. \x1ehypothesis: Ann is.", "entailment")
        ]
    with pytest.raises(UserError, match="no train, dev or test file of task 'cola'"):
        NamedPairs(task="cola", data=str(tmp_path)).part()


@pytest.mark.parametrize(
    ("task", "row", "message"),
    [
        (
            "sst2",
            {"sentence": "a", "label": "2"},
            r"unknown label '2' for SST-2, use 0 or negative, 1 or positive",
        ),
        ("sst2", {"sentence": "a", "label": -1}, "the labels of GLUE's test sets are not public"),
        ("sst2", {"sentence": "a"}, "no label; looked for 'label', 'gold_label'"),
        ("sst2", {"sentence": " ", "label": 1}, "column 'sentence' must hold a text"),
        (
            "rte",
            {"sentence1": "a", "label": 1},
            "has none of the columns 'hypothesis', 'sentence2', 'text_b'",
        ),
        (
            "stsb",
            {"sentence1": "a", "sentence2": "b", "label": 5.1},
            "similarity 5.1 is not a number from 0 to 5",
        ),
    ],
)
def test_a_row_that_cannot_be_used_is_named(
    task: str, row: dict[str, object], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(row) + "\n")
    with pytest.raises(UserError, match=f"rows.jsonl: line 1: .*{message}"):
        list(read_pairs(f"glue-{task}:{file}"))


def test_a_line_of_other_fields_than_the_header_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("sentence\tlabel\ngood\t1\tmore\nfine\t1\n")
    report = ReadReport()
    pairs = list(read_pairs(f"glue-sst2:{tmp_path}", split="train", skip_bad=True, report=report))
    assert [pair.summary for pair in pairs] == ["positive"]
    assert "line 2: 3 fields between tabs where the header has 2" in report.skipped[0]


def test_similarities_go_to_the_next_fifth_and_are_scored_as_given(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    scores = [0, 0.09, 2.5, 3.75, 5]
    file.write_text("".join(json.dumps({"text_a": "a", "text_b": "b", "label": s}) + "\n" for s in scores))
    pairs = list(read_pairs(f"glue-stsb:{file}"))
    assert [pair.summary for pair in pairs] == ["0.0", "0.0", "2.4", "3.8", "5.0"]
    assert [float(*pair.all_references) for pair in pairs] == scores


def test_answers_of_squads_official_file_are_all_references(tmp_path: Path) -> None:
    asked = {"id": "q1", "question": "Who sings?", "answers": [{"text": "Ann"}, {"text": "Ann of Oslo"}]}
    article = {"title": "Ann", "paragraphs": [{"context": "Ann of Oslo sings.", "qas": [asked]}]}
    for split in ("train", "dev"):
        (tmp_path / f"{split}.json").write_text(json.dumps({"version": "1.1", "data": [article]}) + "\n")
    (pair,) = NamedPairs(task="squad-qa", data=str(tmp_path)).part().read()
    assert pair == Pair(join_parts("Who sings?", "Ann of Oslo sings."), "Ann", ("Ann", "Ann of Oslo"), "q1")


def test_every_answer_of_a_conversation_is_a_pair(tmp_path: Path) -> None:
    turns = [
        {"history": ["Hello!"], "candidates": ["No.", "Hi, I sing."]},
        {"history": ["Hello!", "Hi, I sing.", "Where?"], "candidates": ["Blue.", "In Oslo."]},
    ]
    file = tmp_path / "valid.jsonl"
    file.write_text(json.dumps({"personality": ["I sing."], "utterances": turns}) + "\n")
    pairs = list(read_pairs(f"persona:{file}"))
    assert [pair.summary for pair in pairs] == ["Hi, I sing.", "In Oslo."]
    assert pairs[1].document == join_parts("I sing.", "Hello!\nHi, I sing.\nWhere?")
    file.write_text(json.dumps({"personality": ["I sing."], "utterances": [{"history": []}]}) + "\n")
    with pytest.raises(
        UserError, match=r"line 1, utterance 1: column 'candidates' must hold a list of texts"
    ):
        list(read_pairs(f"persona:{file}"))


def test_only_train_and_test_are_splits_of_a_set_that_is_scored_on_its_dev_file(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text(OFFICIAL["sst2"][1])
    with pytest.raises(
        UserError, match=r"no split 'dev'; it has train, test \(test is the published dev set\)"
    ):
        list(read_pairs(f"glue-sst2:{tmp_path}", split="dev"))
    with pytest.raises(UserError, match="no dev or validation or valid or val file"):
        list(read_pairs(f"glue-sst2:{tmp_path}", split="test"))
