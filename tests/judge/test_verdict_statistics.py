"""Win rates, strengths, agreement and their intervals."""

import numpy as np
import pytest
from scipy.stats import binomtest

from precis_judge.sample_size import Preference, needed, power_of
from precis_judge.verdict_statistics import (
    Estimate,
    Votes,
    bradley_terry,
    clustered,
    krippendorff,
    pair_result,
    share,
    strengths,
    win_rate,
)


def crossed(won: np.ndarray) -> Votes:
    """Verdicts (documents, judges) of two systems."""
    document, judge = np.indices(won.shape).reshape(2, -1)
    zeros = np.zeros(won.size, dtype=np.int64)
    return Votes(document=document, judge=judge, first=zeros, second=zeros + 1, first_won=won.ravel())


def ends(found: Estimate) -> tuple[float, float]:
    """The ends of an interval that has both."""
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def test_intervals_hold_the_truth_in_about_95_of_100_studies() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for seed in range(100):
        odds = 0.4 + rng.standard_normal((60, 1)) + 0.3 * rng.standard_normal((1, 5))
        won = (rng.random((60, 5)) < 1 / (1 + np.exp(-odds))).astype(float)
        low, high = ends(win_rate(crossed(won), seed=seed))
        held += low <= 0.5842 <= high  # the mean chance at these spreads, by quadrature
    assert 89 <= held <= 99


def test_the_interval_for_other_documents_is_as_wide_as_their_standard_error_says() -> None:
    rng = np.random.default_rng(3)
    won = rng.choice([0.0, 0.5, 1.0], p=[0.3, 0.2, 0.5], size=(2000, 1))
    found = [ends(win_rate(crossed(won), seed=seed)) for seed in range(20)]
    width = np.mean([high - low for low, high in found])
    middle = np.mean([(high + low) / 2 for low, high in found])
    assert width == pytest.approx(2 * 1.96 * won.std(ddof=1) / np.sqrt(2000), rel=0.02)
    assert middle == pytest.approx(won.mean(), abs=0.001)


def test_a_study_in_any_order_of_documents_has_the_same_interval() -> None:
    rng = np.random.default_rng(4)
    votes = crossed(rng.integers(0, 3, (300, 2)) / 2)
    names = rng.permutation(300)
    renamed = Votes(**{**vars(votes), "document": names[votes.document]})
    assert win_rate(renamed) == win_rate(votes)


def test_verdicts_of_many_judges_on_few_documents_do_not_count_as_independent() -> None:
    won = np.repeat([[1.0], [0.0], [1.0], [1.0]], 50, axis=1)
    found = pair_result(crossed(won), ("a", "b"))
    assert (found.wins, found.losses, found.ties, found.documents) == (150, 50, 0, 4)
    assert found.p_documents == binomtest(3, 4).pvalue
    assert found.p_verdicts < 1e-6 < found.p_documents
    low, high = ends(found.rate)
    assert low < 0.45
    assert high == 1


def test_judges_who_differ_widen_the_interval_and_one_judge_is_told() -> None:
    alike, differ = np.tile([1.0, 0.0, 1.0, 0.0], (40, 1)), np.tile([1.0, 1.0, 1.0, 0.0], (40, 1))
    rng = np.random.default_rng(1)
    mixed = rng.permuted(alike, axis=1)
    width = {}
    for name, won in (("mixed", mixed), ("differ", differ)):
        low, high = ends(win_rate(crossed(won)))
        width[name] = high - low
    assert width["differ"] > 2 * width["mixed"]
    assert "one judge" in win_rate(crossed(mixed[:, :1])).note


def test_a_tie_counts_half_and_stays_apart_in_the_test() -> None:
    found = pair_result(crossed(np.array([[1.0], [1.0], [0.5], [0.5], [0.0]])), ("a", "b"))
    assert (found.rate.value, found.ties) == (0.6, 2)
    assert found.p_verdicts == found.p_documents == binomtest(2, 3).pvalue


