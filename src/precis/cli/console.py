"""What goes where: results to standard output, everything about them to standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from precis.errors import UserError


def note(text: str) -> None:
    """One line about the work, beside the results."""
    print(text, file=sys.stderr, flush=True)


def refuse_terminal(advice: str) -> None:
    """Raise `UserError` where the standard input is a keyboard: nobody types a document."""
    if sys.stdin is not None and sys.stdin.isatty():
        raise UserError(advice)


def show(renderable: Any) -> None:
    """Print a Rich table to standard output; 120 columns wide where that is no terminal."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    console.print(renderable)


@contextmanager
def progress_line() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on standard error, nothing where that is no terminal; called with what, done, total."""
    from rich.console import Console
    from rich.progress import Progress, TaskID

    console = Console(stderr=True)
    bars: dict[str, TaskID] = {}
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:

        def update(what: str, done: int, total: int) -> None:
            if what not in bars:
                bars[what] = progress.add_task(what, total=total)
            progress.update(bars[what], completed=done, total=total)

        yield update
