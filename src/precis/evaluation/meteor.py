"""METEOR (Banerjee and Lavie, 2005, "METEOR: an automatic metric for MT evaluation"), by nltk.

Words of a prediction are aligned with those of a reference, first equal ones, then equal stems (Porter), then synonyms
(WordNet). With m matches in c runs, P = m / predicted words and R = m / reference words,

    score = (1 - gamma (c / m)^beta) * P R / (alpha P + (1 - alpha) R)

where alpha = 0.9, beta = 3 and gamma = 0.5 are the 2005 paper's and nltk's. Papers on question generation print
METEOR 1.5, a Java program with tuned weights, function words and paraphrases, whose figures are lower and are not to be
compared with these: `precis.evaluation.meteor_tool` runs it.

WordNet is data that nltk downloads (`python -m nltk.downloader wordnet`, found through $NLTK_DATA). Where it is absent,
words and stems are matched alone; the signature says which. nltk looks synonyms up by stem, and so misses words whose
stem is no word ("large", "larg"); that is left as it is, so that figures are nltk's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from precis.config import Settings
from precis.errors import UserError
from precis.evaluation.rouge import RememberingStemmer, check_parallel
from precis.version import __version__

Synonyms = Literal["wordnet", "none"]
_TOKENIZER = Tokenizer13a()


def synonyms_at_hand() -> Synonyms:
    """ "wordnet" where nltk finds its data, else "none"."""
    return "none" if _wordnet() is None else "wordnet"


@dataclass(frozen=True, kw_only=True)
class MeteorScore:
    """METEOR of a test set: the mean of its examples, (n,) in 0..100."""

    signature: str
    examples: NDArray[np.float64] = field(repr=False)

    @property
    def score(self) -> float:
        return float(self.examples.mean())

    def resampled(self, rows: NDArray[np.int64]) -> float:
        """METEOR of the examples `rows`, which may repeat."""
        return float(self.examples[rows].mean())


@dataclass(frozen=True, kw_only=True)
class Meteor(Settings):
    """How METEOR is computed; every choice is part of `signature`.

    Args:
        alpha: weight of recall against precision in their harmonic mean, 0 to 1.
        beta: exponent of the penalty for matches that are torn apart.
        gamma: the most that the penalty takes away, 0 to 1.
        synonyms: whether words that share a WordNet synset match; `synonyms_at_hand()` says what is possible here.

    Raises:
        UserError: a number is out of its range, or WordNet is asked for and not there.
    """

    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5
    synonyms: Synonyms = "none"

    def __post_init__(self) -> None:
        for name in ("alpha", "gamma"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"METEOR: {name}={getattr(self, name)} must be between 0 and 1")
        if self.beta < 0:
            raise UserError(f"METEOR: beta={self.beta} must be 0 or more")
        if self.synonyms == "wordnet" and _wordnet() is None:
            raise UserError(
                "METEOR: nltk does not find WordNet; fetch it with `python -m nltk.downloader wordnet`, or point "
                "NLTK_DATA to the folder that holds corpora/wordnet"
            )

    @property
    def signature(self) -> str:
        """All that a reader needs to compute the same figures, in sacrebleu's `key:value|...` form."""
        match = "exact,porter"
        if self.synonyms == "wordnet":
            match += f",wordnet-{_wordnet().get_version()}"
        fields = {
            "alpha": f"{self.alpha:g}",
            "beta": f"{self.beta:g}",
            "gamma": f"{self.gamma:g}",
            "match": match,
            "case": "lc",
            "tok": "13a",
            "refs": "max",
            "nltk": version("nltk"),
            "precis": __version__,
        }
        return "|".join(["meteor", *(f"{key}:{value}" for key, value in fields.items())])

    def __call__(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> MeteorScore:
        """The score of a test set, as `precis.evaluation.scoring.evaluate` asks for it.

        Raises:
            UserError: there is no prediction; or as `score`.
        """
        if not predictions:
            raise UserError("METEOR needs at least one prediction")
        return MeteorScore(signature=self.signature, examples=self.score(predictions, references))

    def score(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """METEOR * 100 of each prediction, its best reference counting.

        Args:
            predictions: n texts; an empty one scores 0.
            references: for each prediction its references, at least one.

        Returns:
            (n,) in 0..100.

        Raises:
            UserError: the two differ in length, or an example has no reference.
        """
        from nltk.translate.meteor_score import meteor_score

        check_parallel(predictions, references)
        # What nltk asks of WordNet; without words of its own, words and stems are matched alone.
        wordnet = SimpleNamespace(synsets=_synsets if self.synonyms == "wordnet" else _no_synsets)
        scores = [
            meteor_score(
                [_words(target) for target in targets],
                _words(prediction),
                stemmer=RememberingStemmer(),
                wordnet=wordnet,
                alpha=self.alpha,
                beta=self.beta,
                gamma=self.gamma,
            )
            for prediction, targets in zip(predictions, references, strict=True)
        ]
        return 100 * np.array(scores, dtype=np.float64)


def _words(text: str) -> list[str]:
    """Punctuation marks are words of their own, as in METEOR 1.5."""
    return _TOKENIZER(text).split()


@cache
def _wordnet() -> Any:
    """nltk's reader, or None where its data are not there.

    Raises:
        UserError: they are incomplete.
    """
    from nltk.corpus import wordnet

    try:
        wordnet.ensure_loaded()
    except LookupError:
        return None
    except OSError as error:
        raise UserError(
            f"METEOR: the WordNet that nltk finds is incomplete ({error}); fetch it again with `python -m "
            "nltk.downloader wordnet`, or remove it to match words and stems alone"
        ) from error
    return wordnet


@lru_cache(maxsize=200_000)
def _synsets(word: str) -> list[Any]:
    return list(_wordnet().synsets(word))


def _no_synsets(_word: str) -> list[Any]:
    return []
