"""Keep what libraries say among themselves away from the user, and say our own warnings in our own words.

Only the command line does this: whoever uses the package from Python decides about warnings and logs
themselves.
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

_OURS = str(Path(__file__).parents[1])


@contextmanager
def quieten(*, debug: bool) -> Iterator[None]:
    """Silence for the duration, unless debugging; our own warnings come out as `note: ...`."""
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
    """What the libraries read when they are imported. On a terminal a download shows how far it is: a model may have
    gigabytes.
    """
    bars = {} if sys.stderr.isatty() else {"HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    return {
        "TRANSFORMERS_VERBOSITY": "error",
        "HF_HUB_VERBOSITY": "error",
        "TOKENIZERS_PARALLELISM": "true",
        "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
        **bars,
    }


def quieten_transformers() -> None:
    """No load reports from transformers and no bars but those of downloads; call before a model is loaded."""
    from huggingface_hub.utils.tqdm import enable_progress_bars
    from transformers.utils import logging as transformers_logging

    if os.environ.get("TRANSFORMERS_VERBOSITY") == "error":
        transformers_logging.set_verbosity_error()
        transformers_logging.disable_progress_bar()  # the hub's bars with its own
        if "HF_HUB_DISABLE_PROGRESS_BARS" not in os.environ:
            enable_progress_bars()


class _OurWarnings(logging.Handler):
    """What our own code logs (a damaged checkpoint, a step left out) as `note: ...`."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line to what is the standard error stream by now: a progress bar may have replaced it."""
        print(f"note: {record.getMessage()}", file=sys.stderr, flush=True)


def _show(message: Warning | str, category: type[Warning], filename: str, *_: Any, **__: Any) -> None:
    if filename.startswith(_OURS) and issubclass(category, UserWarning):
        print(f"note: {message}", file=sys.stderr)
