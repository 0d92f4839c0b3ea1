"""The choice of sentences in languages other than English, compared with LEAD at the same number of words.

    python -m benchmarks.languages --data DIR [--model FOLDER] [--no-model] [--limit 40] [--sets NAME ...] [--out FILE]

The words of a set and language are the mean of its references, times 1.15. LEAD takes the first units except
headings. "trained" are the scores of the model, which was trained on all of these languages but Italian, Dutch,
Polish, Portuguese and Turkish; --no-model leaves it out. "central" are the scores of
`precis_text.central_choice` in the same choice. "covering" adds the words that a sentence adds to the chosen ones, and
subtracts its likeness to them (`benchmarks.choice_rules`). Printed is ROUGE-1, ROUGE-2 and
ROUGE-Lsum on Unicode words without stems, and the difference to LEAD with a 95% interval: paired bootstrap over
documents, 1,000 samples, seed 0. Sets without a dev part are measured on their train part, on which nothing of the
included model was trained.
"""

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.choice_rules import RULES, Known, choice
from benchmarks.equal_words import GENEROUS, MEASURES, difference, lead
from benchmarks.scored_units import Scored
from precis.evaluation.rouge import Rouge
from precis.extract.extractor import Extractor
from precis.extract.extractor_opening import open_extractor
from precis.generation.model_location import default_model
from precis_experiments.open_sets import OTHER_LANGUAGES, OpenSet, pairs_of
from precis_text.central_choice import central_scores
from precis_text.length import first_words, make_length
from precis_text.selection import choose, join_units
from precis_text.units import TextUnit, extraction_units
from precis_text.words import length_in_words

ROUGE = Rouge(types=MEASURES, tokenizer="unicode", stemmer=False)
_PARTS = {"opensource_guide_multi": "train"}
_FEWEST = 5  # documents of a language that is measured


MEASURED: Sequence[OpenSet] = (
    *OTHER_LANGUAGES,
    replace(OTHER_LANGUAGES[-1], name="opensource_guide_multi", place="open_pairs/opensource_guide_multi"),
)


@dataclass(frozen=True)
class Counted:
    """The units of a document for `choose`; a cap in words needs no tokens."""

    units: Sequence[TextUnit]

    @property
    def tokens(self) -> list[int]:
        return [1] * len(self.units)


def central(document: str, words: int) -> str:
    """Return the extract by the central scores."""
    units = extraction_units(document)
    length = make_length(words=words, short="write")
    chosen = [units[place] for place in choose(Counted(units), central_scores(units), length, words=words)]
    text = join_units(document, chosen)
    return first_words(text, words)


def covering(document: str, words: int) -> str:
    """Return the extract by the central scores and a rule that chooses sets."""
    units = tuple(extraction_units(document))
    scores = tuple(central_scores(units))
    known = Known(Scored(document, (), units, (1,) * len(units), scores, float(words)), words)
    return known.text(choice(known, RULES["coverage and redundancy"]))


def texts_of(extractor: Extractor | None, documents: Sequence[str], words: int) -> dict[str, list[str]]:
    """Return the summaries of each system; "trained" needs the extractor."""
    found = {
        "LEAD": [lead(document, words) for document in documents],
        "central": [central(document, words) for document in documents],
        "covering": [covering(document, words) for document in documents],
    }
    if extractor is not None:
        made = extractor.summarize(documents, words=words, short="write")
        found["trained"] = [summary.text for summary in made]
    return found


def row_of(
    name: str, language: str, rows: Sequence[dict[str, Any]], extractor: Extractor | None
) -> tuple[str, dict[str, Any]]:
    """Return a row of the table, and the scores of each system."""
    references = [row["summaries"] for row in rows]
    words = round(GENEROUS * float(np.mean([length_in_words(text) for own in references for text in own])))
    texts = texts_of(extractor, [str(row["document"]) for row in rows], words)
    scores = {system: ROUGE.score(made, references) for system, made in texts.items()}
    return _line(name, language, len(rows), words, scores), scores


def _line(name: str, language: str, count: int, words: int | str, scores: dict[str, Any]) -> str:
    cells = ["/".join(f"{own[kind].mean():.1f}" for kind in MEASURES) for own in scores.values()]
    for system in [each for each in scores if each != "LEAD"]:
        cells += [difference(scores[system][kind], scores["LEAD"][kind]) for kind in ("rouge1", "rougeLsum")]
    return f"| {' | '.join([name, language, str(count), str(words), *cells])} |"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--no-model", action="store_true")
    parser.add_argument("--limit", type=int, default=40)
    parser.add_argument("--sets", nargs="*", default=(), metavar="NAME")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    extractor = None if asked.no_model else open_extractor(asked.model or default_model())
    if extractor is not None:
        extractor.languages = ()  # the scorer chooses in every language
    pooled: dict[str, list[dict[str, Any]]] = {}
    lines = []
    for chosen in MEASURED:
        if asked.sets and chosen.name not in asked.sets:
            continue
        pairs = [*pairs_of(chosen, asked.data / chosen.place, _PARTS.get(chosen.name, "dev"))]
        random.Random(0).shuffle(pairs)
        for language in sorted({str(row["language"]) for row in pairs} - {"en"}):
            rows = [row for row in pairs if row["language"] == language][: asked.limit]
            if len(rows) < _FEWEST:
                continue
            line, scores = row_of(chosen.name, language, rows, extractor)
            pooled.setdefault(language, []).append(scores)
            lines.append(line)
            print(line, file=sys.stderr, flush=True)
    for language, several in sorted(pooled.items()):
        if len(several) > 1:
            together = {
                system: {kind: np.concatenate([each[system][kind] for each in several]) for kind in MEASURES}
                for system in several[0]
            }
            lines.append(_line("all", language, len(together["LEAD"]["rouge1"]), "", together))
    systems = ["central", "covering"] + ["trained"] * (extractor is not None)
    heads = ["set", "language", "documents", "words", "LEAD", *systems]
    heads += [f"{system} over LEAD, {kind}" for system in systems for kind in ("R-1", "R-Lsum")]
    text = "\n".join([f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads), *lines])
    print(text)
    if asked.out is not None:
        asked.out.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
