"""Reads a GGUF file: its settings, and the blocks of its tensors unchanged.

The layout is that of GGUF version 3: a header, typed settings, one entry a tensor, then aligned data. Rejects other
versions and the block formats that this file does not name.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_SCALARS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
_STRING, _LIST = 8, 9
_LARGEST = 1 << 24  # entries of a list, and bytes of a string, that a file of this size can need


@dataclass(frozen=True)
class GgufTensor:
    """A tensor of the file: its shape (rows first), its block format, and its bytes."""

    shape: tuple[int, ...]
    kind: int
    data: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """The bytes of each row; a block never crosses the end of a row."""
        return self.data.reshape(self.shape[0] if len(self.shape) > 1 else 1, -1)


@dataclass(frozen=True)
class GgufFile:
    """The settings and the tensors of a file, by name."""

    settings: dict[str, Any]
    tensors: dict[str, GgufTensor]


def read_gguf(path: Path) -> GgufFile:
    """Read a file.

    Raises:
        ValueError: if it is not GGUF version 3, is cut, or holds a type that this reader does not know.
    """
    reader = _Reader(path.read_bytes())
    if reader.take(4) != b"GGUF" or reader.number("<I") != 3:
        raise ValueError(f"{path}: not a GGUF file of version 3")
    tensors, settings = reader.number("<Q"), reader.number("<Q")
    values = {reader.string(): reader.typed(reader.number("<I")) for _ in range(settings)}
    entries = [reader.entry() for _ in range(tensors)]
    alignment = values.get("general.alignment", 32)
    start = -(-reader.at // alignment) * alignment
    found = {name: _tensor(reader.all, start + at, shape, kind) for name, shape, kind, at in entries}
    return GgufFile(values, found)


class _Reader:
    """A position in the bytes of a file."""

    def __init__(self, data: bytes) -> None:
        self.all = data
        self.at = 0

    def take(self, count: int) -> bytes:
        if count > len(self.all) - self.at:
            raise ValueError(f"the file ends at byte {len(self.all)}, within a value")
        self.at += count
        return self.all[self.at - count : self.at]

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def string(self) -> str:
        return self.take(_bounded(self.number("<Q"))).decode("utf-8")

    def typed(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind == _LIST:
            inner, count = self.number("<I"), _bounded(self.number("<Q"))
            return [self.typed(inner) for _ in range(count)]
        if kind not in _SCALARS:
            raise ValueError(f"value type {kind} is unknown")
        return self.number(_SCALARS[kind])

    def entry(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self.string()
        axes = [self.number("<Q") for _ in range(self.number("<I"))]
        kind, at = self.number("<I"), self.number("<Q")
        return name, tuple(reversed(axes)), kind, at  # the file lists the fastest axis first


def _bounded(count: int) -> int:
    if count > _LARGEST:
        raise ValueError(f"a length of {count} is more than {_LARGEST}; the file is damaged")
    return count


def _tensor(data: bytes, start: int, shape: tuple[int, ...], kind: int) -> GgufTensor:
    if kind not in FORMATS:
        raise ValueError(f"block format {kind} is unknown; known are {sorted(FORMATS)}")
    _, values, size = FORMATS[kind]
    count = int(np.prod(shape)) // values * size
    if start + count > len(data):
        raise ValueError(f"the file ends at byte {len(data)}, within a tensor")
    return GgufTensor(shape, kind, np.frombuffer(data, np.uint8, count, start))


# block format: (name, numbers a block, bytes a block)
FORMATS = {0: ("f32", 1, 4), 3: ("q4_1", 32, 20), 8: ("q8_0", 32, 34)}
