"""Makes a Z-Code++ whose encoder has the weights of a DeBERTa-v2/v3 folder, and whose decoder is new."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import GenerationConfig, PreTrainedTokenizerBase

from precis.models.zcodepp.deberta_weights import read_deberta
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis_text.bounded_io import read_json
from precis_text.errors import UserError

_SEED = 0  # of the decoder's weights


def is_deberta(source: Path) -> bool:
    """Return whether a folder's configuration is a DeBERTa-v2/v3's."""
    try:
        return bool(read_json(source / "config.json").get("model_type") == "deberta-v2")
    except (OSError, ValueError, AttributeError):
        return False


def model_of_deberta(
    source: Path, words: PreTrainedTokenizerBase | None, *, decoder_layers: int | None = None
) -> ZCodePPForConditionalGeneration:
    """Return a Z-Code++ with DeBERTa's encoder and random decoder weights, which are the same in each call.

    Args:
        words: its tokenizer, whose [CLS], [SEP] and [PAD] the model uses; if None, DeBERTaV3's ids.
        decoder_layers: depth of the decoder; if None, the encoder's, as in Z-Code++.

    Raises:
        UserError: the folder cannot be read, the tokenizer does not fit, or the depth is below 1.
    """
    if decoder_layers is not None and decoder_layers < 1:
        raise UserError(f"--decoder-layers {decoder_layers} is too small; use 1 or more")
    settings, _ = read_deberta(source, {})
    depth = settings["encoder_layers"] if decoder_layers is None else decoder_layers
    torch.manual_seed(_SEED)
    model = ZCodePPForConditionalGeneration.from_deberta(source, decoder_layers=depth, **_ids(source, words))
    if words is not None and len(words) > model.config.vocab_size:
        raise UserError(
            f"{source}: the tokenizer has {len(words)} entries but the model only {model.config.vocab_size}; "
            "it belongs to another model"
        )
    model.generation_config = GenerationConfig.from_model_config(model.config)
    return model


def _ids(source: Path, words: PreTrainedTokenizerBase | None) -> dict[str, int]:
    """Return the configuration's control tokens that are not DeBERTa's own."""
    if words is None:
        return {}
    start, end = words.cls_token_id, words.sep_token_id
    if not isinstance(start, int) or not isinstance(end, int):
        raise UserError(
            f"{source}: its tokenizer lacks [CLS] or [SEP]; name DeBERTa's own with --tokenizer FOLDER"
        )
    return {"bos_token_id": start, "eos_token_id": end, "decoder_start_token_id": start}
