"""precis: pre-train, adapt, evaluate and run abstractive summarizers.

The public names are imported on first use, so `import precis` costs nothing. After `import precis`, transformers' Auto
classes open folders of these models.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from precis.auto_classes import announce
from precis.version import __version__ as __version__

if TYPE_CHECKING:
    from precis.data.pairs.pair import Pair
    from precis.data.pairs.pair_reader import read_pairs
    from precis.data.text.unigram_tokenizer import train_tokenizer
    from precis.evaluation.rouge import Rouge
    from precis.evaluation.scoring import evaluate
    from precis.extract.default_model import summarize
    from precis.generation.summarizer import Summarizer
    from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
    from precis.models.prophetnet.modeling_prophetnet import ProphetNetForConditionalGeneration
    from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
    from precis.models.zcodepp.modeling_zcodepp import ZCodePPForConditionalGeneration
    from precis.phases.train.finetuning import finetune
    from precis.tuning.attach import attach, load_adapter
    from precis.tuning.discourse import method
    from precis.tuning.prefix import Prefix

_HOMES = {
    "Pair": "precis.data.pairs.pair_reader",
    "read_pairs": "precis.data.pairs.pair_reader",
    "train_tokenizer": "precis.data.text.unigram_tokenizer",
    "evaluate": "precis.evaluation.scoring",
    "Rouge": "precis.evaluation.rouge",
    "Summarizer": "precis.generation.summarizer",
    "summarize": "precis.extract.default_model",
    "ProphetNetConfig": "precis.models.prophetnet.configuration_prophetnet",
    "ProphetNetForConditionalGeneration": "precis.models.prophetnet.modeling_prophetnet",
    "ZCodePPConfig": "precis.models.zcodepp.configuration_zcodepp",
    "ZCodePPForConditionalGeneration": "precis.models.zcodepp.modeling_zcodepp",
    "finetune": "precis.phases.train.finetuning",
    "attach": "precis.tuning.attach",
    "load_adapter": "precis.tuning.attach",
    "method": "precis.tuning.discourse",
    "Prefix": "precis.tuning.prefix",
}

__all__ = [
    "Pair",
    "Prefix",
    "ProphetNetConfig",
    "ProphetNetForConditionalGeneration",
    "Rouge",
    "Summarizer",
    "ZCodePPConfig",
    "ZCodePPForConditionalGeneration",
    "attach",
    "evaluate",
    "finetune",
    "load_adapter",
    "method",
    "read_pairs",
    "summarize",
    "train_tokenizer",
]


announce()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'precis' does not have the attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
