"""Points average repetitions within a task, and tasks alike; unlike tasks are never averaged against each other."""

import pytest

from precis.errors import UserError
from precis.evaluation.probe_curves import Estimate, Measured, Point, curves


def run(
    line: str, x: float | None, mean: float, *, task: str = "", bounds: tuple[float, float] | None = None
):
    estimate = Estimate(mean, *bounds) if bounds else Estimate(mean)
    return Measured(line=line, x=x, task=task, metrics={"rougeL": estimate}, name=f"{line} {x}")


def test_points_stand_from_the_left_in_lines_by_first_mention() -> None:
    found = curves([run("b", 3, 1.0), run("a", 2, 2.0), run("b", 1, 3.0)], "rougeL")
    assert [curve.line for curve in found] == ["b", "a"]
    assert [(p.x, p.mean) for p in found[0].points] == [(1, 3.0), (3, 1.0)]


def test_a_single_run_keeps_its_interval() -> None:
    (curve,) = curves([run("a", 1, 30.0, bounds=(29.0, 31.5))], "rougeL")
    assert curve.points == (Point(1, 30.0, 29.0, 31.5, 1),)


def test_a_run_without_interval_has_none() -> None:
    (curve,) = curves([run("a", 1, 30.0)], "rougeL")
    assert (curve.points[0].low, curve.points[0].high) == (None, None)


def test_repeated_runs_give_their_mean_and_range() -> None:
    (curve,) = curves([run("a", 1, mean) for mean in (30.0, 33.0, 36.0)], "rougeL")
    assert curve.points == (Point(1, 33.0, 30.0, 36.0, 3),)


def test_tasks_count_alike_however_often_they_were_run() -> None:
    runs = [run("a", 5, 10.0, task="x"), run("a", 5, 14.0, task="x"), run("a", 5, 40.0, task="y")]
    (curve,) = curves(runs, "rougeL")
    assert curve.points[0].mean == 26.0
    assert curve.points[0].low is None  # that of task y is not known


def test_points_that_average_other_tasks_are_refused() -> None:
    runs = [run("a", 5, 10.0, task="x"), run("a", 5, 40.0, task="y"), run("b", 10, 10.0, task="x")]
    with pytest.raises(UserError, match="b at 10 has no run of y"):
        curves(runs, "rougeL")


def test_a_level_is_a_line_of_its_own() -> None:
    found = curves([run("a", None, 50.0), run("a", 1, 30.0)], "rougeL")
    assert [curve.is_level for curve in found] == [True, False]


def test_a_missing_metric_is_named_with_the_run() -> None:
    with pytest.raises(UserError, match=r"a 1: has no score 'rouge2'.*rougeL"):
        curves([run("a", 1, 30.0)], "rouge2")
