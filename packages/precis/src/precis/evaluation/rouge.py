"""ROUGE by Google's `rouge-score` package, plus sentence splitting, support for any script, and a signature.

Lin (2004), "ROUGE: a package for automatic evaluation of summaries". This module avoids two traps. ROUGE-Lsum
compares line by line, and rouge-score expects the caller to put sentences on lines; without that it silently
equals ROUGE-L. And rouge-score's own tokenizer keeps only `[a-z0-9]`: other scripts score 0 even on identical
text.

Tokens, n-gram counts and F1 are the package's. All figures equal the package's to the last bit
(tests/evaluation/test_rouge.py).

Bit-parallel rows replace a Python table for longest common subsequences: Hyyrö (2004), "Bit-parallel LCS-length
computation revisited". Column j of the usual table is bit j of one integer, so a row costs one addition, however
long the candidate is. Texts of 300 words are scored about ten times faster. The choice among several longest
subsequences changes the union of ROUGE-Lsum, so the backtracking makes the same choices as rouge-score.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import version
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from rouge_score import rouge_scorer, scoring, tokenizers
from rouge_score import tokenize as rouge_tokenize

from precis.version import __version__
from precis_text.config import Settings, nearest
from precis_text.errors import UserError
from precis_text.sentences import RULES, split_sentences
from precis_text.words import beyond_ascii_share, unicode_words

Tokens = Sequence[str]
TokenizerName = Literal["rouge-score", "unicode", "unicode-tr"]

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL", "rougeLsum")

# Above this share of letters that rouge-score's tokenizer drops, a report has a warning.
NON_LATIN_WARNING = 0.10

# References with a larger share of letters outside a to z are not English: in English it is one in a thousand
# (names, "café"), in German and Spanish more than ten.
_NOT_ENGLISH = 0.005

_DOTLESS = ("tr", "az")  # languages in which I and i are two letters


@dataclass(frozen=True, kw_only=True)
class Rouge(Settings):
    """ROUGE; `signature` records every setting.

    Args:
        types: measures among "rouge1".."rouge9", "rougeL" (the text as one sequence) and "rougeLsum" (sentence
            by sentence, union LCS).
        stemmer: whether to Porter-stem words of more than three letters (English; with the Unicode tokenizer, only
            ASCII words).
        tokenizer: "rouge-score", the package's own (`[a-z0-9]+`, comparable with published figures), or
            "unicode" (letters, digits and marks of any script; one token per character in unspaced scripts).
            They agree on ASCII. "unicode-tr" is the latter with Turkish lower-casing: I is ı, İ is i.
        split: how ROUGE-Lsum finds sentences. "precis-rules": `split_sentences` splits a text of one line; a
            text of several lines counts as split. "newline": lines as given, the behaviour of rouge-score
            itself.
        references: with several references per example, take the "max" of each measure (rouge-score's
            `score_multi`; each measure may take its maximum at another reference) or their "mean".

    Examples:
        >>> rouge = Rouge(types=("rouge1", "rougeL"), stemmer=False)
        >>> rouge.types
        ('rouge1', 'rougeL')
    """

    types: tuple[str, ...] = ROUGE_TYPES
    stemmer: bool = True
    tokenizer: TokenizerName = "rouge-score"
    split: Literal["precis-rules", "newline"] = "precis-rules"
    references: Literal["max", "mean"] = "max"

    def __post_init__(self) -> None:
        _check_choice("tokenizer", self.tokenizer, get_args(TokenizerName))
        _check_choice("split", self.split, ("precis-rules", "newline"))
        _check_choice("references", self.references, ("max", "mean"))
        if not self.types:
            raise UserError(f"no ROUGE type given; known: {', '.join(ROUGE_TYPES)}")
        for name in self.types:
            counted = len(name) == 6 and name[:5] == "rouge" and name[5] in "123456789"
            if not counted and name not in ROUGE_TYPES:
                raise UserError(f"unknown ROUGE type {name!r}{nearest(name, ROUGE_TYPES)}")

    @classmethod
    def choose(
        cls,
        references: Iterable[str],
        *,
        language: str | None = None,
        types: tuple[str, ...] = ROUGE_TYPES,
        tokenizer: TokenizerName | None = None,
        stemmer: bool | None = None,
    ) -> Rouge:
        """Choose ROUGE for these references: rouge-score's tokens and stems for English, else Unicode words.

        Training and `precis evaluate` both call this, so that their figures agree.

        Args:
            language: language of the texts, as an ISO 639-1 code; if None, the references' letters decide.
            tokenizer, stemmer: override the choice.
        """
        english = language == "en" if language else beyond_ascii_share(references) <= _NOT_ENGLISH
        words: TokenizerName = "unicode-tr" if language in _DOTLESS else "unicode"
        return cls(
            types=types,
            tokenizer=tokenizer or ("rouge-score" if english else words),
            stemmer=english if stemmer is None else stemmer,
        )

    @property
    def signature(self) -> str:
        """All settings needed to reproduce the figures, in sacrebleu's `key:value|...` form."""
        return signature_of(
            "rouge",
            types=",".join(name.removeprefix("rouge") for name in self.types),
            stem="porter" if self.stemmer else "no",
            tok=self.tokenizer,
            split=RULES if self.split == "precis-rules" else self.split,
            refs=self.references,
            version=version("rouge-score"),
        )

    @cached_property
    def _tokenizer(self) -> _Tokenizer:
        return _Tokenizer(self.tokenizer, stemmer=self.stemmer)

    def tokenize(self, text: str) -> list[str]:
        """Return the tokens to compare."""
        return self._tokenizer.tokenize(text)

    def lines(self, text: str) -> str:
        """Put one sentence of `text` on each line, as ROUGE-Lsum requires; other measures do not change."""
        if self.split == "newline" or "\n" in text.strip():
            return text
        return "\n".join(split_sentences(text))

    def score(
        self, predictions: Sequence[str], references: Sequence[Sequence[str]]
    ) -> dict[str, NDArray[np.float64]]:
        """Compute F1 * 100 of each prediction.

        Args:
            predictions: n texts; an empty one scores 0.
            references: the references of each prediction, at least one.

        Returns:
            An array (n,) in 0..100 for each type.

        Raises:
            UserError: the lengths differ, or an example lacks a reference.
        """
        check_parallel(predictions, references)
        combine = max if self.references == "max" else _mean
        scores = {name: np.zeros(len(predictions)) for name in self.types}
        for row, (prediction, targets) in enumerate(zip(predictions, references, strict=True)):
            found = [self._f1(target, prediction) for target in targets]
            for name in self.types:
                scores[name][row] = 100 * combine([f1[name] for f1 in found])
        return scores

    def _f1(self, target: str, prediction: str) -> dict[str, float]:
        """Compute F1 of each type, 0..1. rouge-score counts n-grams; the LCS equals its own."""
        result = {
            name: score.fmeasure for name, score in self._ngram_scorer.score(target, prediction).items()
        }
        if "rougeL" in self.types:
            wanted, given = self.tokenize(target), self.tokenize(prediction)
            result["rougeL"] = _f1(lcs_length(wanted, given), len(wanted), len(given))
        if "rougeLsum" in self.types:
            wanted_lines, given_lines = self._token_lines(target), self._token_lines(prediction)
            hits = union_hits(wanted_lines, given_lines)
            result["rougeLsum"] = _f1(hits, sum(map(len, wanted_lines)), sum(map(len, given_lines)))
        return result

    @cached_property
    def _ngram_scorer(self) -> rouge_scorer.RougeScorer:
        counted = [name for name in self.types if name[5:].isdigit()]
        return rouge_scorer.RougeScorer(counted, tokenizer=self._tokenizer)

    def _token_lines(self, text: str) -> list[list[str]]:
        return [self.tokenize(line) for line in self.lines(text).split("\n")]


