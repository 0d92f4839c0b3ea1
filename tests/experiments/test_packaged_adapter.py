"""The adapter of `--model writer` in its package, and the script that puts it there."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from experiments.scripts.packaged_adapter import PACKAGED, package
from experiments.scripts.writer_pairs import NAMES
from precis.generation.adapters import base_of
from precis.generation.model_metadata import load_use
from precis.storage.seal import check_seal, has_seal
from precis.tuning.low_rank import TENSORS, beside_base
from precis_experiments.open_sets import EXTENSIONS, SETS, is_open
from tests.generation.writers.test_short_adapter import write_adapter
from tests.tiny_models import llama

_PACKAGE = PACKAGED.parents[2]
_SHIPPED = pytest.mark.skipif(not PACKAGED.is_dir(), reason="the adapter is not in the package")


def test_the_packaged_adapter_works_as_the_trained_one_at_half_the_size(tmp_path: Path) -> None:
    trained = write_adapter(tmp_path / "trained", seed=2, half=False)
    package(trained, tmp_path / "packaged")
    model, ids = llama()[0], torch.arange(3, 20)[None]
    exact, packed = (beside_base(model, tmp_path / name)(ids).logits for name in ("trained", "packaged"))
    assert torch.allclose(exact, packed, atol=0.05)
    assert not torch.allclose(model(ids).logits, packed, atol=0.5)
    sizes = [
        sum(t.nbytes for t in load_file(tmp_path / n / TENSORS).values()) for n in ("trained", "packaged")
    ]
    assert sizes[0] == 2 * sizes[1]
    assert base_of(tmp_path / "packaged") == "writer"
    assert str(tmp_path) not in "".join(p.read_text() for p in (tmp_path / "packaged").glob("*.json"))


def test_a_cut_product_is_the_nearest_of_its_rank_at_the_same_scale(tmp_path: Path) -> None:
    trained = write_adapter(tmp_path / "trained", seed=2, half=False)
    package(trained, tmp_path / "cut", rank=2)
    whole, cut = (_products(tmp_path / name) for name in ("trained", "cut"))
    assert whole.keys() == cut.keys()
    for layer, product in whole.items():
        values = torch.linalg.svdvals(product)
        assert values[2] > 0.05 * values[0], "the cut of this test loses nothing"
        assert torch.linalg.matrix_rank(cut[layer], rtol=1e-2) == 2
        lost = torch.linalg.matrix_norm(product - cut[layer])
        assert torch.allclose(lost, values[2], rtol=0.01)
    record = json.loads((tmp_path / "cut" / "adapter.json").read_text())["low_rank"]
    config = json.loads((tmp_path / "cut" / "adapter_config.json").read_text())
    assert record == {"rank": 2, "alpha": 4.0}, "alpha / rank is 2, as trained"
    assert (config["r"], config["lora_alpha"]) == (2, 4.0)
    beside_base(llama()[0], tmp_path / "cut")
    check_seal(tmp_path / "cut", thorough=True)


def test_the_full_rank_loses_nothing_and_an_impossible_rank_is_refused(tmp_path: Path) -> None:
    trained = write_adapter(tmp_path / "trained", seed=2, half=False)
    package(trained, tmp_path / "packaged", rank=3)
    package(tmp_path / "packaged", tmp_path / "again", rank=3)
    whole, packaged, again = (_products(tmp_path / name) for name in ("trained", "packaged", "again"))
    for layer, product in whole.items():
        for found in (packaged[layer], again[layer]):
            assert torch.linalg.matrix_norm(found - product) < 2e-3 * torch.linalg.matrix_norm(product)
    for rank in (0, 4):
        with pytest.raises(SystemExit, match=rf"--rank {rank} must be from 1 to 3"):
            package(trained, tmp_path / "none", rank=rank)
    assert not (tmp_path / "none").exists()


def _products(folder: Path) -> dict[str, torch.Tensor]:
    """The product B A of each layer, in float64."""
    tensors = {name: tensor.double() for name, tensor in load_file(folder / TENSORS).items()}
    return {
        name: tensors[name.replace("lora_A", "lora_B")] @ tensor
        for name, tensor in tensors.items()
        if "lora_A" in name
    }


def test_every_set_that_the_adapter_is_trained_on_is_open_and_credited() -> None:
    sets = [each for each in (*SETS, *EXTENSIONS) if each.name in NAMES]
    assert len(sets) == len(NAMES)
    assert all(is_open(licence) for each in sets for licence in each.licence.split(", "))
    told = (_PACKAGE / "README.md").read_text() + (_PACKAGE / "NOTICE").read_text()
    missing = [each.name for each in sets if not (each.name in told and each.credit in told)]
    assert missing in ([], ["crs_reports"]), "crs_reports has no summary that is short enough"


def test_the_wheel_of_the_package_holds_the_adapter_that_is_there() -> None:
    project = tomllib.loads((_PACKAGE / "pyproject.toml").read_text())
    name, setuptools = f"precis_model_writer.{PACKAGED.name}", project["tool"]["setuptools"]
    is_there = PACKAGED.is_dir()
    assert (name in setuptools["packages"]) is is_there
    assert setuptools["package-data"].get(name) == (["*"] if is_there else None)
    licence = "Apache-2.0 AND CC-BY-SA-4.0" if is_there else "Apache-2.0"
    assert project["project"]["license"] == licence


@_SHIPPED
def test_the_shipped_adapter_is_whole_small_and_licensed() -> None:
    assert has_seal(PACKAGED)
    names = check_seal(PACKAGED, thorough=True)
    assert {path.name for path in PACKAGED.iterdir()} == {*names, "seal.json"}
    assert sum(path.stat().st_size for path in PACKAGED.iterdir()) < 6_500_000, "the wheel may have 100 MB"
    assert load_use(PACKAGED).licence == "cc-by-sa-4.0"
    record = json.loads((PACKAGED / "adapter.json").read_text())
    assert record["low_rank"] == {"rank": 10, "alpha": 20.0}
    config = json.loads((PACKAGED / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"]) == (10, 20.0)
    tensors = load_file(PACKAGED / TENSORS)
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}
    assert len(tensors) == 2 * 7 * 30
    assert all(tensor.any() for tensor in tensors.values()), "an untrained matrix changes nothing"
