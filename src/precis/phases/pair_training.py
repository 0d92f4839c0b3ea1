"""What every training on pairs does, whether of one task or of many: fit, batch, train, keep the best, export it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from torch import nn
from transformers import PreTrainedModel

from precis.data.batches.bucketed import BucketedBatches, TokenizedPairs
from precis.data.text.tokenizer import digest_of
from precis.errors import DivergedError, UserError
from precis.files import remove_temporary_files
from precis.generation.model_use import ModelUse
from precis.generation.reading import output_limit, position_limit
from precis.lock import locked
from precis.models import PREDICTS_FUTURE
from precis.objectives.future_tokens import Alphas, FutureTokens
from precis.objectives.losses import BatchSource
from precis.objectives.sequence_to_sequence import SequenceToSequence
from precis.phases.run_folder import SettingsFile, export_model, refuse_foreign
from precis.phases.sources import percent
from precis.phases.trainable import TrainableModel
from precis.recipes.overrides import with_changes
from precis.recipes.runs import RunPlan
from precis.telling import Tell
from precis.training import Lowest, Trained, TrainResult, load_weights, standard_callbacks, train
from precis.training.callbacks import Callback
from precis.training.interruption import finished_first
from precis.training.run import Validate
from precis.training.tensors import not_finite

TOKENIZER_FOLDER = "tokenizer"
MODEL_FOLDER = "model"
_LEAST_VALIDATIONS = 5


@contextmanager
def held(folder: Path, accelerator: Accelerator) -> Iterator[None]:
    """The run folder for this run alone, from before anything in it is changed until the model is exported."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder) if accelerator.is_main_process else nullcontext():
        if accelerator.is_main_process:
            remove_temporary_files(folder)
        yield


def refuse_start_inside(folder: Path, start: str | None) -> None:
    """A run must not write over the model that it begins with.

    Raises:
        UserError: `start` is `folder` or in it.
    """
    if start is not None and Path(start).exists() and Path(start).resolve().is_relative_to(folder.resolve()):
        raise UserError(
            f"--model {start} lies in --out {folder}, which the run would write over; use another --out"
        )


def forget(folder: Path, names: Sequence[str], accelerator: Accelerator) -> None:
    """Remove what an earlier run exported: for a restart, when nothing can be refused any more."""
    if accelerator.is_main_process:
        for name in names:
            shutil.rmtree(folder / name, ignore_errors=True)


def fit_to_model(run: RunPlan, trainable: TrainableModel, tell: Tell) -> RunPlan:
    """Lower the longest document and summary to what the model's position tables hold, and say so."""
    config = trainable.model.config
    limits = {"max_source": position_limit(config), "max_target": output_limit(config)}
    changes = {
        name: limit for name, limit in limits.items() if limit is not None and getattr(run, name) > limit
    }
    for name, limit in changes.items():
        verb = "reads" if name == "max_source" else "writes"
        tell(f"this model {verb} at most {limit} tokens: {name} is {limit} instead of {getattr(run, name)}")
    return with_changes(run, changes)


def pair_objective(run: RunPlan, model: PreTrainedModel | None = None) -> SequenceToSequence | FutureTokens:
    """What training on pairs minimises: teacher forcing, and with a model that has predicting streams the future
    n-gram loss too.

    Raises:
        UserError: the run weighs streams that `model` does not have.
    """
    if isinstance(model, PREDICTS_FUTURE) and model.future_streams.stop > 1:
        weights = None if run.stream_weights is None else Alphas(values=run.stream_weights)
        return FutureTokens(label_smoothing=run.label_smoothing, weights=weights)
    if run.stream_weights is not None and model is not None:
        raise UserError("stream_weights: this model predicts the next token alone; leave them out")
    return SequenceToSequence(label_smoothing=run.label_smoothing)


def pair_batches(
    run: RunPlan, data: TokenizedPairs, trainable: TrainableModel, accelerator: Accelerator
) -> BucketedBatches:
    """This process's share of the batches that the run's settings and seed ask for."""
    return BucketedBatches(
        data,
        batch_size=run.batch_size,
        batch_tokens=run.batch_tokens,
        seed=run.train.seed,
        pad_token_id=trainable.tokenizer.pad_token_id,
        rank=accelerator.process_index,
        world_size=accelerator.num_processes,
        tell_lengths=isinstance(trainable.model, PREDICTS_FUTURE),
    )


