"""The task table: lengths follow the stated rule, names resolve, local files come before the hub."""

import csv
import gzip
import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import pytest

from precis.data.pairs.dataset_adapters import ADAPTERS
from precis.data.pairs.pair import Pair
from precis.data.pairs.pair_reader import ReadReport, available_splits
from precis.data.tasks.instructions import KINDS
from precis.data.tasks.tasks import TASKS, Task, folder_of, instruction_of_first, resolve, task
from precis.phases.data.run_pairs import NamedPairs
from precis_text.control_characters import join_parts
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError

# Rows in the shape that the hub gives them, written for this test.
_TRIPLES = {
    "gem_id": "web-2",
    "input": ["Oslo | capitalOf | Norway"],
    "target": "Oslo is the capital of Norway.",
    "references": [],
}
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
    "dart": {
        "gem_id": "dart-1",
        "gem_parent_id": "dart-1",
        "dart_id": 1,
        "tripleset": [["Oslo", "CAPITAL_OF", "Norway"], ["Norway", "CURRENCY", "krone"]],
        "subtree_was_extended": False,
        "target_sources": ["Table_1"],
        "target": "Oslo is the capital of Norway, where one pays in kroner.",
        "references": [],
    },
    "xsum": {"document": "A bridge was closed.", "summary": "A bridge is closed.", "id": "7"},
    "gigaword": {"document": "a bridge was closed on monday .", "summary": "bridge closed"},
    "mediasum": {
        "id": "NPR-1",
        "program": "Day",
        "date": "2001-01-01",
        "url": "",
        "title": "Rivers",
        "summary": "A talk about rivers.",
        "utt": ["Welcome.", "Thank you."],
        "speaker": ["A HOST, host", "Ms. GUEST"],
    },
    "multi_news": {"document": "One paper. ||||| Another.", "summary": "– Two papers agree."},
    "arxiv": {"article": "we measure rivers .", "abstract": " rivers are measured ."},
    "pubmed": {"article": "we weigh mice .", "abstract": " mice are weighed ."},
    **{
        f"wikilingua_{language}_en": {
            "gem_id": f"wiki-{language}",
            "gem_parent_id": f"wiki-{language}",
            "source": "Hierve agua.",
            "target": "Boil water.",
            "references": ["Boil water."],
        }
        for language in ("es", "ru", "tr", "vi")
    },
    **{
        f"mlsum_{language}": {
            "text": "Ein Fluss.",
            "summary": "Fluss.",
            "topic": "natur",
            "url": "u1",
            "title": "Der Fluss",
            "date": "01/01/2001",
        }
        for language in ("de", "es")
    },
    **{
        name: {
            "answer": "Oslo",
            "paragraph": "Oslo is the capital of Norway.",
            "question": "What is the capital of Norway?",
            "sentence": "Oslo is the capital of Norway.",
            "paragraph_id": "p7",
        }
        for name in ("squad-qg", "squad-qg-zhao")
    },
    "multi30k_de_en": {"en": "A bridge.", "de": "Eine Brücke."},
    "multi30k_en_de": {"en": "A bridge.", "de": "Eine Brücke."},
    "webnlg-seen": {**_TRIPLES, "category": "City"},
    "webnlg-unseen": {**_TRIPLES, "category": "Film"},
    "wikilingua_en": {
        "gem_id": "wiki-en",
        "gem_parent_id": "wiki-en",
        "source": "Boil the water first.",
        "target": "Boil water.",
        "references": ["Boil water."],
    },
    "squad-qa": {
        "id": "q7",
        "title": "Oslo",
        "context": "Oslo is the capital of Norway.",
        "question": "What is Oslo?",
        "answers": {"text": ["the capital of Norway", "the capital"], "answer_start": [8, 8]},
    },
    "persona-chat": {
        "personality": ["I sing.", "I live in Oslo."],
        "history": ["Hello!", "Hi, who are you?"],
        "candidates": ["It rains.", "A singer from Oslo."],
        "conv_id": 3,
        "utterance_idx": 1,
    },
    "klexikon_de": {
        "u_id": 7,
        "title": "Oslo",
        "wiki_url": "w",
        "klexikon_url": "k",
        "wiki_sentences": ["Oslo ist die Hauptstadt Norwegens.", "Es liegt am Fjord."],
        "klexikon_sentences": ["Oslo ist eine Stadt.", "Sie liegt in Norwegen."],
    },
    "cola": {"sentence": "Ann sings.", "label": 1, "idx": 0},
    "sst2": {"sentence": "a dull film", "label": 0, "idx": 0},
    "mrpc": {"sentence1": "Ann sings.", "sentence2": "Ann sings a song.", "label": 1, "idx": 0},
    "stsb": {"sentence1": "Ann sings.", "sentence2": "Ann eats.", "label": 1.333, "idx": 0},
    "qqp": {"question1": "Who sings?", "question2": "Who eats?", "label": 0, "idx": 0},
    "mnli": {"premise": "Ann sings.", "hypothesis": "Ann eats.", "label": 1, "idx": 0},
    "mnli-mm": {"premise": "Ann sings.", "hypothesis": "Ann is silent.", "label": 2, "idx": 0},
    "qnli": {"question": "Who sings?", "sentence": "Ann sings.", "label": 0, "idx": 0},
    "rte": {"sentence1": "Ann sings.", "sentence2": "Ann eats.", "label": 1, "idx": 0},
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
    "dart": Pair(
        "Oslo | CAPITAL_OF | Norway\nNorway | CURRENCY | krone",
        "Oslo is the capital of Norway, where one pays in kroner.",
        id="dart-1",
    ),
    "xsum": Pair("A bridge was closed.", "A bridge is closed.", id="7"),
    "gigaword": Pair("a bridge was closed on monday .", "bridge closed"),
    "mediasum": Pair("A HOST, host: Welcome.\nMs. GUEST: Thank you.", "A talk about rivers.", id="NPR-1"),
    "multi_news": Pair("One paper. ||||| Another.", "– Two papers agree."),
    "arxiv": Pair("we measure rivers .", " rivers are measured ."),
    "pubmed": Pair("we weigh mice .", " mice are weighed ."),
    **{
        f"wikilingua_{language}_en": Pair(
            "Hierve agua.", "Boil water.", ("Boil water.",), id=f"wiki-{language}"
        )
        for language in ("es", "ru", "tr", "vi")
    },
    **{f"mlsum_{language}": Pair("Ein Fluss.", "Fluss.", id="u1") for language in ("de", "es")},
    **{
        name: Pair(join_parts("Oslo", "Oslo is the capital of Norway."), "What is the capital of Norway?")
        for name in ("squad-qg", "squad-qg-zhao")
    },
    "multi30k_de_en": Pair("Eine Brücke.", "A bridge."),
    "multi30k_en_de": Pair("A bridge.", "Eine Brücke."),
    **{
        name: Pair("Oslo | capitalOf | Norway", "Oslo is the capital of Norway.", id="web-2")
        for name in ("webnlg-seen", "webnlg-unseen")
    },
    "wikilingua_en": Pair("Boil the water first.", "Boil water.", ("Boil water.",), id="wiki-en"),
    "squad-qa": Pair(
        join_parts("What is Oslo?", "Oslo is the capital of Norway."),
        "the capital of Norway",
        ("the capital of Norway", "the capital"),
        id="q7",
    ),
    "persona-chat": Pair(
        join_parts("I sing.\nI live in Oslo.", "Hello!\nHi, who are you?"), "A singer from Oslo.", id="3-1"
    ),
    "klexikon_de": Pair(
        "Oslo ist die Hauptstadt Norwegens.\nEs liegt am Fjord.",
        "Oslo ist eine Stadt.\nSie liegt in Norwegen.",
        id="7",
    ),
    "cola": Pair("sentence: Ann sings.", "acceptable"),
    "sst2": Pair("sentence: a dull film", "negative"),
    "mrpc": Pair("sentence1: Ann sings. \x1esentence2: Ann sings a song.", "equivalent"),
    "stsb": Pair("sentence1: Ann sings. \x1esentence2: Ann eats.", "1.4", ("1.333",)),
    "qqp": Pair("question1: Who sings? \x1equestion2: Who eats?", "not_duplicate"),
    "mnli": Pair("premise: Ann sings. \x1ehypothesis: Ann eats.", "neutral"),
    "mnli-mm": Pair("premise: Ann sings. \x1ehypothesis: Ann is silent.", "contradiction"),
    "qnli": Pair("question: Who sings? \x1esentence: Ann sings.", "entailment"),
    "rte": Pair("premise: Ann sings. \x1ehypothesis: Ann eats.", "not_entailment"),
}
# Rows of the files that authors give out, where these have other columns than ours.
AUTHORS_ROWS: dict[str, dict[str, Any]] = {
    "newsroom": {
        "url": "u1",
        "archive": "a1",
        "title": "Bridge",
        "date": "20010101000000",
        "text": "A bridge was closed.",
        "summary": "Bridge closed.",
        "coverage": 1.0,
        "density": 2.0,
        "density_bin": "extractive",
    },
    "wikihow": {"headline": "Boil water.", "title": "How to Make Tea1", "text": "First, boil water."},
    "e2e": {"mr": "name[The Oak], food[Thai]", "ref": "The Oak serves Thai food."},
    **{
        f"multi30k_{first}_{second}": {
            "en": "A bridge.",
            "de": "Eine Brücke.",
            "fr": "Un pont.",
            "cs": "Most.",
        }
        for first, second in (("fr", "en"), ("en", "fr"), ("cs", "en"), ("en", "cs"))
    },
    "reddit_tifu": {
        "ups": 3.0,
        "num_comments": 1.0,
        "upvote_ratio": 0.9,
        "score": 3.0,
        "documents": "I fell into a river.",
        "tldr": "fell into a river",
        "title": "falling",
    },
}
READ_FROM_AUTHORS = {
    "newsroom": Pair("A bridge was closed.", "Bridge closed.", id="u1"),
    "wikihow": Pair("First, boil water.", "Boil water.", id="How to Make Tea1"),
    "e2e": Pair("name[The Oak], food[Thai]", "The Oak serves Thai food."),
    "multi30k_fr_en": Pair("Un pont.", "A bridge."),
    "multi30k_en_fr": Pair("A bridge.", "Un pont."),
    "multi30k_cs_en": Pair("Most.", "A bridge."),
    "multi30k_en_cs": Pair("A bridge.", "Most."),
    "reddit_tifu": Pair("I fell into a river.", "fell into a river"),
}
QUESTIONS = [name for name, task in TASKS.items() if task.kind == "question"]
PARALLEL = [name for name, task in TASKS.items() if task.folder == "multi30k"]
SCORED_ON_DEV = [name for name, task in TASKS.items() if task.scheme in ADAPTERS]
ON_HUB = [name for name, task in TASKS.items() if task.hub]
LOCAL_ONLY = [name for name, task in TASKS.items() if not task.hub]


