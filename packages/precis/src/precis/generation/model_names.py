"""Names of models: checks that need none of the libraries that load models."""

from __future__ import annotations

from pathlib import Path

from precis.data.rows.hub import PREFIX, hub_hint, hub_name
from precis.generation.model_metadata import PACKAGES
from precis.storage.model_files import CONFIG, SEEDS_FILE, find_adapter
from precis_text.bounded_io import meant
from precis_text.errors import UserError

_WEB = ("http://", "https://")
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
SAFE = (
    "convert it where you trust its author: "
    "AutoModelForSeq2SeqLM.from_pretrained(OLD).save_pretrained(NEW) writes safetensors"
)


def is_endpoint(source: str) -> bool:
    """Return whether a name is the address of an endpoint, such as `http://127.0.0.1:11434/v1#qwen3:4b`."""
    return source.lower().startswith(_WEB)


def is_gguf(source: str) -> bool:
    """Return whether a name is the path of a GGUF file."""
    path = Path(source).expanduser()
    return path.suffix.lower() == ".gguf" and path.is_file()


def refuse_missing(source: str) -> None:
    """Refuse a name other than that of a package, a folder, a GGUF file, an address, or a possible name on the hub.

    Raises:
        UserError: the folder does not exist, it is a file, or it is a folder without a model, adapter or runs.
    """
    if is_endpoint(source) or is_gguf(source):
        return
    path = Path(source).expanduser()
    if source in PACKAGES:
        return
    if not source.startswith(PREFIX) and path.is_dir():
        if not (path / SEEDS_FILE).is_file() and find_adapter(path) is None:
            model_in(path, source)
        return
    if path.suffix.lower() == ".gguf" and not path.exists():
        raise UserError(f"{source}: no such file{meant(source)}")
    if path.is_file():
        if path.suffix in PICKLES:
            raise UserError(f"{source}: pickles are refused, since opening one can run any code; {SAFE}")
        raise UserError(f"{source}: is a file; give the folder with config.json and model.safetensors")
    if hub_name(source) is None:
        raise UserError(f"{source}: no such folder{hub_hint(source)}{meant(source)}")


def model_in(path: Path, source: str) -> Path:
    """Return the folder itself or its `model/`; an error says what the folder holds instead."""
    for folder in (path, path / "model"):
        if (folder / CONFIG).is_file():
            return folder
    if find_adapter(path) is not None:
        raise UserError(f"{source}: is an adapter, not a model; give the model that it was trained on")
    if (path / "checkpoints").is_dir():
        raise UserError(
            f"{source}: this run is not finished; repeat its `precis finetune` or `precis tune` command "
            "to resume it"
        )
    if any(path.glob("*.safetensors")) or any(path.glob("pytorch_model*.bin")):
        raise UserError(f"{source}: no config.json next to the weights, so the model's shape is unknown")
    raise UserError(f"{source}: no model here; looked for config.json and model/config.json")
