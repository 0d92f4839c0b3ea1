"""Train the unit ranker of the model in the box (`precis_text.unit_ranker`) on all open sets.

    pip install lightgbm==4.7.0
    python -m experiments.scripts.unit_ranker --data DIR --cache FOLDER --out FOLDER [--leave-out DOMAIN]

The gain of a unit is (hits of words / 2 + hits of word pairs) / (its words + 4), the mean over the references, in
ROUGE's tokens; in other languages than English, in Unicode words without stems. Within a document, gains relative to
the best one are rounded to sixteenths. The trees learn to order them (rank_xendcg). A set counts with the power 3/4 of
its documents. `asked` is 1.15 of the reference's own words. A domain that is left out is one of
`benchmarks.choice_rules.DOMAINS`. The features are kept in the cache.
"""

import argparse
import json
import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.choice_rules import DOMAINS
from precis.evaluation.rouge import Rouge
from precis.generation.model_location import default_model
from precis.storage.seal import SEAL, write_folder
from precis_experiments.open_sets import EXTENSIONS, OTHER_LANGUAGES, SETS, OpenSet, pairs_of
from precis_text.control_characters import main_part, remove_marks
from precis_text.ranking_features import ASKED, FEATURES, ranking_features, with_length
from precis_text.unit_ranker import RANKER_FILE
from precis_text.units import TextUnit, extraction_units
from precis_text.words import length_in_words

LONGEST = 9000  # words of a document
LEVELS = 15  # of a gain, relative to the best of the document
GENEROUS = 1.15  # words that are asked for, relative to the reference
POWER = 0.75  # of a set's documents, by which the set counts
FEWEST = 3  # statements of a document
MOST = 700  # units of a document
SHARPNESS = 2.0
RANKING = {
    "objective": "rank_xendcg",
    "learning_rate": 0.07,
    "num_leaves": 31,
    "min_data_in_leaf": 200,
    "feature_fraction": 0.5,
    "max_bin": 127,
}
LENGTH = {
    "objective": "regression_l1",
    "learning_rate": 0.1,
    "num_leaves": 15,
    "min_data_in_leaf": 20,
    "feature_fraction": 0.5,
}
COMMON = {"verbose": -1, "deterministic": True, "force_col_wise": True, "seed": 0}
ROUGE, OTHER_ROUGE = Rouge(), Rouge(tokenizer="unicode", stemmer=False)


@dataclass(frozen=True)
class Examples:
    """The documents of a set: features and gains of their units, one after the other.

    Attributes:
        bounds: where each document begins; one more than there are documents.
        told: whether a unit is a statement, which can be chosen.
        words: mean words of a document's references.
    """

    features: NDArray[np.float32]
    gains: NDArray[np.float32]
    told: NDArray[np.bool_]
    bounds: NDArray[np.int64]
    words: NDArray[np.float32]

    def documents(
        self,
    ) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], float]]:
        for start, stop, words in zip(self.bounds, self.bounds[1:], self.words, strict=False):
            yield self.features[start:stop], self.gains[start:stop], self.told[start:stop], float(words)


def gains(units: Sequence[TextUnit], references: Sequence[str], rouge: Rouge) -> NDArray[np.float32]:
    """Return what each unit adds to ROUGE-1 and ROUGE-2 for its words, the mean over the references."""
    found = []
    wanted = [(Counter(tokens), Counter(pairwise(tokens))) for tokens in map(rouge.tokenize, references)]
    for tokens in (rouge.tokenize(unit.text) for unit in units):
        one, two = Counter(tokens), Counter(pairwise(tokens))
        hits = [(one & words).total() / 2 + (two & pairs).total() for words, pairs in wanted]
        found.append(np.mean(hits) / (len(tokens) + 4))
    return np.array(found, dtype=np.float32)


def read(chosen: OpenSet, *, data: Path, cap: int) -> Examples:
    """Compute the examples of a set's training split."""
    rows = list(pairs_of(chosen, data / chosen.place, "train"))
    random.Random(0).shuffle(rows)
    rows = [row for row in rows if len(str(row["document"]).split()) <= LONGEST][:cap]
    rouge = ROUGE if chosen.languages == ("en",) else OTHER_ROUGE
    parts = []
    for row in rows:
        units = extraction_units(remove_marks(main_part(str(row["document"]))))
        if units:
            told = np.array([not (unit.heading or unit.aside) for unit in units])
            references = row["summaries"]
            words = float(np.mean([length_in_words(text) for text in references]))
            parts.append(
                (ranking_features(units)[:MOST], gains(units[:MOST], references, rouge), told[:MOST], words)
            )
    features, worths, told_units, words_of = zip(*parts, strict=True)
    return Examples(
        np.concatenate(features),
        np.concatenate(worths),
        np.concatenate(told_units),
        np.cumsum([0, *map(len, features)], dtype=np.int64),
        np.array(words_of, dtype=np.float32),
    )