_SHELF = os.environ.get("PRECIS_DATA", "")


@pytest.fixture(autouse=True)
def _no_shelf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRECIS_DATA", raising=False)


def write(folder: Path, *splits: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for split in splits:
        row = {"id": split, "document": f"the {split} document", "summary": "s", "summaries": ["s", "t"]}
        (folder / f"{split}.jsonl.gz").write_bytes(gzip.compress(json.dumps(row).encode()))
    return folder


def test_the_tasks_are_there() -> None:
    """Users' scripts depend on the names; each can be read in a way that a test here tries."""
    hub = (
        "samsum dialogsum aeslc cnndm scitldr e2e webnlg dart xsum gigaword mediasum multi_news arxiv pubmed "
        "wikilingua_es_en wikilingua_ru_en wikilingua_tr_en wikilingua_vi_en mlsum_de mlsum_es "
        "multi30k_de_en multi30k_en_de webnlg-seen webnlg-unseen "
        "squad-qg squad-qg-zhao wikilingua_en squad-qa persona-chat cola sst2 mrpc stsb qqp mnli mnli-mm qnli rte "
        "klexikon_de"
    )
    local = (
        "newsroom wikihow reddit_tifu reuters21578 mts_dialog convosumm_email gum_discourse sumpubmed "
        "scisummnet qmsum multi30k_fr_en multi30k_en_fr multi30k_cs_en multi30k_en_cs"
    )
    assert sorted(ON_HUB) == sorted(hub.split()) == sorted(HUB_ROWS)
    assert sorted(LOCAL_ONLY) == sorted(local.split())
    assert all(task(name).name == name for name in TASKS)


@pytest.mark.parametrize("name", TASKS)
def test_the_instruction_of_a_task_is_one_that_its_kind_is_trained_on(name: str) -> None:
    wordings = KINDS[task(name).kind].training
    assert task(name).instruction in [wording.text for wording in wordings]


def test_the_papers_percentiles_are_those_of_table_2() -> None:
    printed = {name: t.percentiles for name, t in TASKS.items() if t.percentiles_from == "paper"}
    assert printed == {
        "aeslc": (440, 13),
        "samsum": (331, 52),
        "xsum": (1139, 35),
        "wikihow": (1878, 226),
        "newsroom": (1704, 152),
        "cnndm": (1682, 127),
        "reddit_tifu": (1096, 51),
        "mediasum": (5323, 52),
        "multi_news": (6642, 407),
        "pubmed": (8210, 401),
        "arxiv": (19560, 576),
        "wikilingua_ru_en": (1468, 102),
        "wikilingua_vi_en": (2570, 96),
        "wikilingua_es_en": (1454, 105),
        "wikilingua_tr_en": (1294, 100),
        "mlsum_de": (1712, 81),
        "mlsum_es": (2402, 50),
    }


@pytest.mark.parametrize("name", TASKS)
def test_limits_follow_the_stated_rule(name: str) -> None:
    percentiles = task(name).percentiles
    if percentiles is None:
        assert name in ("gigaword", "dart", "wikilingua_en", *PARALLEL, *SCORED_ON_DEV)
        return
    source, target = percentiles
    assert task(name).max_source == min(16384, 128 * math.ceil(1.2 * source / 128))
    assert task(name).max_target == min(1024, 32 * math.ceil(1.5 * target / 32))


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if not task.scheme])
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
    with pytest.raises(UserError, match="known: aeslc, arxiv, cnndm"):
        task("qqqq")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"beams": 0}, "beams=0 must be 1 to 128"),
        ({"max_tokens": 0}, "max_tokens=0"),
        ({"no_repeat_ngram": -1}, "no_repeat_ngram=-1"),
        ({"min_tokens": 9, "max_tokens": 8}, "min_tokens=9 is more than max_tokens=8"),
    ],
)
def test_impossible_generation_settings_are_refused(wrong: dict[str, int], says: str) -> None:
    with pytest.raises(UserError, match=says):
        GenerationSettings(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ON_HUB)
