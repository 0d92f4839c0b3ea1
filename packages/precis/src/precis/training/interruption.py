"""Graceful handling of SIGTERM, SIGHUP and SIGINT: the run stops soon and can resume."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

logger = logging.getLogger("precis.training")


class StopRequested(BaseException):
    """The exception inside `Interruption.may_abort` when a signal arrives. No `except Exception` catches it."""


class Interruption:
    """A record of a signal to stop, which the loop checks after every step."""

    def __init__(self) -> None:
        self.requested = False
        self._abort = False

    @contextmanager
    def may_abort(self) -> Iterator[None]:
        """Let a signal abort the body, since training does not depend on it: validation."""
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
    """Catch SIGTERM, SIGINT and, unless `nohup` has it ignored, SIGHUP while the body runs.

    Outside the main thread, where Python forbids it, nothing changes.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    numbers = [signal.SIGTERM, signal.SIGINT]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    previous = {number: signal.signal(number, interruption._handle) for number in numbers}
    try:
        yield interruption
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def finished_first(what: str) -> Iterator[None]:
    """Defer signals until the body, short work such as writing the model, is complete.

    Args:
        what: the event that the log names, as in "the model is written".

    Raises:
        KeyboardInterrupt: after the body, if a signal arrived; within it, at a second Ctrl-C.
    """
    with interruptions() as interruption:
        yield
    if interruption.requested:
        logger.warning("stopped by a signal after %s; the same command will not train further", what)
        raise KeyboardInterrupt
