"""METEOR in two editions, whose figures are not comparable with each other.

`Meteor`: Banerjee and Lavie (2005), "METEOR: an automatic metric for MT evaluation", by nltk. Words of a prediction are
aligned with those of a reference: first equal ones, then equal stems (Porter), then synonyms (WordNet). With m matches
in c runs, P = m / predicted words and R = m / reference words,

    score = (1 - gamma (c / m)^beta) * P R / (alpha P + (1 - alpha) R)

where alpha = 0.9, beta = 3 and gamma = 0.5 are the values of the 2005 paper and of nltk. WordNet is data that nltk
downloads (`python -m nltk.downloader wordnet`, found through $NLTK_DATA). Without it, only words and stems are matched;
the signature shows which. nltk looks synonyms up by stem, and so misses words whose stem is not a word ("large",
"larg"). This is left unchanged, so that figures equal nltk's.

`MeteorTool`: METEOR 1.5 (Denkowski and Lavie, 2014, "Meteor universal"), by its authors' Java program, with tuned
weights, function words and paraphrases; its figures are lower. Papers on question generation report this one
(ProphetNet's Tables 3 and 4, through UniLM's scripts). The program is not part of precis. Pass its file,
`meteor-1.5.jar`, next to its `data/` in the authors' archive and in the package `pycocoevalcap` of PyPI. It is started
as in those scripts (`-stdio -l en -norm`). It returns 23 counts for each example. The score of any set of examples is a
function of these (see `_score`), so the bootstrap needs no further run. The program's own total is compared with that
function each time.
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

from precis.evaluation.answer_metrics import MeanScore
from precis.evaluation.rouge import RememberingStemmer, check_parallel, check_scored, signature_of
from precis_text.config import Settings
from precis_text.errors import RunError, UserError

Synonyms = Literal["wordnet", "none"]
_TOKENIZER = Tokenizer13a()
_JAVA_OPTIONS, _OPTIONS = ("-Xmx2G", "-jar"), ("-", "-", "-stdio", "-l", "en", "-norm")
_COUNTS = 23
_ALPHA, _BETA, _GAMMA, _DELTA = 0.85, 0.2, 0.6, 0.75  # the values of version 1.5 for English
_WEIGHTS = np.array([1.0, 0.6, 0.8, 0.6])  # exact, stem, synonym, paraphrase
_LEAST_AGREEMENT = 1e-6


def synonyms_at_hand() -> Synonyms:
    """Return "wordnet" if nltk finds its data, else "none"."""
    return "none" if _wordnet() is None else "wordnet"


@dataclass(frozen=True, kw_only=True)
class Meteor(Settings):
    """METEOR by nltk; `signature` records every setting.

    Args:
        alpha: weight of recall against precision in their harmonic mean, 0 to 1.
        beta: exponent of the penalty for scattered matches.
        gamma: the largest penalty, 0 to 1.
        synonyms: whether words that share a WordNet synset match; `synonyms_at_hand()` returns what is possible here.

    Raises:
        UserError: a number is out of its range, or WordNet is requested but missing.
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
                "METEOR: nltk does not find WordNet; download it with `python -m nltk.downloader wordnet`, or set "
                "NLTK_DATA to the folder that contains corpora/wordnet"
            )

    @property
    def signature(self) -> str:
        """All settings needed to reproduce the figures, in sacrebleu's `key:value|...` form."""
        match = "exact,porter"
        if self.synonyms == "wordnet":
            match += f",wordnet-{_wordnet().get_version()}"
        numbers = {name: f"{getattr(self, name):g}" for name in ("alpha", "beta", "gamma")}
        common = {"case": "lc", "tok": "13a", "refs": "max", "nltk": version("nltk")}
        return signature_of("meteor", **numbers, match=match, **common)

    def __call__(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> MeanScore:
        """Score a test set, in the form that `precis.evaluation.scoring.score` needs.

        Raises:
            UserError: the predictions are empty; or as for `score`.
        """
        check_scored("METEOR", predictions, references)
        return MeanScore(signature=self.signature, examples=self.score(predictions, references))

    def score(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """Compute METEOR * 100 of each prediction against its best reference.

        Args:
            predictions: n texts; an empty one scores 0.
            references: the references of each prediction, at least one.

        Returns:
            (n,) in 0..100.

        Raises:
            UserError: the lengths differ, or an example lacks a reference.
        """
        from nltk.translate.meteor_score import meteor_score

        check_parallel(predictions, references)
        # The part of WordNet that nltk uses; without synsets, only words and stems match.
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
    """Split a text into words; punctuation marks are separate words, as in METEOR 1.5."""
    return _TOKENIZER(text).split()


@cache
def _wordnet() -> Any:
    """Return nltk's reader, or None if its data are missing; raise `UserError` if the data are incomplete."""
    from nltk.corpus import wordnet

    try:
        wordnet.ensure_loaded()
    except LookupError:
        return None
    except OSError as error:
        raise UserError(
            f"METEOR: the WordNet that nltk finds is incomplete ({error}); download it again with `python -m "
            "nltk.downloader wordnet`, or delete it to match only words and stems"
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
        statistics: (n, 23), the program's counts: words of prediction and reference; their function words; for each
            of the four matchers matched content words of both and function words of both; chunks; matches of both.
    """

    score: float
    signature: str
    statistics: NDArray[np.float64] = field(repr=False)

    @property
    def examples(self) -> NDArray[np.float64]:
        """The score of each example by itself, (n,)."""
        return np.array([_score(row) for row in self.statistics])

    def resampled(self, rows: NDArray[np.int64]) -> float:
        """Return the score of the examples `rows`, which may repeat."""
        return _score(self.statistics[rows].sum(axis=0))


@dataclass(frozen=True, kw_only=True)
class MeteorTool:
    """The program in the file `jar`, started by `java`.

    Raises:
        UserError: the file does not exist.
    """

    jar: Path
    java: str = "java"

    def __post_init__(self) -> None:
        if not self.jar.is_file():
            raise UserError(f"{self.jar}: no such file; pass METEOR's meteor-1.5.jar")

    @property
    def signature(self) -> str:
        """Settings of the program; the digest is the jar's SHA-256."""
        digest = hashlib.sha256(self.jar.read_bytes()).hexdigest()[:12]
        return f"meteor|java:{self.jar.name}|digest:{digest}|lang:en|norm:yes|refs:max"

    def __call__(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> MeteorToolScore:
        """Score a test set; each example's best reference counts.

        Raises:
            UserError: the predictions are empty, an example lacks a reference, or the program cannot be started.
            RunError: the program stops, or its output is not that of METEOR 1.5.
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
            raise RunError(f"{self.jar}: returns {told} for counts that give {score / 100}; use METEOR 1.5")
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
    """Send one line and return one line."""
    _write(process, request)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise _stopped(process)
    return line.strip()


def _last_answer(process: subprocess.Popen[str], request: str, *, count: int) -> list[str]:
    """Return the program's whole answer to its last request: the score of each example, then the total."""
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
    with suppress(BrokenPipeError):  # reading reports it
        process.stdin.write(request + "\n")
        process.stdin.flush()


def _stopped(process: subprocess.Popen[str]) -> RunError:
    process.kill()
    return RunError("METEOR's Java program stopped before it answered")


def _one_line(text: str) -> str:
    return " ".join(text.replace("|||", " ").split())


def _statistics(counts: Sequence[str], jar: Path) -> NDArray[np.float64]:
    """Parse (n, 23). If all words match in one run, the program counts zero chunks, which means no penalty."""
    try:
        rows = np.array([line.split() for line in counts], dtype=np.float64).reshape(-1, _COUNTS)
    except ValueError as error:
        raise RunError(f"{jar}: answers {counts[0]!r}, which is not METEOR 1.5's {_COUNTS} counts") from error
    whole = (rows[:, 20] == 1) & (rows[:, 21] == rows[:, 0]) & (rows[:, 22] == rows[:, 1])
    rows[whole, 20] = 0
    return rows


def _score(counts: NDArray[np.float64]) -> float:
    """Compute 100 times (1 - gamma (c / m)^beta) P R / (alpha P + (1 - alpha) R).

    P and R weight a match by its matcher, content words by delta and function words by 1 - delta.
    """
    words, functions = counts[0:2], counts[2:4]  # (prediction, reference)
    matches = counts[4:20].reshape(4, 2, 2)  # matcher, content or function, prediction or reference
    chunks, matched = counts[20], counts[21:].mean()
    weighted = _WEIGHTS @ (_DELTA * matches[:, 0] + (1 - _DELTA) * matches[:, 1])
    if not weighted.all():
        return 0.0
    precision, recall = weighted / (_DELTA * (words - functions) + (1 - _DELTA) * functions)
    mean = precision * recall / (_ALPHA * precision + (1 - _ALPHA) * recall)
    return float(100 * mean * (1 - _GAMMA * (chunks / matched) ** _BETA))
