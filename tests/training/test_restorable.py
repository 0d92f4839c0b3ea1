"""A checkpoint with the right sums is held against the model too: types, finite numbers, a whole optimizer."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from precis.storage.atomic import to_json
from precis.storage.seal import check_seal, seal, seal_text
from precis.training import TrainSettings, load_weights
from precis.training.checkpoint import Checkpoints, RunState, restore
from precis.training.optimizer import build_optimizer
from precis_text.errors import UserError
from tests.training import tiny

Change = Callable[[dict[str, Tensor]], dict[str, Tensor]]


def saved(folder: Path) -> Checkpoints:
    """Checkpoints of steps 4 and 8, with the optimizer's state."""
    checkpoints = Checkpoints(folder, keep=3)
    model = tiny.TinyModel()
    optimizer = build_optimizer(model, TrainSettings(steps=9))
    for step in (4, 8):
        tiny.objective(model, tiny.rows(range(4))).total.backward()
        optimizer.step()
        checkpoints.save(model, optimizer, RunState(step=step), {"seed": 0})
    return checkpoints


def seal_again(folder: Path) -> None:
    (folder / "seal.json").unlink()
    seal(folder)


def cast(dtype: torch.dtype) -> Change:
    return lambda tensors: {n: t.to(dtype) if t.is_floating_point() else t for n, t in tensors.items()}


def with_nan(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    name = max(name for name, tensor in tensors.items() if tensor.ndim == 2)
    tensors[name][0, 0] = float("nan")
    return tensors


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("model.safetensors", cast(torch.float16), "is F16, not F32"),
        ("model.safetensors", cast(torch.int64), "is I64, not F32"),
        ("model.safetensors", with_nan, "is not finite"),
        ("optimizer.safetensors", cast(torch.float16), "is F16, not F32"),
        ("optimizer.safetensors", with_nan, "is not finite"),
        ("optimizer.safetensors", lambda _: {}, "optimizer.safetensors is empty"),
        (
            "optimizer.safetensors",
            lambda tensors: {n: t.double() if n == "step/hidden.bias" else t for n, t in tensors.items()},
            "'step/hidden.bias' in optimizer.safetensors is F64, not F32",
        ),
    ],
)
def test_wrong_numbers_under_right_sums_are_named_and_the_older_checkpoint_is_taken(
    name: str, change: Change, says: str, tmp_path: Path
) -> None:
    said: list[str] = []
    checkpoints = saved(tmp_path)
    file = checkpoints.path(8) / name
    save_file(change(load_file(file)), file)
    seal_again(file.parent)
    found = checkpoints.newest_valid(said.append, model=tiny.TinyModel())
    assert found is not None
    assert found.state.step == 4
    assert len(said) == 1
    assert says in said[0]
    if name == "model.safetensors":
        with pytest.raises(UserError, match="is damaged"):
            load_weights(tiny.TinyModel(), checkpoints.path(8))


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
def test_a_seal_without_a_file_is_named(name: str, tmp_path: Path) -> None:
    said: list[str] = []
    checkpoints = saved(tmp_path)
    (checkpoints.path(8) / name).unlink()
    seal_again(checkpoints.path(8))
    found = checkpoints.newest_valid(said.append)
    assert found is not None
    assert found.state.step == 4
    assert f"{name} is not in its seal" in said[0]


@pytest.mark.parametrize(
    "text",
    ['{"format": 1, "files": {"a": {"bytes": Infinity, "xxh3": "", "sha256": ""}}}', "[" * 200_000, "{}"],
)
def test_a_seal_that_cannot_be_read_is_named(text: str, tmp_path: Path) -> None:
    said: list[str] = []
    checkpoints = saved(tmp_path)
    (checkpoints.path(8) / "seal.json").write_text(text)
    found = checkpoints.newest_valid(said.append)
    assert found is not None
    assert found.state.step == 4
    assert "seal.json is damaged" in said[0]


def test_a_seal_names_files_of_its_folder_alone(tmp_path: Path) -> None:
    said: list[str] = []
    checkpoints = saved(tmp_path)
    file = checkpoints.path(8) / "seal.json"
    files = json.loads(file.read_text())["files"]
    file.write_text(seal_text({**files, "../../x": {"bytes": 1, "xxh3": "", "sha256": ""}}))
    checkpoints.newest_valid(said.append)
    assert "'../../x', which is outside the folder" in said[0]


@pytest.mark.parametrize(
    "change",
    [
        {"step": "8"},
        {"step": -8},
        {"step": True},
        {"tokens": 1.5},
        {"best_value": "x"},
        {"window": {"a": "b"}},
    ],
)
def test_a_state_of_other_types_is_named(change: dict[str, object], tmp_path: Path) -> None:
    said: list[str] = []
    checkpoints = saved(tmp_path)
    file = checkpoints.path(8) / "state.json"
    record = json.loads(file.read_text())
    file.write_text(to_json({**record, "state": {**record["state"], **change}}))
    seal_again(file.parent)
    found = checkpoints.newest_valid(said.append)
    assert found is not None
    assert found.state.step == 4
    assert f"state.json cannot be read ({next(iter(change))} is" in said[0]


def test_a_file_besides_is_named_and_the_checkpoint_used(tmp_path: Path) -> None:
    said: list[str] = []
    checkpoints = saved(tmp_path)
    (checkpoints.path(8) / "notes.txt").write_text("mine")
    found = checkpoints.newest_valid(said.append, model=tiny.TinyModel())
    assert found is not None
    assert found.state.step == 8
    assert "also contains notes.txt" in said[0]


@pytest.mark.parametrize("is_link", [False, True])
def test_a_file_or_link_under_a_checkpoints_name_is_named_and_kept(is_link: bool, tmp_path: Path) -> None:
    said: list[str] = []
    checkpoints = saved(tmp_path)
    place = checkpoints.path(12)
    if is_link:
        place.symlink_to(checkpoints.path(8))
    else:
        place.write_text("mine")
    found = checkpoints.newest_valid(said.append)
    assert found is not None
    assert found.state.step == 8
    assert said == [f"{place}: is a file or a link, not a checkpoint; ignored"]
    model = tiny.TinyModel()
    checkpoints.save(model, build_optimizer(model, TrainSettings(steps=9)), RunState(step=12), {})
    kept = [path for path in tmp_path.iterdir() if path.name.startswith("step-00000012.moved-")]
    assert len(kept) == 1
    assert kept[0].is_symlink() is is_link
    assert is_link or kept[0].read_text() == "mine"
    check_seal(checkpoints.path(12))


def test_an_optimizer_that_lacks_one_moment_is_refused(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path)
    file = checkpoints.path(8) / "optimizer.safetensors"
    tensors = load_file(file)
    del tensors["exp_avg_sq/hidden.weight"]
    save_file(tensors, file)
    model = tiny.TinyModel()
    with pytest.raises(UserError, match="exp_avg_sq of its optimizer, belongs to another model"):
        restore(model, build_optimizer(model, TrainSettings(steps=9)), file.parent)
