"""Train a prefix on a frozen base, or sparse attention with the whole model, and keep the best as an adapter.

    pairs -> the base's own tokenizer -> token ids -> base with a prefix -> train, validated by loss and by ROUGE
    -> the best to OUT/adapter, which names its base

It is `precis.phases.finetune` with fewer parameters: the same loop, checkpoints and resuming. A checkpoint holds what
is trained and no more; the run's identity has the base's digest, so that it is never continued on another base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from precis.data.text.segments import UnitSegmenter
from precis.errors import UserError
from precis.generation.adapters import ADAPTER_FOLDER
from precis.generation.loading import model_use
from precis.generation.model_use import ModelUse
from precis.phases.advice import advise_on_validation
from precis.phases.finetune import instruction_of
from precis.phases.pair_training import (
    MODEL_FOLDER,
    common_identity,
    fit_to_model,
    held,
    pair_batches,
    pair_objective,
    refuse_start_inside,
    tell_plan,
    train_to_best,
    with_validation_interval,
)
from precis.phases.places import own_folder
from precis.phases.sources import PairSources
from precis.phases.task_scores import language_of
from precis.phases.trainable import TrainableModel, load_trainable
from precis.phases.training_pairs import (
    Drawn,
    TrainingIds,
    TrainingPairs,
    read_pairs_of,
    tell_data,
    tokenize_pairs,
)
from precis.phases.tuning_runs import TunePlan, check_segments, export_adapter
from precis.phases.validation import Validation, evenly_spaced
from precis.recipes.runs import RunPlan
from precis.recipes.tuning_tasks import TaskSettings
from precis.telling import Tell, silent
from precis.training import Trained
from precis.training.callbacks import Callback
from precis.training.interruption import finished_first
from precis.training.loop import accelerator_for
from precis.training.processes import main_process_first, sharding_is_asked_for
from precis.tuning import Attachment, NoPrefix, attach
from precis.tuning.hosts import find_host
from precis.tuning.prefix import Reparametrized
from precis.tuning.stacks import Prefixes

_LARGE = 200e6  # parameters from which the paper's rate is not too small


def tune(
    plan: TunePlan,
    run: RunPlan,
    *,
    base: str,
    sources: PairSources,
    out: str | Path,
    instruction: str | None = None,
    examples: int | None = None,
    sampling_seed: int | None = None,
    restart: bool = False,
    command: Sequence[str] = (),
    tell: Tell = silent,
    callbacks: Sequence[Callback] | None = None,
) -> Trained:
    """Train what `plan` attaches on `sources` in the run folder `out`, or go on with what is there; export the best.

    Args:
        run: how it is trained; its model's shape is not read. `run.train.seed` also seeds the prefix's first values.
        base: the model to attach to (run folder, Hugging Face folder or hub name).
        instruction: put before every document; "": nothing; None: nothing, unless the base was grounded with
            instructions.
        examples: train on this many pairs drawn at random; see `precis.phases.sources.examples_in_share`.
        sampling_seed: of that draw; None: `run.train.seed`.
        restart: forget what is in `out`.
        command: what the user typed, for the record.
        tell: is told in sentences what will happen and what happened.
        callbacks: watchers of the loop; None: the standard ones.

    Raises:
        UserError: data, base and settings do not fit together, `out` holds another run, or another process
            is training in it.
        RunError: training failed.
    """
    folder = own_folder(out)
    refuse_start_inside(folder, base)
    _refuse_sharding()
    accelerator = accelerator_for(pair_objective(run))
    say = tell if accelerator.is_main_process else silent
    drawn = Drawn(examples, run.train.seed if sampling_seed is None else sampling_seed)
    pairs = read_pairs_of(sources, drawn, seed=run.train.seed)
    with held(folder, accelerator):
        with main_process_first(accelerator):
            trainable = load_trainable(base, tokenizer=None)
        _check_base(plan, trainable)
        before = model_use(base)
        if instruction is None:
            instruction = instruction_of(before, sources.task, say)
        run = fit_to_model(run, trainable, say)
        segmenter = None
        if plan.units is not None:
            segmenter = UnitSegmenter(plan.units, plan.segments, trainable.tokenizer, instruction)
        data = tokenize_pairs(run, pairs, trainable, instruction, segmenter=segmenter)
        tell_data(run, pairs, data, say)
        check_segments(plan, data.train, say)
        attachment = _attached(plan, run, trainable, data, say)
        use = ModelUse(
            max_source=run.max_source,
            instruction=instruction,
            task=sources.task,
            grounded_on=before.grounded_on,
        )
        session = _Session(plan, trainable, attachment, data, pairs, drawn, use)
        record = {"sources": sources.to_dict(), "command": [*command]}
        return _train(
            session,
            run,
            record,
            folder=folder,
            accelerator=accelerator,
            restart=restart,
            callbacks=callbacks,
            say=say,
        )


def _check_base(plan: TunePlan, trainable: TrainableModel) -> None:
    """Refuse a base that cannot carry the prefix before all pairs are turned into ids."""
    host = find_host(trainable.model)
    with torch.device("meta"):
        Prefixes(plan.expected(), host.shapes, width=host.width)


def _refuse_sharding() -> None:
    if sharding_is_asked_for():
        raise UserError(
            "FSDP cuts a model into pieces and a prefix needs its base whole; launch without it: every process then "
            "holds the base, and only the prefix's gradients travel"
        )


def _attached(
    plan: TunePlan, run: RunPlan, trainable: TrainableModel, data: TrainingIds, tell: Tell
) -> Attachment:
    tuning = plan.tuning(data.train, trainable.tokenizer)
    parameters = trainable.parameters
    torch.manual_seed(run.train.seed)
    attachment = attach(trainable.model, tuning)
    count = attachment.count()
    if isinstance(plan.prefix, NoPrefix):
        tell(f"{plan.method} on the whole model: all {count.trainable:,} parameters are trained")
        return attachment
    tell(
        f"{plan.method}: {count.trainable:,} parameters are trained, {count.stored:,} are kept "
        f"({count.stored_share:.2%} of the base's)"
    )
    rate = TaskSettings.learning_rate
    if run.train.learning_rate <= rate and parameters < _LARGE:
        usual = "0.001 to 0.003" if isinstance(plan.prefix.keys, Reparametrized) else "0.1 to 0.3"
        tell(
            f"a learning rate of {rate:g} is the paper's, for BART-large; this base has {parameters / 1e6:.0f} M "
            f"parameters and wants a larger one (--lr {usual} for a few million)"
        )
    return attachment


@dataclass(frozen=True)
class _Session:
    """What a run has in hand when training begins."""

    plan: TunePlan
    trainable: TrainableModel
    attachment: Attachment
    data: TrainingIds
    pairs: TrainingPairs
    drawn: Drawn
    use: ModelUse

    def identity(self, run: RunPlan) -> dict[str, Any]:
        """What the curve depends on besides the loop's settings."""
        return {
            **common_identity(run, self.trainable),
            "base": self.attachment.base().digest,
            "tuning": self.attachment.tuning.to_dict(),
            "data": [reader.digest for reader in self.pairs.readers],
            "instruction": self.use.instruction,
            "examples": self.drawn.examples,
            "sampling_seed": None if self.drawn.examples is None else self.drawn.seed,
        }


