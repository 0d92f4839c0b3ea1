"""The models. Importing any of them makes transformers' Auto classes know all of them.

A family is a package here and an entry of `FAMILIES`, and its model type is one of `precis.auto_classes`.
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
from precis.models.prophetnet.config import ProphetNetConfig
from precis.models.prophetnet.model import ProphetNetForConditionalGeneration, ProphetNetModel
from precis.models.prophetnet.weights import TRANSFORMERS_TYPES, config_from_transformers
from precis.models.zcodepp.config import ZCodePPConfig
from precis.models.zcodepp.encoder import ZCodePPForSequenceClassification
from precis.models.zcodepp.model import ZCodePPForConditionalGeneration, ZCodePPModel


@dataclass(frozen=True)
class Family:
    """An encoder-decoder of precis: its configuration, the model without a head, and the model that writes."""

    config: type[FamilyConfig]
    body: type[PreTrainedModel]
    writer: type[PreTrainedModel]


FAMILIES = (
    Family(ZCodePPConfig, ZCodePPModel, ZCodePPForConditionalGeneration),
    Family(ProphetNetConfig, ProphetNetModel, ProphetNetForConditionalGeneration),
)
#: The models that may have predicting streams.
PREDICTS_FUTURE = (TiedHead,)
#: Model types whose configurations are read into ours: transformers' ProphetNet predicts otherwise (docs/adr/0004).
CONVERTED: dict[str, Callable[[Mapping[str, Any]], FamilyConfig]] = dict.fromkeys(
    TRANSFORMERS_TYPES, config_from_transformers
)

for family in FAMILIES:  # `precis.auto_classes` has entered the types by name
    AutoConfig.register(family.config.model_type, family.config, exist_ok=True)
    # transformers looks at the bare name of a class, which its own ProphetNet has too; the model types differ
    AutoModel.register(family.config, family.body, exist_ok=True)
    AutoModelForSeq2SeqLM.register(family.config, family.writer, exist_ok=True)
AutoModelForSequenceClassification.register(ZCodePPConfig, ZCodePPForSequenceClassification)
