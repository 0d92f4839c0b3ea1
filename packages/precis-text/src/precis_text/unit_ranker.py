"""The unit ranker: regression trees that order a document's units by their worth in a summary, without a model.

    features of each unit (`ranking_features`) -> trees, learnt by gradient boosting -> the sum of their leaves

The trees were learnt as XE-NDCG-MART (Bruch 2021, "An alternative cross entropy loss for learning-to-rank"), by
`experiments/scripts/unit_ranker.py`. A comparison of two numbers is all that a tree does, so that the choice does not
depend on the processor. A second group of trees expects the words of a document's summary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from precis_text.bounded_io import read_json
from precis_text.errors import UserError, first_line
from precis_text.length import Cap, Sentences, Tokens, Words
from precis_text.ranking_features import ASKED, FEATURES, Pause, no_pause, ranking_features, with_length
from precis_text.selection import expected_words
from precis_text.units import TextUnit

RANKER_FILE = "ranker.json"
_AT_ONCE = 2048  # units that go through all trees together
_SENTENCE = 20  # words of a sentence, about
_TOKEN = 0.75  # words of a token, about


@dataclass(frozen=True)
class Trees:
    """Regression trees, flat: node `n` asks whether `x[feature[n]] <= threshold[n]`.

    Attributes:
        feature: (nodes,) column that a node compares; -1 for a leaf.
        threshold: (nodes,) number that it compares with; the value of a leaf.
        yes, no: (nodes,) the next node for either answer; a leaf leads to itself.
        roots: (trees,) the first node of each tree.
        depth: most comparisons from a root to a leaf.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    yes: NDArray[np.int32]
    no: NDArray[np.int32]
    roots: NDArray[np.int32]
    depth: int

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], columns: int) -> Trees:
        """Read trees, and check that each comparison leads to a later node, so that none goes round in circles.

        Raises:
            ValueError: they are not trees over `columns` features.
        """
        feature, yes, no, roots = (
            np.array(values[name], dtype=np.int32).reshape(-1) for name in ("feature", "yes", "no", "roots")
        )
        threshold = np.array(values["threshold"], dtype=np.float64).reshape(-1)
        own = np.arange(len(feature))
        leaf = feature == -1
        ahead = np.where(leaf, (yes == own) & (no == own), (yes > own) & (no > own))
        inside = (yes < len(own)) & (no < len(own)) & (feature >= -1) & (feature < columns)
        if not (len(roots) and len(own) == len(threshold) == len(yes) == len(no)):
            raise ValueError("its lists differ in length")
        if not (np.all(ahead & inside) and np.isfinite(threshold).all() and (roots >= 0).all()):
            raise ValueError("its nodes are not trees")
        if roots.max() >= len(own):
            raise ValueError("a tree starts outside of its nodes")
        depth, here = 0, roots
        while (feature[here] >= 0).any():
            here = np.unique(np.concatenate([yes[here], no[here]]))
            depth += 1
        return cls(feature, threshold, yes, no, roots, depth)

    def __call__(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the (rows,) sums of the leaves that each of the (rows, features) reaches."""
        parts = [self._some(rows[start : start + _AT_ONCE]) for start in range(0, len(rows), _AT_ONCE)]
        return np.concatenate([np.zeros(0), *parts])

    def _some(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        here = np.tile(self.roots, (len(rows), 1))
        row = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            is_yes = rows[row, self.feature[here]] <= self.threshold[here]
            here = np.where(is_yes, self.yes[here], self.no[here])
        found: NDArray[np.float64] = self.threshold[here].sum(1)
        return found


@dataclass(frozen=True)
class UnitRanker:
    """A ranker of units and the expectation of a summary's length.

    Attributes:
        worth: trees over `FEATURES` and `ASKED`, whose sum orders the units.
        words: trees over the means of `FEATURES`, whose sum is the log of a summary's words.
        sharpness: factor on the differences of worth before they become scores.
    """

    worth: Trees
    words: Trees
    sharpness: float

    @classmethod
    def load(cls, folder: Path) -> UnitRanker:
        """Read the ranker of a model's folder.

        Raises:
            UserError: it is missing or damaged, or was made for other features.
        """
        values = read_json(folder / RANKER_FILE)
        try:
            if values["features"] != [*FEATURES, *ASKED]:
                raise ValueError("it was made for other features")
            worth = Trees.from_dict(values["worth"], len(FEATURES) + len(ASKED))
            words = Trees.from_dict(values["words"], len(FEATURES))
            sharpness = float(values["sharpness"])
            if not 0 < sharpness < math.inf:
                raise ValueError("its sharpness is not a number above 0")
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise UserError(f"{folder / RANKER_FILE}: invalid ranker: {first_line(error)}") from error
        return cls(worth, words, sharpness)

    def scores(
        self, units: Sequence[TextUnit], cap: Cap | None, pause: Pause = no_pause
    ) -> tuple[list[float], float]:
        """Return the score of each unit, 0 to 1, and the expected words of a summary without a cap.

        `pause` is called between parts of the work.

        The best unit has a score of 1, and each other one exp(-sharpness x the difference of their worths).
        """
        features = ranking_features(units, pause)
        expected = self._expected(features)
        pause()
        worth = self.worth(with_length(features, expected if cap is None else _in_words(cap)))
        scores = np.exp(self.sharpness * (worth - worth.max(initial=-math.inf)))
        return scores.tolist(), expected

    def _expected(self, features: NDArray[np.float32]) -> float:
        (log,) = self.words(features.mean(0, keepdims=True))
        return expected_words([float(log)])


def has_ranker(folder: Path) -> bool:
    """Return whether the model in a folder has a unit ranker."""
    return (folder / RANKER_FILE).is_file()


def _in_words(cap: Cap) -> float:
    """Return a cap in words, estimated if it counts sentences or tokens."""
    factor = {Words: 1.0, Sentences: _SENTENCE, Tokens: _TOKEN}[type(cap)]
    return factor * cap.count
