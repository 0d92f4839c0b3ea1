"""Random bases with three layers a stack, and prefixes that matter: their entries are as large as real keys."""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    MBartConfig,
    MBartForConditionalGeneration,
    PegasusConfig,
    PegasusForConditionalGeneration,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
)

from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis.tuning import Attachment, MethodSettings, Prefix, Tuning, attach

KINDS = ("bart", "mbart", "pegasus", "t5", "zcodepp", "prophetnet")
LAYERS = 3
LENGTH = 5
SEGMENTS = MethodSettings(encoder_segments=3, decoder_segments=2, target_length=7)
OPTIONS = {"max_new_tokens": 9, "min_new_tokens": 9, "do_sample": False}
_BART_LIKE = {
    "bart": (BartConfig, BartForConditionalGeneration),
    "mbart": (MBartConfig, MBartForConditionalGeneration),
    "pegasus": (PegasusConfig, PegasusForConditionalGeneration),
}


def base(kind: str = "bart", *, seed: int = 0, layers: int = LAYERS, std: float = 0.2) -> PreTrainedModel:
    """A random model of that kind in evaluation mode, without dropout."""
    torch.manual_seed(seed)
    ids = {"vocab_size": 60, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    depth = {"encoder_layers": layers, "decoder_layers": layers, "dropout": 0.0, "attention_dropout": 0.0}
    own = {**ids, **depth, "hidden_size": 32, "decoder_start_token_id": 2}
    model: PreTrainedModel
    if kind in _BART_LIKE:
        config, cls = _BART_LIKE[kind]
        shape = config(
            **ids,
            **depth,
            d_model=32,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=48,
            decoder_ffn_dim=48,
            max_position_embeddings=64,
            decoder_start_token_id=2,
            init_std=std,
        )
        shape.forced_eos_token_id = None
        model = cls(shape)
    elif kind == "t5":
        shape = T5Config(
            **ids,
            d_model=32,
            d_kv=12,
            d_ff=48,
            num_layers=layers,
            num_heads=2,
            dropout_rate=0.0,
            decoder_start_token_id=0,
        )
        model = T5ForConditionalGeneration(shape)
    elif kind == "zcodepp":
        model = ZCodePPForConditionalGeneration(
            ZCodePPConfig(**own, num_attention_heads=2, intermediate_size=48)
        )
    else:
        model = ProphetNetForConditionalGeneration(
            ProphetNetConfig(
                **own,
                encoder_attention_heads=2,
                decoder_attention_heads=2,
                encoder_ffn_dim=48,
                decoder_ffn_dim=48,
                max_position_embeddings=64,
                activation_dropout=0.0,
                init_std=std,
            )
        )
    return model.eval()


def attach_loud(model: PreTrainedModel, tuning: Tuning, *, seed: int = 1) -> Attachment:
    """Attach with parameters from N(0, 1)."""
    attachment = attach(model, tuning)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in attachment.prefixes.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return attachment


def logits(model: PreTrainedModel, batch: Sequence[torch.Tensor], **more: Any) -> torch.Tensor:
    """Logits of a batch as `conformance.random_batch` gives it."""
    ids, mask, labels = batch
    with torch.no_grad():
        return model(input_ids=ids, attention_mask=mask, labels=labels.clamp(min=5), **more).logits


def plain(**options: Any) -> Tuning:
    """Prefix tuning as it is."""
    return Tuning(prefix=Prefix(length=LENGTH, **options))
