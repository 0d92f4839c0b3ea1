"""Teaching a model to choose: the encoder stays, what was read is kept, and the wanted sentence is learnt."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import precis
from precis.data.pairs.pair import Pair
from precis.extract import unit_encoder
from precis.extract.extractor_opening import open_extractor
from precis.extract.unit_tokens import UnitTokenizer
from precis.generation.model_loader import load_model
from precis.generation.model_location import locate
from precis.phases.train import extractor_training
from precis.phases.train.extractor_training import UNITS_FOLDER, train_extractor
from precis.recipes.run_plan import ExtractPlan, ScorerShape
from precis.training import Trained, TrainSettings
from precis.training.callbacks import METRICS_FILE, read_metrics
from precis_text.errors import UserError
from tests.tiny_models import save

PLAN = ExtractPlan(
    scorer=ScorerShape(width=16, layers=1, heads=2, dropout=0.0),
    train=TrainSettings(steps=90, learning_rate=1e-2, warmup_steps=2, log_every=10),
    batch_units=64,
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("zcodepp", tmp_path_factory.mktemp("models") / "tiny")


def write(folder: Path) -> Path:
    """Pairs whose summary is the sentence with a question mark."""
    folder.mkdir()
    for split, count in (("train", 40), ("dev", 8)):
        rows = []
        for number in range(count):
            sentences = ["Ann sings in the hall.", "Bob brings a mail.", "It rains."]
            sentences.insert(number % 4, "Is the story long?")
            rows.append({"document": " ".join(sentences), "summary": "Is the story long?"})
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def done(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    place = tmp_path_factory.mktemp("extract")
    return train_extractor(PLAN, tasks=[str(write(place / "asks"))], start=str(model), out=place / "run")


def test_the_scorer_learns_which_sentence_is_wanted(done: Trained) -> None:
    assert done.result.metrics["first"] == 1
    extractor = open_extractor(done.folder / "model")
    (summary,) = extractor.summarize(["Ann sings in the hall. It rains. Is the story long?"], sentences=1)
    assert summary.text == "Is the story long?"


def test_the_model_is_as_it_was_and_chooses_unless_told(done: Trained, model: Path) -> None:
    before, after = load_model(model).model.state_dict(), load_model(done.folder / "model").model.state_dict()
    assert all(torch.equal(weight, after[name]) for name, weight in before.items())
    assert locate(done.folder / "model").use.modes == ("extract", "abstract")


def test_what_was_read_is_kept_and_read_once(done: Trained, model: Path) -> None:
    told: list[str] = []
    again = train_extractor(
        PLAN, tasks=[str(done.folder.parent / "asks")], start=str(model), out=done.folder, notify=told.append
    )
    assert again.result.best_step == done.result.best_step
    assert not any("through the encoder" in line for line in told)


@pytest.mark.long
def test_damaged_states_are_read_again(done: Trained, model: Path, tmp_path: Path) -> None:
    data = str(done.folder.parent / "asks")
    first = train_extractor(PLAN, tasks=[data], start=str(model), out=tmp_path / "run")
    file = tmp_path / "run" / UNITS_FOLDER / "asks-train" / "vectors.npy"
    content = bytearray(file.read_bytes())
    content[-3] ^= 255
    file.write_bytes(content)
    told: list[str] = []
    again = train_extractor(PLAN, tasks=[data], start=str(model), out=tmp_path / "run", notify=told.append)
    assert any("train documents through the encoder" in line for line in told)
    assert again.result.best_step == first.result.best_step


def test_documents_without_sentences_are_no_training_set(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = UnitTokenizer(lambda texts: [[] for _ in texts], lambda _: "", unknown=None)
    monkeypatch.setattr(unit_encoder, "unit_tokenizer", lambda *_, **__: nothing)
    with pytest.raises(UserError, match="has a sentence that the model can read"):
        train_extractor(PLAN, tasks=[str(write(tmp_path / "asks"))], start=str(model), out=tmp_path / "run")


def test_pairs_with_columns_of_their_own_are_read_by_their_names(model: Path, tmp_path: Path) -> None:
    rows = [
        ("Ann sings in the hall. Is the story long?", "Is the story long?"),
        ("It rains. Is it late?", "Is it late?"),
    ]
    lines = [f"{body},{title}" for body, title in rows * 20]
    (tmp_path / "posts.csv").write_text("\n".join(["body,title", *lines]))
    small = ["scorer.width=16", "scorer.heads=2"]
    done = precis.train_extractor(
        model,
        str(tmp_path / "posts.csv"),
        out=tmp_path / "run",
        epochs=1,
        settings=small,
        document_column="body",
        summary_column="title",
    )
    assert (done.folder / "model" / "precis.json").is_file()


def test_a_column_without_a_file_of_pairs_is_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="tasks names none; omit them: a task has its own columns"):
        precis.train_extractor(model, "samsum", out=tmp_path / "run", document_column="body")


@pytest.mark.long
def test_few_pairs_get_enough_steps_and_a_short_warmup(model: Path, tmp_path: Path) -> None:
    told: list[str] = []
    small = ["scorer.width=16", "scorer.heads=2", "scorer.layers=1"]
    done = precis.train_extractor(
        model, str(write(tmp_path / "asks")), out=tmp_path / "run", settings=small, notify=told.append
    )
    assert done.result.total_steps == extractor_training.LEAST_STEPS
    rates = [
        row["learning_rate"] for row in read_metrics(done.folder / METRICS_FILE) if row["kind"] == "train"
    ]
    assert rates[0] > max(rates) / 2, "most of the first 50 of 300 steps come after the warm-up"
    assert any("--epochs" in line for line in told)
    assert not any("--steps" in line for line in told)


@pytest.mark.parametrize(("untouched", "warns"), [(60.0, True), (20.0, False)])
def test_a_better_untouched_model_is_named(
    untouched: float, warns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Says:
        def __init__(self, text: str) -> None:
            self.text = text

        def stream(self, documents: Sequence[object], **_: object) -> list[Any]:
            return [self for _ in documents]

    told: list[str] = []
    before = "Ann sings in" if untouched > 50 else "none"
    texts = {"default": before, "made": "Ann"}
    monkeypatch.setattr(extractor_training, "open_extractor", lambda model: Says(texts[str(model)]))
    pair = Pair(document="Ann sings in the hall.", summary="Ann sings in the hall.")
    extractor_training._tell_if_worse("default", Path("made"), [pair], told.append)
    (line,) = told
    assert line.startswith("warning: the untouched model chooses better: ROUGE-L") == warns
    assert ("precis evaluate --model default --model made" in line) != warns
