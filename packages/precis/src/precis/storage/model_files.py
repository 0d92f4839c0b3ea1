"""Checks the files of a model's folder before anything is built from them.

transformers follows its JSON files: `_attn_implementation` can name kernels of the hub, `auto_map` Python files,
`transformers_weights` a file anywhere, and it would build 10^9 layers without checking the weights. So this module
reads the files first, and passes on only the rest:

    entry                                            | action
    -------------------------------------------------|--------------------------------------------
    usual implementation of attention ("sdpa")       | dropped: transformers chooses again
    any other implementation; quantization; a file   | refused
    `auto_map` and the like: Python files            | dropped with a warning
    sizes that the weights cannot have               | refused

A safetensors file starts with a header, which is checked against the file's size before any weight is read:

    8 bytes: length of the header | header, JSON: name -> dtype, shape, place | the tensors' bytes
"""

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from precis_text.bounded_io import (
    MIB,
    JsonError,
    is_plain_name,
    open_regular,
    parse_json,
    read_json,
    size,
    unreadable,
)
from precis_text.errors import UserError

_logger = logging.getLogger("precis.models")
CONFIG, DECODING, TOKENIZER_CONFIG = "config.json", "generation_config.json", "tokenizer_config.json"
ADAPTER_FOLDER, ADAPTER_RECORD = "adapter", "adapter.json"
SEEDS_FILE = "seeds.json"  # of a folder that holds runs with several seeds
MAX_LAYERS = 10_000
MAX_LABELS = 100_000
_SMALLEST_BOUND = 1 << 16
_CODE = frozenset({"auto_map", "custom_pipelines", "custom_generate", "trust_remote_code", "code_revision"})
_IMPLEMENTATION = re.compile(r"_?(attn|experts|moe)_implementation(_internal|_autoset)?")
_USUAL = ("eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention", "grouped_mm")
_ELSEWHERE = frozenset(
    {
        "transformers_weights", "configuration_files", "fast_tokenizer_files", "gguf_file", "fusion_config",
        "kernel_config", "use_kernels", "distributed_config", "tp_plan", "base_model_name_or_path", "peft_type",
        "compile_config", "assistant_model",
    }
)  # fmt: skip
_LAYERS = re.compile(r"(^|_)(n|num)?_?(layers?|labels|heads|blocks|experts|stacks|groups|branches)(_|$)")
_NO_SIZE = re.compile(
    r"(_ids?|seed|params?|parameters|tokens?|time|steps?|max_length|min_length|length_penalty)$"
)
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
MAX_HEADER = 16 * MIB
MAX_TENSORS = 20_000
_MAX_SHARDS = 1_000
_BITS = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 64), **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6), "F4": 4,
}  # fmt: skip
FLOATS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
"""The types of weights on disk -> torch's names for them."""


def find_adapter(source: str | Path) -> Path | None:
    """Return the adapter's folder: `source` itself or its `adapter/`; None if neither is an adapter.

    Raises:
        UserError: `source` holds runs with several seeds.
    """
    path = Path(source).expanduser()
    if (path / SEEDS_FILE).is_file() and not (path / CONFIG).is_file():
        raise UserError(
            f"{source}: holds runs with several seeds, which `precis evaluate --model {source}` scores together; name "
            f"one run, such as {min(path.glob('seed-*'), default=path / 'seed-0')}"
        )
    return next((each for each in (path, path / ADAPTER_FOLDER) if (each / ADAPTER_RECORD).is_file()), None)


def adapter_in(source: str | Path) -> Path:
    """Return the adapter's folder, as `find_adapter` finds it; raise `UserError` if there is none."""
    if (found := find_adapter(source)) is None:
        raise UserError(f"{source}: no adapter here; give a run folder of `precis tune`, or its adapter/")
    return found


def plain_settings(values: Mapping[str, Any], place: str | Path) -> dict[str, Any]:
    """Return `config.json` without the entries that name code, at any level.

    Raises:
        UserError: if it names kernels, quantized weights, or other files; the message starts with `place`.
    """
    left_out: list[str] = []
    plain = _without_code(values, place, left_out)
    if left_out:
        _logger.warning(
            "%s: names code, which precis does not run: %s", place, ", ".join(sorted(set(left_out)))
        )
    return plain


