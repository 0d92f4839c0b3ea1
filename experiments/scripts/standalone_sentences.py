"""Train what tells how well a sentence can be read in a summary (`precis_text.standalone`) on labelled extracts.

    pip install lightgbm==4.7.0
    python -m experiments.scripts.standalone_sentences --data DIR [--out FOLDER]

The labels are in `standalone_labels.tsv`: the set, the beginning of the document's SHA-256, the place of the unit in
the document, and letters. All labelled units of a document were one extract. "D" needs something that the extract
lacks, "d" a little, "r" has a remnant or a filler, "o" is fine. Two letters may stand together. Language models wrote
them, reading extracts of training documents without the documents.

First a logistic regression over patterns of words is trained, then trees, which have its sum as one feature. Printed
is how well either tells "D" from "o" in documents that it was not trained on: the area under the ROC curve, eight folds
over documents. The trees of the product have sums of regressions that did not see the document, too.
"""

import argparse
import csv
import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from benchmarks.sixty_read import MEETINGS
from experiments.scripts.unit_ranker import flat
from precis_experiments.open_sets import EXTENSIONS, SETS, pairs_of
from precis_text import standalone
from precis_text.control_characters import main_part, remove_marks
from precis_text.standalone import STANDALONE_FEATURES, Readability, said
from precis_text.units import TextUnit, extraction_units
from precis_text.word_patterns import WordPatterns, patterns

LABELS = Path(__file__).with_name("standalone_labels.tsv")
AGAIN = Path(__file__).with_name("standalone_labels_again.tsv")
"""Labels of some of the sentences by another reader, which show how far two readers agree."""
PACKAGE = Path(standalone.__file__).parent
STUMBLES = {"D": 1.0, "d": 0.2, "r": 0.2}
"""How much a reader stumbles, by the first of these letters in a label."""
FOLDS = 8
WORDS = re.compile(r"\w+(?:['’]\w+)?")
COMMON = 30  # least occurrences of a word that stands for itself
FREQUENT = 10  # fewest sentences with a pattern
DIGITS = 2  # after the point of a weight
PENALTY = 0.1  # C of the logistic regression: a smaller one makes smaller weights
SETTINGS = {
    "objective": "cross_entropy",
    "learning_rate": 0.1,
    "num_leaves": 8,
    "min_data_in_leaf": 25,
    "feature_fraction": 0.4,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5,
    "num_threads": 1,
    "deterministic": True,
    "force_col_wise": True,
    "seed": 0,
    "verbose": -1,
}
ROUNDS = 150

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Labelled:
    """A sentence of an extract.

    Attributes:
        found: the patterns of its words.
        features: (features,) those of `standalone`, with 0 for the sum of the patterns.
        letters: its label.
    """

    document: str
    found: frozenset[str]
    features: Floats
    letters: str

    @property
    def is_clear(self) -> bool:
        return "D" in self.letters or self.letters in ("o", "or")


def frequent_words(texts: Collection[str], least: int) -> list[str]:
    """Return the words of all texts together that occur at least so often, in small letters."""
    counts: dict[str, int] = {}
    for text in texts:
        for token in WORDS.findall(text):
            if token[0].isalpha():
                lower = token.lower().replace("’", "'")
                counts[lower] = counts.get(lower, 0) + 1
    return sorted(word for word, count in counts.items() if count >= least)


def key_of(document: str) -> str:
    """Return what names a document in the labels."""
    return hashlib.sha256(document.encode()).hexdigest()[:16]


def stumbles(letters: str) -> float:
    """Return how much a reader stumbles over a sentence with a label; 0 to 1."""
    return next((value for letter, value in STUMBLES.items() if letter in letters), 0.0)


def rows_of(labels: Path) -> list[dict[str, str]]:
    """Return the rows of a file of labels."""
    with labels.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def kappa(first: Path, second: Path) -> tuple[int, float]:
    """Return how many sentences two readers labelled, and Cohen's kappa of "D" or not."""
    ones, others = (
        {(row["document"], row["start"]): "D" in row["letters"] for row in rows_of(each)}
        for each in (first, second)
    )
    pairs = np.array([(ones[key], others[key]) for key in others if key in ones], dtype=float)
    agreed, (one, other) = (pairs[:, 0] == pairs[:, 1]).mean(), pairs.mean(0)
    expected = one * other + (1 - one) * (1 - other)
    return len(pairs), float((agreed - expected) / (1 - expected))


def labelled(data: Path, labels: Path) -> Iterator[tuple[str, list[TextUnit], dict[int, str]]]:
    """Yield each labelled document's key and units, and the letters of the labels by the place of their unit."""
    known = {each.name: each for each in (*SETS, *EXTENSIONS, MEETINGS)}
    wanted: dict[str, dict[str, dict[int, str]]] = {}
    for row in rows_of(labels):
        document = wanted.setdefault(row["set"], {}).setdefault(row["document"], {})
        document[int(row["start"])] = row["letters"]
    for name, documents in wanted.items():
        for pair in pairs_of(known[name], data / known[name].place, "train"):
            text = str(pair["document"])
            if starts := documents.pop(key_of(text), None):
                units = extraction_units(remove_marks(main_part(text)))
                places = {unit.start: place for place, unit in enumerate(units)}
                # units may have changed since
                yield key_of(text), units, {places[at]: starts[at] for at in starts if at in places}


