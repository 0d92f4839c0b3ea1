"""The worst and the best rows of an evaluation as one HTML file: no scripts and no other files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from precis.evaluation.error_view import ErrorView, JudgedRow
from precis.evaluation.score_report import title_of

_CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
:root { color-scheme: light dark; --ground:#f6f6f3; --card:#fff; --ink:#1d1f21; --soft:#5b6066; --line:#d9dad6;
  --mark:#fff0c2; }
@media (prefers-color-scheme: dark) { :root { --ground:#15171a; --card:#1e2125; --ink:#e7e8ea; --soft:#a3a9b0;
  --line:#363b41; --mark:#4a3f14; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 70rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; } h3 { font-size: 1rem; margin: 0; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem; margin: 1rem 0; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); gap: 1rem; }
.pair p { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; }
.soft { color: var(--soft); } mark { background: var(--mark); color: inherit; }
"""


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
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_CSP}"><style>{_STYLE}</style></head>'
        f"<body><main><h1>{escape(title)}</h1><p>{escape(counted_kinds(view))}</p>{body}</main></body></html>\n"
    )


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
    return (
        f'<section><p class="soft">{escape(head)}</p><div class="pair">'
        f"<div><h3>Summary</h3><p>{summary}</p></div><div><h3>Reference</h3>{references}</div></div></section>"
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
