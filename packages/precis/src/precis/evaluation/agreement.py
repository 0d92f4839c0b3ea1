"""Agreement of metrics with human judgements of the same summaries.

Spearman's rho and Kendall's tau (tau-b, for ties) over all summaries, and Kendall's tau of the systems' means.
Intervals resample documents, because summaries of one document are not independent.
Deutsch et al. (2021), "A Statistical Analysis of Summarization Evaluation Metrics Using Resampling Methods".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from precis.evaluation.significance import Bootstrap, Interval
from precis_text.errors import UserError

Column = NDArray[np.float64]
_FEWEST_SYSTEMS = 3
_FEW = 100  # values below which comparing pairs is faster than sorting


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Correlations of one metric with one human score, -1 to 1; None if undefined.

    Attributes:
        summaries: number of summaries with both scores.
        system_tau: None below three systems.
    """

    summaries: int
    spearman: Interval | None
    kendall: Interval | None
    system_tau: Interval | None

    def to_dict(self) -> dict[str, object]:
        """Return a JSON-ready dictionary."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The document and the system of each of n summaries."""

    documents: Sequence[str]
    systems: Sequence[str]


def agreement(
    metric: Column, human: Column, judged: Judged, *, bootstrap: Bootstrap | None = None
) -> Agreement:
    """Compare a metric (n) with a human score (n), without NaN rows; raise `UserError` if their lengths differ."""
    bootstrap = bootstrap or Bootstrap()
    if not len(metric) == len(human) == len(judged.documents) == len(judged.systems):
        raise UserError(f"the metric has {len(metric)} values for {len(human)} human scores; align them")
    kept = np.isfinite(metric) & np.isfinite(human)
    ours, theirs = metric[kept], human[kept]
    _, systems = np.unique(np.array(judged.systems)[kept], return_inverse=True)
    _, documents = np.unique(np.array(judged.documents)[kept], return_inverse=True)
    rows = [np.flatnonzero(documents == document) for document in range(documents.max(initial=-1) + 1)]

    def interval(statistic: Callable[[NDArray[np.int64]], float]) -> Interval | None:
        return _interval(statistic, rows, bootstrap)

    return Agreement(
        summaries=len(ours),
        spearman=interval(lambda drawn: spearman(ours[drawn], theirs[drawn])),
        kendall=interval(lambda drawn: kendall(ours[drawn], theirs[drawn])),
        system_tau=interval(lambda drawn: system_tau(ours[drawn], theirs[drawn], systems[drawn])),
    )


def spearman(ours: Column, theirs: Column) -> float:
    """Compute Spearman's rho, as scipy does but faster; NaN if either column is constant."""
    if len(ours) < 2 or _constant(ours) or _constant(theirs):
        return float("nan")
    return float(np.corrcoef(stats.rankdata(ours), stats.rankdata(theirs))[0, 1])


def kendall(ours: Column, theirs: Column) -> float:
    """Compute Kendall's tau-b, as scipy does; NaN if either is constant. For few values, comparing pairs is faster."""
    if len(ours) < 2 or _constant(ours) or _constant(theirs):
        return float("nan")
    if len(ours) > _FEW:
        return float(stats.kendalltau(ours, theirs).statistic)
    first, second = (np.sign(column[:, None] - column) for column in (ours, theirs))
    agreeing, untied, also_untied = (
        np.sum(a * b) / 2 for a, b in ((first, second), (first, first), (second, second))
    )
    return float(np.clip(agreeing / np.sqrt(untied) / np.sqrt(also_untied), -1.0, 1.0))


def system_tau(ours: Column, theirs: Column, systems: NDArray[np.int64]) -> float:
    """Compute Kendall's tau-b of the systems' means; NaN below three systems."""
    present = np.unique(systems)
    if len(present) < _FEWEST_SYSTEMS:
        return float("nan")
    counts = np.bincount(systems)[present]
    means = [np.bincount(systems, weights=column)[present] / counts for column in (ours, theirs)]
    return kendall(means[0], means[1])


def _constant(values: Column) -> bool:
    return bool(np.ptp(values) == 0)


def _interval(
    statistic: Callable[[NDArray[np.int64]], float], rows: Sequence[NDArray[np.int64]], bootstrap: Bootstrap
) -> Interval | None:
    """Compute a figure of all rows with an interval over documents; undefined draws are ignored."""
    if not rows:
        return None
    whole = statistic(np.concatenate(rows))
    if np.isnan(whole):
        return None
    resampled = bootstrap.resampled(
        lambda drawn: statistic(np.concatenate([rows[d] for d in drawn])), len(rows)
    )
    known = resampled[np.isfinite(resampled)]
    if not len(known):
        return None
    edge = (1 - bootstrap.level) / 2
    low, high = np.quantile(known, [edge, 1 - edge])
    return Interval(mean=whole, low=float(low), high=float(high), samples=len(known), level=bootstrap.level)


def agreements(
    metrics: Mapping[str, Column],
    human: Mapping[str, Column],
    judged: Judged,
    *,
    bootstrap: Bootstrap | None = None,
) -> dict[str, dict[str, Agreement]]:
    """Return human score -> metric -> agreement, metrics in order of Spearman's rho."""

    def rho(row: tuple[str, Agreement]) -> float:
        return -2.0 if row[1].spearman is None else row[1].spearman.mean

    found = {}
    for name, scores in human.items():
        rows = {
            metric: agreement(column, scores, judged, bootstrap=bootstrap)
            for metric, column in metrics.items()
        }
        found[name] = dict(sorted(rows.items(), key=rho, reverse=True))
    return found
