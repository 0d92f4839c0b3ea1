"""Count test pairs whose document or reference is in the training set, on standard output.

    python -m experiments.scripts.shared_documents --data DIR [--tasks NAME ...]

Texts are compared word by word, without case and punctuation.
"""

import argparse
from pathlib import Path

from precis.data.pairs.pair import Pair
from precis.phases.data.run_pairs import NamedPairs
from precis_text.words import unicode_words

TASKS = ("samsum", "dialogsum", "e2e", "webnlg")


def words_of(text: str) -> tuple[str, ...]:
    return tuple(unicode_words(text.lower()))


def shared(train: list[Pair], test: list[Pair]) -> tuple[int, int, int]:
    """Return how many test pairs share their document, a reference, and both with a training pair."""
    documents = {words_of(pair.document) for pair in train}
    summaries = {words_of(text) for pair in train for text in pair.all_references}
    has_document = [words_of(pair.document) in documents for pair in test]
    has_summary = [any(words_of(text) in summaries for text in pair.all_references) for pair in test]
    both = sum(one and other for one, other in zip(has_document, has_summary, strict=True))
    return sum(has_document), sum(has_summary), both


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of all data sets")
    parser.add_argument("--tasks", nargs="*", default=TASKS)
    asked = parser.parse_args()
    print("| set | test pairs | document in training | reference in training | both |")
    print("| --- | --- | --- | --- | --- |")
    for name in asked.tasks:
        train = list(
            NamedPairs(task=name, data=str(asked.data), skip_bad=True).sources().train.read(skip_bad=True)
        )
        test = list(NamedPairs(task=name, data=str(asked.data)).part().read(skip_bad=True))
        counts = " | ".join(f"{count:,}" for count in shared(train, test))
        print(f"| {name} | {len(test):,} | {counts} |", flush=True)


if __name__ == "__main__":
    main()