def with_validation_interval(run: RunPlan, batches_per_epoch: int) -> RunPlan:
    """Without an interval: once an epoch, and at least five times in all."""
    if run.train.validate_every is not None:
        return run
    total = run.train.total_steps(batches_per_epoch)
    epoch = max(1, batches_per_epoch // run.train.gradient_accumulation)
    every = max(1, min(epoch, total // _LEAST_VALIDATIONS))
    return replace(run, train=replace(run.train, validate_every=every))


def common_identity(run: RunPlan, trainable: TrainableModel) -> dict[str, Any]:
    """What the curve depends on besides the loop's settings and the data, as JSON values."""
    return {
        "recipe": run.name,
        "batch_size": run.batch_size,
        "batch_tokens": run.batch_tokens,
        "max_source": run.max_source,
        "max_target": run.max_target,
        "label_smoothing": run.label_smoothing,
        **({} if run.stream_weights is None else {"stream_weights": [*run.stream_weights]}),
        "generated_rows": run.generated_rows,
        "model": trainable.start if trainable.start is not None else trainable.model.config.to_diff_dict(),
        "tokenizer": digest_of(trainable.tokenizer),
    }


def tell_cut(rows: TokenizedPairs, run: RunPlan, role: str, tell: Tell) -> None:
    """Say how many texts are longer than the run reads or writes, if any; `role` as in "dev documents"."""
    for what, cut, limit, option in (
        ("documents", rows.truncated_sources, run.max_source, "--max-source"),
        ("summaries", rows.truncated_targets, run.max_target, "--max-target"),
    ):
        if cut:
            where = f"{percent(cut, len(rows))} of the {role}{what} ({cut:,})"
            tell(f"{where} are longer than {limit} tokens and are cut: raise {option}")


def tell_plan(run: RunPlan, trainable: TrainableModel, dev_pairs: int, tell: Tell) -> None:
    """Say what is trained, how it is measured and what is kept."""
    origin = f"from {trainable.start}" if trainable.start else f"new, recipe {run.name}"
    tell(
        f"model: {trainable.parameters / 1e6:.1f} M parameters, {origin}; {len(trainable.tokenizer):,} tokens"
    )
    select = run.train.select
    direction = "lowest" if isinstance(select, Lowest) else "highest"
    generated = min(run.generated_rows, dev_pairs)
    rouge = f" and ROUGE of greedy summaries on {generated:,} of them" if generated else ""
    tell(
        f"validation every {run.train.validate_every} steps: loss on all {dev_pairs:,} dev pairs{rouge}; "
        f"kept is the {direction} {select.metric}"
    )


def train_to_best(
    run: RunPlan,
    trainable: TrainableModel,
    *,
    batches: BatchSource,
    validate: Validate,
    folder: Path,
    record: Mapping[str, Any],
    exported: Sequence[str],
    accelerator: Accelerator,
    restart: bool,
    callbacks: Sequence[Callback] | None,
) -> TrainResult:
    """Train in `folder`, or go on with what is there; unless it was interrupted, the model ends with its best weights.

    Args:
        record: what settings.json holds; under "identity", what else the curve depends on.
        exported: folders that a finished run leaves in `folder`, which a restart removes.
        callbacks: watchers of the loop; None: the standard ones.

    Raises:
        UserError: `folder` holds another run, or in the place of an export something that precis did not write.
        DivergedError: none of its models is finite.
        RunError: training failed otherwise.
    """
    for name in exported:
        refuse_foreign(folder / name)
    if restart:
        forget(folder, exported, accelerator)
    result = train(
        trainable.model,
        batches=batches,
        objective=pair_objective(run, trainable.model),
        settings=run.train,
        folder=folder,
        validate=validate,
        callbacks=[SettingsFile(record), *(standard_callbacks() if callbacks is None else callbacks)],
        accelerator=accelerator,
        resume=not restart,
        identity=json.loads(json.dumps(record["identity"])),  # as a run that is taken up again reads it back
    )
    if not result.interrupted:
        load_weights(trainable.model, result.best_checkpoint)
        refuse_not_finite(trainable.model, folder)
    return result


def refuse_not_finite(model: nn.Module, folder: Path) -> None:
    """What is trained has to be finite before it is exported; a checkpoint may be of a version that did not look.

    Raises:
        DivergedError: some of it is not.
    """
    bad = not_finite(model)
    if bad is not None:
        raise DivergedError(
            f"the model that was trained in {folder} has diverged: its weights {bad} are not finite, and it is not "
            "exported; begin anew with --restart and a lower learning rate (--lr)"
        )


def train_and_export(
    run: RunPlan,
    trainable: TrainableModel,
    *,
    folder: Path,
    use: ModelUse,
    accelerator: Accelerator,
    **options: Any,
) -> Trained:
    """Train in `folder`, or go on with what is there, and export the best model to its `model/`.

    Args:
        use: kept beside the exported weights.
        options: the rest of `train_to_best`'s.

    Raises:
        UserError: `folder` holds another run.
        RunError: training failed.
    """
    result = train_to_best(
        run, trainable, folder=folder, exported=[MODEL_FOLDER], accelerator=accelerator, **options
    )
    is_main = accelerator.is_main_process
    if result.interrupted:
        return Trained(folder=folder, model=None, result=result, is_main=is_main)
    if is_main:
        with finished_first("the model was written"):
            export_model(trainable.model, trainable.tokenizer, run.generation, use, folder / MODEL_FOLDER)
    return Trained(folder=folder, model=folder / MODEL_FOLDER, result=result, is_main=is_main)
