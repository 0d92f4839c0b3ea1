"""The model to train, with its tokenizer: new or given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.pairs.pair import Pair
from precis.data.text.segments import UnitSegmenter
from precis.data.text.unigram_tokenizer import without_start
from precis.generation.model_loader import load_model
from precis.generation.model_location import ModelLocation
from precis.generation.model_metadata import ModelUse
from precis.messages import Notify
from precis.models.family import FamilyConfig
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.recipes.catalogue import CONFIGS, model_of, shaped_config
from precis.recipes.run_plan import LONGEST_DENSE, Fusion, RunPlan, Shape
from precis.tuning.attach import attached
from precis_text.errors import UserError


@dataclass(frozen=True)
class TrainableModel:
    """A model in fp32 on the CPU with its tokenizer.

    Attributes:
        start: the name of the model; None for a new one.
        use: what it was trained for before.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    start: str | None = None
    use: ModelUse = field(default_factory=ModelUse)

    @property
    def parameters(self) -> int:
        """The number of parameters; tied ones count once."""
        return sum({p.data_ptr(): p.numel() for p in self.model.parameters()}.values())

    @property
    def decoder_start(self) -> int:
        """The first token of every summary."""
        decoding = self.model.generation_config if self.model.can_generate() else None
        for config in (self.model.config, decoding):
            token = getattr(config, "decoder_start_token_id", None)
            if isinstance(token, int):
                return token
        raise UserError(f"{self.start}: its configuration lacks decoder_start_token_id; name another model")

    def ids_of(
        self,
        pairs: Iterable[Pair],
        plan: RunPlan,
        *,
        instruction: str = "",
        segmenter: UnitSegmenter | None = None,
        skip: Callable[[int, str], None] | None = None,
    ) -> TokenizedPairs:
        """Tokenize the pairs for the model, truncated to the plan's lengths; see `TokenizedPairs.from_pairs`.

        Raises:
            UserError: a text gives no ids, and `skip` is None.
        """
        return TokenizedPairs.from_pairs(
            pairs,
            self.tokenizer,
            max_source=plan.max_source,
            max_target=plan.max_target,
            decoder_start_token_id=self.decoder_start,
            instruction=instruction,
            segmenter=segmenter,
            skip=skip,
        )


def load_trainable(start: str | ModelLocation) -> TrainableModel:
    """Load a model to train further; raise `UserError` if it cannot be loaded, or is not a whole model."""
    loaded = load_model(start, device="cpu")
    if attached(loaded.model) is not None:
        raise UserError(f"{loaded.source}: is an adapter; start from a whole model, such as its base")
    tokenizer = as_it_writes(loaded.model, loaded.tokenizer)
    return TrainableModel(loaded.model, tokenizer, loaded.source, loaded.use)


def with_fusion(trainable: TrainableModel, fusion: Fusion) -> TrainableModel:
    """Return a given Z-Code++ that reads by fusion-in-encoder, or dense again; its weights are the same tensors.

    Raises:
        UserError: it is not a Z-Code++.
    """
    return replace(trainable, model=fused(trainable.model, fusion, name=trainable.start))


def fused(model: PreTrainedModel, fusion: Fusion, *, name: str | None) -> PreTrainedModel:
    """Return a Z-Code++, or one with its generator, that reads as `fusion` says; see `with_fusion`.

    Args:
        name: the model's name, for an error.
    """
    if not isinstance(model.config, ZCodePPConfig):
        raise UserError(
            f"{name}: is a {model.config.model_type}; model.chunk_length and model.global_layers are for "
            "a Z-Code++; omit them"
        )
    config = type(model.config).from_dict({**model.config.to_dict(), **fusion.to_dict()})
    made: PreTrainedModel = type(model).from_pretrained(None, config=config, state_dict=model.state_dict())
    if model.can_generate():
        made.generation_config = model.generation_config
    return made


def read_as_planned(
    plan: RunPlan, trainable: TrainableModel, notify: Notify
) -> tuple[RunPlan, TrainableModel]:
    """Return the plan and the given model, with fusion-in-encoder if the plan, or the length of documents, wants it."""
    plan = read_long_documents(plan, trainable, notify)
    return plan, with_fusion(trainable, plan.model) if isinstance(plan.model, Fusion) else trainable


def read_long_documents(plan: RunPlan, trainable: TrainableModel, notify: Notify) -> RunPlan:
    """Return the plan with fusion-in-encoder for a given dense Z-Code++ whose documents are too long for dense layers.

    A plan that says how the model reads stays as it is.
    """
    config = trainable.model.config
    is_dense = isinstance(config, ZCodePPConfig) and config.chunk_length is None
    if isinstance(plan.model, Fusion) or not is_dense or plan.max_source <= LONGEST_DENSE:
        return plan
    fusion = Fusion()
    notify(
        f"documents of up to {plan.max_source:,} tokens: the model reads by fusion-in-encoder, with chunks of "
        f"{fusion.chunk_length} and {fusion.global_layers} global layer (--set model.chunk_length=none to read whole)"
    )
    return replace(plan, model=fusion)


def new_trainable(run: RunPlan, tokenizer: PreTrainedTokenizerBase) -> TrainableModel:
    """Make a model of the recipe's shape from the run's seed; raise `UserError` if the shape is impossible."""
    torch.manual_seed(run.train.seed)
    model = model_of(new_config(run.shape, tokenizer))
    return TrainableModel(model, as_it_writes(model, tokenizer))


def as_it_writes(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """Return the tokenizer with the control tokens of the model's summaries: a ProphetNet's start at the first word,
    since it may never write [CLS] (`precis.generation.generation_settings.control_tokens`).
    """
    starts_with_end = isinstance(model.config, FamilyConfig) and model.config.start_mark == "eos_token"
    return without_start(tokenizer) if starts_with_end else tokenizer


def new_config(shape: Shape, tokenizer: PreTrainedTokenizerBase) -> FamilyConfig:
    """Return the configuration of a new model for the tokenizer's ids.

    A Z-Code++ starts a summary with [CLS], a ProphetNet with [SEP], as in the released code.

    Raises:
        UserError: the shape is impossible.
    """
    begins = getattr(tokenizer, f"{CONFIGS[type(shape)].start_mark}_id")
    return shaped_config(
        replace(shape, vocab_size=len(tokenizer)),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=begins,
    )


def texts_of(pairs: Iterable[Pair]) -> Iterator[str]:
    """Yield the texts to train a tokenizer on."""
    return chain.from_iterable((pair.document, pair.summary) for pair in pairs)
