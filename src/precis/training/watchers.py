"""Callbacks as a run calls them: an error in one is said once, and costs that callback's work alone."""

import logging
from collections.abc import Callable, Sequence

from precis.training.callbacks import Callback, StartInfo, StepInfo, TrainResult, ValidationInfo

logger = logging.getLogger("precis.training")


class Watchers:
    """The callbacks of one run.

    At the start nothing is lost yet, so an error there ends the run: a folder that cannot be written for one. A
    library that is not installed only leaves its callback out.
    """

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self._callbacks = list(callbacks)
        self._told: set[int] = set()

    def start(self, info: StartInfo) -> None:
        """The run is about to begin.

        Raises:
            Exception: what a callback raises, but for an ImportError.
        """
        for callback in [*self._callbacks]:
            try:
                callback.on_start(info)
            except ImportError as error:
                self._tell(callback, error)
                self._callbacks.remove(callback)

    def step(self, info: StepInfo) -> None:
        """A step is done."""
        self._call(lambda callback: callback.on_step(info))

    def validation(self, info: ValidationInfo) -> None:
        """A validation is done."""
        self._call(lambda callback: callback.on_validation(info))

    def end(self, result: TrainResult | None) -> None:
        """The run has ended; None: by an error, which no error of a callback may hide."""
        self._call(lambda callback: callback.on_end(result))

    def _call(self, call: Callable[[Callback], None]) -> None:
        for callback in self._callbacks:
            try:
                call(callback)
            except Exception as error:
                self._tell(callback, error)

    def _tell(self, callback: Callback, error: Exception) -> None:
        if id(callback) in self._told:
            return
        self._told.add(id(callback))
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        logger.warning(
            "%s failed (%s); the run goes on, and later errors of this kind are not shown",
            type(callback).__name__,
            " ".join(what.split()),
        )
