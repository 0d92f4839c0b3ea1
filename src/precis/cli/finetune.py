"""`precis finetune`: train a summarizer on pairs."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

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
        int | None, typer.Option("--examples", help="Few-shot: train on this many pairs, drawn at random.")
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

    quieten_transformers()
    use_threads(threads)
    from precis.recipes.finetune import finetune as run_finetune
    from precis.recipes.finetune import resolve_run
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
    columns = ColumnNames(document=document_column, summary=summary_column)
    sources = find_sources(task_name=task, data=data, dev=dev, columns=columns, skip_bad=skip_bad)
    run = resolve_run(
        recipe,
        pretrained=model is not None,
        task_name=task,
        changes={path: value for path, value in changes.items() if value is not None},
        assignments=settings or [],
        select=select,
    )
    done = run_finetune(
        run,
        sources=sources,
        out=out,
        start=model,
        tokenizer=tokenizer,
        instruction=instruction,
        examples=examples,
        restart=restart,
        command=["precis", *sys.argv[1:]],
        tell=note,
    )
    if done.model is None:
        if done.is_main:
            note(f"start the same command again{' without --restart' if restart else ''} to go on")
        raise typer.Exit(130)
    if not done.is_main:
        return
    print(f"model: {done.model}")
    where = f"--task {task}{f' --data {data}' if data else ''}" if task else f"--data {data}"
    print(f"next:  precis evaluate --model {out} {where} --split test --out {out}/evaluation")
    print(f"       precis summarize FILE --model {out}")
