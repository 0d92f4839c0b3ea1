"""The frame of a report as one HTML file: no scripts, no other files, and no network."""

from __future__ import annotations

from html import escape

from precis.table import Table

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
.wide { overflow-x: auto; } table { border-collapse: collapse; } td, th { padding: .25rem .6rem; text-align: left; }
td, th { border-bottom: 1px solid var(--line); vertical-align: top; } .number { text-align: right; }
td.number { white-space: nowrap; }
.soft { color: var(--soft); overflow-wrap: anywhere; } mark { background: var(--mark); color: inherit; }
"""


def offline_page(title: str, body: str, *, style: str = "") -> str:
    """Return a whole page.

    Args:
        title: plain text.
        body: HTML below the title.
        style: rules of this page only.
    """
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_CSP}"><style>{_STYLE}{style}</style></head>'
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
