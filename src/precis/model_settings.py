"""What the JSON files of a model's folder may say: numbers and names, never code, another place, or sizes beyond its
weights.

transformers follows what they say. `_attn_implementation` can name kernels of the hub, `auto_map` Python files,
`transformers_weights` a file anywhere, and 10^9 layers are begun without a look at the weights. So the files are read
here first; what is left goes on.

entry                                            | here
-------------------------------------------------|---------------------------------------------------
usual implementation of attention ("sdpa")       | left out: transformers chooses anew
any other implementation; quantization; a file   | refused
`auto_map` and the like: Python files            | left out, and said: the class that transformers has is taken
sizes that the weights cannot have               | refused
"""

import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from precis.errors import UserError
from precis.inside import is_plain_name
from precis.json_files import read_json

_logger = logging.getLogger("precis.models")
CONFIG, DECODING, TOKENIZER_CONFIG = "config.json", "generation_config.json", "tokenizer_config.json"
MAX_LAYERS = 10_000
MAX_LABELS = 100_000
_SMALLEST_BOUND = 1 << 16
_CODE = frozenset({"auto_map", "custom_pipelines", "custom_generate", "trust_remote_code", "code_revision"})
_IMPLEMENTATION = re.compile(r"_?(attn|experts|moe)_implementation(_internal|_autoset)?")
_USUAL = (
    None,
    True,
    False,
    "eager",
    "sdpa",
    "flash_attention_2",
    "flash_attention_3",
    "flex_attention",
    "grouped_mm",
)
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


def plain_settings(values: Mapping[str, Any], place: str | Path) -> dict[str, Any]:
    """`config.json` without what names code, in any of its objects.

    Raises:
        UserError: it names kernels, quantized weights, or files in another place; the message begins with `place`.
    """
    left_out: list[str] = []
    plain = _without_code(values, place, left_out)
    if left_out:
        _logger.warning("%s: names code, which is not run: %s", place, ", ".join(sorted(set(left_out))))
    return plain


def check_decoding(values: Mapping[str, Any], place: str | Path) -> None:
    """Refuse a `generation_config.json` that names code or files.

    Raises:
        UserError: the message begins with `place`.
    """
    for name in values:
        if (name in _CODE or name in _ELSEWHERE) and values[name] not in (None, False, {}, ""):
            raise UserError(
                f"{place}: {name} names code or another model, which is not run; remove that entry"
            )


def check_tokenizer_settings(folder: Path) -> dict[str, None]:
    """Look through `tokenizer_config.json`; the entries that name files elsewhere, with None, to overrule them.

    Old files keep the path on the machine that wrote them ("special_tokens_map_file"), which nothing needs.

    Raises:
        UserError: it asks for other files than a tokenizer's usual ones, or it is not one JSON object.
    """
    file = folder / TOKENIZER_CONFIG
    if not file.exists():
        return {}
    values = read_json(file)
    for name in _ELSEWHERE & values.keys():
        if values[name]:
            raise UserError(f"{file}: {name} names other files, which are not read; remove that entry")
    return {
        name: None
        for name, value in values.items()
        if name.endswith(("_file", "_path")) and value is not None and not is_plain_name(value)
    }


def check_sizes(
    values: Mapping[str, Any], place: str | Path, *, elements: int | None, tensors: int | None
) -> None:
    """Refuse sizes that a model with such weights cannot have, before anything is built.

    Args:
        values: of `config.json`.
        elements: how many numbers its weights have: no width, vocabulary or length is larger; None: not known.
        tensors: in how many tensors: no model has more layers than these; None: not known.

    Raises:
        UserError: the message begins with `place`, and names the entry.
    """
    bound = None if elements is None else max(elements, _SMALLEST_BOUND)
    most_layers = MAX_LAYERS if tensors is None else min(MAX_LAYERS, max(tensors, 64))
    for name, value in _numbers(values):
        if name.endswith("labels"):
            _refuse_above(name, value, MAX_LABELS, place, "labels are read")
        elif _LAYERS.search(name):
            _refuse_above(name, value, most_layers, place, f"its weights, {tensors} tensors, can have")
        elif bound is not None and not _NO_SIZE.search(name):
            _refuse_above(name, value, bound, place, f"its weights, {elements:,} numbers, can have")
        elif bound is None and not _NO_SIZE.search(name):
            _refuse_above(name, value, 10**9, place, "any model has")


def _refuse_above(name: str, value: float, most: int, place: str | Path, why: str) -> None:
    if abs(value) > most:
        raise UserError(f"{place}: {name} is {value:,}, and at most {most:,} {why}; it is not of this model")


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
    """Whether this could be a size: fractions are rates, and large negative ones masks."""
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
            raise UserError(f"{place}: its weights are quantized, which is not read here; use the full ones")
        elif name in _ELSEWHERE and value:
            raise UserError(
                f"{place}: {name} names code or other files, which are not read; remove that entry"
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
                f"{place}: {name} names {choice!r}, code of the hub or unknown, which is not loaded; remove that entry"
            )
