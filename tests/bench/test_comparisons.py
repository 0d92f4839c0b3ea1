"""Ratios, growth exponents, and the guard against regressions."""

import json
from dataclasses import replace

import pytest

from precis.bench import report
from precis.bench.baseline import read_baseline, regressions, write_baseline
from precis.bench.comparisons import Bench, Comparison, Figure, growths, ratios
from precis.bench.harness import BenchSettings, Cell, Contender, Measured, Memory, Results, Sample
from precis.errors import UserError

LENGTHS = (100, 200, 400)
SETTINGS = BenchSettings(rounds=3)


def measured(cell, contender, walls, tensors, foreign=0.0):
    samples = tuple(Sample(wall=w, cpu=2 * w, passes=1, foreign=foreign) for w in walls)
    memory = Memory(process_mb=500.0, added_mb=tensors + 1, tensors_mb=tensors)
    return Measured(cell=cell, contender=contender, samples=samples, memory=memory)


@pytest.fixture
def example():
    """Ours grows linearly, theirs with the square; in the second round both were three times as slow."""
    cells = [Cell(name=str(n), arguments={"tokens": n}) for n in LENGTHS]
    bench = Bench(
        name="example",
        contenders=[Contender(name="precis", make="a:b"), Contender(name="peer", make="a:c")],
        cells=cells,
        comparisons=[
            Comparison(cell="400", theirs="peer", goal=4.0),
            Comparison(cell="400", theirs="peer", figure=Figure.tensors, goal=5.0),
            Comparison(cell="400", theirs="absent"),
        ],
        settings=SETTINGS,
    )
    found = []
    for n in LENGTHS:
        ours, theirs = n / 100, (n / 100) ** 2
        found.append(measured(str(n), "precis", [ours, 3 * ours, ours], 10 * ours))
        found.append(measured(str(n), "peer", [theirs, 3 * theirs, 1.5 * theirs], 10 * theirs, foreign=0.5))
    return bench, Results(settings=SETTINGS, measured=tuple(found), left_out=())


def test_ratios_pair_rounds_so_that_a_slow_round_cancels(example):
    time, memory = ratios(*example)
    assert (time.low, time.value, time.high) == (4.0, 4.0, 6.0)
    assert time.met
    assert memory.value == 4.0
    assert memory.met is False


def test_growth_exponents_are_fitted_over_the_lengths(example):
    found = {(g.contender, g.figure): g.exponent for g in growths(*example)}
    assert found["precis", Figure.time] == pytest.approx(1.0)
    assert found["peer", Figure.tensors] == pytest.approx(2.0)


def test_the_guard_names_what_fell_and_lets_the_rest_pass(example, tmp_path):
    found = ratios(*example)
    path = tmp_path / "baseline.json"
    write_baseline("example", found, path)
    assert regressions("example", found, read_baseline(path), tolerance=0.1) == []
    content = json.loads(path.read_text())
    content["example"][found[1].name] = 8.0
    path.write_text(json.dumps(content))
    fallen = regressions("example", found, read_baseline(path), tolerance=0.1)
    assert [str(r) for r in fallen] == [f"{found[1].name}: 4.00, was 8.00 (-50%)"]
    assert regressions("example", found, read_baseline(path), tolerance=0.6) == []


def test_a_baseline_of_another_benchmark_or_no_baseline_is_refused_before_measuring(example, tmp_path):
    bench, _ = example
    path = tmp_path / "baseline.json"
    with pytest.raises(UserError, match="not a baseline"):
        read_baseline(path, [bench])
    path.write_text("[1, 2]")
    with pytest.raises(UserError, match="no ratios by benchmark"):
        read_baseline(path, [bench])
    path.unlink()
    write_baseline("other", ratios(*example), path)
    with pytest.raises(UserError, match="holds no ratio of this run of 'bench example'"):
        read_baseline(path, [bench])


def test_a_run_that_measured_nothing_of_the_baseline_is_refused(example, tmp_path):
    found = ratios(*example)
    path = tmp_path / "baseline.json"
    write_baseline("example", found[:1], path)
    with pytest.raises(UserError, match="holds no ratio of this run"):
        regressions("example", found[1:], read_baseline(path))


def test_a_baseline_keeps_what_another_run_wrote(example, tmp_path):
    found = ratios(*example)
    path = tmp_path / "baseline.json"
    write_baseline("other", found, path)
    write_baseline("example", found[:1], path)
    write_baseline("example", found[1:], path)
    assert {name: len(part) for name, part in read_baseline(path).ratios.items()} == {
        "other": 2,
        "example": 2,
    }


def test_the_report_holds_samples_ratios_and_a_picture(example, tmp_path):
    content = report.write(*example, tmp_path)
    assert json.loads((tmp_path / "bench-example.json").read_text()) == content
    assert [row["loaded"] for row in content["measured"][:2]] == [0, 3]
    assert content["ratios"][0]["ratio"] == 4.0
    assert (tmp_path / "bench-example.png").stat().st_size > 1000
    assert report.times_table(*example).row_count == 6


def test_tokens_a_second_are_shown_where_a_cell_counts_them(example):
    bench, results = example
    assert "tokens/s" not in [column.header for column in report.times_table(bench, results).columns]
    counted = replace(bench, cells=[replace(bench.cells[0], tokens=50), *bench.cells[1:]])
    (column,) = [c for c in report.times_table(counted, results).columns if c.header == "tokens/s"]
    assert list(column.cells) == ["50", "33", "", "", "", ""]
    rates = [row["tokens_per_second"] for row in report.to_json(counted, results)["measured"]]
    assert rates == [50.0, pytest.approx(33.33), None, None, None, None]
