"""Names of models: checks that need none of the libraries that load models."""

from __future__ import annotations

from pathlib import Path

from precis.data.rows.hub import PREFIX, hub_hint, hub_name
from precis.generation.model_metadata import PACKAGES
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
        UserError: the folder does not exist, or it is a file.
    """
    if is_endpoint(source) or is_gguf(source):
        return
    path = Path(source).expanduser()
    if source in PACKAGES or (not source.startswith(PREFIX) and path.is_dir()):
        return
    if path.suffix.lower() == ".gguf" and not path.exists():
        raise UserError(f"{source}: no such file{meant(source)}")
    if path.is_file():
        if path.suffix in PICKLES:
            raise UserError(f"{source}: pickles are refused, since opening one can run any code; {SAFE}")
        raise UserError(f"{source}: is a file; give the folder with config.json and model.safetensors")
    if hub_name(source) is None:
        raise UserError(f"{source}: no such folder{hub_hint(source)}{meant(source)}")
