"""What safetensors files say of their tensors, read from their headers before a weight is touched.

    8 bytes: length of the header | header, JSON: name -> dtype, shape, place | the tensors' bytes

A header is the word of whoever wrote the file. It is read with a bound, and held against the size of the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from precis.bounded import MIB, open_regular, size, unreadable
from precis.errors import UserError
from precis.inside import is_plain_name
from precis.json_files import JsonError, parse_json, read_json

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
MAX_HEADER = 16 * MIB
MAX_TENSORS = 20_000
_MAX_SHARDS = 1_000
_BITS = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 64),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}
FLOATS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
"""Types that weights may have on disk -> torch's names of them."""


@dataclass(frozen=True, slots=True)
class TensorHeader:
    """What a file says of one tensor: its type by safetensors' name ("F32"), and its shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """How many numbers it has."""
        return prod(self.shape)


def read_header(path: Path) -> dict[str, TensorHeader]:
    """The tensors of one safetensors file, by name.

    Raises:
        UserError: it is no regular file, or no whole safetensors file: a header of more than `MAX_HEADER` bytes or
            beyond the end, more than `MAX_TENSORS` tensors, a tensor outside of the file or of another length than its
            shape has. The message begins with the path.
    """
    try:
        with open_regular(path) as file:
            total = file.seek(0, 2)
            file.seek(0)
            length = int.from_bytes(file.read(8), "little")
            if total < 8 or length > total - 8:
                raise _damaged(path, f"its header says {length:,} bytes and the file has {total:,}")
            if length > MAX_HEADER:
                raise _damaged(
                    path, f"its header has {size(length)}, and at most {size(MAX_HEADER)} are read"
                )
            text = file.read(length)
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        entries = parse_json(text)
    except JsonError as error:
        raise _damaged(path, f"its header {error}") from None
    if not isinstance(entries, dict):
        raise _damaged(path, "its header is no JSON object")
    entries.pop("__metadata__", None)
    if len(entries) > MAX_TENSORS:
        raise _damaged(path, f"it names {len(entries):,} tensors, and at most {MAX_TENSORS:,} are read")
    return _tensors(path, entries, space=total - 8 - length)


def read_headers(folder: Path) -> dict[str, TensorHeader]:
    """The tensors of a model's folder: of `model.safetensors`, or of the shards that its index names.

    Raises:
        UserError: there are neither, or one cannot be used; a shard is named that is not in the folder itself.
    """
    if (folder / SINGLE).exists():
        return read_header(folder / SINGLE)
    found: dict[str, TensorHeader] = {}
    for shard in shards_of(folder):
        for name, tensor in read_header(shard).items():
            if name in found:
                raise UserError(f"{shard}: has {name!r}, which another file of {INDEX} has too")
            found[name] = tensor
        if len(found) > MAX_TENSORS:
            raise UserError(f"{folder}: has more than {MAX_TENSORS:,} tensors, the most that are read")
    return found


def shards_of(folder: Path) -> list[Path]:
    """The files that `model.safetensors.index.json` names, each of them in the folder itself.

    Raises:
        UserError: there is no index, it cannot be used, or it names something else than a file of the folder.
    """
    file = folder / INDEX
    places = read_json(file).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise UserError(f"{file}: has no weight_map, so it does not say where weights are")
    names = list(dict.fromkeys(map(str, places.values())))
    for name in names:
        if not (is_plain_name(name) and name.endswith(".safetensors")):
            raise UserError(f"{file}: names {name!r}, which is no safetensors file of this folder")
    if len(names) > _MAX_SHARDS:
        raise UserError(f"{file}: names {len(names):,} files, and at most {_MAX_SHARDS:,} are read")
    return [folder / name for name in sorted(names)]


def _tensors(path: Path, entries: Mapping[str, Any], *, space: int) -> dict[str, TensorHeader]:
    found: dict[str, TensorHeader] = {}
    for name, entry in entries.items():
        try:
            dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
            whole = all(type(number) is int and number >= 0 for number in (*shape, begin, end))
        except (TypeError, KeyError, ValueError):
            raise _damaged(path, f"its header does not say what {name!r} is") from None
        if not whole or not isinstance(dtype, str) or dtype not in _BITS:
            raise _damaged(path, f"its header does not say what {name!r} is")
        if end > space or (end - begin) * 8 != prod(shape) * _BITS[dtype]:
            raise _damaged(
                path, f"{name!r} is {dtype} {list(shape)}, and its bytes are {begin} to {end} of {space}"
            )
        found[name] = TensorHeader(dtype, tuple(shape))
    return found


def _damaged(path: Path, why: str) -> UserError:
    return UserError(f"{path}: cannot be loaded, since it is no whole safetensors file: {why}")
