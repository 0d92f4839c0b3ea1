"""A head on an encoder: trained, resumed, exported for transformers, evaluated; and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from precis.data.pairs.glue import GLUE
from precis.generation.classifier import Classifier
from precis.generation.model_loader import load_model
from precis.models.zcodepp.zcodepp_encoder import ZCodePPForSequenceClassification
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.measure.evaluation_inputs import read_test_pairs
from precis.phases.measure.model_scores import Decoding, evaluate_models, make_report
from precis.phases.measure.task_metrics import scores_for
from precis.phases.train.classifier_training import with_head
from precis.phases.train.finetuning import finetune
from precis.phases.train.pair_training import PairRequest
from precis.phases.train.trainable_model import TrainableModel
from precis.recipes.planning import resolve_run
from precis.training import Trained
from precis.training.callbacks import Callback, read_metrics
from precis_text.errors import UserError
from tests.tiny_models import our_tokenizer, save, save_classifier, tiny

NAMES = ("Ann", "Bob", "Carl", "Dora", "Emil", "Fay", "Gus", "Hal")


def write_glue(folder: Path, task: str) -> Path:
    """Rows of a task whose label is seen from the verb of the second text."""
    rows = []
    for number in range(160):
        one, other, sleeps = NAMES[number % 8], NAMES[(number // 8) % 8], number % 3 == 0
        label: Any = int(sleeps) if task == "rte" else 1.25 + 2.5 * sleeps
        second = f"{other} {'sleeps' if sleeps else 'sings'} in hall {number}."
        rows.append({"text_a": f"{one} sings.", "text_b": second, "label": label})
    for split, part in (("train", rows), ("dev", rows[:24])):
        file = folder / "glue" / f"{GLUE[task].official}.{split}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(row) + "\n" for row in part))
    return folder


def train(data: Path, out: Path, task: str = "rte", *, steps: int = 4, **options: Any) -> Trained:
    changes = {
        "train.steps": steps,
        "train.epochs": None,
        "train.warmup_steps": 1,
        "train.learning_rate": 3e-3,
        "train.save_every": 2,
        "train.validate_every": 2,
        "train.precision": "fp32",
        "batch_size": 16,
        "batch_tokens": None,
    }
    run = resolve_run("zcodepp-micro", task_name=task, changes=changes, answer="head")
    sources = NamedPairs(task=task, data=str(data)).sources()
    return finetune(run, PairRequest(sources=sources, out=out, answer="head", **options))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("glue")
    for task in ("rte", "stsb"):
        write_glue(folder, task)
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save("zcodepp", tmp_path_factory.mktemp("models") / "base"))


@pytest.fixture(scope="module")
def trained(data: Path, base: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(data, tmp_path_factory.mktemp("runs") / "rte", start=base).folder


def test_the_head_stands_on_the_encoder_of_the_model(base: str) -> None:
    model, tokenizer = tiny("zcodepp")
    made = with_head(TrainableModel(model, tokenizer, base), "mnli", seed=0).model
    assert isinstance(made, ZCodePPForSequenceClassification)
    for name, weight in model.get_encoder().state_dict().items():
        assert torch.equal(made.model.encoder.state_dict()[name], weight)
    assert (made.config.num_labels, made.config.problem_type) == (3, "single_label_classification")


def test_auto_classes_open_it_and_a_plain_tokenizer_gives_the_same_answers(trained: Path, data: Path) -> None:
    model = AutoModelForSequenceClassification.from_pretrained(trained / "model").eval()
    tokenizer = AutoTokenizer.from_pretrained(trained / "model")
    pairs = read_test_pairs(NamedPairs(task="rte", data=str(data)).part())
    found = Classifier.from_pretrained(str(trained)).stream([p.document for p in pairs], batch_size=5)
    for pair, answer in zip(pairs, found, strict=True):
        first, second = pair.document.removeprefix("premise: ").split(" \x1ehypothesis: ")
        with torch.inference_mode():
            logits = model(**tokenizer(first, second, return_tensors="pt")).logits
        assert answer.text == model.config.id2label[int(logits.argmax())]


def test_validation_measures_what_the_task_is_scored_by(trained: Path) -> None:
    records = [r for r in read_metrics(trained / "metrics.jsonl") if r["kind"] == "validation"]
    assert [record["step"] for record in records] == [2, 4]
    assert all(0 <= record["accuracy"] <= 100 and record["loss"] > 0 for record in records)
    settings = json.loads((trained / "settings.json").read_text())
    assert settings["run"]["train"]["select"]["metric"] == "accuracy"


class _StopAt(Callback):
    """Asks for a stop by an error, as a kill would come."""

    def __init__(self, step: int) -> None:
        self._step = step

    def on_validation(self, info: Any) -> None:
        if info.step == self._step:
            raise KeyboardInterrupt


@pytest.mark.long
def test_a_run_that_was_cut_short_ends_in_the_same_weights(
    trained: Path, data: Path, base: str, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(data, tmp_path / "run", start=base, callbacks=[_StopAt(4)])
    train(data, tmp_path / "run", start=base)
    whole, again = (
        AutoModelForSequenceClassification.from_pretrained(place / "model").state_dict()
        for place in (trained, tmp_path / "run")
    )
    assert all(torch.equal(whole[name], again[name]) for name in whole)


def test_a_run_is_not_continued_with_the_other_answer(trained: Path, data: Path, base: str) -> None:
    run = resolve_run("zcodepp-micro", task_name="rte", changes={"train.precision": "fp32"})
    with pytest.raises(UserError, match="was started with"):
        finetune(
            run,
            PairRequest(sources=NamedPairs(task="rte", data=str(data)).sources(), out=trained, start=base),
        )


@pytest.mark.long
def test_a_new_encoder_learns_what_the_label_depends_on(data: Path, tmp_path: Path) -> None:
    our_tokenizer().save_pretrained(tmp_path / "words")
    done = train(data, tmp_path / "run", steps=60, tokenizer=str(tmp_path / "words"))
    assert done.result.best_metric is not None
    assert done.result.best_metric > 90  # two in three rows have the most frequent label


@pytest.mark.long
def test_similarities_are_numbers_and_are_correlated(data: Path, base: str, tmp_path: Path) -> None:
    done = train(data, tmp_path / "run", "stsb", start=base)
    assert done.result.metric == "pearson"
    pairs = read_test_pairs(NamedPairs(task="stsb", data=str(data)).part())
    systems = evaluate_models([str(tmp_path / "run")], pairs, out=tmp_path / "scores", task="stsb")
    ((name, texts),) = systems.items()
    assert name == "run head"
    assert len({float(text) for text in texts}) > 1
    report = make_report(systems, pairs, scores_for("stsb", pairs), out=tmp_path / "scores")
    assert list(report.systems[0].metrics) == ["pearson", "spearman"]


def test_a_classifier_is_evaluated_beside_the_most_frequent_label(
    trained: Path, data: Path, tmp_path: Path
) -> None:
    pairs = read_test_pairs(NamedPairs(task="rte", data=str(data)).part())
    systems = evaluate_models([str(trained)], pairs, out=tmp_path, task="rte")
    assert evaluate_models([str(trained)], pairs, out=tmp_path, task="rte", batch_size=3) == systems
    report = make_report(systems, pairs, scores_for("rte", pairs), out=tmp_path)
    assert [system.name for system in report.systems] == ["rte head", "MAJORITY"]


def test_a_classifier_of_another_task_lends_its_encoder(trained: Path, data: Path, tmp_path: Path) -> None:
    train(data, tmp_path / "run", "stsb", start=str(trained), steps=2)
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "run" / "model")
    assert model.config.num_labels == 1


def test_what_a_classifier_is_not_for_is_refused_in_one_line(
    trained: Path, data: Path, tmp_path: Path
) -> None:
    pairs = read_test_pairs(NamedPairs(task="stsb", data=str(data)).part())
    with pytest.raises(
        UserError, match=r"is a classifier \(entailment, not_entailment\), which does not write text"
    ):
        load_model(trained)
    with pytest.raises(UserError, match="answers with entailment, not_entailment, but stsb needs a number"):
        evaluate_models([str(trained)], pairs, out=tmp_path, task="stsb")
    assert not list(tmp_path.iterdir())
    with pytest.raises(UserError, match="is a classifier and does not decode"):
        evaluate_models([str(trained)], pairs, out=tmp_path, task="rte", decodings=[Decoding(beams=2)])
    with pytest.raises(UserError, match="name the --task"):
        evaluate_models([str(trained)], pairs, out=tmp_path)
    other = save_classifier(tmp_path / "bert")
    with pytest.raises(UserError, match="precis did not train it to label texts"):
        evaluate_models([str(other)], pairs, out=tmp_path / "scores", task="rte")


def test_a_head_is_for_our_encoder_and_for_tasks_with_labels(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a 't5' model; --answer head requires Z-Code"):
        train(data, tmp_path / "run", start=str(save("t5", tmp_path / "t5")))
    sources = NamedPairs(task="rte", data=str(data)).sources()
    run = resolve_run("zcodepp-micro", answer="head")
    with pytest.raises(UserError, match="name the --task"):
        finetune(
            run,
            PairRequest(
                sources=NamedPairs(data=str(sources.train.source)).sources(),
                out=tmp_path / "no",
                answer="head",
            ),
        )
    assert not (tmp_path / "no").exists()
