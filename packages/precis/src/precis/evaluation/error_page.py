"""The worst and the best rows of an evaluation as one HTML file: no scripts and no other files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from precis.evaluation.error_view import ErrorView, JudgedRow
from precis.evaluation.offline_page import offline_page
from precis.evaluation.score_report import title_of


def error_page(view: ErrorView, *, count: int) -> str:
    """Return the page: the worst rows of each kind of mistake and of all, then the best, `count` of each.

    Args:
        count: the number of rows in each list, 1 or more.
    """
    lists = [("Worst", view.worst(count))]
    lists += [
        (f"Worst of: {kind}", view.worst(count, kind=kind)) for kind, found in view.counts.items() if found
    ]
    lists += [("Best", view.best(count))]
    title = f"Mistakes of {view.system}"
    body = "".join(_list(heading, rows, view) for heading, rows in lists)
    return offline_page(title, f"<p>{escape(counted_kinds(view))}</p>{body}")


def counted_kinds(view: ErrorView) -> str:
    """Return one line with the number of rows and of each kind of mistake."""
    total = len(view.rows)
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in view.counts.items())
    unchecked = "" if view.is_checked else "; unsupported: not checked, score with precis evaluate --faithful"
    return f"{total:,} rows, ranked by {title_of(view.measure)}; {kinds}{unchecked}"


def _list(heading: str, rows: Sequence[JudgedRow], view: ErrorView) -> str:
    if not rows:
        return ""
    return f"<h2>{escape(heading)}</h2>{''.join(_row(row, view) for row in rows)}"


def _row(row: JudgedRow, view: ErrorView) -> str:
    named = f" ({row.name})" if row.name else ""
    kinds = f"; {', '.join(row.kinds)}" if row.kinds else ""
    head = f"row {row.row:,}{named}: {title_of(view.measure)} {row.score:.1f}{kinds}"
    references = "".join(f"<p>{escape(text)}</p>" for text in row.references)
    summary = "".join(_marked(row)) or '<span class="soft">no text</span>'
    document = f"<details><summary>Document</summary><pre>{escape(row.document)}</pre></details>"
    document = document if row.document else ""
    return (
        f'<section><p class="soft">{escape(head)}</p><div class="pair">'
        f"<div><h3>Summary</h3><p>{summary}</p></div><div><h3>Reference</h3>{references}</div></div>{document}</section>"
    )


def _marked(row: JudgedRow) -> Iterator[str]:
    """Yield the summary as HTML; mark each unsupported part where it first appears after the previous one."""
    place = 0
    for mark in row.marks:
        found = row.summary.find(mark, place)
        if found >= 0 and mark:
            yield escape(row.summary[place:found])
            place = found + len(mark)
            yield f"<mark>{escape(mark)}</mark>"
    yield escape(row.summary[place:])
