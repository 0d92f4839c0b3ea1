"""The callback types for messages and progress, and silence for the progress bars of libraries."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Notify = Callable[[str], None]
"""Called with one sentence, or one line, at a time."""

OnProgress = Callable[[int, int, int], None]
"""Called with inputs done, inputs known, and tokens written in the current batch."""

OnPartial = Callable[[int, str], None]
"""Called with the index of the input or document, and its summary so far."""


def silent(sentence: str) -> None:
    """Discard the message."""


@contextmanager
def without_bars() -> Iterator[None]:
    """Hide transformers' bar "Loading weights" while the body runs; the user's own choice holds again afterwards."""
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars
    from transformers.utils import logging

    was_shown, hub_was_silent = logging.is_progress_bar_enabled(), are_progress_bars_disabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_shown:
            logging.enable_progress_bar()
        if hub_was_silent:
            disable_progress_bars()
