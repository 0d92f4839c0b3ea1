"""Loads a model that writes, with or without an adapter: from a run folder, a Hugging Face folder, GGUF, or the hub.

It reads weights only from safetensors and GGUF, since a pickle (`pytorch_model.bin`) can run any code of its author. It
refuses a checkpoint with missing weights, which transformers would replace by random numbers.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import huggingface_hub
import torch
from huggingface_hub.file_download import repo_folder_name
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import GENERATION_CONFIG_NAME

from precis.data.rows.hub import PREFIX as HUB
from precis.data.text.unigram_tokenizer import load_tokenizer
from precis.generation.generation_settings import limit_decoding
from precis.generation.gguf_file import read_gguf_model, read_gguf_tokenizer
from precis.generation.model_folder import (
    ModelFolder,
    check_finite,
    check_left_over,
    check_memory,
    with_weights,
)
from precis.generation.model_location import ModelLocation, is_classifier, locate
from precis.generation.model_metadata import ModelUse
from precis.generation.model_names import PICKLES, SAFE, unknown_device
from precis.messages import without_bars
from precis.models.family import FamilyConfig
from precis.process import use_threads
from precis.storage.model_files import check_decoding
from precis.storage.seal import check_sealed, checking_sealed
from precis.tuning.adapter_folder import BaseRecord
from precis.tuning.attach import load_adapter, record_of
from precis.tuning.low_rank import base_record, is_low_rank, merge_low_rank
from precis_text.bounded_io import read_json
from precis_text.errors import UserError, first_line

_logger = logging.getLogger("precis.generation")
Kind = type[AutoModelForSeq2SeqLM] | type[AutoModelForCausalLM]


@dataclass(frozen=True)
class LoadedModel:
    """A model with its tokenizer and its modes.

    Attributes:
        source: the folder or hub name that the caller gave.
        folder: the folder of its files; None for a model from the hub.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    use: ModelUse
    source: str
    folder: Path | None = None


