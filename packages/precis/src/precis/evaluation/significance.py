"""Uncertainty of scores over test sets and runs: percentile bootstrap, Student's t over runs, paired tests of systems.

Efron (1979) for the bootstrap; Koehn (2004), "Statistical significance tests for machine translation
evaluation", for resampling test sets. The same seed draws the same examples for every metric and system, so
differences stay paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from precis_text.config import Settings
from precis_text.errors import UserError

# The rows drawn at once are bounded, so that 1,000 samples of a large test set fit in memory.
_CELLS_AT_ONCE = 4_000_000
TOO_FEW_FOR_T = 2  # runs, which give their range

Statistic = Callable[[NDArray[np.int64]], float]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An interval: `mean` is the figure on all examples, `low` and `high` are percentiles of the resampled figures."""

    mean: float
    low: float
    high: float
    samples: int
    level: float = 0.95

    def __str__(self) -> str:
        return f"{self.mean:.1f} [{self.low:.1f}, {self.high:.1f}]"


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """A paired test: `difference` is a - b with its interval; `p_value` is two-sided, for the claim of equality."""

    difference: Interval
    p_value: float


@dataclass(frozen=True, kw_only=True)
class Bootstrap(Settings):
    """Bootstrap settings: the number of resamples, the level of the interval, and the seed of its own generator.

    Every method raises `UserError` without an example or a sample, and for a level outside (0, 1).
    """

    samples: int = 1000
    level: float = 0.95
    seed: int = 0

    def interval(self, values: NDArray[np.float64]) -> Interval:
        """Return the mean of `values` (n,), one per example, with its percentile interval."""
        resampled = self._resampled_means(values)
        return self._interval(float(np.mean(values)), resampled)

    def corpus_interval(self, statistic: Statistic, n: int) -> Interval:
        """Return `interval` for a corpus figure (BLEU): `statistic` maps row indices (n,) to that figure."""
        return self._interval(statistic(np.arange(n)), self.resampled(statistic, n))

    def paired(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> PairedTest:
        """Test whether the means of `a` and `b`, both (n,) over the same examples, differ.

        The p-value is the share of resampled differences, centred on 0, that are at least as large as the observed
        one. One is added to both counts, so that it is never 0.

        Raises:
            UserError: the lengths differ.
        """
        if len(a) != len(b):
            raise UserError(f"a paired test needs the same examples on both sides, got {len(a)} and {len(b)}")
        differences = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
        resampled = self._resampled_means(differences)
        return self._paired(float(differences.mean()), resampled)

    def corpus_paired(self, a: Statistic, b: Statistic, n: int) -> PairedTest:
        """Run `paired` for figures of the whole corpus, such as `SummedScore.resampled`."""
        everything = np.arange(n)
        return self._paired(a(everything) - b(everything), self.resampled(a, n) - self.resampled(b, n))

    def resampled(self, statistic: Statistic, n: int) -> NDArray[np.float64]:
        """Compute `statistic` for each draw of n rows; the draws are the same for the same n and seed."""
        return np.array([statistic(rows) for block in self._draws(n) for rows in block])

    def runs_interval(self, values: NDArray[np.float64]) -> Interval:
        """Return the mean of `values` (r, n), r runs on the same n examples, with an interval over runs and examples.

        Examples are resampled. For runs a deviation is drawn from Student's t with r - 1 degrees of freedom, times the
        standard error of the mean over runs. Resampling a few runs is not enough. A mean of three draws out of three
        stays within their range, which contains the true mean in three cases of four. For a comparison, pass
        differences of paired runs. With one run the interval covers only other examples, not other runs. Two runs
        give their range, since Student's t with one degree of freedom is wider than any score is sure to be.
        """
        return self.runs_paired(values).difference

    def runs_paired(self, differences: NDArray[np.float64]) -> PairedTest:
        """Test whether the mean of `differences` (r, n), of r pairs of runs, is 0; see `runs_interval`.

        The p-value is by Student's t for two runs too.
        """
        values = np.asarray(differences, dtype=np.float64)
        if values.ndim != 2 or not values.size:
            raise UserError(
                f"an interval needs scores of runs and examples, got an array of shape {values.shape}"
            )
        return self._over_runs(values.mean(axis=1), self._resampled_means(values.mean(axis=0)))

    def corpus_runs_interval(self, scores: Sequence[float], resampled: NDArray[np.float64]) -> Interval:
        """Return `runs_interval` for a figure of the whole corpus (BLEU).

        Args:
            scores: (r) each run's figure.
            resampled: (r, samples) each run's figure on resampled examples, the same draws for every run.
        """
        return self.corpus_runs_paired(scores, resampled).difference

    def corpus_runs_paired(self, differences: Sequence[float], resampled: NDArray[np.float64]) -> PairedTest:
        """Run `runs_paired` for figures of the whole corpus; see `corpus_runs_interval`."""
        means = np.tile(np.asarray(resampled, dtype=np.float64).mean(axis=0), 10)  # t has long tails
        return self._over_runs(np.asarray(differences, dtype=np.float64), means)

    def _over_runs(self, runs: NDArray[np.float64], resampled: NDArray[np.float64]) -> PairedTest:
        """Test figures of runs (r); `resampled` are draws of their mean over examples."""
        test = self._paired(float(runs.mean()), resampled + self._between_runs(runs, len(resampled)))
        if len(runs) != TOO_FEW_FOR_T:
            return test
        return replace(
            test, difference=replace(test.difference, low=float(runs.min()), high=float(runs.max()))
        )

    def _between_runs(self, means: NDArray[np.float64], samples: int) -> NDArray[np.float64]:
        """Draw deviations of the mean over runs (r) that other runs would cause; zeros for one run."""
        runs = len(means)
        if runs == 1:
            return np.zeros(samples)
        draws = np.random.default_rng([self.seed, runs]).standard_t(runs - 1, size=samples)
        deviations: NDArray[np.float64] = draws * means.std(ddof=1) / np.sqrt(runs)
        return deviations

    def _paired(self, observed: float, resampled: NDArray[np.float64]) -> PairedTest:
        as_far = np.abs(resampled - resampled.mean()) >= abs(observed)
        p_value = (1 + int(as_far.sum())) / (1 + len(resampled))
        return PairedTest(difference=self._interval(observed, resampled), p_value=p_value)

    def _interval(self, mean: float, resampled: NDArray[np.float64]) -> Interval:
        level = self.level
        if not 0 < level < 1:
            raise UserError(f"interval level {level} is not between 0 and 1; 0.95 is usual")
        low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
        return Interval(mean=mean, low=float(low), high=float(high), samples=len(resampled), level=level)

    def _resampled_means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        values = np.asarray(values, dtype=np.float64)
        return np.concatenate([values[rows].mean(axis=1) for rows in self._draws(len(values))])

    def _draws(self, n: int) -> Iterator[NDArray[np.int64]]:
        """Yield draws of n row indices with replacement, in blocks (block, n)."""
        if n == 0:
            raise UserError("a bootstrap interval needs at least one example")
        if self.samples < 1:
            raise UserError(f"a bootstrap needs at least one sample, got {self.samples}; 1000 is usual")
        rng = np.random.default_rng(self.seed)
        block = max(1, _CELLS_AT_ONCE // n)
        for done in range(0, self.samples, block):
            yield rng.integers(0, n, size=(min(block, self.samples - done), n))


OVER_RUNS = Bootstrap(samples=10_000)
"""The settings for `runs_interval`: Student's t has long tails."""
