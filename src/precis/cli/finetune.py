"""`precis finetune`: train a summarizer on pairs."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from precis.cli.options import (
    Data,
    Dev,
    DocumentColumn,
    SkipBad,
    SummaryColumn,
    TaskName,
    Threads,
    use_threads,
)
from precis.errors import UserError

if TYPE_CHECKING:
    from precis.recipes.zcodepp import Run


class Precision(StrEnum):
    """`TrainSettings.precision` as a choice on the command line."""

    fp32 = "fp32"
    bf16 = "bf16"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "finetune",
        epilog=(
            "Examples:\n\n"
            "precis finetune --data pairs --recipe zcodepp-micro --out runs/first\n\n"
            "precis finetune --task samsum --data DIR --recipe zcodepp-mini --skip-bad --out runs/samsum\n\n"
            "precis finetune --data train.csv --dev dev.csv --model facebook/bart-base --out runs/mine\n\n"
            "precis finetune --data pairs --model runs/pretrain --examples 100 --sampling-seed 1 --out runs/few\n\n"
            "precis finetune --data pairs --model runs/pretrain --search --trials 20 --out runs/search\n\n"
            "A run that was stopped or killed goes on when the same command is started again."
        ),
    )(finetune)


def finetune(
    out: Annotated[
        Path,
        typer.Option("--out", help="Run folder; the finished model is in its model/.", show_default=False),
    ],
    task: TaskName = None,
    data: Data = None,
    dev: Dev = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="Start from this encoder-decoder (run folder, folder, hub name)."),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe",
            help=(
                "zcodepp-micro, -mini, -small, -base or -large: shape and training settings of a new model. "
                "Default: zcodepp-mini; with --model: settings for pre-trained models."
            ),
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a recipe's setting, e.g. train.learning_rate=3e-4. Repeatable."),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option("--tokenizer", help="Tokenizer of a new model; default: one is trained on the pairs."),
    ] = None,
    epochs: Annotated[float | None, typer.Option("--epochs", help="Passes over the pairs.")] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Optimizer steps, instead of epochs.")] = None,
    batch_size: Annotated[int | None, typer.Option("--batch-size", help="Pairs in a batch.")] = None,
    batch_tokens: Annotated[
        int | None, typer.Option("--batch-tokens", help="Tokens in a batch, instead of pairs.")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option("--lr", help="Peak learning rate.")] = None,
    max_source: Annotated[
        int | None, typer.Option("--max-source", help="Longest document in tokens; longer ones are cut.")
    ] = None,
    max_target: Annotated[int | None, typer.Option("--max-target", help="Longest summary in tokens.")] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Of weights, data order and dropout; default 0.")
    ] = None,
    precision: Annotated[
        Precision | None, typer.Option("--precision", help="bf16: faster on newer CPUs and GPUs.")
    ] = None,
    validate_every: Annotated[
        int | None,
        typer.Option(
            "--validate-every", help="Steps between validations; default: an epoch, at most a fifth."
        ),
    ] = None,
    patience: Annotated[
        int | None, typer.Option("--patience", help="Stop after this many validations without improvement.")
    ] = None,
    select: Annotated[
        str | None, typer.Option("--select", help="Metric that names the best checkpoint: rougeL, loss, ...")
    ] = None,
    examples: Annotated[
        int | None,
        typer.Option(
            "--examples",
            help="Few-shot: train on this many pairs, drawn at random, until that stops helping.",
        ),
    ] = None,
    sampling_seed: Annotated[
        int | None,
        typer.Option("--sampling-seed", help="Of the draw of --examples alone; default: that of --seed."),
    ] = None,
    search: Annotated[
        bool,
        typer.Option(
            "--search", help="Grid search (Z-Code++ Table 8): trainings, then decoding of the best."
        ),
    ] = False,
    trials: Annotated[
        int | None,
        typer.Option("--trials", help="Trainings of a search, drawn from the grid; default: all of it, 120."),
    ] = None,
    space: Annotated[
        list[str] | None,
        typer.Option(
            "--space",
            help="A range of a search, e.g. learning_rate=1e-4,3e-4, or epochs=none to leave one out. Repeatable.",
        ),
    ] = None,
    instruction: Annotated[str, typer.Option("--instruction", help="Text put before every document.")] = "",
    document_column: DocumentColumn = None,
    summary_column: SummaryColumn = None,
    skip_bad: SkipBad = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Forget what is in --out and begin anew.")
    ] = False,
    threads: Threads = None,
) -> None:
    """Train a summarizer on pairs of document and summary, from nothing or from a given model.

    Writes checkpoints, metrics and curves to the run folder, and the best model, ready to use, to its model/.
    """
    from precis.cli.console import note
    from precis.cli.quiet import quieten_transformers

    where = f"--task {task}{f' --data {data}' if data else ''}" if task else f"--data {data}"
    _check_together(examples=examples, sampling_seed=sampling_seed, search=search, trials=trials, space=space)
    if examples == 0:
        from precis.recipes.few_shot import zero_shot

        raise zero_shot(model=model, data=where, instruction=instruction, out=f"{out}/evaluation")
    quieten_transformers()
    use_threads(threads)
    from precis.recipes.finetune import finetune as run_finetune
    from precis.recipes.search import is_search
    from precis.recipes.sources import ColumnNames, find_sources

    changes: dict[str, Any] = {
        "train.epochs": epochs,
        "train.steps": steps,
        "batch_size": batch_size,
        "batch_tokens": batch_tokens,
        "train.learning_rate": learning_rate,
        "max_source": max_source,
        "max_target": max_target,
        "train.seed": seed,
        "train.precision": precision.value if precision is not None else None,
        "train.validate_every": validate_every,
        "train.patience": patience,
    }
    changes = {path: value for path, value in changes.items() if value is not None}
    columns = ColumnNames(document=document_column, summary=summary_column)
    sources = find_sources(task_name=task, data=data, dev=dev, columns=columns, skip_bad=skip_bad)
    run = _resolve(
        recipe,
        examples,
        pretrained=model is not None,
        task_name=task,
        changes=changes,
        assignments=settings or [],
        select=select,
    )
    given: dict[str, Any] = {
        "sources": sources,
        "out": out,
        "start": model,
        "tokenizer": tokenizer,
        "instruction": instruction,
        "examples": examples,
        "sampling_seed": sampling_seed,
        "restart": restart,
        "command": ["precis", *sys.argv[1:]],
        "tell": note,
    }
    if search:
        asked = [*changes, *(text.partition("=")[0].strip() for text in settings or [])]
        _search(run, asked=asked, ranges=space or [], trials=trials, given=given)
    else:
        if is_search(out):
            raise UserError(f"{out}: holds a search; give --search as well, or use another --out")
        done = run_finetune(run, **given)
        if not done.is_main:
            raise typer.Exit(130 if done.model is None else 0)
        if done.model is None:
            _stopped(restart)
    print(f"model: {out}/model")
    print(f"next:  precis evaluate --model {out} {where} --split test --out {out}/evaluation")
    print(f"       precis summarize FILE --model {out}")


def _check_together(
    *,
    examples: int | None,
    sampling_seed: int | None,
    search: bool,
    trials: int | None,
    space: list[str] | None,
) -> None:
    if sampling_seed is not None and examples is None:
        raise UserError("--sampling-seed says which --examples are drawn; give their number too")
    for option, value in (("--trials", trials), ("--space", space)):
        if value is not None and not search:
            raise UserError(f"{option} belongs to a search; give --search too")


def _resolve(recipe: str | None, examples: int | None, **options: Any) -> Run:
    from precis.cli.console import note
    from precis.recipes.few_shot import in_words, resolve_few_shot
    from precis.recipes.finetune import resolve_run

    if examples is None:
        return resolve_run(recipe, **options)
    run = resolve_few_shot(recipe, examples, **options)
    note(in_words(run))
    return run


def _search(
    run: Run, *, asked: list[str], ranges: list[str], trials: int | None, given: dict[str, Any]
) -> None:
    from precis.cli.console import show
    from precis.recipes.search import search
    from precis.recipes.search_space import resolve_space

    space = resolve_space(run, examples=given["examples"], asked=asked, ranges=ranges)
    done = search(run, space=space, trials=trials, **given)
    for table in done.tables():
        show(table)
    if done.model is None:
        _stopped(given["restart"])
    print(f"written: {done.folder}/search.json")


def _stopped(restart: bool) -> NoReturn:
    from precis.cli.console import note

    note(f"start the same command again{' without --restart' if restart else ''} to go on")
    raise typer.Exit(130)
