"""Z-Code++'s second phase: go on training on pairs of many sets, each document with an instruction before it.

    sets -> at most `cap` pairs of each, instructed -> one mixture -> train, loss for each set -> OUT/model

Section 2.1, Eq. 6, Tables 1 and 9. A pair's share of the mixture is its set's size, counted up to the cap
(examples-proportional mixing with a limit, T5 section 3.5.2). Validation asks unseen pairs in wordings that are kept
from training, since that is how a grounded model is used; `loss` is the mean over the sets, each counting alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from precis.data.batches.bucketed import TokenizedPairs
from precis.data.pairs.sources import Pair
from precis.data.tasks.instructions import GENERAL, KINDS, VERSION
from precis.data.tasks.tasks import TASKS
from precis.errors import UserError
from precis.generation.loading import model_use
from precis.generation.model_use import ModelUse
from precis.phases.advice import advise_on_rate, advise_on_validation
from precis.phases.grounding_sets import GroundingSet, InstructedPairs, find_sets, read_set
from precis.phases.pair_training import (
    common_identity,
    fit_to_model,
    held,
    pair_batches,
    pair_objective,
    refuse_start_inside,
    tell_cut,
    tell_plan,
    train_and_export,
    with_validation_interval,
)
from precis.phases.places import own_folder
from precis.phases.sources import PairReader
from precis.phases.task_scores import language_of
from precis.phases.trainable import TrainableModel, load_trainable
from precis.phases.validation import Validation, evenly_spaced
from precis.recipes.by_size import TRAINED_FROM_NOTHING, recipe_to_ground
from precis.recipes.catalogue import recipe
from precis.recipes.overrides import refuse_shape, with_changes, with_overrides
from precis.recipes.runs import RunPlan
from precis.telling import Tell, silent
from precis.training import Lowest, Trained
from precis.training.callbacks import Callback
from precis.training.loop import accelerator_for
from precis.training.processes import main_process_first

DEFAULT_CAP = 10_000
DEV_ROWS = 200


def grounding(run: RunPlan) -> RunPlan:
    """A fine-tuning recipe turned into one for grounded pre-training.

    Kept is the checkpoint with the lowest loss, and nothing is generated: no single set's ROUGE speaks for the
    mixture. From small on the settings are those of Table 9, of whose learning rates {2e-6, 5e-6, 1e-5} and epochs
    {10, 20} the largest rate and the fewer epochs are taken. Micro and mini keep their own, larger learning rates.
    """
    train = replace(run.train, select=Lowest())
    if run.name in TRAINED_FROM_NOTHING:
        return replace(run, train=train, generated_rows=0)
    train = replace(
        train,
        epochs=10,
        gradient_accumulation=1,  # ProphetNet's recipes make large batches of several
        learning_rate=1e-5,
        warmup_steps=1500,
        weight_decay=0.01,
        clip_norm=1.0,
        betas=(0.9, 0.999),
        eps=1e-6,
    )
    return replace(run, train=train, batch_size=64, batch_tokens=None, generated_rows=0)


def resolve_grounding(
    name: str | None,
    *,
    start: str,
    changes: Mapping[str, Any] | None = None,
    assignments: Iterable[str] = (),
) -> RunPlan:
    """The run that options describe; `assignments` are texts, `train.learning_rate=3e-4`, and win.

    Args:
        name: a recipe; None: the one of `start`'s size, or the one for pre-trained models of other kinds.
        start: the model that is to be grounded.
        changes: values by dotted name.

    Raises:
        UserError: no such model, an unknown recipe or setting, or a value of another type.
    """
    assignments = list(assignments)
    refuse_shape(assignments)
    run = grounding(recipe(name or recipe_to_ground(start)))
    return with_overrides(with_changes(run, dict(changes or {})), assignments)


def ground(
    run: RunPlan,
    *,
    tasks: Sequence[str],
    start: str,
    out: str | Path,
    data: str | None = None,
    cap: int = DEFAULT_CAP,
    leave_out: Sequence[str] = (),
    skip_bad: bool = False,
    restart: bool = False,
    command: Sequence[str] = (),
    tell: Tell = silent,
    callbacks: Sequence[Callback] | None = None,
) -> Trained:
    """Ground the model `start` in the run folder `out`, or go on with what is there, and export the best model.

    Args:
        run: see `resolve_grounding`; `run.train.seed` also seeds the drawing, the wordings and the data order.
        tasks: names of tasks, `TASK=PLACE`, files or folders of pairs, or "all"; see `find_sets`.
        start: a pre-trained model (run folder, Hugging Face folder or hub name).
        data: the folder that holds a folder for each task; None: $PRECIS_DATA, else the hub.
        cap: pairs that are drawn at most of each set.
        leave_out: sets that are not trained on, so that a zero-shot score on them is one.
        skip_bad: pass over rows that cannot be used.
        restart: forget what is in `out`.
        command: what the user typed, for the record.
        tell: is told in sentences what will happen and what happened.
        callbacks: watchers of the loop; None: the standard ones.

    Raises:
        UserError: sets, model and settings do not fit together, `out` holds another run, or another process is
            training in it.
        RunError: training failed.
    """
    if cap < 1:
        raise UserError(f"--cap {cap}: use 1 or more")
    folder = own_folder(out)
    refuse_start_inside(folder, start)
    run = replace(run, model=None)  # the given one has its own shape
    accelerator = accelerator_for(pair_objective(run))
    say = tell if accelerator.is_main_process else silent
    sets = find_sets(tasks, data=data, leave_out=leave_out, skip_bad=skip_bad)
    read = [read_set(chosen, cap=cap, dev_rows=DEV_ROWS, seed=run.train.seed) for chosen in sets]
    with held(folder, accelerator):
        with main_process_first(accelerator):
            trainable = load_trainable(start, tokenizer=None)
        run = fit_to_model(run, trainable, say)
        mixture = _tokenize(run, _spread(read), trainable, skip_bad)
        validation = MixtureValidation(run, read, trainable, skip_bad=skip_bad)
        use = _use(run, sets, model_use(start))
        _tell_sets(read, leave_out, use, say)
        tell_cut(mixture, run, "", say)
        batches = pair_batches(run, mixture, trainable, accelerator)
        run = with_validation_interval(run, batches.batches_per_epoch)
        tell_plan(run, trainable, validation.pairs, say)
        advise_on_rate(run, say)
        record = {
            "run": run.to_dict(),
            "sets": [chosen.to_dict() for chosen in sets],
            "identity": _identity(run, read, trainable, cap=cap),
            "command": [*command],
        }
        return train_and_export(
            run,
            trainable,
            batches=batches,
            validate=validation,
            folder=folder,
            record=record,
            use=use,
            accelerator=accelerator,
            restart=restart,
            callbacks=callbacks,
        )


def _spread(read: Sequence[InstructedPairs]) -> list[tuple[Pair, PairReader]]:
    """The training pairs of all sets, each set spread evenly over the whole.

    Many pairs are tokenized together, before they are cut: a thousand meetings in a row would take gigabytes.
    """
    places = [
        ((place + 0.5) / len(each.train), pair, each.readers[0])
        for each in read
        for place, pair in enumerate(each.train)
    ]
    return [(pair, reader) for _, pair, reader in sorted(places, key=lambda item: item[0])]


def _tokenize(
    run: RunPlan, pairs: Sequence[tuple[Pair, PairReader]], trainable: TrainableModel, skip_bad: bool
) -> TokenizedPairs:
    """Token ids of pairs, each with the reader that it came from."""

    def skip(index: int, message: str) -> None:
        reader = pairs[index][1]
        problem = message.partition(": ")[2]
        name = f"a pair (id {pairs[index][0].id})" if pairs[index][0].id else "a pair"
        if not skip_bad:
            raise UserError(f"{reader.part}: {name}: {problem}; remove it, or leave it out with --skip-bad")
        reader.count_as_skipped(f"{name}: {problem}")

    return TokenizedPairs.from_pairs(
        (pair for pair, _ in pairs),
        trainable.tokenizer,
        max_source=run.max_source,
        max_target=run.max_target,
        decoder_start_token_id=trainable.decoder_start,
        skip=skip,
    )


class MixtureValidation:
    """Measures a model on the validation pairs of every set.

    The metrics of `Validation`, each the mean over the sets; and for each set `loss/NAME`, and `rougeL/NAME` where
    summaries are generated.
    """

    def __init__(
        self, run: RunPlan, sets: Sequence[InstructedPairs], trainable: TrainableModel, *, skip_bad: bool
    ) -> None:
        self.pairs = 0
        self._of: dict[str, Validation] = {}
        for read in sets:
            dev = _tokenize(run, [(pair, read.readers[-1]) for pair in read.dev], trainable, skip_bad)
            share = -(-run.generated_rows // len(sets))
            shown = evenly_spaced(read.dev, share) if share else []
            language = language_of(read.set.sources.task)
            self._of[read.set.name] = Validation(
                run, dev, shown, trainable.tokenizer, instruction="", language=language
            )
            self.pairs += len(dev)

    def __call__(self, model: nn.Module) -> Mapping[str, float]:
        """Measure; the model is in evaluation mode."""
        measured = {name: validation(model) for name, validation in self._of.items()}
        first = next(iter(measured.values()))
        means = {metric: sum(m[metric] for m in measured.values()) / len(measured) for metric in first}
        return means | {
            f"{metric}/{name}": metrics[metric]
            for metric in ("loss", "rougeL")
            for name, metrics in measured.items()
            if metric in metrics
        }


def _use(run: RunPlan, sets: Sequence[GroundingSet], before: ModelUse) -> ModelUse:
    """How the grounded model is to be used; what it was trained on before is not forgotten."""
    seen = [*before.grounded_on, *([before.task] if before.task else []), *(chosen.name for chosen in sets)]
    is_general = any(wording.text == GENERAL for s in sets for wording in KINDS[s.kind].training)
    return ModelUse(
        max_source=run.max_source,
        instruction=GENERAL if is_general else TASKS[sets[0].name].instruction,
        grounded_on=tuple(dict.fromkeys(seen)),
    )


def _identity(
    run: RunPlan, read: Sequence[InstructedPairs], trainable: TrainableModel, *, cap: int
) -> dict[str, Any]:
    """What the curve depends on besides the loop's settings."""
    sets = {r.set.name: [r.set.kind, *(reader.digest for reader in r.readers)] for r in read}
    return {
        **common_identity(run, trainable),
        "sets": sets,
        "order": list(sets),
        "cap": cap,
        "dev_rows": DEV_ROWS,
        "wordings": VERSION,
    }


def _tell_sets(read: Sequence[InstructedPairs], leave_out: Sequence[str], use: ModelUse, tell: Tell) -> None:
    for each in read:
        of = f" of {each.available:,}" if each.available > len(each.train) else ""
        skipped = sum(reader.report.skipped_count for reader in each.readers)
        tail = f", {skipped:,} skipped" if skipped else ""
        tell(
            f"{each.set.name}: {len(each.train):,}{of} pairs from {each.set.sources.train}{tail}; "
            f"{len(each.dev):,} to validate; instructions for: {each.set.kind}"
        )
    tell(f"trained on: {', '.join(use.grounded_on)}; a score on one of these is no zero-shot score")
    for each in read:
        advise_on_validation(dev_pairs=len(each.dev), shared=each.shared, tell=tell, name=each.set.name)
    if leave_out:
        tell(f"left out: {', '.join(leave_out)}")
