"""Ratios, growth exponents, and the guard against regressions."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.compare import report
from benchmarks.compare.baseline import guard, read_baseline, write_baseline
from benchmarks.compare.comparisons import Bench, Comparison, Figure, LongCells, ratios
from benchmarks.compare.contenders import BenchSettings, Cell, Contender
from benchmarks.compare.growth import growths, marginal_costs
from benchmarks.compare.results import Failure, Measured, Memory, Results, Sample
from precis_text.errors import UserError

LENGTHS = (100, 200, 400)
SETTINGS = BenchSettings(rounds=3)


def measured(cell: str, contender: str, walls: list[float], tensors: float, foreign: float = 0.0) -> Measured:
    samples = tuple(Sample(wall=w, cpu=2 * w, passes=1, foreign=foreign) for w in walls)
    memory = Memory(process_mb=500.0, added_mb=tensors + 1, tensors_mb=tensors)
    return Measured(cell=cell, contender=contender, samples=samples, memory=memory)


@pytest.fixture
def example() -> tuple[Bench, Results]:
    """Ours grows linearly, theirs with the square; in the second round both were three times as slow."""
    cells = [Cell(name=str(n), arguments={"tokens": n}) for n in LENGTHS]
    bench = Bench(
        name="example",
        contenders=[Contender(name="precis", make="a:b"), Contender(name="peer", make="a:c")],
        cells=cells,
        comparisons=[
            Comparison(cell="400", theirs="peer", goal=4.0, further_goal=4.5),
            Comparison(cell="400", theirs="peer", figure=Figure.tensors, goal=5.0),
            Comparison(cell="400", theirs="absent"),
        ],
        settings=SETTINGS,
    )
    found = []
    for n in LENGTHS:
        ours, theirs = n / 100, (n / 100) ** 2
        found.append(measured(str(n), "precis", [ours, 3 * ours, ours], 10 * ours))
        found.append(measured(str(n), "peer", [theirs, 3 * theirs, 1.5 * theirs], 10 * theirs))
    return bench, Results(settings=SETTINGS, measured=tuple(found), left_out=())


def test_ratios_pair_rounds_so_that_a_slow_round_cancels(example: tuple[Bench, Results]) -> None:
    time, memory = ratios(*example)
    assert (time.low, time.value, time.high) == (4.0, 4.0, 6.0)
    assert time.verdict == "4 met, 4.5 missed"
    assert memory.value == 4.0
    assert memory.verdict == "missed"


def loaded(results: Results, *rounds: int) -> Results:
    """The same with other work beside the peer in these rounds."""
    return replace(
        results,
        measured=tuple(
            m
            if m.contender == "precis"
            else replace(
                m,
                samples=tuple(
                    replace(s, foreign=0.5 if number in rounds else 0.0) for number, s in enumerate(m.samples)
                ),
            )
            for m in results.measured
        ),
    )


def test_slowdowns_and_cpu_seconds_are_compared_round_by_round() -> None:
    def measured(cell: str, name: str, *walls: float) -> Measured:
        samples = tuple(Sample(wall=wall, cpu=3 * wall, passes=1, foreign=0.0) for wall in walls)
        return Measured(cell=cell, contender=name, samples=samples, memory=None)

    found = (
        measured("a", "precis", 1.0, 2.0),
        measured("a", "peer", 2.0, 4.0),
        measured("a, with 2 spinning", "precis", 4.0, 6.0),
        measured("a, with 2 spinning", "peer", 4.0, 12.0),
    )
    comparisons = [
        Comparison(cell="a, with 2 spinning", theirs="peer", alone="a", goal=0.5),
        Comparison(cell="a", theirs="peer", figure=Figure.cpu, goal=3.0),
    ]
    cell = Cell(name="a", arguments={}, neighbours=(0, 2))
    contenders = [Contender(name=name, make="m:f") for name in ("precis", "peer")]
    settings = BenchSettings(rounds=2)
    bench = Bench(name="b", contenders=contenders, cells=[cell], comparisons=comparisons, settings=settings)
    slowdown, cpu = ratios(bench, Results(settings=settings, measured=found, left_out=()))
    assert slowdown.name == "a, with 2 spinning: slowdown of peer / precis"
    # ours 4 and 3 times, the peer's 2 and 3 times
    assert (slowdown.low, slowdown.high, slowdown.verdict) == (0.5, 1.0, "met")
    assert (cpu.name, cpu.value, cpu.verdict) == ("a: CPU time of peer / precis", 2.0, "missed")


def test_a_goal_is_not_judged_by_rounds_that_were_mostly_taken_beside_other_work(
    example: tuple[Bench, Results],
) -> None:
    bench, results = example
    verdicts = [ratios(bench, loaded(results, *range(n)))[0].verdict for n in (1, 2)]
    assert verdicts == ["4 met, 4.5 missed", "loaded"]


def test_growth_exponents_are_fitted_over_the_lengths(example: tuple[Bench, Results]) -> None:
    found = {(g.contender, g.figure): g.exponent for g in growths(*example)}
    assert found["precis", Figure.time] == pytest.approx(1.0)
    assert found["peer", Figure.tensors] == pytest.approx(2.0)


def test_exponents_from_a_length_on_and_what_a_token_more_costs_beside_the_floor(
    example: tuple[Bench, Results],
) -> None:
    bench, results = example
    long = LongCells(fitted_from=200, shorter="200", longer="400", ours=("precis", "absent"), theirs="peer")
    (cost,) = marginal_costs(replace(bench, long=long), results)
    assert cost.ratio == (4 - 2) / (1.5 * (16 - 4))
    assert len(growths(replace(bench, long=long), results)) == len(growths(bench, results)) == 4
    more = replace(bench, cells=[*bench.cells, Cell(name="800", arguments={"tokens": 800})], long=long)
    flat = replace(results, measured=(*results.measured, measured("800", "precis", [4.0] * 3, 40)))
    lines = [str(growth) for growth in growths(more, flat)]
    assert "precis: time grows as tokens^0.50 (200 to 800 tokens)" in lines
    assert marginal_costs(bench, results) == []


def test_the_guard_names_what_fell_and_lets_the_rest_pass(
    example: tuple[Bench, Results], tmp_path: Path
) -> None:
    bench, results = example
    found = ratios(bench, results)
    path = tmp_path / "baseline.json"
    write_baseline(bench, found, path)
    same = guard(bench, found, read_baseline(path), tolerance=0.1)
    assert (str(same), same.problems) == ("example: compared 3 of 3 figures of the baseline", [])
    content = json.loads(path.read_text())
    content["example"][found[1].name] = 8.0
    path.write_text(json.dumps(content))
    fallen = guard(bench, found, read_baseline(path), tolerance=0.1)
    assert fallen.problems == [f"example: {found[1].name}: 4.00, was 8.00 (-50%)"]
    assert guard(bench, found, read_baseline(path), tolerance=0.6).problems == []
    assert fallen.confirmed_by(same).problems == []
    assert fallen.confirmed_by(fallen).problems == fallen.problems
    without = guard(bench, found[:1], read_baseline(path), tolerance=0.1)
    assert fallen.confirmed_by(without).problems == fallen.problems  # nobody knows whether it fell again


def test_lost_threads_fall_on_the_wall_though_not_in_cpu_seconds(
    example: tuple[Bench, Results], tmp_path: Path
) -> None:
    bench, results = example
    path = tmp_path / "baseline.json"
    write_baseline(bench, ratios(bench, results), path)

    def slower(m: Measured) -> Measured:
        walls = (replace(s, wall=2 * s.wall) for s in m.samples)
        return m if m.contender == "peer" else replace(m, samples=tuple(walls))

    alone = replace(results, measured=tuple(slower(m) for m in results.measured))
    (line,) = guard(bench, ratios(bench, alone), read_baseline(path)).problems
    assert line == "example: 400: time of peer / precis, wall: 2.00, was 4.00 (-50%)"
    beside = guard(bench, ratios(bench, loaded(alone, 1)), read_baseline(path))
    assert beside.problems == []
    assert "compared 2 of 3 figures of the baseline; not compared, under other load: 400: time" in str(beside)


def test_a_ratio_of_the_baseline_that_the_run_should_have_and_has_not_is_a_problem(
    example: tuple[Bench, Results], tmp_path: Path
) -> None:
    bench, results = example
    path = tmp_path / "baseline.json"
    found = ratios(bench, results)
    write_baseline(bench, found, path)
    missing = guard(bench, found[:1], read_baseline(path))
    assert missing.problems == [f"example: {found[1].name}: absent from this run"]
    assert str(missing).endswith(f"compared 2 of 3 figures of the baseline; absent: {found[1].name}")
    without_memory = replace(bench, settings=replace(SETTINGS, memory=False))
    assert guard(without_memory, found[:1], read_baseline(path)).problems == []
    other_cells = replace(bench, cells=bench.cells[:1])
    assert guard(other_cells, [], read_baseline(path)).problems == []
    fewer = replace(bench, comparisons=bench.comparisons[:1])  # as with --quick, which leaves peers out
    assert guard(fewer, found[:1], read_baseline(path)).problems == []


def test_what_is_compared_no_more_leaves_the_baseline(example: tuple[Bench, Results], tmp_path: Path) -> None:
    bench, results = example
    path = tmp_path / "baseline.json"
    kept = {"other cell: time of peer / precis, CPU": 1.0, "400: tensors of peer / precis": 2.0}
    path.write_text(json.dumps({"example": {"400: time of gone / precis, CPU": 1.0, **kept}}))
    write_baseline(bench, ratios(bench, results)[:1], path)
    names = set(read_baseline(path).ratios["example"])
    assert names == {*kept, *(f"400: time of peer / precis, {clock}" for clock in ("CPU", "wall"))}


def test_a_baseline_of_another_benchmark_or_no_baseline_is_refused_before_measuring(
    example: tuple[Bench, Results], tmp_path: Path
) -> None:
    bench, _ = example
    path = tmp_path / "baseline.json"
    with pytest.raises(UserError, match="not a baseline"):
        read_baseline(path, [bench])
    path.write_text("[1, 2]")
    with pytest.raises(UserError, match="no ratios by benchmark"):
        read_baseline(path, [bench])
    path.unlink()
    write_baseline(replace(bench, name="other"), ratios(*example), path)
    with pytest.raises(UserError, match="holds no ratio of this run of 'bench example'"):
        read_baseline(path, [bench])


def test_a_baseline_keeps_what_another_run_wrote(example: tuple[Bench, Results], tmp_path: Path) -> None:
    bench, _ = example
    found = ratios(*example)
    path = tmp_path / "baseline.json"
    write_baseline(replace(bench, name="other"), found, path)
    write_baseline(bench, found[:1], path)
    write_baseline(bench, found[1:], path)
    assert {name: len(part) for name, part in read_baseline(path).ratios.items()} == {
        "other": 3,
        "example": 3,
    }


def test_the_report_holds_samples_ratios_failures_and_a_picture(
    example: tuple[Bench, Results], tmp_path: Path
) -> None:
    bench, results = example
    failure = Failure(contender="peer", cell="800", error="no memory", log=("a line",))
    results = replace(loaded(results, 0, 1, 2), failed=(failure,))
    content = report.write(bench, results, tmp_path, machine={"load": 0.5})
    assert json.loads((tmp_path / "bench-example.json").read_text()) == content
    assert (content["whole"], content["machine"]) == (True, {"load": 0.5})
    assert content["failed"] == [
        {"contender": "peer", "cell": "800", "error": "no memory", "log": ["a line"]}
    ]
    assert [row["loaded"] for row in content["measured"][:2]] == [0, 3]
    assert content["ratios"][0]["ratio"] == 4.0
    assert (tmp_path / "bench-example.png").stat().st_size > 1000
    assert report.times_table(*example).row_count == 6


def test_tokens_a_second_are_shown_where_a_cell_counts_them(example: tuple[Bench, Results]) -> None:
    bench, results = example
    assert "tokens/s" not in [column.header for column in report.times_table(bench, results).columns]
    counted = replace(bench, cells=[replace(bench.cells[0], tokens=50), *bench.cells[1:]])
    (column,) = [c for c in report.times_table(counted, results).columns if c.header == "tokens/s"]
    assert list(column.cells) == ["50", "33", "", "", "", ""]
    rates = [row["tokens_per_second"] for row in report.to_json(counted, results, machine={})["measured"]]
    assert rates == [50.0, pytest.approx(33.33), None, None, None, None]


def test_memory_that_torch_does_not_see_is_not_shown(example: tuple[Bench, Results]) -> None:
    bench, results = example

    def unseen(m: Measured) -> Measured:
        if m.contender == "precis":
            return m
        assert m.memory is not None
        return replace(m, memory=replace(m.memory, tensors_mb=None))

    outside = replace(results, measured=tuple(unseen(m) for m in results.measured))
    (column,) = [c for c in report.times_table(bench, outside).columns if c.header == "tensors MB"]
    assert list(column.cells) == ["10", "", "20", "", "40", ""]
    assert [ratio.name for ratio in ratios(bench, outside)] == ["400: time of peer / precis"]
