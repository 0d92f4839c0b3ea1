"""Train on pairs of document and summary, from nothing or from a given model, and keep the best model.

    pairs -> tokenizer -> token ids -> model -> train, validated by loss and by ROUGE -> the best to OUT/model

Everything that the loss curve depends on goes into the run's identity, so that a run is never continued with
other data, another tokenizer or other sizes than it began with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from precis.data.tasks.tasks import task
from precis.generation.loading import model_use
from precis.generation.model_use import ModelUse
from precis.phases.advice import advise_on_rate, advise_on_size, advise_on_validation
from precis.phases.pair_training import (
    MODEL_FOLDER,
    TOKENIZER_FOLDER,
    common_identity,
    fit_to_model,
    held,
    pair_batches,
    pair_objective,
    refuse_start_inside,
    tell_plan,
    train_and_export,
    with_validation_interval,
)
from precis.phases.places import own_folder
from precis.phases.sources import PairSources
from precis.phases.task_scores import language_of
from precis.phases.trainable import TrainableModel, find_tokenizer, load_trainable, new_trainable
from precis.phases.training_pairs import Drawn, TrainingPairs, read_pairs_of, tell_data, tokenize_pairs
from precis.phases.validation import Validation, evenly_spaced
from precis.recipes.catalogue import recipe
from precis.recipes.overrides import metric_to_select, refuse_shape, with_changes, with_overrides
from precis.recipes.prophetnet_tasks import on_task
from precis.recipes.runs import RunPlan
from precis.telling import Tell, silent
from precis.training import Trained
from precis.training.callbacks import Callback
from precis.training.loop import accelerator_for
from precis.training.processes import main_process_first

__all__ = ["MODEL_FOLDER", "TOKENIZER_FOLDER", "finetune", "resolve_run"]


def resolve_run(
    name: str | None,
    *,
    pretrained: bool = False,
    task_name: str | None = None,
    changes: Mapping[str, Any] | None = None,
    assignments: Iterable[str] = (),
    select: str | None = None,
) -> RunPlan:
    """The run that options describe: a recipe, under a task's lengths and decoding, under what was asked for.

    Args:
        name: a recipe; None: zcodepp-mini, or for a given model the settings for pre-trained ones. What suits few
            pairs says `precis.recipes.by_size.recipe_for_pairs`.
        changes: values by dotted name.
        assignments: the same as texts, `train.learning_rate=3e-4`; they win.
        select: the metric that names the best checkpoint.

    Raises:
        UserError: an unknown recipe, task or setting, or a value of another type.
    """
    assignments = list(assignments)
    if pretrained:
        refuse_shape(assignments)
    run = recipe(name or ("pretrained" if pretrained else "zcodepp-mini"))
    if task_name is not None:
        known = task(task_name)
        run = replace(
            run, max_source=known.max_source, max_target=known.max_target, generation=known.generation
        )
        run = on_task(run, known.name)
    wanted = dict(changes or {})
    if select is not None:
        wanted["train.select"] = metric_to_select(select)
    return with_overrides(with_changes(run, wanted), assignments)


def finetune(
    run: RunPlan,
    *,
    sources: PairSources,
    out: str | Path,
    start: str | None = None,
    tokenizer: str | None = None,
    instruction: str | None = None,
    examples: int | None = None,
    sampling_seed: int | None = None,
    restart: bool = False,
    command: Sequence[str] = (),
    tell: Tell = silent,
    callbacks: Sequence[Callback] | None = None,
) -> Trained:
    """Train on `sources` in the run folder `out`, or go on with what is there, and export the best model.

    Args:
        run: recipe; `run.train.seed` also seeds weights, data order and drawing.
        start: a model to begin with (run folder, Hugging Face folder or hub name); None: a new one of
            the recipe's shape.
        tokenizer: folder of the tokenizer of a new model; None: one is trained on the training pairs.
        instruction: put before every document; "": nothing; None: nothing, unless `start` was grounded with
            instructions, which is then asked with the task's own.
        examples: train on this many pairs drawn at random (few-shot); the tokenizer, too, sees no others.
        sampling_seed: of that draw; None: `run.train.seed`.
        restart: forget what is in `out`.
        command: what the user typed, for the record.
        tell: is told in sentences what will happen and what happened.
        callbacks: watchers of the loop; None: the standard ones.

    Raises:
        UserError: data, model and settings do not fit together, `out` holds another run, or another process
            is training in it.
        RunError: training failed.
    """
    folder = own_folder(out)
    refuse_start_inside(folder, start)
    run = replace(run, model=run.shape if start is None else None)
    accelerator = accelerator_for(pair_objective(run))
    say = tell if accelerator.is_main_process else silent
    drawn = Drawn(examples, run.train.seed if sampling_seed is None else sampling_seed)
    pairs = read_pairs_of(sources, drawn, seed=run.train.seed)
    with held(folder, accelerator):
        with main_process_first(accelerator):
            if start is not None:
                trainable = load_trainable(start, tokenizer=tokenizer)
            else:
                may_train = accelerator.is_main_process
                place = folder / TOKENIZER_FOLDER
                words = find_tokenizer(
                    run, pairs.train, place, given=tokenizer, restart=restart, may_train=may_train, tell=say
                )
                trainable = new_trainable(run, words)
        before = ModelUse() if start is None else model_use(start)
        if instruction is None:
            instruction = instruction_of(before, sources.task, say)
        run = fit_to_model(run, trainable, say)
        data = tokenize_pairs(run, pairs, trainable, instruction)
        tell_data(run, pairs, data, say)
        batches = pair_batches(run, data.train, trainable, accelerator)
        run = with_validation_interval(run, batches.batches_per_epoch)
        tell_plan(run, trainable, len(data.dev), say)
        advise_on_rate(run, say)
        if start is None:
            advise_on_size(
                run,
                parameters=trainable.parameters,
                train_pairs=len(data.train),
                total_steps=run.train.total_steps(batches.batches_per_epoch),
                tell=say,
            )
        advise_on_validation(dev_pairs=len(data.dev), shared=data.shared, tell=say)
        record = {
            "run": run.to_dict(),
            "sources": sources.to_dict(),
            "identity": _identity(run, pairs, trainable, instruction=instruction, drawn=drawn),
            "command": [*command],
        }
        shown = evenly_spaced(pairs.dev, run.generated_rows)
        return train_and_export(
            run,
            trainable,
            batches=batches,
            validate=Validation(
                run,
                data.dev,
                shown,
                trainable.tokenizer,
                instruction=instruction,
                language=language_of(sources.task),
            ),
            folder=folder,
            record=record,
            use=ModelUse(
                max_source=run.max_source,
                instruction=instruction,
                task=sources.task,
                grounded_on=before.grounded_on,
            ),
            accelerator=accelerator,
            restart=restart,
            callbacks=callbacks,
        )


def instruction_of(before: ModelUse, task_name: str, tell: Tell) -> str:
    """A grounded model is asked as it is used to; any other reads the bare document."""
    if not before.grounded_on:
        return ""
    instruction = before.instruction_for(task_name)
    tell(f"the model was grounded with instructions; before every document stands: {instruction}")
    return instruction


def _identity(
    run: RunPlan, pairs: TrainingPairs, trainable: TrainableModel, *, instruction: str, drawn: Drawn
) -> dict[str, Any]:
    """What the curve depends on besides the loop's settings."""
    facts = {
        **common_identity(run, trainable),
        "data": [reader.digest for reader in pairs.readers],
        "instruction": instruction,
        "examples": drawn.examples,
    }
    if drawn.examples is not None and drawn.seed != run.train.seed:
        facts["sampling_seed"] = drawn.seed
    return facts
