"""Test pairs that a model may have seen in training are counted by document and by reference."""

from experiments.scripts.shared_documents import shared
from precis.data.pairs.pair import Pair


def pair(document: str, *summaries: str) -> Pair:
    return Pair(document=document, summary=summaries[0], references=summaries)


def test_documents_and_references_count_apart_and_case_and_marks_do_not_matter() -> None:
    train = [pair("Ann sings.", "She sings."), pair("Bob rests", "He rests.", "Bob is tired.")]
    test = [
        pair("ann sings!", "Ann sings a song."),
        pair("It rains.", "Nobody comes.", "bob is tired"),
        pair("Bob rests.", "He rests."),
        pair("Ann sings loudly.", "Loud."),
    ]
    assert shared(train, test) == (2, 2, 1)
