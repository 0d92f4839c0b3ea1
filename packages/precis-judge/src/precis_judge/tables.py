"""A table for the terminal and the web page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of texts under a header; `reading` explains the columns."""

    title: str
    reading: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def shown(self) -> Any:
        """Return the table for Rich."""
        from rich.table import Table as RichTable
        from rich.text import Text

        made = RichTable(title=Text(self.title), caption=Text(self.reading), caption_justify="left")
        for name in self.header:
            made.add_column(Text(name))
        for row in self.rows:
            made.add_row(*map(Text, row))
        return made
