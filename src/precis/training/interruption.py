"""SIGTERM and SIGINT as a wish to stop soon, not as an accident."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

logger = logging.getLogger("precis.training")


class StopRequested(BaseException):
    """Raised inside `Interruption.may_abort` when a signal arrives. No `except Exception` swallows it."""


class Interruption:
    """Remembers that a signal asked the run to stop; the loop looks at it after every step."""

    def __init__(self) -> None:
        self.requested = False
        self._abort = False

    @contextmanager
    def may_abort(self) -> Iterator[None]:
        """Work that a signal may cut short, since training does not depend on it: validation."""
        self._abort = True
        try:
            if self.requested:
                raise StopRequested
            yield
        finally:
            self._abort = False

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt  # a second Ctrl-C means: now
        self.requested = True
        if self._abort:
            raise StopRequested


@contextmanager
def interruptions() -> Iterator[Interruption]:
    """Catch SIGTERM and SIGINT while the body runs; nothing off the main thread, where Python forbids it."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    previous = {number: signal.signal(number, interruption._handle) for number in numbers}
    try:
        yield interruption
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def finished_first(what: str) -> Iterator[None]:
    """Work that is short and of no use by halves, such as writing the model: a signal takes effect after it.

    Args:
        what: is told to whoever sent the signal, as in "the model is written".

    Raises:
        KeyboardInterrupt: after the body, if a signal came; within it, at a second Ctrl-C.
    """
    with interruptions() as interruption:
        yield
    if interruption.requested:
        logger.warning("stopped by a signal after %s; the same command finds nothing left to train", what)
        raise KeyboardInterrupt
