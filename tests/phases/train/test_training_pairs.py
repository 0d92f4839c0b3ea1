"""Documents of the validation set are found among the training pairs, and counted."""

from precis.data.pairs.pair import Pair
from precis.phases.data.run_pairs import Leaks
from precis_text.control_characters import SEPARATOR


def count(train: list[str], dev: list[str]) -> int:
    leaks = Leaks([Pair(text, "x") for text in dev])
    assert [pair.document for pair in leaks.watch(Pair(text, "y") for text in train)] == train
    return leaks.count


def test_each_validation_pair_with_a_training_document_counts() -> None:
    assert count(["Ann sings.", "Bob reads."], ["Ann sings.", "Ann  sings.\n", "Eve runs."]) == 2
    assert count(["Ann sings."], ["ann sings."]) == 0


def test_of_two_parts_the_passage_counts_and_not_the_answer() -> None:
    assert count([f"Paris {SEPARATOR} The capital."], [f"London {SEPARATOR} The capital."]) == 1
