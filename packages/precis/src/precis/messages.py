"""The callback type for progress messages."""

from collections.abc import Callable

Notify = Callable[[str], None]
"""Called with one sentence, or one line, at a time."""


def silent(sentence: str) -> None:
    """Discard the message."""
