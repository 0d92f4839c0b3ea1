"""`precis ground` and `precis extractor`: training on sets of pairs, of a whole model or to select sentences."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import typer

from precis.cli.framework.command_class import describe_command, examples, words_of
from precis.cli.framework.config_file import Config
from precis.cli.framework.console import finish, finish_seeds, note
from precis.cli.framework.options import (
    ColumnOptions,
    Epochs,
    LearningRate,
    Restart,
    RunFolder,
    Seed,
    Seeds,
    SettingsList,
    SkipBad,
    Temperature,
    Threads,
    TrainingSettings,
    begin,
    options_of,
)
from precis.cli.framework.panels import OptionGroup

Model = Annotated[str, typer.Option("--model", help=(
    "Pre-trained model to start from: a run folder, a model folder, a hub name, or default, the model "
    "included with precis."
))]  # fmt: skip
Tasks = Annotated[list[str], typer.Option("--tasks", help=(
    "Training sets, comma-separated: tasks (see: precis data list), TASK=PLACE, files or folders of pairs; "
    "zcodepp-table1: the four sets of Z-Code++'s Table 1 with its instructions; all: every task with "
    "training files in --data (SQuAD once). Repeatable."
))]  # fmt: skip
Data = Annotated[
    str | None,
    typer.Option("--data", help="Folder with one folder per task. Default: $PRECIS_DATA, else the hub."),
]
Cap = Annotated[
    int, typer.Option("--cap", help="Maximum pairs per set, so that no set dominates the others.")
]
LeaveOut = Annotated[list[str] | None, typer.Option("--leave-out", help=(
    "Sets to exclude from training, for honest zero-shot scores. Repeatable."
))]  # fmt: skip
Recipe = Annotated[str | None, typer.Option("--recipe", help=(
    "Training settings: zcodepp-micro, -mini, -small, -base or -large, or prophetnet-micro, -mini, -base or "
    "-large. Default: by the model's type and size."
))]  # fmt: skip


@describe_command(
    "ground",
    rich_help_panel="Train a model",
    epilog=examples(
        "precis ground --model runs/pretrain --tasks dialogsum,cnndm,aeslc --data DIR --out runs/grounded",
        "precis ground --model runs/pretrain --tasks all --leave-out samsum --data DIR --out runs/grounded",
        "precis ground --model facebook/bart-base --tasks xsum,aeslc=FOLDER,notes.jsonl --out runs/bart",
        "To resume an interrupted run, repeat the command.",
    ),
)
def ground(
    context: typer.Context,
    *,
    model: Model,
    tasks: Tasks,
    out: RunFolder,
    data: Data = None,
    cap: Cap = 10_000,
    temperature: Temperature = None,
    leave_out: LeaveOut = None,
    recipe: Recipe = None,
    skip_bad: SkipBad = False,
    seeds: Seeds = None,
    training: TrainingSettings,
) -> None:
    """Train a pre-trained model further on pairs of many tasks, with an instruction before each document.

    The model then follows instructions, even for tasks that it was not trained on, and needs fewer
    examples of a new task.
    """
    from precis.data.tasks.instructions import GENERAL
    from precis.data.tasks.tasks import instruction_of_first
    from precis.generation.model_metadata import load_use
    from precis.generation.model_names import refuse_missing
    from precis.phases.data.training_sets import check_sets

    refuse_missing(model)
    check_sets(tasks, data=data, leave_out=leave_out or (), skip_bad=skip_bad)
    begin(training.threads, out=out, recipe=recipe)
    from precis.phases.plans.mixture_plan import GroundingOptions
    from precis.phases.plans.mixture_plan import ground as ground_model
    from precis.phases.train.training_session import MODEL_FOLDER

    options = {**options_of(context, GroundingOptions), "command": words_of(context)}
    train = partial(ground_model, model, tasks, **options)
    where = f" --data {shlex.quote(data)}" if data is not None else ""
    name = shlex.quote(str(out))
    if seeds is not None:
        from precis.phases.train.seed_runs import train_seeds

        runs = train_seeds(train, seeds=seeds, out=out, seed=training.seed, notify=note)
        again = f"precis evaluate --model {name} --task TASK{where} --out {name}/evaluation"
        finish_seeds(runs, restart=training.restart, commands=[again])
        return
    done = train(out=out, notify=note)
    use = load_use(done.folder / MODEL_FOLDER)
    known = use.instruction if use.instruction != GENERAL else instruction_of_first(use.grounded_on)
    asked = shlex.quote(known)
    commands = [
        f"precis finetune --model {name} --task TASK{where} --examples 100 --out RUN",
        f"precis summarize FILE --model {name} --instruction {asked}",
    ]
    finish(done, restart=training.restart, commands=commands)


AnyModel = Annotated[str, typer.Option("--model", help=(
    "Any encoder-decoder: a run folder, a model folder, a hub name, or default, the model included with "
    "precis. Its weights do not change."
))]  # fmt: skip
TasksToChoose = Annotated[list[str], typer.Option("--tasks", help=(
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


@describe_command(
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
    model: AnyModel,
    tasks: TasksToChoose,
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
    from precis.generation.model_names import refuse_missing
    from precis.phases.data.run_pairs import NamedPairs
    from precis.phases.data.training_sets import check_sets

    refuse_missing(model)
    named = NamedPairs(document_column=columns.document_column, summary_column=columns.summary_column)
    check_sets(tasks, data=data, leave_out=leave_out or (), skip_bad=columns.skip_bad, columns=named)
    begin(training.threads, out=out)
    from precis.phases.plans.mixture_plan import ExtractorOptions, train_extractor

    options = {**options_of(context, ExtractorOptions), "command": words_of(context), "notify": note}
    done = train_extractor(model, tasks, **options)
    commands = [f"precis summarize FILE --model {shlex.quote(str(out))} --words 60"]
    finish(done, restart=training.restart, commands=commands)
