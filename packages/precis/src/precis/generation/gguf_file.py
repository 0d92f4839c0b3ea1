"""Reads a causal language model and its tokenizer from one GGUF file, as llama.cpp uses them.

header -> architecture, chat template -> configuration -> size against file and memory -> fp32 weights -> tokenizer

transformers reads the file and restores the fp32 values of quantized weights; it needs the package `gguf`. It gets
only a link in an empty folder, since in the file's own folder it would also read adapters and settings. The header is
read twice: the reader of `gguf` does not stop at a list that is longer than the file.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from tokenizers import Tokenizer, pre_tokenizers
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoModelForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    modeling_gguf_pytorch_utils,
)
from transformers.initialization import no_init_weights
from transformers.integrations.gguf import (
    GGUF_CONFIG_ARCHS,
    convert_gguf_tokenizer,
    get_gguf_config,
    get_gguf_tokenizer,
    read_gguf_metadata,
)
from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS
from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES, load_gguf_checkpoint
from transformers.utils.import_utils import is_gguf_available, is_kernels_available
from transformers.utils.quantization_config import GgufConfig

from precis.generation.memory_check import free_bytes
from precis.storage.model_files import check_sizes
from precis_text.errors import UserError, first_line, missing_extra

_logger = logging.getLogger("precis.generation")
_SERVE = "serve it with a server of llama.cpp, and name its address: --model http://127.0.0.1:8080/v1"
_MOST_PER_BYTE = 8  # weights: the smallest blocks of GGUF hold 5 in a byte
_CPU = torch.device("cpu")
_END_OF_TURN = "tokenizer.ggml.eot_token_id"
_OTHER_NAMES = {"qwen2moe", "qwen3moe", "gpt-oss", "minimax-m2"}  # GGUF's, which transformers takes too
_SCALING = {"rope_freqs.weight", "rope_factors_long.weight"}  # tensors that transformers leaves out
_DIGITS_APART = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}
"""GGUF's names of GPT-2's way to split text after each digit is split off; transformers does not know them."""
_LIKE_GPT2 = {None, "default", "gpt-2", "mpt", "olmo", "jais"}

# transformers shows this bar also where bars are switched off
modeling_gguf_pytorch_utils.tqdm = partial(modeling_gguf_pytorch_utils.tqdm, disable=True)


def check_gguf(path: Path) -> dict[str, Any]:
    """Read the header of a GGUF file; return its settings, in which lists of texts are only counted.

    Raises:
        UserError: if the file is not GGUF, damaged, one of several parts, or without a chat template; if transformers
            cannot read its architecture; or if the package `gguf` is not installed.
    """
    if not is_gguf_available():
        raise missing_extra("gguf", wanted_by="a .gguf file")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise UserError(f"{path}: is not a GGUF file; it does not start with GGUF")
    with _damage(path):
        settings, _ = read_gguf_metadata(str(path))
        architecture, parts = str(settings["general.architecture"]), int(settings.get("split.count", 1))
    if architecture not in {*GGUF_CONFIG_ARCHS, *GGUF_SUPPORTED_ARCHITECTURES, *_OTHER_NAMES}:
        raise UserError(
            f"{path}: transformers cannot read the architecture {architecture!r} from a GGUF file; {_SERVE}"
        )
    if parts > 1:
        raise UserError(f"{path}: is one of {parts} parts; merge them with llama-gguf-split --merge")
    if not isinstance(settings.get("tokenizer.chat_template"), str):
        raise UserError(f"{path}: lacks a chat template; use the file of an instruct model")
    if architecture in GGUF_CONFIG_ARCHS and is_kernels_available():
        raise UserError(
            f"{path}: for the architecture {architecture!r}, transformers downloads code through the package kernels, "
            "which precis does not run; uninstall it"
        )
    return settings


def gguf_settings(path: Path) -> dict[str, Any]:
    """Return what `config.json` would contain.

    Raises:
        UserError: see `check_gguf`; or if the model is not a causal language model, or a size is too large.
    """
    header = check_gguf(path)
    with _damage(path):
        if header["general.architecture"] in GGUF_CONFIG_ARCHS:
            settings = get_gguf_config(*read_gguf_metadata(str(path)))
        else:
            settings = load_gguf_checkpoint(str(path), return_tensors=False)["config"]
    if settings.get("model_type") not in {kind.model_type for kind in MODEL_FOR_CAUSAL_LM_MAPPING}:
        raise UserError(f"{path}: a {settings.get('model_type')!r} model is not a causal language model")
    if (width := header.get(f"{header['general.architecture']}.attention.key_length")) is not None:
        settings.setdefault("head_dim", width)  # transformers leaves it out for some architectures
    end, turn = settings.get("eos_token_id"), header.get(_END_OF_TURN)
    if isinstance(end, int) and isinstance(turn, int) and end != turn:
        settings["eos_token_id"] = [end, turn]
    settings.pop("_model_name_or_path", None)  # a text of the file's author
    check_sizes(settings, path, elements=None, tensors=None)
    return settings


def read_gguf_model(
    path: Path, config: PreTrainedConfig, dtype: torch.dtype
) -> tuple[PreTrainedModel, dict[str, Any]]:
    """Return the model on the CPU, and transformers' account of missing and unused weights.

    Raises:
        UserError: if the file is damaged or cut short, or its weights do not fit in memory.
    """
    _check_size(path, config, dtype)
    _warn_of_scaling(path)
    kind = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    with TemporaryDirectory() as place, _damage(path):
        link = Path(place) / "model.gguf"
        link.symlink_to(path.resolve())
        model, info = kind.from_pretrained(
            place, config=config, gguf_file=str(link), quantization_config=GgufConfig(dequantize=True), dtype=dtype,
            local_files_only=True, output_loading_info=True,
        )  # fmt: skip
    return model, info


def read_gguf_tokenizer(path: Path) -> PreTrainedTokenizerFast:
    """Return the tokenizer with its chat template; raise `UserError` if transformers cannot build it."""
    try:
        architecture, parts, settings = get_gguf_tokenizer(str(path))
        backend, more = convert_gguf_tokenizer(architecture, parts)
        if parts["tokenizer_type"] == "gpt2":
            _split_as_trained(backend, parts.get("pre_tokenizer_type"), path)
        backend = _without_more(backend, len(parts["tokens"]))
        added = backend.get_added_tokens_decoder().values()
        control = [token.content for token in added if token.special]
        return PreTrainedTokenizerFast(
            tokenizer_object=backend, extra_special_tokens=control, **settings, **more
        )
    except Exception as error:  # the library's own checks raise many types
        raise UserError(f"{path}: the tokenizer cannot be loaded: {first_line(error)}") from error


def _without_more(backend: Tokenizer, known: int) -> Tokenizer:
    """Return the tokenizer without the end marks of other models, which transformers adds after the known tokens."""
    if backend.get_vocab_size() <= known:
        return backend
    state = json.loads(backend.to_str())
    state["added_tokens"] = [token for token in state["added_tokens"] if token["id"] < known]
    return Tokenizer.from_str(json.dumps(state))


def _split_as_trained(backend: Tokenizer, name: str | None, path: Path) -> None:
    """Split digits off where the name of the way to split text says so; warn of an unknown name."""
    if name in _DIGITS_APART:
        digits = pre_tokenizers.Digits(individual_digits=True)
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [digits, pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
    elif name not in {*_LIKE_GPT2, *GGUF_PRE_TOKENIZER_SPLITS}:
        _logger.warning(
            "%s: transformers does not know its way to split text, %r, and splits it like GPT-2", path, name
        )


def _warn_of_scaling(path: Path) -> None:
    settings, names = read_gguf_metadata(str(path))
    architecture = settings["general.architecture"]
    scaling = settings.get(f"{architecture}.rope.scaling.type", "none")
    if _SCALING & {*names} or (scaling != "none" and architecture != "gpt-oss"):
        _logger.warning(
            "%s: transformers leaves out how it scales positions, so it may write worse than in llama.cpp",
            path,
        )


def _check_size(path: Path, config: PreTrainedConfig, dtype: torch.dtype) -> None:
    with torch.device("meta"), no_init_weights():
        model = AutoModelForCausalLM.from_config(config)
    sizes = [parameter.numel() for parameter in model.parameters()]
    weights, stored = sum(sizes), path.stat().st_size
    if weights > _MOST_PER_BYTE * stored:
        raise UserError(
            f"{path}: describes a model of {weights:,} weights, which do not fit in its {stored:,} bytes; it is "
            "damaged or cut short"
        )
    need, free = (
        weights * dtype.itemsize + 8 * max(sizes),
        free_bytes(_CPU),
    )  # two more fp32 copies of one tensor
    if free is not None and need > free:
        raise UserError(
            f"{path}: its {weights:,} weights need {need / 2**30:.1f} GiB of memory in {str(dtype).partition('.')[2]}, "
            f"and only {free / 2**30:.1f} GiB are free; {_SERVE}"
        )


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Turn the errors of a reader into one line."""
    try:
        yield
    except Exception as error:  # the readers do not check sizes; numpy and struct raise many types
        raise UserError(f"{path}: is damaged or cut short ({first_line(error)}); copy it again") from error
