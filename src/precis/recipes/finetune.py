"""Train on pairs of document and summary, from nothing or from a given model, and keep the best model.

    pairs -> tokenizer -> token ids -> model -> train, validated by loss and by ROUGE -> the best to OUT/model

Everything that the loss curve depends on goes into the run's identity, so that a run is never continued with
other data, another tokenizer or other sizes than it began with.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from accelerate import Accelerator

from precis.data.batches import BucketedBatches, TokenizedPairs
from precis.data.sources import Pair
from precis.data.tasks import task
from precis.data.tokenizer import digest_of
from precis.errors import UserError
from precis.generation.loading import ModelUse
from precis.generation.reading import output_limit, position_limit
from precis.objectives.sequence_to_sequence import SequenceToSequence
from precis.recipes.learner import Learner, find_tokenizer, given_learner, new_learner
from precis.recipes.overrides import metric_to_select, with_changes, with_overrides
from precis.recipes.run_folder import SettingsFile, export_model
from precis.recipes.sources import PairReader, PairSources, hold_out, percent, sample
from precis.recipes.validation import Validation, evenly_spaced
from precis.recipes.zcodepp import Run, recipe
from precis.training import Lowest, TrainResult, load_weights, standard_callbacks, train
from precis.training.callbacks import Callback
from precis.training.lock import locked

TOKENIZER_FOLDER = "tokenizer"
MODEL_FOLDER = "model"
_LEAST_VALIDATIONS = 5

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class FineTuned:
    """What came of a run: `model` is the exported folder, None if the run was interrupted.

    Of several processes only the one with `is_main` wrote it, and should speak.
    """

    folder: Path
    model: Path | None
    result: TrainResult
    is_main: bool = True


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
        instruction: put before every document.
        examples: train on this many pairs drawn at random (few-shot); the tokenizer, too, sees no others.
        restart: forget what is in `out`.
        command: what the user typed, for the record.
        tell: is told in sentences what will happen and what happened.
        callbacks: watchers of the loop; None: the standard ones.

    Raises:
        UserError: data, model and settings do not fit together, `out` holds another run, or another process
            is training in it.
        RunError: training failed.
    """
    folder = _run_folder(out)
    accelerator = Accelerator(mixed_precision="no")
    say = tell if accelerator.is_main_process else (lambda _: None)
    pairs = _read(sources, examples=examples, seed=run.train.seed)
    with _held(folder, accelerator):
        if restart and accelerator.is_main_process:
            shutil.rmtree(folder / MODEL_FOLDER, ignore_errors=True)
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
        run = _fit_to_model(run, learner, say)
        data = _tokenize(run, pairs, learner, instruction)
        _tell_data(run, pairs, data, say)
        batches = _batches(run, data.train, learner, accelerator)
        run = _with_validation_interval(run, batches.batches_per_epoch)
        _tell_plan(run, learner, data, say)
        identity = _identity(run, pairs, learner, instruction=instruction, examples=examples)
        record = {
            "run": run.to_dict(),
            "sources": sources.to_dict(),
            "identity": identity,
            "command": [*command],
        }
        shown = evenly_spaced(pairs.dev, run.generated_rows)
        result = train(
            learner.model,
            batches=batches,
            objective=SequenceToSequence(label_smoothing=run.label_smoothing),
            settings=run.train,
            folder=folder,
            validate=Validation(run, data.dev, shown, learner.tokenizer, instruction=instruction),
            callbacks=[SettingsFile(record), *(standard_callbacks() if callbacks is None else callbacks)],
            accelerator=accelerator,
            resume=not restart,
            identity=identity,
        )
        if result.interrupted:
            return FineTuned(folder=folder, model=None, result=result, is_main=accelerator.is_main_process)
        load_weights(learner.model, result.best_checkpoint)
        use = ModelUse(max_source=run.max_source, instruction=instruction, task=sources.task)
        if accelerator.is_main_process:
            export_model(learner.model, learner.tokenizer, run.generation, use, folder / MODEL_FOLDER)
        return FineTuned(
            folder=folder, model=folder / MODEL_FOLDER, result=result, is_main=accelerator.is_main_process
        )


@dataclass
class _Pairs:
    """Training pairs, streamed at each reading unless some are drawn, and validation pairs."""

    train: Iterable[Pair]
    dev: list[Pair]
    readers: list[PairReader]
    notes: list[str]
    skip_bad: bool


