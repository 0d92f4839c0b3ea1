"""Validates a model's folder before transformers builds anything from it, then validates the model.

regular files in the folder -> JSON that names no code -> headers of the weights -> sizes that match them
-> the model's shape without memory (device "meta") -> weights loaded -> every number finite
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from transformers import CONFIG_MAPPING, PreTrainedConfig, PreTrainedModel
from transformers.initialization import no_init_weights

from precis.generation.compressed_weights import (
    BLOCKS,
    COMPACT,
    block_headers,
    compact_headers,
    read_blocks,
    read_compact,
)
from precis.models import FAMILIES
from precis.storage.model_files import (
    CONFIG,
    DECODING,
    FLOATS,
    TensorHeader,
    check_decoding,
    check_sizes,
    plain_settings,
    read_headers,
)
from precis.storage.seal import has_seal
from precis_text.bounded_io import read_json
from precis_text.errors import UserError, first_line

_logger = logging.getLogger("precis.models")
_OURS = (*(family.config.model_type for family in FAMILIES), "zcodepp-pretraining")
_SLACK = 1 << 24  # numbers that a model may create in addition to those on disk: position tables
_ADAPTER_OF_PEFT = "adapter_config.json"


@dataclass(frozen=True)
class CheckedSettings:
    """The settings of a model without entries that name code.

    Attributes:
        model: the content of `config.json`.
        decoding: the content of `generation_config.json`, if the folder has one.
    """

    model: dict[str, Any]
    decoding: dict[str, Any] | None = None


@dataclass(frozen=True)
class ModelFolder:
    """A validated folder: its settings without entries that name code, and the headers of its weights.

    Attributes:
        read: reads weights that are stored in fewer bits; None if transformers reads them.
    """

    folder: Path
    settings: dict[str, Any]
    weights: Mapping[str, TensorHeader]
    read: Callable[[Path], dict[str, Tensor]] | None = None

    @cached_property
    def is_ours(self) -> bool:
        """True if precis wrote the folder, so that its content must match exactly."""
        return self.settings.get("model_type") in _OURS or has_seal(self.folder)

    @property
    def elements(self) -> int:
        """The number of elements in its weights."""
        return sum(tensor.elements for tensor in self.weights.values())


def look_through(folder: Path) -> CheckedSettings:
    """Return the settings of a model's folder without entries that name code. It neither builds nor runs anything.

    The caller has checked that its files do not link outside it (`precis_text.bounded_io.check_inside`).

    Raises:
        UserError: if a file is not regular, or a JSON file names code, kernels, or another model.
    """
    if (folder / _ADAPTER_OF_PEFT).exists():
        raise UserError(
            f"{folder / _ADAPTER_OF_PEFT}: is a PEFT adapter, which may name another model; merge it or remove it"
        )
    settings = plain_settings(read_json(folder / CONFIG), folder / CONFIG)
    decoding = read_json(folder / DECODING) if (folder / DECODING).exists() else None
    if decoding is not None:
        check_decoding(decoding, folder / DECODING)
    return CheckedSettings(settings, decoding)


def with_weights(folder: Path, settings: dict[str, Any]) -> ModelFolder:
    """Read the headers of a folder's weights, and check them against its settings.

    Raises:
        UserError: if they are not complete safetensors files, have an unsupported dtype or one that differs from the
            configuration, or do not match the sizes in the settings.
    """
    if (folder / COMPACT).is_file():
        found = ModelFolder(folder, settings, compact_headers(folder), read_compact)
    elif (folder / BLOCKS).is_file():
        found = ModelFolder(folder, settings, block_headers(folder), read_blocks)
    else:
        found = ModelFolder(folder, settings, read_headers(folder))
    check_sizes(settings, folder / CONFIG, elements=found.elements, tensors=len(found.weights))
    _check_types(found)
    return found


def config_from(settings: Mapping[str, Any]) -> PreTrainedConfig:
    """Return the configuration for these settings, in its class of transformers or precis.

    Raises:
        ValueError: if the class is unknown, or it refuses the values.
    """
    kind = settings.get("model_type")
    if kind is None:
        raise ValueError(
            "it does not say which kind of model this is (model_type); take it from the original model"
        )
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        raise ValueError(f"model_type={kind!r} is unknown to transformers {_version()}")
    config = CONFIG_MAPPING[kind].from_dict(dict(settings))
    return cast(PreTrainedConfig, config)


def check_memory(found: ModelFolder, kind: Any, config: PreTrainedConfig) -> None:
    """Refuse a configuration whose model is larger than its weights, since the rest would be random.

    Raises:
        UserError: if it is larger; the message starts with the path of `config.json`.
    """
    place = found.folder / CONFIG
    positions = getattr(config, "max_position_embeddings", 0) or 0
    width = getattr(config, "hidden_size", 0) or 0
    most = 2 * found.elements + _SLACK
    wanted = int(positions) * int(width) if isinstance(positions, int) and isinstance(width, int) else 0
    if wanted <= most:
        with torch.device("meta"), no_init_weights():
            model = _build(kind, config, place)
        wanted = sum(parameter.numel() for parameter in model.parameters())
    if wanted > most:
        raise UserError(
            f"{place}: describes a model of {wanted:,} parameters, but the weights have {found.elements:,}; it belongs "
            "to another model"
        )


def check_finite(model: PreTrainedModel, source: str) -> None:
    """Refuse weights that are not finite. It checks sums first, which read memory once and need none.

    Raises:
        UserError: if a weight is not finite; the message names the first.
    """
    for name, weight in model.state_dict(keep_vars=True).items():
        if weight.is_meta or not weight.is_floating_point():
            continue
        total = weight.detach().sum(dtype=torch.float32)
        if not torch.isfinite(total) and not torch.isfinite(weight).all():
            raise UserError(
                f"{source}: the weights are not finite: {name!r} contains NaN or infinity; copy them again"
            )


def check_left_over(found: ModelFolder, names: list[str], source: str) -> None:
    """Warn of weights that the model does not use.

    Raises:
        UserError: if precis wrote the folder, which then must not contain any.
    """
    if not names:
        return
    what = f"{len(names)} weights are unused, {names[0]!r} first"
    if found.is_ours:
        raise UserError(f"{source}: {what}; a {found.settings.get('model_type')!r} model does not have them")
    _logger.warning("%s: %s; this model does not have them", source, what)


def _build(kind: Any, config: PreTrainedConfig, place: Path) -> PreTrainedModel:
    try:
        build = getattr(kind, "from_config", None) or kind._from_config
        return cast(PreTrainedModel, build(config))
    except Exception as error:  # the library's layers raise many types
        raise UserError(f"{place}: cannot build a model from it: {first_line(error)}") from error


def _check_types(found: ModelFolder) -> None:
    written = str(found.settings.get("dtype") or found.settings.get("torch_dtype") or "")
    for name, tensor in found.weights.items():
        if tensor.dtype not in FLOATS and not name.endswith(("_ids", "position_ids", "num_batches_tracked")):
            raise UserError(
                f"{found.folder}: the weights {name!r} are {tensor.dtype}, but must be one of "
                f"{', '.join(FLOATS)}; use unquantized weights"
            )
        if found.is_ours and written in FLOATS.values() and FLOATS.get(tensor.dtype, written) != written:
            raise UserError(
                f"{found.folder}: the weights {name!r} are {FLOATS[tensor.dtype]}, but {CONFIG} says {written}; "
                "copy the folder again"
            )


def _version() -> str:
    import transformers

    return str(transformers.__version__)