def test_each_task_reads_rows_of_the_hubs_schema(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    published = {"mnli": "validation_matched", "mnli-mm": "validation_mismatched"}.get(name, "validation")
    data = datasets.DatasetDict(
        {split: datasets.Dataset.from_list([HUB_ROWS[name]]) for split in ("train", published, "test")}
    )
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: data)
    found = resolve(task(name))
    assert str(found.source).startswith(f"{task(name).scheme}hub:")
    for split in ("train", "test") if name in SCORED_ON_DEV else ("train", "dev", "test"):
        if (name, split) != ("webnlg-unseen", "train"):  # what it is scored on is never trained on
            assert list(replace(found, split=split).read()) == [READ[name]]


def test_dialogsums_three_test_rows_on_the_hub_are_one_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": f"test_{i // 3}", "dialogue": f"d{i // 3}", "summary": f"s{i}"} for i in range(6)]
    data = datasets.DatasetDict({split: datasets.Dataset.from_list(rows) for split in ("train", "test")})
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: data)
    test = replace(resolve(task("dialogsum")), split="test")
    train = replace(test, split="train")
    assert [pair.references for pair in test.read()] == [("s0", "s1", "s2"), ("s3", "s4", "s5")]
    assert [pair.references for pair in test.read(limit=1)] == [("s0", "s1", "s2")]
    assert (len(list(train.read())), len(list(train.read(limit=4)))) == (6, 4)


