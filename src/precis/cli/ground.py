"""`precis ground`: Z-Code++'s second phase on pairs of many tasks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from precis.cli.finetune import Precision
from precis.cli.options import SkipBad, Threads, use_threads


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "ground",
        epilog=(
            "Examples:\n\n"
            "precis ground --model runs/pretrain --tasks dialogsum,cnndm,aeslc --data DIR --out runs/grounded\n\n"
            "precis ground --model runs/pretrain --tasks all --leave-out samsum --data DIR --out runs/grounded\n\n"
            "precis ground --model facebook/bart-base --tasks xsum,mail=FOLDER,notes.jsonl --out runs/bart\n\n"
            "A run that was stopped or killed goes on when the same command is started again."
        ),
    )(ground)


def ground(
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="The pre-trained model to go on from (run folder, folder, hub name).",
            show_default=False,
        ),
    ],
    tasks: Annotated[
        list[str],
        typer.Option(
            "--tasks",
            help=(
                "What to train on, with commas between: tasks (see: precis data list), NAME=PLACE, files or folders "
                "of pairs; all: every task that has files in --data. Repeatable."
            ),
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", help="Run folder; the finished model is in its model/.", show_default=False),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            "--data", help="Folder that holds a folder for each task; default: $PRECIS_DATA, the hub."
        ),
    ] = None,
    cap: Annotated[
        int, typer.Option("--cap", help="Pairs drawn at most of each set, so that none drowns the others.")
    ] = 10_000,
    leave_out: Annotated[
        list[str] | None,
        typer.Option("--leave-out", help="Sets not to train on, for honest zero-shot scores. Repeatable."),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe",
            help="zcodepp-micro, -mini, -small, -base or -large: training settings; default: by the model's size.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a recipe's setting, e.g. train.warmup_steps=100. Repeatable."),
    ] = None,
    epochs: Annotated[float | None, typer.Option("--epochs", help="Passes over the mixture.")] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Optimizer steps, instead of epochs.")] = None,
    batch_size: Annotated[int | None, typer.Option("--batch-size", help="Pairs in a batch.")] = None,
    batch_tokens: Annotated[
        int | None, typer.Option("--batch-tokens", help="Tokens in a batch, instead of pairs.")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option("--lr", help="Peak learning rate.")] = None,
    max_source: Annotated[
        int | None,
        typer.Option(
            "--max-source", help="Longest document in tokens, instruction included; longer ones are cut."
        ),
    ] = None,
    max_target: Annotated[int | None, typer.Option("--max-target", help="Longest summary in tokens.")] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Of what is drawn, wordings, order and dropout; default 0.")
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
    skip_bad: SkipBad = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Forget what is in --out and begin anew.")
    ] = False,
    threads: Threads = None,
) -> None:
    """Go on training a pre-trained model on pairs of many tasks, an instruction before every document.

    The model then writes summaries as it is asked to, also for tasks that it was not trained on, and needs fewer
    examples of a new one.
    """
    from precis.cli.console import note
    from precis.cli.quiet import quieten_transformers

    quieten_transformers()
    use_threads(threads)
    from precis.recipes.ground import ground as run_ground
    from precis.recipes.ground import resolve_grounding

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
    }
    run = resolve_grounding(
        recipe,
        start=model,
        changes={path: value for path, value in changes.items() if value is not None},
        assignments=settings or [],
    )
    done = run_ground(
        run,
        tasks=_split(tasks),
        start=model,
        out=out,
        data=data,
        cap=cap,
        leave_out=_split(leave_out or []),
        skip_bad=skip_bad,
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
    print(f"next:  precis finetune --model {out} --task TASK --examples 100 --out RUN")
    print(f'       precis summarize FILE --model {out} --instruction "Summarize the following dialogue:"')


def _split(values: list[str]) -> list[str]:
    return [part.strip() for value in values for part in value.split(",") if part.strip()]
