"""Train on pairs of document and summary, from nothing or from a given model, and keep the best model.

    pairs -> tokenizer -> token ids -> model -> train, validated by loss and by ROUGE -> the best to OUT/model

Everything that the loss curve depends on goes into the run's identity, so that a run is never continued with
other data, another tokenizer or other sizes than it began with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from precis.data.batches import TokenizedPairs
from precis.data.sources import Pair
from precis.data.tasks import task
from precis.generation.loading import ModelUse, model_use
from precis.recipes.catalogue import recipe
from precis.recipes.learner import Learner, find_tokenizer, given_learner, new_learner
from precis.recipes.overrides import metric_to_select, with_changes, with_overrides
from precis.recipes.pair_training import (
    MODEL_FOLDER,
    TOKENIZER_FOLDER,
    FineTuned,
    common_identity,
    fit_to_model,
    held,
    pair_batches,
    pair_objective,
    refuse_start_inside,
    run_folder,
    tell_cut,
    tell_plan,
    train_and_export,
    with_validation_interval,
)
from precis.recipes.runs import Run
from precis.recipes.sources import PairReader, PairSources, hold_out, sample
from precis.recipes.validation import Validation, evenly_spaced
from precis.training.callbacks import Callback
from precis.training.loop import accelerator_for

__all__ = ["MODEL_FOLDER", "TOKENIZER_FOLDER", "FineTuned", "finetune", "resolve_run"]

Tell = Callable[[str], None]


def resolve_run(
    name: str | None,
    *,
    pretrained: bool = False,
    task_name: str | None = None,
    changes: Mapping[str, Any] | None = None,
    assignments: Iterable[str] = (),
    select: str | None = None,
) -> Run:
    """The run that options describe: a recipe, under a task's lengths and decoding, under what was asked for.

    Args:
        name: a recipe; None: zcodepp-mini, or for a given model the settings for pre-trained ones.
        changes: values by dotted name.
        assignments: the same as texts, `train.learning_rate=3e-4`; they win.
        select: the metric that names the best checkpoint.

    Raises:
        UserError: an unknown recipe, task or setting, or a value of another type.
    """
    run = recipe(name or ("pretrained" if pretrained else "zcodepp-mini"))
    if task_name is not None:
        known = task(task_name)
        run = replace(
            run, max_source=known.max_source, max_target=known.max_target, generation=known.generation
        )
    wanted = dict(changes or {})
    if select is not None:
        wanted["train.select"] = metric_to_select(select)
    return with_overrides(with_changes(run, wanted), assignments)


def finetune(
    run: Run,
    *,
    sources: PairSources,
    out: str | Path,
    start: str | None = None,
    tokenizer: str | None = None,
    instruction: str = "",
    examples: int | None = None,
    sampling_seed: int | None = None,
    restart: bool = False,
    command: Sequence[str] = (),
    tell: Tell = lambda _: None,
    callbacks: Sequence[Callback] | None = None,
) -> FineTuned:
    """Train on `sources` in the run folder `out`, or go on with what is there, and export the best model.

    Args:
        run: recipe; `run.train.seed` also seeds weights, data order and drawing.
        start: a model to begin with (run folder, Hugging Face folder or hub name); None: a new Z-Code++ of
            the recipe's shape.
        tokenizer: folder of the tokenizer of a new model; None: one is trained on the training pairs.
        instruction: put before every document; "": nothing, unless `start` was grounded with instructions,
            which is then asked with the task's own.
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
    folder = run_folder(out)
    refuse_start_inside(folder, start)
    accelerator = accelerator_for(pair_objective(run))
    say = tell if accelerator.is_main_process else (lambda _: None)
    drawn = _Drawn(examples, run.train.seed if sampling_seed is None else sampling_seed)
    pairs = _read(sources, drawn, seed=run.train.seed)
    with held(folder, accelerator):
        with accelerator.main_process_first():
            if start is not None:
                learner = given_learner(start, tokenizer=tokenizer)
            else:
                may_train = accelerator.is_main_process
                place = folder / TOKENIZER_FOLDER
                words = find_tokenizer(
                    run, pairs.train, place, given=tokenizer, restart=restart, may_train=may_train, tell=say
                )
                learner = new_learner(run, words)
        before = ModelUse() if start is None else model_use(start)
        instruction = instruction or _instruction_of(before, sources.task, say)
        run = fit_to_model(run, learner, say)
        data = _tokenize(run, pairs, learner, instruction)
        _tell_data(run, pairs, data, say)
        batches = pair_batches(run, data.train, learner, accelerator)
        run = with_validation_interval(run, batches.batches_per_epoch)
        tell_plan(run, learner, len(data.dev), say)
        record = {
            "run": run.to_dict(),
            "sources": sources.to_dict(),
            "identity": _identity(run, pairs, learner, instruction=instruction, drawn=drawn),
            "command": [*command],
        }
        shown = evenly_spaced(pairs.dev, run.generated_rows)
        return train_and_export(
            run,
            learner,
            batches=batches,
            validate=Validation(run, data.dev, shown, learner.tokenizer, instruction=instruction),
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


def _instruction_of(before: ModelUse, task_name: str, tell: Tell) -> str:
    """A grounded model is asked as it is used to; any other reads the bare document."""
    if not before.grounded_on:
        return ""
    instruction = before.instruction_for(task_name)
    tell(f"the model was grounded with instructions; before every document stands: {instruction}")
    return instruction


@dataclass(frozen=True)
class _Drawn:
    """How many training pairs are drawn at random, None for all, and by which seed."""

    examples: int | None
    seed: int


@dataclass
class _Pairs:
    """Training pairs, streamed at each reading unless some are drawn, and validation pairs."""

    train: Iterable[Pair]
    dev: list[Pair]
    readers: list[PairReader]
    notes: list[str]
    skip_bad: bool


def _read(sources: PairSources, drawn: _Drawn, *, seed: int) -> _Pairs:
    reader = PairReader(sources.train, skip_bad=sources.skip_bad)
    train_pairs: Iterable[Pair] = reader
    notes = []
    if sources.dev is None:
        train_pairs, dev = hold_out(reader, seed=seed)
        readers = [reader]
        notes.append(f"no dev set was given: {len(dev)} of the training pairs are held out for validation")
    else:
        dev_reader = PairReader(sources.dev, skip_bad=sources.skip_bad)
        dev = list(dev_reader)
        readers = [reader, dev_reader]
    if drawn.examples is not None:
        train_pairs = sample(train_pairs, drawn.examples, seed=drawn.seed)
        notes.append(f"few-shot: {drawn.examples} training pairs drawn at random (seed {drawn.seed})")
    return _Pairs(train=train_pairs, dev=dev, readers=readers, notes=notes, skip_bad=sources.skip_bad)


@dataclass(frozen=True)
class _Data:
    train: TokenizedPairs
    dev: TokenizedPairs


def _tokenize(run: Run, pairs: _Pairs, learner: Learner, instruction: str) -> _Data:
    """Token ids; pairs that give none are left out of `pairs.dev` too where bad ones are skipped."""

    def encode(rows: Iterable[Pair], reader: PairReader, skipped: set[int]) -> TokenizedPairs:
        def skip(index: int, message: str) -> None:
            reader.count_as_skipped(message)
            skipped.add(index)

        return TokenizedPairs.from_pairs(
            rows,
            learner.tokenizer,
            max_source=run.max_source,
            max_target=run.max_target,
            decoder_start_token_id=learner.decoder_start,
            instruction=instruction,
            skip=skip if pairs.skip_bad else None,
        )

    train = encode(pairs.train, pairs.readers[0], set())
    without_tokens: set[int] = set()
    dev = encode(pairs.dev, pairs.readers[-1], without_tokens)
    pairs.dev = [pair for index, pair in enumerate(pairs.dev) if index not in without_tokens]
    return _Data(train, dev)


def _identity(
    run: Run, pairs: _Pairs, learner: Learner, *, instruction: str, drawn: _Drawn
) -> dict[str, Any]:
    """What the curve depends on besides the loop's settings."""
    facts = {
        **common_identity(run, learner),
        "data": [reader.digest for reader in pairs.readers],
        "instruction": instruction,
        "examples": drawn.examples,
    }
    if drawn.examples is not None and drawn.seed != run.train.seed:
        facts["sampling_seed"] = drawn.seed
    return facts


def _tell_data(run: Run, pairs: _Pairs, data: _Data, tell: Tell) -> None:
    for role, reader in zip(("train", "dev"), pairs.readers, strict=False):
        tell(f"{role}: {reader.told()}")
    for note in pairs.notes:
        tell(note)
    tell_cut(data.train, run, "", tell)
    tell_cut(data.dev, run, "dev ", tell)
