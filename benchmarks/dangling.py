"""Sentences of extracts that are not standalone, counted by kind.

    python -m benchmarks.dangling --data DIR [--limit 30] [--words 80] [--sets NAME ...]

The extracts are those of the choice without a model (`precis_text.central_choice`), so that the rules of
`precis_text.selection` are measured and not the scorer. Printed is for each set and kind the percent of the chosen
units, and one example of each kind. The patterns are for English. They count words and signs, and do not judge meaning.
"""

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.languages import Counted
from precis_experiments.open_sets import EXTENSIONS, SETS, pairs_of
from precis_text.central_choice import central_scores
from precis_text.length import make_length
from precis_text.selection import choose
from precis_text.units import TextUnit, extraction_units

KINDS = {
    "points back": (
        r"^(?:this|these|those|such|it|he|she|they|his|her|their|its|however|but|thus|therefore|also|so|both)\b"
    ),
    "points back inside": (
        r"\b(?:the (?:former|latter|above|following)|as (?:above|follows|shown|mentioned))\b|\b(?:above|below)\.$"
    ),
    "answer": r"^(?:yes|no|yeah|right|okay|ok|sure|well|exactly|true|because)\b",
    "question": r"\?[\"'”’)]*$",
    "colon": r"[:：]$",
    "filler": r"\b(?:um|uh|uhm|er|erm|hmm|mm-hmm|you know|i mean|sort of|kind of)\b",
    "transcriber's sign": r"\{\w+\}|\[(?:laugh\w*|inaudible|noise|music|applause|crosstalk|\w*sound\w*)\]|<\w+>",
    "reference number": r"\[\d+(?:[,–-] ?\d+)*\]|\(\d{1,3}(?:[,–-] ?\d{1,3})+\)",
    "list number": r"^\(?(?:\d{1,2}|[a-zA-Z])[.)]\s",
    "broken formula": r"\$[^$]*$|[=+∑∫≤≥] *[.,;]|\\[a-z]+\b|\(\s*[,;)]",
}
_PATTERNS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in KINDS.items()}
MEASURED = (
    "science_abstract",
    "crs_reports",
    "web_posts",
    "optech_talk",
    "ami_minutes",
    "ccby_docs",
    "mts_dialog",
)


def kinds_of(chosen: Sequence[TextUnit], before: Sequence[TextUnit | None]) -> Iterator[tuple[str, str]]:
    """Yield each kind that a chosen unit has, with its text.

    A unit whose neighbour before it is chosen too does not point back. One with a neighbour after it does not announce.

    Args:
        before: the unit before each chosen one, if that is chosen too; else None.
    """
    for place, unit in enumerate(chosen):
        text = unit.text.removeprefix(f"{unit.speaker}:").strip()
        joined_before = before[place] is not None
        joined_after = place + 1 < len(chosen) and before[place + 1] is not None
        for kind, pattern in _PATTERNS.items():
            excused = (
                joined_before if kind in ("points back", "points back inside", "answer") else joined_after
            )
            excused &= kind in ("points back", "points back inside", "answer", "question", "colon")
            if not excused and pattern.search(text):
                yield kind, text


def measure(documents: Sequence[str], words: int) -> tuple[Counter[str], int, dict[str, str]]:
    """Return the count of each kind, the number of chosen units, and an example of each kind."""
    counts, total, examples = Counter[str](), 0, dict[str, str]()
    length = make_length(words=words, short="write")
    for document in documents:
        units = extraction_units(document)
        if not units:
            continue
        places = choose(Counted(units), central_scores(units), length, words=words)
        chosen = [units[place] for place in places]
        before = [units[place - 1] if place - 1 in places else None for place in places]
        total += len(chosen)
        for kind, text in kinds_of(chosen, before):
            counts[kind] += 1
            examples.setdefault(kind, text)
    return counts, total, examples


def main() -> int:
    """Print the table and the examples."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=30)
    parser.add_argument("--words", type=int, default=80)
    parser.add_argument("--sets", nargs="*", default=MEASURED, metavar="NAME")
    asked = parser.parse_args()
    print(
        f"| set | units | {' | '.join(f'{kind} %' for kind in KINDS)} |",
        "|" + " --- |" * (2 + len(KINDS)),
        sep="\n",
    )
    shown: dict[str, str] = {}
    for each in (*SETS, *EXTENSIONS):
        if each.name in asked.sets:
            rows = [*pairs_of(each, asked.data / each.place, "dev")]
            random.Random(0).shuffle(rows)
            counts, total, examples = measure(
                [str(row["document"]) for row in rows[: asked.limit]], asked.words
            )
            cells = [f"{100 * counts[kind] / max(total, 1):.0f}" for kind in KINDS]
            print(f"| {each.name} | {total} | {' | '.join(cells)} |", flush=True)
            shown = examples | shown
    for kind, text in shown.items():
        print(f"{kind}: {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
