"""Records the base model of an adapter, and finds it again.

    RUN/adapter/    adapter.json  adapter.safetensors    settings, keys and values, which `precis.tuning` reads
                    base.json                            the base model: a folder or hub name
                    precis.json  generation_config.json  the modes it was trained for, and its decoding settings

A folder written by `Attachment.save` has only the first two, so the caller must also name the base.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import final

import huggingface_hub
from huggingface_hub.errors import HFValidationError

from precis.data.rows.hub import PREFIX
from precis.generation.model_metadata import PACKAGES
from precis_text.bounded_io import read_json
from precis_text.config import Settings
from precis_text.errors import UserError

BASE_FILE = "base.json"


@final
@dataclass(frozen=True, kw_only=True)
class BasePlace(Settings):
    """The location of an adapter's base model.

    Attributes:
        model: its absolute folder, its hub name, or `default`.
        `beside`: its path relative to the adapter's folder, in case both were moved together; else "".
    """

    model: str
    beside: str = ""


def base_of(folder: Path) -> str:
    """Return the model that an adapter was trained on; raise `UserError` if it is not named, or gone."""
    file = folder / BASE_FILE
    if not file.is_file():
        raise UserError(
            f"{folder}: this adapter does not name its base model; use --model BASE --adapter {folder}"
        )
    values = read_json(file)
    try:
        place = BasePlace.from_dict(values)
    except (ValueError, TypeError) as error:
        raise UserError(f"{file}: cannot be used: {error}") from error
    if not place.beside:
        return _known_base(place.model, folder)
    if Path(place.model).exists():
        return place.model
    moved = folder / place.beside
    if not moved.exists():
        raise UserError(
            f"{folder}: its base model {place.model} no longer exists; use --model BASE --adapter {folder}"
        )
    return str(moved.resolve())


def _known_base(name: str, folder: Path) -> str:
    """Return the cached folder of a base on the hub; an adapter cannot trigger a download.

    The caller checks that folder like any other, and the adapter recognizes its base by a digest of the weights.
    """
    if name in PACKAGES or Path(name).exists():
        return name
    plain = name.removeprefix(PREFIX)
    with suppress(HFValidationError):
        found = huggingface_hub.try_to_load_from_cache(plain, "config.json")
        if isinstance(found, str) and any(Path(found).parent.glob("*.safetensors")):
            return str(Path(found).parent)
    raise UserError(
        f"{folder}: its base model is {plain!r} on the hub, and adapters cannot trigger downloads; if you "
        f"trust that model, use --model {PREFIX}{plain} --adapter {folder}"
    )


def place_of_base(base: str, adapter: Path) -> BasePlace:
    """Return the content of the `base.json` of an adapter whose final folder is `adapter`."""
    path = Path(base).expanduser()
    if base in PACKAGES or not path.exists():
        return BasePlace(model=base)
    beside = os.path.relpath(path.resolve(), adapter.resolve())
    return BasePlace(model=str(path.resolve()), beside=Path(beside).as_posix())


def write_base(place: BasePlace, folder: Path) -> None:
    """Write `base.json` into a folder."""
    (folder / BASE_FILE).write_text(json.dumps(place.to_dict(), indent=2) + "\n", encoding="utf-8")
