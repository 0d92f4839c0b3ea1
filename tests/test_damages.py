"""`faults.damages` names every damage, and fails for each kind of folder if what finds the damage is switched off."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from faults import damages
from faults.damages import Kind
from precis.data.packs import packed_text
from precis.generation import model_folder, model_loader
from precis.storage.seal import sealed_names
from precis.training import checkpoint, state_tensors
from precis.tuning import adapter_folder

pytestmark = pytest.mark.long
KINDS = ("model", "adapter", "pack", "checkpoint")
Off = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kind]:
    made = damages._kinds(tmp_path_factory.mktemp("whole"))
    assert tuple(kind.name for kind in made) == KINDS
    return {kind.name: kind for kind in made}


@pytest.fixture
def heard() -> Iterator[damages._Heard]:
    handler = damages._Heard()
    logging.getLogger("precis").addHandler(handler)
    yield handler
    logging.getLogger("precis").removeHandler(handler)


def seals_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any, **__: Any) -> None:
        return

    for module in (model_loader, adapter_folder, packed_text):
        patch.setattr(module, "check_sealed", nothing)
    patch.setattr(model_loader, "checking_sealed", lambda folder: nullcontext())
    patch.setattr(checkpoint, "check_seal", lambda folder, **_: frozenset(sealed_names(folder)))


def types_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(model_folder, "_check_types", lambda found: None)
    patch.setattr(state_tensors, "_check_type", lambda file, name, header, wanted: None)
    patch.setattr(adapter_folder, "read_adapter_tensors", load_file)


def numbers_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(model_loader, "check_finite", lambda model, source: None)
    patch.setattr(state_tensors, "_check_finite", lambda file: None)
    patch.setattr(adapter_folder, "read_adapter_tensors", load_file)


def what_is_left_over_is_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(model_loader, "check_left_over", lambda found, names, source: None)


def faults_of(kind: Kind, folder: Path, heard: damages._Heard) -> dict[str, str]:
    """Each damage once: what was damaged, and what the command says of it; "" if it was named."""
    tried = (damages._try(kind, number, 0, folder / "it", heard) for number in range(len(kind.damages)))
    return {what: fault for what, fault in tried if fault}


@pytest.mark.parametrize("name", KINDS)
def test_no_damage_is_silent_until_seals_are_not_compared(
    name: str, kinds: dict[str, Kind], heard: damages._Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert faults_of(kinds[name], tmp_path / "a", heard) == {}
    seals_are_not_compared(monkeypatch)
    silent = faults_of(kinds[name], tmp_path / "a", heard)
    assert set(silent.values()) == {"silent"}
    a_file = "chat_template.jinja added" if name == "adapter" else "a bit of "  # the bits were in its JSON
    assert any(what.startswith(a_file) for what in silent)


@pytest.mark.parametrize(
    ("name", "off", "silent"),
    [
        ("model", types_are_not_compared, "weights as torch.int64, resealed"),
        ("model", numbers_are_not_looked_at, "in model.decoder"),
        ("model", what_is_left_over_is_not_told, "a weight added, resealed"),
        ("adapter", types_are_not_compared, "weights as torch.int64, resealed"),
        ("adapter", numbers_are_not_looked_at, " in "),
        ("checkpoint", types_are_not_compared, "weights as torch.int64, resealed"),
        ("checkpoint", numbers_are_not_looked_at, " in exp_avg"),
    ],
)
def test_a_damage_under_a_seal_that_fits_is_silent_if_its_own_check_is_off(
    name: str,
    off: Off,
    silent: str,
    kinds: dict[str, Kind],
    heard: damages._Heard,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    off(monkeypatch)
    found = faults_of(kinds[name], tmp_path / "a", heard)
    assert any(silent in what and what.endswith(", resealed") for what in found), found


def test_a_line_of_two_and_an_unexpected_error_are_faults_too(
    kinds: dict[str, Kind], heard: damages._Heard, tmp_path: Path
) -> None:
    def breaks(_: Path) -> str:
        raise KeyError("files")

    whole = kinds["pack"].whole
    for read, fault in ((lambda _: "two\nlines", "silent"), (breaks, "unexpected KeyError: 'files'")):
        kind = Kind("pack", whole, (damages.flip,), read)
        assert damages._try(kind, 0, 0, tmp_path / "a" / "it", heard)[1] == fault
    assert list(tmp_path.iterdir()) == []


def test_the_command_fails_if_seals_are_not_compared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = damages._kinds
    monkeypatch.setattr(
        damages, "_kinds", lambda scratch: [kind for kind in made(scratch) if kind.name == "pack"]
    )
    monkeypatch.setattr(sys, "argv", ["damages", "--quick"])
    assert damages.main() == 0
    assert capsys.readouterr().out.endswith("5 tried, 0 failed\n")
    seals_are_not_compared(monkeypatch)
    assert damages.main() == 1
    assert "silent" in capsys.readouterr().out


def test_the_command_ends_if_a_whole_folder_is_not_taken_for_whole(
    kinds: dict[str, Kind], monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = Kind("pack", kinds["pack"].whole, (damages.flip,), lambda _: "is damaged")
    monkeypatch.setattr(damages, "_kinds", lambda scratch: [damaged])
    monkeypatch.setattr(sys, "argv", ["damages", "--quick"])
    with pytest.raises(AssertionError, match="the whole pack is not taken for whole"):
        damages.main()


def test_the_same_seed_damages_the_same(
    kinds: dict[str, Kind], heard: damages._Heard, tmp_path: Path
) -> None:
    told = [damages._try(kinds["pack"], 0, seed, tmp_path / "a" / "it", heard)[0] for seed in (3, 3, 4, 5)]
    assert told[0] == told[1]
    assert len(set(told)) > 1
