"""Does it help to delete parts of sentences before the choice? By kind of part, at equal words.

    python -m benchmarks.shorter --cache FOLDER [--sets NAME ...]

FOLDER is that of `benchmarks.choice_rules`. A part goes only without a number, a negation, a condition or a hedge in
it. The choice is that of `precis_text.selection`, with the same scores, on the shorter units. Printed is the difference
to whole sentences over the documents of all sets, in the mean of ROUGE-1, ROUGE-2 and ROUGE-Lsum. It has a 95% interval
(paired bootstrap over documents, 1,000 samples, seed 0). The share of documents whose extract changes follows. The
rules are for English.
"""

import argparse
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.choice_rules import Known, known_sets, scores_of, today
from benchmarks.equal_words import difference
from benchmarks.scored_units import load

KEPT = re.compile(
    r"\b(?:not?|never|none|without|unless|if|except|only|may|might|could|would|should|must|cannot|probably|perhaps|"
    r"likely|possibly|about|roughly|approximately|almost|but|however|until|when|where|because|although)\b|n't|\d",
    re.IGNORECASE,
)
BRACKETS = re.compile(r"\s*\([^()]{1,120}\)")
OPENER = re.compile(
    r"In (?:this|the present) (?:paper|work|article|study|post|section|chapter|report|tutorial|topic|guide|episode|"
    r"lesson|document|newsletter), (?=(?:we|I|the|you|our)\b)",
    re.IGNORECASE,
)
NAMED = re.compile(r"[^\s:.!?][^:\n.!?]{0,39}:\s")
SPEECH = re.compile(
    r"(?:(?:well|so|okay|ok|yeah|um|uh|oh|hmm|alright|all right|you know|I mean),?\s+)+(?=\w+ \w+ \w+)",
    re.IGNORECASE,
)
FILLER = re.compile(r",? ?\b(?:um+|uh+|erm?|hmm+|you know|I mean)\b,? ", re.IGNORECASE)
SPEAKER = re.compile(
    r", (?:(?:he|she|they|[A-Z]\w+(?: [A-Z]\w+){0,3}) (?:said|says|added)|according to [^,.]{1,60})\.$"
)
APPOSITION = re.compile(
    r"(?<=[a-z]), (?:a|an|the) [^,;:().]{3,60},(?= (?:is|was|has|had|will|said|says|are|were|have|can)\b)"
)
RELATIVE = re.compile(r", (?:which|who) [^,;:().]{3,80},(?= )")
FEWEST = 3  # words that must be left


def without(pattern: re.Pattern[str]) -> Callable[[str], str]:
    """Return what deletes the parts that a pattern finds and that say nothing which must stay."""

    def shortened(text: str) -> str:
        return pattern.sub(lambda found: found.group() if KEPT.search(found.group()) else "", text)

    return shortened


def opener(text: str) -> str:
    rest = OPENER.sub("", text, count=1) if OPENER.match(text) else text
    return rest[:1].upper() + rest[1:]


def speech(text: str) -> str:
    """Delete the words that open a turn, and fillers."""
    named = NAMED.match(text)
    start = named.end() if named else 0
    found = SPEECH.match(text, start)
    if found:
        rest = text[found.end() :]
        text = text[:start] + rest[:1].upper() + rest[1:]
    return FILLER.sub(" ", text)


def attribution(text: str) -> str:
    return SPEAKER.sub(".", text)


KINDS: dict[str, list[Callable[[str], str]]] = {
    "brackets": [without(BRACKETS)],
    "in this paper, we": [opener],
    "words that open a turn, fillers": [speech],
    "who said it, at the end": [attribution],
    "appositions": [without(APPOSITION)],
    "which, who": [without(RELATIVE)],
}
KINDS["all but who said it"] = [
    each for name, own in KINDS.items() if name != "who said it, at the end" for each in own
]


def shorter(known: Known, rules: list[Callable[[str], str]]) -> Known:
    """Return a document with shorter units; a unit of which too little is left stays whole."""
    units = []
    for unit in known.row.units:
        text = unit.text
        for rule in rules:
            text = rule(text)
        units.append(replace(unit, text=text) if len(text.split()) >= FEWEST else unit)
    return Known(replace(known.row, units=tuple(units)), known.budget)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=(), metavar="NAME")
    asked = parser.parse_args()
    sets = known_sets(load(asked.cache, asked.sets))
    now = scores_of(sets, today)
    print("| deleted | over whole sentences | extracts changed | sets above | sets below |")
    print("|" + " --- |" * 5)
    for kind, rules in KINDS.items():
        short = {name: [shorter(known, rules) for known in rows] for name, rows in sets.items()}
        gains = {name: (own - now[name]).mean(1) for name, own in scores_of(short, today).items()}
        pooled = np.concatenate([*gains.values()])
        above, below = (sum(sign * own.mean() > 0.05 for own in gains.values()) for sign in (1, -1))
        changed = f"{100 * np.mean(pooled != 0):.0f}%"
        print(
            f"| {kind} | {difference(pooled, np.zeros_like(pooled))} | {changed} | {above} | {below} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
