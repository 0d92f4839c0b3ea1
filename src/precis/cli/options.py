"""Options that several commands share, each described once."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from precis.errors import UserError


class PrecisionName(StrEnum):
    """`TrainSettings.precision` as a choice on the command line."""

    fp32 = "fp32"
    bf16 = "bf16"


TaskName = Annotated[
    str | None, typer.Option("--task", help="A task of the table (see: precis data list), with its columns.")
]
TaskToTrain = Annotated[
    str | None,
    typer.Option(
        "--task", help="A task of the table (see: precis data list), with its columns, lengths and decoding."
    ),
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        help=(
            "Pairs: a .jsonl, .csv or .parquet file (.gz, .xz too), a folder with train/dev/test files, or "
            "hub:owner/name. With --task: the folder that holds the task's files."
        ),
    ),
]
Dev = Annotated[
    str | None, typer.Option("--dev", help="A file of pairs to validate on, if --data has no dev split.")
]
DocumentColumn = Annotated[
    str | None, typer.Option("--document-column", help="Column that holds the document.")
]
SummaryColumn = Annotated[str | None, typer.Option("--summary-column", help="Column that holds the summary.")]
UnitsColumn = Annotated[
    str | None,
    typer.Option(
        "--units-column", help="Column that lists a document's annotated units in order, for --units marked."
    ),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Pass over rows that cannot be used; they are counted and named.")
]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        help=(
            "A run folder of precis finetune or tune, a Hugging Face encoder-decoder folder, or hub:owner/name "
            "(without hub: where no folder OWNER is here)."
        ),
        show_default=False,
    ),
]
InstructionToTrain = Annotated[
    str | None,
    typer.Option(
        "--instruction",
        help="Text put before every document; default: the task's for a grounded model, else none.",
    ),
]
Adapter = Annotated[
    str | None,
    typer.Option("--adapter", help="An adapter on --model: a run folder of precis tune, or its adapter/."),
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, help="CPU threads; default: as many as the machine has cores."),
]
RunFolder = Annotated[
    Path, typer.Option("--out", help="Run folder; the finished model is in its model/.", show_default=False)
]
SettingsList = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a recipe's setting, e.g. train.learning_rate=3e-4. Repeatable."),
]
Epochs = Annotated[float | None, typer.Option("--epochs", help="Passes over the training data.")]
Steps = Annotated[int | None, typer.Option("--steps", help="Optimizer steps, instead of epochs.")]
PairsInBatch = Annotated[
    int | None,
    typer.Option(
        "--batch-size",
        help=(
            "Pairs in a batch, over all processes. A step takes one; of finetune's prophetnet-base and -large 16, on "
            "headlines 4, on questions 1 (--set train.gradient_accumulation=1)."
        ),
    ),
]
TokensInBatch = Annotated[
    int | None, typer.Option("--batch-tokens", help="Tokens in a batch, instead of pairs.")
]
LearningRate = Annotated[
    float | None, typer.Option("--lr", help="Peak learning rate; default: the recipe's.")
]
MaxSource = Annotated[
    int | None, typer.Option("--max-source", help="Longest document in tokens; longer ones are cut.")
]
MaxTarget = Annotated[int | None, typer.Option("--max-target", help="Longest summary in tokens.")]
_HIGHEST_SEED = 2**32 - 1  # that every library takes


def checked_seed(parameter: typer.CallbackParam, value: int | None) -> int | None:
    """A seed, if every generator takes it.

    Raises:
        UserError: it is negative or too large.
    """
    if value is not None and not 0 <= value <= _HIGHEST_SEED:
        raise UserError(f"{parameter.opts[0]} {value}: use 0 to {_HIGHEST_SEED}")
    return value


Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        callback=checked_seed,
        help="Of everything that is drawn: weights, order, dropout, ...; default 0.",
    ),
]
SamplingSeed = Annotated[
    int | None,
    typer.Option(
        "--sampling-seed",
        callback=checked_seed,
        help="Of the draw of the pairs to train on alone; default: that of --seed.",
    ),
]
_MOVES = "A run goes on in the precision it began with: give this where it may move to another machine."
Precision = Annotated[
    PrecisionName | None,
    typer.Option(
        "--precision",
        help=(
            "Default: bf16 where the hardware multiplies in it, else fp32; prophetnet-base and -large on pairs: fp32. "
            + _MOVES
        ),
    ),
]
TuningPrecision = Annotated[
    PrecisionName | None,
    typer.Option("--precision", help="bf16 is faster on newer CPUs and GPUs; default: fp32. " + _MOVES),
]
ValidateEvery = Annotated[
    int | None,
    typer.Option("--validate-every", help="Steps between validations; default: an epoch, at most a fifth."),
]
Restart = Annotated[bool, typer.Option("--restart", help="Forget what is in --out and begin anew.")]


_RUN_SETTINGS = {
    "epochs": "train.epochs",
    "steps": "train.steps",
    "batch_size": "batch_size",
    "batch_tokens": "batch_tokens",
    "block_length": "block_length",
    "learning_rate": "train.learning_rate",
    "max_source": "max_source",
    "max_target": "max_target",
    "seed": "train.seed",
    "precision": "train.precision",
    "validate_every": "train.validate_every",
    "patience": "train.patience",
}
"""A training command's parameter -> the setting of a run that it is, under one name in all of them."""


_EITHER = {"epochs": "steps", "steps": "epochs", "batch_size": "batch_tokens", "batch_tokens": "batch_size"}
"""Parameters of which a run takes one."""


def run_changes(context: typer.Context) -> dict[str, Any]:
    """The settings, by dotted name, that the command's options ask for.

    Raises:
        UserError: `--set` asks for one of them too, or for what excludes it.
    """
    changes = given({path: context.params.get(name) for name, path in _RUN_SETTINGS.items()})
    options = {one.name: one.opts[0] for one in context.command.params}
    by_path = {path: name for name, path in _RUN_SETTINGS.items()}
    for assignment in context.params.get("settings") or []:
        path = assignment.partition("=")[0].strip()
        name = by_path.get(path, "")
        for other in (name, _EITHER.get(name, "")):
            if _RUN_SETTINGS.get(other) in changes:
                raise UserError(
                    f"{options[other]} and --set {assignment}: one takes the other back; give one of them"
                )
    return changes


def given(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that were asked for, without those that were not."""
    return {
        path: value.value if isinstance(value, StrEnum) else value
        for path, value in changes.items()
        if value is not None
    }


def use_threads(count: int | None) -> None:
    """Limit torch to `count` threads, if given."""
    if count is not None:
        import torch

        torch.set_num_threads(count)