@pytest.mark.parametrize("name", LOCAL_ONLY)
def test_a_task_that_the_hub_does_not_have_asks_for_its_files(name: str) -> None:
    with pytest.raises(UserError, match=f"task '{name}' cannot be read from the hub; name the folder"):
        resolve(task(name))


@pytest.mark.parametrize("name", AUTHORS_ROWS)
@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_the_files_of_its_authors_are_read_as_they_are(name: str, ending: str, tmp_path: Path) -> None:
    row, file = AUTHORS_ROWS[name], tmp_path / f"train.{ending}"
    with file.open("w", newline="") as stream:
        if ending == "csv":
            csv.writer(stream).writerows([row.keys(), row.values()])
        else:
            stream.write(json.dumps(row) + "\n")
    assert list(replace(resolve(task(name), tmp_path), split="train").read()) == [READ_FROM_AUTHORS[name]]
    assert list(resolve(task(name), file).read()) == [READ_FROM_AUTHORS[name]]


@pytest.mark.parametrize("name", ON_HUB)
@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_each_task_reads_files_that_were_fetched_from_the_hub(name: str, ending: str, tmp_path: Path) -> None:
    published = {"mnli": "validation_matched", "mnli-mm": "validation_mismatched"}.get(name, "validation")
    rows, folder = datasets.Dataset.from_list([HUB_ROWS[name]]), tmp_path / name
    folder.mkdir()
    for split in ("train", published, "test"):
        file = folder / f"{split}.{ending}"
        rows.to_parquet(file) if ending == "parquet" else file.write_text(json.dumps(HUB_ROWS[name]) + "\n")
    for data in (tmp_path, folder):
        for split in ("train", "test"):
            if (name, split) != ("webnlg-unseen", "train"):
                assert list(replace(resolve(task(name), data), split=split).read()) == [READ[name]]


