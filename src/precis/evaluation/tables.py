"""How a report looks: one table of scores for the terminal; two tables, notes and signatures as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from precis.evaluation.report import Report

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


def rich_scores(report: Report) -> Table:
    """Each cell holds the score above its interval, so that five measures fit a terminal of 80 columns."""
    measures = list(report.systems[0].metrics) if report.systems else []
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, collapse_padding=True, caption_justify="left")
    table.caption = escape("\n".join([*report.notes, *report.signatures.values()]))
    table.add_column("system", overflow="fold")
    for measure in measures:
        table.add_column(_METRICS[measure].replace("Lsum", "\nLsum"), justify="right", overflow="fold")
    table.add_column("words", justify="right", overflow="fold")
    for previous, system in zip([None, *report.systems], report.systems, strict=False):
        if previous is not None and previous.kind == "model" != system.kind:
            table.add_section()
        cells = [f"{i.mean:.1f}\n[dim]{i.low:.1f}-{i.high:.1f}[/dim]" for i in system.metrics.values()]
        name = f"{escape(system.name)}\n[dim]{system.kind}[/dim]"
        table.add_row(name, *cells, f"{system.statistics['length']:.1f}", style=_STYLES[system.kind])
    return table


def markdown_report(report: Report) -> str:
    """Scores with intervals; then length, novelty, repetition and copying beside the references' own."""
    measures = list(report.systems[0].metrics) if report.systems else []
    scores = [
        [_named(system.name, system.kind), _KINDS[system.kind]]
        + [str(interval) for interval in system.metrics.values()]
        + [str(system.empty)]
        for system in report.systems
    ]
    shape = [[_named(s.name, s.kind), *_shape_cells(s.statistics)] for s in report.systems]
    shape.append([REFERENCES, *_shape_cells(report.reference_statistics)])
    parts = [
        _markdown_table(["system", "kind", *(_METRICS[measure] for measure in measures), "empty"], scores),
        _markdown_table(["system", *_SHAPE.values()], shape),
        "\n".join(f"- {note}" for note in report.notes),
        "\n".join(f"- `{signature}`" for signature in report.signatures.values()),
    ]
    return "\n\n".join(parts) + "\n"


def _named(name: str, kind: str) -> str:
    escaped = name.replace("|", "\\|")
    return f"**{escaped}**" if kind == "model" else escaped


def _shape_cells(statistics: Mapping[str, float]) -> list[str]:
    return [f"{statistics[name]:.2f}" if name == "coverage" else f"{statistics[name]:.1f}" for name in _SHAPE]


def _markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---" if name in ("system", "kind") else "---:" for name in header]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])
