"""Plan a fine-tuning: choose its recipe and its starting point, apply the user's settings, check all before training.

pairs, options -> recipe and model -> plan -> FineTuning -> run, or a search over plans
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, overload

from precis.data.tasks.label_schema import answers_of
from precis.data.tasks.tasks import task as task_named
from precis.evaluation.task_scores import label_measure, task_scorers
from precis.generation.model_location import locate
from precis.phases.data.run_pairs import NamedPairs, PairSources, named_pairs, text_of
from precis.phases.search.grid_search import FineTunedModel, Searched, refuse_search, refuse_without_search
from precis.phases.search.grid_search import search as run_search
from precis.phases.search.search_space import SearchSpace, resolve_space
from precis.phases.train.finetuning import finetune as run_finetuning
from precis.phases.train.pair_training import PairRequest
from precis.phases.train.starting_point import (
    Beginning,
    begin_as_recipe_says,
    choose_advice,
    choose_beginning,
)
from precis.phases.train.training_session import RunOptions
from precis.recipes.catalogue import (
    FOR_PRETRAINED,
    FOR_WRITERS,
    FROM_DEFAULT,
    RECIPES,
    TRAINED_FROM_NOTHING,
    recipe_to_finetune,
)
from precis.recipes.overrides import asks_for_shape, check_on_pairs, names_asked
from precis.recipes.planning import Answer, in_words, resolve_run, zero_shot
from precis.recipes.run_options import PairTrainingOptions, check_seed, option_changes
from precis.recipes.run_plan import RunPlan
from precis.training import Callback, Trained, standard_callbacks
from precis_text.errors import UserError


class DrawnPairsOptions(RunOptions, PairTrainingOptions, total=False):
    """The options that `precis finetune` and `precis tune` share, as keyword arguments.

    Attributes:
        instruction: text before each document; if None, the task's for a grounded model, else none.
        examples: train on this many pairs, drawn at random; a fine-tuning then ends once the score stops improving.
        sampling_seed: random seed for drawing these pairs only; if None, `seed`.
        trials: number of points of a search to train, drawn at random; if None, all.
        space: values for a search, such as `learning_rate=1e-4,3e-4`.
        callbacks: callbacks of the loop; if None, the standard ones. A search uses the standard ones.
    """

    instruction: str | None
    examples: int | None
    sampling_seed: int | None
    trials: int | None
    space: Sequence[str]
    callbacks: Sequence[Callback] | None


class NamedPairsOptions(TypedDict, total=False):
    """The options that name pairs and their columns, besides their place; see `NamedPairs`."""

    task: str | None
    dev: str | Path | None
    document_column: str | None
    summary_column: str | None
    skip_bad: bool


class FineTuningOptions(DrawnPairsOptions, total=False):
    """The options of `precis finetune` besides its pairs, as keyword arguments.

    Attributes:
        model: a model to start from: a run folder, a model folder or a hub name. If None, the recipe decides.
        recipe: shape and training settings. If None, chosen by `model`, or by the number of pairs and their language.
        tokenizer: folder of a new model's tokenizer; if None, one is trained on the pairs.
        answer: for tasks with labels or numbers: "text", the decoder writes the answer; "head", a classifier on the
            encoder predicts it.
    """

    model: str | Path | None
    recipe: str | None
    tokenizer: str | Path | None
    answer: Answer


class NamedFineTuningOptions(FineTuningOptions, NamedPairsOptions, total=False):
    """The options of `precis finetune` besides the place of its pairs."""


@dataclass(frozen=True, kw_only=True)
class FineTuning:
    """A planned fine-tuning: everything is chosen and checked, and nothing is trained or written yet.

    Attributes:
        plan: shape, training settings, lengths and decoding.
        request: pairs, starting point and run folder.
        space: the grids of a search; if None, `plan` is trained once.
        trials: number of points of the training grid to try; if None, all.
    """

    plan: RunPlan
    request: PairRequest
    space: SearchSpace | None = None
    trials: int | None = None

    def run(self) -> Trained:
        """Train in the run folder, or resume that run, and export the best model.

        Raises:
            UserError: data, model and settings do not fit together, or the folder holds another run.
            RunError: training failed.
        """
        return run_finetuning(self.plan, self.request)

    def search(self) -> Searched:
        """Train at the points of `space`, decode the best model in several ways, and export it; or resume that.

        Raises:
            UserError: Optuna is not installed, settings are inconsistent, or the folder contains another search.
            RunError: training failed, or no trial succeeded.
        """
        space = SearchSpace() if self.space is None else self.space
        return run_search(
            FineTunedModel(run=self.plan),
            self.request,
            space=space,
            trials=self.trials,
            callbacks=standard_callbacks,
        )


def plan_finetuning(
    pairs: NamedPairs, *, search: bool = False, **options: Unpack[FineTuningOptions]
) -> FineTuning:
    """Choose recipe and starting point, apply the options, and check all before training.

    Args:
        pairs: the pairs to train on and to validate on.
        search: a grid search over training settings (Z-Code++ Table 8), then over the best model's decoding.
        options: see `FineTuningOptions`.

    Raises:
        UserError: options exclude each other, the pairs are not found, or a recipe, task or setting is unknown.

    Examples:
        >>> from precis.phases.data.run_pairs import NamedPairs
        >>> planned = plan_finetuning(NamedPairs(data="pairs"), out="runs/first", recipe="zcodepp-micro", epochs=2)
        >>> planned.plan.name, planned.plan.train.epochs
        ('zcodepp-micro', 2)
    """
    _check_together(options, search=search)
    if options.get("examples") == 0:
        raise zero_shot(
            model=text_of(options.get("model")),
            data=pairs.typed,
            instruction=options.get("instruction") or "",
            out=f"{options['out']}/evaluation",
        )
    if options.get("answer") == "head":
        answers_of(pairs.task)
    option_changes(options)  # refuse contradictions before reading anything
    sources = pairs.sources()
    plan, model = _resolve(sources, pairs.task, options, search=search)
    request = _request(sources, model, options)
    if search:
        changed = names_asked(option_changes(options), options.get("settings") or ())
        space = resolve_space(
            plan, examples=request.examples, asked=changed, ranges=options.get("space") or ()
        )
        return FineTuning(plan=plan, request=request, space=space, trials=options.get("trials"))
    refuse_search(request.out)
    return FineTuning(plan=plan, request=request)


@overload
def finetune(
    data: str | Path | None = None,
    *,
    search: Literal[False] = False,
    **options: Unpack[NamedFineTuningOptions],
) -> Trained: ...


@overload
def finetune(
    data: str | Path | None = None, *, search: Literal[True], **options: Unpack[NamedFineTuningOptions]
) -> Searched: ...


def finetune(
    data: str | Path | None = None, *, search: bool = False, **options: Unpack[NamedFineTuningOptions]
) -> Trained | Searched:
    """Train a summarizer on pairs of document and summary, as `precis finetune` does; a repeated call resumes the run.

    Args:
        data: a file of pairs, a folder with train, dev and test files, or `hub:owner/name`; with `task`, the folder
            of the task's files.
        search: a grid search over training settings, then over the best model's decoding.
        options: `out`, the run folder; and `task`, `dev`, `document_column`, `summary_column`, `skip_bad`; and those
            of `FineTuningOptions`.

    Returns:
        The finished or interrupted run; for a search, its trials and the best model.

    Raises:
        UserError: data, model and settings do not fit together, or `out` holds another run.
        RunError: training failed.

    Examples:
        >>> shape = ["model.hidden_size=16", "model.encoder_layers=1", "model.decoder_layers=1"]
        >>> done = finetune("pairs", out="runs/first", recipe="zcodepp-micro", epochs=1, settings=shape)
        >>> (done.folder / "model" / "model.safetensors").is_file()
        True
    """
    _refuse_unnamed(data, options)
    pairs, others = named_pairs(data, options)
    planned = plan_finetuning(pairs, search=search, **others)
    return planned.search() if search else planned.run()


def _refuse_unnamed(data: str | Path | None, options: Mapping[str, Any]) -> None:
    """Refuse a call without a run folder, and a recipe in the place of the pairs."""
    if isinstance(data, str) and data in RECIPES and not Path(data).exists():
        raise UserError(
            f"{data}: is a recipe; the pairs come first: finetune(PAIRS, out=RUN, recipe={data!r})"
        )
    if options.get("out") is None:
        raise UserError("name a folder for the run: finetune(PAIRS, out=RUN)")


def _check_together(options: FineTuningOptions, *, search: bool) -> None:
    """Refuse options that exclude each other, whatever the data."""
    check_seed("--sampling-seed", options.get("sampling_seed"))
    if options.get("sampling_seed") is not None and options.get("examples") is None:
        raise UserError("--sampling-seed selects the pairs for --examples; add --examples")
    refuse_without_search(options, search=search)
    if options.get("answer") == "head" and search:
        raise UserError("--search is for models that write; omit --search or --answer head")
    recipe = options.get("recipe")
    if recipe in ("pretrained", "pretrained-small", FOR_WRITERS) and options.get("model") is None:
        raise UserError(f"--recipe {recipe} is for an existing model; name it with --model, or omit --recipe")


def _resolve(
    sources: PairSources, task: str | None, options: FineTuningOptions, *, search: bool
) -> tuple[RunPlan, str | None]:
    """Return the plan and the starting model, and log the choices."""
    notify, answer = options.get("notify"), options.get("answer", "text")
    examples = options.get("examples")
    beginning = _beginning(sources, task, options, search=search)
    if beginning.why and notify is not None:
        notify(beginning.why)
    plan = _plan(beginning.recipe, task, options, pretrained=beginning.model is not None)
    if examples is not None and notify is not None:
        notify(in_words(plan))
    if beginning.model is None and beginning.recipe not in TRAINED_FROM_NOTHING:
        _refuse_small_rate(plan, options)
    labels = task is not None and label_measure(task_named(task).metrics) is not None
    if beginning.recipe == FROM_DEFAULT and notify is not None and not labels:
        notify(choose_advice(sources))
    scores = task_scorers(task_named(task).metrics) if task is not None else ()
    check_on_pairs(plan, labels=scores, by_head=answer == "head")
    return plan, beginning.model


def _plan(
    recipe: str | None, task: str | None, options: FineTuningOptions, *, pretrained: bool = False
) -> RunPlan:
    """Return the plan of a recipe with the user's options."""
    return resolve_run(
        recipe, pretrained=pretrained, task_name=task, examples=options.get("examples"),
        changes=option_changes(options), assignments=options.get("settings") or (),
        select=options.get("select"), answer=options.get("answer", "text"),
    )  # fmt: skip