def check_decoding(values: Mapping[str, Any], place: str | Path) -> None:
    """Raise `UserError`, which starts with `place`, if a `generation_config.json` names code or files."""
    for name in values:
        if (name in _CODE or name in _ELSEWHERE) and values[name] not in (None, False, {}, ""):
            raise UserError(
                f"{place}: {name} names code or another model, which precis does not run; remove that entry"
            )


def check_tokenizer_settings(folder: Path) -> dict[str, None]:
    """Check `tokenizer_config.json`; return a None for each entry that names a file elsewhere, to override it.

    Old files contain an unused path on the machine that wrote them ("special_tokens_map_file").

    Raises:
        UserError: if it names other files than a tokenizer's usual ones, or is not one JSON object.
    """
    file = folder / TOKENIZER_CONFIG
    if not file.exists():
        return {}
    values = read_json(file)
    for name in _ELSEWHERE & values.keys():
        if values[name]:
            raise UserError(
                f"{file}: {name} names other files, which precis does not read; remove that entry"
            )
    return {
        name: None
        for name, value in values.items()
        if name.endswith(("_file", "_path")) and value is not None and not is_plain_name(value)
    }


def check_sizes(
    values: Mapping[str, Any], place: str | Path, *, elements: int | None, tensors: int | None
) -> None:
    """Refuse sizes that a model with these weights cannot have, before anything is built.

    Args:
        values: the content of `config.json`.
        elements: number of weights, if known: an upper bound on widths, vocabulary and lengths.
        tensors: number of weight tensors, if known: an upper bound on the layers.

    Raises:
        UserError: if an entry is too large; the message starts with `place` and names the entry.
    """
    bound = None if elements is None else max(elements, _SMALLEST_BOUND)
    most_layers = MAX_LAYERS if tensors is None else min(MAX_LAYERS, max(tensors, 64))
    for name, value in _numbers(values):
        if name.endswith("labels"):
            most, why = MAX_LABELS, "precis's limit for labels"
        elif _LAYERS.search(name):
            fits = (
                "precis's limit" if tensors is None else f"the largest that fits its {tensors} weight tensors"
            )
            most, why = most_layers, fits
        elif _NO_SIZE.search(name):
            continue
        elif bound is not None:
            most, why = bound, f"the largest that fits its {elements:,} weights"
        else:
            most, why = 10**9, "the largest size of any model"
        if abs(value) > most:
            raise UserError(
                f"{place}: {name} is {value:,}, above {most:,}, {why}; take the file from this model"
            )


