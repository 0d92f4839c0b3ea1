"""The findings of a stage so far, kept on disk, because its process may die at any moment.

A row is a JSON object with a `cell` and a `contender`, a pair of them once each, and one of

- figures (`ms`, `error`, ...), with `said`: the same for people;
- `failed`: why they are missing, as an error;
- `left_out`: why they are missing without a fault.

The name of the running contender is written before anything that may end the process. If the process dies, that name
shows which contender was running, and a second process resumes after it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class Notes:
    """The rows of a stage, read from `path` if there are some."""

    def __init__(self, path: Path) -> None:
        self._path, self._current = path, path.with_suffix(".doing")
        self.rows: list[Row] = json.loads(path.read_text()) if path.exists() else []

    def add(self, cell: str, contender: str, **found: Any) -> None:
        """Put a row down; it is on disk when this returns."""
        self.rows.append({"cell": cell, "contender": contender, **found})
        aside = self._path.with_suffix(".tmp")
        aside.write_text(json.dumps(self.rows))
        aside.replace(self._path)

    def has(self, cell: str, contender: str) -> bool:
        """Test whether there is a row, of whatever kind."""
        return any((row["cell"], row["contender"]) == (cell, contender) for row in self.rows)

    @contextmanager
    def doing(self, cell: str, contender: str) -> Iterator[None]:
        """Say who is at work; what ends the process within the block is theirs."""
        self._current.write_text(json.dumps([cell, contender]))
        yield
        self._current.unlink(missing_ok=True)

    def blame(self, error: str) -> bool:
        """Record the error of a dead process for the contender that was running; return False if there was none."""
        if not self._current.exists():
            return False
        cell, contender = json.loads(self._current.read_text())
        self._current.unlink()
        if not self.has(cell, contender):
            self.add(cell, contender, failed=error)
        return True
