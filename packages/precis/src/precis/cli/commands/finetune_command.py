"""`precis finetune`: train a summarizer on pairs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from precis.cli.framework.command_class import describe_command, examples, words_of
from precis.cli.framework.console import ProgressLine, leave_unfinished, note, show
from precis.cli.framework.next_steps import named_pairs_of, train_on
from precis.cli.framework.options import (
    ColumnOptions,
    Data,
    Dev,
    InstructionToTrain,
    RunFolder,
    SamplingSeed,
    Seeds,
    TaskToTrain,
    TrainingSettings,
    Trials,
    begin,
    options_of,
    recipe_names,
)
from precis_text.errors import UserError

if TYPE_CHECKING:
    from precis.phases.data.run_pairs import NamedPairs

Model = Annotated[str | None, typer.Option("--model", help=(
    "Encoder-decoder or causal language model to start from: a run folder, a model folder, hub:owner/name, "
    "or default, the model included with precis."
))]  # fmt: skip
Recipe = Annotated[str | None, typer.Option("--recipe", autocompletion=recipe_names, help=(
    "Shape and training settings of a new model: zcodepp-few, -demo, -micro, -mini, -small, -base or -large, "
    "or prophetnet-micro, -mini, -base or -large. pretrained, pretrained-small, pretrained-writer: training "
    "settings for --model. pretrained-few: start from the model included with precis. Default: chosen from the "
    "number and language of the pairs, or from the type and size of --model."
))]  # fmt: skip
Tokenizer = Annotated[
    str | None, typer.Option("--tokenizer", help="Tokenizer of a new model. Default: train one on the pairs.")
]
Patience = Annotated[int | None, typer.Option("--patience", min=1, help=(
    "Stop after this many validations without improvement. Default: never; 5 with --examples."
))]  # fmt: skip
Select = Annotated[str | None, typer.Option("--select", help=(
    "Metric that selects the best checkpoint: loss, nll, accuracy, rouge1, rouge2 or rougeL. Default: the "
    "recipe's."
))]  # fmt: skip


class AnswerName(StrEnum):
    """`precis.recipes.planning.Answer` as a choice on the command line."""

    text = "text"
    head = "head"


AnswerOption = Annotated[AnswerName, typer.Option("--answer", help=(
    "For tasks with labels or numbers, such as mnli. text: the decoder writes the answer. head: a classifier "
    "on the encoder predicts it (Z-Code++ only)."
))]  # fmt: skip
Examples = Annotated[int | None, typer.Option("--examples", help=(
    "Few-shot: train on this many random pairs until the score stops improving."
))]  # fmt: skip
Search = Annotated[bool, typer.Option("--search", help=(
    "Grid search over training settings (Z-Code++ Table 8), then over the best model's decoding."
))]  # fmt: skip
Space = Annotated[list[str] | None, typer.Option("--space", help=(
    "Values for --search, such as learning_rate=1e-4,3e-4; epochs=none omits a setting. Repeatable."
))]  # fmt: skip

CurveSizes = Annotated[str | None, typer.Option("--curve", metavar="N,N,...", help=(
    "Learning curve: train on these numbers of pairs, such as 30,100,300, score all models on the test "
    "pairs, and recommend an abstractive or an extractive model. --seeds N: runs for each number (default: 3)."
))]  # fmt: skip


@describe_command(
    "finetune",
    rich_help_panel="Train a model",
    epilog=examples(
        "precis finetune --data pairs --recipe zcodepp-micro --out runs/first",
        "precis finetune --task samsum --data DIR --recipe zcodepp-mini --skip-bad --out runs/samsum",
        "precis finetune --data train.csv --dev dev.csv --model facebook/bart-base --out runs/mine",
        "precis finetune --data pairs --model runs/pretrain --examples 100 --sampling-seed 1 --out runs/few",
        "precis finetune --task mnli --answer head --model runs/pretrain --data DIR --out runs/mnli",
        "precis finetune --data pairs --model runs/pretrain --search --trials 20 --out runs/search",
        "precis finetune --data pairs --curve 30,100,300 --out runs/curve",
        "To resume an interrupted run, repeat the command.",
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
    seeds: Seeds = None,
    search: Search = False,
    trials: Trials = None,
    space: Space = None,
    curve: CurveSizes = None,
    instruction: InstructionToTrain = None,
    training: TrainingSettings,
    columns: ColumnOptions,
) -> None:
    """Train a summarizer on document-summary pairs, from scratch or from an existing model.

    Writes checkpoints, metrics and curves to the run folder, and the best model to OUT/model.
    """
    from precis.generation.model_names import refuse_missing

    sizes = _check_curve(curve, search=search)
    if search and answer is AnswerName.head:
        raise UserError("--search is for models that write; omit --search or --answer head")
    pairs = named_pairs_of(context)
    if model is not None:
        refuse_missing(model)
    pairs.check()
    begin(training.threads, out=out, recipe=recipe)
    from precis.phases.plans.finetuning_plan import FineTuningOptions, plan_finetuning

    options = {**options_of(context, FineTuningOptions), "command": words_of(context), "notify": note}
    if curve is not None:
        return _draw_curve(pairs, sizes, 3 if seeds is None else seeds, options)
    train_on(
        partial(plan_finetuning, pairs, search=search, **options),
        to_test=lambda: pairs.to_test(pairs.sources().train.source),
        out=out,
        training=training,
        seeds=seeds,
        search=search,
        writes=answer is not AnswerName.head,
    )


def _check_curve(curve: str | None, *, search: bool) -> list[int]:
    """Return the numbers of `--curve`; raise `UserError` if it has others, or the options do not go together."""
    if curve is not None and search:
        raise UserError("--curve and --search are two kinds of runs; give one of them")
    try:
        return [int(number) for number in (curve or "").split(",") if curve]
    except ValueError:
        raise UserError(f"--curve {curve}: give numbers of pairs, such as --curve 30,100,300") from None


def _draw_curve(pairs: NamedPairs, sizes: Sequence[int], seeds: int, options: dict[str, Any]) -> None:
    """Train the models of a learning curve, and print its table and advice."""
    from precis.phases.plans.learning_curve import learning_curve

    with ProgressLine() as progress:
        drawn = learning_curve(**vars(pairs), sizes=sizes, seeds=seeds, progress=progress, **options)
    if not drawn.points:
        leave_unfinished(is_main=True, restart=bool(options.get("restart")))
    show(drawn.table())
    print("", drawn.advice, f"written: {drawn.folder}/curve.png, {drawn.folder}/curve.md", sep="\n")
