"""Check the folders that precis wrote: models, adapters, packs and runs, each with the checksums of its seal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from precis.data.packs.packed_text import PACK_FILE, PackedText
from precis.storage.seal import DamagedError, check_seal, has_seal
from precis_text.errors import UserError

SETTINGS_FILE = "settings.json"
"""The settings of a run, in its folder."""
_CHECKPOINTS = "checkpoints"
_LOADED = ("config.json", "adapter.json", "adapter_config.json", "tokenizer.json", "tokenizer_config.json")


@dataclass(frozen=True)
class CheckedFolder:
    """A checked folder; `damage` names a damaged file and the damage."""

    folder: Path
    state: Literal["sealed and whole", "no seal"]
    damage: str | None = None


def check_seals(source: str | None) -> list[CheckedFolder] | None:
    """Verify the SHA-256 checksum of every file with its folder's seal.

    Returns:
        The checked folders, in order; None if precis does not seal `source`, such as pairs.

    Raises:
        OSError: a file cannot be read, so the result is unknown.
    """
    if source is None or not Path(source).is_dir():
        return None
    return [_check(folder) for folder in _folders(Path(source)) if folder.is_dir()] or None


def damaged(checked: list[CheckedFolder]) -> str:
    """Return one line about all damage; empty if there is none."""
    told = "; ".join(f"{each.folder}: {each.damage}" for each in checked if each.damage)
    return f"{told}; restore a good copy, or create it again" if told else ""


def _folders(place: Path) -> list[Path]:
    """Return the folders that have a seal, or could have one."""
    if has_seal(place) or _is_loaded(place) or (place / PACK_FILE).is_file():
        return [place]
    if not (place / SETTINGS_FILE).is_file():
        return []
    inside = [path for path in sorted(place.iterdir()) if path.name != _CHECKPOINTS and path.is_dir()]
    steps = (place / _CHECKPOINTS).glob("*/") if (place / _CHECKPOINTS).is_dir() else ()
    return [path for path in inside if has_seal(path) or _is_loaded(path)] + sorted(steps)


def _is_loaded(folder: Path) -> bool:
    """Return whether the folder looks like one that transformers or precis loads."""
    return any((folder / name).is_file() for name in _LOADED)


def _check(folder: Path) -> CheckedFolder:
    state: Literal["sealed and whole", "no seal"] = "sealed and whole" if has_seal(folder) else "no seal"
    try:
        if has_seal(folder) or folder.parent.name == _CHECKPOINTS:  # precis seals every checkpoint
            check_seal(folder, thorough=True)
        if (folder / PACK_FILE).is_file():
            PackedText.open(folder, verify=True)
    except (DamagedError, UserError) as damage:
        return CheckedFolder(folder, state, str(damage))
    return CheckedFolder(folder, state)
