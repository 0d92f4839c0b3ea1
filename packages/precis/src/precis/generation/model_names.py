"""Checks of models' names and of options that need none of the libraries that load models."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from precis.data.rows.hub import PREFIX, hub_hint, hub_name
from precis.generation.model_metadata import PACKAGES
from precis.storage.model_files import CONFIG, SEEDS_FILE, find_adapter
from precis_text.bounded_io import suggest
from precis_text.errors import UserError

# The types of devices that torch names; an extension of torch may add another.
_TYPES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
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
        raise UserError(f"{source}: no such file{suggest(source)}")
    if path.is_file():
        if path.suffix in PICKLES:
            raise UserError(f"{source}: pickles are refused, since opening one can run any code; {SAFE}")
        raise UserError(f"{source}: is a file; give the folder with config.json and model.safetensors")
    if hub_name(source) is None:
        raise UserError(f"{source}: no such folder{hub_hint(source)}{suggest(source)}")


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


def check_adapter(adapter: str | None, models: Sequence[str]) -> None:
    """Refuse an adapter with no model, or with more than one."""
    if adapter is not None and not models:
        raise UserError(f"--adapter {adapter} needs its base model; add --model")
    if adapter is not None and len(models) > 1:
        raise UserError(
            f"--adapter {adapter} needs exactly one --model, but {len(models)} are given; name the adapter's run "
            "folder as a separate --model, which includes its base"
        )


def refuse_unknown_device(name: str | None) -> None:
    """Refuse a type of device that torch lacks; whether this machine has the device is checked with torch.

    Raises:
        UserError: the type is unknown, and no extension is installed that could add it.
    """
    if name is None or name.partition(":")[0] in _TYPES:
        return
    if "torch" not in sys.modules and not entry_points(group="torch.backends"):
        raise unknown_device(name)


def unknown_device(name: str) -> UserError:
    """Return the error for a name that is not one of torch's."""
    return UserError(f"device {name!r} is unknown; use cpu, cuda or cuda:1")


def refuse_writing_options(options: Mapping[str, Any]) -> None:
    """Raise `UserError` for an option of models that write, neither None nor False, if a model selects sentences."""
    for name, value in options.items():
        if value is not None and value is not False:
            option = f"--{name.replace('_', '-')}"
            raise UserError(
                f"{option} does not apply to --mode extract, which selects sentences; omit it, or name another --model"
            )
