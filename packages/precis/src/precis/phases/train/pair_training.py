"""The steps of every training on pairs, of a model, a prefix or a mixture of tasks: fit, batch, validate, train."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import Tensor
from transformers import PreTrainedModel

from precis.data.batches.labelled_texts import LabelledBatches
from precis.data.batches.length_buckets import BucketedBatches
from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.text.segments import UnitSegmenter
from precis.data.text.unigram_tokenizer import digest_of
from precis.generation.input_plan import output_limit, position_limit
from precis.generation.model_metadata import ModelUse
from precis.messages import Notify
from precis.models import PREDICTS_FUTURE
from precis.objectives.encoder_heads import Classification
from precis.objectives.future_tokens import Alphas, FutureTokens
from precis.objectives.losses import BatchSource, Objective
from precis.objectives.sequence_to_sequence import SequenceToSequence
from precis.phases.data.run_pairs import PairSources
from precis.phases.run_folder import export_model
from precis.phases.train.trainable_model import TrainableModel
from precis.phases.train.training_pairs import TrainingPairs, read_pairs_of, tell_cut, tokenize_pairs
from precis.phases.train.training_session import MODEL_FOLDER, RunRequest, Session, with_validation_interval
from precis.phases.train.validation_scores import PairValidation, SampleSummaries, Validation, evenly_spaced
from precis.recipes.overrides import with_changes
from precis.recipes.planning import Answer
from precis.recipes.run_options import check_seed
from precis.recipes.run_plan import Fusion, RunPlan
from precis.training import Lowest, Trained
from precis_text.errors import UserError
from precis_text.row import pluralize

FEW_PAIRS = 2000
"""With fewer training pairs, a model trained from scratch learns the form of a summary rather than the content."""
FEW_DEV_PAIRS = 20
_FEW_STEPS = 500
_LARGE = 1_000_000  # parameters
_LARGE_RATE = 1.0  # AdamW moves every weight by about the rate in each step
LEAST_VALIDATIONS = 5


@dataclass(frozen=True, kw_only=True)
class PairRequest(RunRequest):
    """The inputs of a training on pairs besides its plan.

    Attributes:
        sources: the pairs to train on and to validate on.
        tokenizer: folder of a new model's tokenizer; if None, one is trained on the training pairs.
        instruction: text put before every document. If None, no text, unless `start` was grounded with
            instructions: then the task's own.
        examples: train on this many pairs drawn at random (few-shot); if None, on all.
        sampling_seed: seed of that draw; if None, the run's.
        answer: the source of the model's answers: texts of its decoder, or a head on its encoder.
    """

    sources: PairSources
    tokenizer: str | None = None
    instruction: str | None = None
    examples: int | None = None
    sampling_seed: int | None = None
    answer: Answer = "text"

    def read_pairs(self, *, seed: int) -> TrainingPairs:
        """Open the sources and draw a sample; `seed` is the run's.

        Raises:
            UserError: they cannot be read, there are fewer pairs than `examples`, or the seed of the draw is invalid.
        """
        check_seed("--sampling-seed", self.sampling_seed)
        pairs = read_pairs_of(self.sources, seed=seed)
        if self.examples is not None:
            pairs.draw(self.examples, seed=seed if self.sampling_seed is None else self.sampling_seed)
        return pairs


def draw_identity(examples: int | None, sampling_seed: int | None, *, seed: int) -> dict[str, int | None]:
    """Return what determines a sample of the pairs, for a run with this seed."""
    drawn_apart = examples is not None and sampling_seed != seed
    return {"examples": examples, "sampling_seed": sampling_seed if drawn_apart else None}


@dataclass(frozen=True, kw_only=True)
class PreparedPairs:
    """Pairs that are ready for training.

    Attributes:
        plan: the plan, with lengths that the model can read and write.
        train: token ids.
        validate: measures the model on the validation pairs.
        use: how to use the finished model.
        record: entries of settings.json besides the plan.
        identity: everything that the loss curve depends on besides the plan and the model.
        shared: number of validation pairs with the document of a training pair; if None, already reported.
        labels: targets of a head on the encoder, for the training pairs; if None, the decoder learns the summaries.
        objective: what the model learns; if None, that of an encoder-decoder or of a head.
    """

    plan: RunPlan
    train: TokenizedPairs
    validate: PairValidation
    use: ModelUse
    record: Mapping[str, Any]
    identity: Mapping[str, Any]
    shared: int | None = None
    labels: Tensor | None = None
    objective: Objective | None = None


def prepare_pairs(
    plan: RunPlan,
    trainable: TrainableModel,
    pairs: TrainingPairs,
    request: PairRequest,
    notify: Notify,
    *,
    segmenter: Callable[[str], UnitSegmenter | None] = lambda _: None,
) -> PreparedPairs:
    """Tokenize the pairs of one task for the model, and log what was read.

    Args:
        segmenter: makes the splitter of documents into segments, given the instruction before them.

    Raises:
        UserError: data, model and settings do not fit together.
    """
    before = trainable.use
    task, instruction = request.sources.task, request.instruction
    if instruction is None:
        instruction = ""
        if before.grounded_on:
            instruction = before.instruction_for(task)
            notify(f"the model was grounded with instructions; before every document it reads: {instruction}")
    plan = fit_to_model(plan, trainable, notify)
    train, dev, shared = tokenize_pairs(plan, pairs, trainable, instruction, segmenter=segmenter(instruction))
    pairs.tell_about(notify)
    tell_cut(train, plan, "", notify)
    tell_cut(dev, plan, "dev ", notify)
    shown = evenly_spaced(pairs.dev, plan.generated_rows)
    drawn = draw_identity(request.examples, request.sampling_seed, seed=plan.train.seed)
    return PreparedPairs(
        plan=plan, train=train, shared=shared, record={"sources": request.sources.to_dict()},
        validate=Validation(plan, dev, shown, trainable.tokenizer, instruction=instruction, task_name=task),
        use=ModelUse(
            max_source=plan.max_source, instruction=instruction, task=task, grounded_on=before.grounded_on,
            licence=before.licence,
        ),
        identity={"data": [reader.digest for reader in pairs.readers], "instruction": instruction, **drawn},
    )  # fmt: skip


def train_on_pairs(
    ready: PreparedPairs,
    trainable: TrainableModel,
    session: Session,
    *,
    export: Callable[[str], None] | None = None,
    makes: Literal["model", "adapter"] = "model",
) -> Trained:
    """Log the plan, train, and export the best.

    Args:
        export, makes: see `Session.run`; if `export` is None, the whole model is exported.

    Raises:
        UserError: the run folder holds another run.
        RunError: training failed.
    """

    def export_whole(card: str) -> None:
        folder = session.folder / MODEL_FOLDER
        export_model(
            trainable.model, trainable.tokenizer, ready.plan.generation, ready.use, folder, card=card
        )

    bucketed = BucketedBatches(
        ready.train,
        batch_size=ready.plan.batch_size,
        batch_tokens=ready.plan.batch_tokens,
        seed=ready.plan.train.seed,
        pad_token_id=trainable.tokenizer.pad_token_id,
        rank=session.accelerator.process_index,
        world_size=session.accelerator.num_processes,
        tell_lengths=isinstance(trainable.model, PREDICTS_FUTURE),
    )
    train = with_validation_interval(ready.plan.train, bucketed.batches_per_epoch, times=LEAST_VALIDATIONS)
    plan = replace(ready.plan, train=train)
    tell_plan(plan, trainable, ready.validate.pairs, session.notify)
    if makes == "model":
        advise_on_rate(plan, session.notify)
    if trainable.start is None:
        advise_on_size(
            plan,
            parameters=trainable.parameters,
            train_pairs=len(ready.train),
            total_steps=train.total_steps(bucketed.batches_per_epoch),
            notify=session.notify,
        )
    if ready.shared is not None:
        advise_on_validation(dev_pairs=ready.validate.pairs, shared=ready.shared, notify=session.notify)
    identity = {**common_identity(plan, trainable), **ready.identity}
    labels = ready.labels
    batches: BatchSource = bucketed if labels is None else LabelledBatches(bucketed, labels)
    own = pair_objective(plan, trainable.model) if labels is None else classification(plan)
    return session.run(
        trainable.model,
        objective=ready.objective or own,
        batches=batches,
        validate=ready.validate,
        settings=train,
        record={"run": plan.to_dict(), **ready.record, "identity": identity},
        export=export or export_whole,
        makes=makes,
        watchers=[SampleSummaries(ready.validate, session.notify)],
    )


def fit_to_model(plan: RunPlan, trainable: TrainableModel, notify: Notify) -> RunPlan:
    """Lower the plan's lengths to the limits of the model's position tables, and log the changes."""
    config = trainable.model.config
    limits = {"max_source": position_limit(config), "max_target": output_limit(config)}
    changes = {
        name: limit for name, limit in limits.items() if limit is not None and getattr(plan, name) > limit
    }
    for name, limit in changes.items():
        verb = "reads" if name == "max_source" else "writes"
        notify(
            f"this model {verb} at most {limit} tokens: {name} is {limit} instead of {getattr(plan, name)}"
        )
    return with_changes(plan, changes)


def pair_objective(plan: RunPlan, model: PreTrainedModel | None = None) -> SequenceToSequence | FutureTokens:
    """Return the objective of training on pairs: teacher forcing, or future n-gram loss if the model predicts ahead.

    Raises:
        UserError: the run weights streams that `model` does not have.
    """
    if isinstance(model, PREDICTS_FUTURE) and model.future_streams.stop > 1:
        weights = None if plan.stream_weights is None else Alphas(values=plan.stream_weights)
        return FutureTokens(label_smoothing=plan.label_smoothing, weights=weights)
    if plan.stream_weights is not None and model is not None:
        raise UserError("stream_weights: this model predicts only the next token; omit them")
    return SequenceToSequence(label_smoothing=plan.label_smoothing)


def classification(plan: RunPlan) -> Classification:
    """Return the objective of training a classifier."""
    return Classification(label_smoothing=plan.label_smoothing)


def common_identity(plan: RunPlan, trainable: TrainableModel) -> dict[str, Any]:
    """Return everything that the loss curve depends on besides the loop's settings and the data, as JSON values."""
    return {
        "recipe": plan.name, "batch_size": plan.batch_size, "batch_tokens": plan.batch_tokens,
        "max_source": plan.max_source, "max_target": plan.max_target, "label_smoothing": plan.label_smoothing,
        **({} if plan.stream_weights is None else {"stream_weights": [*plan.stream_weights]}),
        "generated_rows": plan.generated_rows,
        **({"fusion": plan.model.to_dict()} if isinstance(plan.model, Fusion) else {}),
        "model": trainable.start if trainable.start is not None else trainable.model.config.to_diff_dict(),
        "tokenizer": digest_of(trainable.tokenizer),
    }  # fmt: skip