def test_the_first_row_tells_the_columns_and_named_ones_are_read_alone(tmp_path: Path) -> None:
    folder = tmp_path / "samsum"
    folder.mkdir()
    rows = [HUB_ROWS["samsum"], {"document": "d", "summary": "s"}]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    train = replace(resolve(task("samsum"), folder), split="train")
    with pytest.raises(UserError, match="line 2: no column 'dialogue' for the document"):
        list(train.read())
    (folder / "train.jsonl").write_text("{broken\n" + json.dumps(rows[0]) + "\n")
    assert list(train.read(skip_bad=True)) == [READ["samsum"]]
    (folder / "train.jsonl").write_text(json.dumps(rows[0]) + "\n")
    named = NamedPairs(task="samsum", data=str(folder), document_column="text").sources()
    with pytest.raises(UserError, match="no column 'text' for the document"):
        list(named.train.read())
    (folder / "train.jsonl").write_text(json.dumps({"talk": "d"}) + "\n")
    with pytest.raises(UserError, match="no column 'document' for the document"):
        list(train.read())


def test_the_references_of_published_files_are_put_together_outside_of_train(tmp_path: Path) -> None:
    files = {
        "e2e": "mr,ref\nname[The Oak],One.\nname[The Oak],Two.\nname[The Elm],Three.\n",
        "dialogsum": "id,dialogue,summary\na,name[The Oak],One.\na,name[The Oak],Two.\nb,name[The Elm],Three.\n",
    }
    for name, text in files.items():
        folder = tmp_path / name
        folder.mkdir()
        for split in ("train", "test"):
            (folder / f"{split}.csv").write_text(text)
        train, test = (replace(resolve(task(name), tmp_path), split=split) for split in ("train", "test"))
        assert [pair.all_references for pair in train.read()] == [("One.",), ("Two.",), ("Three.",)]
        assert [pair.all_references for pair in test.read()] == [("One.", "Two."), ("Three.",)]


def test_darts_own_rows_hold_their_texts_in_annotations(tmp_path: Path) -> None:
    row = {
        "tripleset": [["Oslo", "CAPITAL_OF", "Norway"], ["Norway", "CURRENCY", "krone"]],
        "subtree_was_extended": True,
        "annotations": [
            {"source": "WikiSQL_decl_sents", "text": "Oslo is a capital."},
            {"source": "WikiTableQuestions_lily", "text": "One pays in kroner."},
        ],
    }
    file = tmp_path / "test.jsonl"
    file.write_text(json.dumps(row) + "\n")
    (pair,) = resolve(task("dart"), file).read()
    assert pair.document == "Oslo | CAPITAL_OF | Norway\nNorway | CURRENCY | krone"
    assert pair.all_references == ("Oslo is a capital.", "One pays in kroner.")
    file.write_text(json.dumps({**row, "annotations": [{"source": "WikiSQL_decl_sents"}]}) + "\n")
    with pytest.raises(UserError, match="column 'annotations' must hold text, not an object"):
        list(resolve(task("dart"), file).read())


