"""Plan the training of an adapter: apply the user's settings to the paper's, and check all before training.

An encoder-decoder gets a prefix, a causal language model a low-rank adapter.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Unpack, overload

from precis.generation.model_location import locate
from precis.phases.data.run_pairs import NamedPairs, PairSources, examples_in_share, named_pairs
from precis.phases.plans.finetuning_plan import DrawnPairsOptions, NamedPairsOptions
from precis.phases.search.grid_search import Searched, refuse_search, refuse_without_search
from precis.phases.search.grid_search import search as run_search
from precis.phases.search.prefix_search import PrefixSpace, TunedPrefix, prefix_space
from precis.phases.train.pair_training import PairRequest
from precis.phases.train.prefix_tuning import tune as run_tuning
from precis.phases.train.writer_training import train_writer
from precis.recipes.adapter_recipes import (
    LORA,
    TunePlan,
    resolve_low_rank,
    resolve_prefix,
    resolve_tuning,
    split_assignments,
    wants_a_rate,
)
from precis.recipes.run_options import option_changes
from precis.recipes.run_plan import RunPlan
from precis.training import Trained
from precis.tuning.low_rank import LowRank
from precis_text.errors import UserError

DEFAULT_METHOD = "hierblock+softsa"


class TuningOptions(DrawnPairsOptions, total=False):
    """The options of `precis tune` besides its base and its pairs, as keyword arguments.

    Attributes:
        settings: settings of the prefix, such as `prefix.length=20`, and of the training.
        method: how tokens attend to the prefix, one of `precis.tuning.discourse.METHODS`; or "lora" for a causal
            language model. If None, lora for a causal language model, else hierblock+softsa.
        share: share of the training pairs to draw instead of `examples`, in (0, 1].
    """

    method: str | None
    share: float | None


class NamedTuningOptions(TuningOptions, NamedPairsOptions, total=False):
    """The options of `precis tune` besides its base and the place of its pairs."""

    units_column: str | None


@dataclass(frozen=True, kw_only=True)
class PrefixTuning:
    """A planned training of a prefix: everything is chosen and checked, and nothing is trained or written yet.

    Attributes:
        prefix: the prefix and its attention.
        plan: training settings, lengths and decoding.
        request: base, pairs and run folder.
        space: the grid of a search; if None, the prefix is trained once.
        trials: number of points of the grid to try; if None, all.
    """

    prefix: TunePlan
    plan: RunPlan
    request: PairRequest
    space: PrefixSpace | None = None
    trials: int | None = None

    def run(self) -> Trained:
        """Train in the run folder, or resume that run, and export the best adapter.

        Raises:
            UserError: data, base and settings do not fit together, or the folder holds another run.
            RunError: training failed.
        """
        return run_tuning(self.prefix, self.plan, self.request)

    def search(self) -> Searched:
        """Train at the points of `space`, and export the best adapter; or resume that.

        Raises:
            UserError: Optuna is not installed, settings are inconsistent, or the folder contains another search.
            RunError: training failed, or no trial succeeded.
        """
        space = PrefixSpace() if self.space is None else self.space
        subject = TunedPrefix(prefix=self.prefix, run=self.plan)
        return run_search(subject, self.request, space=space, trials=self.trials)


@dataclass(frozen=True, kw_only=True)
class LowRankTuning:
    """A planned training of a low-rank adapter; see `PrefixTuning`."""

    low_rank: LowRank
    plan: RunPlan
    request: PairRequest

    def run(self) -> Trained:
        """Train in the run folder, or resume that run, and export the best adapter; see `PrefixTuning.run`."""
        return train_writer(self.plan, self.request, low_rank=self.low_rank)


def plan_tuning(
    base: str | Path, pairs: NamedPairs, *, search: bool = False, **options: Unpack[TuningOptions]
) -> PrefixTuning | LowRankTuning:
    """Apply the options to the paper's settings, and check all before training.

    Args:
        base: the model to attach to, which does not change: a run folder, a Hugging Face folder or a hub name.
        pairs: the pairs to train on and to validate on.
        search: a search over the ranges of Table 7, for a prefix.
        options: see `TuningOptions`.

    Raises:
        UserError: options exclude each other, the pairs are not found, or a method, task or setting is unknown.
    """
    refuse_without_search(options, search=search)
    method = _method(str(base), options.get("method"))
    if method == LORA:
        return _plan_low_rank(base, pairs, options, search=search)
    of_prefix, of_run = split_assignments(options.get("settings") or ())
    prefix = resolve_prefix(pairs.task, method, of_prefix)
    changes = option_changes(options)
    plan = resolve_tuning(pairs.task, changes=changes, assignments=of_run, select=options.get("select"))
    set_rate = "train.learning_rate" in changes or any("train.learning_rate" in each for each in of_run)
    if wants_a_rate(prefix) and not set_rate:
        raise UserError(
            "prefix.keys=direct and initial_text train keys and values directly, for which the default rate of 5e-5 is "
            "far too small; add --lr (0.1 to 0.3 for a base of a few million parameters)"
        )
    units = pairs.units_column
    if units is not None and "units=marked" not in [each.replace(" ", "") for each in of_prefix]:
        raise UserError(f"--units-column {units} is for --set units=marked; add that, or omit it")
    request = _request(base, pairs, options, seed=plan.train.seed)
    if not search:
        refuse_search(request.out)
        return PrefixTuning(prefix=prefix, plan=plan, request=request)
    asked = [*option_changes(options), *(text.partition("=")[0].strip() for text in (*of_prefix, *of_run))]
    space = prefix_space(prefix.method, asked=asked, ranges=options.get("space") or ())
    trials = options.get("trials")
    return PrefixTuning(prefix=prefix, plan=plan, request=request, space=space, trials=trials)


def _method(base: str, method: str | None) -> str:
    """Return the method for a base: the given one, or the usual one for its kind of model.

    A missing base is not an error here: without it, settings that contradict each other are refused first.

    Raises:
        UserError: the method is lora, and the base is missing or an encoder-decoder.
    """
    if method not in (None, LORA):
        return method
    try:
        is_writer = locate(base).is_writer
    except UserError:
        if method == LORA:
            raise
        return DEFAULT_METHOD
    if method == LORA and not is_writer:
        raise UserError(
            f"--method {LORA} is for causal language models, and {base} is not one; use --method {DEFAULT_METHOD}, or "
            "another prefix"
        )
    return LORA if is_writer else DEFAULT_METHOD


def _plan_low_rank(
    base: str | Path, pairs: NamedPairs, options: TuningOptions, *, search: bool
) -> LowRankTuning:
    """Plan the training of a low-rank adapter."""
    if search:
        raise UserError(f"--search is for prefixes, and {base} is a causal language model; omit it")
    if pairs.units_column is not None:
        raise UserError(f"--units-column {pairs.units_column} is for a prefix with blocks; omit it")
    low_rank, plan = resolve_low_rank(
        pairs.task,
        changes=option_changes(options),
        assignments=options.get("settings") or (),
        select=options.get("select"),
    )
    request = _request(base, pairs, options, seed=plan.train.seed)
    refuse_search(request.out)
    return LowRankTuning(low_rank=low_rank, plan=plan, request=request)


def _request(base: str | Path, pairs: NamedPairs, options: TuningOptions, *, seed: int) -> PairRequest:
    """Return the pairs, the base and the run folder of a training whose run has this seed."""
    sources = pairs.sources()
    examples = _examples(sources, options, seed=seed)
    names = PairRequest.__dataclass_fields__.keys() - {"sources", "start", "examples"}
    given = {name: value for name, value in options.items() if name in names}
    return PairRequest(sources=sources, start=str(base), examples=examples, **given)  # type: ignore[arg-type]


@overload
def tune(
    base: str | Path,
    data: str | Path | None = None,
    *,
    search: Literal[False] = False,
    **options: Unpack[NamedTuningOptions],
) -> Trained: ...


@overload
def tune(
    base: str | Path,
    data: str | Path | None = None,
    *,
    search: Literal[True],
    **options: Unpack[NamedTuningOptions],
) -> Searched: ...


def tune(
    base: str | Path,
    data: str | Path | None = None,
    *,
    search: bool = False,
    **options: Unpack[NamedTuningOptions],
) -> Trained | Searched:
    """Train a prefix, or a causal language model's low-rank adapter, as `precis tune` does; a repeated call resumes.

    Args:
        base: the model to attach to, which does not change: a run folder, a Hugging Face folder or a hub name.
        data: a file of pairs, a folder with train, dev and test files, or `hub:owner/name`; with `task`, the folder
            of the task's files.
        search: a search over the ranges of Table 7.
        options: `out`, the run folder; and `task`, `dev`, `document_column`, `summary_column`, `units_column`,
            `skip_bad`; and those of `TuningOptions`.

    Returns:
        The finished or interrupted run; for a search, its trials and the best adapter.

    Raises:
        UserError: data, base and settings do not fit together, or `out` holds another run.
        RunError: training failed.

    Examples:
        >>> brief = ["prefix.length=4", "generated_rows=0", "train.select=loss"]
        >>> done = tune("runs/news", "pairs", out="runs/prefix", steps=1, learning_rate=0.003, settings=brief)
        >>> (done.folder / "adapter" / "adapter.json").is_file()
        True
    """
    pairs, others = named_pairs(data, options)
    planned = plan_tuning(base, pairs, search=search, **others)
    if search:
        assert isinstance(planned, PrefixTuning)
        return planned.search()
    return planned.run()


def _examples(sources: PairSources, options: TuningOptions, *, seed: int) -> int | None:
    """Return the number of pairs to draw; None for all."""
    examples, share = options.get("examples"), options.get("share")
    if examples is not None and share is not None:
        raise UserError(f"--examples {examples} and --share {share:g} exclude each other; give one of them")
    if share is not None:
        return examples_in_share(sources, share, seed=seed)
    if examples is None and options.get("sampling_seed") is not None:
        raise UserError("--sampling-seed selects the pairs for --examples or --share; add one of them")
    return examples
