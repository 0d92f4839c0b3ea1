"""Hide the messages of libraries from the user, and print our own warnings as notes.

Only the command line does this: Python users of the package configure warnings and logs themselves.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from precis_text import errors
from precis_text.terminal_text import escape_line

_OURS = (str(Path(__file__).parents[2]), str(Path(errors.__file__).parent))


@contextmanager
def quieten(*, debug: bool) -> Iterator[None]:
    """Silence libraries while the body runs, unless debugging; print our own warnings as `note: ...`."""
    if debug:
        yield
        return
    for name, value in _quiet_variables().items():
        os.environ.setdefault(name, value)
    logger = logging.getLogger("precis")
    logger.addHandler(ours := _OurWarnings(logging.WARNING))
    logger.propagate = False
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = _show
        try:
            yield
        finally:
            logger.removeHandler(ours)
            logger.propagate = True


def _quiet_variables() -> dict[str, str]:
    """Return the environment variables that libraries read on import. On a terminal, downloads keep their progress bar:
    a model may have gigabytes.
    """
    bars = {} if sys.stderr.isatty() else {"HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    return {
        "TRANSFORMERS_VERBOSITY": "error", "HF_HUB_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "true",
        "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1", **bars,
    }  # fmt: skip


def quieten_transformers() -> None:
    """Disable transformers' load reports, and all bars except for downloads; call this before loading a model."""
    from huggingface_hub.utils.tqdm import enable_progress_bars
    from transformers.utils import logging as transformers_logging

    if os.environ.get("TRANSFORMERS_VERBOSITY") == "error":
        transformers_logging.set_verbosity_error()
        transformers_logging.disable_progress_bar()  # the hub's bars with its own
        if "HF_HUB_DISABLE_PROGRESS_BARS" not in os.environ:
            enable_progress_bars()


class _OurWarnings(logging.Handler):
    """The handler that prints our own log messages (a damaged checkpoint, a skipped step) as `note: ...`."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line to the current standard error stream, which a progress bar may have replaced."""
        print(f"note: {escape_line(record.getMessage())}", file=sys.stderr, flush=True)


def _show(message: Warning | str, category: type[Warning], filename: str, *_: Any, **__: Any) -> None:
    if filename.startswith(_OURS) and issubclass(category, UserWarning):
        print(f"note: {escape_line(str(message))}", file=sys.stderr)
