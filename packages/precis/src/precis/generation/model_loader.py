"""Finds and loads an encoder-decoder, with or without an adapter, from a run folder, a Hugging Face folder or the hub.

It reads weights only from safetensors, since a pickle (`pytorch_model.bin`) can run any code of its author. It refuses
a checkpoint with missing weights, which transformers would replace by random numbers.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import huggingface_hub
import torch
from huggingface_hub.file_download import repo_folder_name
from transformers import (
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
    AutoModelForSeq2SeqLM,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import GENERATION_CONFIG_NAME

from precis.data.rows.hub import PREFIX as HUB
from precis.data.rows.hub import hub_hint, hub_name
from precis.data.text.unigram_tokenizer import load_tokenizer
from precis.generation.adapters import find_adapter, find_parts
from precis.generation.generation_settings import limit_decoding
from precis.generation.int8_weights import is_compact, read_compact
from precis.generation.model_folder import (
    ModelFolder,
    check_finite,
    check_left_over,
    check_memory,
    config_from,
    look_through,
    with_weights,
)
from precis.generation.model_metadata import USE_FILE, ModelUse, load_use
from precis.models import CONVERTED
from precis.models.family import FamilyConfig, read_settings
from precis.storage.model_files import CONFIG, check_decoding, check_sizes, plain_settings
from precis.storage.seal import check_sealed, checking_sealed
from precis.tuning.adapter_folder import BaseRecord
from precis.tuning.attach import load_adapter, record_of
from precis_text.bounded_io import check_inside, read_json
from precis_text.errors import UserError, first_line

_logger = logging.getLogger("precis.generation")
_PATIENCE = 10  # seconds for the hub to answer
_NOT_PUBLIC = (401, 403, 404)  # the hub's status codes for a missing or private model
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
_SAFE = (
    "convert it where you trust its author: "
    "AutoModelForSeq2SeqLM.from_pretrained(OLD).save_pretrained(NEW) writes safetensors"
)


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
    """Return the device of one of torch's names: "cpu", "cuda", "cuda:1".

    Raises:
        UserError: if this machine does not have the device.
    """
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise UserError(f"device {name!r} is not available: {first_line(error)}") from None
    if device.type == "meta":
        raise UserError("device 'meta' stores no numbers; use cpu or cuda")
    return device


def load_model(
    source: str | Path,
    *,
    adapter: str | Path | None = None,
    device: str | torch.device | None = None,
    dtype: torch.dtype | None = None,
) -> LoadedModel:
    """Load an encoder-decoder and its tokenizer.

    Args:
        source: a run folder (with a `model/`), a Hugging Face folder, or a hub name; or a run folder of
            `precis tune` or its adapter, which load the base with the adapter on it.
        adapter: the folder of an adapter for the model.
        device: the device of the model; if None, the accelerator (but not Apple's), else the CPU.
        dtype: type of its weights; if None, fp32. An adapter's weights are always fp32. In float16 its base is read
            twice, to check it before it is rounded.

    Raises:
        UserError: if the model is missing or not an encoder-decoder; if its weights are a pickle, damaged, or of
            another model; or if the adapter belongs to another model.
    """
    parts = find_parts(source, adapter)
    if parts.adapter is not None:
        check_inside(parts.adapter)
        check_sealed(parts.adapter)
    loaded = _load_base(parts.base, device=device, dtype=dtype)
    if parts.adapter is None:
        return loaded
    exact = _record_before_rounding(parts.base) if dtype is torch.float16 else None
    load_adapter(loaded.model, parts.adapter, base=exact)
    loaded.model.eval()
    if (parts.adapter / GENERATION_CONFIG_NAME).is_file():
        loaded.model.generation_config = _load_decoding(parts.adapter)
        limit_decoding(loaded.model, parts.adapter)
    return LoadedModel(
        loaded.model, loaded.tokenizer, _use_of_adapter(parts.adapter, loaded.use), str(adapter or source)
    )


def _record_before_rounding(source: str) -> BaseRecord:
    """Return the base's record from its weights on disk, since float16 rounds differently from the record."""
    return record_of(_load_base(source, device="cpu", dtype=torch.float32).model)


def _load_base(source: str, *, device: str | torch.device | None, dtype: torch.dtype | None) -> LoadedModel:
    place = find_model(source)
    if isinstance(place, str):
        return _read_base(place, str(source), device=device, dtype=dtype)
    check_inside(place)
    with checking_sealed(place):
        return _read_base(place, str(source), device=device, dtype=dtype)


def _read_base(
    place: Path | str, source: str, *, device: str | torch.device | None, dtype: torch.dtype | None
) -> LoadedModel:
    """Load from a folder without links that leave it, or from the hub."""
    config = _load_config(place, source)
    _check_architecture(config, source)
    found = None
    if isinstance(place, Path):
        _check_weight_files(place)
        found = with_weights(place, look_through(place))
        check_memory(found, AutoModelForSeq2SeqLM, config)
    else:
        _tell_download(place)
    model = _load_weights(place, source, dtype or torch.float32, config, found)
    limit_decoding(model, place)
    tokenizer = load_tokenizer(HUB + place if isinstance(place, str) else place)
    if tokenizer.eos_token is None and isinstance(config, FamilyConfig):
        tokenizer.eos_token = getattr(tokenizer, config.end_mark)
    _check_vocabulary(model, tokenizer, source)
    cast(Any, model).to(usual_device() if device is None else device)
    model.eval()
    return LoadedModel(model, tokenizer, load_use(place), source, place if isinstance(place, Path) else None)


def usual_device() -> torch.device:
    """Return the accelerator, else the CPU. Apple's, on which precis is untested, must be chosen explicitly."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return torch.device("cpu") if found is None or found.type == "mps" else found


def model_use(source: str | Path, adapter: str | Path | None = None) -> ModelUse:
    """Return the modes a model was trained for, without loading it; models from elsewhere have defaults.

    Raises:
        UserError: if the model or the adapter is missing.
    """
    parts = find_parts(source, adapter)
    own = load_use(find_model(parts.base))
    return own if parts.adapter is None else _use_of_adapter(parts.adapter, own)


def _use_of_adapter(folder: Path, base: ModelUse) -> ModelUse:
    """Return the use that an adapter names, else that of its base."""
    return load_use(folder) if (folder / USE_FILE).is_file() else base


def model_config(source: str | Path) -> PreTrainedConfig:
    """Return the configuration of a model, without loading it.

    Raises:
        UserError: if the model is missing, or its configuration is invalid.
    """
    return _load_config(find_model(source), str(source))


def is_classifier(config: PreTrainedConfig) -> bool:
    """Return whether a configuration is a classifier's."""
    return any(name.endswith("ForSequenceClassification") for name in config.architectures or ())


def find_model(source: str | Path) -> Path | str:
    """Return the folder that holds the model, or the hub name.

    Raises:
        UserError: if the path is missing, is a file, or is a folder without a model.
    """
    path = Path(source).expanduser()
    if not str(source).startswith(HUB) and path.is_dir():
        for folder in (path, path / "model"):
            if (folder / "config.json").is_file():
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
    if path.is_file():
        if path.suffix in _PICKLES:
            raise UserError(f"{source}: pickles are refused, since opening one can run any code; {_SAFE}")
        raise UserError(f"{source}: is a file; give the folder with config.json and model.safetensors")
    name = hub_name(source)
    if name is None:
        raise UserError(f"{source}: no such folder{hub_hint(source)}")
    _check_hub(name)
    return name


def _check_hub(name: str) -> None:
    """Ask the hub once, since its client retries a hopeless request for almost a minute."""
    if isinstance(huggingface_hub.try_to_load_from_cache(name, "config.json"), str):
        return
    try:
        huggingface_hub.get_hf_file_metadata(
            huggingface_hub.hf_hub_url(name, "config.json"), timeout=_PATIENCE
        )
    except Exception as error:
        problem = f"the Hugging Face hub cannot be reached: {first_line(error)}"
        answered = isinstance(error, huggingface_hub.errors.HfHubHTTPError)
        if answered and cast(Any, error).response.status_code in _NOT_PUBLIC:
            problem = "no such public model on the Hugging Face hub"
        raise UserError(f"{name}: no such folder, and {problem}") from error


def _tell_download(name: str) -> None:
    """Log that weights are downloaded, which can take minutes."""
    cache = Path(huggingface_hub.constants.HF_HUB_CACHE) / repo_folder_name(repo_id=name, repo_type="model")
    if not any(cache.glob("snapshots/*/*.safetensors")):
        _logger.warning("downloading %s from the Hugging Face hub, once", name)


def _load_config(place: Path | str, source: str) -> PreTrainedConfig:
    name = place / CONFIG if isinstance(place, Path) else source
    try:
        settings = look_through(place) if isinstance(place, Path) else _settings_on_hub(place)
        check_sizes(settings, name, elements=None, tensors=None)
        return CONVERTED.get(str(settings.get("model_type")), config_from)(settings)
    except UserError as error:
        if str(error).startswith(str(place)):
            raise
        raise UserError(f"{name}: invalid configuration: {error}") from error
    except Exception as error:
        raise UserError(f"{name}: invalid configuration: {first_line(error)}") from error


def _settings_on_hub(name: str) -> dict[str, Any]:
    settings = read_settings(name)
    if settings is None:
        raise ValueError("it does not exist")
    return plain_settings(settings, name)


def _load_decoding(folder: Path) -> GenerationConfig:
    check_decoding(read_json(folder / GENERATION_CONFIG_NAME), folder / GENERATION_CONFIG_NAME)
    try:
        return GenerationConfig.from_pretrained(folder)
    except Exception as error:  # the library's own checks raise many types
        raise UserError(f"{folder / GENERATION_CONFIG_NAME}: cannot be used: {first_line(error)}") from error


def _check_architecture(config: PreTrainedConfig, source: str) -> None:
    if is_classifier(config):
        labels = ", ".join(map(str, (config.id2label or {}).values()))
        raise UserError(
            f"{source}: is a classifier ({labels}), which does not write text; use `precis evaluate --task` or "
            "`precis finetune --answer head`"
        )
    if type(config) in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING:
        return
    kind = config.model_type or type(config).__name__
    raise UserError(
        f"{source}: a {kind!r} model is not an encoder-decoder, so it cannot write summaries; "
        "use one like BART, T5, PEGASUS, LED or Z-Code++"
    )


def _check_weight_files(folder: Path) -> None:
    if any(folder.glob("*.safetensors")):
        return
    pickles = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLES)
    pickles = [name for name in pickles if name != "training_args.bin"]
    if pickles:
        raise UserError(
            f"{folder / pickles[0]}: pickles are refused, since opening one can run any code; {_SAFE}"
        )
    raise UserError(f"{folder}: no weights here; looked for model.safetensors")


