"""Checkpoints are saved whole, pruned to the newest and the best, and never taken on trust."""

import json
import os
import shutil
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
from safetensors import SafetensorError

from precis.storage.seal import DamagedError, check_seal
from precis.training import TrainSettings, checkpoint, load_weights
from precis.training.checkpoint import Checkpoints, RunState, restore
from precis.training.optimizer import build_optimizer
from precis_text.errors import RunError, UserError
from tests.training import tiny


def _save(checkpoints: Checkpoints, *steps: int, best: int | None = None) -> None:
    model = tiny.TinyModel()
    optimizer = build_optimizer(model, TrainSettings(steps=1))
    for step in steps:
        state = RunState(step=step, best_step=best, best_value=None if best is None else 0.5)
        checkpoints.save(model, optimizer, state, {"seed": 0, "select": {"metric": "loss"}})


def test_the_newest_and_the_best_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)

    _save(checkpoints, 10, 20, 30, 40, 50, best=20)

    assert checkpoints.steps() == [20, 40, 50]
    assert json.loads((tmp_path / "best.json").read_text()) == {
        "step": 20,
        "value": 0.5,
        "metric": "loss",
        "chosen_by": "loss",
    }


def test_a_new_best_lets_the_old_one_go(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=1)

    _save(checkpoints, 10, 20, best=10)
    _save(checkpoints, 30, best=30)

    assert checkpoints.steps() == [30]
    assert json.loads((tmp_path / "best.json").read_text())["step"] == 30


def test_a_checkpoint_holds_safetensors_and_json_only(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)

    _save(checkpoints, 7)

    assert {path.name for path in checkpoints.path(7).iterdir()} == {
        "model.safetensors",
        "optimizer.safetensors",
        "state.json",
        "seal.json",
    }


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_the_files_of_a_checkpoint_have_the_usual_mode(umask: int, tmp_path: Path) -> None:
    previous = os.umask(umask)
    try:
        _save(checkpoints := Checkpoints(tmp_path, keep=2), 7)
    finally:
        os.umask(previous)
    assert {path.stat().st_mode & 0o777 for path in checkpoints.path(7).iterdir()} == {0o666 & ~umask}


def test_the_name_of_a_new_folder_of_checkpoints_is_on_the_disk_before_the_first_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, int]] = []

    def sync(place: Path) -> None:
        synced.append((place.name, len(list((tmp_path / "runs" / "first" / "checkpoints").iterdir()))))

    monkeypatch.setattr(checkpoint, "sync_directory", sync)
    for step in (1, 2):
        _save(Checkpoints(tmp_path / "runs" / "first" / "checkpoints", keep=2), step)
    assert synced == [("first", 0), ("runs", 0)]


