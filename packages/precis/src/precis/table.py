"""A table for the terminal (Rich) and Markdown."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal, final

if TYPE_CHECKING:
    from rich.table import Table as RichTable


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


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