def named_device(name: str) -> torch.device:
    """Return the device "cpu", "cuda", "cuda:1" ...; raise `UserError` if this machine lacks it."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError, ImportError) as error:
        if "Expected one of" in str(error) or "Invalid device string" in str(error):
            raise unknown_device(name) from None
        raise UserError(f"device {name!r} is not available: {first_line(error)}") from None
    if device.type == "meta":
        raise UserError("device 'meta' stores no numbers; use cpu or cuda")
    return device


def load_model(
    source: str | Path | ModelLocation,
    *,
    adapter: str | Path | None = None,
    device: str | torch.device | None = None,
    dtype: torch.dtype | None = None,
    kind: Kind = AutoModelForSeq2SeqLM,
) -> LoadedModel:
    """Load a model that writes and its tokenizer.

    Args:
        source: the model, found or by its name; see `precis.generation.model_location.locate`. An adapter, or a run
            folder of `precis tune`, loads the base with the adapter on it.
        adapter: the folder of an adapter for the model.
        device: the device of the model; if None, the accelerator (but not Apple's), else the CPU.
        dtype: type of its weights; if None, fp32. An adapter's weights are always fp32. In float16 its base is read
            twice, to check it before it is rounded.
        kind: transformers' class for encoder-decoders, or the one for causal language models.

    Raises:
        UserError: if the model is missing or not of the kind; if its weights are a pickle, damaged, or of
            another model; or if the adapter belongs to another model.
    """
    location = locate(source, adapter)
    use_threads(None)
    if location.adapter is not None:
        check_sealed(location.adapter)
    loaded = _load_base(location, device=device, dtype=dtype, kind=kind)
    if location.adapter is None:
        return loaded
    is_product = is_low_rank(location.adapter)
    record = base_record if is_product else record_of
    exact = _record_before_rounding(location, kind, record) if dtype is torch.float16 else None
    (merge_low_rank if is_product else load_adapter)(loaded.model, location.adapter, base=exact)
    loaded.model.eval()
    if (location.adapter / GENERATION_CONFIG_NAME).is_file():
        values = read_json(location.adapter / GENERATION_CONFIG_NAME)
        check_decoding(values, location.adapter / GENERATION_CONFIG_NAME)
        loaded.model.generation_config = _decoding(values, location.adapter)
        _limit_decoding(loaded.model, location.adapter)
    return replace(loaded, use=location.use, source=location.source, folder=None)


def _record_before_rounding(
    location: ModelLocation, kind: Kind, record: Callable[[PreTrainedModel], BaseRecord]
) -> BaseRecord:
    """Return the base's record from its weights on disk, since float16 rounds differently from the record."""
    return record(_load_base(location, device="cpu", dtype=torch.float32, kind=kind).model)


def _load_base(
    location: ModelLocation, *, device: str | torch.device | None, dtype: torch.dtype | None, kind: Kind
) -> LoadedModel:
    with nullcontext() if location.folder is None else checking_sealed(location.folder):
        return _read_base(location, device=device, dtype=dtype, kind=kind)


def _read_base(
    location: ModelLocation, *, device: str | torch.device | None, dtype: torch.dtype | None, kind: Kind
) -> LoadedModel:
    """Load from a folder without links that leave it, from a GGUF file, or from the hub."""
    config, place = copy.deepcopy(location.configuration), location.place
    _check_architecture(config, location.base, kind)
    if location.gguf is not None:
        return _read_gguf(location, location.gguf, device=device, dtype=dtype or torch.float32)
    found = None
    if isinstance(place, Path):
        _check_weight_files(place)
        found = with_weights(place, location.settings.model)
        check_memory(found, kind, config)
    else:
        _tell_download(place)
    model = _load_weights(location, dtype or torch.float32, config, found, kind)
    _limit_decoding(model, place)
    tokenizer = load_tokenizer(HUB + place) if isinstance(place, str) else load_tokenizer(place, checked=True)
    if tokenizer.eos_token is None and isinstance(config, FamilyConfig):
        tokenizer.eos_token = getattr(tokenizer, config.end_mark)
    _check_vocabulary(model, tokenizer, location.base)
    cast(Any, model).to(usual_device() if device is None else device)
    model.eval()
    return LoadedModel(model, tokenizer, location.use, location.base, location.folder)


def _read_gguf(
    location: ModelLocation, file: Path, *, device: str | torch.device | None, dtype: torch.dtype
) -> LoadedModel:
    with without_bars():
        model, info = read_gguf_model(file, location.configuration, dtype)
    _check_complete(model, info, location.base)
    check_finite(model, location.base)
    _limit_decoding(model, location.base)
    tokenizer = read_gguf_tokenizer(file)
    _check_vocabulary(model, tokenizer, location.base)
    cast(Any, model).to(usual_device() if device is None else device)
    return LoadedModel(model.eval(), tokenizer, location.use, location.base)


def usual_device() -> torch.device:
    """Return the accelerator, else the CPU. Apple's, on which precis is untested, must be chosen explicitly."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return torch.device("cpu") if found is None or found.type == "mps" else found


def _decoding(values: dict[str, Any], folder: Path) -> GenerationConfig:
    """Return checked decoding settings in the library's class."""
    try:
        return GenerationConfig.from_dict(dict(values))
    except Exception as error:  # the library's own checks raise many types
        raise UserError(f"{folder / GENERATION_CONFIG_NAME}: cannot be used: {first_line(error)}") from error


def _limit_decoding(model: PreTrainedModel, place: Path | str) -> None:
    """Keep the decoding settings that precis supports and name the others; raise `UserError` for one out of range."""
    file = place / GENERATION_CONFIG_NAME if isinstance(place, Path) else place
    try:
        ignored = limit_decoding(model)
    except UserError as error:
        raise UserError(f"{file}: {error}") from None
    if ignored:
        _logger.warning("%s: precis ignores these settings: %s", file, ", ".join(ignored))


def _tell_download(name: str) -> None:
    """Log that weights are downloaded, which can take minutes."""
    cache = Path(huggingface_hub.constants.HF_HUB_CACHE) / repo_folder_name(repo_id=name, repo_type="model")
    if not any(cache.glob("snapshots/*/*.safetensors")):
        _logger.warning("downloading %s from the Hugging Face hub, once", name)


def _check_architecture(config: PreTrainedConfig, source: str, kind: Kind) -> None:
    if is_classifier(config):
        labels = ", ".join(map(str, (config.id2label or {}).values()))
        raise UserError(
            f"{source}: is a classifier ({labels}), which does not write text; use `precis evaluate --task` or "
            "`precis finetune --answer head`"
        )
    if type(config) in _mapping(kind):
        return
    name = config.model_type or type(config).__name__
    if kind is AutoModelForCausalLM:
        raise UserError(f"{source}: a {name!r} model is not a causal language model")
    found = "a causal language model" if type(config) in MODEL_FOR_CAUSAL_LM_MAPPING else f"a {name!r} model"
    advice = (
        "; precis.summarize and `precis summarize` take it, and `precis tune` adapts it"
        if "causal" in found
        else ""
    )
    raise UserError(
        f"{source}: {found} is not an encoder-decoder; use one like BART, T5, PEGASUS, LED or Z-Code++{advice}"
    )


def _mapping(kind: Kind) -> Any:
    """Return the model classes of a kind by their configuration."""
    causal = kind is AutoModelForCausalLM
    return MODEL_FOR_CAUSAL_LM_MAPPING if causal else MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING


def _check_weight_files(folder: Path) -> None:
    if any(folder.glob("*.safetensors")):
        return
    pickles = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLES)
    pickles = [name for name in pickles if name != "training_args.bin"]
    if pickles:
        raise UserError(
            f"{folder / pickles[0]}: pickles are refused, since opening one can run any code; {SAFE}"
        )
    raise UserError(f"{folder}: no weights here; looked for model.safetensors")


