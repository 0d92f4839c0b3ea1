"""How work tells a person what it does: whoever asks for it passes a function that takes a sentence."""

from collections.abc import Callable

Tell = Callable[[str], None]
"""Called with one sentence, or one line, at a time."""


def silent(sentence: str) -> None:
    """Tell nobody."""