def test_a_system_with_only_wins_has_an_exact_interval_and_no_finite_strength() -> None:
    votes = crossed(np.ones((10, 1)))
    rate = win_rate(votes)
    assert (rate.value, rate.high) == (1, 1)
    assert rate.low == pytest.approx(0.025 ** (1 / 10))
    found = strengths(votes, ["a", "b"])
    assert found["a"].value is None
    assert found["a"].note.startswith("only wins: its strength and interval are not finite")
    assert found["b"].note.startswith("only losses")


def test_ten_ties_leave_the_interval_open_on_both_sides() -> None:
    rate = win_rate(crossed(np.full((10, 1), 0.5)))
    most = 1 - 0.025 ** (1 / 10)  # the largest share of other verdicts
    assert rate.value == 0.5
    assert (rate.low, rate.high) == pytest.approx((0.5 - most / 2, 0.5 + most / 2))
    assert rate.note == "every verdict is a tie; exact interval over documents"


def test_two_judges_have_an_interval_over_documents_that_agrees_with_the_test() -> None:
    won = np.ones((10, 2))
    won[7:, 1] = 0.5
    found = pair_result(crossed(won), ("a", "b"))
    assert (found.rate.value, found.wins, found.ties) == (0.925, 17, 3)
    assert found.p_documents == pytest.approx(0.002, abs=1e-4)
    seven, ten = (binomtest(count, 10).proportion_ci(0.95, "exact") for count in (7, 10))
    low, high = ends(found.rate)
    assert low == pytest.approx(0.75 * ten.low + 0.25 * seven.low)
    assert low > 0.5
    assert high == pytest.approx(0.75 + 0.25 * seven.high)
    assert found.rate.note.startswith("2 judges: ")


def test_strengths_of_two_judges_have_an_interval_over_documents_alone() -> None:
    rng = np.random.default_rng(2)
    won = rng.choice([0.0, 1.0], 40, p=[0.3, 0.7])
    two, one = (crossed(np.stack([won] * judges, axis=1)) for judges in (2, 1))
    found, alone = strengths(two, ["a", "b"])["a"], strengths(one, ["a", "b"])["a"]
    assert ends(found) == ends(alone)  # the second judge says the same, and adds nothing
    assert found.note.startswith("2 judges: ")
    differ = crossed(np.stack([won, rng.choice([0.0, 1.0], 40, p=[0.6, 0.4])], axis=1))
    low, high = ends(strengths(differ, ["a", "b"])["a"])
    assert high - low < 1  # log-odds; Student's t with one degree of freedom made it 7.5 wide


@pytest.mark.long
@pytest.mark.parametrize("documents", [8, 30])
def test_that_interval_holds_the_truth_in_95_of_100_studies(documents: int) -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(200):
        chance = rng.beta(2, 1, (documents, 1))
        won = (rng.random((documents, 2)) < chance).astype(float)
        won[rng.random(won.shape) < 0.2] = 0.5
        low, high = ends(win_rate(crossed(won)))
        held += low <= 0.8 * 2 / 3 + 0.1 <= high
    assert held >= 190


def test_wins_without_ties_are_counted_as_table_6_does() -> None:
    won = np.array([1.0] * 58 + [0.0] * 33 + [0.5] * 32)[:, None]
    found = pair_result(crossed(won), ("a", "b")).share_of_wins
    assert found.value == pytest.approx(58 / 91)
    low, high = ends(found)
    assert low < 0.637 < high


def test_strengths_solve_the_equation_of_bradley_and_terry() -> None:
    wins = np.array([[0, 7, 9.5], [3, 0, 6], [0.5, 4, 0]])
    logs = bradley_terry(wins)
    expected = np.exp(logs[:, None]) / (np.exp(logs[:, None]) + np.exp(logs[None, :]))
    played = wins + wins.T
    np.testing.assert_allclose((played * expected).sum(1), wins.sum(1), atol=1e-4)
    assert logs.sum() == pytest.approx(0)
    two = bradley_terry(np.array([[0, 3.0], [1.0, 0]]))
    assert two[0] - two[1] == pytest.approx(np.log(3))


