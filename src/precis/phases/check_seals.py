"""Whether what precis wrote is as it was written: models, adapters, tokenizers, packs, checkpoints, whole runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from precis import files
from precis.data.packs.packed_text import PACK_FILE, PackedText
from precis.errors import UserError
from precis.files import DamagedError
from precis.phases.run_folder import SETTINGS_FILE
from precis.training import sealed as checkpoints

State = Literal["sealed and whole", "no seal"]
_LOADED = ("config.json", "adapter.json", "adapter_config.json", "tokenizer.json", "tokenizer_config.json")
_CHECKPOINTS = "checkpoints"


@dataclass(frozen=True)
class CheckedFolder:
    """One folder of what was checked; where it is damaged, `damage` names the file and says how."""

    folder: Path
    state: State
    damage: str | None = None


def check_seals(source: str | None) -> list[CheckedFolder] | None:
    """Hold every file against the seal of its folder, by SHA-256.

    Returns:
        The folders that were looked at, in order; None if `source` is nothing that precis seals, such as pairs.

    Raises:
        OSError: a file cannot be read, so nobody knows.
    """
    place = Path(source) if source is not None else None
    if place is None or not place.is_dir():
        return None
    found = [folder for folder in _folders(place) if folder.is_dir()]
    return [_check(folder) for folder in found] or None


def damaged(checked: list[CheckedFolder]) -> str:
    """One line about all damages; empty if there are none."""
    told = "; ".join(f"{each.folder}: {each.damage}" for each in checked if each.damage)
    return f"{told}; put a good copy there, or write it anew" if told else ""


def _folders(place: Path) -> list[Path]:
    """The folders with a seal of their own, or that could have one."""
    if files.has_seal(place) or (place / PACK_FILE).is_file() or _is_loaded(place):
        return [place]
    if (place / checkpoints.MANIFEST).is_file():
        return [place]
    if not (place / SETTINGS_FILE).is_file():
        return []
    inside = [path for path in sorted(place.iterdir()) if path.name != _CHECKPOINTS and path.is_dir()]
    steps = (place / _CHECKPOINTS).glob("*/") if (place / _CHECKPOINTS).is_dir() else ()
    return [path for path in inside if files.has_seal(path) or _is_loaded(path)] + sorted(steps)


def _is_loaded(folder: Path) -> bool:
    """Whether it looks like a folder that transformers or we load."""
    return any((folder / name).is_file() for name in _LOADED)


def _check(folder: Path) -> CheckedFolder:
    has_seal = files.has_seal(folder)
    is_checkpoint = not has_seal and (
        (folder / checkpoints.MANIFEST).is_file() or folder.parent.name == _CHECKPOINTS
    )
    try:
        if has_seal:
            files.check_seal(folder, thorough=True)
        elif is_checkpoint:
            checkpoints.check_seal(folder)
        if (folder / PACK_FILE).is_file():  # its own digests, which packs had before they had seals
            PackedText.open(folder, verify=True)
    except (DamagedError, UserError) as damage:
        return CheckedFolder(folder, "sealed and whole" if has_seal else "no seal", str(damage))
    return CheckedFolder(folder, "sealed and whole" if has_seal or is_checkpoint else "no seal")
