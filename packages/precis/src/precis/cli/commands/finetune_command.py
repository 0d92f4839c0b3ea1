"""`precis finetune`: train a summarizer on pairs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from precis.cli.framework.command_class import described, words_of
from precis.cli.framework.next_steps import NamedPairs, next_commands
from precis.cli.framework.options import (
    ColumnOptions,
    Data,
    Dev,
    InstructionToTrain,
    RunFolder,
    SamplingSeed,
    TaskToTrain,
    TrainingSettings,
    begin,
    recipe_names,
    run_changes,
)
from precis_text.errors import UserError

if TYPE_CHECKING:
    from precis.recipes.run_plan import RunPlan


Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        help=(
            "Encoder-decoder to start from: a run folder, a model folder, hub:owner/name, or default, the model "
            "included with precis."
        ),
    ),
]
Recipe = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        help=(
            "Shape and training settings of a new model: zcodepp-few, -demo, -micro, -mini, -small, -base or "
            "-large, or prophetnet-micro, -mini, -base or -large. pretrained, pretrained-small: training "
            "settings for --model. pretrained-few: start from the model included with precis. Default: by the number "
            "of pairs and their language, or by the type and size of --model."
        ),
        autocompletion=recipe_names,
    ),
]
Tokenizer = Annotated[
    str | None,
    typer.Option("--tokenizer", help="Tokenizer of a new model. Default: train one on the pairs."),
]
Patience = Annotated[
    int | None,
    typer.Option(
        "--patience",
        help="Stop after this many validations without improvement. Default: never; 5 with --examples.",
    ),
]
Select = Annotated[
    str | None,
    typer.Option(
        "--select",
        help=(
            "Metric that selects the best checkpoint: loss, nll, accuracy, rouge1, rouge2 or rougeL. Default: "
            "the recipe's."
        ),
    ),
]


class AnswerName(StrEnum):
    """`precis.recipes.planning.Answer` as a choice on the command line."""

    text = "text"
    head = "head"


AnswerOption = Annotated[
    AnswerName,
    typer.Option(
        "--answer",
        help=(
            "For tasks with labels or numbers, such as mnli. text: the decoder writes the answer. head: a classifier "
            "on the encoder predicts it (Z-Code++ only)."
        ),
    ),
]
Examples = Annotated[
    int | None,
    typer.Option(
        "--examples",
        help="Few-shot: train on this many random pairs until the score stops improving.",
    ),
]
Search = Annotated[
    bool,
    typer.Option(
        "--search",
        help=("Grid search over training settings (Z-Code++ Table 8), then over the best model's decoding."),
    ),
]
Trials = Annotated[
    int | None,
    typer.Option("--trials", help="Number of grid points to train, drawn at random. Default: all."),
]
Space = Annotated[
    list[str] | None,
    typer.Option(
        "--space",
        help="Values for --search, such as learning_rate=1e-4,3e-4; epochs=none omits a setting. Repeatable.",
    ),
]


@described(
    "finetune",
    rich_help_panel="Train a model",
    epilog=(
        "Examples:\n\n"
        "precis finetune --data pairs --recipe zcodepp-micro --out runs/first\n\n"
        "precis finetune --task samsum --data DIR --recipe zcodepp-mini --skip-bad --out runs/samsum\n\n"
        "precis finetune --data train.csv --dev dev.csv --model facebook/bart-base --out runs/mine\n\n"
        "precis finetune --data pairs --model runs/pretrain --examples 100 --sampling-seed 1 --out runs/few\n\n"
        "precis finetune --task mnli --answer head --model runs/pretrain --data DIR --out runs/mnli\n\n"
        "precis finetune --data pairs --model runs/pretrain --search --trials 20 --out runs/search\n\n"
        "To resume an interrupted run, repeat the command."
    ),
)
def finetune(
    context: typer.Context,
    *,
    out: RunFolder,
    task: TaskToTrain = None,
    data: Data = None,
    dev: Dev = None,
    model: Model = None,
    recipe: Recipe = None,
    tokenizer: Tokenizer = None,
    patience: Patience = None,
    select: Select = None,
    answer: AnswerOption = AnswerName.text,
    examples: Examples = None,
    sampling_seed: SamplingSeed = None,
    search: Search = False,
    trials: Trials = None,
    space: Space = None,
    instruction: InstructionToTrain = None,
    training: TrainingSettings,
    columns: ColumnOptions,
) -> None:
    """Train a summarizer on pairs of document and summary, from scratch or from a given model.

    Writes checkpoints, metrics and curves to the run folder, and the best model to its model/.
    """
    from precis.cli.framework.console import finish, note

    pairs = NamedPairs.of(context)
    _check_together(examples=examples, sampling_seed=sampling_seed, search=search, trials=trials, space=space)
    _check_alone(recipe=recipe, model=model, by_head=answer is AnswerName.head, search=search)
    if examples == 0:
        from precis.recipes.planning import zero_shot

        raise zero_shot(model=model, data=pairs.typed, instruction=instruction or "", out=f"{out}/evaluation")
    begin(training.threads)
    from precis.data.tasks.label_schema import answers_of
    from precis.data.tasks.tasks import task as task_named
    from precis.evaluation.task_scores import task_scorers
    from precis.phases.data.run_pairs import ColumnNames, find_sources
    from precis.phases.search.grid_search import is_search
    from precis.phases.train.finetuning import finetune as run_finetune
    from precis.phases.train.starting_point import begin_as_recipe_says, choose_beginning
    from precis.phases.train.training_session import closing_lines
    from precis.recipes.overrides import asks_for_shape, check_on_pairs
    from precis.recipes.planning import in_words, resolve_run

    if answer is AnswerName.head:
        answers_of(task)
    changes = run_changes(context)
    names = ColumnNames(document=columns.document_column, summary=columns.summary_column)
    sources = find_sources(task_name=task, data=data, dev=dev, columns=names, skip_bad=columns.skip_bad)
    test_pairs = pairs.to_test(sources.train.source)
    asked_for: dict[str, Any] = {
        "task_name": task,
        "changes": changes,
        "assignments": training.assignments,
        "select": select,
        "answer": answer.value,
    }
    if recipe is None and model is None and not search:
        # Refuse options that no recipe allows before counting the pairs.
        resolve_run(None, examples=examples, **asked_for)
        shape = tokenizer is not None or asks_for_shape(training.assignments)
        beginning = choose_beginning(
            sources,
            examples=examples,
            begun=None if training.restart else out,
            asks_for_new=shape or answer is AnswerName.head,
        )
        if beginning.why:
            note(beginning.why)
        recipe, model = beginning.recipe, beginning.model
    elif recipe is None and model is not None:
        recipe = _recipe_for(model)
    elif recipe is not None and model is None:
        model = begin_as_recipe_says(recipe).model
    run = resolve_run(recipe, pretrained=model is not None, examples=examples, **asked_for)
    if examples is not None:
        note(in_words(run))
    scores = task_scorers(task_named(task).metrics) if task is not None else ()
    check_on_pairs(run, labels=scores, by_head=answer is AnswerName.head)
    options: dict[str, Any] = {
        "sources": sources,
        "out": out,
        "start": model,
        "tokenizer": tokenizer,
        "instruction": instruction,
        "examples": examples,
        "sampling_seed": sampling_seed,
        "answer": answer.value,
        "restart": training.restart,
        "command": words_of(context),
        "notify": note,
    }
    commands = next_commands(out, test_pairs=test_pairs, writes=answer is not AnswerName.head)
    if search:
        asked = [*changes, *(text.partition("=")[0].strip() for text in training.assignments)]
        _search(run, asked=asked, ranges=space or [], trials=trials, options=options)
        print(*closing_lines(out / "model", commands=commands), sep="\n")
        return
    if is_search(out):
        raise UserError(f"{out}: contains a search; add --search, or use another --out")
    finish(run_finetune(run, **options), restart=training.restart, commands=commands)


def _check_together(
    *,
    examples: int | None,
    sampling_seed: int | None,
    search: bool,
    trials: int | None,
    space: list[str] | None,
) -> None:
    if sampling_seed is not None and examples is None:
        raise UserError("--sampling-seed selects the pairs for --examples; add --examples")
    for option, value in (("--trials", trials), ("--space", space)):
        if value is not None and not search:
            raise UserError(f"{option} is for a search; add --search")


def _check_alone(*, recipe: str | None, model: str | None, by_head: bool, search: bool) -> None:
    """Refuse options that exclude each other, whatever the data."""
    if by_head and search:
        raise UserError("--search is for models that write; omit --search or --answer head")
    if recipe in ("pretrained", "pretrained-small") and model is None:
        raise UserError(f"--recipe {recipe} is for an existing model; name it with --model, or omit --recipe")


def _recipe_for(model: str) -> str:
    """Return the recipe whose training settings suit a given model, and report the choice."""
    from precis.cli.framework.console import note
    from precis.recipes.catalogue import FOR_PRETRAINED, recipe_to_finetune

    chosen = recipe_to_finetune(model)
    if chosen == FOR_PRETRAINED:
        note(f"no --recipe: the settings for pre-trained models (--recipe {chosen})")
    else:
        note(f"no --recipe: the training settings of {chosen}, the size of this model")
    return chosen


def _search(
    run: RunPlan, *, asked: list[str], ranges: list[str], trials: int | None, options: dict[str, Any]
) -> None:
    from precis.cli.framework.console import leave_unfinished, show
    from precis.phases.search.grid_search import search
    from precis.phases.search.search_space import resolve_space

    space = resolve_space(run, examples=options["examples"], asked=asked, ranges=ranges)
    done = search(run, space=space, trials=trials, **options)
    for table in done.tables():
        show(table)
    if done.model is None:
        leave_unfinished(is_main=True, restart=options["restart"])
    print(f"written: {done.folder}/search.json")
