"""Train the trees that tell which sentences can be read alone (`precis_text.standalone`) on labelled extracts.

    pip install lightgbm==4.7.0
    python -m experiments.scripts.standalone_sentences --data DIR [--out FILE]

The labels are in `standalone_labels.tsv`: the set, the beginning of the document's SHA-256, the place of the unit in
the document, whether the unit before it was in the extract too, and letters. "D" needs something that the extract
lacks, "d" a little, "r" has a remnant or a filler, "o" is fine. Two letters may stand together. Language models wrote
them, reading extracts of training documents without the documents. Printed is how well trees tell "D" from "o" in
documents that they were not trained on: the area under the ROC curve, eight folds over documents.
"""

import argparse
import csv
import hashlib
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.scripts.unit_ranker import flat
from precis_experiments.open_sets import EXTENSIONS, SETS, pairs_of
from precis_text import standalone
from precis_text.control_characters import main_part, unmarked
from precis_text.standalone import STANDALONE_FEATURES, standalone_features
from precis_text.units import extraction_units

LABELS = Path(__file__).with_name("standalone_labels.tsv")
TREES = Path(standalone.__file__).with_suffix(".json")
STUMBLES = {"D": 1.0, "d": 0.2, "r": 0.2}
"""How much a reader stumbles, by the first of these letters in a label."""
FOLDS = 8
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
ROUNDS = 100

Floats = NDArray[np.float64]
Row = tuple[str, Floats, str]


def key_of(document: str) -> str:
    """Return what names a document in the labels."""
    return hashlib.sha256(document.encode()).hexdigest()[:16]


def stumbles(letters: str) -> float:
    """Return how much a reader stumbles over a sentence with a label; 0 to 1."""
    return next((value for letter, value in STUMBLES.items() if letter in letters), 0.0)


def labelled(data: Path, labels: Path) -> Iterator[Row]:
    """Yield the document, the features and the letters of each label whose document is in the data."""
    known = {each.name: each for each in (*SETS, *EXTENSIONS)}
    wanted: dict[str, dict[str, list[dict[str, str]]]] = {}
    with labels.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            wanted.setdefault(row["set"], {}).setdefault(row["document"], []).append(row)
    for name, documents in wanted.items():
        for pair in pairs_of(known[name], data / known[name].place, "train"):
            text = str(pair["document"])
            yield from _rows(text, documents.pop(key_of(text), []))


def _rows(text: str, labels: list[dict[str, str]]) -> Iterator[Row]:
    if not labels:
        return
    units = extraction_units(unmarked(main_part(text)))
    features, places = standalone_features(units), {unit.start: place for place, unit in enumerate(units)}
    for label in labels:
        place = places.get(int(label["start"]))
        if place is not None:  # units may have changed since
            yield key_of(text), np.array([*features[place], float(label["after"])]), label["letters"]


def area(scores: Floats, positive: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve."""
    ranks = np.argsort(np.argsort(scores, kind="stable"), kind="stable")
    count = int(positive.sum())
    return float((ranks[positive].sum() - count * (count - 1) / 2) / (count * (len(scores) - count)))


def train(features: Floats, target: Floats) -> Any:
    """Return lightgbm's trees."""
    lightgbm: Any = import_module("lightgbm")  # only this command needs it
    return lightgbm.train(SETTINGS, lightgbm.Dataset(features, target), num_boost_round=ROUNDS)


def held_out(documents: list[str], features: Floats, target: Floats) -> Floats:
    """Return what trees that did not see a document expect of its sentences."""
    fold = np.array([int(document, 16) % FOLDS for document in documents])
    found = np.zeros(len(target))
    for each in range(FOLDS):
        found[fold == each] = train(features[fold != each], target[fold != each]).predict(
            features[fold == each]
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder of all data sets")
    parser.add_argument("--labels", type=Path, default=LABELS)
    parser.add_argument("--out", type=Path, default=TREES)
    asked = parser.parse_args()
    found = list(labelled(asked.data, asked.labels))
    if not found:
        parser.error(f"no document of {asked.labels} is in {asked.data}; give the folder of all data sets")
    documents, rows, letters = map(list, zip(*found, strict=True))
    features, target = np.stack(rows), np.array([stumbles(each) for each in letters])
    is_clear = np.array(["D" in each or each in ("o", "or") for each in letters])
    needs = np.array(["D" in each for each in letters])
    expected = held_out(documents, features, target)
    labels = len(asked.labels.read_text(encoding="utf-8").splitlines()) - 1
    print(f"{len(letters)} of {labels} sentences, of {len(set(documents))} documents: {needs.mean():.1%} D")
    after = features[:, -1] > 0
    print(f"{needs[after].mean():.1%} after the unit before it, {needs[~after].mean():.1%} without")
    print(f"area under the curve, D and o: {area(expected[is_clear], needs[is_clear]):.3f}")
    trees = {"features": STANDALONE_FEATURES, **flat(train(features, target))}
    asked.out.write_text(json.dumps(trees, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
