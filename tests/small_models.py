"""Every kind of model that precis has, small and random, by the name of what is special about it."""

from collections.abc import Callable
from typing import Any

import torch
from transformers import PreTrainedModel

from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
from precis.models.zcodepp.zcodepp_encoder import ZCodePPForSequenceClassification

_NO_DROPOUT = {"dropout": 0.0, "attention_dropout": 0.0}


def zcodepp_config(**changes: Any) -> ZCodePPConfig:
    shape = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 90}
    layers = {"encoder_layers": 3, "decoder_layers": 2}
    return ZCodePPConfig(**{**shape, **layers, **_NO_DROPOUT, "initializer_range": 0.2, **changes})


def prophetnet_config(**changes: Any) -> ProphetNetConfig:
    shape = {"hidden_size": 32, "vocab_size": 60, "max_position_embeddings": 48, "init_std": 0.2}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
    layers = {"encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 40, "decoder_ffn_dim": 48}
    positions = {"decoder_buckets": 8, "decoder_max_distance": 10, "activation_dropout": 0.0}
    return ProphetNetConfig(**{**shape, **heads, **layers, **positions, **_NO_DROPOUT, **changes})


SEQ2SEQ: dict[str, Callable[[], PreTrainedModel]] = {
    "zcodepp": lambda: ZCodePPForConditionalGeneration(zcodepp_config()),
    "zcodepp-streams": lambda: ZCodePPForConditionalGeneration(zcodepp_config(future_tokens=2)),
    "zcodepp-chunks": lambda: ZCodePPForConditionalGeneration(zcodepp_config(chunk_length=8)),
    "prophetnet": lambda: ProphetNetForConditionalGeneration(prophetnet_config()),
}


def seq2seq(kind: str) -> PreTrainedModel:
    """An encoder-decoder of that kind in evaluation mode."""
    torch.manual_seed(0)
    return SEQ2SEQ[kind]().eval()


def classifier(**changes: Any) -> ZCodePPForSequenceClassification:
    """A classifier in evaluation mode."""
    torch.manual_seed(0)
    return ZCodePPForSequenceClassification(zcodepp_config(**changes)).eval()
