"""`precis pretrain`: Z-Code++'s first phase, or ProphetNet's pre-training, on packed text."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from precis.cli.framework.command_class import describe_command, examples, words_of
from precis.cli.framework.config_file import Config
from precis.cli.framework.console import finish, note
from precis.cli.framework.options import (
    Epochs,
    LearningRate,
    Precision,
    Restart,
    Seed,
    SettingsList,
    Steps,
    Temperature,
    Threads,
    begin,
    options_of,
)

Corpus = Annotated[list[str] | None, typer.Option("--corpus", help=(
    "Folder created by precis data pack, or FOLDER=WEIGHT. Repeatable."
))]  # fmt: skip
Out = Annotated[Path | None, typer.Option("--out", help="Run folder; the finished model is in its model/.")]
Recipe = Annotated[str, typer.Option("--recipe", help=(
    "Size and schedule: zcodepp-micro, -mini, -small, -base or -large; prophetnet-micro, -mini, -base or "
    "-large."
))]  # fmt: skip
Model = Annotated[str | None, typer.Option("--model", help=(
    "Model to start from: a run folder, a model folder, or default, the model included with precis."
))]  # fmt: skip
WithoutRtd = Annotated[
    bool, typer.Option("--without-rtd", help="Train only span recovery, without a generator.")
]
BatchSize = Annotated[int | None, typer.Option("--batch-size", min=1, help=(
    "Blocks per step, over all processes; base and large split them into passes (rows_at_once)."
))]  # fmt: skip
BlockLength = Annotated[int | None, typer.Option("--block-length", min=1, help="Tokens per block.")]
Plan = Annotated[
    bool, typer.Option("--plan", help="Print the memory that the run needs on 1, 8 and 128 GPUs, and exit.")
]


@describe_command(
    "pretrain",
    rich_help_panel="Train a model",
    epilog=examples(
        "precis data pack books/*.txt --out packs/books",
        "precis pretrain --corpus packs/books --recipe zcodepp-micro --out runs/pretrain",
        "precis pretrain --corpus packs/books=2 --corpus packs/news=1 --out runs/both",
        "precis pretrain --corpus packs/es --corpus packs/ru --temperature 3.33 --out runs/languages",
        "precis pretrain --recipe zcodepp-large --plan",
        "precis pretrain --corpus packs/books --recipe prophetnet-micro --set model.ngram=3 --out runs/prophet",
        "To resume an interrupted run, repeat the command.",
    ),
)
def pretrain(
    context: typer.Context,
    corpus: Corpus = None,
    temperature: Temperature = None,
    out: Out = None,
    recipe: Recipe = "zcodepp-mini",
    config: Config = None,
    settings: SettingsList = None,
    model: Model = None,
    without_rtd: WithoutRtd = False,
    epochs: Epochs = None,
    steps: Steps = None,
    batch_size: BatchSize = None,
    block_length: BlockLength = None,
    learning_rate: LearningRate = None,
    seed: Seed = None,
    precision: Precision = None,
    plan: Plan = False,
    restart: Restart = False,
    threads: Threads = None,
) -> None:
    """Pre-train on raw text: Z-Code++ by replaced-token detection and span recovery (the paper's first phase),
    ProphetNet by predicting the next n tokens of masked spans.

    Writes checkpoints, metrics and curves to the run folder, and the model, ready for fine-tuning, to OUT/model.
    """
    begin(threads, out=out)
    from precis.phases.plans.pretraining_plan import PretrainingOptions, plan_pretraining

    options = {**options_of(context, PretrainingOptions), "command": words_of(context), "notify": note}
    planned = plan_pretraining(corpus or (), out=out, **options)
    if plan:
        print(planned.memory())
        return
    done = planned.run()
    commands = [f"precis finetune --model {shlex.quote(str(out))} --data PAIRS --recipe {recipe} --out RUN"]
    finish(done, restart=restart, commands=commands)
