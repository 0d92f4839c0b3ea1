"""Smaller files of weights, instead of `model.safetensors`: in blocks of 32 numbers, or in 8 bits with a scale a row.

`model.blocks.safetensors`:

    q4_1    scale (fp16), least (fp16), 32 x 4 bits:   scale · nibble + least, the low nibbles first
    q8_0    scale (fp16), 32 x 8 bits:                 scale · byte
    f32     plain numbers

The blocks are those of GGUF, byte by byte; the file's metadata names the format of each tensor. Loading computes the
fp32 values that llama.cpp computes, exactly.

`model.int8.safetensors`:

    matrices    8-bit integers, row by row, with an fp32 scale for each row (NAME.scale)
    the rest    fp16

Loading restores approximate fp32 values; for 8-bit arithmetic see `precis.generation.fast.packed_linear`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from precis.storage.model_files import TensorHeader, read_header
from precis_text.errors import UserError, first_line

BLOCKS = "model.blocks.safetensors"
"""The file of weights in blocks, in place of `model.safetensors`."""
COMPACT = "model.int8.safetensors"
"""The file of 8-bit weights, in place of `model.safetensors`."""

SCALE = ".scale"
_NUMBERS = 32  # of a block
_BYTES = {"q4_1": 20, "q8_0": 34}  # of a block


def read_blocks(folder: Path) -> dict[str, Tensor]:
    """Return the weights by name, in fp32; raise `UserError` if the file is damaged, or a block is not whole."""
    path = folder / BLOCKS
    formats = _formats(path)
    _check(path, formats)
    with safe_open(path, framework="pt") as file:
        return {name: _values(file.get_tensor(name), formats[name]) for name in formats}


def block_headers(folder: Path) -> Mapping[str, TensorHeader]:
    """Return the tensors with their dtype and shape after loading, fp32.

    Raises:
        UserError: see `read_blocks`.
    """
    path = folder / BLOCKS
    formats = _formats(path)
    return {name: TensorHeader("F32", shape) for name, shape in _check(path, formats).items()}


def _formats(path: Path) -> dict[str, str]:
    try:
        with safe_open(path, framework="pt") as file:
            found = json.loads((file.metadata() or {}).get("formats", "{}"))
            return {str(name): str(form) for name, form in found.items()}
    except Exception as error:  # safetensors raises its own type
        raise UserError(f"{path}: the weights cannot be loaded: {first_line(error)}") from error


def _check(path: Path, formats: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor after loading."""
    shapes: dict[str, tuple[int, ...]] = {}
    found = read_header(path)
    for name in found.keys() | formats.keys():
        tensor, form = found.get(name), formats.get(name, "")
        size = _BYTES.get(form)
        if tensor is not None and form == "f32" and tensor.dtype == "F32":
            shapes[name] = tuple(tensor.shape)
            continue
        is_matrix = tensor is not None and tensor.dtype == "U8" and len(tensor.shape) == 2
        if tensor is None or size is None or not is_matrix or tensor.shape[1] % size:
            raise UserError(f"{path}: the weights {name!r} are not whole blocks; copy the file again")
        shapes[name] = (tensor.shape[0], tensor.shape[1] // size * _NUMBERS)
    return shapes


def _values(stored: Tensor, form: str) -> Tensor:
    """Return the fp32 values (r c) of rows of blocks (r c/32*bytes)."""
    if form == "f32":
        return stored.clone()  # it is mapped from the file, which may be overwritten
    blocks = stored.reshape(-1, _BYTES[form])
    scale = _half(blocks, 0)
    if form == "q8_0":
        numbers = scale * blocks[:, 2:].contiguous().view(torch.int8)
    else:
        nibbles = torch.cat([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], 1)
        numbers = scale * nibbles + _half(blocks, 2)
    return numbers.reshape(len(stored), -1)


def _half(blocks: Tensor, at: int) -> Tensor:
    """Return the fp16 number at byte `at` of each block as a column (n 1) of fp32."""
    return blocks[:, at : at + 2].contiguous().view(torch.float16).float()


def read_compact(folder: Path) -> dict[str, Tensor]:
    """Return the weights by name, in fp32; raise `UserError` if the file is damaged or a row lacks a scale."""
    path = folder / COMPACT
    try:
        packed = load_file(path)
    except Exception as error:  # safetensors raises its own type
        raise UserError(f"{path}: the weights cannot be loaded: {first_line(error)}") from error
    return {
        name: weight * packed[name + SCALE][:, None]  # the product is fp32
        if weight.dtype is torch.int8
        else weight.to(torch.float32, copy=True)  # it is mapped from the file, which may be overwritten
        for name, weight in packed.items()
        if not name.endswith(SCALE)
    }


def compact_headers(folder: Path) -> Mapping[str, TensorHeader]:
    """Return the tensors' headers as loaded, in fp32; raise `UserError` if the file is damaged or lacks a scale."""
    path = folder / COMPACT
    found = read_header(path)
    for name, tensor in found.items():
        if tensor.dtype == "I8":
            scale = found.get(name + SCALE)
            if scale is None or scale.shape != tensor.shape[:1] or len(tensor.shape) != 2:
                raise UserError(f"{path}: the weights {name!r} lack a scale per row; copy the file again")
        elif tensor.dtype not in ("F16", "F32"):
            raise UserError(f"{path}: the weights {name!r} are {tensor.dtype}; copy the file again")
    return {name: TensorHeader("F32", t.shape) for name, t in found.items() if not name.endswith(SCALE)}
