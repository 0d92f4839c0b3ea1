"""Bootstrap intervals and the paired test."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precis.evaluation.significance import OVER_RUNS, Bootstrap
from precis_text.errors import UserError

_VALUES = st.lists(st.floats(0, 100), min_size=1, max_size=60).map(np.array)


@given(_VALUES)
@settings(deadline=None, max_examples=60)
def test_an_interval_contains_its_mean_and_lies_within_the_values(values: np.ndarray) -> None:
    interval = Bootstrap().interval(values)
    assert interval.low - 1e-9 <= interval.mean <= interval.high + 1e-9
    assert values.min() - 1e-9 <= interval.low <= interval.high <= values.max() + 1e-9


def test_more_data_gives_a_narrower_interval() -> None:
    values = np.random.default_rng(1).normal(50, 10, size=4000)
    widths = [(i := Bootstrap().interval(values[:n])).high - i.low for n in (40, 400, 4000)]
    assert widths[0] > 2 * widths[1] > 4 * widths[2]


def test_95_percent_of_intervals_cover_the_true_mean() -> None:
    rng = np.random.default_rng(2)
    intervals = [Bootstrap(samples=500, seed=i).interval(rng.uniform(size=200)) for i in range(500)]
    covered = np.mean([interval.low <= 0.5 <= interval.high for interval in intervals])
    assert 0.92 <= covered <= 0.98


def test_a_higher_level_gives_a_wider_interval() -> None:
    values = np.random.default_rng(3).normal(size=100)
    inner, outer = Bootstrap(level=0.8).interval(values), Bootstrap(level=0.99).interval(values)
    assert outer.low < inner.low < inner.high < outer.high


def test_the_seed_decides_and_numpys_global_generator_does_not() -> None:
    values = np.arange(30.0)
    np.random.seed(0)
    first = Bootstrap(seed=5).interval(values)
    np.random.seed(1)
    assert Bootstrap(seed=5).interval(values) == first != Bootstrap(seed=6).interval(values)


def test_a_corpus_statistic_that_is_a_mean_has_the_interval_of_the_mean() -> None:
    values = np.random.default_rng(4).normal(size=50)
    corpus = Bootstrap(samples=300).corpus_interval(lambda rows: float(values[rows].mean()), 50)
    direct = Bootstrap(samples=300).interval(values)
    assert (corpus.mean, corpus.low, corpus.high) == pytest.approx((direct.mean, direct.low, direct.high))


def test_draws_in_blocks_are_the_draws_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.concatenate(list(Bootstrap(samples=20, seed=3)._draws(7)))
    monkeypatch.setattr("precis.evaluation.significance._CELLS_AT_ONCE", 21)
    assert np.array_equal(np.concatenate(list(Bootstrap(samples=20, seed=3)._draws(7))), whole)


def test_a_system_does_not_differ_from_itself_and_differs_from_a_better_one() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(30, 10, size=200)
    assert Bootstrap().paired(values, values).p_value == 1
    better = Bootstrap().paired(values + rng.normal(1, 2, size=200), values)
    assert better.p_value < 0.01
    assert better.difference.low > 0


def test_pairing_finds_what_two_separate_intervals_hide() -> None:
    rng = np.random.default_rng(6)
    a = rng.normal(30, 10, size=200)
    b = a - rng.normal(0.5, 1, size=200)
    assert Bootstrap().interval(b).high > Bootstrap().interval(a).low
    assert Bootstrap().paired(a, b).p_value < 0.01


def test_without_a_difference_small_p_values_are_as_rare_as_they_say() -> None:
    rng = np.random.default_rng(7)
    tests = [Bootstrap(samples=300).paired(rng.normal(size=60), rng.normal(size=60)) for _ in range(200)]
    assert np.mean([test.p_value < 0.1 for test in tests]) == pytest.approx(0.1, abs=0.06)


def test_the_paired_test_of_corpus_figures_agrees_with_that_of_means() -> None:
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=80), rng.normal(0.3, size=80)
    corpus = Bootstrap(samples=200).corpus_paired(
        lambda r: float(a[r].mean()), lambda r: float(b[r].mean()), 80
    )
    direct = Bootstrap(samples=200).paired(a, b)
    assert corpus.p_value == direct.p_value
    assert corpus.difference.low == pytest.approx(direct.difference.low)


def test_bad_requests_are_refused() -> None:
    with pytest.raises(UserError, match="at least one example"):
        Bootstrap().interval(np.array([]))
    with pytest.raises(UserError, match="at least one sample"):
        Bootstrap(samples=0).interval(np.ones(3))
    with pytest.raises(UserError, match="level 95"):
        Bootstrap(level=95).interval(np.ones(3))
    with pytest.raises(UserError, match="same examples"):
        Bootstrap().paired(np.ones(3), np.ones(4))


def test_an_interval_over_runs_is_wider_than_one_over_their_mean() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=400)
    runs = np.array([rows - 2.0, rows, rows + 2.0])
    over_runs, over_rows = OVER_RUNS.runs_interval(runs), Bootstrap().interval(runs.mean(axis=0))
    assert over_runs.mean == pytest.approx(over_rows.mean)
    assert over_runs.high - over_runs.low > 5 * (over_rows.high - over_rows.low)
    alone = OVER_RUNS.runs_interval(rows[None])
    assert alone.high - alone.low == pytest.approx(over_rows.high - over_rows.low, rel=0.15)
    with pytest.raises(UserError, match="runs and examples"):
        OVER_RUNS.runs_interval(rows)


@pytest.mark.parametrize("runs", [3, 5, 8])
def test_an_interval_over_a_few_runs_holds_the_true_mean_as_often_as_it_says(runs: int) -> None:
    rng = np.random.default_rng(runs)
    held, trials = 0, 400
    for trial in range(trials):
        texts, each = rng.normal(0, 4, size=40), rng.normal(0, 2, size=(runs, 1))
        found = Bootstrap(samples=2000, seed=trial).runs_interval(
            30 + each + texts + rng.normal(size=(runs, 40))
        )
        held += found.low <= 30 <= found.high
    assert 0.93 < held / trials < 0.995


def test_two_runs_give_their_range_and_claim_no_coverage() -> None:
    runs = np.array([np.linspace(8, 12, 50), np.linspace(19, 23, 50)])
    found = OVER_RUNS.runs_interval(runs)
    assert (found.mean, found.low, found.high) == pytest.approx((15.5, 10.0, 21.0))
    resampled = np.array([Bootstrap().resampled(lambda r, run=run: float(run[r].mean()), 50) for run in runs])  # type: ignore[misc]
    corpus = Bootstrap().corpus_runs_interval([10.0, 21.0], resampled)
    assert (corpus.mean, corpus.low, corpus.high) == (15.5, 10.0, 21.0)
    tests = OVER_RUNS.runs_paired(runs), Bootstrap().corpus_runs_paired([10.0, 21.0], resampled)
    for test in tests:
        assert (test.difference.low, test.difference.high) == pytest.approx((10.0, 21.0))
        assert test.p_value > 0.1  # by Student's t: two runs hardly decide anything


def test_an_interval_over_runs_of_a_corpus_figure_agrees_with_that_of_means() -> None:
    rng = np.random.default_rng(3)
    runs = rng.normal(size=(3, 200)) + rng.normal(0, 0.5, size=(3, 1))
    resampled = np.array(
        [Bootstrap().resampled(lambda r, run=run: float(run[r].mean()), 200) for run in runs]  # type: ignore[misc]
    )
    corpus, direct = (
        Bootstrap().corpus_runs_interval(runs.mean(axis=1).tolist(), resampled),
        OVER_RUNS.runs_interval(runs),
    )
    assert corpus.mean == pytest.approx(direct.mean)
    assert (corpus.low, corpus.high) == pytest.approx((direct.low, direct.high), rel=0.1)
    (alone,) = resampled[:1]
    one = Bootstrap().corpus_runs_interval([float(runs[0].mean())], resampled[:1])
    assert (one.low, one.high) == pytest.approx(tuple(np.quantile(alone, [0.025, 0.975])), rel=0.05)


def test_the_interval_over_few_runs_has_the_width_of_students_distribution() -> None:
    runs = np.array([30.0, 31.0, 33.0])
    interval = Bootstrap(samples=4000).corpus_runs_interval([*runs], np.tile(runs[:, None], (1, 4000)))
    # 4.303: the 97.5% point of Student's t with two degrees of freedom
    width = 2 * 4.303 * runs.std(ddof=1) / np.sqrt(3)
    assert interval.high - interval.low == pytest.approx(width, rel=0.06)


def test_a_test_over_runs_counts_seeds_that_disagree() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(1, 1, size=300)
    agree, disagree = np.array([rows, rows, rows]), np.array([rows - 4, rows, rows + 4])
    assert OVER_RUNS.runs_paired(agree).p_value < 0.001
    assert OVER_RUNS.runs_paired(disagree).p_value > 0.3
    assert OVER_RUNS.runs_paired(disagree).difference == OVER_RUNS.runs_interval(disagree)
    resampled = np.array([Bootstrap().resampled(lambda r: float(rows[r].mean()), 300)] * 3)
    figures = np.array([0.0, 4.0, 8.0])
    found = Bootstrap().corpus_runs_paired([*figures], resampled + figures[:, None] - 4)
    assert found.p_value > 0.1
    assert found.difference.mean == pytest.approx(4.0)
