"""Reports as one HTML file, without scripts, other files and network: a comparison of models, and a model's mistakes.

Quoted sentences and marks have a word next to them, so that nothing depends on colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files

from precis.evaluation.comparison import ComparedSummary, Comparison
from precis.evaluation.error_view import ErrorView, JudgedRow
from precis.evaluation.score_report import title_of
from precis.table import Table
from precis_text.control_characters import readable
from precis_text.row import pluralize
from precis_text.support.marks import SentenceSupport, Support

_CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = files("precis.evaluation").joinpath("offline_page.css").read_text("utf-8")


def offline_page(title: str, body: str) -> str:
    """Return a whole page: a title, which is plain text, and below it the HTML `body`."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_CSP}"><style>{_STYLE}</style></head>'
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>\n"
    )


def table_of(table: Table) -> str:
    """Return a table as HTML, which scrolls by itself where the page is narrow."""
    sides = ["" if name in table.texts else ' class="number"' for name in table.header]
    head = "".join(f"<th{side}>{escape(name)}</th>" for name, side in zip(table.header, sides, strict=True))
    rows = "".join(
        f"<tr>{''.join(f'<td{side}>{escape(cell)}</td>' for cell, side in zip(row, sides, strict=True))}</tr>"
        for row in table.rows
    )
    title = f"<h2>{escape(table.title)}</h2>" if table.title else ""
    caption = f'<p class="soft">{escape(table.caption)}</p>' if table.caption else ""
    return f'{title}<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{caption}'


def comparison_page(comparison: Comparison) -> str:
    """Return the page of a comparison: its tables, then each document next to its summaries, with their marks."""
    count = len(comparison.pairs)
    title = f"{pluralize(len(comparison.summaries), 'model')}, {pluralize(count, 'document')}"
    machine = "".join(f'<p class="soft">{escape(line)}</p>' for line in comparison.machine)
    tables = "".join(map(table_of, comparison.tables()))
    documents = "".join(_document(comparison, row) for row in range(count))
    return offline_page(title, f"{machine}{tables}<h2>Documents</h2>{documents}")


def _document(comparison: Comparison, row: int) -> str:
    """Return a document with all its summaries; the first is open."""
    pair = comparison.pairs[row]
    summaries = "".join(
        _summary(name, found[row], comparison.support(name, row))
        for name, found in comparison.summaries.items()
    )
    given = [text for text in pair.all_references if text]
    references = "".join(f"<h3>Reference</h3><p>{escape(text)}</p>" for text in given)
    return (
        f"<section><details{' open' if row == 0 else ''}><summary>{escape(pair.id)}</summary>"
        f'<div class="pair"><div><h3>Document</h3><p class="document" tabindex="0">'
        f"{escape(readable(pair.document))}</p></div><div>{summaries}{references}</div></div></details></section>"
    )


def _summary(name: str, found: ComparedSummary, support: Support) -> str:
    if found.error:
        return f'<h3>{escape(name)}</h3><p class="soft">no summary: {escape(found.error)}</p>'
    notes = [f"{found.seconds:.2f} s"]
    notes += [] if found.is_whole else ["not all of the document was read"]
    notes += [] if found.finished else ["cut off"]
    text = " ".join("".join(_sentence(found, support, each)) for each in support.sentences)
    return f'<h3>{escape(name)} <span class="tag">{escape(", ".join(notes))}</span></h3><p>{text}</p>'


def _sentence(found: ComparedSummary, support: Support, sentence: SentenceSupport) -> Iterator[str]:
    """Yield a sentence as HTML: its marks, each with its reason, and whether it is quoted."""
    place = sentence.start
    for mark in support.marks:
        if sentence.start <= mark.start < sentence.end:
            yield escape(found.text[place : mark.start])
            reason = escape(f"{mark.kind}: {mark.reason}")
            yield f'<mark>{escape(mark.text)}</mark> <span class="tag">? {reason}</span>'
            place = mark.end
    yield escape(found.text[place : sentence.end])
    if sentence.copied:
        reason = found.reasons.get(sentence.text, "")
        told = f"quoted, since {reason}" if reason else "quoted"
        yield f' <span class="tag">{escape(told)}</span>'


def error_page(view: ErrorView, *, count: int) -> str:
    """Return the page: the worst rows of each kind of mistake and of all, then the best; `count` of each, above 0."""
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