def _read(sources: PairSources, *, examples: int | None, seed: int) -> _Pairs:
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
    if examples is not None:
        train_pairs = sample(train_pairs, examples, seed=seed)
        notes.append(f"few-shot: {examples} training pairs drawn at random (seed {seed})")
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


def _batches(run: Run, data: TokenizedPairs, learner: Learner, accelerator: Accelerator) -> BucketedBatches:
    return BucketedBatches(
        data,
        batch_size=run.batch_size,
        batch_tokens=run.batch_tokens,
        seed=run.train.seed,
        pad_token_id=learner.tokenizer.pad_token_id,
        rank=accelerator.process_index,
        world_size=accelerator.num_processes,
    )


def _fit_to_model(run: Run, learner: Learner, tell: Tell) -> Run:
    """Lower the longest document and summary to what the model's position tables hold, and say so."""
    config = learner.model.config
    limits = {"max_source": position_limit(config), "max_target": output_limit(config)}
    changes = {
        name: limit for name, limit in limits.items() if limit is not None and getattr(run, name) > limit
    }
    for name, limit in changes.items():
        verb = "reads" if name == "max_source" else "writes"
        tell(f"this model {verb} at most {limit} tokens: {name} is {limit} instead of {getattr(run, name)}")
    return with_changes(run, changes)


def _with_validation_interval(run: Run, batches_per_epoch: int) -> Run:
    """Without an interval: once an epoch, and at least five times in all."""
    if run.train.validate_every is not None:
        return run
    total = run.train.total_steps(batches_per_epoch)
    epoch = max(1, batches_per_epoch // run.train.gradient_accumulation)
    every = max(1, min(epoch, total // _LEAST_VALIDATIONS))
    return replace(run, train=replace(run.train, validate_every=every))


def _identity(
    run: Run, pairs: _Pairs, learner: Learner, *, instruction: str, examples: int | None
) -> dict[str, Any]:
    """What the curve depends on besides the loop's settings, as JSON gives it back."""
    facts = {
        "recipe": run.name,
        "batch_size": run.batch_size,
        "batch_tokens": run.batch_tokens,
        "max_source": run.max_source,
        "max_target": run.max_target,
        "label_smoothing": run.label_smoothing,
        "generated_rows": run.generated_rows,
        "model": learner.start if learner.start is not None else learner.model.config.to_diff_dict(),
        "tokenizer": digest_of(learner.tokenizer),
        "data": [reader.digest for reader in pairs.readers],
        "instruction": instruction,
        "examples": examples,
    }
    return cast("dict[str, Any]", json.loads(json.dumps(facts)))


def _tell_data(run: Run, pairs: _Pairs, data: _Data, tell: Tell) -> None:
    for role, reader in zip(("train", "dev"), pairs.readers, strict=False):
        tell(f"{role}: {reader.told()}")
    for note in pairs.notes:
        tell(note)
    for role, rows in (("", data.train), ("dev ", data.dev)):
        for what, cut, limit, option in (
            ("documents", rows.truncated_sources, run.max_source, "--max-source"),
            ("summaries", rows.truncated_targets, run.max_target, "--max-target"),
        ):
            if cut:
                where = f"{percent(cut, len(rows))} of the {role}{what} ({cut:,})"
                tell(f"{where} are longer than {limit} tokens and are cut: raise {option}")


def _tell_plan(run: Run, learner: Learner, data: _Data, tell: Tell) -> None:
    origin = f"from {learner.start}" if learner.start else f"new, recipe {run.name}"
    tell(f"model: {learner.parameters / 1e6:.1f} M parameters, {origin}; {len(learner.tokenizer):,} tokens")
    select = run.train.select
    direction = "lowest" if isinstance(select, Lowest) else "highest"
    generated = min(run.generated_rows, len(data.dev))
    rouge = f" and ROUGE of greedy summaries on {generated:,} of them" if generated else ""
    tell(
        f"validation every {run.train.validate_every} steps: loss on all {len(data.dev):,} dev pairs{rouge}; "
        f"kept is the {direction} {select.metric}"
    )


@contextmanager
def _held(folder: Path, accelerator: Accelerator) -> Iterator[None]:
    """The run folder for this run alone, from before anything in it is changed until the model is exported."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder) if accelerator.is_main_process else nullcontext():
        yield


def _run_folder(out: str | Path) -> Path:
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{out}: is a file; --out names a folder for the run")
    return folder
