"""The callback types for messages and progress, errors in Python's names, and silence for libraries' progress bars."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from precis_text.errors import UserError

Notify = Callable[[str], None]
"""Called with one sentence, or one line, at a time."""

OnProgress = Callable[[int, int, int], None]
"""Called with inputs done, inputs known, and tokens written in the current batch."""

OnPartial = Callable[[int, str], None]
"""Called with the index of the input or document, and its summary so far."""


_COMMAND_OR_OPTION = re.compile(r"precis [a-z]+(?: [^;`]*)?|(?<![\w-])--([a-z][a-z-]*)")
_OTHER_NAMES = {"curve": "sizes", "lr": "learning_rate", "set": "settings"}


def in_python(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose `UserError` has `document_column` for `--document-column`, except in whole commands."""

    def named(found: re.Match[str]) -> str:
        option = found[1]
        return found[0] if option is None else _OTHER_NAMES.get(option, option).replace("-", "_")

    @contextmanager
    def renamed() -> Iterator[None]:
        try:
            yield
        except UserError as error:
            error.args = (_COMMAND_OR_OPTION.sub(named, str(error)), *error.args[1:])
            raise

    def followed(items: Iterator[Any]) -> Iterator[Any]:
        with renamed():
            yield from items

    @wraps(function)
    def renaming(*values: Any, **options: Any) -> Any:
        with renamed():
            result = function(*values, **options)
        return followed(result) if isinstance(result, Iterator) else result

    return renaming


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