def test_a_full_disk_loses_no_good_checkpoint_and_leaves_no_debris(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    _save(checkpoints, 10)

    def full(_tensors: Any, path: Path) -> None:
        path.write_bytes(b"part of it")
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(RunError, match=r"step 20 could not be written.*No space.*step 10 is kept"):
        _save(checkpoints, 20)

    assert checkpoints.steps() == [10]
    check_seal(checkpoints.path(10))
    assert {path.name for path in tmp_path.iterdir()} == {"step-00000010"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's always-full device")
def test_the_error_of_a_really_full_device_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_mkdir = Path.mkdir

    def mkdir_with_full_file(path: Path, **options: Any) -> None:
        real_mkdir(path, **options)
        if ".tmp-" in path.name:
            (path / "state.json").symlink_to("/dev/full")

    monkeypatch.setattr(Path, "mkdir", mkdir_with_full_file)
    with pytest.raises(RunError, match="No space left on device"):
        _save(Checkpoints(tmp_path, keep=2), 10)

    assert list(tmp_path.iterdir()) == []


def test_too_little_free_space_is_noticed_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    _save(checkpoints, 10)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(2**40, 2**40, 2**20))

    with pytest.raises(RunError, match=r"step 20 needs 16 MiB and .* has 1 MiB free; .*step 10 is kept"):
        _save(checkpoints, 20)
    with pytest.raises(RunError, match=r"room for 3 checkpoints of 2\.00 GiB each needs 6\.02 GiB"):
        checkpoints.check_space_for_run(2**31)

    assert [path.name for path in tmp_path.iterdir()] == ["step-00000010"]


def test_a_checkpoint_of_another_step_under_a_wrong_name_is_not_used(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=3)
    _save(checkpoints, 10, 20)
    checkpoints.path(20).rename(checkpoints.path(30))
    said: list[str] = []

    saved = checkpoints.newest_valid(said.append)

    assert saved is not None
    assert saved.state.step == 10
    assert len(said) == 1
    assert "step-00000030: it contains step 20" in said[0]


def test_weights_are_loaded_from_a_verified_checkpoint_only(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    _save(checkpoints, 10)
    model = tiny.TinyModel(seed=5)

    load_weights(model, checkpoints.path(10))
    tiny.assert_identical(tiny.weights(model), tiny.weights(tiny.TinyModel()))

    (checkpoints.path(10) / "optimizer.safetensors").unlink()
    with pytest.raises(UserError, match=r"is damaged: optimizer\.safetensors is missing"):
        load_weights(model, checkpoints.path(10))
    with pytest.raises(UserError, match="does not exist; check the path"):
        load_weights(model, checkpoints.path(99))


def test_a_run_that_diverged_gets_its_own_weights_back_and_nothing_else_does(tmp_path: Path) -> None:
    checkpoints, model = Checkpoints(tmp_path, keep=2), tiny.TinyModel()
    next(model.parameters()).data[0] = float("nan")
    optimizer = build_optimizer(model, TrainSettings(steps=1))
    checkpoints.save(model, optimizer, RunState(step=10), {"seed": 0, "select": {"metric": "loss"}})
    restored = tiny.TinyModel(seed=5)
    restore(restored, build_optimizer(restored, TrainSettings(steps=1)), checkpoints.path(10))
    assert next(restored.parameters())[0].isnan().all()
    with pytest.raises(UserError, match="not finite"):
        load_weights(tiny.TinyModel(), checkpoints.path(10))


def test_best_weights_that_are_not_finite_are_damaged_whatever_their_seal_says(tmp_path: Path) -> None:
    checkpoints, model = Checkpoints(tmp_path, keep=2), tiny.TinyModel()
    next(model.parameters()).data[0] = float("nan")
    checkpoints.hold(model, 5)
    state = RunState(step=10, best_step=5, best_value=0.5)
    optimizer = build_optimizer(tiny.TinyModel(), TrainSettings(steps=1))
    checkpoints.save(tiny.TinyModel(), optimizer, state, {"seed": 0, "select": {"metric": "loss"}})
    checkpoints.verify_best(5)
    with pytest.raises(DamagedError, match="is not finite"):
        checkpoints.verify_best(5, model=model)


def test_tidying_removes_what_a_killed_save_left_and_nothing_of_the_user(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    _save(checkpoints, 10)
    (tmp_path / "notes.tmp-old").mkdir()
    for name in ("my.tmp-file.txt", "notes.tmp-0123abcd"):
        (tmp_path / name).write_text("mine")
    (tmp_path / "step-00000020.tmp-0123abcd").mkdir()
    (tmp_path / "best.json.tmp-0123abcd").write_text("{")
    checkpoints.tidy()
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {"step-00000010", "my.tmp-file.txt", "notes.tmp-0123abcd", "notes.tmp-old"}


def test_a_run_needs_no_room_for_the_checkpoints_that_it_has_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(tmp_path, keep=3)
    usage = namedtuple("usage", "total used free")
    for step, copies in ((10, 4), (20, 2)):
        _save(checkpoints, step, best=15 if step > 15 else None)  # the best one is a folder of its own
        with monkeypatch.context() as full:
            full.setattr(shutil, "disk_usage", lambda _path: usage(2**40, 2**40, 2**20))
            with pytest.raises(RunError, match=f"room for {copies} checkpoints of"):
                checkpoints.check_space_for_run(2**31)
            for size, said in ((2**30, "1.00 GiB"), (2**30 - 2**20, "1023 MiB")):
                with pytest.raises(RunError, match=f"checkpoints of {said} each"):
                    checkpoints.check_space_for_run(size)
        checkpoints.hold(tiny.TinyModel(), 15)
    assert {path.name for path in tmp_path.glob("*-0*")} == {
        "step-00000010",
        "step-00000020",
        "best-00000015",
    }