def test_alpha_is_one_for_equal_judges_near_zero_for_chance_and_none_without_overlap() -> None:
    rng = np.random.default_rng(0)
    column = rng.integers(0, 3, (60, 1)) / 2
    assert krippendorff(crossed(np.tile(column, (1, 3)))).value == pytest.approx(1)
    chance = krippendorff(crossed(rng.integers(0, 3, (200, 3)) / 2))
    low, high = ends(chance)
    assert chance.value is not None
    assert abs(chance.value) < 0.15
    assert low < chance.value < high
    assert chance.note.startswith("low")
    assert krippendorff(crossed(column)).note == "no item was seen by two judges"
    assert krippendorff(crossed(np.ones((5, 2)))).value is None


def test_alpha_equals_krippendorffs_formula_on_nominal_pairs() -> None:
    """With values -1 and 1 alone, ordinal and nominal alpha are one: 1 - observed / expected disagreement."""
    won = np.array([[1, 1], [1, 0], [0, 0], [1, 1], [0, 0.0], [1, 1]])
    ones, zeros = won.sum(), (1 - won).sum()
    expected = 2 * ones * zeros / (12 * 11)
    assert krippendorff(crossed(won)).value == pytest.approx(1 - (1 / 6) / expected)


def test_a_share_has_the_exact_interval() -> None:
    exact = binomtest(9, 10).proportion_ci(method="exact")
    assert (share(9, 10).low, share(9, 10).high) == (exact.low, exact.high)
    assert share(0, 0).value is None


@pytest.mark.parametrize("judges", [1, 3])
def test_a_planned_study_sees_the_preference_as_often_as_the_plan_says(judges: int) -> None:
    wanted = Preference(share=0.7, judge_spread=0.0)
    need = needed(wanted, judges)
    assert need.documents is not None
    assert power_of(need.documents, judges, wanted) == need.power >= 0.8
    rng = np.random.default_rng(0)
    odds = 1.0037  # whose chances, with a spread of 1, have the mean 0.7
    seen = 0
    for _ in range(400):
        chance = 1 / (1 + np.exp(-(odds + rng.standard_normal((need.documents, 1)))))
        won = np.sign(chance - rng.random((need.documents, judges)))
        margins = np.where(rng.random(won.shape) < wanted.ties, 0, won).sum(1)
        ahead, behind = int((margins > 0).sum()), int((margins < 0).sum())
        seen += binomtest(ahead, ahead + behind).pvalue <= 0.05
    assert seen / 400 == pytest.approx(need.power, abs=0.06)


def test_smaller_preferences_need_more_documents_and_some_cannot_be_seen() -> None:
    small, large = (needed(Preference(share=share), 3).documents for share in (0.6, 0.75))
    assert small is not None
    assert large is not None
    assert small > 3 * large
    assert needed(Preference(share=0.51, judge_spread=2.0), 1).documents is None


def test_the_interval_of_few_documents_is_as_wide_as_their_standard_error_says() -> None:
    won = np.array([[1.0], [0.0], [1.0], [0.5], [0.0]])
    votes = crossed(won)
    [found] = clustered(votes, 2, lambda wins: wins[:1, 1] / (wins[0, 1] + wins[1, 0]), samples=40_000)
    rng = np.random.default_rng(1)
    means = won[rng.integers(0, 5, (40_000, 5)), 0].mean(axis=1)
    middle = won.mean()
    low, high = np.quantile(middle + (means - middle) * np.sqrt(5 / 4), [0.025, 0.975])
    assert ends(found) == pytest.approx((low, high), abs=0.02)
    width = np.diff(ends(found))[0]
    assert width > 1.08 * float(np.diff(np.quantile(means, [0.025, 0.975]))[0])


@pytest.mark.parametrize("seed", range(4))
def test_the_strengths_of_two_systems_mirror_each_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    won = np.stack(
        [rng.choice([0.0, 0.5, 1.0], 12, p=[0.2, 0.2, 0.6]), *rng.integers(0, 2, (2, 12)) * 1.0], axis=1
    )
    found = strengths(crossed(won), ["a", "b"], seed=seed)
    one, other = found["a"], found["b"]
    assert other.value is not None
    assert one.value == pytest.approx(-other.value)
    low, high = ends(other)
    assert ends(one) == pytest.approx((-high, -low))
