"""What goes where: results to standard output, everything about them to standard error."""

from __future__ import annotations

import sys


def note(text: str) -> None:
    """One line about the work, beside the results."""
    print(text, file=sys.stderr, flush=True)