def tell_plan(plan: RunPlan, trainable: TrainableModel, dev_pairs: int, notify: Notify) -> None:
    """Log the model, the validation and the criterion for the best model."""
    origin = f"from {trainable.start}" if trainable.start else f"new, recipe {plan.name}"
    notify(
        f"model: {trainable.parameters / 1e6:.1f} M parameters, {origin}; {len(trainable.tokenizer):,} tokens"
    )
    select = plan.train.select
    direction = "lowest" if isinstance(select, Lowest) else "highest"
    generated = min(plan.generated_rows, dev_pairs)
    rouge = f" and ROUGE of greedy summaries on {generated:,} of them" if generated else ""
    first = "" if not select.metric.startswith("rouge") else ", or the lowest loss until that is above chance"
    often = "step" if plan.train.validate_every == 1 else f"{plan.train.validate_every} steps"
    notify(
        f"validation every {often}: loss on {pluralize(dev_pairs, 'dev pair')}{rouge}; "
        f"the model with the {direction} {select.metric} is kept{first}"
    )


def advise_on_size(
    plan: RunPlan, *, parameters: int, train_pairs: int, total_steps: int, notify: Notify
) -> None:
    """Warn if a model trained from scratch has too few pairs or steps."""
    if parameters < _LARGE:
        return
    if train_pairs < FEW_PAIRS:
        smaller = "" if plan.name == "zcodepp-few" else ", or use --recipe zcodepp-few"
        notify(
            f"warning: {_are(train_pairs, 'pair')} few for {parameters / 1e6:.1f} M new parameters; start from "
            f"a pre-trained model (--model), attach a prefix to one (precis tune){smaller}; or choose sentences "
            "instead of writing (precis extractor)"
        )
    if total_steps < _FEW_STEPS:
        notify(
            f"warning: {_are(total_steps, 'step')} few for a new model; use --steps 2000 or more, or smaller "
            "batches (--batch-tokens)"
        )


