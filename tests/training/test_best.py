"""The best checkpoint is kept, and patience ends a run."""

import itertools
import json
import math
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from precis.objectives.losses import Loss
from precis.storage.seal import replace_folder
from precis.training import Highest, load_weights
from precis.training.checkpoint import RunState
from precis.training.validation import ValidationVerdict, judge
from precis_text.errors import UserError
from tests.training import tiny
from tests.training.tiny import Witness


def _scripted(values: list[float], metric: str = "loss") -> Any:
    remaining = list(values)
    return lambda _model: {metric: remaining.pop(0)}


def test_the_best_checkpoint_survives_pruning_and_can_be_loaded_back(tmp_path: Path) -> None:
    model = tiny.TinyModel()
    at_best: dict[str, torch.Tensor] = {}

    def validate(model: nn.Module) -> dict[str, float]:
        step = len(seen)
        seen.append(step)
        if step == 1:
            at_best.update(tiny.weights(model))
        return {"loss": [3.0, 1.0, 2.0, 2.5, 2.6, 2.7][step]}

    seen: list[int] = []
    result = tiny.run(
        tmp_path, model=model, validate=validate, validate_every=2, save_every=1, keep_checkpoints=1
    )

    assert (result.best_step, result.best_metric) == (4, 1.0)
    assert result.best_checkpoint == tmp_path / "checkpoints" / "step-00000004"
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == [
        "best.json",
        "step-00000004",
        "step-00000012",
    ]
    load_weights(model, result.best_checkpoint)
    tiny.assert_identical(tiny.weights(model), at_best)


def test_a_score_is_better_when_higher(tmp_path: Path) -> None:
    result = tiny.run(
        tmp_path,
        validate=_scripted([10.0, 30.0, 20.0], "rougeL"),
        validate_every=4,
        select=Highest(metric="rougeL"),
    )

    assert (result.best_step, result.best_metric) == (8, 30.0)


def test_patience_stops_the_run_and_a_restart_knows_it(tmp_path: Path) -> None:
    common: dict[str, Any] = {"validate_every": 2, "patience": 2}

    result = tiny.run(tmp_path, validate=_scripted([2.0, 1.0, 1.5, 1.1, 0.5]), **common)
    again = tiny.run(tmp_path, validate=_scripted([]), **common)

    assert (result.step, result.best_step, result.stopped_early) == (8, 4, True)
    assert (again.step, again.best_step, again.stopped_early) == (8, 4, True)


def test_more_patience_takes_a_stopped_run_up_again(tmp_path: Path) -> None:
    tiny.run(tmp_path, validate=_scripted([1.0, 2.0]), validate_every=2, patience=1)

    result = tiny.run(tmp_path, validate=_scripted([2.0, 2.0, 0.5, 2.0]), validate_every=2, patience=9)

    assert (result.step, result.best_step, result.stopped_early) == (12, 10, False)


def test_the_last_step_is_validated_and_saved_whatever_the_intervals(tmp_path: Path) -> None:
    witness = Witness()

    tiny.run(
        tmp_path,
        steps=7,
        save_every=100,
        validate_every=3,
        validate=tiny.validation_loss,
        callbacks=[witness],
    )

    assert [info.step for info in witness.validations] == [3, 6, 7]
    assert (tmp_path / "checkpoints" / "step-00000007").exists()


def test_a_metric_that_is_not_measured_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="metric 'rougeL', but validation measures accuracy, loss, nll"):
        tiny.run(tmp_path, validate=tiny.validation_loss, select=Highest(metric="rougeL"))


# --- what is written, and when ------------------------------------------------------------------------------


def _folders(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "checkpoints").glob("*-*"))