def _refuse_small_rate(plan: RunPlan, options: FineTuningOptions) -> None:
    """Refuse to train random weights at a pre-trained model's learning rate, unless the user names a rate."""
    if "train.learning_rate" not in names_asked(option_changes(options), options.get("settings") or ()):
        raise UserError(
            f"--recipe {plan.name}: its rate of {plan.train.learning_rate:g} is for pre-trained weights, and random "
            "ones would learn next to nothing; name a model with --model, or a rate of your own with --lr"
        )


def _beginning(
    sources: PairSources, task: str | None, options: FineTuningOptions, *, search: bool
) -> Beginning:
    """Return the recipe and the starting model: as given, or by the other of the two, or by the pairs."""
    recipe, model = options.get("recipe"), text_of(options.get("model"))
    if search and model is not None and locate(model).is_writer:
        raise UserError(f"{model}: is a causal language model, and --search is for encoder-decoders; omit it")
    if recipe is not None and model is not None:
        return Beginning(recipe=recipe, model=model)
    if recipe is not None:
        return begin_as_recipe_says(recipe)
    if model is not None:
        return _suited_to(model)
    if search:
        return Beginning(recipe="zcodepp-mini")
    _plan(None, task, options)  # refuses options that no recipe allows before the pairs are counted
    shape = options.get("tokenizer") is not None or asks_for_shape(options.get("settings") or ())
    return choose_beginning(
        sources,
        examples=options.get("examples"),
        begun=None if options.get("restart") else Path(options["out"]),
        asks_for_new=shape or options.get("answer") == "head",
    )


def _suited_to(model: str) -> Beginning:
    """Return the recipe whose training settings suit a given model."""
    chosen = recipe_to_finetune(model)
    if chosen in (FOR_PRETRAINED, FOR_WRITERS):
        kind = "pre-trained" if chosen == FOR_PRETRAINED else "causal language"
        why = f"no --recipe: the settings for {kind} models (--recipe {chosen})"
    else:
        why = f"no --recipe: the training settings of {chosen}, the size of this model"
    return Beginning(recipe=chosen, model=model, why=why)


def _request(sources: PairSources, model: str | None, options: FineTuningOptions) -> PairRequest:
    names = PairRequest.__dataclass_fields__.keys() - {"sources", "start", "tokenizer"}
    given = {name: value for name, value in options.items() if name in names}
    tokenizer = text_of(options.get("tokenizer"))
    return PairRequest(sources=sources, start=model, tokenizer=tokenizer, **given)  # type: ignore[arg-type]
