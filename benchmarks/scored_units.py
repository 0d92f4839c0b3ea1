"""Documents of all sets with their units and scores, computed once, since the encoder is the slow part.

Rules of the choice are then compared in seconds. The documents are those of `benchmarks.equal_words`, but together at
most 24,000 words of a set, or six documents. The files are pickled: open only those that you made.
"""

import pickle
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.equal_words import GENEROUS, ONLY_MEASURED
from precis.extract.extractor import Extractor
from precis_experiments.open_sets import EXTENSIONS, SETS, OpenSet, pairs_of
from precis_text.control_characters import main_part, remove_marks
from precis_text.units import TextUnit
from precis_text.words import length_in_words

LONGEST = 15_000  # words of a document
MOST_WORDS = 24_000  # of the documents of a set together, unless six documents have more
FEWEST = 6


@dataclass(frozen=True)
class Scored:
    """A document as `precis_text.selection.choose` reads it, with its references."""

    document: str
    references: tuple[str, ...]
    units: tuple[TextUnit, ...]
    tokens: tuple[int, ...]
    scores: tuple[float, ...]
    words: float


@dataclass(frozen=True)
class ScoredSet:
    """Documents of a set, with the words that its summaries may have."""

    name: str
    budget: int
    rows: tuple[Scored, ...]


def rows_of(chosen: OpenSet, source: Path, limit: int) -> list[dict[str, Any]]:
    """Return the dev pairs that are measured."""
    rows = list(pairs_of(chosen, source, "dev"))
    random.Random(0).shuffle(rows)
    rows = [row for row in rows[: 3 * limit] if len(str(row["document"]).split()) <= LONGEST][:limit]
    words = sum(len(str(row["document"]).split()) for row in rows)
    return rows[: max(FEWEST, len(rows) * MOST_WORDS // max(words, MOST_WORDS))]


def scored(extractor: Extractor, rows: Sequence[dict[str, Any]]) -> Iterator[Scored]:
    """Yield the documents with the scores of their units, except those without known tokens."""
    for row in rows:
        document = remove_marks(main_part(str(row["document"])))
        (tokens,) = extractor.tokens.tokenize([document])
        if tokens is None:
            continue
        (read,) = extractor.read([tokens])
        (found,) = extractor.scores([read])
        yield Scored(
            document, tuple(row["summaries"]), read.units, read.tokens, tuple(found.units), found.words
        )


def load(cache: Path, only: Sequence[str] = ()) -> list[ScoredSet]:
    """Return the sets that were scored.

    Args:
        only: names of sets; if empty, all.
    """
    names = [each.name for each in (*SETS, *EXTENSIONS, *ONLY_MEASURED) if not only or each.name in only]
    files = [cache / f"{name}.dev" for name in names]
    return [pickle.loads(file.read_bytes()) for file in files if file.is_file()]


def fill(cache: Path, data: Path, extractor: Extractor, *, limit: int, only: Sequence[str] = ()) -> None:
    """Score the documents of all sets that are there and not yet scored.

    Args:
        only: names of sets; if empty, all.
    """
    cache.mkdir(parents=True, exist_ok=True)
    for chosen in (*SETS, *EXTENSIONS, *ONLY_MEASURED):
        file = cache / f"{chosen.name}.dev"
        is_there = (data / chosen.place).is_dir()
        if file.exists() or not is_there or (only and chosen.name not in only):
            continue
        rows = rows_of(chosen, data / chosen.place, limit)
        words = [length_in_words(text) for row in rows for text in row["summaries"]]
        budget = round(GENEROUS * float(np.mean(words)))
        whole = ScoredSet(chosen.name, budget, tuple(scored(extractor, rows)))
        file.write_bytes(pickle.dumps(whole))
        print(chosen.name, budget, len(whole.rows), file=sys.stderr, flush=True)
