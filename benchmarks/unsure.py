"""Can a note say "the main point may be missing", and be right as often as it claims, on documents of another kind?

    python -m benchmarks.unsure --cache FOLDER [--sets NAME ...]

FOLDER is that of `benchmarks.choice_rules`. No length is requested. The main point is missing if the
extract has less than a quarter of the content words (stems) of the first sentence of the reference; with several
references the best one counts. A logistic regression (ridge) reads nine numbers of the extract and its scores. It is
trained on all domains but one, and made monotone there by isotonic regression. Printed are, for the domain left out,
how often it says so by sixths, and how well it ranks: the area under the ROC curve. Then the same with one half of the
documents of each set left out. Intervals: bootstrap over documents, 1,000 samples, seed 0.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.choice_rules import Floats, Known, domain_of, known_sets
from benchmarks.equal_words import ROUGE
from benchmarks.scored_units import load
from precis_text.language import languages
from precis_text.length import make_length
from precis_text.selection import choose
from precis_text.sentences import split_sentences

MISSING = 0.25  # share of the words of the main point below which it is missing
RIDGE = 3.0
GROUPS = 6
NOTED = 0.5  # least probability of a note


def content(text: str) -> set[str]:
    """Return the stems that carry content."""
    idle = languages()["en"].function
    return {word for word in ROUGE.tokenize(text) if len(word) > 2 and word not in idle}


def shared(text: str, references: tuple[str, ...]) -> float:
    """Return the largest share of a reference's first sentence that a text has."""
    firsts = [content(split_sentences(reference)[0]) for reference in references if reference.strip()]
    return max((len(first & content(text)) / len(first) for first in firsts if first), default=1.0)


def facts(known: Known) -> tuple[list[float], bool]:
    """Return the numbers of a document's extract, and whether the main point is missing."""
    row = known.row
    places = choose(row, row.scores, make_length(short="write"), words=row.words)
    worth = np.array(known.worth)
    share = worth / worth.sum()
    best = np.sort(worth)[::-1]
    numbers = [
        np.log1p(len(worth)),
        best[0],
        best[0] - best[min(1, len(best) - 1)],
        worth[places].mean(),
        share[places].sum(),
        -(share * np.log(share + 1e-9)).sum(),
        float(any(unit.speaker for unit in row.units)),
        known.early[places].mean(),
        known.central[places].mean(),
    ]
    text = " ".join(row.units[place].text for place in places)
    return [float(number) for number in numbers], shared(text, row.references) < MISSING


def logistic(read: Floats, missing: Floats) -> Floats:
    """Return the weights of a ridge logistic regression, the constant first (Newton's method)."""
    rows = np.c_[np.ones(len(read)), read]
    weights = np.zeros(rows.shape[1])
    ridge = RIDGE * np.eye(len(weights))
    ridge[0, 0] = 1e-6
    for _ in range(30):
        said = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (missing - said) - ridge @ weights
        weights = weights + np.linalg.solve((rows * (said * (1 - said))[:, None]).T @ rows + ridge, slope)
    return weights


def isotonic(order: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return the knots of the rising function of least squares (pool adjacent violators)."""
    places = np.argsort(order, kind="stable")
    blocks: list[list[float]] = []  # mean, number, first knot
    for place in places:
        blocks.append([float(values[place]), 1.0, float(order[place])])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            mean, number, _ = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + mean * number) / (last[1] + number)
            last[1] += number
    return np.array([block[2] for block in blocks]), np.array([block[0] for block in blocks])


def probabilities(read: Floats, missing: Floats, train: NDArray[np.bool_], test: NDArray[np.bool_]) -> Floats:
    """Return what a model of the train documents says of the test documents."""
    scaled = (read - read[train].mean(0)) / (read[train].std(0) + 1e-9)
    weights = logistic(scaled[train], missing[train])
    ranks = np.c_[np.ones(len(read)), scaled] @ weights
    knots, heights = isotonic(ranks[train], missing[train])
    return (
        heights[np.clip(np.searchsorted(knots, ranks[test], side="right") - 1, 0, None)] + 1e-9 * ranks[test]
    )


def area(said: Floats, missing: Floats) -> float:
    """Return the area under the ROC curve."""
    ranks = np.argsort(np.argsort(said)) + 1
    yes = missing.sum()
    return float((ranks[missing > 0].sum() - yes * (yes + 1) / 2) / max(1, yes * (len(missing) - yes)))


def _interval(values: Floats) -> str:
    draws = values[np.random.default_rng(0).integers(len(values), size=(1000, len(values)))].mean(1)
    low, high = np.percentile(draws, [2.5, 97.5])
    return f"{values.mean():.2f} ({low:.2f} to {high:.2f})"


def table(said: Floats, missing: Floats, name: str) -> list[str]:
    """Return the reliability table."""
    lines = [
        f"{name}: area under the ROC curve {area(said, missing):.2f}",
        "",
        "| says | is missing | documents |",
    ]
    lines.append("| --- | --- | --- |")
    for group in np.array_split(np.argsort(said, kind="stable"), GROUPS):
        lines.append(f"| {said[group].mean():.2f} | {_interval(missing[group])} | {len(group)} |")
    noted = said >= NOTED
    found = _interval(missing[noted]) if noted.any() else "-"
    return [*lines, f"| a note, from {NOTED} | {found} | {noted.sum()} |", ""]


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=(), metavar="NAME")
    asked = parser.parse_args()
    sets = known_sets(load(asked.cache, asked.sets))
    found = [(name, *facts(known)) for name, rows in sets.items() for known in rows]
    domains = np.array([domain_of(name) for name, _, _ in found])
    read = np.array([numbers for _, numbers, _ in found])
    missing = np.array([float(is_missing) for _, _, is_missing in found])
    halves = np.arange(len(found)) % 2 == 0
    for name, parts in (
        ("each domain left out", [domains == domain for domain in sorted(set(domains))]),
        ("half of each set left out", [halves, ~halves]),
    ):
        said = np.zeros(len(found))
        for test in parts:
            said[test] = probabilities(read, missing, ~test, test)
        print(*table(said, missing, name), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