def _numbers(values: Any, name: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from _numbers(value, str(key))
    elif isinstance(values, list):
        for value in values:
            yield from _numbers(value, name)
    elif _is_count(values):
        yield name, values


def _is_count(value: Any) -> bool:
    """Return whether a number could be a size: fractions are rates, and large negative numbers are masks."""
    if isinstance(value, float):
        return value > 1e6
    return isinstance(value, int) and not isinstance(value, bool)


def _without_code(values: Mapping[str, Any], place: str | Path, left_out: list[str]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for name, value in values.items():
        if name in _CODE:
            left_out.append(name)
        elif _IMPLEMENTATION.fullmatch(name):
            _refuse_unusual(name, value, place)
        elif name == "quantization_config" and value:
            raise UserError(
                f"{place}: its weights are quantized, which precis does not read; use the full ones"
            )
        elif name in _ELSEWHERE and value:
            raise UserError(
                f"{place}: {name} names code or other files, which precis does not read; remove that entry"
            )
        else:
            plain[name] = _nested(value, place, left_out)
    return plain


def _nested(value: Any, place: str | Path, left_out: list[str]) -> Any:
    if isinstance(value, Mapping):
        return _without_code(value, place, left_out)
    if isinstance(value, list):
        return [_nested(item, place, left_out) for item in value]
    return value


def _refuse_unusual(name: str, value: Any, place: str | Path) -> None:
    for choice in value.values() if isinstance(value, Mapping) else (value,):
        if not (choice is None or isinstance(choice, bool) or choice in _USUAL):
            raise UserError(
                f"{place}: {name} names {choice!r}, which is code of the hub or unknown; remove that entry"
            )


@dataclass(frozen=True, slots=True)
class TensorHeader:
    """A tensor's entry in a file's header: its type in safetensors' notation ("F32"), and its shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """The number of elements of the tensor."""
        return prod(self.shape)


def read_header(path: Path) -> dict[str, TensorHeader]:
    """Return the tensors of one safetensors file, by name.

    Raises:
        UserError: if it is not a regular, complete safetensors file: its header is larger than `MAX_HEADER` or than the
            file, names more than `MAX_TENSORS` tensors, or one that is outside the file or does not fit its shape.
            The message starts with the path.
    """
    try:
        with open_regular(path) as file:
            total = file.seek(0, 2)
            file.seek(0)
            length = int.from_bytes(file.read(8), "little")
            if total < 8 or length > total - 8:
                raise _damaged(path, f"its header declares {length:,} bytes, but the file has {total:,}")
            if length > MAX_HEADER:
                raise _damaged(path, f"its header has {size(length)}, above the limit of {size(MAX_HEADER)}")
            text = file.read(length)
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        entries = parse_json(text)
    except JsonError as error:
        raise _damaged(path, f"its header {error}") from None
    if not isinstance(entries, dict):
        raise _damaged(path, "its header is not a JSON object")
    entries.pop("__metadata__", None)
    if len(entries) > MAX_TENSORS:
        raise _damaged(path, f"it names {len(entries):,} tensors, above the limit of {MAX_TENSORS:,}")
    return _tensors(path, entries, space=total - 8 - length)


def read_headers(folder: Path) -> dict[str, TensorHeader]:
    """Return the tensors of a model's folder, from `model.safetensors` or from the shards that its index names.

    Raises:
        UserError: if both are missing, a file is invalid, or a named shard is not directly in the folder.
    """
    if (folder / SINGLE).exists():
        return read_header(folder / SINGLE)
    found: dict[str, TensorHeader] = {}
    for shard in shards_of(folder):
        for name, tensor in read_header(shard).items():
            if name in found:
                raise UserError(f"{shard}: contains {name!r}, which another file of {INDEX} also contains")
            found[name] = tensor
        if len(found) > MAX_TENSORS:
            raise UserError(f"{folder}: has more than {MAX_TENSORS:,} tensors, the limit")
    return found


def shards_of(folder: Path) -> list[Path]:
    """Return the files that `model.safetensors.index.json` names.

    Raises:
        UserError: if the index is missing or invalid, or names anything but files directly in the folder.
    """
    file = folder / INDEX
    places = read_json(file).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise UserError(f"{file}: lacks a weight_map, which gives the place of each weight; copy it again")
    names = list(dict.fromkeys(map(str, places.values())))
    for name in names:
        if not (is_plain_name(name) and name.endswith(".safetensors")):
            raise UserError(f"{file}: names {name!r}, which is not a safetensors file of this folder")
    if len(names) > _MAX_SHARDS:
        raise UserError(f"{file}: names {len(names):,} files, above the limit of {_MAX_SHARDS:,}")
    return [folder / name for name in sorted(names)]


def _tensors(path: Path, entries: Mapping[str, Any], *, space: int) -> dict[str, TensorHeader]:
    found: dict[str, TensorHeader] = {}
    for name, entry in entries.items():
        try:
            dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
            whole = all(type(number) is int and number >= 0 for number in (*shape, begin, end))
        except (TypeError, KeyError, ValueError):
            raise _damaged(path, f"its header does not describe {name!r}") from None
        if not whole or not isinstance(dtype, str) or dtype not in _BITS:
            raise _damaged(path, f"its header does not describe {name!r}")
        if end > space or (end - begin) * 8 != prod(shape) * _BITS[dtype]:
            raise _damaged(
                path, f"{name!r} is {dtype} {list(shape)}, but its bytes are {begin} to {end} of {space}"
            )
        found[name] = TensorHeader(dtype, tuple(shape))
    return found


def _damaged(path: Path, why: str) -> UserError:
    return UserError(f"{path}: cannot be loaded: it is not a complete safetensors file: {why}")
