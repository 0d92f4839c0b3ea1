"""The table of models and baselines."""

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from precis.data.pairs.pair import Pair
from precis.evaluation.answer_metrics import MeanScore
from precis.evaluation.baselines import Lead
from precis.evaluation.rouge import Rouge
from precis.evaluation.sacrebleu_scores import bleu
from precis.evaluation.score_report import REFERENCES, Report
from precis.evaluation.scoring import score
from precis.evaluation.significance import Bootstrap
from precis.table import Table
from precis_text.errors import UserError

_TOWNS = ["Arlen", "Brook", "Corby", "Delph", "Esher", "Filey"]
_PAIRS = [
    Pair(
        document=f"Ann: Hi\nBob: The mill in {town} burned down\nAnn: Was anybody hurt?\nBob: No, nobody",
        summary=f"The mill in {town} burned down. Nobody was hurt.",
        references=(f"The mill in {town} burned down. Nobody was hurt.", f"{town}'s mill burned.")[
            : 1 + i % 2
        ],
        id=f"id-{i}",
    )
    for i, town in enumerate(_TOWNS)
]
_GOOD = [pair.summary for pair in _PAIRS]
_POOR = ["", *["A mill burned." for _ in _PAIRS[1:]]]
_QUICK = Bootstrap(samples=50)


@pytest.fixture(scope="module")
def report() -> Report:
    return score({"good": _GOOD, "poor|er": _POOR}, _PAIRS, with_bleu=True, intervals=_QUICK)


def test_models_come_first_then_baselines_and_the_bound(report: Report) -> None:
    assert [(s.name, s.kind) for s in report.systems] == [
        ("good", "model"),
        ("poor|er", "model"),
        ("LEAD-3", "baseline"),
        ("LONGEST-3", "baseline"),
        ("LEXRANK-3", "baseline"),
        ("TEXTRANK-3", "baseline"),
        ("ORACLE", "bound"),
    ]


def test_figures_are_those_of_the_scorers(report: Report) -> None:
    references = [pair.all_references for pair in _PAIRS]
    poor = report.system("poor|er")
    assert poor.metrics["rougeL"].mean == pytest.approx(Rouge().score(_POOR, references)["rougeL"].mean())
    assert poor.metrics["bleu"].mean == pytest.approx(bleu(_POOR, references).score)
    assert report.system("good").metrics["rougeLsum"].mean == 100
    assert poor.empty == 1


def test_every_result_carries_the_signatures_and_the_interval_method(report: Report) -> None:
    found = report.to_dict()
    assert found["signatures"]["rouge"] == Rouge().signature
    assert found["signatures"]["bleu"].startswith("bleu|nrefs:var|")
    assert found["intervals"] == {"samples": 50, "level": 0.95, "seed": 0}
    assert found["examples"] == 6
    json.dumps(found, allow_nan=False)


def test_notes_tell_empties_references_and_bounds(report: Report) -> None:
    notes = "\n".join(report.notes)
    assert "6 examples; intervals: 95% percentile bootstrap" in notes
    assert "3 examples have several references: ROUGE takes the best" in notes
    assert "poor|er: 1 empty predictions" in notes
    assert "ORACLE reads the references" in notes
    assert "WARNING" not in notes


def test_markdown_shows_scores_with_intervals_and_marks_the_models(report: Report) -> None:
    text = report.markdown()
    assert "| **good** | model | 100.0 [100.0, 100.0] |" in text
    assert "| **poor\\|er** | model |" in text
    assert "| ORACLE | bound (reads references) |" in text
    assert "| references | " in text
    assert f"`{Rouge().signature}`" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in tables[:7]}) == 1