def read(documents: Sequence[tuple[str, list[TextUnit], dict[int, str]]]) -> tuple[list[str], list[Labelled]]:
    """Return the common words of labelled sentences, and the sentences."""
    texts = [said(units[place]) for _, units, letters in documents for place in letters]
    words = frequent_words(texts, COMMON)
    found = []
    for key, units, letters in documents:
        readability, chosen = Readability(units, WordPatterns(frozenset(), {})), sorted(letters)
        if not readability.is_judged:
            continue
        rows = readability.features([(place, ()) for place in chosen], chosen)
        for place, features in zip(chosen, rows, strict=True):
            shown = said(units[place]), said(units[place - 1]) if place else ""
            own = frozenset(patterns(*shown, frozenset(words), is_spoken=bool(units[place].speaker)))
            found.append(Labelled(key, own, features, letters[place]))
    return words, found


def weights(sentences: Sequence[Labelled]) -> dict[str, float]:
    """Return the weight of each frequent pattern by logistic regression: "D" against "o"."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression

    clear = [each for each in sentences if each.is_clear]
    counts = Counter(pattern for each in clear for pattern in each.found)
    rows = [{pattern: 1 for pattern in each.found if counts[pattern] >= FREQUENT} for each in clear]
    vectors = DictVectorizer()
    model = LogisticRegression(C=PENALTY, max_iter=1000)
    model.fit(vectors.fit_transform(rows), ["D" in each.letters for each in clear])
    learnt = zip(vectors.feature_names_, model.coef_[0], strict=True)
    return {name: round(float(weight), DIGITS) for name, weight in learnt if round(float(weight), DIGITS)}


def sums(sentences: Sequence[Labelled], learnt: Mapping[str, float]) -> Floats:
    """Return the sum of each sentence's weights."""
    return np.array([sum(learnt.get(each, 0.0) for each in sorted(one.found)) for one in sentences])


def area(scores: Floats, positive: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve."""
    ranks = rankdata(scores) - 1  # equal scores share their mean rank
    count = int(positive.sum())
    return float((ranks[positive].sum() - count * (count - 1) / 2) / (count * (len(scores) - count)))


def train(features: Floats, target: Floats) -> Any:
    """Return lightgbm's trees."""
    lightgbm: Any = import_module("lightgbm")  # only this command needs it
    return lightgbm.train(SETTINGS, lightgbm.Dataset(features, target), num_boost_round=ROUNDS)


def folds(
    sentences: Sequence[Labelled],
) -> Iterator[tuple[NDArray[np.bool_], list[Labelled], list[Labelled]]]:
    """Yield which sentences a fold has, the other sentences, and its own."""
    fold = np.array([int(each.document, 16) % FOLDS for each in sentences])
    for number in range(FOLDS):
        own = [each for each, at in zip(sentences, fold, strict=True) if at == number]
        yield fold == number, [each for each, at in zip(sentences, fold, strict=True) if at != number], own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder of all data sets")
    parser.add_argument("--labels", type=Path, default=LABELS)
    parser.add_argument(
        "--out", type=Path, default=PACKAGE, help="folder for standalone.json and word_patterns.json"
    )
    asked = parser.parse_args()
    words, sentences = read([*labelled(asked.data, asked.labels)])
    if not sentences:
        parser.error(f"no document of {asked.labels} is in {asked.data}; give the folder of all data sets")
    letters = [each.letters for each in sentences]
    features, target = np.stack([each.features for each in sentences]), np.array([*map(stumbles, letters)])
    is_clear, needs = (
        np.array([each.is_clear for each in sentences]),
        np.array(["D" in each for each in letters]),
    )
    column, after = (
        STANDALONE_FEATURES.index("pattern"),
        features[:, STANDALONE_FEATURES.index("is_after")] > 0,
    )
    for own, others, held in folds(sentences):
        features[own, column] = sums(held, weights(others))
    expected = np.zeros(len(sentences))
    for own, _, _ in folds(sentences):
        expected[own] = train(features[~own], target[~own]).predict(features[own])
    labels = len(asked.labels.read_text(encoding="utf-8").splitlines()) - 1
    documents = len({each.document for each in sentences})
    print(f"{len(letters)} of {labels} sentences, of {documents} documents: {needs.mean():.1%} D")
    count, agreement = kappa(LABELS, AGAIN)
    print(f"two readers of {count} sentences: kappa {agreement:.2f}")
    print(f"{needs[after].mean():.1%} after the unit before it, {needs[~after].mean():.1%} without")
    for name, scores in (("words", features[:, column]), ("trees", expected)):
        print(f"area under the curve, D and o, {name}: {area(scores[is_clear], needs[is_clear]):.3f}")
    trees = {"features": STANDALONE_FEATURES, **flat(train(features, target))}
    learnt = {"words": words, "weights": weights(sentences)}
    for name, values in (("standalone", trees), ("word_patterns", learnt)):
        text = json.dumps(values, separators=(",", ":"), ensure_ascii=False)
        (asked.out / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
