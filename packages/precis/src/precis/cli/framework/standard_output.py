"""Standard output with a name, which its write errors otherwise lack."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

STANDARD_OUTPUT = "standard output"


@contextmanager
def named_output() -> Iterator[None]:
    """Give write errors of standard output its name, in place of a path, while the body runs."""
    before = sys.stdout
    sys.stdout = _Named(before)  # print and Rich use its methods
    try:
        yield
    finally:
        sys.stdout = before


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


@contextmanager
def _naming() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = STANDARD_OUTPUT
        raise