def _train(
    session: _Session,
    run: RunPlan,
    record: dict[str, Any],
    *,
    folder: Path,
    accelerator: Accelerator,
    restart: bool,
    callbacks: Sequence[Callback] | None,
    say: Tell,
) -> Trained:
    trainable, data, attachment = session.trainable, session.data, session.attachment
    batches = pair_batches(run, data.train, trainable, accelerator)
    run = with_validation_interval(run, batches.batches_per_epoch)
    tell_plan(run, trainable, len(data.dev), say)
    advise_on_validation(dev_pairs=len(data.dev), shared=data.shared, tell=say)
    shown = evenly_spaced(session.pairs.dev, run.generated_rows)
    result = train_to_best(
        run,
        trainable,
        batches=batches,
        validate=Validation(
            run,
            data.dev,
            shown,
            trainable.tokenizer,
            instruction=session.use.instruction,
            language=language_of(session.use.task),
        ),
        folder=folder,
        record={
            "run": run.to_dict(),
            "plan": session.plan.to_dict(),
            "identity": session.identity(run),
            **record,
        },
        exported=[ADAPTER_FOLDER, MODEL_FOLDER],
        accelerator=accelerator,
        restart=restart,
        callbacks=callbacks,
    )
    is_main = accelerator.is_main_process
    if result.interrupted:
        return Trained(folder=folder, result=result, is_main=is_main)
    if is_main:
        with finished_first("the adapter was written"):
            export_adapter(
                attachment, trainable, base=trainable.start or "", run=run, use=session.use, folder=folder
            )
    return Trained(folder=folder, adapter=folder / ADAPTER_FOLDER, result=result, is_main=is_main)
