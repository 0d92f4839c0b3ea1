"""Converts checkpoints of fairseq's ProphetNet (microsoft/ProphetNet).

A `.pt` is a pickle. It is opened without running code from the file: torch's restricted unpickler
makes tensors, plain containers and the classes named here, and calls nothing else. Other files are refused.
"""

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from precis.models.prophetnet.prophetnet_weights import FAIRSEQ, check_whole, one_table, renamed
from precis_text.errors import UserError

_BERT_ENTRIES = 30_522
_HEAD_WIDTH = 64  # of every released checkpoint

_PROJECTIONS = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}
_VERSIONS = ("encoder.version", "decoder.version")
_DROPOUTS = ("dropout", "attention_dropout", "activation_dropout")


class _Record:
    """A placeholder for the meters of fairseq 0.9, unused objects in its checkpoints."""


_METERS = tuple(f"fairseq.meters.{name}" for name in ("AverageMeter", "TimeMeter", "StopwatchMeter"))


def read_checkpoint(file: str | Path) -> tuple[dict[str, Tensor], Mapping[str, Any]]:
    """Return the weights under fairseq's names, and the training options, which `.safetensors` do not have.

    Raises:
        UserError: if the file is missing or damaged, or contains other objects or no weights.
    """
    path = Path(file)
    if not path.is_file():
        raise UserError(
            f"{file}: is a folder, not a checkpoint" if path.is_dir() else f"{file}: no such file"
        )
    allowed: list[Any] = [argparse.Namespace, *((_Record, meter) for meter in _METERS)]
    try:
        if path.suffix == ".safetensors":
            return load_file(path), {}
        with torch.serialization.safe_globals(allowed):
            whole = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, SafetensorError) as error:
        reason = (str(error) or "the file is truncated").splitlines()[0]
        raise UserError(f"{file}: cannot be read: {reason}") from error
    except Exception as error:  # torch raises the unpickler's own error, whose module is not imported here
        raise UserError(
            f"{file}: holds more than tensors and plain values, so it is not opened; if you trust its author, save "
            "its weights with safetensors.torch.save_file and use that file"
        ) from error
    state = whole.get("model") if isinstance(whole, dict) else None
    if not isinstance(state, dict) or not all(isinstance(tensor, Tensor) for tensor in state.values()):
        raise UserError(f"{file}: contains no 'model' with weights: not a checkpoint of fairseq")
    options = whole.get("args")
    return state, vars(options) if isinstance(options, argparse.Namespace) else {}


def from_fairseq(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename weights of fairseq's ProphetNet to our names; old files have query, key and value in one tensor.

    Raises:
        UserError: if a name is unknown, or encoder and decoder have different token tables.
    """
    split = {}
    for name, tensor in state.items():
        match = re.fullmatch(r"(.*\.)in_proj_(weight|bias)", name)
        if match is None:
            split[name] = tensor
            continue
        for part, rows in zip(("q_proj", "k_proj", "v_proj"), tensor.chunk(3), strict=True):
            split[f"{match[1]}{part}.{match[2]}"] = rows
    plain = one_table(split, "encoder.embed_tokens.weight", ["decoder.embed_tokens.weight"])
    return renamed(plain, FAIRSEQ, _PROJECTIONS, dropped=_VERSIONS)


def convert_fairseq(file: str | Path) -> ProphetNetForConditionalGeneration:
    """Load a fairseq ProphetNet checkpoint: `.safetensors`, or fairseq's own `.pt`.

    Heads have width 64 unless the file specifies another.

    Raises:
        UserError: if the file cannot be read, or contains another model.
    """
    state, options = read_checkpoint(file)
    weights = from_fairseq(state)
    try:
        config = _fairseq_config(weights, options)
    except KeyError as error:
        raise UserError(f"{file}: {error.args[0]} is missing: not a complete ProphetNet") from error
    except ValueError as error:
        raise UserError(f"{file}: {error}") from error
    check_whole(weights, ProphetNetForConditionalGeneration, config, file)
    return ProphetNetForConditionalGeneration.from_pretrained(None, config=config, state_dict=weights)


def _fairseq_config(weights: Mapping[str, Tensor], options: Mapping[str, Any]) -> ProphetNetConfig:
    vocabulary, width = weights["model.encoder.tokens.weight"].shape
    heads = max(1, width // _HEAD_WIDTH)
    encoder_rows = weights["model.encoder.stack.positions.rows.weight"].shape[0]
    decoder_rows = weights["model.decoder.positions.rows.weight"].shape[0]
    decoder_heads = options.get("decoder_attention_heads", heads)
    return ProphetNetConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        encoder_layers=_count(weights, "model.encoder.stack.layers."),
        decoder_layers=_count(weights, "model.decoder.layers."),
        encoder_attention_heads=options.get("encoder_attention_heads", heads),
        decoder_attention_heads=decoder_heads,
        encoder_ffn_dim=weights["model.encoder.stack.layers.0.feed_forward.up.weight"].shape[0],
        decoder_ffn_dim=weights["model.decoder.layers.0.feed_forward.up.weight"].shape[0],
        ngram=weights["model.decoder.streams.weight"].shape[0],
        decoder_buckets=weights["model.decoder.layers.0.position_scores.weight"].shape[0] // decoder_heads,
        decoder_max_distance=options.get("relative_max_distance", 128),
        hidden_act=options.get("activation_fn", "gelu"),
        **{name: options[name] for name in _DROPOUTS if name in options},
        max_position_embeddings=encoder_rows,
        decoder_positions=decoder_rows,
        pad_token_id=0,  # BERT's uncased vocabulary, as in every released English checkpoint; see `has_berts_entries`
        bos_token_id=102,
        eos_token_id=102,
        decoder_start_token_id=102,
    )


def has_berts_entries(config: ProphetNetConfig) -> bool:
    """Return whether a fairseq checkpoint can have BERT's uncased vocabulary and control tokens, by its size.

    The checkpoint itself does not contain the dictionary, which is a separate file.
    """
    return config.vocab_size == _BERT_ENTRIES


def _count(weights: Mapping[str, Tensor], prefix: str) -> int:
    return len({name.removeprefix(prefix).split(".")[0] for name in weights if name.startswith(prefix)})