def _load_weights(
    location: ModelLocation,
    dtype: torch.dtype,
    config: PreTrainedConfig,
    found: ModelFolder | None,
    kind: Kind,
) -> PreTrainedModel:
    place, source, decoding = location.place, location.base, None
    options: dict[str, Any] = {"config": config, "dtype": dtype, "output_loading_info": True}
    if found is not None and (values := location.settings.decoding) is not None:
        decoding = _decoding(values, found.folder)  # otherwise its errors would be blamed on the weights
    try:
        if found is not None and found.read is not None:
            own = _mapping(kind)[type(config)]
            with without_bars():
                model, info = own.from_pretrained(None, state_dict=found.read(found.folder), **options)
            if decoding is not None:
                model.generation_config = decoding
        else:
            with without_bars():
                model, info = kind.from_pretrained(
                    str(place), use_safetensors=True, trust_remote_code=False, **options
                )
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{source}: the weights cannot be loaded: {first_line(error)}") from error
    _check_complete(model, info, source)
    if found is not None:
        check_left_over(found, sorted(info["unexpected_keys"]), source)
    check_finite(model, source)
    if found is None or found.read is None:
        _copy_weights(model)
    return model


def _check_complete(model: PreTrainedModel, info: dict[str, Any], source: str) -> None:
    missing = sorted(info["missing_keys"])
    if missing:
        raise UserError(
            f"{source}: the weights do not belong to this {model.config.model_type!r} model: "
            f"{len(missing)} parameters are missing, {missing[0]!r} first"
        )


def _copy_weights(model: PreTrainedModel) -> None:
    """Move mapped weights into memory of our own: a file overwritten in place would change them, or end the process."""
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.device.type == "cpu":
            tensor.data = tensor.detach().clone()


def _check_vocabulary(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, source: str) -> None:
    embedding = model.get_input_embeddings()
    rows = int(cast(torch.Tensor, embedding.weight).shape[0])
    if len(tokenizer) > rows:
        raise UserError(
            f"{source}: the tokenizer has {len(tokenizer)} entries, but the model only {rows}; "
            "it belongs to another model"
        )
