"""How a report looks: tables of scores and of differences for the terminal; these, the shape of the summaries, notes
and signatures as Markdown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from precis.evaluation.report import Report
    from precis.evaluation.significance import Interval

REFERENCES = "references"  # the row of the first references' own length, novelty and copying
_METRICS = {
    "rougeL": "ROUGE-L",
    "rougeLsum": "ROUGE-Lsum",
    "bleu": "BLEU",
    "meteor": "METEOR",
    **{f"rouge{n}": f"ROUGE-{n}" for n in range(1, 10)},
}
_SHAPE = {
    "length": "words",
    "novelty_1": "new 1-grams %",
    "novelty_2": "new 2-grams %",
    "novelty_3": "new 3-grams %",
    "repetition": "repeated 3-grams %",
    "coverage": "coverage",
    "density": "density",
}
_KINDS = {"model": "model", "baseline": "baseline", "bound": "bound (reads references)"}
_STYLES = {"model": "bold", "baseline": "", "bound": "dim"}
_TEST = "same examples; p: paired bootstrap, two-sided, not corrected for the number of comparisons"


def rich_scores(report: Report) -> Table:
    """Each cell holds the score above its interval, so that five measures fit a terminal of 80 columns."""
    measures = list(report.systems[0].metrics) if report.systems else []
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    table.add_column("system", overflow="fold")
    for measure in measures:
        known = measure in _METRICS  # a name that the user brought may be of any length
        table.add_column(escape(title_of(measure)), justify="right", overflow="fold", no_wrap=known)
    table.add_column("words", justify="right", overflow="fold")
    for previous, system in zip([None, *report.systems], report.systems, strict=False):
        if previous is not None and previous.kind == "model" != system.kind:
            table.add_section()
        cells = [
            f"{i.mean:.1f}" + (f"\n[dim]{i.low:.1f}-{i.high:.1f}[/dim]" if report.has_intervals else "")
            for i in system.metrics.values()
        ]
        name = f"{escape(system.name)}\n[dim]{system.kind}[/dim]"
        table.add_row(name, *cells, f"{system.statistics['length']:.1f}", style=_STYLES[system.kind])
    return table


def rich_differences(report: Report) -> Table:
    """One measure a line, since a difference takes its interval and a p-value to be read."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, caption_justify="left")
    table.caption = _TEST
    for heading in ("system", "measure"):
        table.add_column(heading, overflow="fold")
    for heading in (f"difference to {_first(report)}", "p"):
        table.add_column(escape(heading), justify="right", overflow="fold")
    for row in _difference_rows(report):
        table.add_row(*map(escape, row))
    return table


def markdown_report(report: Report) -> str:
    """Scores with intervals; length, novelty, repetition and copying beside the references' own; differences."""
    measures = list(report.systems[0].metrics) if report.systems else []
    scores = [
        [_named(system.name, system.kind), _KINDS[system.kind]]
        + [str(i) if report.has_intervals else f"{i.mean:.1f}" for i in system.metrics.values()]
        + [str(system.empty)]
        for system in report.systems
    ]
    shape = [[_named(s.name, s.kind), *_shape_cells(s.statistics)] for s in report.systems]
    shape.append([REFERENCES, *_shape_cells(report.reference_statistics)])
    parts = [
        _markdown_table(["system", "kind", *(_in_cell(title_of(m)) for m in measures), "empty"], scores),
        _markdown_table(["system", *_SHAPE.values()], shape),
        *_markdown_differences(report),
        "\n".join(f"- {note}" for note in report.notes),
        "\n".join(f"- `{signature}`" for signature in report.signatures.values()),
    ]
    return "\n\n".join(parts) + "\n"


def _markdown_differences(report: Report) -> list[str]:
    rows = [[_in_cell(cell) for cell in row] for row in _difference_rows(report)]
    if not rows:
        return []
    header = ["system", "measure", f"difference to {_in_cell(_first(report))}", "p"]
    return [_markdown_table(header, rows), f"Differences: {_TEST}."]


def _first(report: Report) -> str:
    """The model that the others are compared with; models come first in a report."""
    return report.systems[0].name


def _difference_rows(report: Report) -> list[tuple[str, str, str, str]]:
    """System, measure, difference with its interval, p."""
    return [
        (name, title_of(measure), _signed(test.difference), f"{test.p_value:.3f}")
        if report.has_intervals
        else (name, title_of(measure), f"{test.difference.mean:+.2f}", "-")
        for name, tests in report.differences.items()
        for measure, test in tests.items()
    ]


def _signed(difference: Interval) -> str:
    return f"{difference.mean:+.2f} [{difference.low:+.2f}, {difference.high:+.2f}]"


def title_of(measure: str) -> str:
    """What a measure is called: "ROUGE-L". A scorer that the user brought keeps its name."""
    return _METRICS.get(measure, measure)


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|")


def _named(name: str, kind: str) -> str:
    escaped = _in_cell(name)
    return f"**{escaped}**" if kind == "model" else escaped


def _shape_cells(statistics: Mapping[str, float]) -> list[str]:
    return [f"{statistics[name]:.2f}" if name == "coverage" else f"{statistics[name]:.1f}" for name in _SHAPE]


def _markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---" if name in ("system", "kind", "measure") else "---:" for name in header]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])
