"""Weights in a quarter of their size: `model.int8.safetensors` instead of `model.safetensors`.

    matrices    8-bit integers, row by row, with an fp32 scale for each row (NAME.scale)
    the rest    fp16

Loading restores approximate fp32 values; for 8-bit arithmetic see `precis.generation.fast.packed_linear`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from precis.storage.model_files import TensorHeader, read_header
from precis_text.errors import UserError, first_line

COMPACT = "model.int8.safetensors"
"""The file of 8-bit weights, in place of `model.safetensors`."""

_SCALE = ".scale"
_LARGEST = 127


def write_compact(model: PreTrainedModel, folder: Path) -> None:
    """Write a model's configuration and 8-bit weights; tied weights once, like transformers."""
    with TemporaryDirectory() as place:
        model.save_pretrained(place, max_shard_size="1TB")
        weights = load_file(Path(place) / "model.safetensors")
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.ndim == 2 and len(weight) > 1:
            scale = weight.float().abs().amax(1).clamp(min=torch.finfo(torch.float16).tiny) / _LARGEST
            packed[name] = (weight.float() / scale[:, None]).round().to(torch.int8)
            packed[name + _SCALE] = scale
        else:
            packed[name] = weight.half()
    save_file(packed, folder / COMPACT, metadata={"format": "pt"})
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)


def read_compact(folder: Path) -> dict[str, Tensor]:
    """Return the weights by name, in fp32.

    Raises:
        UserError: if the file cannot be read, or a matrix lacks a scale for each row.
    """
    path = folder / COMPACT
    try:
        packed = load_file(path)
    except Exception as error:  # safetensors raises its own type
        raise UserError(f"{path}: the weights cannot be loaded: {first_line(error)}") from error
    return {
        name: weight * packed[name + _SCALE][:, None]  # the product is fp32
        if weight.dtype is torch.int8
        else weight.to(torch.float32, copy=True)  # it is mapped from the file, which may be overwritten
        for name, weight in packed.items()
        if not name.endswith(_SCALE)
    }


def compact_headers(folder: Path) -> Mapping[str, TensorHeader]:
    """Return the tensors with their dtype after loading, fp32.

    Raises:
        UserError: if the file is damaged, or a matrix lacks a scale for each row.
    """
    path = folder / COMPACT
    found = read_header(path)
    for name, tensor in found.items():
        if tensor.dtype == "I8":
            scale = found.get(name + _SCALE)
            if scale is None or scale.shape != tensor.shape[:1] or len(tensor.shape) != 2:
                raise UserError(f"{path}: the weights {name!r} lack a scale per row; copy the file again")
        elif tensor.dtype not in ("F16", "F32"):
            raise UserError(f"{path}: the weights {name!r} are {tensor.dtype}; copy the file again")
    return {name: TensorHeader("F32", t.shape) for name, t in found.items() if not name.endswith(_SCALE)}
