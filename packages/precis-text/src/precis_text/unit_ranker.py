"""The unit ranker: regression trees that order a document's units by their worth in a summary, without a model.

    features of each unit (`ranking_features`) -> trees, learnt by gradient boosting -> the sum of their leaves

The trees were learnt as XE-NDCG-MART (Bruch 2021, "An alternative cross entropy loss for learning-to-rank"), by
`experiments/scripts/unit_ranker.py`. A second group of trees expects the words of a document's summary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from precis_text.bounded_io import read_json
from precis_text.errors import UserError, first_line
from precis_text.length import Cap, Sentences, Tokens, Words
from precis_text.ranking_features import ASKED, FEATURES, Pause, no_pause, ranking_features, with_length
from precis_text.regression_trees import Trees
from precis_text.selection import expected_words
from precis_text.units import TextUnit

RANKER_FILE = "ranker.json"
_SENTENCE = 20  # words of a sentence, about
_TOKEN = 0.75  # words of a token, about


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
