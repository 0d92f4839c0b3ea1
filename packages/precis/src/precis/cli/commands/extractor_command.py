"""`precis extractor`: train a model to select sentences."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Annotated

import typer

from precis.cli.commands.ground_command import Cap, Data, LeaveOut
from precis.cli.framework.command_class import described, examples, words_of
from precis.cli.framework.config_file import Config
from precis.cli.framework.options import (
    ColumnOptions,
    Epochs,
    LearningRate,
    Restart,
    RunFolder,
    Seed,
    SettingsList,
    Threads,
    begin,
    options_of,
)
from precis.cli.framework.panels import OptionGroup

Model = Annotated[str, typer.Option("--model", help=(
    "Any encoder-decoder: a run folder, a model folder, a hub name, or default, the model included with "
    "precis. Its weights do not change."
))]  # fmt: skip
Tasks = Annotated[list[str], typer.Option("--tasks", help=(
    "Pairs to train on, comma-separated: tasks, TASK=PLACE, files, folders of pairs. Repeatable."
))]  # fmt: skip
MaxSource = Annotated[
    int | None,
    typer.Option("--max-source", min=1, help="Maximum tokens per document in training. Default: 4096."),
]


@dataclass(frozen=True, kw_only=True)
class ExtractSettings(OptionGroup):
    """The training settings that are also options; `options_of` reads them from the context."""

    config: Config = None
    settings: SettingsList = None
    epochs: Epochs = None
    learning_rate: LearningRate = None
    max_source: MaxSource = None
    seed: Seed = None
    restart: Restart = False
    threads: Threads = None


@described(
    "extractor",
    rich_help_panel="Train a model",
    epilog=examples(
        "precis extractor --model runs/first --tasks pairs --out runs/chooses",
        (
            "precis extractor --model default --tasks posts.csv --document-column body --summary-column title "
            "--out runs/posts"
        ),
        "precis extractor --model facebook/bart-base --tasks samsum,notes.jsonl --data DIR --out runs/bart",
        "To resume an interrupted run, repeat the command.",
    ),
)
def extractor(
    context: typer.Context,
    *,
    model: Model,
    tasks: Tasks,
    out: RunFolder,
    data: Data = None,
    cap: Cap = 10_000,
    leave_out: LeaveOut = None,
    columns: ColumnOptions,
    training: ExtractSettings,
) -> None:
    """Train a model to select sentences from a document, for `precis summarize --mode extract`.

    Trains a small network on the hidden states of the model's encoder, which does not change. The new folder
    contains the unchanged model and the trained network.
    """
    from precis.cli.framework.console import finish, note
    from precis.generation.model_names import refuse_missing
    from precis.phases.data.run_pairs import ColumnNames
    from precis.phases.data.training_sets import check_sets

    refuse_missing(model)
    named = ColumnNames(document=columns.document_column, summary=columns.summary_column)
    check_sets(tasks, data=data, leave_out=leave_out or (), skip_bad=columns.skip_bad, columns=named)
    begin(training.threads, out=out)
    from precis.phases.plans.mixture_plan import ExtractorOptions, train_extractor

    options = {**options_of(context, ExtractorOptions), "command": words_of(context), "notify": note}
    done = train_extractor(model, tasks, **options)
    commands = [f"precis summarize FILE --model {shlex.quote(str(out))} --words 60"]
    finish(done, restart=training.restart, commands=commands)
