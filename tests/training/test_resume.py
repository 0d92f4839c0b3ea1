"""A run killed at any moment ends with the very bits of one that was left alone."""

import json
import logging
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from precis.storage import seal
from precis.storage.locks import locked
from precis.training import JsonLines, TrainSettings
from precis_text.errors import RunError, UserError
from tests.training import tiny
from tests.training.kills import Harness, Make, Report, differences


def small_run() -> Mapping[str, Any]:
    """24 steps with dropout and validation, saved after every step."""
    settings = TrainSettings(
        steps=24,
        learning_rate=0.01,
        warmup_steps=3,
        save_every=1,
        validate_every=5,
        log_every=3,
        gradient_accumulation=2,
    )
    return {
        "model": tiny.TinyModel(),
        "batches": tiny.RowSource(),
        "objective": tiny.objective,
        "settings": settings,
        "validate": tiny.validation_loss,
    }


def seldom_saved_run() -> Mapping[str, Any]:
    """The same with the best step somewhere between two saves."""
    run = small_run()
    settings = replace(run["settings"], save_every=6, validate_every=1)
    return {**run, "settings": settings, "validate": tiny.wavering_loss}


def _kill(folder: Path, *, runs: int, kills: int, seed: int, make: Make = small_run) -> None:
    harness = Harness(make, folder)
    rng = random.Random(seed)
    reports: list[Report] = []
    met = False
    while len(reports) < runs or (
        not met and len(reports) < runs + 5
    ):  # a busy machine may be hit between saves
        reports.append(harness.kill_and_resume(f"run-{len(reports)}", kills=kills, rng=rng))
        met = met or any(kill.unfinished for kill in reports[-1].kills)

    assert [report.differences for report in reports] == [()] * len(reports), reports
    assert met


@pytest.mark.long
def test_runs_killed_at_random_and_while_saving_end_bit_identically(tmp_path: Path) -> None:
    _kill(tmp_path, runs=1, kills=4, seed=0)


@pytest.mark.long
def test_the_best_weights_between_two_saves_survive_kills_bit_identically(tmp_path: Path) -> None:
    _kill(tmp_path, runs=1, kills=6, seed=2, make=seldom_saved_run)

    assert len([*(tmp_path / "alone" / "checkpoints").glob("best-*")]) == 1


@pytest.mark.slow
def test_ten_runs_with_their_best_between_saves_end_bit_identically(tmp_path: Path) -> None:
    _kill(tmp_path, runs=10, kills=3, seed=3, make=seldom_saved_run)


@pytest.mark.slow
def test_twenty_of_twenty_killed_runs_end_bit_identically(tmp_path: Path) -> None:
    _kill(tmp_path, runs=20, kills=2, seed=1)


# --- damaged checkpoints ----------------------------------------------------------------------------------