class Watcher(Witness):
    """Notes what lies in the checkpoints folder after every step."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.seen: dict[int, list[str]] = {}
        self._folder = folder

    def on_step(self, info: Any) -> None:
        super().on_step(info)
        self.seen[info.step - 1] = _folders(self._folder)


def test_validations_write_nothing_and_the_best_is_written_with_the_next_checkpoint(tmp_path: Path) -> None:
    model, watcher = tiny.TinyModel(), Watcher(tmp_path)
    best: dict[str, torch.Tensor] = {}
    losses = iter([5.0, 4.0, 3.0, 3.5, 6.0, 7.0])

    def validate(model: nn.Module) -> dict[str, float]:
        loss = next(losses)
        if loss == 3.0:
            best.update(tiny.weights(model))
        return {"loss": loss}

    result = tiny.run(
        tmp_path, model=model, validate=validate, validate_every=2, save_every=8, callbacks=[watcher]
    )

    assert watcher.seen[7] == []  # three validations, each the best so far
    assert watcher.seen[8] == ["best-00000006", "step-00000008"]
    assert _folders(tmp_path) == ["best-00000006", "step-00000008", "step-00000012"]
    assert (result.best_step, result.best_checkpoint.name) == (6, "best-00000006")
    assert {path.name for path in result.best_checkpoint.iterdir()} == {"model.safetensors", "seal.json"}
    load_weights(model, result.best_checkpoint)
    tiny.assert_identical(tiny.weights(model), best)


def test_a_best_step_that_is_saved_anyway_is_not_written_twice_and_an_old_best_goes(tmp_path: Path) -> None:
    losses = [5.0, 4.0, 6.0, 3.0, 7.0, 8.0]

    result = tiny.run(
        tmp_path, validate=_scripted(losses), validate_every=2, save_every=8, keep_checkpoints=1
    )

    assert result.best_checkpoint.name == "step-00000008"
    assert _folders(tmp_path) == ["step-00000008", "step-00000012"]


def test_a_signal_writes_the_best_before_the_last_checkpoint(tmp_path: Path) -> None:
    calls = itertools.count(1)

    def stopped(model: nn.Module, batch: tiny.Rows) -> Loss:
        if next(calls) == 5:  # not while a batch is read: that can be a step ahead
            signal.raise_signal(signal.SIGTERM)
        return tiny.objective(model, batch)

    model = tiny.TinyModel()
    first = tiny.run(
        tmp_path, model=model, loss=stopped, validate=_scripted([1.0, 2.0]), validate_every=2, save_every=100
    )
    assert (first.interrupted, first.best_checkpoint.name) == (True, "best-00000002")
    assert _folders(tmp_path) == ["best-00000002", "step-00000005"]

    result = tiny.run(tmp_path, validate=_scripted([3.0] * 4), validate_every=2, save_every=100)
    assert (result.step, result.best_step, result.best_metric) == (12, 2, 1.0)
    load_weights(model, result.best_checkpoint)


def test_a_best_that_no_checkpoint_names_is_removed_and_found_again(tmp_path: Path) -> None:
    """A kill came between the folder of the best and the checkpoint that would have named it."""
    common: dict[str, Any] = {"validate": tiny.wavering_loss, "validate_every": 1, "save_every": 6}
    whole = tiny.run(tmp_path / "whole", **common)
    assert whole.best_checkpoint.name == "best-00000011"
    tiny.run(tmp_path / "hurt", **common)
    checkpoints = tmp_path / "hurt" / "checkpoints"
    (checkpoints / "step-00000012").rename(tmp_path / "aside")
    (checkpoints / "best-00000011").rename(checkpoints / "best-00000010")

    again = tiny.run(tmp_path / "hurt", **common)

    assert again.best_step == whole.best_step
    assert _folders(tmp_path / "hurt") == _folders(tmp_path / "whole")
    for file in whole.best_checkpoint.iterdir():
        assert file.read_bytes() == (again.best_checkpoint / file.name).read_bytes()


def test_a_damaged_best_is_named_and_forgotten(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tiny.run(tmp_path, validate=_scripted([1.0, 2.0, 2.0]), validate_every=5, save_every=100)
    file = tmp_path / "checkpoints" / "best-00000005" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])

    result = tiny.run(tmp_path, validate=_scripted([]), validate_every=5, save_every=100)

    assert "best-00000005 is lost: model.safetensors has" in caplog.text
    assert (result.best_step, result.best_is_chance) == (None, False)


def test_restarting_removes_the_best_too(tmp_path: Path) -> None:
    tiny.run(tmp_path, validate=_scripted([1.0, 2.0, 2.0]), validate_every=5, save_every=100)

    tiny.run(tmp_path, resume=False)

    assert _folders(tmp_path) == ["step-00000008", "step-00000012"]


def test_best_weights_of_a_run_that_never_got_a_checkpoint_are_nobody_elses(tmp_path: Path) -> None:
    orphan = tmp_path / "checkpoints" / "best-00000004"
    replace_folder(orphan, lambda folder: (folder / "model.safetensors").write_bytes(b"another run's"))
    result = tiny.run(
        tmp_path, validate=_scripted([3.0, 1.0, 2.0, 2.5, 2.6, 2.7]), validate_every=2, save_every=2
    )
    assert result.best_checkpoint == tmp_path / "checkpoints" / "step-00000004"
    assert not orphan.exists()


# --- ties ---------------------------------------------------------------------------------------------------


def _measured(*rows: tuple[float, float]) -> Any:
    """A validation that gives these scores and losses."""
    remaining = list(rows)
    return lambda _model: dict(zip(("rougeL", "loss"), remaining.pop(0), strict=True))


SCORE: dict[str, Any] = {"validate_every": 2, "select": Highest(metric="rougeL")}


@pytest.mark.parametrize(
    ("rows", "best"),
    [
        ([(0.0, loss) for loss in (7.9, 7.1, 6.2, 6.0, 5.6, 5.3)], 12),
        ([(0.0, loss) for loss in (7.9, 7.1, 5.2, 6.0, 5.6, 5.3)], 6),
        ([(0.0, 5.0)] * 6, 12),
        ([(1.0, 9.0), *[(0.0, 5.0)] * 5], 2),
    ],
    ids=["the loss falls", "then rises", "and is tied too", "a score counts more"],
)
def test_of_equal_scores_the_lower_loss_is_best_then_the_later_step(
    rows: list[tuple[float, float]], best: int, tmp_path: Path
) -> None:
    assert tiny.run(tmp_path, validate=_measured(*rows), **SCORE).best_step == best


def test_a_tie_is_broken_the_same_way_after_a_resume(tmp_path: Path) -> None:
    rows = [(0.0, loss) for loss in (7.0, 6.0, 6.5, 6.2, 6.1, 6.3)]
    tiny.run(tmp_path, validate=_measured(*rows), keep_checkpoints=9, **SCORE)
    for step in (8, 12):
        shutil.rmtree(tmp_path / "checkpoints" / f"step-{step:08d}")

    again = tiny.run(tmp_path, validate=_measured(*rows[2:]), keep_checkpoints=9, **SCORE)

    assert (again.best_step, again.best_metric) == (4, 0.0)


def test_a_run_folder_of_an_older_version_does_not_know_the_loss_of_its_best_and_goes_on(
    tmp_path: Path,
) -> None:
    rows = [(0.0, 7.0), (0.0, 6.0)]
    tiny.run(tmp_path, validate=_measured(*rows, *[(0.0, 9.0)] * 4), keep_checkpoints=9, **SCORE)
    for step in (8, 12):
        shutil.rmtree(tmp_path / "checkpoints" / f"step-{step:08d}")
    place = tmp_path / "checkpoints" / "step-00000004"
    record = json.loads((place / "state.json").read_text())
    del record["state"]["best_loss"], record["state"]["is_finite"]
    files = {name: (place / name).read_bytes() for name in ("model.safetensors", "optimizer.safetensors")}

    def write(folder: Path) -> None:
        (folder / "state.json").write_text(json.dumps(record))
        for name, content in files.items():
            (folder / name).write_bytes(content)

    replace_folder(place, write)

    result = tiny.run(tmp_path, validate=_measured((0.0, 8.0), *[(0.0, 9.0)] * 3), **SCORE)

    assert (result.step, result.best_step) == (12, 6)


def test_patience_counts_a_lower_loss_as_progress_and_a_full_tie_as_none(tmp_path: Path) -> None:
    falling = [(0.0, 9.0 - step) for step in range(6)]
    assert tiny.run(tmp_path / "a", validate=_measured(*falling), patience=1, **SCORE).step == 12

    level = tiny.run(tmp_path / "b", validate=_measured(*[(0.0, 5.0)] * 6), patience=2, **SCORE)

    assert (level.step, level.best_step) == (6, 6)


# --- scores that are no better than chance ----------------------------------------------------------------------------


def _scored(*rows: tuple[float, float, float]) -> Any:
    """Return a validation that gives ROUGE-L, its lead over chance (lower end) and loss, in order."""
    remaining = iter(rows)

    def validate(_: nn.Module) -> dict[str, float]:
        score, lead, loss = next(remaining)
        return {"rougeL": score, "rougeL_lead": lead, "loss": loss}

    return validate


def test_a_score_that_may_be_chance_does_not_beat_a_lower_loss(tmp_path: Path) -> None:
    rows = ((0.109, -0.2, 7.67), (0.0, 0.0, 7.5), (0.0, 0.0, 7.35))
    result = tiny.run(tmp_path, validate=_scored(*rows), validate_every=4, select=Highest(metric="rougeL"))
    assert (result.best_step, result.best_metric, result.best_is_chance) == (12, 0.0, True)
    assert json.loads((tmp_path / "checkpoints" / "best.json").read_text())["chosen_by"] == "loss"


def test_a_score_above_chance_beats_any_that_is_not_and_stays(tmp_path: Path) -> None:
    rows = ((9.0, -1.0, 3.0), (4.0, 0.5, 3.5), (8.0, -0.1, 2.0))
    result = tiny.run(tmp_path, validate=_scored(*rows), validate_every=4, select=Highest(metric="rougeL"))
    assert (result.best_step, result.best_metric, result.best_is_chance) == (8, 4.0, False)


def test_above_chance_the_higher_score_is_kept_whatever_the_loss(tmp_path: Path) -> None:
    rows = ((30.0, 20.0, 2.0), (31.0, 21.0, 2.5), (30.5, 22.0, 1.0))
    result = tiny.run(tmp_path, validate=_scored(*rows), validate_every=4, select=Highest(metric="rougeL"))
    assert (result.best_step, result.best_is_chance) == (8, False)


def test_a_falling_loss_is_progress_while_the_scores_are_chance(tmp_path: Path) -> None:
    rows = ((0.5, -0.1, 7.0), (0.0, 0.0, 6.0), (0.2, -0.1, 5.0), (0.1, -0.1, 5.5))
    result = tiny.run(
        tmp_path, validate=_scored(*rows), validate_every=2, patience=1, select=Highest(metric="rougeL")
    )
    assert (result.step, result.best_step, result.stopped_early) == (8, 6, True)


def test_the_rule_survives_a_stop(tmp_path: Path) -> None:
    select: dict[str, Any] = {"validate_every": 4, "select": Highest(metric="rougeL")}
    tiny.run(tmp_path, steps=4, validate=_scored((9.0, -1.0, 3.0)), **select)
    state = json.loads((tmp_path / "checkpoints" / "step-00000004" / "state.json").read_text())["state"]
    assert state["best_is_chance"] is True


def test_the_lead_of_one_set_decides_for_its_own_score() -> None:
    metrics = {"rougeL/samsum": 5.0, "rougeL_lead/samsum": -0.5, "loss": 2.0}
    verdict = judge(
        metrics, select=Highest(metric="rougeL/samsum"), state=RunState(), weights_are_finite=True
    )
    assert verdict.is_chance
    assert verdict.is_best


CHANCE: dict[str, Any] = {"best_step": 4, "best_value": 5.0, "best_loss": 2.0, "best_is_chance": True}
ABOVE: dict[str, Any] = {**CHANCE, "best_is_chance": False}


@pytest.mark.parametrize(
    ("measured", "state", "expected"),
    [
        ((5.0, None, None), {}, "best progress"),
        ((4.0, None, None), ABOVE, ""),
        ((5.0, None, None), ABOVE, "best"),  # a tie without a loss to break it: the later one
        ((5.0, None, 3.0), {**ABOVE, "best_loss": None}, "best"),
        ((5.0, None, 2.0), ABOVE, "best"),
        ((5.0, None, 1.9), ABOVE, "best progress"),
        ((5.0, None, 2.1), ABOVE, ""),
        ((6.0, None, 9.0), ABOVE, "best progress"),
        ((6.0, -1.0, None), ABOVE, "best progress"),  # without a loss only the score can decide
        ((9.0, -1.0, 1.0), ABOVE, "chance"),
        ((9.0, 0.0, 1.0), ABOVE, "chance"),
        ((1.0, 0.1, 9.0), CHANCE, "best progress"),
        ((1.0, 0.0, 1.9), CHANCE, "best progress chance"),
        ((1.0, 0.0, 2.0), CHANCE, "best chance"),
        ((9.0, 0.0, 2.1), CHANCE, "chance"),
        ((9.0, 0.0, 2.1), {**CHANCE, "best_loss": None}, "best progress chance"),
        ((9.0, -1.0, 2.0), {}, "best progress chance"),
    ],
)
def test_a_validation_is_held_against_the_best_so_far(
    measured: tuple[float, float | None, float | None], state: dict[str, Any], expected: str
) -> None:
    named = zip(("rougeL", "rougeL_lead", "loss"), measured, strict=True)
    metrics = {name: value for name, value in named if value is not None}
    verdict = judge(metrics, select=SCORE["select"], state=RunState(**state), weights_are_finite=True)
    found = {"best": verdict.is_best, "progress": verdict.is_progress, "chance": verdict.is_chance}
    assert verdict.is_finite
    assert " ".join(name for name, is_so in found.items() if is_so) == expected


@pytest.mark.parametrize(
    ("metrics", "weights_are_finite"),
    [
        ({"rougeL": 9.0}, False),
        ({"rougeL": 9.0, "loss": 1.0}, False),
        ({"rougeL": math.nan}, True),
        ({"rougeL": math.nan, "loss": 1.0}, True),
        ({"rougeL": 9.0, "loss": math.inf}, True),
    ],
)
def test_of_scores_loss_and_weights_all_must_be_finite(
    metrics: dict[str, float], weights_are_finite: bool
) -> None:
    verdict = judge(metrics, select=SCORE["select"], state=RunState(), weights_are_finite=weights_are_finite)
    assert verdict == ValidationVerdict(is_finite=False)


def test_a_run_without_a_validation_has_its_last_checkpoint_and_no_word_on_chance(tmp_path: Path) -> None:
    result = tiny.run(tmp_path, steps=3)
    assert (result.best_step, result.best_is_chance, result.is_finite) == (None, False, True)
    assert result.best_checkpoint == tmp_path / "checkpoints" / "step-00000003"


def test_patience_that_runs_out_at_the_last_step_stops_nothing_early(tmp_path: Path) -> None:
    result = tiny.run(tmp_path, validate=_scripted([1.0, 2.0, 3.0]), validate_every=4, patience=2)
    assert (result.step, result.stopped_early, result.interrupted) == (12, False, False)