def _f1(hits: int, wanted: int, given: int) -> float:
    if not wanted or not given:
        return 0.0
    return float(scoring.fmeasure(hits / given, hits / wanted))


class _Tokenizer:
    """Tokenizer: rouge-score's own, or words of any script, with ASCII words stemmed as in rouge-score."""

    def __init__(self, name: TokenizerName, *, stemmer: bool) -> None:
        self._is_unicode = name != "rouge-score"
        self._is_turkish = name == "unicode-tr"
        self._stemmer = RememberingStemmer() if stemmer else None

    def tokenize(self, text: str) -> list[str]:
        if not self._is_unicode:
            return list(rouge_tokenize.tokenize(text, self._stemmer))
        if self._is_turkish:
            text = unicodedata.normalize("NFC", text).replace("I", "ı").replace("İ", "i")
        words = unicode_words(text)
        if self._stemmer is None:
            return words
        stem = self._stemmer.stem
        return [stem(word) if len(word) > 3 and word.isascii() else word for word in words]


class RememberingStemmer:
    """nltk's Porter stemmer with a cache, several times faster."""

    def stem(self, word: str) -> str:
        return _porter_stem(word)


@lru_cache(maxsize=200_000)
def _porter_stem(word: str) -> str:
    return str(_PORTER.stem(word))


