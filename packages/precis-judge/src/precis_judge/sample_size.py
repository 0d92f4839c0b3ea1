"""The number of documents and judges that a study needs to detect a preference.

The test is the report's: exact and binomial, over documents, each counting for the system with more verdicts. Given
the judges, documents are independent, so the power is a sum over binomials and needs no simulation. Only the judges are
drawn (`_DRAWS` panels), since all documents share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom

from precis.table import Table
from precis_text.config import Settings
from precis_text.errors import UserError

Floats = NDArray[np.float64]

_DRAWS = 100
_MOST_DOCUMENTS = 10_000
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True, kw_only=True)
class Preference(Settings):
    """The expected verdicts.

    Attributes:
        share: share of the verdicts without ties that is for the better system; above 0.5 and below 1.
        ties: share of ties.
        document_spread: standard deviation over documents of the log-odds that the better system wins; 0: all equal.
        judge_spread: the same over judges.
        significance: maximum p-value of a significant difference.
        power: probability of detecting it.
    """

    share: float = 0.6
    ties: float = 0.2
    document_spread: float = 1.0
    judge_spread: float = 0.3
    significance: float = 0.05
    power: float = 0.8

    def __post_init__(self) -> None:
        if not 0.5 < self.share < 1:
            raise UserError(f"a preference must be above 0.5 and below 1, not {self.share}")
        if not 0 <= self.ties < 1:
            raise UserError(f"a share of ties must be from 0 to below 1, not {self.ties}")
        if not (0 < self.significance < 1 and 0 < self.power < 1):
            raise UserError("significance and power must be between 0 and 1")
        if not (0 <= self.document_spread <= 5 and 0 <= self.judge_spread <= 5):
            raise UserError("a spread of log-odds must be from 0 to 5")


@dataclass(frozen=True, kw_only=True)
class Need:
    """The requirements for one number of judges. `documents` is None if no number of documents is enough."""

    judges: int
    documents: int | None
    power: float

    @property
    def verdicts(self) -> int | None:
        """Pages of all judges together."""
        return None if self.documents is None else self.documents * self.judges


def needed(wanted: Preference, judges: int, *, seed: int = 0) -> Need:
    """Return the fewest documents, each seen by all `judges`, that give the required power."""
    chances = _document_chances(wanted, judges, np.random.default_rng(seed))

    def power(documents: int) -> float:
        return _power(documents, chances, wanted.significance)

    enough = 8
    while power(enough) < wanted.power:
        if enough >= _MOST_DOCUMENTS:
            return Need(judges=judges, documents=None, power=power(enough))
        enough = min(2 * enough, _MOST_DOCUMENTS)
    too_few = enough // 2 if enough > 8 else 0
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        too_few, enough = (too_few, middle) if power(middle) >= wanted.power else (middle, enough)
    return Need(judges=judges, documents=enough, power=power(enough))


def power_of(documents: int, judges: int, wanted: Preference, *, seed: int = 0) -> float:
    """Return the probability of detecting the preference with `documents` documents and `judges` judges."""
    return _power(
        documents, _document_chances(wanted, judges, np.random.default_rng(seed)), wanted.significance
    )


def _document_chances(wanted: Preference, judges: int, rng: np.random.Generator) -> Floats:
    """Return the chances that the better system, and the other, gets more verdicts of a document (draws 2)."""
    spread = float(np.hypot(wanted.document_spread, wanted.judge_spread))
    odds = _mean_odds(wanted.share, spread)
    draws = _DRAWS if wanted.judge_spread else 1
    judge = odds + wanted.judge_spread * rng.standard_normal((draws, judges))
    found = np.zeros((draws, 2))
    for point, weight in zip(_POINTS, _WEIGHTS, strict=True):
        win = (1 - wanted.ties) / (1 + np.exp(-(judge + wanted.document_spread * point)))
        margin = np.zeros((draws, 2 * judges + 1))  # chances of wins - losses from -judges to judges
        margin[:, judges] = 1
        for j in range(judges):
            up, down = win[:, j : j + 1], 1 - wanted.ties - win[:, j : j + 1]
            margin = (
                wanted.ties * margin + up * np.roll(margin, 1, axis=1) + down * np.roll(margin, -1, axis=1)
            )
        found += weight * np.stack([margin[:, judges + 1 :].sum(1), margin[:, :judges].sum(1)], axis=1)
    return found


def _mean_odds(share: float, spread: float) -> float:
    """Return the log-odds whose probabilities, under a normal spread, have the mean `share`."""
    return float(brentq(lambda odds: _mean_chance(odds, spread) - share, 0.0, 100.0))


def _mean_chance(odds: float, spread: float) -> float:
    return float(_WEIGHTS @ (1 / (1 + np.exp(-(odds + spread * _POINTS)))))


def _power(documents: int, chances: Floats, significance: float) -> float:
    """Return the mean probability over judges that the test over documents finds the better system ahead."""
    decided = chances.sum(axis=1)
    reach = 6 * np.sqrt(documents) / 2  # six standard deviations of a binomial at most
    first, last = documents * decided.min() - reach, documents * decided.max() + reach
    untied = np.arange(max(1, int(first)), min(documents, int(last) + 1) + 1)
    fewest = (
        binom.isf(significance / 2, untied, 0.5) + 1
    )  # the fewest wins at which the two-sided test finds a difference
    seen = binom.sf(fewest - 1, untied, (chances[:, 0] / decided)[:, None])  # (draws documents)
    return float(np.mean(np.sum(binom.pmf(untied, documents, decided[:, None]) * seen, axis=1)))


def plan_table(wanted: Preference, judges: Sequence[int], documents: int | None) -> Table:
    """Return the documents that each number of judges needs, or the power of each with `documents` documents."""
    share = f"{wanted.share:.0%} of verdicts without ties for the better system, {wanted.ties:.0%} ties"
    rows: list[tuple[str, ...]]
    header: tuple[str, ...]
    if documents is not None:
        rows = [(f"{n}", f"{documents * n:,}", f"{power_of(documents, n, wanted):.0%}") for n in judges]
        header = ("judges", "pages in all", "power")
        title = f"Power with {documents:,} documents: {share}"
    else:
        needs = [needed(wanted, n) for n in judges]
        rows = [
            (
                f"{need.judges}",
                "more than 10,000" if need.documents is None else f"{need.documents:,}",
                "-" if need.verdicts is None else f"{need.verdicts:,}",
                f"{need.power:.0%}",
            )
            for need in needs
        ]
        header = ("judges", "documents", "pages in all", "power")
        title = f"To detect {share}"
    caption = (
        f"p <= {wanted.significance} in an exact test over documents. Every judge sees every document. Log-odds to win "
        f"spread by {wanted.document_spread} over documents and {wanted.judge_spread} over judges. More documents help "
        "more than more judges. Repeated and gold pages are extra."
    )
    return Table(title=title, caption=caption, header=header, rows=rows)