@pytest.mark.parametrize("name", [n for n in TASKS if not (n in PARALLEL or TASKS[n].scheme)])
def test_each_task_reads_local_files(name: str, tmp_path: Path) -> None:
    write(tmp_path / name, "train", "dev", "test")
    found = resolve(task(name), tmp_path)
    report = ReadReport()
    (pair,) = replace(found, split="dev").read(report=report)
    assert pair == Pair("the dev document", "s", ("s", "t"), "dev")
    assert report.kept == 1


def test_unseen_categories_are_in_no_training_row_and_the_file_of_2017_is_what_is_scored(
    tmp_path: Path,
) -> None:
    def rows(*categories: str) -> str:
        triples = [
            {"document": f"{c} | is | here", "summary": "s", "category": c, "id": c} for c in categories
        ]
        return "".join(json.dumps(row) + "\n" for row in triples)

    folder = tmp_path / "webnlg"
    folder.mkdir()
    (folder / "train.jsonl").write_text(rows("City", "Artist", "Food"))
    (folder / "test.jsonl").write_text(rows("Monument"))
    seen, unseen = (resolve(task(f"webnlg-{part}"), tmp_path) for part in ("seen", "unseen"))
    ids = lambda part, split: [pair.id for pair in replace(part, split=split).read()]  # noqa: E731
    assert ids(seen, "test") == ["Monument"]
    (folder / "challenge2017_test.jsonl").write_text(rows("Airport", "Athlete", "Artist"))
    assert ids(seen, "train") == ids(unseen, "train") == ["City", "Food"]
    assert (ids(seen, "test"), ids(unseen, "test")) == (["Airport"], ["Athlete", "Artist"])
    (folder / "challenge2017_test.jsonl").write_text(rows("Airport", "Food"))
    with pytest.raises(UserError, match=r"challenge2017_test.jsonl: all 2 rows: none has an unseen category"):
        ids(unseen, "test")
    (folder / "train.jsonl").write_text('{"document": "d", "summary": "s"}\n')
    with pytest.raises(UserError, match="lacks 'category', which separates seen from unseen"):
        ids(seen, "train")


@pytest.mark.skipif("PRECIS_DATA" not in os.environ, reason="PRECIS_DATA names no folder of data sets")
@pytest.mark.parametrize("name", TASKS)
def test_each_task_reads_the_real_files_that_are_at_hand(name: str) -> None:
    """Run it with PRECIS_DATA=DIR; sets without a folder there are passed over."""
    shelf = Path(_SHELF)
    folder = folder_of(task(name), shelf)
    if folder is None or name == "mnli-mm":  # of MNLI there is a sample of matched genres alone
        pytest.skip(f"no files of {name}")
    found = resolve(task(name), shelf)
    splits = (
        ("train", "test") if task(name).scheme in ADAPTERS else available_splits(folder, task(name).scheme)
    )
    for split in splits:
        pairs = list(replace(found, split=split).read(limit=50, skip_bad=True))
        assert len(pairs) > 20
        assert all(pair.document.strip() and pair.summary.strip() for pair in pairs)