def kept(chosen: OpenSet, *, data: Path, cache: Path, cap: int) -> tuple[str, Examples]:
    """Return the examples of a set, computed once."""
    file = cache / f"{chosen.name}-{cap}.npz"
    if not file.exists():
        found = read(chosen, data=data, cap=cap)
        np.savez(file, **vars(found))
        print(
            f"{chosen.name}: {len(found.words):,} documents, {len(found.gains):,} units",
            file=sys.stderr,
            flush=True,
        )
    with np.load(file) as arrays:
        return chosen.name, Examples(**{name: arrays[name] for name in arrays})


def ranking_data(sets: dict[str, Examples]) -> dict[str, Any]:
    """Return rows, levels, sizes of documents and weights for lightgbm."""
    total = sum(len(each.words) for each in sets.values())
    powers = sum(len(each.words) ** POWER for each in sets.values())
    rows, levels, sizes, weights = [], [], [], []
    for each in sets.values():
        weight = len(each.words) ** POWER / powers * total / len(each.words)
        for features, own, told, words in each.documents():
            if told.sum() < FEWEST or own[told].max() <= 0:
                continue
            rows.append(with_length(features, GENEROUS * words)[told])
            levels.append(np.round(LEVELS * own[told] / own[told].max()).astype(int))
            sizes.append(int(told.sum()))
            weights.append(np.full(sizes[-1], weight))
    return {
        "data": np.concatenate(rows),
        "label": np.concatenate(levels),
        "group": sizes,
        "weight": np.concatenate(weights),
    }


def length_data(sets: dict[str, Examples]) -> dict[str, Any]:
    """Return the mean features of each document, and the log of its reference's words."""
    documents = [each for own in sets.values() for each in own.documents()]
    return {
        "data": np.stack([features.mean(0) for features, *_ in documents]),
        "label": np.log([max(words, 1) for *_, words in documents]),
    }


def flat(booster: Any) -> dict[str, list[Any]]:
    """Return lightgbm's trees as the lists of `precis_text.unit_ranker.Trees`."""
    made: dict[str, list[Any]] = {name: [] for name in ("feature", "threshold", "yes", "no", "roots")}

    def add(node: dict[str, Any]) -> int:
        place = len(made["feature"])
        is_leaf = "leaf_value" in node
        made["feature"].append(-1 if is_leaf else node["split_feature"])
        made["threshold"].append(node["leaf_value"] if is_leaf else node["threshold"])
        made["yes"].append(place)
        made["no"].append(place)
        if not is_leaf:
            made["yes"][place] = add(node["left_child"])
            made["no"][place] = add(node["right_child"])
        return place

    for tree in booster.dump_model()["tree_info"]:
        made["roots"].append(add(tree["tree_structure"]))
    made["threshold"] = [float(f"{value:.7g}") for value in made["threshold"]]
    return made


def train(sets: dict[str, Examples], *, trees: int, threads: int) -> dict[str, Any]:
    """Return the values of a ranker's file."""
    lightgbm: Any = import_module("lightgbm")  # only this command needs it

    common = {**COMMON, "num_threads": threads}
    found = ranking_data(sets)
    worth = lightgbm.train({**RANKING, **common}, lightgbm.Dataset(**found), num_boost_round=trees)
    words = lightgbm.train({**LENGTH, **common}, lightgbm.Dataset(**length_data(sets)), num_boost_round=60)
    return {
        "features": [*FEATURES, *ASKED],
        "sharpness": SHARPNESS,
        "documents": {name: len(each.words) for name, each in sets.items()},
        "worth": flat(worth),
        "words": flat(words),
    }


def write_model(values: dict[str, Any], place: Path) -> None:
    """Write the model in the box with another ranker."""
    for file in default_model().iterdir():
        if file.name not in (RANKER_FILE, SEAL):
            shutil.copyfile(file, place / file.name)
    (place / RANKER_FILE).write_text(json.dumps(values, separators=(",", ":")) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder of all data sets")
    parser.add_argument("--cache", type=Path, required=True, help="folder for features, computed once")
    parser.add_argument("--out", type=Path, required=True, help="folder for the model with the ranker")
    parser.add_argument("--leave-out", choices=sorted(DOMAINS), help="domain that is not trained on")
    parser.add_argument("--cap", type=int, default=1500, help="most documents of a set")
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    asked.cache.mkdir(parents=True, exist_ok=True)
    out = DOMAINS[asked.leave_out].split() if asked.leave_out else []
    chosen = [
        each
        for each in (*SETS, *EXTENSIONS, *OTHER_LANGUAGES)
        if each.name not in out and (asked.data / each.place).is_dir()
    ]
    with ProcessPoolExecutor(asked.threads) as pool:
        sets = dict(pool.map(partial(kept, data=asked.data, cache=asked.cache, cap=asked.cap), chosen))
    values = train(sets, trees=asked.trees, threads=asked.threads)
    write_folder(asked.out, partial(write_model, values))


if __name__ == "__main__":
    main()
