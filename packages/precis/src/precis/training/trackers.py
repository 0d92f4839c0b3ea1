"""Sends the numbers of a run to Weights & Biases or MLflow, each an extra that is imported when a run begins.

    run -> settings.json, records, validations -> the tracker's own client, with its own login and address

A resumed run continues its page, which RUN/tracking.json names. A tracker that fails during the run is
named once and left out, and training continues.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from precis.storage.atomic import write_file
from precis.training.callbacks import Callback, StartInfo, StepInfo, TrainResult, ValidationInfo
from precis_text.bounded_io import read_json
from precis_text.config import nearest
from precis_text.errors import RunError, UserError, first_line

TRACKING_FILE = "tracking.json"
VARIABLE = "PRECIS_TRACK"
_SETTINGS_FILE = "settings.json"
_logger = logging.getLogger("precis.training")


class Tracker(Callback):
    """A callback that sends settings, records and validations to a service.

    Attributes:
        name: the extra of precis, and the word for it in PRECIS_TRACK.
    """

    name: str

    def __init__(self) -> None:
        self._client: Any = None
        self._works = False

    def on_start(self, info: StartInfo) -> None:
        """Open the run's page, or continue it.

        Raises:
            UserError: the client is not installed.
            RunError: the service refuses.
        """
        try:
            self._client = importlib.import_module(self.name)
        except ImportError as error:
            raise UserError(f"{self.name} is not installed; run `pip install {self.name}`") from error
        known = _read(info.folder / TRACKING_FILE)
        before = known.get(self.name) if info.first_step else None
        try:
            page = self._open(info.folder.resolve().name, before, _read(info.folder / _SETTINGS_FILE))
        except Exception as error:  # a client has errors of its own, of its transport and of the system
            raise RunError(
                f"{self.name}: cannot begin: {first_line(error)}; log in, or train without it"
            ) from error
        write_file(info.folder / TRACKING_FILE, json.dumps({**known, self.name: page}, indent=2) + "\n")
        self._works = True

    def on_step(self, info: StepInfo) -> None:
        """Send the record, if there is one."""
        if info.record:
            self._send({f"train/{name}": value for name, value in info.record.items()}, info.step)

    def on_validation(self, info: ValidationInfo) -> None:
        """Send the validation metrics."""
        self._send({f"validation/{name}": value for name, value in info.metrics.items()}, info.step)

    def on_end(self, result: TrainResult | None) -> None:
        """Close the page; a run that failed or was interrupted is marked as such."""
        if self._works:
            try:
                self._close(done=result is not None and not result.interrupted)
            except Exception as error:
                self._give_up(error)

    def _send(self, numbers: Mapping[str, float], step: int) -> None:
        if not self._works:
            return
        try:
            self._log(numbers, step)
        except Exception as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._works = False
        _logger.warning(
            "%s failed and is left out; the run continues, and metrics.jsonl has every number: %s",
            self.name,
            first_line(error),
        )

    @abstractmethod
    def _open(self, title: str, before: str | None, settings: Mapping[str, Any]) -> str:
        """Open the page, and return its id; `before` is the id of an earlier start of the run."""

    @abstractmethod
    def _log(self, numbers: Mapping[str, float], step: int) -> None: ...

    @abstractmethod
    def _close(self, *, done: bool) -> None: ...


@final
class WeightsAndBiases(Tracker):
    """A tracker that sends to Weights & Biases; WANDB_PROJECT and its other variables hold."""

    name = "wandb"

    def _open(self, title: str, before: str | None, settings: Mapping[str, Any]) -> str:
        project = os.environ.get("WANDB_PROJECT", "precis")
        self._run = self._client.init(
            project=project, name=title, id=before, resume="allow", config=dict(settings)
        )
        return str(self._run.id)

    def _log(self, numbers: Mapping[str, float], step: int) -> None:
        self._run.log(dict(numbers), step=step)

    def _close(self, *, done: bool) -> None:
        self._run.finish(exit_code=0 if done else 1)


@final
class MLflow(Tracker):
    """A tracker that sends to MLflow; MLFLOW_TRACKING_URI and its other variables hold."""

    name = "mlflow"

    def _open(self, title: str, before: str | None, settings: Mapping[str, Any]) -> str:
        run = self._client.start_run(run_id=before, run_name=None if before else title)
        if before is None:
            self._client.log_dict(dict(settings), _SETTINGS_FILE)
        return str(run.info.run_id)

    def _log(self, numbers: Mapping[str, float], step: int) -> None:
        self._client.log_metrics(dict(numbers), step=step)

    def _close(self, *, done: bool) -> None:
        self._client.end_run(status="FINISHED" if done else "FAILED")


_KNOWN: dict[str, type[Tracker]] = {kind.name: kind for kind in (WeightsAndBiases, MLflow)}


def trackers_asked_for() -> list[Callback]:
    """Return the trackers that PRECIS_TRACK names, as `wandb,mlflow`; raise `UserError` if one is unknown."""
    names = [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]
    for name in names:
        if name not in _KNOWN:
            hint = nearest(name, [*_KNOWN])
            raise UserError(f"{VARIABLE}={name}: no such tracker{hint}; known: {', '.join(_KNOWN)}")
    return [_KNOWN[name]() for name in dict.fromkeys(names)]


def _read(file: Path) -> dict[str, Any]:
    return read_json(file) if file.is_file() else {}
