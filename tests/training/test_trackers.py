"""W&B and MLflow receive the numbers of a run; fakes stand for their clients, so nothing leaves the machine."""

import json
import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from precis.training import standard_callbacks
from precis.training.trackers import MLflow, Tracker, WeightsAndBiases
from precis_text.errors import RunError, UserError
from tests.training import tiny

Call = tuple[Any, ...]


class FakeWandb(SimpleNamespace):
    """Records what W&B's client is asked to do."""

    def __init__(self) -> None:
        super().__init__(calls=[])

    def init(self, **options: Any) -> Any:
        self.calls.append(("init", options))
        name = options["id"] or f"page-{len(self.calls)}"
        return SimpleNamespace(
            id=name,
            log=lambda numbers, step: self.calls.append(("log", step, numbers)),
            finish=lambda exit_code: self.calls.append(("finish", exit_code)),
        )


class FakeMLflow(SimpleNamespace):
    """Records what MLflow's client is asked to do."""

    def __init__(self) -> None:
        super().__init__(calls=[])

    def start_run(self, *, run_id: str | None, run_name: str | None) -> Any:
        self.calls.append(("start", run_id, run_name))
        return SimpleNamespace(info=SimpleNamespace(run_id=run_id or "run-1"))

    def log_dict(self, record: Any, name: str) -> None:
        self.calls.append(("dict", name))

    def log_metrics(self, numbers: Any, step: int) -> None:
        self.calls.append(("log", step, numbers))

    def end_run(self, status: str) -> None:
        self.calls.append(("end", status))


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> FakeWandb:
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    return fake


@pytest.fixture
def mlflow(monkeypatch: pytest.MonkeyPatch) -> FakeMLflow:
    fake = FakeMLflow()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    return fake


def train(folder: Path, tracker: Tracker, *, steps: int = 4, **settings: Any) -> Any:
    options = {"validate_every": 2, "log_every": 2, "save_every": 2, **settings}
    return tiny.run(folder, steps=steps, validate=tiny.validation_loss, callbacks=[tracker], **options)


def test_wandb_gets_every_record_and_validation_and_the_end(tmp_path: Path, wandb: FakeWandb) -> None:
    train(tmp_path / "first", WeightsAndBiases())
    (_, asked), *logged, end = wandb.calls
    assert (asked["project"], asked["name"], asked["id"]) == ("precis", "first", None)
    assert {name for _, _, numbers in logged for name in numbers} >= {"train/loss", "validation/loss"}
    assert sorted({step for _, step, _ in logged}) == [2, 4]
    assert end == ("finish", 0)
    assert json.loads((tmp_path / "first" / "tracking.json").read_text()) == {"wandb": "page-1"}


def test_a_resumed_run_continues_its_page_and_a_new_one_has_another(tmp_path: Path, wandb: FakeWandb) -> None:
    train(tmp_path, WeightsAndBiases(), patience=1)
    train(tmp_path, WeightsAndBiases(), patience=2)
    opened = [call[1]["id"] for call in wandb.calls if call[0] == "init"]
    assert opened == [None, "page-1"]


def test_mlflow_gets_the_same(tmp_path: Path, mlflow: FakeMLflow) -> None:
    train(tmp_path / "first", MLflow())
    assert mlflow.calls[:2] == [("start", None, "first"), ("dict", "settings.json")]
    assert {call[1] for call in mlflow.calls if call[0] == "log"} == {2, 4}
    assert mlflow.calls[-1] == ("end", "FINISHED")
    train(tmp_path / "first", MLflow())
    assert ("start", "run-1", None) in mlflow.calls


def test_a_tracker_that_fails_on_the_way_is_named_once_and_the_run_goes_on(
    tmp_path: Path, mlflow: FakeMLflow, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(mlflow, "log_metrics", fails)
    with caplog.at_level(logging.WARNING, logger="precis.training"):
        result = train(tmp_path, MLflow())
    assert result.step == 4
    assert [record.getMessage() for record in caplog.records if "mlflow failed" in record.getMessage()] == [
        "mlflow failed and is left out; the run continues, and metrics.jsonl has every number: no route to host"
    ]


def test_a_client_that_is_missing_or_refuses_is_one_line(
    tmp_path: Path, wandb: FakeWandb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(UserError, match=r"mlflow is not installed; run `pip install mlflow`"):
        train(tmp_path / "a", MLflow())

    def refuses(**_: object) -> None:
        raise ValueError("no API key")

    monkeypatch.setattr(wandb, "init", refuses)
    with pytest.raises(RunError, match="wandb: cannot begin: no API key; log in, or train without it"):
        train(tmp_path / "b", WeightsAndBiases())


def test_the_environment_turns_trackers_on_for_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRECIS_TRACK", "wandb, mlflow")
    kinds = [type(callback) for callback in standard_callbacks()]
    assert kinds[-2:] == [WeightsAndBiases, MLflow]
    monkeypatch.setenv("PRECIS_TRACK", "wandbb")
    with pytest.raises(UserError, match=r"PRECIS_TRACK=wandbb: no such tracker.*did you mean 'wandb'"):
        standard_callbacks()
    monkeypatch.delenv("PRECIS_TRACK")
    assert not any(isinstance(callback, Tracker) for callback in standard_callbacks())


def test_wandb_shows_a_run_that_failed_as_failed(tmp_path: Path, wandb: FakeWandb) -> None:
    tracker = WeightsAndBiases()
    tracker._run = wandb.init(id=None)
    tracker._close(done=False)
    assert wandb.calls[-1] == ("finish", 1)
