"""Standard output that can be named: an error of writing to it says nothing of where."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

STANDARD_OUTPUT = "standard output"


@contextmanager
def named_output() -> Iterator[None]:
    """For the duration, an error of writing to standard output has its name where others have a path."""
    before = sys.stdout
    sys.stdout = _Named(before)  # print and Rich use what it has
    try:
        yield
    finally:
        sys.stdout = before


def drop_output() -> None:
    """Send what is still to be printed nowhere: the interpreter would try to write it again at its end."""
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


@contextmanager
def _naming() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = STANDARD_OUTPUT
        raise
