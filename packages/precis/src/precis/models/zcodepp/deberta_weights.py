"""Reads DeBERTa-v2/v3 checkpoints for Z-Code++'s encoder: converts names, shapes and settings."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from precis.messages import without_bars
from precis.models.zcodepp.zcodepp_encoder import ZCodePPEncoder
from precis_text.errors import UserError

# DeBERTa's names (without "deberta.") -> those of ZCodePPEncoder; N is the number of a layer
_NAMES = {
    "embeddings.word_embeddings": "embedding.tokens", "embeddings.embed_proj": "embedding.projection",
    "embeddings.LayerNorm": "embedding.norm", "encoder.rel_embeddings": "stack.positions.rows",
    "encoder.LayerNorm": "stack.positions.norm", "encoder.conv.conv": "stack.convolution.convolution",
    "encoder.conv.LayerNorm": "stack.convolution.norm",
    "encoder.layer.N.attention.self.query_proj": "stack.layers.N.attention.query",
    "encoder.layer.N.attention.self.key_proj": "stack.layers.N.attention.key",
    "encoder.layer.N.attention.self.value_proj": "stack.layers.N.attention.value",
    "encoder.layer.N.attention.self.pos_key_proj": "stack.layers.N.attention.position_key",
    "encoder.layer.N.attention.self.pos_query_proj": "stack.layers.N.attention.position_query",
    "encoder.layer.N.attention.output.dense": "stack.layers.N.attention_output",
    "encoder.layer.N.attention.output.LayerNorm": "stack.layers.N.attention_norm",
    "encoder.layer.N.intermediate.dense": "stack.layers.N.feed_forward.up",
    "encoder.layer.N.output.dense": "stack.layers.N.feed_forward.down",
    "encoder.layer.N.output.LayerNorm": "stack.layers.N.feed_forward_norm",
}  # fmt: skip


def deberta_settings(config: transformers.DebertaV2Config) -> dict[str, Any]:
    """Return the encoder's part of a `ZCodePPConfig` for a DeBERTa-v2/v3 configuration.

    Raises:
        UserError: if the checkpoint has parts that Z-Code++'s encoder does not have (absolute positions added to the
            input, token types).
    """
    if config.position_biased_input:
        raise UserError(
            "this DeBERTa adds absolute positions to its input (position_biased_input); use a v2 or v3 checkpoint"
        )
    if config.type_vocab_size > 0:
        raise UserError(
            f"this DeBERTa has {config.type_vocab_size} token types; Z-Code++ reads one text: use a v2 or v3 checkpoint"
        )
    relative = config.relative_attention
    score_types = config.pos_att_type or []
    maximum = config.max_relative_positions
    return {
        "vocab_size": config.vocab_size, "hidden_size": config.hidden_size,
        "embedding_size": getattr(config, "embedding_size", None),
        "num_attention_heads": config.num_attention_heads, "intermediate_size": config.intermediate_size,
        "encoder_layers": config.num_hidden_layers, "hidden_act": config.hidden_act,
        "relative_attention": relative, "position_buckets": max(getattr(config, "position_buckets", -1), 0),
        "max_relative_positions": maximum if maximum > 0 else config.max_position_embeddings,
        "content_to_position": relative and "c2p" in score_types,
        "position_to_content": relative and "p2c" in score_types,
        "shared_position_keys": bool(getattr(config, "share_att_key", False)),
        "norm_position_embeddings": "layer_norm" in getattr(config, "norm_rel_ebd", "none"),
        "layer_norm_eps": config.layer_norm_eps, "convolution_kernel": getattr(config, "conv_kernel_size", 0),
        "convolution_groups": getattr(config, "conv_groups", 1),
        "convolution_act": getattr(config, "conv_act", "tanh"), "dropout": config.hidden_dropout_prob,
        "attention_dropout": config.attention_probs_dropout_prob, "pad_token_id": config.pad_token_id,
    }  # fmt: skip


def rename_deberta(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rename DeBERTa's weights to those of `ZCodePPEncoder`, without heads and buffers."""
    renamed = {}
    for name, tensor in state.items():
        owner, _, kind = name.removeprefix("deberta.").rpartition(".")
        layer = "".join(re.findall(r"^encoder\.layer\.(\d+)\.", owner))
        new = _NAMES.get(re.sub(r"^encoder\.layer\.\d+\.", "encoder.layer.N.", owner))
        if new is not None:
            renamed[f"{new.replace('.N.', f'.{layer}.')}.{kind}"] = tensor
    return renamed


def copy_deberta(encoder: ZCodePPEncoder, state: dict[str, Tensor]) -> None:
    """Fill an encoder with DeBERTa's weights. If DeBERTa's table has fewer token rows, the encoder's other rows stay as
    initialised (room for sentinels).

    Raises:
        UserError: if a weight is missing, unexpected, or of another shape.
    """
    renamed = rename_deberta(state)
    own = encoder.state_dict()
    if encoder.stack.positions is None:  # checkpoints without relative positions still carry the unused norm
        renamed = {
            name: tensor for name, tensor in renamed.items() if not name.startswith("stack.positions.")
        }
    tokens = "embedding.tokens.weight"
    if tokens in renamed and renamed[tokens].shape[0] < own[tokens].shape[0]:
        table = own[tokens].clone()
        table[: renamed[tokens].shape[0]] = renamed[tokens]
        renamed[tokens] = table
    wrong = sorted(
        set(own.keys() ^ renamed.keys())
        | {n for n in own.keys() & renamed.keys() if own[n].shape != renamed[n].shape}
    )
    if wrong:
        raise UserError(
            f"the DeBERTa checkpoint does not fit the encoder: {', '.join(wrong[:4])} ({len(wrong)} in all)"
        )
    with torch.no_grad():
        encoder.load_state_dict(renamed)


def read_deberta(
    folder: str | Path, overrides: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the `ZCodePPConfig` values for a DeBERTa checkpoint with the overrides, and its weights.

    Raises:
        UserError: if it is not a DeBERTa-v2/v3 checkpoint, lacks safetensors, or contradicts the overrides.
    """
    if Path(folder).is_dir():
        _refuse_pickle(Path(folder))
    config = transformers.AutoConfig.from_pretrained(folder)
    if not isinstance(config, transformers.DebertaV2Config):
        raise UserError(
            f"{folder} contains a {config.model_type!r} model; from_deberta needs 'deberta-v2' (v2 or v3)"
        )
    settings = deberta_settings(config)
    clash = sorted((overrides.keys() & settings.keys()) - {"vocab_size", "dropout", "attention_dropout"})
    if clash:
        raise UserError(f"{', '.join(clash)} come from the DeBERTa checkpoint and cannot be set")
    with without_bars():
        source = transformers.DebertaV2Model.from_pretrained(folder, use_safetensors=True)
    return {**settings, **overrides}, source.state_dict()


def _refuse_pickle(folder: Path) -> None:
    if not (folder / "config.json").exists():
        raise UserError(f"{folder} does not have a config.json: it is not a model folder")
    if not list(folder.glob("*.safetensors")):
        found = ", ".join(sorted(p.name for p in folder.glob("*.bin"))) or "no weights"
        raise UserError(
            f"{folder} contains no .safetensors (found: {found}); pickles can run code, so convert the checkpoint "
            "first with its own tools: model.save_pretrained(folder, safe_serialization=True)"
        )
