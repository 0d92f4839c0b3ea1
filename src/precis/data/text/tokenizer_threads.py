"""How many threads the tokenizers library takes for a list of texts: one, or one a core.

It asks an environment variable, which is the process's own and no argument.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_VARIABLE = "TOKENIZERS_PARALLELISM"


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread while the body runs, for processes that share out the work among themselves."""
    with _set("false"):
        yield


@contextmanager
def all_cores() -> Iterator[None]:
    """All cores while the body runs, unless the user has said otherwise in TOKENIZERS_PARALLELISM.

    Said aloud, it also keeps the library from warning, and from going down to one thread, where something forks.
    """
    with _set(os.environ.get(_VARIABLE, "true")):
        yield


@contextmanager
def _set(value: str) -> Iterator[None]:
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before
