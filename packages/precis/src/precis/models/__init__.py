"""The models. Importing any of them registers all of them with transformers' Auto classes.

A family is a package here, an entry of `FAMILIES`, and a model type in `precis.auto_classes`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    PreTrainedModel,
)

from precis.models.encoder_decoder import TiedHead
from precis.models.family import FamilyConfig
from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration, ProphetNetModel
from precis.models.prophetnet.prophetnet_weights import TRANSFORMERS_TYPES, config_from_transformers
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration, ZCodePPModel
from precis.models.zcodepp.zcodepp_encoder import ZCodePPForSequenceClassification

__all__ = [
    "CONVERTED", "FAMILIES", "PREDICTS_FUTURE", "Family", "ProphetNetConfig",
    "ProphetNetForConditionalGeneration", "ProphetNetModel", "ZCodePPConfig",
    "ZCodePPForConditionalGeneration", "ZCodePPForSequenceClassification", "ZCodePPModel",
]  # fmt: skip


@dataclass(frozen=True)
class Family:
    """An encoder-decoder family: its configuration, the model without a head, and the model that generates text."""

    config: type[FamilyConfig]
    body: type[PreTrainedModel]
    writer: type[PreTrainedModel]


FAMILIES = (
    Family(ZCodePPConfig, ZCodePPModel, ZCodePPForConditionalGeneration),
    Family(ProphetNetConfig, ProphetNetModel, ProphetNetForConditionalGeneration),
)
#: The models that may have predicting streams.
PREDICTS_FUTURE = (TiedHead,)
#: Model types whose configurations are converted: transformers' ProphetNet predicts differently (docs/adr/0004).
CONVERTED: dict[str, Callable[[Mapping[str, Any]], FamilyConfig]] = dict.fromkeys(
    TRANSFORMERS_TYPES, config_from_transformers
)

for family in FAMILIES:  # `precis.auto_classes` has registered the types by name
    AutoConfig.register(family.config.model_type, family.config, exist_ok=True)
    # transformers checks the bare class name, which its own ProphetNet shares; the model types differ
    AutoModel.register(family.config, family.body, exist_ok=True)
    AutoModelForSeq2SeqLM.register(family.config, family.writer, exist_ok=True)
AutoModelForSequenceClassification.register(ZCodePPConfig, ZCodePPForSequenceClassification)
