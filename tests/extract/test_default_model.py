"""A summary in one line, with the model that comes with precis or with another."""

from pathlib import Path

import pytest

from precis import summarize
from precis.extract import default_model as module
from precis.extract.default_model import default_model
from precis.generation.model_loader import load_model, model_use
from precis_text.errors import UserError
from precis_text.words import length_in_words
from tests.tiny_models import save

TEXT = (
    "The council met on Monday evening. It voted to repair the old bridge before winter. "
    "The work will cost 40,000 crowns and begins in May. Two members were absent."
)


def test_the_default_model_chooses_sentences_and_says_that_it_cannot_write() -> None:
    assert model_use(default_model()).modes == ("extract",)
    with pytest.raises(UserError, match="not trained to write"):
        summarize(TEXT, mode="abstract")


def test_its_summaries_are_sentences_of_the_text_within_the_cap() -> None:
    summary = summarize(TEXT, words=20)
    assert 0 < length_in_words(summary) <= 20
    assert summary in TEXT


def test_it_is_whole_and_small() -> None:
    load_model(default_model())
    assert sum(file.stat().st_size for file in default_model().iterdir()) < 40_000_000


def test_another_model_can_be_named(tmp_path: Path) -> None:
    assert summarize(TEXT, words=200, model=save("bart", tmp_path / "tiny")) == TEXT


def test_without_its_package_the_way_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACKAGE", "not_there_at_all")
    with pytest.raises(UserError, match=r"pip install \./model"):
        summarize(TEXT)
