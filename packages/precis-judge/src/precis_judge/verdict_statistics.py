"""Win rates, strengths and agreement from verdicts, with intervals over documents and judges.

Verdicts on one document are alike, and so are verdicts of one judge. Ignoring that makes intervals too narrow (Steen &
Markert, EACL 2021). Each figure here is a function of the matrix of wins. Its interval combines two sources:

- documents are resampled with all their verdicts (bootstrap over clusters);
- judges are too few to resample. A deviation is drawn from Student's t with judges - 1 degrees of freedom, times the
  standard error between judges: the jackknife over judges, less the contribution of single verdicts to it
  (Cameron, Gelbach & Miller 2011: V = V_documents + V_judges - V_verdicts).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.stats import binomtest

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Statistic = Callable[[Floats], Floats]  # wins (s s) -> figures (k), NaN or infinite if undefined

SAMPLES = 1000
LEAST_JUDGES = 3
"""With fewer judges, Student's t has one degree of freedom, and its interval says nothing."""
ONE_JUDGE = "one judge: the interval does not cover other judges"
_FEW_JUDGES = "{} judges: the interval over documents does not cover other judges"
_VERDICT_SAMPLES = 200
_LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class Votes:
    """Verdicts by one criterion, n of them. `first_won` is 1, 0, or 0.5 for a tie."""

    document: Ints
    judge: Ints
    first: Ints
    second: Ints
    first_won: Floats

    def where(self, chosen: NDArray[np.bool_]) -> Votes:
        """Return the verdicts that a mask (n) selects."""
        return Votes(**{name: values[chosen] for name, values in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A figure with its 95% interval; None is an end that the data do not bound. `note` describes special cases."""

    value: float | None
    low: float | None
    high: float | None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return dict(vars(self))


@dataclass(frozen=True, kw_only=True)
class PairResult:
    """The result of two systems by one criterion.

    Attributes:
        wins: verdicts for the first system; `losses` for the second; `ties` for neither.
        rate: share of verdicts for the first one, a tie counting half (Z-Code++'s Table 5 averages these).
        share_of_wins: share of the verdicts that are not ties (Table 6 of the discourse-aware prefixes), with its exact
            interval over verdicts; valid only if each document has one verdict.
        p_documents: exact binomial test over documents: the share for the first system, among documents with more
            verdicts for one system. Documents are independent, so it is valid with any number of judges a document.
        p_verdicts: the same over verdicts without ties; valid only if each document has one verdict.
    """

    first: str
    second: str
    wins: int
    losses: int
    ties: int
    documents: int
    rate: Estimate
    share_of_wins: Estimate
    p_documents: float
    p_verdicts: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {**vars(self), "rate": self.rate.to_dict(), "share_of_wins": self.share_of_wins.to_dict()}


def pair_result(votes: Votes, names: tuple[str, str], *, seed: int = 0) -> PairResult:
    """Return the result of two systems from at least one verdict."""
    won = votes.first_won
    wins, losses = int((won == 1).sum()), int((won == 0).sum())
    documents = np.unique(votes.document)
    margins = np.array([np.sum(won[votes.document == one] - 0.5) for one in documents])
    return PairResult(
        first=names[0], second=names[1], wins=wins, losses=losses, ties=len(won) - wins - losses,
        documents=len(documents), rate=win_rate(votes, seed=seed), share_of_wins=share(wins, wins + losses),
        p_documents=sign_test(int((margins > 0).sum()), int((margins < 0).sum())),
        p_verdicts=sign_test(wins, losses),
    )  # fmt: skip


def sign_test(wins: int, losses: int) -> float:
    """Return the p-value of the exact two-sided binomial test of equal chances; 1 without wins and losses."""
    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def win_rate(votes: Votes, *, seed: int = 0) -> Estimate:
    """Return the share of verdicts for the first of two systems with its interval, a tie counting half.

    If all verdicts are the same, resampling gives no spread. With few judges, one deviation between judges cannot be
    estimated. Both cases get `_bounded`'s interval over documents instead.
    """
    won = votes.first_won
    judges = len(np.unique(votes.judge))
    if np.all(won == won[0]):
        says = {0.0: "for the other system", 0.5: "a tie", 1.0: "for one system"}[float(won[0])]
        return _bounded(votes, f"every verdict is {says}; exact interval over documents")
    if 1 < judges < LEAST_JUDGES:
        return _bounded(votes, _FEW_JUDGES.format(judges))
    two = Votes(**{**vars(votes), "first": np.zeros_like(votes.first), "second": np.ones_like(votes.second)})
    [found] = clustered(two, 2, lambda wins: wins[:1, 1] / (wins[0, 1] + wins[1, 0]), seed=seed)
    low, high = (min(max(end, 0.0), 1.0) if end is not None else None for end in (found.low, found.high))
    return Estimate(value=found.value, low=low, high=high, note=found.note)


def _bounded(votes: Votes, note: str) -> Estimate:
    """Return the win rate with an interval over documents that needs no spread between them.

    A document's rate is the sum of the steps up to it. So the mean rate is the sum over all levels of a step times the
    share of documents that reach the level, and each share has an exact (Clopper-Pearson) interval.
    """
    rates = np.array([np.mean(votes.first_won[votes.document == one]) for one in np.unique(votes.document)])
    levels = np.unique([*rates, 0.5, 1.0])
    low = high = below = 0.0
    for level in levels[levels > 0]:
        reached = binomtest(int((rates >= level).sum()), len(rates)).proportion_ci(_LEVEL, "exact")
        low, high = low + (level - below) * reached.low, high + (level - below) * reached.high
        below = level
    value = float(votes.first_won.mean())
    return Estimate(value=value, low=float(min(low, value)), high=float(max(high, value)), note=note)


def clustered(
    votes: Votes, systems: int, statistic: Statistic, *, seed: int = 0, samples: int = SAMPLES
) -> list[Estimate]:
    """Return `statistic` of all verdicts with intervals over documents and judges.

    With fewer than `LEAST_JUDGES` judges it covers only documents, as the note says. An end is None if more than 2.5%
    of the resamples are infinite on that side.
    """
    rng = np.random.default_rng(seed)
    by_document = _win_matrices(votes, votes.document, systems)  # (d s s)
    value = statistic(by_document.sum(axis=0))
    documents = len(by_document)
    # drawing documents is drawing counts of documents with the same wins: many documents, few kinds
    kinds, sizes = np.unique(by_document, axis=0, return_counts=True)
    counts = rng.multinomial(documents, sizes / documents, size=samples)
    drawn = np.array([statistic(wins) for wins in np.tensordot(counts.astype(float), kinds, 1)])
    with np.errstate(invalid="ignore"):
        scale = np.sqrt(documents / max(documents - 1, 1))  # n - 1, as in a variance
        wider = value + (drawn - value) * scale
        drawn = np.where(np.isfinite(drawn), wider, drawn)
    by_judge = _win_matrices(votes, votes.judge, systems)
    notes = []
    if len(by_judge) >= LEAST_JUDGES:
        spread = _between_judges(votes, by_judge, statistic, rng)
        drawn = drawn + rng.standard_t(len(by_judge) - 1, size=(samples, 1)) * spread
    else:
        notes.append(ONE_JUDGE if len(by_judge) == 1 else _FEW_JUDGES.format(len(by_judge)))
    if documents == 1:
        notes.append("one document: the interval does not cover other documents")
    return [_estimate(float(value[k]), drawn[:, k], "; ".join(notes)) for k in range(len(value))]


def _between_judges(votes: Votes, by_judge: Floats, statistic: Statistic, rng: np.random.Generator) -> Floats:
    """Return the standard deviation (k) of a statistic between judges, beyond that of single verdicts.

    It is negative where the judges move a value against the first one, as of two systems.
    """
    count, systems = by_judge.shape[:2]
    total = by_judge.sum(axis=0)
    left_out = np.array([statistic(total - own) for own in by_judge])
    codes = (votes.first * systems + votes.second) * 3 + np.round(2 * votes.first_won).astype(int)
    _, kind = np.unique(codes, return_inverse=True)
    alike = _win_matrices(votes, kind, systems)  # verdicts by outcome, of which there are few kinds
    sizes = np.bincount(kind)
    times = rng.multinomial(sizes.sum(), sizes / sizes.sum(), size=_VERDICT_SAMPLES) / sizes
    single = np.array([statistic(wins) for wins in np.tensordot(times, alike, 1)])
    if not np.isfinite(left_out).all() or np.isfinite(single).mean() < 0.5:
        return np.zeros(left_out.shape[1])  # an unbounded statistic lacks a standard error
    single[~np.isfinite(single)] = np.nan
    moved = left_out - left_out.mean(axis=0)
    jackknife = (count - 1) / count * np.sum(moved**2, axis=0)
    spread = np.sqrt(np.maximum(jackknife - np.nanvar(single, axis=0, ddof=1), 0.0))
    return np.asarray(np.where(moved.T @ moved[:, 0] < 0, -spread, spread), dtype=np.float64)


def _win_matrices(votes: Votes, groups: Ints, systems: int) -> Floats:
    """Return the verdicts (g s s) of each group in which one system beat the other; a tie counts half to each."""
    found, group = np.unique(groups, return_inverse=True)
    places = (group * systems + votes.first) * systems + votes.second
    mirrored = (group * systems + votes.second) * systems + votes.first
    size = len(found) * systems * systems
    won = np.bincount(places, votes.first_won, size) + np.bincount(mirrored, 1 - votes.first_won, size)
    return won.astype(np.float64).reshape(-1, systems, systems)


def _estimate(value: float, drawn: Floats, note: str) -> Estimate:
    drawn = np.sort(drawn[~np.isnan(drawn)])
    if not len(drawn):
        return Estimate(value=None, low=None, high=None, note=note)
    # on average, the k-th of n draws has k / (n + 1) of the distribution below it
    beyond = max(1, int((len(drawn) + 1) * (1 - _LEVEL) / 2))
    ends = [float(end) if np.isfinite(end) else None for end in (drawn[beyond - 1], drawn[-beyond])]
    return Estimate(value=value if np.isfinite(value) else None, low=ends[0], high=ends[1], note=note)


def strengths(votes: Votes, systems: Sequence[str], *, seed: int = 0) -> dict[str, Estimate]:
    """Return Bradley-Terry strengths by evalica: log-odds against the average system; a tie is half a win to each.

    They are finite only if every system beats and loses to every other, directly or through a chain (Ford 1957). A
    system with only wins has none, and the note says so.
    """
    found = clustered(votes, len(systems), bradley_terry, seed=seed)
    wins = _win_matrices(votes, np.zeros_like(votes.first), len(systems))[0]
    return {
        name: _explained(found[k], float(wins[k].sum()), float(wins[:, k].sum()))
        for k, name in enumerate(systems)
    }


def _explained(found: Estimate, wins: float, losses: float) -> Estimate:
    if wins + losses == 0:
        note = "not judged"
    elif losses == 0:
        note = "only wins: its strength and interval are not finite"
    elif wins == 0:
        note = "only losses: its strength and interval are not finite"
    elif found.value is None:
        note = "no finite strength: some systems never lost to others"
    elif found.low is None or found.high is None:
        note = "open interval: in some resamples it only wins, or only loses"
    else:
        return found
    return Estimate(
        value=found.value, low=found.low, high=found.high, note="; ".join(filter(None, (note, found.note)))
    )


def bradley_terry(wins: Floats) -> Floats:
    """Return log-strengths (s) with mean 0; infinite for systems above or below all others, NaN if undefined."""
    if len(wins) == 2 and wins[0, 1] > 0 and wins[1, 0] > 0:  # two systems have a solution in closed form
        half = np.log(wins[0, 1] / wins[1, 0]) / 2
        return np.array([half, -half])
    parts, part = connected_components(wins > 0, directed=True, connection="strong")
    if parts > 1:
        ahead = np.array([wins[part == p][:, part != p].sum() for p in range(parts)])
        behind = np.array([wins[part != p][:, part == p].sum() for p in range(parts)])
        score = np.where(
            (ahead > 0) & (behind == 0), np.inf, np.where((behind > 0) & (ahead == 0), -np.inf, np.nan)
        )
        return np.asarray(score[part], dtype=np.float64)
    import evalica

    rows, columns = np.nonzero(wins)
    result = evalica.bradley_terry(
        rows.tolist(),
        columns.tolist(),
        [evalica.Winner.X] * len(rows),
        weights=wins[rows, columns].tolist(),
        tolerance=1e-9,
        limit=10_000,
    )
    logs = np.log(result.scores.sort_index().to_numpy(dtype=np.float64))
    return np.asarray(logs - logs.mean(), dtype=np.float64)


def krippendorff(votes: Votes, *, seed: int = 0) -> Estimate:
    """Return Krippendorff's alpha of judges on comparisons that two or more saw (ordinal: a tie is in between).

    The interval is Krippendorff's own bootstrap, by evalica.
    """
    import evalica
    import pandas as pd

    units = [*zip(votes.document, votes.first, votes.second, strict=True)]
    names = {unit: place for place, unit in enumerate(dict.fromkeys(units))}
    judges = {judge: row for row, judge in enumerate(np.unique(votes.judge))}
    table = np.full((len(judges), len(names)), np.nan)
    for unit, judge, won in zip(units, votes.judge, votes.first_won, strict=True):
        table[judges[judge], names[unit]] = 2 * won - 1
    shared = (~np.isnan(table)).sum(axis=0) > 1
    if not shared.any():
        return Estimate(value=None, low=None, high=None, note="no item was seen by two judges")
    said = table[:, shared][~np.isnan(table[:, shared])]
    if np.all(said == said[0]):
        same = "all verdicts are the same, so agreement cannot be distinguished from chance"
        return Estimate(value=None, low=None, high=None, note=same)
    found = evalica.alpha_bootstrap(
        pd.DataFrame(table[:, shared]), "ordinal", n_resamples=SAMPLES, random_state=seed
    )
    note = ""
    if found.alpha < 0.4:
        note = "low: little agreement beyond chance"
    elif found.alpha < 0.667:
        note = "below 0.667, Krippendorff's minimum for tentative conclusions"
    return Estimate(value=float(found.alpha), low=float(found.low), high=float(found.high), note=note)


def share(hits: int, of: int) -> Estimate:
    """Return a share with its exact (Clopper-Pearson) interval."""
    if not of:
        return Estimate(value=None, low=None, high=None, note="none")
    exact = binomtest(hits, of).proportion_ci(_LEVEL, "exact")
    return Estimate(value=hits / of, low=float(exact.low), high=float(exact.high))