def _are(count: int, what: str, of: str = "") -> str:
    return f"{pluralize(count, what)}{of} {'is' if count == 1 else 'are'}"


def advise_on_rate(plan: RunPlan, notify: Notify) -> None:
    """Warn if the learning rate is too large for a whole model."""
    rate = plan.train.learning_rate
    if rate >= _LARGE_RATE:
        notify(
            f"warning: a learning rate of {rate:g} is too large for a whole model; use 1e-5 to 1e-3 (--lr)"
        )


def advise_on_validation(*, dev_pairs: int, shared: int, notify: Notify, name: str = "") -> None:
    """Warn if the validation pairs cannot distinguish models.

    Args:
        shared: validation pairs whose document is a training document.
        name: the set's name, if there are several.
    """
    of, where = (f" of {name}", "in its dev file") if name else ("", "with --dev")
    if shared:
        notify(
            f"warning: training documents are among the validation documents{of} ({shared:,} of {dev_pairs:,}), so "
            f"their scores reward memorizing; give other pairs {where}, or omit it to hold some out"
        )
    if dev_pairs < FEW_DEV_PAIRS:
        notify(
            f"warning: {_are(dev_pairs, 'validation pair', of)} too few to choose the best model; give "
            f"{FEW_DEV_PAIRS} or more {where}, 200 if possible"
        )
