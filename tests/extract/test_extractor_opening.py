"""The passages that a writer reads: of the default model where it is installed and knows the language."""

import pytest

from precis.extract import extractor_opening as module
from precis.extract.extractor_opening import passage_choice
from precis.generation.writers.writer_input import by_centrality

ENGLISH = (
    "The council met on Monday evening. It rained. It voted to repair the old bridge before winter. "
    "The mayor thanked all members for their work. Nobody spoke against the plan of the council."
)
GERMAN = "Der Rat hat sich am Montag getroffen. Es hat geregnet. Der Rat will die alte Brücke reparieren."


def test_without_the_default_model_the_most_central_passages_are_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "has_default_model", lambda: False)
    assert passage_choice() is by_centrality


def test_with_the_default_model_it_chooses_those_of_english_documents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "has_default_model", lambda: True)
    monkeypatch.setattr(module, "by_centrality", lambda document, words: [-1])
    choose = passage_choice()
    found = choose(ENGLISH, 20)
    assert found
    assert all(start == 0 or ENGLISH[start - 2 : start] == ". " for start in found)
    assert choose(GERMAN, 20) == [-1]
    assert choose(" \n", 20) == []
