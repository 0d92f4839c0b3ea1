"""The public names, once: `__init__.py` imports each from here on first use."""

from precis.data.pairs.pair import Pair as Pair
from precis.data.text.unigram_tokenizer import train_tokenizer as train_tokenizer
from precis.evaluation.rouge import Rouge as Rouge
from precis.evaluation.scoring import score as score
from precis.extract.default_model import summarize as summarize
from precis.generation.summarizer import Summarizer as Summarizer
from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig as ProphetNetConfig
from precis.models.prophetnet.modeling_prophetnet import (
    ProphetNetForConditionalGeneration as ProphetNetForConditionalGeneration,
)
from precis.models.prophetnet.prophetnet_weights import save_for_transformers as save_for_transformers
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig as ZCodePPConfig
from precis.models.zcodepp.modeling_zcodepp import (
    ZCodePPForConditionalGeneration as ZCodePPForConditionalGeneration,
)
from precis.phases.data.pair_checks import write_synthetic as write_synthetic
from precis.phases.data.run_pairs import read_pairs as read_pairs
from precis.phases.measure.model_scores import evaluate as evaluate
from precis.phases.plans.finetuning_plan import finetune as finetune
from precis.phases.plans.learning_curve import learning_curve as learning_curve
from precis.phases.plans.mixture_plan import ground as ground
from precis.phases.plans.mixture_plan import train_extractor as train_extractor
from precis.phases.plans.pretraining_plan import plan_pretraining as plan_pretraining
from precis.phases.plans.pretraining_plan import pretrain as pretrain
from precis.phases.plans.tuning_plan import tune as tune
from precis.phases.train.seed_runs import train_seeds as train_seeds
from precis.tuning.attach import attach as attach
from precis.tuning.attach import load_adapter as load_adapter
from precis.tuning.discourse import method as method
from precis.tuning.prefix import Prefix as Prefix
from precis.version import __version__ as __version__
from precis_text.documents.reader import read_document as read_document
from precis_text.documents.reader import read_documents as read_documents
from precis_text.errors import RunError as RunError
from precis_text.errors import UserError as UserError

__all__: list[str]

def homes() -> dict[str, str]: ...
