"""Evaluation resumes, refuses to mix, and reads predictions that others made."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import precis
from precis.data.pairs.pair import Pair
from precis.data.synthetic.corpus import make_pairs
from precis.evaluation.meteor import Meteor
from precis.evaluation.predictions import PredictionWriter, read_predictions
from precis.evaluation.rouge import Rouge
from precis.evaluation.scoring import score
from precis.evaluation.significance import Bootstrap
from precis.generation.model_location import names_apart
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.measure.evaluation_inputs import given_predictions, given_systems, joined, read_test_pairs
from precis.phases.measure.model_scores import Decoding, evaluate_models, make_report
from precis.phases.measure.task_metrics import scores_for
from precis_text.errors import UserError
from tests.tiny_models import bert_tokenizer, our_tokenizer, save, tiny

PAIRS = list(make_pairs(5, seed=2))


LABELS = ["equivalent", "equivalent", "not_equivalent"]
LABELLED = ("cola", "sst2", "mnli-mm")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save("zcodepp", tmp_path_factory.mktemp("models") / "mine"))


def test_each_way_of_decoding_is_a_system_of_the_table(model: str, tmp_path: Path) -> None:
    systems = evaluate_models([model], PAIRS, out=tmp_path, decodings=[Decoding(beams=1), Decoding(beams=2)])
    assert list(systems) == ["mine greedy", "mine beam 2"]
    report = make_report(systems, PAIRS, scores_for(None, PAIRS), out=tmp_path)
    assert [row.name for row in report.systems[:3]] == ["mine greedy", "mine beam 2", "LEAD-3"]
    assert (tmp_path / "scores.json").is_file()
    assert (tmp_path / "predictions" / "mine-beam-2.jsonl").is_file()


def test_a_stopped_evaluation_goes_on_and_gives_the_same(model: str, tmp_path: Path) -> None:
    whole = evaluate_models([model], PAIRS, out=tmp_path / "whole", batch_size=1)
    file = tmp_path / "cut" / "predictions" / "mine-greedy.jsonl"
    file.parent.mkdir(parents=True)
    lines = (tmp_path / "whole" / "predictions" / "mine-greedy.jsonl").read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:3]) + lines[3][:10])  # the header, two predictions, a torn one
    told: list[str] = []
    again = evaluate_models([model], PAIRS, out=tmp_path / "cut", batch_size=2, notify=told.append)
    assert again == whole
    assert "2 of 5" in told[0]
    assert len(read_predictions(file)) == 5


def test_predictions_under_other_settings_are_not_mixed(model: str, tmp_path: Path) -> None:
    evaluate_models([model], PAIRS, out=tmp_path, long="truncate")
    with pytest.raises(UserError, match=r"was started with long=.truncate., now .chunk.; delete the file"):
        evaluate_models([model], PAIRS, out=tmp_path, long="chunk")


def test_a_document_without_tokens_is_named_by_its_place_among_all_pairs(tmp_path: Path) -> None:
    model, words = tiny("zcodepp")[0], bert_tokenizer()
    model.resize_token_embeddings(max(len(words), len(our_tokenizer())))
    model.save_pretrained(tmp_path / "mine")
    words.save_pretrained(tmp_path / "mine")
    pairs = [*PAIRS, replace(PAIRS[0], document="\u200b", id="rows 7")]
    evaluate_models([str(tmp_path / "mine")], pairs[:4], out=tmp_path / "out")
    says = r"pair 6 \(id rows 7\): the document gives no tokens that the model knows; remove the pair"
    with pytest.raises(UserError, match=says):
        evaluate_models([str(tmp_path / "mine")], pairs, out=tmp_path / "out")


def test_the_same_decoding_twice_is_refused(model: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is given twice"):
        evaluate_models([model], PAIRS, out=tmp_path, decodings=[Decoding(), Decoding(beams=1)])
    assert not (tmp_path / "predictions").exists()  # before anything is decoded


def test_one_model_may_be_written_in_several_ways(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate_models([f"{model}/"], PAIRS[:1], out=tmp_path)
    monkeypatch.chdir(Path(model).parent)
    told: list[str] = []
    evaluate_models(["mine"], PAIRS[:1], out=tmp_path, notify=told.append)
    assert "1 of 1" in told[0]


def test_plain_text_has_a_prediction_in_each_line(tmp_path: Path) -> None:
    file = tmp_path / "theirs.txt"
    file.write_text("one\n\nthree\n")
    assert given_predictions(file, PAIRS[:3]) == ["one", "", "three"]
    with pytest.raises(UserError, match="3 predictions for 4 pairs"):
        given_predictions(file, PAIRS[:4])
    file.write_text("")
    with pytest.raises(UserError, match="has 0 predictions for 1 pair to"):
        given_predictions(file, PAIRS[:1])
    with pytest.raises(UserError, match="no such file"):
        given_predictions(tmp_path / "none.txt", PAIRS)


def rows(file: Path, *values: dict[str, object]) -> Path:
    file.write_text("".join(json.dumps(value) + "\n" for value in values))
    return file


@pytest.mark.parametrize("field", ["summary", "prediction"])
def test_rows_are_matched_with_the_pairs_by_their_ids(field: str, tmp_path: Path) -> None:
    pairs = [replace(pair, id=name) for pair, name in zip(PAIRS, ("a", "7", "c"), strict=False)]
    one = {"id": 7, field: "two", "document": "more"}
    file = rows(tmp_path / "x.jsonl", one, {"id": "c", field: ""}, {"id": "a", field: "one"})
    assert given_predictions(file, pairs) == ["one", "two", ""]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([{"id": "a", "text": "x"}], "x.jsonl, line 1: needs one text in 'summary' or 'prediction'"),
        (
            [{"id": "a", "summary": "x", "prediction": "y"}],
            "line 1: needs one text in 'summary' or 'prediction', but",
        ),
        ([{"id": "a", "summary": 3}], "line 1: needs a text in 'summary', not a number"),
        (
            [{"summary": "x"}],
            "line 1: 'id' must be a name or a number, by which summaries are matched; or use",
        ),
        ([{"id": "a", "summary": "x"}, {"id": "a", "summary": "y"}], "line 2: 'a' appears a second time"),
        ([{"id": "b", "summary": "x"}], "lacks the summaries of 1 document, the first is 'a'"),
        (
            [{"id": n, "summary": "x"} for n in "abc"],
            "has 2 rows without a pair to score on, the first is 'b'",
        ),
    ],
)
def test_rows_that_fit_no_pair_or_are_ambiguous_are_refused_with_the_names_of_the_fields(
    values: list[dict[str, object]], told: str, tmp_path: Path
) -> None:
    file = rows(tmp_path / "x.jsonl", *values)
    with pytest.raises(UserError) as refused:
        given_predictions(file, [replace(PAIRS[0], id="a")])
    assert told in str(refused.value)


def test_two_pairs_with_the_same_id_cannot_be_matched(tmp_path: Path) -> None:
    file = rows(tmp_path / "x.jsonl", {"id": "a", "summary": "x"})
    with pytest.raises(UserError, match="two pairs have the id 'a', so that it matches no row; use text"):
        given_predictions(file, [replace(PAIRS[0], id="a"), replace(PAIRS[1], id="a")])


def test_our_own_predictions_can_be_scored_again(model: str, tmp_path: Path) -> None:
    systems = evaluate_models([model], PAIRS, out=tmp_path)
    file = tmp_path / "predictions" / "mine-greedy.jsonl"
    assert given_predictions(file, PAIRS) == systems["mine greedy"]


def test_our_own_predictions_are_scored_on_the_pairs_that_they_were_made_for_alone(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    with PredictionWriter(file, PAIRS) as writer:
        for pair in PAIRS:
            writer.append(pair.summary)
    others = [*PAIRS[:3], replace(PAIRS[3], document="Bob hums."), PAIRS[4]]
    with pytest.raises(UserError, match=r"mine\.jsonl, line 5: made for example .* with this document"):
        given_predictions(file, others)
    with pytest.raises(UserError, match="made for example"):
        given_predictions(file, [replace(PAIRS[0], id="another"), *PAIRS[1:]])
    with pytest.raises(UserError, match="5 predictions for 4 examples"):
        given_predictions(file, PAIRS[:4])


@pytest.mark.parametrize(("limit", "what"), [(None, "3 pairs from"), (2, "the first 2 pairs of")])
def test_rows_that_were_skipped_are_told_with_a_limit_too(
    limit: int | None, what: str, tmp_path: Path
) -> None:
    good = '{"document": "Ann sings.", "summary": "Ann sings."}\n'
    (tmp_path / "pairs.jsonl").write_text(good + "broken\n" + 2 * good)
    told: list[str] = []
    part = NamedPairs(data=str(tmp_path / "pairs.jsonl")).part()
    read_test_pairs(part, limit=limit, skip_bad=True, notify=told.append)
    assert told[0].startswith(f"{what} {tmp_path}")
    assert "pairs.jsonl, 1 skipped (first: " in told[0]
    assert "line 2" in told[0]


def test_two_files_of_one_name_are_refused_rather_than_one_of_them_lost(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "theirs.txt").write_text("one\n")
    with pytest.raises(UserError, match="two files of predictions are named 'theirs'"):
        given_systems([tmp_path / "a" / "theirs.txt", tmp_path / "b" / "theirs.txt"], PAIRS[:1])


def test_a_file_called_like_a_row_of_the_model_is_refused() -> None:
    assert list(joined({"mine greedy": ["a"]}, {"theirs": ["b"]})) == ["mine greedy", "theirs"]
    with pytest.raises(UserError, match="'mine greedy' names a row of the model and a file of predictions"):
        joined({"mine greedy": ["a"]}, {"mine greedy": ["b"]})


@pytest.mark.parametrize("name", ["squad-qg", "squad-qg-zhao"])
def test_questions_are_scored_by_bleu_meteor_and_rouge_l_without_baselines(name: str) -> None:
    scores = scores_for(name, PAIRS)
    assert scores.rouge.types == ("rougeL",)
    assert sorted(scores.scorers) == ["bleu", "meteor"]
    assert scores.baselines == ()
    assert len(scores_for(name, PAIRS, baselines=True).baselines) == 6


@pytest.mark.parametrize("name", ["e2e", "webnlg", "dart"])
def test_facts_are_scored_by_bleu_meteor_ter_and_chrf_beside_rouge(name: str) -> None:
    scores = scores_for(name, PAIRS)
    assert list(scores.scorers) == ["bleu", "meteor", "ter", "chrf"]
    assert (scores.rouge, scores.with_rouge, len(scores.baselines)) == (Rouge(), True, 6)


@pytest.mark.long
def test_labels_are_scored_by_glues_metrics_beside_the_most_frequent_one(tmp_path: Path) -> None:
    pairs = [Pair(f"sentence1: {n} sentence2: {n}", label) for n, label in enumerate(LABELS)]
    scores = scores_for("mrpc", pairs)
    report = make_report({"mine": ["equivalent", "perhaps", "not_equivalent"]}, pairs, scores, out=tmp_path)
    assert [system.name for system in report.systems] == ["mine", "MAJORITY"]
    mine, majority = ({name: i.mean for name, i in s.metrics.items()} for s in report.systems)
    assert mine == pytest.approx({"accuracy": 200 / 3, "f1": 200 / 3})
    assert majority == pytest.approx({"accuracy": 200 / 3, "f1": 80})
    assert not any("rouge" in signature for signature in report.signatures)
    assert "| 66.7 [" in (tmp_path / "table.md").read_text()


@pytest.mark.parametrize(
    ("name", "measures"),
    [
        ("cola", ["matthews"]),
        ("sst2", ["accuracy"]),
        ("stsb", ["pearson", "spearman"]),
        ("mnli-mm", ["accuracy"]),
        ("squad-qa", ["exact_match", "answer_f1"]),
    ],
)
def test_each_task_of_short_answers_has_its_own_measures_and_no_rouge(name: str, measures: list[str]) -> None:
    scores = scores_for(name, PAIRS)
    assert (list(scores.scorers), scores.with_rouge) == (measures, False)
    assert [baseline.name for baseline in scores.baselines] == (["MAJORITY"] if name in LABELLED else [])


@pytest.mark.parametrize("name", ["samsum", "mts_dialog", None])
def test_all_else_is_scored_as_before(name: str | None) -> None:
    scores = scores_for(name, PAIRS, stemmer=False)
    assert (scores.rouge, scores.scorers) == (Rouge(stemmer=False), {})
    names = ["LEAD-3", "LEAD-2", "LONGEST-3", "LEXRANK-3", "TEXTRANK-3", "ORACLE"]
    assert [baseline.name for baseline in scores.baselines] == names
    assert scores_for(name, PAIRS, baselines=False).baselines == ()
    more = scores_for(name, PAIRS, with_bleu=True, with_meteor=True)
    assert list(more.scorers) == ["bleu", "meteor"]


def test_a_given_meteor_is_used() -> None:
    mine = Meteor(alpha=0.5)
    assert scores_for(None, PAIRS, meteor=mine).scorers == {"meteor": mine}
    assert scores_for("squad-qg", PAIRS, meteor=mine).scorers["meteor"] is mine


def test_case_does_not_count_in_the_bleu_of_questions() -> None:
    pairs = [Pair("Text.", "When did the mill in Arlen burn?")]
    systems = {"mine": ["when did the mill in arlen burn?"]}
    quick = Bootstrap(samples=2)
    for name, expected in (("squad-qg", 100), ("samsum", 30)):
        scores = scores_for(name, PAIRS, with_bleu=True)
        report = score(systems, pairs, scorers=scores.scorers, baselines=(), intervals=quick)
        assert (report.systems[0].metrics["bleu"].mean >= 99) == (expected == 100)


def test_an_unknown_task_is_refused() -> None:
    with pytest.raises(UserError, match="did you mean 'squad-qg'"):
        scores_for("squad_qg", PAIRS)


def test_another_set_in_the_same_folder_names_both_sets(tmp_path: Path) -> None:
    model = save("zcodepp", tmp_path / "tiny")
    for name in ("first", "second"):
        rows = [{"document": f"The {name} {word} sings.", "summary": "It sings."} for word in ("cat", "dog")]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    precis.evaluate(model, tmp_path / "first.jsonl", out=tmp_path / "scores")
    with pytest.raises(
        UserError, match=r"evaluation on .*first\.jsonl, and .*second\.jsonl was given now; choose"
    ):
        precis.evaluate(model, tmp_path / "second.jsonl", out=tmp_path / "scores")


def test_documents_of_the_training_pairs_are_counted(tmp_path: Path) -> None:
    rows = [{"document": f"The {word} sings.", "summary": "It sings."} for word in ("cat", "dog", "owl")]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:2]))
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = tmp_path / "run"
    save("zcodepp", run / "model")
    sources = NamedPairs(data=str(tmp_path / "train.jsonl")).sources()
    (run / "settings.json").write_text(json.dumps({"sources": sources.to_dict()}))
    told: list[str] = []
    precis.evaluate(run, tmp_path / "test.jsonl", out=tmp_path / "scores", notify=told.append)
    assert any(line.startswith("warning: 2 of 3 documents were in the training pairs") for line in told)


def test_references_of_one_sentence_get_a_lead_of_one() -> None:
    pairs = [Pair("It rains. Ann sings. Bob reads. The cat sleeps.", "Ann sings.")] * 3
    names = [each.name for each in scores_for(None, pairs).baselines]
    assert names == ["LEAD-3", "LEAD-1", "LONGEST-3", "LEXRANK-3", "TEXTRANK-3", "ORACLE"]


@pytest.mark.parametrize(
    ("models", "names"),
    [
        (["runs/proph"], ["proph"]),
        (["runs/proph", "runs/a/seed-0", "runs/b/seed-0"], ["proph", "a/seed-0", "b/seed-0"]),
        (["x/a/m", "x/b/m", "y/n", "y/b/m"], ["a/m", "x/b/m", "n", "y/b/m"]),
        (["a-m", "x/a/m", "x/b/m"], [f"{Path.cwd().name}/a-m", "x/a/m", "b/m"]),  # their files would be one
    ],
)
def test_a_row_has_a_longer_name_only_beside_another_with_the_same(
    models: list[str], names: list[str]
) -> None:
    assert names_apart(models) == names
