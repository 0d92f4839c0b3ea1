"""`precis errors`: the worst and the best rows of an evaluation, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from precis.cli.framework.command_class import describe_command, examples
from precis.cli.framework.console import show
from precis.phases.output_folders import existing_folder
from precis.storage.atomic import write_file
from precis.table import Table
from precis_text.errors import UserError

if TYPE_CHECKING:
    from precis.evaluation.error_view import ErrorView, JudgedRow

_SHOWN = 240  # characters of a document

Run = Annotated[Path, typer.Argument(metavar="RUN", help=(
    "A folder that precis evaluate wrote, or a run with one at evaluation/."
))]  # fmt: skip
System = Annotated[
    str | None,
    typer.Option("--system", help="System to show: a row of the table of scores. Default: the first."),
]
Measure = Annotated[
    str | None, typer.Option("--measure", help="Metric that ranks the rows. Default: rougeL.")
]
Kind = Annotated[str | None, typer.Option("--kind", help=(
    "Show the worst rows of one kind: empty, too-short, missing or unsupported. Default: all."
))]  # fmt: skip
Rows = Annotated[int, typer.Option("--rows", min=1, help="Number of worst rows and of best rows to show.")]
Html = Annotated[Path | None, typer.Option("--html", help="Also write the rows to this HTML file.")]


@describe_command(
    "errors",
    rich_help_panel="Use a model",
    epilog=examples(
        "precis evaluate --model runs/first --data pairs --faithful --out runs/first/evaluation",
        "precis errors runs/first",
        "precis errors runs/first --kind missing --rows 20 --html errors.html",
    ),
)
def errors(
    run: Run,
    system: System = None,
    measure: Measure = None,
    kind: Kind = None,
    rows: Rows = 5,
    html: Html = None,
) -> None:
    """Show the worst and the best summaries of an evaluation with their references, by kind of mistake."""
    existing_folder(run)
    from precis.evaluation.error_view import read_error_view

    if html is not None and html.exists():
        raise UserError(f"{html}: already exists; remove it, or name another file with --html")
    view = read_error_view(run, system=system, measure=measure)
    worst = view.worst(rows, kind=kind)
    from precis.evaluation.offline_pages import counted_kinds, error_page

    print(f"{view.system}: {counted_kinds(view)}")
    _show("worst" if kind is None else f"worst of: {kind.replace('-', ' ')}", worst, view)
    if kind is None:
        _show("best", view.best(rows), view)
    if html is not None:
        write_file(html, error_page(view, count=rows))
        print(f"written: {html}")


def _show(heading: str, rows: Sequence[JudgedRow], view: ErrorView) -> None:
    """Print rows as a table: summary and references side by side."""
    if not rows:
        print(f"{heading}: none")
        return
    cells = []
    for row in rows:
        head = "\n".join([str(row.row), f"{row.score:.1f}", *row.kinds])
        unsupported = [f"[unsupported: {', '.join(row.marks)}]"] if row.marks else []
        summary = "\n".join([row.summary, *unsupported])
        cells.append([head, summary, "\n".join(row.references), _beginning(row.document)])
    header = ("row", "summary", "reference", "document")
    show(Table(header=header, rows=cells, title=heading, texts=header, lines_above=range(1, len(cells))))


def _beginning(document: str) -> str:
    words = " ".join(document.split())
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN].rpartition(' ')[0]} ..."
