"""Upload a trained model or adapter, with its card, to the Hugging Face hub.

    folder -> its sealed files, unchanged -> plan, which a dry run prints -> a repository of the hub

Two files stay: seal.json, since the hub has checksums of its own, and a base.json that names a folder of this machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import huggingface_hub
from huggingface_hub.errors import HFValidationError, LocalTokenNotFoundError
from huggingface_hub.utils._validators import validate_repo_id

from precis.data.rows.hub import PREFIX
from precis.generation.adapters import BASE_FILE
from precis.generation.model_metadata import load_use
from precis.phases.run_folder import CARD_FILE
from precis.storage.model_files import find_adapter
from precis.storage.seal import SEAL, DamagedError, check_seal
from precis_text.bounded_io import read_json, suggest
from precis_text.errors import RunError, UserError, first_line

_MODEL_FOLDER = "model"


@dataclass(frozen=True, kw_only=True)
class PushPlan:
    """A planned upload.

    Attributes:
        folder: the folder of the model or the adapter.
        name: owner and name of the repository.
        files: each file, as its path in the repository and its size in bytes, the card first.
        licence: the hub's id of the licence; "" if unknown.
        remarks: what stays on this machine, and why.
    """

    folder: Path
    name: str
    files: tuple[tuple[str, int], ...]
    licence: str
    remarks: tuple[str, ...]

    @property
    def address(self) -> str:
        """The page of the repository."""
        return f"{huggingface_hub.constants.ENDPOINT}/{self.name}"


def plan_push(folder: str | Path, name: str) -> PushPlan:
    """Check a model and list its files; use no network.

    Args:
        folder: a run folder, or the model or adapter in it.
        name: owner and name of the repository, such as `ann/first`.

    Raises:
        UserError: the folder lacks a sealed model with a card, a file has changed, or the name is invalid.
    """
    repository = _checked_name(name)
    place = _model_in(Path(folder))
    names = _sealed(place)
    remarks = []
    if BASE_FILE in names and _is_local_base(place):
        names.remove(BASE_FILE)
        remarks.append(
            f"{BASE_FILE} names a folder of this machine and stays: users name the base with --model"
        )
    files = [(name, (place / name).stat().st_size) for name in names]
    licence = load_use(place).licence
    if not licence:
        remarks.append(f"no licence is known: add a license line to {CARD_FILE} on the hub")
    ordered = sorted(files, key=lambda file: (file[0] != CARD_FILE, file[0]))
    return PushPlan(
        folder=place, name=repository, files=tuple(ordered), licence=licence, remarks=tuple(remarks)
    )


def push(plan: PushPlan, *, public: bool = False) -> str:
    """Upload the files of a plan, and return the address of the repository, which is created if missing.

    Args:
        public: whether anybody may read a new repository; one that exists keeps its visibility.

    Raises:
        RunError: the hub cannot be reached, or refuses.
    """
    hub = huggingface_hub.HfApi()
    try:
        hub.create_repo(plan.name, private=not public, exist_ok=True)
        hub.upload_folder(
            repo_id=plan.name,
            folder_path=plan.folder,
            allow_patterns=[name for name, _ in plan.files],
            commit_message="Upload a model of precis",
        )
    except LocalTokenNotFoundError as error:
        raise RunError(f"{plan.name}: you are not logged in to the hub; run `hf auth login`") from error
    except (
        Exception
    ) as error:  # the hub's client raises errors of its own, of its transport and of the system
        raise RunError(
            f"{plan.name}: cannot be uploaded: {first_line(error)}; check the connection, the name and your "
            "login (`hf auth whoami`), and repeat the command"
        ) from error
    return plan.address


def _checked_name(name: str) -> str:
    """Return `owner/name` without the prefix of the hub."""
    plain = name.removeprefix(PREFIX)
    try:
        validate_repo_id(plain)
    except HFValidationError:
        plain = ""
    if plain.count("/") != 1:
        raise UserError(f"{name!r} is not a name on the hub; write owner/name, such as ann/first")
    return plain


def _model_in(folder: Path) -> Path:
    """Return the folder of the model or the adapter that a run folder or the folder itself holds."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; name a run folder, or the model in it{suggest(folder)}")
    for place in (folder, find_adapter(folder) or folder, folder / _MODEL_FOLDER):
        if (place / CARD_FILE).is_file() and (place / SEAL).is_file():
            return place
    raise UserError(
        f"{folder}: lacks a model with a card; finish its training by repeating the command, or name a folder that "
        "precis finetune, tune, ground, pretrain or extractor wrote"
    )


def _sealed(place: Path) -> set[str]:
    """Return the names of the unchanged files of a folder."""
    try:
        return set(check_seal(place, thorough=True))
    except DamagedError as damage:
        raise UserError(f"{place}: {damage}; restore a good copy, or train it again") from damage


def _is_local_base(place: Path) -> bool:
    return Path(str(read_json(place / BASE_FILE).get("model", ""))).is_absolute()
