"""The frame of a report as one HTML file: no scripts, no other files, and no network."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from precis.table import Table

_CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = files("precis.evaluation").joinpath("offline_page.css").read_text("utf-8")


def offline_page(title: str, body: str) -> str:
    """Return a whole page.

    Args:
        title: plain text.
        body: HTML below the title.
    """
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