@pytest.mark.parametrize("name", QUESTIONS)
def test_question_generation_finds_squads_folder_and_reads_it_by_its_own_scheme(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    squad = write(tmp_path / "squad_v1.1", "train", "dev")
    assert resolve(task(name), tmp_path).source == f"{name}:{squad}"
    assert resolve(task(name), squad).source == f"{name}:{squad}"
    assert resolve(task(name), squad / "dev.jsonl.gz").source == f"{name}:{squad / 'dev.jsonl.gz'}"
    monkeypatch.setenv("PRECIS_DATA", str(tmp_path))
    assert resolve(task(name)).source == f"{name}:{squad}"
    own = write(tmp_path / name, "train", "dev")
    assert resolve(task(name)).source == f"{name}:{own}"
    assert resolve(task(name), "hub:me/mine").source == f"{name}:hub:me/mine"


def test_question_generation_decodes_as_prophetnets_scripts() -> None:
    for name in QUESTIONS:
        chosen = task(name).generation
        assert (chosen.beams, chosen.length_penalty, chosen.no_repeat_ngram) == (5, 1.5, 3)
        assert task(name).max_source == 512


def test_data_may_be_the_folder_itself_a_folder_of_folders_or_a_file(tmp_path: Path) -> None:
    own = write(tmp_path / "own", "train")
    assert resolve(task("samsum"), own).source == str(own)
    inner = write(tmp_path / "own" / "samsum", "train")
    assert resolve(task("samsum"), own).source == str(inner)
    file = own / "train.jsonl.gz"
    assert next(resolve(task("samsum"), file).read()).id == "train"


def test_the_variable_is_asked_before_the_hub_and_after_the_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = write(tmp_path / "shelf" / "e2e", "train")
    given = write(tmp_path / "given", "train")
    monkeypatch.setenv("PRECIS_DATA", str(tmp_path / "shelf"))
    assert resolve(task("e2e")).source == str(shelf)
    assert resolve(task("e2e"), given).source == str(given)
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


def test_local_triples_are_read_a_line_each_where_their_column_is_named(tmp_path: Path) -> None:
    row = {
        "document": "a | b | c && d | e | f",
        "triples": [["a", "b", "c"], ["d", "e", "f"]],
        "summary": "s",
    }
    (tmp_path / "train.jsonl").write_text(json.dumps(row) + "\n")
    for column, read in (("document", row["document"]), ("triples", "a | b | c\nd | e | f")):
        sources = NamedPairs(task="webnlg", data=str(tmp_path), document_column=column).sources()
        (pair,) = sources.train.read()
        assert pair.document == read


def test_the_empty_dialogue_of_samsum_is_passed_over_and_counted_but_not_in_own_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, empty = {"document": "A: hi", "summary": "A greets."}, {"document": "", "summary": "Eric."}
    (tmp_path / "samsum").mkdir()
    (tmp_path / "samsum" / "train.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in (good, empty, good))
    )
    hub = [{"id": "1", "dialogue": row["document"], "summary": row["summary"]} for row in (good, empty, good)]
    splits = datasets.DatasetDict({"train": datasets.Dataset.from_list(hub)})
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: splits)
    samsum = task("samsum")
    for data in (tmp_path, None):
        report = ReadReport()
        assert len(list(replace(resolve(samsum, data), split="train").read(report=report))) == 2
        assert (report.empty_documents, report.skipped_count, len(report.skipped)) == (1, 1, 1)
    with pytest.raises(UserError, match=r"line 2: the document .* is empty"):
        list(replace(resolve(samsum, tmp_path / "samsum"), split="train").read())
    (tmp_path / "samsum" / "train.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in (empty, good, empty))
    )
    with pytest.raises(UserError, match=r"line 3: the document .* is empty"):
        list(replace(resolve(samsum, tmp_path), split="train").read())
    other = [json.dumps(row) + "\n" for row in ({"document": "d"}, good)]
    (tmp_path / "samsum" / "train.jsonl").write_text("".join(other))
    with pytest.raises(UserError, match="line 1: no column 'summary'"):
        list(replace(resolve(samsum, tmp_path), split="train").read())


def test_speakers_must_be_as_many_as_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"utt": ["One.", "Two."], "speaker": ["A"], "summary": "s", "id": "x"}]
    splits = datasets.DatasetDict({"train": datasets.Dataset.from_list(rows)})
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: splits)
    with pytest.raises(
        UserError, match="column 'speaker' must hold a list of speakers, one for each of 2 parts"
    ):
        list(replace(resolve(task("mediasum")), split="train").read())


def test_the_suggested_instruction_is_of_the_first_name_that_is_a_task() -> None:
    assert instruction_of_first(["notes.jsonl", "xsum", "samsum"]) == task("xsum").instruction
    assert task("xsum").instruction != task("samsum").instruction
    assert instruction_of_first(["notes.jsonl"]) == "Summarize the following text:"
