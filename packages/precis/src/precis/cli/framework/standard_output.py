"""Standard output with a name, which its write errors otherwise lack, and without control characters.

Rich writes colours, so it gets the stream without that filter (`rich_proxied_file`, which Rich looks for); what it
shows is filtered by `precis.cli.framework.console.Shown`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from precis_text.terminal_text import escape_controls

STANDARD_OUTPUT = "standard output"


@contextmanager
def named_output() -> Iterator[None]:
    """Show control characters, and give write errors of standard output its name, while the body runs."""
    before = sys.stdout
    sys.stdout = _Filtered(before)
    try:
        yield
    finally:
        sys.stdout = before


def open_closed_streams() -> bool:
    """Open the standard streams that the caller closed; return whether standard output was.

    Otherwise the next file that opens would get their number, and what a library in C prints. Closed standard input
    stays None to Python, so that reading it is an error; messages to closed standard error are lost.
    """
    was_closed = sys.stdout is None
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the smallest free number: this one
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 open until the end
    return was_closed


def drop_output() -> None:
    """Discard the remaining output, which the interpreter would try to write again at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Named:
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with _naming():
            return int(self._stream.write(text))

    def flush(self) -> None:
        with _naming():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Filtered(_Named):
    """The stream of `print`: it shows the control characters of a text."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.rich_proxied_file = _Named(stream)

    def write(self, text: str) -> int:
        super().write(escape_controls(text))
        return len(text)


@contextmanager
def _naming() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = STANDARD_OUTPUT
        raise
