"""Every trained model carries a card and its licence, and the card holds no folder of the machine."""

import json
import re
from pathlib import Path

import pytest

from precis.generation.model_location import default_model
from precis.generation.model_metadata import PACKAGES, ModelUse, load_use
from precis.phases.train.model_card import CardFacts, licence_of, model_card
from precis.storage.seal import check_seal
from tests.tiny_models import save_llama

SOURCES = {"train": {"source": "/home/ann/secret/posts.csv", "split": None}, "dev": None}
SCORES = {"loss": 2.5, "rougeL": 31.25, "rougeL_low": 28.0, "rougeL_high": 34.5, "rougeL_lead": 12.0}


def card(**asked: object) -> str:
    record = {"run": {"batch_size": 8, "train": {"learning_rate": 3e-4}}, "sources": SOURCES}
    facts = {"name": "first", "kind": "model", "start": None, "licence": "", "record": record, "step": 40}
    return model_card(CardFacts(**{"scores": SCORES, **facts, **asked}))  # type: ignore[arg-type]


def front(text: str) -> dict[str, object]:
    matter = text.split("---\n")[1]
    return {name: json.loads(value) for name, value in (line.split(": ", 1) for line in matter.splitlines())}


def test_a_card_names_base_licence_data_settings_and_scores_with_intervals() -> None:
    text = card(start="hub:facebook/bart-base", licence="cc-by-sa-4.0")
    assert front(text) == {
        "license": "cc-by-sa-4.0",
        "base_model": "facebook/bart-base",
        "library_name": "transformers",
        "pipeline_tag": "summarization",
        "tags": ["precis", "summarization"],
    }
    assert "training: posts.csv" in text
    assert "train.learning_rate = 0.0003" in text
    assert "| rougeL | 31.250 | 28.0 to 34.5 |" in text
    assert "rougeL_lead" not in text
    assert "at step 40" in text
    assert "precis summarize FILE --model FOLDER" in text


def test_a_card_holds_no_folder_of_the_machine() -> None:
    text = card(start=str(default_model()), licence="cc-by-sa-4.0")
    assert "the small model that comes with precis" in text
    assert "/home" not in text
    assert str(default_model()) not in text
    assert "base_model" not in front(text)  # the hub refuses a path


def test_a_licence_that_is_not_known_is_left_to_the_user() -> None:
    text = card()
    assert "license" not in front(text)
    assert "add a `license:` line above" in text


def test_the_model_in_the_box_carries_its_licence_whatever_its_name() -> None:
    assert licence_of("default") == licence_of(str(default_model())) == "cc-by-sa-4.0"
    assert licence_of(None) == licence_of("hub:facebook/bart-base") == ""


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scorer on the model in the box, trained for a step on two pairs."""
    import precis

    place = tmp_path_factory.mktemp("licence")
    rows = [
        {"document": f"Ann sings in hall {number}. Is it late?", "summary": "Is it late?"}
        for number in range(30)
    ]
    (place / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    small = ["scorer.width=16", "scorer.heads=2"]
    return precis.train_extractor(
        "default", str(place / "pairs.jsonl"), out=place / "run", epochs=1, settings=small
    ).folder


@pytest.mark.long
def test_a_model_that_began_as_the_one_in_the_box_is_under_its_licence_in_card_and_metadata(
    chosen: Path,
) -> None:
    text = (chosen / "model" / "README.md").read_text()
    assert front(text)["license"] == "cc-by-sa-4.0"
    assert load_use(chosen / "model").licence == "cc-by-sa-4.0"
    assert "training: pairs.jsonl" in text
    assert re.search(r"\| loss \| \d+\.\d+ \|", text)
    assert "README.md" in check_seal(chosen / "model")


def test_a_model_of_a_package_carries_its_licence_and_is_not_on_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "packaged_writer_of_a_test"
    save_llama(package / "weights")
    (package / "__init__.py").write_text("")
    ModelUse(licence="apache-2.0").save(package / "weights")
    monkeypatch.setitem(PACKAGES, "writer", "packaged_writer_of_a_test")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert licence_of("writer") == "apache-2.0"
    text = card(start="writer", kind="adapter", licence="apache-2.0")
    assert "base_model" not in front(text)
    assert "An adapter of the model `writer` of the package packaged-writer-of-a-test" in text