def _load_weights(
    place: Path | str,
    source: str,
    dtype: torch.dtype,
    config: PreTrainedConfig,
    found: ModelFolder | None,
) -> PreTrainedModel:
    options: dict[str, Any] = {"config": config, "dtype": dtype, "output_loading_info": True}
    if isinstance(place, Path) and (place / GENERATION_CONFIG_NAME).is_file():
        _load_decoding(place)  # otherwise its errors would be blamed on the weights
    try:
        if isinstance(place, Path) and is_compact(place):
            kind = MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING[type(config)]
            model, info = kind.from_pretrained(None, state_dict=read_compact(place), **options)
            model.generation_config = _load_decoding(place)
        else:
            model, info = AutoModelForSeq2SeqLM.from_pretrained(
                str(place), use_safetensors=True, trust_remote_code=False, **options
            )
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{source}: the weights cannot be loaded: {first_line(error)}") from error
    missing = sorted(info["missing_keys"])
    if missing:
        raise UserError(
            f"{source}: the weights do not belong to this {model.config.model_type!r} model: "
            f"{len(missing)} parameters are missing, {missing[0]!r} first"
        )
    if found is not None:
        check_left_over(found, sorted(info["unexpected_keys"]), source)
    check_finite(model, source)
    return model


def _check_vocabulary(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, source: str) -> None:
    embedding = model.get_input_embeddings()
    rows = int(cast(torch.Tensor, embedding.weight).shape[0])
    if len(tokenizer) > rows:
        raise UserError(
            f"{source}: the tokenizer has {len(tokenizer)} entries, but the model only {rows}; "
            "it belongs to another model"
        )