def printed(table: Table, *, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(table)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(shown, str)
    return shown


def test_the_terminal_table_fits_80_columns_whole(report: Report) -> None:
    shown = printed(report.table())
    assert "…" not in shown
    for part in ("good", "poor|er", "LEAD-3", "ORACLE", "ROUGE-1", "ROUGE-Lsum", "BLEU", "poor|er"):
        assert part in shown


def test_signatures_are_lines_of_their_own_below_the_table(report: Report) -> None:
    assert report.remarks == [*report.notes, Rouge().signature, report.signatures["bleu"]]
    assert not any("\n" in line for line in report.remarks)


def test_one_example_has_no_interval(tmp_path: Path) -> None:
    report = score({"good": _GOOD[:1], "poor": _POOR[:1]}, _PAIRS[:1], intervals=_QUICK)
    assert "1 example: no intervals" in report.notes[0]
    found = report.to_dict()
    rouge1 = found["systems"]["good"]["metrics"]["rouge1"]
    assert (rouge1["mean"], rouge1["low"], rouge1["high"]) == (100, None, None)
    assert found["differences_to_first"]["poor"]["rouge1"]["p_value"] is None
    assert "[100.0, 100.0]" not in report.markdown()
    assert "100.0-100.0" not in printed(report.table())
    assert "[" not in printed(report.differences_table())


def test_written_files_hold_the_report(report: Report, tmp_path: Path) -> None:
    report.write(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "scores.json").read_text()) == report.to_dict()
    assert (tmp_path / "out" / "table.md").read_text() == report.markdown()
    rows = [json.loads(line) for line in (tmp_path / "out" / "examples.jsonl").read_text().splitlines()]
    assert len(rows) == 6
    assert rows[1]["id"] == "id-1"
    assert rows[1]["references"] == list(_PAIRS[1].references)
    assert rows[1]["systems"]["good"]["prediction"] == _GOOD[1]
    assert rows[1]["systems"]["good"]["rouge1"] == 100


