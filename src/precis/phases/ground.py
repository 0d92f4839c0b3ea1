"""Z-Code++'s second phase: go on training on pairs of many sets, each document with an instruction before it.

    sets -> at most `cap` pairs of each, instructed -> one mixture -> train, loss for each set -> OUT/model

Section 2.1, Eq. 6, Tables 1 and 9. A pair's share of the mixture is its set's size, counted up to the cap
(examples-proportional mixing with a limit, T5 section 3.5.2). Validation asks unseen pairs in wordings that are kept
from training, since that is how a grounded model is used; `loss` is the mean over the sets, each counting alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from torch import nn

from precis.data.batches.tokenized import TokenizedPairs
from precis.data.pairs.pair import Pair
from precis.data.tasks.instructions import GENERAL, KINDS, VERSION
from precis.data.tasks.tasks import TASKS
from precis.errors import UserError
from precis.generation.loading import model_use
from precis.generation.model_use import ModelUse
from precis.phases.grounding_sets import GroundingSet, InstructedPairs, find_sets, read_set
from precis.phases.pair_training import advise_on_validation, fit_to_model, pair_objective, train_on_pairs
from precis.phases.run_folder import export_model
from precis.phases.session import MODEL_FOLDER, RunOptions, RunRequest, Session
from precis.phases.sources import PairReader
from precis.phases.task_scores import language_of
from precis.phases.trainable import TrainableModel, load_trainable
from precis.phases.training_pairs import tell_cut
from precis.phases.validation import Sample, Validation, evenly_spaced
from precis.recipes.plans import resolve_grounding
from precis.recipes.runs import RunPlan
from precis.telling import Tell
from precis.training import Trained
from precis.training.callbacks import Callback
from precis.training.processes import main_process_first

__all__ = ["ground", "resolve_grounding"]

DEFAULT_CAP = 10_000
DEV_ROWS = 200


def ground(
    run: RunPlan,
    *,
    tasks: Sequence[str],
    start: str,
    data: str | None = None,
    cap: int = DEFAULT_CAP,
    leave_out: Sequence[str] = (),
    skip_bad: bool = False,
    callbacks: Sequence[Callback] | None = None,
    **asked: Unpack[RunOptions],
) -> Trained:
    """Ground the model `start` in the run folder `out`, or go on with what is there, and export the best model.

    Args:
        run: see `resolve_grounding`; `run.train.seed` also seeds the drawing, the wordings and the data order.
        tasks: names of tasks, `TASK=PLACE`, files or folders of pairs, or "all"; see `find_sets`.
        start: a pre-trained model (run folder, Hugging Face folder or hub name).
        data: the folder that holds a folder for each task; if None, $PRECIS_DATA or the hub.
        cap: pairs that are drawn at most of each set.
        leave_out: sets that are not trained on, so that a zero-shot score on them is one.
        skip_bad: pass over rows that cannot be used.
        callbacks, asked: as `precis.phases.session.RunRequest` explains them.

    Raises:
        UserError: sets, model and settings do not fit together, `out` holds another run, or another process is
            training in it.
        RunError: training failed.
    """
    if cap < 1:
        raise UserError(f"--cap {cap}: use 1 or more")
    plan = replace(run, model=None)  # the given one has its own shape
    session = Session(RunRequest(start=start, callbacks=callbacks, **asked), pair_objective(plan))
    sets = find_sets(tasks, data=data, leave_out=leave_out, skip_bad=skip_bad)
    read = [read_set(chosen, cap=cap, dev_rows=DEV_ROWS, seed=plan.train.seed) for chosen in sets]
    with session.held():
        with main_process_first(session.accelerator):
            trainable = load_trainable(start, tokenizer=None)
        plan = fit_to_model(plan, trainable, session.tell)
        mixture = _tokenize(plan, _spread(read), trainable, skip_bad)
        validation = MixtureValidation(plan, read, trainable, skip_bad=skip_bad)
        use = _use(plan, sets, model_use(start))
        _tell_sets(read, leave_out, use, session.tell)
        tell_cut(mixture, plan, "", session.tell)
        model = trainable.model, trainable.tokenizer
        return train_on_pairs(
            plan,
            trainable,
            session,
            data=mixture,
            validate=validation,
            dev_pairs=validation.pairs,
            record={"sets": [chosen.to_dict() for chosen in sets], "identity": _identity(read, cap=cap)},
            export=lambda: export_model(*model, plan.generation, use, session.folder / MODEL_FOLDER),
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
    plan: RunPlan, pairs: Sequence[tuple[Pair, PairReader]], trainable: TrainableModel, skip_bad: bool
) -> TokenizedPairs:
    """Token ids of pairs, each with the reader that it came from."""

    def skip(index: int, message: str) -> None:
        reader = pairs[index][1]
        problem = message.partition(": ")[2]
        name = f"a pair (id {pairs[index][0].id})" if pairs[index][0].id else "a pair"
        if not skip_bad:
            raise UserError(f"{reader.part}: {name}: {problem}; remove it, or leave it out with --skip-bad")
        reader.count_as_skipped(f"{name}: {problem}")

    return trainable.ids_of((pair for pair, _ in pairs), plan, skip=skip)


class MixtureValidation:
    """Measures a model on the validation pairs of every set.

    The metrics of `Validation`, each the mean over the sets; and for each set `loss/NAME`, and `rougeL/NAME` where
    summaries are generated.
    """

    def __init__(
        self, plan: RunPlan, sets: Sequence[InstructedPairs], trainable: TrainableModel, *, skip_bad: bool
    ) -> None:
        self.pairs = 0
        self._of: dict[str, Validation] = {}
        for read in sets:
            dev = _tokenize(plan, [(pair, read.readers[-1]) for pair in read.dev], trainable, skip_bad)
            share = -(-plan.generated_rows // len(sets))
            shown = evenly_spaced(read.dev, share) if share else []
            language = language_of(read.set.sources.task)
            self._of[read.set.name] = Validation(
                plan, dev, shown, trainable.tokenizer, instruction="", language=language
            )
            self.pairs += len(dev)

    @property
    def samples(self) -> list[Sample]:
        """One summary of each of the first two sets."""
        return [sample for validation in self._of.values() for sample in validation.samples[:1]][:2]

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


def _use(plan: RunPlan, sets: Sequence[GroundingSet], before: ModelUse) -> ModelUse:
    """How the grounded model is to be used; what it was trained on before is not forgotten."""
    seen = [*before.grounded_on, *([before.task] if before.task else []), *(chosen.name for chosen in sets)]
    is_general = any(wording.text == GENERAL for s in sets for wording in KINDS[s.kind].training)
    return ModelUse(
        max_source=plan.max_source,
        instruction=GENERAL if is_general else TASKS[sets[0].name].instruction,
        grounded_on=tuple(dict.fromkeys(seen)),
    )


def _identity(read: Sequence[InstructedPairs], *, cap: int) -> dict[str, Any]:
    """What the loss curve depends on, of the mixture."""
    sets = {r.set.name: [r.set.kind, *(reader.digest for reader in r.readers)] for r in read}
    return {"sets": sets, "order": list(sets), "cap": cap, "dev_rows": DEV_ROWS, "wordings": VERSION}


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
