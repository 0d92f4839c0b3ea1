"""`precis pretrain`: Z-Code++'s first phase, or ProphetNet's pre-training, on packed text."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from precis.cli.framework.command_class import described, words_of
from precis.cli.framework.config_file import Config
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
    run_changes,
)
from precis_text.errors import UserError

Corpus = Annotated[
    list[str] | None,
    typer.Option(
        "--corpus",
        help="Folder created by precis data pack, or FOLDER=WEIGHT. Repeatable.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Run folder; the finished model is in its model/.", show_default=False),
]
Recipe = Annotated[
    str,
    typer.Option("--recipe", help="zcodepp-micro, -mini, -small, -base, -large; prophetnet-micro, ..."),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="Model to start from: a run folder, a model folder, or default, the model included with precis.",
    ),
]
WithoutRtd = Annotated[
    bool, typer.Option("--without-rtd", help="Train only span recovery, without a generator.")
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        "--batch-size",
        help="Blocks per step, over all processes; base and large split them into passes (rows_at_once).",
    ),
]
BlockLength = Annotated[int | None, typer.Option("--block-length", help="Tokens per block.")]
Plan = Annotated[
    bool, typer.Option("--plan", help="Print the memory that the run needs on 1, 8 and 128 GPUs, and exit.")
]


@described(
    "pretrain",
    rich_help_panel="Train a model",
    epilog=(
        "Examples:\n\n"
        "precis data pack books/*.txt --out packs/books\n\n"
        "precis pretrain --corpus packs/books --recipe zcodepp-micro --out runs/pretrain\n\n"
        "precis pretrain --corpus packs/books=2 --corpus packs/news=1 --out runs/both\n\n"
        "precis pretrain --corpus packs/es --corpus packs/ru --temperature 3.33 --out runs/languages\n\n"
        "precis pretrain --recipe zcodepp-large --plan\n\n"
        "precis pretrain --corpus packs/books --recipe prophetnet-micro --set model.ngram=3 --out runs/prophet\n\n"
        "To resume an interrupted run, repeat the command."
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

    Writes checkpoints, metrics and curves to the run folder, and the model, ready for fine-tuning, to its model/.
    """
    from precis.cli.framework.console import finish, note

    begin(threads)
    from precis.data.mixing_shares import BySize
    from precis.objectives.pretraining_objectives import SpansAlone
    from precis.phases.train.memory_plan import memory_plan
    from precis.phases.train.pretraining import pretrain as run_pretrain
    from precis.phases.train.pretraining import resolve_pretraining
    from precis.recipes.overrides import refuse_shape, with_changes

    changes = {**run_changes(context), **({"objective": SpansAlone()} if without_rtd else {})}
    if model is not None:
        refuse_shape(settings or [])
    run = resolve_pretraining(recipe, changes=changes, assignments=settings or [])
    if plan:
        # GPUs of that size compute in bf16, whatever this machine supports
        print(memory_plan(with_changes(run, {} if precision else {"train.precision": "bf16"})))
        return
    if not corpus:
        raise UserError("name a corpus: --corpus with a folder created by `precis data pack`")
    if out is None:
        raise UserError("name a folder for the run with --out")
    done = run_pretrain(
        run,
        corpora=_weights(corpus),
        mixture=None if temperature is None else BySize(temperature=temperature),
        out=out,
        start=model,
        restart=restart,
        command=words_of(context),
        notify=note,
    )
    name = shlex.quote(str(out))
    commands = [f"precis finetune --model {name} --data PAIRS --recipe {recipe} --out RUN"]
    finish(done, restart=restart, commands=commands)


def _weights(corpora: list[str]) -> dict[str, float]:
    """Parse FOLDER or FOLDER=WEIGHT; the default weight is 1."""
    weights: dict[str, float] = {}
    for text in corpora:
        folder, equals, weight = text.rpartition("=")
        if not equals:
            folder, weight = text, "1"
        try:
            value = float(weight)
        except ValueError:
            value = 0.0
        if not (value > 0 and folder) or value == float("inf"):
            raise UserError(f"--corpus {text}: write FOLDER or FOLDER=WEIGHT with a weight above 0")
        if folder in weights:
            raise UserError(f"--corpus {folder}: named twice; give it one weight")
        weights[folder] = value
    return weights
