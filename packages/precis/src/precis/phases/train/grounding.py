"""Train further on pairs of many sets, with an instruction before each document: Z-Code++'s second phase.

    sets -> at most `cap` pairs of each, instructed -> one mixture -> train, loss per set -> OUT/model

Section 2.1, Eq. 6, Tables 1 and 9. A set's share of the mixture is its size, up to the cap (examples-proportional
mixing with a limit, T5 section 3.5.2). A temperature flattens the shares: small sets are then repeated with other
wordings. Validation uses unseen pairs with held-out wordings, since a grounded model is used that way; `loss` is the
mean over the sets, with equal weights.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
from torch import nn

from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.mixing_shares import BySize
from precis.data.pairs.pair import Pair
from precis.data.tasks.instructions import GENERAL, KINDS, VERSION, wording_for
from precis.data.tasks.tasks import MIXTURES, TASKS
from precis.data.text.encoding import with_instruction
from precis.generation.model_metadata import ModelUse
from precis.messages import Notify
from precis.phases.data.run_pairs import Leaks, PairReader
from precis.phases.data.training_sets import GroundingSet, find_sets
from precis.phases.train.pair_training import (
    PreparedPairs,
    advise_on_validation,
    fit_to_model,
    pair_objective,
    train_on_pairs,
)
from precis.phases.train.trainable_model import TrainableModel, load_trainable, read_as_planned
from precis.phases.train.training_pairs import read_pairs_of, tell_cut
from precis.phases.train.training_session import RunOptions, RunRequest, Session
from precis.phases.train.validation_scores import Sample, Validation, evenly_spaced
from precis.recipes.run_plan import Fusion, RunPlan
from precis.training import Trained
from precis.training.callbacks import Callback
from precis.training.processes import main_process_first
from precis.training.validation import high_of, lead_of, low_of
from precis_text.errors import UserError
from precis_text.row import pluralize

DEFAULT_CAP = 10_000
DEV_ROWS = 200


@dataclass(frozen=True, kw_only=True)
class InstructedPairs:
    """The pairs of a set as model input, with an instruction before every document.

    Attributes:
        drawn: at most `cap` pairs drawn at random.
        train: these with training wordings, once or several times.
        dev: some of the validation pairs, with held-out wordings.
        available: the number of training pairs in the set.
        shared: the number of `dev` pairs whose document is also in `train`.
        readers: the reader of the training pairs and, if the set has a dev split, its reader.
    """

    set: GroundingSet
    drawn: list[Pair]
    train: list[Pair]
    dev: list[Pair]
    available: int
    shared: int
    readers: list[PairReader]


def read_set(
    chosen: GroundingSet, *, cap: int, dev_rows: int, seed: int, instructed: bool = True
) -> InstructedPairs:
    """Read a set and put instructions before its documents.

    The sample depends only on the seed and the set, not on the other sets. Without validation pairs, a part of the
    training pairs is held out.

    Args:
        instructed: put instructions before the documents.

    Raises:
        UserError: the pairs cannot be read.
    """
    pairs = read_pairs_of(chosen.sources, seed=seed)
    rng = np.random.default_rng([seed, zlib.crc32(chosen.name.encode())])
    drawn, available = draw(pairs.train, cap, rng=rng)
    shown = evenly_spaced(pairs.dev, dev_rows)
    leaks = Leaks(shown)
    drawn = list(leaks.watch(drawn))
    return InstructedPairs(
        set=chosen, drawn=drawn, train=_instructed(drawn, chosen, rng) if instructed else drawn,
        dev=_instructed(shown, chosen, rng, held_out=True) if instructed else shown, available=available,
        shared=leaks.count, readers=pairs.readers,
    )  # fmt: skip


def draw(pairs: Iterable[Pair], count: int, *, rng: np.random.Generator) -> tuple[list[Pair], int]:
    """Draw `count` of the pairs at random, or all if there are fewer, in their old order; and count them.

    The pairs are streamed, and at most `count` are kept in memory (Vitter 1985, algorithm R).
    """
    kept: list[tuple[int, Pair]] = []
    seen = 0
    for index, pair in enumerate(pairs):
        seen = index + 1
        if index < count:
            kept.append((index, pair))
        elif (place := int(rng.integers(seen))) < count:
            kept[place] = (index, pair)
    return [pair for _, pair in sorted(kept, key=lambda item: item[0])], seen


def _instructed(
    pairs: Sequence[Pair], chosen: GroundingSet, rng: np.random.Generator, *, held_out: bool = False
) -> list[Pair]:
    """Put an instruction before each document: one of the mixture's, or one of the set's kind."""
    own = chosen.wordings
    return [
        replace(
            pair,
            document=with_instruction(
                pair.document,
                own[int(uniform * len(own))]
                if own
                else wording_for(chosen.kind, pair, uniform, held_out=held_out),
            ),
        )
        for pair, uniform in zip(pairs, rng.random(len(pairs)).tolist(), strict=True)
    ]


def ground(
    run: RunPlan,
    *,
    tasks: Sequence[str],
    start: str,
    data: str | None = None,
    cap: int = DEFAULT_CAP,
    temperature: float = 1.0,
    leave_out: Sequence[str] = (),
    skip_bad: bool = False,
    callbacks: Sequence[Callback] | None = None,
    **asked: Unpack[RunOptions],
) -> Trained:
    """Ground the model `start` in the run folder `out`, or resume that run, and export the best model.

    Args:
        run: from `precis.recipes.planning.resolve_grounding`; `run.train.seed` also seeds the sampling, the wordings
            and the data order.
        tasks: names of tasks, `TASK=PLACE`, files or folders of pairs, or "all"; see `find_sets`.
        start: a pre-trained model (run folder, Hugging Face folder or hub name).
        data: the folder that contains a folder for each task; if None, $PRECIS_DATA or the hub.
        cap: the largest number of pairs to draw from a set.
        temperature: flattens the sets' shares; see `precis.data.mixing_shares.BySize`.
        leave_out: sets to exclude from training, so that scores on them are zero-shot.
        skip_bad: skip unusable rows.
        callbacks, asked: see `precis.phases.train.training_session.RunRequest`.

    Raises:
        UserError: sets, model and settings do not fit together, `out` holds another run, or another process is
            training in it.
        RunError: training failed.
    """
    if cap < 1:
        raise UserError(f"--cap {cap}: use 1 or more")
    shares = BySize(temperature=temperature, limit=cap)
    # the given model has its own shape
    plan = replace(run, model=run.model if isinstance(run.model, Fusion) else None)
    session = Session(RunRequest(start=start, callbacks=callbacks, **asked), pair_objective(plan))
    sets = find_sets(tasks, data=data, leave_out=leave_out, skip_bad=skip_bad)
    read = [read_set(chosen, cap=cap, dev_rows=DEV_ROWS, seed=plan.train.seed) for chosen in sets]
    read = repeated(read, shares, seed=plan.train.seed)
    with session.lock_folder():
        with main_process_first(session.accelerator):
            trainable = load_trainable(start)
        plan, trainable = read_as_planned(plan, trainable, session.notify)
        plan = fit_to_model(plan, trainable, session.notify)
        mixture = _tokenize(plan, _spread(read), trainable)
        use = _use(plan, sets, trainable.use)
        digests = {
            r.set.name: [r.set.mixture or r.set.kind, *(reader.digest for reader in r.readers)] for r in read
        }
        ready = PreparedPairs(
            plan=plan,
            train=mixture,
            validate=MixtureValidation(plan, read, trainable),
            use=use,
            record={"sets": [chosen.to_dict() for chosen in sets]},
            identity={
                "sets": digests,
                "order": list(digests),
                "cap": cap,
                **({"temperature": temperature} if temperature != 1 else {}),
                "dev_rows": DEV_ROWS,
                "wordings": VERSION,
            },
        )
        _tell_sets(read, leave_out, use, session.notify)
        tell_cut(mixture, plan, "", session.notify)
        return train_on_pairs(ready, trainable, session)


def repeated(read: Sequence[InstructedPairs], mixture: BySize, *, seed: int) -> list[InstructedPairs]:
    """Return the sets at their shares of a mixture; repeat small sets, each time in another order and wording."""
    wanted = mixture.counts([max(1, len(each.drawn)) for each in read])
    rng = np.random.default_rng([seed, len(read)])
    fuller = []
    for each, count in zip(read, wanted, strict=True):
        more: list[Pair] = []
        while each.drawn and len(each.train) + len(more) < count:
            left = count - len(each.train) - len(more)
            again = [each.drawn[place] for place in rng.permutation(len(each.drawn))[:left]]
            more += _instructed(again, each.set, rng)
        fuller.append(replace(each, train=[*each.train, *more]))
    return fuller


def _spread(read: Sequence[InstructedPairs]) -> list[tuple[Pair, PairReader]]:
    """Return the training pairs of all sets, each set spread evenly over the whole.

    Many pairs are tokenized together, before truncation: a thousand meetings in a row would take gigabytes.
    """
    places = [
        ((place + 0.5) / len(each.train), pair, each.readers[0])
        for each in read
        for place, pair in enumerate(each.train)
    ]
    return [(pair, reader) for _, pair, reader in sorted(places, key=lambda item: item[0])]


def _tokenize(
    plan: RunPlan, pairs: Sequence[tuple[Pair, PairReader]], trainable: TrainableModel
) -> TokenizedPairs:
    """Tokenize pairs, each given with its reader."""

    def skip(index: int, message: str) -> None:
        reader = pairs[index][1]
        problem = message.partition(": ")[2]
        name = f"a pair (id {pairs[index][0].id})" if pairs[index][0].id else "a pair"
        if not reader.skip_bad:
            raise UserError(f"{reader.part}: {name}: {problem}; remove it, or skip it with --skip-bad")
        reader.count_as_skipped(f"{name}: {problem}")

    return trainable.ids_of((pair for pair, _ in pairs), plan, skip=skip)


class MixtureValidation:
    """The validation of a model on the pairs of every set.

    It returns the metrics of `Validation`, each the mean over the sets; and `loss/NAME` of each set, and `rougeL/NAME`
    where summaries are generated.
    """

    def __init__(self, plan: RunPlan, sets: Sequence[InstructedPairs], trainable: TrainableModel) -> None:
        self._of: dict[str, Validation] = {}
        for read in sets:
            dev = _tokenize(plan, [(pair, read.readers[-1]) for pair in read.dev], trainable)
            share = -(-plan.generated_rows // len(sets))
            shown = evenly_spaced(read.dev, share)
            self._of[read.set.name] = Validation(
                plan, dev, shown, trainable.tokenizer, instruction="", task_name=read.set.sources.task
            )
        self.pairs = sum(validation.pairs for validation in self._of.values())

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
            for metric in ("loss", *(of("rougeL") for of in (str, lead_of, low_of, high_of)))
            for name, metrics in measured.items()
            if metric in metrics
        }


def _use(plan: RunPlan, sets: Sequence[GroundingSet], before: ModelUse) -> ModelUse:
    """Return how to use the grounded model, with the tasks of its earlier training."""
    seen = [*before.grounded_on, *([before.task] if before.task else []), *(chosen.name for chosen in sets)]
    return ModelUse(
        max_source=plan.max_source,
        instruction=_general_instruction(sets),
        grounded_on=tuple(dict.fromkeys(seen)),
        licence=before.licence,
    )


def _general_instruction(sets: Sequence[GroundingSet]) -> str:
    """Return the instruction for documents of unknown kind: one that training has shown."""
    if any(wording.text == GENERAL for s in sets if not s.mixture for wording in KINDS[s.kind].training):
        return GENERAL
    if sets[0].mixture:
        return MIXTURES[sets[0].mixture].instruction
    return TASKS[sets[0].name].instruction


def _tell_sets(
    read: Sequence[InstructedPairs], leave_out: Sequence[str], use: ModelUse, notify: Notify
) -> None:
    for each in read:
        of = f"{len(each.drawn):,} of " if each.available > len(each.drawn) else ""
        times = f", {len(each.train):,} with repeats" if len(each.train) > len(each.drawn) else ""
        skipped = sum(reader.report.skipped_count for reader in each.readers)
        tail = f", {skipped:,} skipped" if skipped else ""
        notify(
            f"{each.set.name}: {of}{pluralize(each.available, 'pair')}{times} from {each.set.sources.train}{tail}; "
            f"{len(each.dev):,} to validate; instructions for: {each.set.mixture or each.set.kind}"
        )
    notify(f"trained on: {', '.join(use.grounded_on)}; a score on one of these is not zero-shot")
    for each in read:
        advise_on_validation(dev_pairs=len(each.dev), shared=each.shared, notify=notify, name=each.set.name)
    if leave_out:
        notify(f"left out: {', '.join(leave_out)}")
