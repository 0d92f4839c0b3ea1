"""Weights in eight bits: a quarter of the size, nearly the same numbers, and damage is named."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from precis.generation.compressed_weights import COMPACT, read_compact, write_compact
from precis.generation.model_loader import load_model
from precis.storage.seal import SEAL, write_folder
from precis_text.errors import UserError
from tests.tiny_models import save


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
def test_a_file_overwritten_in_place_changes_nothing(dtype: torch.dtype, tmp_path: Path) -> None:
    path = tmp_path / COMPACT
    save_file({"bias": torch.ones(200, dtype=dtype)}, path)
    found = read_compact(tmp_path)
    with path.open("rb+") as file:
        file.seek(path.stat().st_size - 400)
        file.write(b"\x7f" * 400)
    assert torch.equal(found["bias"], torch.ones(200))
