"""METEOR in two editions, whose figures are not to be compared with each other.

`Meteor`: Banerjee and Lavie (2005), "METEOR: an automatic metric for MT evaluation", by nltk. Words of a prediction are
aligned with those of a reference, first equal ones, then equal stems (Porter), then synonyms (WordNet). With m matches
in c runs, P = m / predicted words and R = m / reference words,

    score = (1 - gamma (c / m)^beta) * P R / (alpha P + (1 - alpha) R)

where alpha = 0.9, beta = 3 and gamma = 0.5 are the 2005 paper's and nltk's. WordNet is data that nltk downloads
(`python -m nltk.downloader wordnet`, found through $NLTK_DATA). Where it is absent, words and stems are matched alone;
the signature says which. nltk looks synonyms up by stem, and so misses words whose stem is no word ("large", "larg");
that is left as it is, so that figures are nltk's.

`MeteorTool`: METEOR 1.5 (Denkowski and Lavie, 2014, "Meteor universal"), by its authors' Java program, with tuned
weights, function words and paraphrases; its figures are lower. Papers on question generation print this one
(ProphetNet's Tables 3 and 4, through UniLM's scripts). The program is not part of precis: name its file,
`meteor-1.5.jar`, which lies beside its `data/` in the archive that the authors give out and in the package
`pycocoevalcap` of PyPI. It is started as those scripts start it (`-stdio -l en -norm`). For each example it gives 23
counts, of which the score of any set of examples is a function: see `_score`. So the bootstrap needs no further run.
What the program says of the whole set is compared with that function each time.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from precis.config import Settings
from precis.errors import RunError, UserError
from precis.evaluation.answers import MeanScore
from precis.evaluation.rouge import RememberingStemmer, check_parallel, check_scored
from precis.version import __version__

Synonyms = Literal["wordnet", "none"]
_TOKENIZER = Tokenizer13a()
_JAVA_OPTIONS, _OPTIONS = ("-Xmx2G", "-jar"), ("-", "-", "-stdio", "-l", "en", "-norm")
_COUNTS = 23
_ALPHA, _BETA, _GAMMA, _DELTA = 0.85, 0.2, 0.6, 0.75  # 1.5's own for English
_WEIGHTS = np.array([1.0, 0.6, 0.8, 0.6])  # exact, stem, synonym, paraphrase
_LEAST_AGREEMENT = 1e-6


def synonyms_at_hand() -> Synonyms:
    """ "wordnet" where nltk finds its data, else "none"."""
    return "none" if _wordnet() is None else "wordnet"


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

    def __call__(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> MeanScore:
        """The score of a test set, as `precis.evaluation.scoring.evaluate` asks for it.

        Raises:
            UserError: there is no prediction; or as `score`.
        """
        check_scored("METEOR", predictions, references)
        return MeanScore(signature=self.signature, examples=self.score(predictions, references))

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


@dataclass(frozen=True, kw_only=True)
class MeteorToolScore:
    """METEOR 1.5 of a whole test set.

    Attributes:
        score: 0..100.
        statistics: (n, 23), the program's counts: words of prediction and reference, function words of both; for each
            of the four matchers matched content words of both and function words of both; chunks; matches of both.
    """

    score: float
    signature: str
    statistics: NDArray[np.float64] = field(repr=False)

    @property
    def examples(self) -> NDArray[np.float64]:
        """The score of each example alone, (n,)."""
        return np.array([_score(row) for row in self.statistics])

    def resampled(self, rows: NDArray[np.int64]) -> float:
        """The score of the examples `rows`, which may repeat."""
        return _score(self.statistics[rows].sum(axis=0))


@dataclass(frozen=True, kw_only=True)
class MeteorTool:
    """The program in the file `jar`; `java` starts it.

    Raises:
        UserError: there is no such file.
    """

    jar: Path
    java: str = "java"

    def __post_init__(self) -> None:
        if not self.jar.is_file():
            raise UserError(f"{self.jar}: no such file; it should be METEOR's meteor-1.5.jar")

    @property
    def signature(self) -> str:
        """The digest is the jar's SHA-256."""
        digest = hashlib.sha256(self.jar.read_bytes()).hexdigest()[:12]
        return f"meteor|java:{self.jar.name}|digest:{digest}|lang:en|norm:yes|refs:max"

    def __call__(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> MeteorToolScore:
        """Score a test set; each example's best reference counts.

        Raises:
            UserError: there is no prediction, an example has no reference, or the program cannot be started.
            RunError: it stops, or answers otherwise than METEOR 1.5 does.
        """
        check_scored("METEOR", predictions, references)
        requests = [
            " ||| ".join(["SCORE", *map(_one_line, targets), _one_line(prediction)])
            for prediction, targets in zip(predictions, references, strict=True)
        ]
        with self._started() as process:
            counts = [_answer(process, request) for request in requests]
            *_, told = _last_answer(process, " ||| ".join(["EVAL", *counts]), count=len(counts) + 1)
        statistics = _statistics(counts, self.jar)
        score = _score(statistics.sum(axis=0))
        if not abs(float(told) * 100 - score) <= _LEAST_AGREEMENT:
            raise RunError(f"{self.jar}: says {told} of counts that give {score / 100}; is it METEOR 1.5?")
        return MeteorToolScore(score=score, signature=self.signature, statistics=statistics)

    def _started(self) -> subprocess.Popen[str]:
        try:
            return subprocess.Popen(
                [self.java, *_JAVA_OPTIONS, str(self.jar.resolve()), *_OPTIONS],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
            )
        except OSError as error:
            raise UserError(
                f"METEOR 1.5 needs Java, and {self.java!r} cannot be started: {error.strerror}"
            ) from error


def _answer(process: subprocess.Popen[str], request: str) -> str:
    """One line for one line."""
    _write(process, request)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise _stopped(process)
    return line.strip()


def _last_answer(process: subprocess.Popen[str], request: str, *, count: int) -> list[str]:
    """All that the program says to its last request: here the score of each example, then that of all."""
    _write(process, request)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    lines = process.stdout.read().split()
    if len(lines) != count:
        raise _stopped(process)
    return lines


def _write(process: subprocess.Popen[str], request: str) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # reading says so
        process.stdin.write(request + "\n")
        process.stdin.flush()


def _stopped(process: subprocess.Popen[str]) -> RunError:
    process.kill()
    return RunError("METEOR's Java program stopped before it had answered")


def _one_line(text: str) -> str:
    return " ".join(text.replace("|||", " ").split())


def _statistics(counts: Sequence[str], jar: Path) -> NDArray[np.float64]:
    """(n, 23). Where all words match in one run, the program counts no chunk, so that nothing is taken off."""
    try:
        rows = np.array([line.split() for line in counts], dtype=np.float64).reshape(-1, _COUNTS)
    except ValueError as error:
        raise RunError(
            f"{jar}: answers {counts[0]!r}, which are not METEOR 1.5's {_COUNTS} counts"
        ) from error
    whole = (rows[:, 20] == 1) & (rows[:, 21] == rows[:, 0]) & (rows[:, 22] == rows[:, 1])
    rows[whole, 20] = 0
    return rows


def _score(counts: NDArray[np.float64]) -> float:
    """100 times (1 - gamma (c / m)^beta) P R / (alpha P + (1 - alpha) R), where P and R count a match with the weight
    of its matcher, a content word delta, a function word 1 - delta.
    """
    words, functions = counts[0:2], counts[2:4]  # (prediction, reference)
    matches = counts[4:20].reshape(4, 2, 2)  # matcher, content or function, prediction or reference
    chunks, matched = counts[20], counts[21:23].mean()
    weighted = _WEIGHTS @ (_DELTA * matches[:, 0] + (1 - _DELTA) * matches[:, 1])
    if not weighted.all():
        return 0.0
    precision, recall = weighted / (_DELTA * (words - functions) + (1 - _DELTA) * functions)
    mean = precision * recall / (_ALPHA * precision + (1 - _ALPHA) * recall)
    return float(100 * mean * (1 - _GAMMA * (chunks / matched) ** _BETA))
