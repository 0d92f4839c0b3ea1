"""Correlations equal scipy's, systems are compared by their means, and intervals draw documents."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from precis.evaluation.agreement import Judged, agreement, agreements, kendall, spearman, system_tau
from precis.evaluation.significance import Bootstrap
from precis_text.errors import UserError

FEW = Bootstrap(samples=200)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=40))
@settings(max_examples=50, deadline=None)
def test_correlations_equal_scipys(rows: list[tuple[int, int]]) -> None:
    ours, theirs = np.array(rows, dtype=float).T
    if np.ptp(ours) == 0 or np.ptp(theirs) == 0:
        assert np.isnan(spearman(ours, theirs))
        assert np.isnan(kendall(ours, theirs))
        return
    assert spearman(ours, theirs) == pytest.approx(stats.spearmanr(ours, theirs).statistic, abs=1e-12)
    assert kendall(ours, theirs) == stats.kendalltau(ours, theirs).statistic


@pytest.mark.parametrize("count", [99, 100, 101, 300])
def test_tau_of_few_and_of_many_values_equals_scipys_to_the_bit(count: int) -> None:
    rng = np.random.default_rng(count)
    ours, theirs = rng.integers(0, 9, count).astype(float), rng.normal(size=count)
    assert kendall(ours, theirs) == stats.kendalltau(ours, theirs).statistic


def test_systems_are_ranked_by_their_means() -> None:
    systems = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    metric = np.array([1.0, 9.0, 2.0, 2.0, 7.0, 7.0, 8.0, 8.0])  # means 5, 2, 7, 8
    human = np.array([2.0, 2.0, 1.0, 1.0, 5.0, 5.0, 4.0, 4.0])  # 2, 1, 5, 4
    assert system_tau(metric, human, systems) == stats.kendalltau([5, 2, 7, 8], [2, 1, 5, 4]).statistic
    assert system_tau(metric[:6], human[:6], systems[:6]) == stats.kendalltau([5, 2, 7], [2, 1, 5]).statistic
    assert np.isnan(system_tau(metric[:4], human[:4], systems[:4]))


def test_intervals_draw_documents_and_cover_what_is_true() -> None:
    rng = np.random.default_rng(0)
    documents = [f"d{row // 4}" for row in range(400)]
    judged = Judged(documents=documents, systems=[f"s{row % 4}" for row in range(400)])
    # Summaries of one document share their noise, so that 400 rows are worth 100.
    shared = np.repeat(rng.normal(size=100), 4)
    found = agreement(
        shared + rng.normal(size=400) / 10, np.repeat(rng.normal(size=100), 4), judged, bootstrap=FEW
    )
    rows_alone = Judged(documents=[str(row) for row in range(400)], systems=judged.systems)
    narrow = agreement(shared, shared[::-1].copy(), rows_alone, bootstrap=FEW)
    assert found.spearman is not None
    assert narrow.spearman is not None
    assert found.spearman.low < 0 < found.spearman.high
    assert found.spearman.high - found.spearman.low > 1.6 * (narrow.spearman.high - narrow.spearman.low)


def test_rows_without_a_value_are_left_out_and_what_cannot_be_told_is_none() -> None:
    judged = Judged(documents=list("aabb"), systems=list("xyxy"))
    metric = np.array([1.0, np.nan, 3.0, 4.0])
    found = agreements(
        {"m": metric, "flat": np.ones(4)}, {"h": np.array([1.0, 2, 3, 4])}, judged, bootstrap=FEW
    )
    assert list(found["h"]) == ["m", "flat"]
    assert found["h"]["m"].summaries == 3
    assert found["h"]["m"].spearman is not None
    assert found["h"]["m"].spearman.mean == pytest.approx(1.0)
    assert found["h"]["m"].system_tau is None
    assert found["h"]["flat"].kendall is None
    with pytest.raises(UserError, match="4 values for 3 human scores"):
        agreement(metric, np.ones(3), judged)


def test_a_column_of_one_value_has_no_correlation_and_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    flat, rising = np.ones(3), np.arange(3.0)
    for ours, theirs in ((flat, rising), (rising, flat), (rising[:1], rising[:1]), (rising[:0], rising[:0])):
        assert np.isnan(spearman(ours, theirs))
        assert np.isnan(kendall(ours, theirs))
    assert not recwarn.list


def test_a_resample_has_as_many_documents_as_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    resampled = Bootstrap.resampled

    def counted(
        self: Bootstrap, statistic: Callable[[NDArray[np.int64]], float], n: int
    ) -> NDArray[np.float64]:
        drawn.append(n)
        return resampled(self, statistic, n)

    monkeypatch.setattr(Bootstrap, "resampled", counted)
    judged = Judged(documents=list("aabbb"), systems=list("xyxyz"))
    assert agreement(np.arange(5.0), np.arange(5.0), judged, bootstrap=FEW).spearman is not None
    assert set(drawn) == {2}


def test_the_requested_resamples_decide_the_interval_and_the_usual_ones_by_default() -> None:
    judged = Judged(documents=list("abcdefgh"), systems=list("xyzwxyzw"))
    metric, human = np.arange(8.0), np.array([1.0, 0, 3, 2, 5, 4, 7, 6])
    few = agreement(metric, human, judged, bootstrap=Bootstrap(samples=50, level=0.5)).spearman
    assert few is not None
    assert (few.samples, few.level) == (50, 0.5)
    assert agreement(metric, human, judged) == agreement(metric, human, judged, bootstrap=Bootstrap())
