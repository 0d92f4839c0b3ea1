"""A table for the terminal (Rich), Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal, final

if TYPE_CHECKING:
    from rich.table import Table as RichTable

_SPECIAL = {
    **{character: f"\\{character}" for character in "&%$#_{}"}, "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip
_MARKED = (
    (re.compile(r"\*\*(.+?)\*\*"), r"\\textbf{\1}"),
    (re.compile(r'"([^"]+)"'), r"``\1''"),  # before the next, which would match its quotes
    (re.compile(r"(?<!`)`([^`]+)`(?!`)"), r"\\texttt{\1}"),
    (re.compile(r"(?<![\w.-])-(?=\d)"), "$-$"),  # a minus sign, not a hyphen
)
_NUMBER = re.compile(r"[-+]?[\d.,]+(%| .*\]|/.*)?")
_BAR = re.compile(r"(?<!\\)\|")


@final
@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of texts under a header.

    Attributes:
        header: the titles of the columns.
        rows: the cells; the terminal dims the lines of a cell after the first.
        title, caption: texts above and below.
        texts: titles of the columns of texts, which are left-aligned; others hold numbers.
        unbroken: titles of the columns whose words are never broken in the terminal.
        styles: Rich's style of each row, if any.
        compact: whether columns have little space between them in the terminal.
        lines_above: indices of the rows with a line above them in the terminal.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    caption: str = ""
    texts: Collection[str] = ()
    unbroken: Collection[str] = ()
    styles: Sequence[str] = ()
    compact: bool = False
    lines_above: Collection[int] = ()

    def rich(self) -> RichTable:
        """Return the table for a Rich console; no cell is read as markup."""
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        made = RichTable(
            title=Text(self.title, style="table.title") if self.title else None,
            caption=Text(self.caption, style="table.caption") if self.caption else None, title_justify="left",
            caption_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=not self.compact,
            collapse_padding=self.compact,
        )  # fmt: skip
        for name in self.header:
            side: Literal["left", "right"] = "left" if name in self.texts else "right"
            made.add_column(Text(name), justify=side, overflow="fold", no_wrap=name in self.unbroken)
        for place, (row, style) in enumerate(zip_longest(self.rows, self.styles)):
            if place in self.lines_above:
                made.add_section()
            cells = (cell.partition("\n") for cell in row)
            made.add_row(
                *(Text(first) + Text(end + rest, style="dim") for first, end, rest in cells), style=style
            )
        return made

    __rich__ = rich

    def markdown(self) -> str:
        """Return the table as Markdown, the title as a heading of level 2; bars in cells are escaped."""
        rule = ["---" if name in self.texts else "---:" for name in self.header]
        lines = [[*map(_in_cell, self.header)], rule, *([*map(_in_cell, row)] for row in self.rows)]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        heading = f"## {self.title}" if self.title else ""
        return "\n\n".join(part for part in (heading, table, self.caption) if part)

    def latex(self) -> str:
        """Return the rows for a document that loads booktabs; columns of numbers are right-aligned.

        Cells may have Markdown's bold and code.
        """
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.header)
        kinds = ["r" if column and all(map(_is_number, column)) else "l" for column in columns]
        head = [f"\\begin{{tabular}}{{{''.join(kinds)}}}", r"\toprule", _latex_row(self.header), r"\midrule"]
        return "\n".join([*head, *map(_latex_row, self.rows), r"\bottomrule", r"\end{tabular}"])


def read_markdown(lines: Sequence[str]) -> Table:
    """Read the lines of a Markdown table, which have bars at both ends."""
    header, _, *rows = [
        [cell.strip().replace(r"\|", "|") for cell in _BAR.split(line)[1:-1]] for line in lines
    ]
    return Table(header=header, rows=rows)


def latex_text(text: str) -> str:
    """Return a line of Markdown as LaTeX: special characters, bold, code, quotation marks, minus signs."""
    plain = "".join(_SPECIAL.get(character, character) for character in text)
    for pattern, command in _MARKED:
        plain = pattern.sub(command, plain)
    return plain


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _is_number(cell: str) -> bool:
    return cell in ("", "-") or _NUMBER.match(cell) is not None


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(latex_text, cells)) + r" \\"
