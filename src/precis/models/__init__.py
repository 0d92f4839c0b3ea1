"""The models. Importing any of them makes transformers' Auto classes know all of them."""

from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification

from precis.models.prophetnet.config import ProphetNetConfig
from precis.models.prophetnet.model import ProphetNetForConditionalGeneration, ProphetNetModel
from precis.models.zcodepp.classifier import ZCodePPForSequenceClassification
from precis.models.zcodepp.config import ZCodePPConfig
from precis.models.zcodepp.model import ZCodePPForConditionalGeneration, ZCodePPModel

# `precis.auto_classes` has entered the types by name
AutoConfig.register("zcodepp", ZCodePPConfig, exist_ok=True)
AutoModel.register(ZCodePPConfig, ZCodePPModel)
AutoModelForSeq2SeqLM.register(ZCodePPConfig, ZCodePPForConditionalGeneration)
AutoModelForSequenceClassification.register(ZCodePPConfig, ZCodePPForSequenceClassification)

#: The models that may have predicting streams.
PREDICTS_FUTURE = (ProphetNetForConditionalGeneration, ZCodePPForConditionalGeneration)

AutoConfig.register("precis-prophetnet", ProphetNetConfig, exist_ok=True)
# transformers looks at the bare name of the class, which its own ProphetNet has too; the model types differ
AutoModel.register(ProphetNetConfig, ProphetNetModel, exist_ok=True)
AutoModelForSeq2SeqLM.register(ProphetNetConfig, ProphetNetForConditionalGeneration, exist_ok=True)