def _delete(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def _delete_seal(folder: Path) -> None:
    (folder / "seal.json").unlink()


def _truncate(folder: Path) -> None:
    path = folder / "optimizer.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def _flip(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 4
    path.write_bytes(content)


DAMAGES: list[tuple[Callable[[Path], None], str]] = [
    (_delete, "model.safetensors is missing"),
    (_delete_seal, "seal.json is missing"),
    (_truncate, "optimizer.safetensors has"),
    (_flip, "model.safetensors has changed since it was written"),
]


@pytest.mark.parametrize(("damage", "reason"), DAMAGES)
def test_a_damaged_newest_checkpoint_is_named_and_the_one_before_it_used(
    tmp_path: Path, damage: Callable[[Path], None], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    common: dict[str, Any] = {"callbacks": [JsonLines()], "log_every": 3, "keep_checkpoints": 3}
    tiny.run(tmp_path / "alone", **common)
    tiny.run(tmp_path / "hurt", **common)
    damage(tmp_path / "hurt" / "checkpoints" / "step-00000012")

    source = tiny.RowSource()
    tiny.run(tmp_path / "hurt", batches=source, model=tiny.TinyModel(seed=7), **common)

    assert f"step-00000012: {reason}" in caplog.text
    assert source.asked[0] == 8
    assert differences(tmp_path / "alone", tmp_path / "hurt") == []


def test_each_of_several_damaged_checkpoints_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tiny.run(tmp_path, keep_checkpoints=3)
    _flip(tmp_path / "checkpoints" / "step-00000012")
    _truncate(tmp_path / "checkpoints" / "step-00000008")

    source = tiny.RowSource()
    tiny.run(tmp_path, batches=source, keep_checkpoints=3)

    assert "step-00000012" in caplog.text
    assert "step-00000008" in caplog.text
    assert source.asked[0] == 4


def test_a_damaged_newer_checkpoint_does_not_push_out_good_ones(tmp_path: Path) -> None:
    tiny.run(tmp_path, keep_checkpoints=2)
    _flip(tmp_path / "checkpoints" / "step-00000012")

    def stop(_model: Any, _batch: Any) -> Any:
        raise ZeroDivisionError

    with suppress(ZeroDivisionError):
        tiny.run(tmp_path, keep_checkpoints=1, save_every=1, loss=stop)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-00000008"]


@pytest.mark.parametrize("step", [8, 12])
def test_a_checkpoint_that_cannot_be_read_stops_the_run_and_is_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Whether it is the newest or the best."""
    rising = lambda model: {"loss": float(model.calls)}  # noqa: E731
    options: dict[str, Any] = {"validate": rising, "validate_every": 8}  # the best: step 8
    tiny.run(tmp_path, **options)
    before = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    real = seal._digests

    def digests(path: Path, *, slow: bool) -> tuple[str, str]:
        if path.parent.name == f"step-{step:08d}":
            raise OSError(5, "Input/output error")
        return real(path, slow=slow)

    monkeypatch.setattr(seal, "_digests", digests)
    with pytest.raises(RunError, match=rf"step-{step:08d} cannot be read \(\[Errno 5\].*nothing was deleted"):
        tiny.run(tmp_path, **options)

    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == before
    monkeypatch.undo()
    assert tiny.run(tmp_path, **options).step == 12


def test_a_run_without_any_good_checkpoint_does_not_silently_begin_anew(tmp_path: Path) -> None:
    tiny.run(tmp_path, keep_checkpoints=1)
    _flip(tmp_path / "checkpoints" / "step-00000012")

    with pytest.raises(RunError, match=r"none of the 1 checkpoints in .* can be used; .*--restart"):
        tiny.run(tmp_path, keep_checkpoints=1)
    assert tiny.run(tmp_path, keep_checkpoints=1, resume=False).step == 12


def test_a_damaged_best_checkpoint_is_named_and_the_next_validation_takes_its_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scores = iter([1.0, 2.0, 3.0, 4.0])
    validate = lambda _model: {"loss": next(scores)}  # noqa: E731
    tiny.run(tmp_path, validate=validate, validate_every=4, keep_checkpoints=2)
    _flip(tmp_path / "checkpoints" / "step-00000004")
    shutil.rmtree(tmp_path / "checkpoints" / "step-00000012")

    result = tiny.run(tmp_path, validate=validate, validate_every=4, keep_checkpoints=2)

    assert "best checkpoint" in caplog.text
    assert "step-00000004 is lost: model.safetensors has changed" in caplog.text
    assert (result.best_step, result.best_metric) == (12, 4.0)
    assert json.loads((tmp_path / "checkpoints" / "best.json").read_text())["step"] == 12


# --- other ways to be interrupted -------------------------------------------------------------------------


def test_a_half_written_metrics_line_is_cut_off(tmp_path: Path) -> None:
    tiny.run(tmp_path / "alone", callbacks=[JsonLines()], log_every=2)
    tiny.run(tmp_path / "hurt", callbacks=[JsonLines()], log_every=2)
    _delete(tmp_path / "hurt" / "checkpoints" / "step-00000012")
    with (tmp_path / "hurt" / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "train", "st')

    tiny.run(tmp_path / "hurt", callbacks=[JsonLines()], log_every=2)

    assert differences(tmp_path / "alone", tmp_path / "hurt") == []


def test_a_window_of_the_metrics_may_be_split_by_a_resume(tmp_path: Path) -> None:
    for name in ("alone", "split"):
        tiny.run(tmp_path / name, callbacks=[JsonLines()], log_every=5)
    shutil.rmtree(tmp_path / "split" / "checkpoints" / "step-00000012")

    tiny.run(tmp_path / "split", callbacks=[JsonLines()], log_every=5)

    assert differences(tmp_path / "alone", tmp_path / "split") == []


def test_a_finished_run_is_left_as_it_is(tmp_path: Path) -> None:
    first = tiny.run(tmp_path, validate=tiny.validation_loss)
    state = tmp_path / "checkpoints" / "step-00000012" / "state.json"
    written = state.stat().st_mtime_ns
    source, model = tiny.RowSource(), tiny.TinyModel(seed=4)

    again = tiny.run(tmp_path, batches=source, model=model, validate=tiny.validation_loss)

    assert source.asked == []
    assert state.stat().st_mtime_ns == written
    assert (again.step, again.best_step, again.best_metric) == (12, 12, first.best_metric)


def test_best_json_is_written_again_if_a_kill_came_between(tmp_path: Path) -> None:
    tiny.run(tmp_path, validate=tiny.validation_loss, validate_every=2)
    best = tmp_path / "checkpoints" / "best.json"
    content = best.read_text()
    best.unlink()

    tiny.run(tmp_path, validate=tiny.validation_loss, validate_every=2)

    assert json.loads(best.read_text()) == json.loads(content)


def test_a_second_writer_is_turned_away(tmp_path: Path) -> None:
    hold = (
        "import sys, fcntl; file = open(sys.argv[1], 'w'); fcntl.lockf(file, fcntl.LOCK_EX);"
        "print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", hold, str(tmp_path / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(UserError, match="another process is training in"):
            tiny.run(tmp_path)
    finally:
        holder.kill()
        holder.communicate()

    with locked(tmp_path):
        pass
    assert tiny.run(tmp_path).step == 12


@pytest.mark.skipif(sys.platform == "win32", reason="there is no lock")
def test_a_run_inside_a_hold_of_its_own_process_does_not_end_the_hold(tmp_path: Path) -> None:
    take = (
        "import sys, fcntl; file = open(sys.argv[1], 'w'); fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)"
    )
    other = [sys.executable, "-c", take, str(tmp_path / "lock")]

    with locked(tmp_path):
        tiny.run(tmp_path)
        assert subprocess.run(other, capture_output=True, check=False).returncode == 1
    assert subprocess.run(other, capture_output=True, check=False).returncode == 0


def test_a_start_removes_at_once_what_a_kill_or_other_settings_left(tmp_path: Path) -> None:
    tiny.run(tmp_path, keep_checkpoints=3)
    (tmp_path / "checkpoints" / "best.json").unlink(missing_ok=True)

    tiny.run(tmp_path, keep_checkpoints=1, batches=None)

    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-00000012"]


def test_damage_is_told_by_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tiny.run(tmp_path)
    _flip(tmp_path / "checkpoints" / "step-00000012")

    tiny.run(tmp_path)

    assert [(r.name, r.levelno) for r in caplog.records] == [("precis.training", logging.WARNING)]
