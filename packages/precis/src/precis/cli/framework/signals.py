"""Signals that end a command, as an exception: the command cleans up, says one line and gives the usual exit code."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NAMES = ("SIGTERM", "SIGHUP")  # SIGHUP is unknown to Windows


class EndedBySignal(BaseException):
    """The exception of a signal. No `except Exception` catches it.

    Attributes:
        number: the signal; a shell expects the exit code 128 + `number`.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def signals_raise() -> Iterator[None]:
    """Raise `EndedBySignal` on SIGTERM and SIGHUP while the body runs, unless they are ignored (`nohup`) or handled.

    Outside the main thread, where Python forbids handlers, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    ours = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _raise(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # a second one must not interrupt the cleaning up
    raise EndedBySignal(number)