_PORTER = tokenizers.porter.PorterStemmer()


def check_parallel(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Raise `UserError` unless every prediction has references, each a list of at least one text."""
    if len(predictions) != len(references):
        raise UserError(
            f"{len(predictions)} predictions for {len(references)} examples; "
            "score the same examples in the same order"
        )
    for row, targets in enumerate(references, start=1):
        if isinstance(targets, str):
            raise UserError(f"references of example {row} are one text; give a list of texts: [text]")
        if not targets:
            raise UserError(f"example {row} lacks a reference; add one or remove the example")


def signature_of(name: str, **settings: object) -> str:
    """Return the settings needed to reproduce a figure, in sacrebleu's `key:value|...` form, with precis's version."""
    return "|".join([name, *(f"{key}:{value}" for key, value in {**settings, "precis": __version__}.items())])


def check_scored(name: str, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Call `check_parallel`, and raise `UserError` without predictions, since the score `name` is then undefined."""
    check_parallel(predictions, references)
    if not predictions:
        raise UserError(f"{name} needs at least one prediction")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _check_choice(what: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise UserError(f"unknown ROUGE {what} {value!r}{nearest(value, known)}")


def lcs_length(reference: Tokens, candidate: Tokens) -> int:
    """Compute the length of the longest common subsequence."""
    rows = _rows(reference, _positions(candidate), len(candidate))
    return len(candidate) - rows[-1].bit_count()


def union_hits(references: Sequence[Tokens], candidates: Sequence[Tokens]) -> int:
    """Count the matches of summary-level LCS (Lin 2004, section 3.2) between sentences of reference and candidate.

    Each reference sentence contributes the union of its longest common subsequences with all candidate sentences.
    No token of either side counts twice (ROUGE-1.5.5 and rouge-score): a union has each place of a reference once.
    """
    left_in_candidate = Counter(token for sentence in candidates for token in sentence)
    positions = [_positions(candidate) for candidate in candidates]
    hits = 0
    for reference in references:
        union: set[int] = set()
        for candidate, bits in zip(candidates, positions, strict=True):
            union |= _read_out(reference, candidate, bits)
        for index in sorted(union):
            token = reference[index]
            if left_in_candidate[token] > 0:
                hits += 1
                left_in_candidate[token] -= 1
    return hits


def _positions(candidate: Tokens) -> dict[str, int]:
    """Return each token's positions as bits."""
    bits: dict[str, int] = {}
    for place, token in enumerate(candidate):
        bits[token] = bits.get(token, 0) | 1 << place
    return bits


def _rows(reference: Tokens, positions: Mapping[str, int], width: int) -> list[int]:
    """Return row i of the table t for the first i reference tokens; bit j is 0 if t[i][j + 1] = t[i][j] + 1."""
    full = (1 << width) - 1
    rows = [full]
    for token in reference:
        row = rows[-1]
        matched = row & positions.get(token, 0)
        rows.append(((row + matched) | (row - matched)) & full)
    return rows


def _read_out(reference: Tokens, candidate: Tokens, positions: Mapping[str, int]) -> set[int]:
    """Return the reference indices of the subsequence that rouge-score's `_backtrack_norec` finds."""
    if positions.keys().isdisjoint(reference):
        return set()
    rows = _rows(reference, positions, len(candidate))
    i, j = len(reference), len(candidate)
    chosen = set()
    while i > 0 and j > 0:
        below = (1 << j) - 1
        if reference[i - 1] == candidate[j - 1]:
            chosen.add(i - 1)
            i, j = i - 1, j - 1
        # t[i][j - 1] > t[i - 1][j]: more zeros, so fewer ones apart from the one column less.
        elif j - 1 - (rows[i] & (below >> 1)).bit_count() > j - (rows[i - 1] & below).bit_count():
            j -= 1
        else:
            i -= 1
    return chosen
