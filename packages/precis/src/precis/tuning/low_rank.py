"""Low-rank adapters (LoRA, Hu et al. 2022) of causal language models.

    y = W x + (alpha / r) B A x      A (r i) starts random, B (o r) starts at zero: an untrained adapter changes nothing

PEFT (extra `peft`) puts them on all linear layers but the head, and trains them on the frozen model. The saved folder
is PEFT's, so other programs read it too, with our record of the base next to them:

    adapter_model.safetensors  adapter_config.json    PEFT's files
    adapter.json                                      rank, alpha, and the record of the base

Use needs no PEFT: the products are added to the base's weights, or computed next to a base that stays in use.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedModel

from precis.storage.model_files import ADAPTER_RECORD as RECORD
from precis.tuning.adapter_folder import (
    BaseRecord,
    describe_base,
    in_float16,
    read_adapter_tensors,
    read_record,
)
from precis_text.config import Settings
from precis_text.errors import UserError, missing_extra

TENSORS = "adapter_model.safetensors"
_BEFORE = "base_model.model."  # PEFT's name of the model inside its own
_NAME = "default"  # PEFT's name of an adapter
_KEY = "low_rank"  # the entry of adapter.json


@final
@dataclass(frozen=True, kw_only=True)
class LowRank(Settings):
    """The settings of a low-rank adapter: r, the `rank` of each product, which is scaled by `alpha` / r."""

    rank: int = 8
    alpha: float = 16.0

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise UserError(f"lora.rank={self.rank} must be 1 or more")
        if not (math.isfinite(self.alpha) and self.alpha > 0):
            raise UserError(f"lora.alpha={self.alpha} must be a number above 0")


@final
class LowRankAdapter:
    """A low-rank adapter on a model, which is otherwise frozen; made by `add_low_rank`."""

    def __init__(self, model: PreTrainedModel, settings: LowRank, config: Any, base: BaseRecord) -> None:
        self.model, self.settings, self.base = model, settings, base
        self._config = config

    @property
    def parameters(self) -> int:
        """The number of trained parameters."""
        return sum(p.numel() for p in self.model.parameters() if p.requires_grad)

    def tensors(self) -> dict[str, Tensor]:
        """Return the matrices under PEFT's names."""
        return {
            f"{_BEFORE}{name.replace(f'.{_NAME}.', '.')}": parameter.detach().cpu().contiguous()
            for name, parameter in self.model.named_parameters()
            if parameter.requires_grad
        }

    def write_files(self, folder: Path) -> None:
        """Write the files into an existing folder; the caller adds the checksums."""
        save_file(self.tensors(), folder / TENSORS, metadata={"format": "pt"})
        self._config.inference_mode = True
        self._config.target_modules = sorted(
            self._config.target_modules
        )  # a set has another order in each process
        self._config.save_pretrained(folder)
        record = {"format": 1, "base": self.base.to_dict(), _KEY: self.settings.to_dict()}
        (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def add_low_rank(model: PreTrainedModel, settings: LowRank, *, seed: int) -> LowRankAdapter:
    """Freeze a model and put a low-rank adapter on each linear layer but the head.

    Args:
        seed: random seed of the matrices A.

    Raises:
        UserError: if PEFT is not installed, or the model lacks linear layers.
    """
    try:
        from peft import LoraConfig
        from peft.tuners.lora import LoraModel
    except ImportError as missing:
        raise missing_extra("peft", wanted_by="precis tune --method lora") from missing
    base = base_record(model)
    config = LoraConfig(
        r=settings.rank, lora_alpha=settings.alpha, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        try:
            LoraModel(model, config, _NAME)
        except ValueError as problem:
            raise UserError(f"{type(model).__name__}: a low-rank adapter does not fit: {problem}") from None
    return LowRankAdapter(model, settings, config, base)


def base_record(model: PreTrainedModel) -> BaseRecord:
    """Return the record that identifies a model without an adapter."""
    return describe_base(model, {}, [name for name, _ in model.named_parameters()])


def is_low_rank(folder: Path) -> bool:
    """Return whether an adapter's folder holds a low-rank adapter."""
    return _KEY in read_record(folder)


@torch.no_grad()
def merge_low_rank(model: PreTrainedModel, folder: Path, *, base: BaseRecord | None = None) -> None:
    """Add a saved adapter to the weights of its base.

    Args:
        base: the record of the model before it was cast to float16; if None, it is computed.

    Raises:
        UserError: if the files are damaged, or belong to another model.
    """
    products, scale = _fitting(model, folder, base)
    for layer, (a, b) in products.items():
        weight = model.get_parameter(f"{layer}.weight")
        product = b.to(weight.device) @ a.to(weight.device) * scale
        weight += product.to(weight.dtype)


def beside_base(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """Return a second model with a saved adapter. It shares the weights of its base, which stays as it is.

    Neither model has a switch, so that threads may use both at once.

    Raises:
        UserError: if the files are damaged, or belong to another model.
    """
    products, scale = _fitting(model, folder, None)
    made = copy.deepcopy(model, {id(weight): weight for weight in model.parameters()})
    for layer, (a, b) in products.items():
        linear, weight = made.get_submodule(layer), model.get_parameter(f"{layer}.weight")
        linear.register_buffer("low_rank_a", a.to(weight), persistent=False)
        linear.register_buffer("low_rank_b", b.to(weight) * scale, persistent=False)
        linear.register_forward_hook(_with_product)
    return made


def _with_product(linear: Any, given: tuple[Tensor], output: Tensor) -> Tensor:
    """Return a layer's output with the product of its adapter added."""
    return output + given[0] @ linear.low_rank_a.T @ linear.low_rank_b.T


def _fitting(
    model: PreTrainedModel, folder: Path, base: BaseRecord | None
) -> tuple[dict[str, tuple[Tensor, Tensor]], float]:
    """Return the matrices A and B of each layer of an adapter that fits the model, and alpha / r."""
    record = read_record(folder)
    try:
        settings, own = LowRank.from_dict(record[_KEY]), BaseRecord.from_dict(record["base"])
    except (UserError, TypeError, ValueError, AttributeError) as problem:
        raise UserError(f"{folder / RECORD} cannot be used ({problem}); copy the adapter again") from None
    rounded = base is None and in_float16(model)
    own.check(base or base_record(model), name=f"the adapter {folder}", rounded=rounded)
    weights = dict(model.named_parameters())
    products = _products(read_adapter_tensors(folder / TENSORS), folder / TENSORS)
    for layer, (a, b) in products.items():
        rows, columns = getattr(weights.get(f"{layer}.weight"), "shape", (0, 0))
        if a.shape != (settings.rank, columns) or b.shape != (rows, settings.rank):
            raise UserError(f"{folder / TENSORS}: {layer!r} does not fit the base; copy the adapter again")
    return products, settings.alpha / settings.rank


def _products(tensors: Mapping[str, Tensor], file: Path) -> dict[str, tuple[Tensor, Tensor]]:
    """Return the matrices A and B of each layer; raise `UserError` for an unknown name or a missing matrix."""
    found: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        layer, _, which = name.removeprefix(_BEFORE).removesuffix(".weight").rpartition(".")
        found.setdefault(layer, {})[which] = tensor
    for layer, pair in found.items():
        if pair.keys() != {"lora_A", "lora_B"}:
            raise UserError(f"{file}: {layer!r} has {', '.join(pair)}, not lora_A and lora_B; copy it again")
    return {layer: (pair["lora_A"], pair["lora_B"]) for layer, pair in found.items()}