def test_a_report_goes_into_a_new_folder_or_replaces_the_old_one_and_people_can_read_its_letters(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "new" / "out"
    for name in ("Zoë", "Åsa"):
        pairs = [Pair(document=f"{name} came.", summary=f"{name} came.", id="a")]
        score({"é": [f"{name} came."]}, pairs, baselines=()).write(folder)
    assert "Åsa" in (folder / "examples.jsonl").read_text("utf-8")
    assert "é" in (folder / "scores.json").read_text("utf-8")


def test_comparison_is_paired_for_every_metric(report: Report) -> None:
    tests = report.compare("good", "poor|er")
    assert list(tests) == ["rouge1", "rouge2", "rougeL", "rougeLsum", "bleu"]
    assert all(test.difference.low > 0 and test.p_value < 0.05 for test in tests.values())
    with pytest.raises(UserError, match="no system 'x'"):
        report.compare("good", "x")


def test_each_further_model_stands_beside_the_first_with_interval_and_p(report: Report) -> None:
    (difference,) = report.differences.values()
    assert list(report.differences) == ["poor|er"]
    assert difference == report.compare("poor|er", "good")
    found = report.to_dict()["differences_to_first"]["poor|er"]
    assert list(found) == ["rouge1", "rouge2", "rougeL", "rougeLsum", "bleu"]
    rouge1, written = difference["rouge1"], found["rouge1"]
    assert written["p_value"] == pytest.approx(rouge1.p_value, abs=1e-4)
    for name in ("mean", "low", "high"):
        assert written[name] == pytest.approx(getattr(rouge1.difference, name), abs=1e-4)
    shown = printed(report.differences_table())
    row = next(line for line in shown.splitlines() if "ROUGE-1" in line)
    assert row.split()[:3] == ["poor|er", "ROUGE-1", f"{rouge1.difference.mean:+.2f}"]
    assert "difference to good" in shown
    assert f"| poor\\|er | ROUGE-1 | {rouge1.difference.mean:+.2f} [" in report.markdown()


def test_of_one_model_there_is_no_difference_to_show() -> None:
    alone = score({"good": _GOOD}, _PAIRS, intervals=_QUICK)
    assert (alone.differences, alone.to_dict()["differences_to_first"]) == ({}, {})
    assert "ifference" not in alone.markdown()
    assert score({}, _PAIRS, intervals=_QUICK).differences == {}


def test_a_score_of_any_name_has_its_column(tmp_path: Path) -> None:
    mine = {"my [b]score[/b] a|b": bleu}
    report = score({"good": _GOOD, "poor": _POOR}, _PAIRS, scorers=mine, intervals=_QUICK)
    report.write(tmp_path)
    header = (tmp_path / "table.md").read_text().splitlines()[0]
    assert header.endswith(r" my [b]score[/b] a\|b | empty |")
    assert "[b]score[/b]" in printed(report.table(), width=120)
    assert "[b]score[/b]" in printed(report.differences_table(), width=120)


def test_a_report_that_cannot_be_told_leaves_no_files(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Report, "markdown", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report.write(tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_same_call_gives_the_same_report(report: Report) -> None:
    again = score({"good": _GOOD, "poor|er": _POOR}, _PAIRS, with_bleu=True, intervals=_QUICK)
    assert again.to_dict() == report.to_dict()


def test_a_warning_stands_in_the_report_when_the_tokenizer_ignores_the_script() -> None:
    pairs = [Pair(document="Мельница сгорела. Дождь.", summary="Мельница сгорела.")]
    ignored = score({"m": ["Мельница сгорела."]}, pairs, rouge=Rouge(), intervals=_QUICK)
    assert "WARNING: 100% of the references' letters are not Latin" in ignored.markdown()
    assert ignored.systems[0].metrics["rouge1"].mean == 0
    read = score({"m": ["Мельница сгорела."]}, pairs, intervals=_QUICK)
    assert "WARNING" not in read.markdown()
    assert read.systems[0].metrics["rouge1"].mean == 100


def test_baselines_can_be_chosen_or_left_out() -> None:
    one = score({}, _PAIRS, baselines=[Lead(units=1)], intervals=_QUICK)
    assert [s.name for s in one.systems] == ["LEAD-1"]
    assert "bleu" not in one.systems[0].metrics
    none = score({"good": _GOOD}, _PAIRS, baselines=(), intervals=_QUICK)
    assert [s.name for s in none.systems] == ["good"]


def test_bad_requests_are_refused() -> None:
    with pytest.raises(UserError, match="zero pairs"):
        score({"a": []}, [])
    with pytest.raises(UserError, match="'a' has 1 predictions for 6 pairs"):
        score({"a": ["x"]}, _PAIRS)
    with pytest.raises(UserError, match="two systems are called 'LEAD-3'"):
        score({"LEAD-3": _GOOD}, _PAIRS)
    with pytest.raises(UserError, match="cannot be called 'references'"):
        score({"references": _GOOD}, _PAIRS)


def test_a_report_that_is_stopped_while_it_is_written_leaves_the_old_files_whole(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("scores.json", "table.md", "examples.jsonl")
    report.write(tmp_path)
    before = [(tmp_path / name).read_bytes() for name in names]

    def stopped(_: Report) -> Iterator[dict[str, Any]]:
        yield {"id": "another"}
        raise KeyboardInterrupt

    monkeypatch.setattr(Report, "_examples", stopped)
    with pytest.raises(KeyboardInterrupt):
        report.write(tmp_path)
    assert [(tmp_path / name).read_bytes() for name in names] == before


def test_a_figure_that_a_judge_cannot_give_is_written_as_null_and_the_others_as_numbers(
    tmp_path: Path,
) -> None:
    def judge(documents: Sequence[str], summaries: Sequence[str], references: Any) -> dict[str, Any]:
        return {"shared": np.array([12.5 if summary else np.nan for summary in summaries])}

    score({"poor": _POOR}, _PAIRS, faithful=[judge], baselines=(), intervals=_QUICK).write(tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "examples.jsonl").read_text().splitlines()]
    assert [row["systems"]["poor"]["shared"] for row in rows] == [None, *[12.5] * 5]


_HALF = [f"The mill in {town} stood." for town in _TOWNS]
_SEEDS = {"a 1": _GOOD, "a 2": _POOR, "a 3": _HALF, "b 1": _HALF, "b 2": _GOOD, "b 3": _POOR, "c": _HALF}
_POOLS = {"a": ["a 1", "a 2", "a 3"], "b": ["b 1", "b 2", "b 3"]}


@pytest.fixture(scope="module")
def seeds() -> Report:
    """Two models with three seeds each, and one without."""
    return score(_SEEDS, _PAIRS, with_bleu=True, baselines=(), intervals=_QUICK, pools=_POOLS)


@pytest.fixture(scope="module")
def alone() -> Report:
    """The same runs, each with a row of its own."""
    return score(_SEEDS, _PAIRS, with_bleu=True, baselines=(), intervals=_QUICK)


def test_a_row_of_several_seeds_has_the_mean_of_its_runs_and_lists_each(
    seeds: Report, alone: Report, tmp_path: Path
) -> None:
    runs = [alone.system(name) for name in _POOLS["a"]]
    row = seeds.system("a")
    assert [system.name for system in seeds.systems] == ["a", "b", "c"]
    for measure in ("rouge1", "bleu"):
        assert row.metrics[measure].mean == pytest.approx(
            np.mean([run.metrics[measure].mean for run in runs])
        )
    assert row.statistics["length"] == pytest.approx(np.mean([run.statistics["length"] for run in runs]))
    assert (row.kind, row.empty) == ("model", 1)
    assert [len(system.runs) for system in seeds.systems] == [3, 3, 0]
    assert [cells[0] for cells in seeds.table().rows] == ["a\n3 seeds", "b\n3 seeds", "c\nmodel"]
    written = seeds.to_dict()["systems"]
    assert written["a"]["runs"]["a 2"] == {n: round(i.mean, 4) for n, i in runs[1].metrics.items()}
    assert "runs" not in written["c"]
    seeds.write(tmp_path)
    first = json.loads((tmp_path / "examples.jsonl").read_text().splitlines()[0])
    assert {name: found["prediction"] for name, found in first["systems"].items()} == {
        name: texts[0] for name, texts in _SEEDS.items()
    }


def test_several_seeds_are_compared_in_pairs_and_a_single_run_with_each(seeds: Report, alone: Report) -> None:
    means = {name: {m: i.mean for m, i in alone.system(name).metrics.items()} for name in _SEEDS}
    for measure in ("rouge1", "bleu"):
        a, b = ([means[run][measure] for run in _POOLS[name]] for name in "ab")
        both = seeds.compare("a", "b")[measure]
        assert both.difference.mean == pytest.approx(np.mean(a) - np.mean(b))
        assert both.p_value > 0.3  # the runs disagree
        single = seeds.compare("a", "c")[measure].difference
        assert single.mean == pytest.approx(np.mean(a) - means["c"][measure])
        assert seeds.compare("c", "a")[measure].difference.mean == pytest.approx(-single.mean)
    samples = {name: test.difference.samples for name, test in seeds.compare("a", "b").items()}
    assert samples == {"rouge1": 10_000, "rouge2": 10_000, "rougeL": 10_000, "rougeLsum": 10_000, "bleu": 500}
    assert seeds.system("a").metrics["rouge1"].samples == 10_000


def test_what_a_report_holds_for_each_example_is_not_printed_with_it(seeds: Report) -> None:
    for printed_ in (repr(seeds), repr(seeds.systems[0])):
        assert not [
            name for name in ("predictions", "examples", "corpus", "runs", "pairs") if f"{name}=" in printed_
        ]
    assert "faithful=" not in repr(seeds)


def test_the_notes_say_what_an_interval_of_several_seeds_covers() -> None:
    two = score(_SEEDS, _PAIRS, baselines=(), intervals=_QUICK, pools={"a": ["a 1", "a 3"], "b": _POOLS["b"]})
    a, b = (note for note in two.notes if "runs" in note)
    figures = ", ".join(f"{run.metrics['rougeL'].mean:.1f}" for run in two.system("a").runs)
    assert a.startswith("a: 2 runs give their range")
    assert a.endswith(f"ROUGE-L of each run: {figures}.")
    assert b.startswith("b: 3 runs; intervals cover examples and seeds (Student's t over seeds)")


def test_the_terminal_table_has_each_score_over_its_interval_and_a_line_above_the_baselines(
    report: Report,
) -> None:
    table = report.table()
    poor = report.system("poor|er")
    bleu_, words = poor.metrics["bleu"], poor.statistics["length"]
    assert table.rows[1][0] == "poor|er\nmodel"
    assert table.rows[1][-2:] == [f"{bleu_.mean:.1f}\n{bleu_.low:.1f}-{bleu_.high:.1f}", f"{words:.1f}"]
    assert [*table.lines_above] == [2]
    assert table.styles == ["bold", "bold", "", "", "", "", "dim"]
    assert {*table.unbroken} == {"ROUGE-1", "ROUGE-2", "ROUGE-L", "ROUGE-Lsum", "BLEU"}


def test_an_interval_below_zero_is_told_in_words() -> None:
    def loss(predictions: Sequence[str], _: Any) -> MeanScore:
        return MeanScore(signature="loss", examples=np.array([-float(len(text)) for text in predictions]))

    report = score(
        {"a": _GOOD}, _PAIRS, with_rouge=False, baselines=(), scorers={"loss": loss}, intervals=_QUICK
    )
    found = report.systems[0].metrics["loss"]
    assert report.table().rows[0][1] == f"{found.mean:.1f}\n{found.low:.1f} to {found.high:.1f}"
    assert report.table().unbroken == []


def test_p_and_the_interval_stand_beside_each_difference(report: Report) -> None:
    test = report.differences["poor|er"]["rouge2"]
    row = report.differences_table().rows[1]
    assert row[2] == f"{test.difference.mean:+.2f} [{test.difference.low:+.2f}, {test.difference.high:+.2f}]"
    assert row[3] == f"{test.p_value:.3f}"
    one = score({"good": _GOOD[:1], "poor": _POOR[:1]}, _PAIRS[:1], intervals=_QUICK)
    assert one.differences_table().rows[0][2:] == ("-100.00", "-")


def test_figures_of_marks_and_judges_have_intervals_over_the_examples_that_have_one(tmp_path: Path) -> None:
    values = np.array([np.nan, 1.0, 2.0, 3.0, 4.0, 5.0])

    def judge(documents: Any, summaries: Sequence[str], references: Any) -> dict[str, Any]:
        known = "" not in summaries and summaries[0] != _PAIRS[0].summary
        return {"shared": values if known else np.full(6, np.nan)}

    texts = {"half": [f"Ann said {text}" for text in _HALF], "good": _GOOD}
    report = score(texts, _PAIRS, faithful=[judge], baselines=(), intervals=_QUICK)
    found = report.faithful_intervals
    assert found["half"]["shared"] == _QUICK.interval(values[1:])
    assert "shared" not in found["good"]
    interval = found["half"]["shared"]
    table = report.faithful_table()
    cells = {row[0]: dict(zip(table.header, row, strict=True)) for row in table.rows}
    assert [*cells] == ["half", "good", REFERENCES]
    assert cells["half"]["shared"] == f"3.00\n{interval.low:.2f}..{interval.high:.2f}"
    assert cells["good"]["shared"] == "-"
    marked = found["half"]["marked"]
    assert f"{marked.mean:.2f} [{marked.low:.2f}, {marked.high:.2f}]" in report.markdown()
    assert report.to_dict()["faithful"]["half"]["shared"]["mean"] == 3.0
    one = score({"a": _HALF[:1]}, _PAIRS[:1], faithful=(), baselines=(), intervals=_QUICK)
    assert not [cell for row in one.faithful_table().rows for cell in row if "\n" in cell]
    report.write(tmp_path)
    written = json.loads((tmp_path / "examples.jsonl").read_text().splitlines()[1])["systems"]
    assert written["half"]["shared"] == 1.0
    assert "marked" not in written["half"]
    told = report.faithful["half"].supports[1].to_dict()
    assert written["half"]["support"] == json.loads(json.dumps(told))
    assert report.notes[-1].startswith("Names, numbers, negations: marks per summary.")
    plain = score({"a": _GOOD}, _PAIRS, baselines=(), intervals=_QUICK)
    assert (plain.faithful, "faithful" in plain.to_dict()) == ({}, False)
    assert not any("marks" in note for note in plain.notes)


def test_the_shape_of_the_summaries_is_a_table_with_the_references_last(report: Report) -> None:
    lines = report.markdown().splitlines()
    header = next(place for place, line in enumerate(lines) if "new 1-grams %" in line)
    rows = [[cell.strip() for cell in line.split(" | ")] for line in lines[header + 2 : header + 10]]
    assert (rows[0][0], rows[-1][0]) == ("| **good**", "| references")
    good, references = report.system("good").statistics, report.reference_statistics
    assert rows[0][1:] == rows[-1][1:]  # the good summaries are the first references
    assert (rows[0][1], rows[0][6]) == (f"{good['length']:.1f}", f"{good['coverage']:.2f}")
    assert references["length"] == good["length"] == 9.0
