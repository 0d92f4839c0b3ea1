"""ROUGE of the model in the box with and without each factor of `precis_text.unit_worth`, and without pauses left out.

    python -m benchmarks.worth_factors --data DIR [--limit 60] [--sets NAME ...]

The documents, words and sets are those of `benchmarks.equal_words`. The measure is the mean of ROUGE-1, ROUGE-2 and
ROUGE-Lsum. Printed is for each factor, switched off: the mean over documents; the paired difference of the present
choice over it, with a 95% interval (bootstrap over documents, 1,000 samples, seed 0); the sets on which the present
choice is above and below by more than 0.005; and the share of extracts that change.
"""

import argparse
import random
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.equal_words import GENEROUS, MEASURES, ONLY_MEASURED, ROUGE, difference
from precis.generation.model_location import default_model
from precis_experiments.open_sets import EXTENSIONS, SETS, OpenSet, pairs_of
from precis_text import selection, unit_worth
from precis_text.citations import Citations
from precis_text.control_characters import main_part, remove_marks
from precis_text.length import first_words, make_length
from precis_text.pauses import Pauses
from precis_text.selection import choose, join_units
from precis_text.unit_ranker import UnitRanker
from precis_text.units import TextUnit, extraction_units
from precis_text.words import length_in_words

OFF: dict[str, tuple[Any, str, object]] = {
    "few content words": (unit_worth, "_CONTENT", (1, 1)),
    "breaks off, or was not heard": (unit_worth, "_BROKEN", 1.0),
    "lacks an end mark": (unit_worth, "_UNENDED", 1.0),
    "mentions these samples": (unit_worth, "_POINTS", 1.0),
    "is standalone": (unit_worth, "_STANDALONE", (0, 0)),
    "a question": (unit_worth, "_QUESTION", 1.0),
    "fewer than five words": (unit_worth, "_SHORT", 1.0),
    "only greets, thanks or agrees": (selection, "is_courtesy", lambda _: False),
    "leads through a meeting": (unit_worth, "_LEADS", 1.0),
    "a short answer without its question": (unit_worth, "_ANSWER", 1.0),
    "messages of little worth do not fill": (selection, "_JUNK", 0.0),
    "says a decision": (unit_worth, "_DECISION", 1.0),
    "next to a chosen one of the same turn": (selection, "_IN_TURN", 1.0),
    "repeats three tenths of its word pairs": (selection, "_SAME", 1.0),
    "pauses are left out": (Pauses, "left_out", lambda _, text, **__: text),
    "references are left out": (Citations, "left_out", lambda _, text, **__: text),
}
"""What is switched off, and how: an attribute of a module or class, and its value."""


@dataclass(frozen=True)
class _Read:
    """The part of a document that `choose` reads."""

    units: list[TextUnit]

    @property
    def tokens(self) -> list[int]:
        return [1] * len(self.units)


@contextmanager
def without(name: str | None) -> Iterator[None]:
    """Switch a factor off."""
    with ExitStack() as stack:
        if name is not None:
            stack.enter_context(patch.object(*OFF[name]))
        yield


@dataclass(frozen=True)
class Scored:
    """A document, and the scores of its units for a summary of some words."""

    text: str
    units: list[TextUnit]
    scores: list[float]
    words: int

    @classmethod
    def of(cls, document: str, words: int, ranker: UnitRanker) -> "Scored":
        """Read a document, and score its units."""
        text = remove_marks(main_part(document))
        units = extraction_units(text)
        scores, _ = ranker.scores(units, make_length(words=words).cap)
        return cls(text, units, scores, words)

    def extract(self) -> str:
        """Return the summary, as the product chooses it."""
        length = make_length(words=self.words, short="write")
        chosen = choose(_Read(self.units), self.scores, length, words=self.words)
        return first_words(join_units(self.text, [self.units[place] for place in chosen]), self.words)


def measured(chosen: OpenSet, data: Path, limit: int, ranker: UnitRanker) -> dict[str | None, Any]:
    """Return for each factor switched off, and for none, the extracts of a set and their scores."""
    rows = list(pairs_of(chosen, data / chosen.place, "dev"))
    random.Random(0).shuffle(rows)
    rows = rows[:limit]
    lengths = [length_in_words(text) for row in rows for text in row["summaries"]]
    words = round(GENEROUS * float(np.mean(lengths)))
    documents, references = [str(row["document"]) for row in rows], [list(row["summaries"]) for row in rows]
    scored = [Scored.of(document, words, ranker) for document in documents]
    found: dict[str | None, Any] = {}
    for name in (None, *OFF):
        with without(name):
            is_read_anew = name is not None and OFF[name][0] in (Pauses, Citations)
            read = [Scored.of(each, words, ranker) for each in documents] if is_read_anew else scored
            texts = [each.extract() for each in read]
        scores = ROUGE.score(texts, references)
        found[name] = texts, np.mean([scores[kind] for kind in MEASURES], axis=0)
    return found


def table(sets: list[dict[str | None, Any]]) -> str:
    """Return a row for each factor."""
    heads = [
        "switched off",
        "score",
        "present choice over it",
        "sets above",
        "sets below",
        "extracts changed",
    ]
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    for name in (None, *OFF):
        ours, theirs = (np.concatenate([each[key][1] for each in sets]) for key in (None, name))
        moved = [float((each[None][1] - each[name][1]).mean()) for each in sets]
        pairs = [pair for each in sets for pair in zip(each[None][0], each[name][0], strict=True)]
        changed = 100 * np.mean([one != other for one, other in pairs])
        counts = [sum(value > 0.005 for value in moved), sum(value < -0.005 for value in moved)]
        cells = [f"{theirs.mean():.2f}", difference(ours, theirs), *map(str, counts), f"{changed:.0f}%"]
        lines.append(f"| {' | '.join([name or 'nothing', *cells])} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--sets", nargs="*", default=(), metavar="NAME")
    asked = parser.parse_args()
    ranker, sets = UnitRanker.load(default_model()), []
    for chosen in (*SETS, *EXTENSIONS, *ONLY_MEASURED):
        if (not asked.sets or chosen.name in asked.sets) and (asked.data / chosen.place).is_dir():
            sets.append(measured(chosen, asked.data, asked.limit, ranker))
            print(chosen.name, file=sys.stderr, flush=True)
    print(table(sets))


if __name__ == "__main__":
    main()
