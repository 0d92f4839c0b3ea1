"""Weights in blocks have the values of the formula, those in eight bits nearly; damage is named."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from precis.generation.compressed_weights import BLOCKS, COMPACT, block_headers, read_blocks, read_compact
from precis.generation.model_loader import load_model
from precis.storage.seal import SEAL, write_folder
from precis_experiments.small_model import write_compact
from precis_text.errors import UserError
from tests.tiny_models import save


def told(formats: dict[str, str]) -> dict[str, str]:
    """Return the metadata of a file of blocks."""
    return {"formats": json.dumps(formats)}


def _packed(form: str, rows: int, columns: int) -> tuple[Tensor, np.ndarray]:
    """Return random blocks and their values by the formula, number by number."""
    rng = np.random.default_rng(3)
    stored, values = [], np.zeros((rows, columns), np.float32)
    for block in range(rows * columns // 32):
        scale, least = np.float16(rng.random()), np.float16(rng.normal())
        data = rng.integers(0, 256, 16 if form == "q4_1" else 32, dtype=np.uint8)
        head = scale.tobytes() + (least.tobytes() if form == "q4_1" else b"")
        stored.append(np.frombuffer(head + data.tobytes(), np.uint8))
        for index in range(32):
            at = divmod(block * 32 + index, columns)
            if form == "q4_1":
                nibble = int(data[index]) % 16 if index < 16 else int(data[index - 16]) // 16
                values[at] = np.float32(scale) * np.float32(nibble) + np.float32(least)
            else:
                signed = int(data[index]) - (256 if data[index] > 127 else 0)
                values[at] = np.float32(scale) * np.float32(signed)
    return torch.from_numpy(np.concatenate(stored).reshape(rows, -1)), values


@pytest.mark.parametrize("form", ["q4_1", "q8_0"])
def test_blocks_have_the_values_of_the_formula_to_the_bit(tmp_path: Path, form: str) -> None:
    blocks, expected = _packed(form, 5, 96)
    save_file({"a": blocks, "b": torch.ones(7)}, tmp_path / BLOCKS, metadata=told({"a": form, "b": "f32"}))
    found = read_blocks(tmp_path)
    assert np.array_equal(found["a"].numpy(), expected)
    assert torch.equal(found["b"], torch.ones(7))
    assert {name: tuple(header.shape) for name, header in block_headers(tmp_path).items()} == {
        "a": (5, 96),
        "b": (7,),
    }
    assert math.prod(block_headers(tmp_path)["a"].shape) == expected.size


@pytest.mark.parametrize("form", ["q4_1", "q9_9", "f32", None])
def test_a_tensor_that_is_not_whole_blocks_is_refused(tmp_path: Path, form: str | None) -> None:
    tensor = torch.zeros(2, 21, dtype=torch.uint8)
    save_file(
        {"weights": tensor}, tmp_path / BLOCKS, metadata=told({} if form is None else {"weights": form})
    )
    for read in (read_blocks, block_headers):
        with pytest.raises(UserError, match="'weights' are not whole blocks"):
            read(tmp_path)


def test_blocks_overwritten_in_place_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / BLOCKS
    save_file({"a": torch.ones(3, 40)}, path, metadata=told({"a": "f32"}))
    found = read_blocks(tmp_path)
    with path.open("rb+") as file:
        file.seek(path.stat().st_size - 400)
        file.write(b"\x7f" * 400)
    assert torch.equal(found["a"], torch.ones(3, 40))


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(2, 40, dtype=torch.uint8)}, tmp_path / BLOCKS, metadata=told({"a": "q4_1"}))
    assert load_file(tmp_path / BLOCKS)["a"].shape == (2, 40)
    whole = (tmp_path / BLOCKS).read_bytes()
    (tmp_path / BLOCKS).write_bytes(whole[:-9])
    with pytest.raises(UserError, match="cannot be loaded"):
        read_blocks(tmp_path)


@pytest.fixture(params=["zcodepp", "bart"])
def folders(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    whole, small = save(request.param, tmp_path / "whole"), tmp_path / "small"
    loaded = load_model(whole)

    def write(place: Path) -> None:
        write_compact(loaded.model, place)
        loaded.tokenizer.save_pretrained(place)

    write_folder(small, write)
    return whole, small


def test_what_is_read_back_differs_by_half_a_step_of_its_row_at_most(folders: tuple[Path, Path]) -> None:
    whole, small = (load_model(folder).model.state_dict() for folder in folders)
    assert whole.keys() == small.keys()
    for name, weight in whole.items():
        is_matrix = weight.ndim == 2 and len(weight) > 1
        step = weight.abs().amax(-1, keepdim=True) / 127 if is_matrix else weight.abs().amax() * 1e-3
        assert ((weight - small[name]).abs() <= 0.501 * step + 1e-7).all(), name


def test_decoding_and_tied_weights_are_kept(folders: tuple[Path, Path]) -> None:
    whole, small = (load_model(folder).model for folder in folders)
    assert whole.generation_config.to_diff_dict() == small.generation_config.to_diff_dict()
    assert sum(p.numel() for p in whole.parameters()) == sum(p.numel() for p in small.parameters())


def test_the_file_has_a_quarter_of_the_size(folders: tuple[Path, Path]) -> None:
    whole, small = folders
    weights = load_file(small / COMPACT)
    matrices = sum(weight.numel() for weight in weights.values() if weight.dtype is torch.int8)
    assert matrices > 0.8 * sum(weight.numel() for weight in load_file(whole / "model.safetensors").values())


def test_a_flipped_bit_is_found(folders: tuple[Path, Path]) -> None:
    content = bytearray((folders[1] / COMPACT).read_bytes())
    content[-100] ^= 4
    (folders[1] / COMPACT).write_bytes(content)
    with pytest.raises(UserError, match=COMPACT):
        load_model(folders[1])


@pytest.mark.parametrize("lost", [".scale", ""])
def test_weights_that_lack_something_are_refused(
    folders: tuple[Path, Path], tmp_path: Path, lost: str
) -> None:
    weights = load_file(folders[1] / COMPACT)
    name = next(name for name, weight in weights.items() if weight.dtype is torch.int8)
    del weights[name + lost]
    (folders[1] / SEAL).unlink()
    save_file(weights, folders[1] / COMPACT)
    with pytest.raises(UserError, match=r"scale|missing|does not have them"):
        load_model(folders[1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_eight_bits_overwritten_in_place_change_nothing(dtype: torch.dtype, tmp_path: Path) -> None:
    path = tmp_path / COMPACT
    save_file({"bias": torch.ones(200, dtype=dtype)}, path)
    found = read_compact(tmp_path)
    with path.open("rb+") as file:
        file.seek(path.stat().st_size - 400)
        file.write(b"\x7f" * 400)
    assert torch.equal(found["bias"], torch.ones(200))
