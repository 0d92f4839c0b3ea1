"""The models. Importing any of them makes transformers' Auto classes know all of them."""

from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification

from precis.models.zcodepp import ZCodePPForConditionalGeneration, ZCodePPModel
from precis.models.zcodepp_classifier import ZCodePPForSequenceClassification
from precis.models.zcodepp_config import ZCodePPConfig

AutoConfig.register("zcodepp", ZCodePPConfig)
AutoModel.register(ZCodePPConfig, ZCodePPModel)
AutoModelForSeq2SeqLM.register(ZCodePPConfig, ZCodePPForConditionalGeneration)
AutoModelForSequenceClassification.register(ZCodePPConfig, ZCodePPForSequenceClassification)
