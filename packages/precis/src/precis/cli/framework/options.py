"""Options that several commands share."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from precis.cli.framework.config_file import Config
from precis.cli.framework.console import note
from precis.cli.framework.panels import OptionGroup
from precis.phases.output_folders import claim_folder
from precis.process import use_threads
from precis.recipes.run_options import check_seed
from precis_text.config import nearest
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError

LikelihoodModel = Annotated[str | None, typer.Option("--likelihood", help=(
    "Add the likelihood of each summary under this encoder-decoder, given its document and its reference "
    "(BARTScore)."
))]  # fmt: skip
CheckerFolder = Annotated[Path | None, typer.Option("--checker", help=(
    "Score how well the document supports each sentence, with the classifier in this folder."
))]  # fmt: skip


Temperature = Annotated[float | None, typer.Option("--temperature", help=(
    "Weight each set by its size to the power 1/T. Above 1, small sets count more (mT5: 3.33)."
))]  # fmt: skip


def task_names(incomplete: str) -> list[str]:
    """Return the names of tasks that start with `incomplete`, for shell completion."""
    from precis.data.tasks.tasks import TASKS

    return [name for name in TASKS if name.startswith(incomplete)]


_SIZES = ("micro", "mini", "base", "large")
RECIPE_NAMES = (
    *(f"zcodepp-{size}" for size in ("few", "demo", "small", *_SIZES)),
    *(f"prophetnet-{size}" for size in _SIZES),
    *("pretrained", "pretrained-small", "pretrained-writer", "pretrained-few"),
)
"""The recipes for pairs, listed because the catalogue imports torch, which is too slow for shell completion."""


def recipe_names(incomplete: str) -> list[str]:
    """Return the names of recipes that start with `incomplete`, for shell completion."""
    return [name for name in RECIPE_NAMES if name.startswith(incomplete)]


class PrecisionName(StrEnum):
    """`TrainSettings.precision` as a choice on the command line."""

    fp32 = "fp32"
    bf16 = "bf16"


class ModeName(StrEnum):
    """`precis.generation.model_metadata.Mode` as a choice on the command line."""

    abstract = "abstract"
    extract = "extract"


TaskName = Annotated[str | None, typer.Option("--task", autocompletion=task_names, help=(
    "A named task (see: precis data list); it sets the columns."
))]  # fmt: skip
TaskToTrain = Annotated[str | None, typer.Option("--task", autocompletion=task_names, help=(
    "A named task (see: precis data list); it sets columns, lengths and decoding."
))]  # fmt: skip
Data = Annotated[str | None, typer.Option("--data", help=(
    "Pairs: a .jsonl, .csv, .tsv or .parquet file (.gz and .xz too), a folder with train, dev and test "
    "files, or hub:owner/name. With --task: the folder of the task's files."
))]  # fmt: skip
Dev = Annotated[
    str | None, typer.Option("--dev", help="File of validation pairs, if --data lacks a dev split.")
]
DocumentColumn = Annotated[str | None, typer.Option("--document-column", help="Column with the document.")]
SummaryColumn = Annotated[str | None, typer.Option("--summary-column", help="Column with the summary.")]
UnitsColumn = Annotated[str | None, typer.Option("--units-column", help=(
    "Column that lists a document's annotated units in order, for a model tuned with --set units=marked."
))]  # fmt: skip
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Skip rows that cannot be used, and report them.")]
Model = Annotated[str, typer.Option("--model", help=(
    "A run folder, a Hugging Face encoder-decoder folder, hub:owner/name (hub: may be omitted unless a "
    "folder has that name), or default, the model included with precis."
))]  # fmt: skip
InstructionToTrain = Annotated[str | None, typer.Option("--instruction", help=(
    "Text before each document. Default: the task's for a grounded model, else none."
))]  # fmt: skip
Adapter = Annotated[str | None, typer.Option("--adapter", help=(
    "An adapter for --model: a run folder of precis tune, or its adapter/. none: ignore the model's adapter."
))]  # fmt: skip
ModeOption = Annotated[ModeName | None, typer.Option("--mode", help=(
    "abstract: write a summary. extract: select sentences from the document, word for word (precis extractor "
    "trains a model for this). Default: the mode of the model's last training."
))]  # fmt: skip
Threads = Annotated[int | None, typer.Option("--threads", min=1, help=(
    "Number of CPU threads. Default: OMP_NUM_THREADS, or else one per core that CPU affinity and the "
    "container's quota allow."
))]  # fmt: skip
RunFolder = Annotated[Path, typer.Option("--out", help="Run folder; the finished model is in OUT/model.")]
_SETTINGS = ("recipes", "objectives", "tuning", "training", "nn", "data/batches")  # where their classes are


@cache
def setting_names() -> frozenset[str]:
    """Return the names of all settings, and of more fields of classes, from their sources: importing them is slow."""
    files = [file for each in _SETTINGS for file in Path(__file__).parents[2].glob(f"{each}/*.py")]
    names = re.findall(r"^    (\w+): ", "".join(file.read_text("utf-8") for file in files), re.MULTILINE)
    return frozenset({"lora", *names, *GenerationSettings.__dataclass_fields__})


def _refuse_misspelt(assignments: list[str] | None) -> list[str] | None:
    """Refuse an unknown name of `--set` before the slow imports."""
    for assignment in assignments or ():
        parts = assignment.partition("=")[0].strip().split(".")
        for at, part in enumerate(parts):
            if part and part not in setting_names():
                of = f" of {'.'.join(parts[:at])}" if at else ""
                name = ".".join(parts[: at + 1])
                close = get_close_matches(part, setting_names(), n=1, cutoff=0.8)
                meant = f"did you mean {close[0]!r}?" if close else "names are like train.learning_rate"
                raise UserError(f"--set {name}: unknown setting{of}; {meant}")
    return assignments


SettingsList = Annotated[list[str] | None, typer.Option("--set", callback=_refuse_misspelt, help=(
    "Change one setting of the recipe, such as train.learning_rate=3e-4. Repeatable."
))]  # fmt: skip


def above_zero(parameter: typer.CallbackParam, value: float | None) -> float | None:
    """Return the value if it is above 0, else raise `UserError`."""
    if value is not None and -math.inf < value <= 0:
        raise UserError(f"{parameter.opts[0]} {value:g} must be above 0")
    return value


Epochs = Annotated[float | None, typer.Option("--epochs", callback=above_zero, help=(
    "Passes over the training data. Default: the recipe's."
))]  # fmt: skip
Steps = Annotated[
    int | None, typer.Option("--steps", min=1, help="Number of optimizer steps, instead of epochs.")
]
PairsInBatch = Annotated[int | None, typer.Option("--batch-size", min=1, help=(
    "Pairs per batch, over all processes. Recipes may accumulate several batches per step "
    "(train.gradient_accumulation)."
))]  # fmt: skip
TokensInBatch = Annotated[
    int | None, typer.Option("--batch-tokens", min=1, help="Tokens per batch, instead of pairs.")
]
LearningRate = Annotated[
    float | None, typer.Option("--lr", callback=above_zero, help="Peak learning rate. Default: the recipe's.")
]
MaxSource = Annotated[int | None, typer.Option("--max-source", min=1, help=(
    "Maximum document length in tokens; longer ones are truncated. Default: the task's, else the recipe's."
))]  # fmt: skip
MaxTarget = Annotated[int | None, typer.Option("--max-target", min=1, help=(
    "Maximum summary length in tokens. Default: the task's, else the recipe's."
))]  # fmt: skip


def checked_seed(parameter: typer.CallbackParam, value: int | None) -> int | None:
    """Return the seed; raise `UserError` if it is negative or too large."""
    check_seed(parameter.opts[0], value)
    return value


Seed = Annotated[int | None, typer.Option("--seed", callback=checked_seed, help=(
    "Random seed for weights, data order and dropout. Default: 0."
))]  # fmt: skip
SamplingSeed = Annotated[int | None, typer.Option("--sampling-seed", callback=checked_seed, help=(
    "Random seed for drawing the training pairs only. Default: --seed."
))]  # fmt: skip
Seeds = Annotated[int | None, typer.Option("--seeds", min=1, help=(
    "Train with this many seeds, starting from --seed, each in OUT/seed-N; precis evaluate pools them."
))]  # fmt: skip
Trials = Annotated[
    int | None,
    typer.Option("--trials", min=1, help="Number of grid points to train, drawn at random. Default: all."),
]
_MOVES = "Set it if the run may resume on another machine: a run keeps its original precision."
Precision = Annotated[PrecisionName | None, typer.Option("--precision", help=(
    "Floating-point format. Default: bf16 if the hardware supports it, else fp32; fp32 for prophetnet-base and -large. "
    + _MOVES
))]  # fmt: skip
TuningPrecision = Annotated[
    PrecisionName | None,
    typer.Option(
        "--precision",
        help="Floating-point format; bf16 is faster on newer CPUs and GPUs. Default: fp32. " + _MOVES,
    ),
]
ValidateEvery = Annotated[int | None, typer.Option("--validate-every", min=1, help=(
    "Steps between validations. Default: the recipe's, else once an epoch and at least five times in the run."
))]  # fmt: skip
Restart = Annotated[bool, typer.Option("--restart", help="Delete the run in --out and start again.")]


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(OptionGroup):
    """The columns to read, and the handling of rows that cannot be used."""

    document_column: DocumentColumn = None
    summary_column: SummaryColumn = None
    skip_bad: SkipBad = False


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(OptionGroup):
    """The settings for training on pairs that are also options; `options_of` reads them from the context."""

    config: Config = None
    settings: SettingsList = None
    epochs: Epochs = None
    steps: Steps = None
    batch_size: PairsInBatch = None
    batch_tokens: TokensInBatch = None
    learning_rate: LearningRate = None
    max_source: MaxSource = None
    max_target: MaxTarget = None
    seed: Seed = None
    precision: Precision = None
    validate_every: ValidateEvery = None
    restart: Restart = False
    threads: Threads = None

    @property
    def assignments(self) -> list[str]:
        """The values of `--set`."""
        return self.settings or []


@dataclass(frozen=True, kw_only=True)
class PrefixTrainingSettings(TrainingSettings):
    """The same settings for a prefix, with other defaults for learning rate and precision."""

    learning_rate: Annotated[float | None, typer.Option("--lr", callback=above_zero, help=(
        "Peak learning rate. Default: 5e-5, for BART-large with prefix.keys=network. For a base of a few "
        "million parameters use 0.001 to 0.003, or 0.1 to 0.3 with --set prefix.keys=direct."
    ))] = None  # fmt: skip
    precision: TuningPrecision = None


def options_of(context: typer.Context, known: type) -> dict[str, Any]:
    """Return the options of a command that a Python function knows, by their names in its `TypedDict` of options."""
    found = {name: value for name, value in context.params.items() if name in known.__annotations__}
    return {name: value.value if isinstance(value, StrEnum) else value for name, value in found.items()}


def model_to_use(model: str | None, adapter: str | None) -> str:
    """Return the given model; else the one included with precis, with a message.

    Raises:
        UserError: an adapter is given without a model, or the default model is not installed.
    """
    if model is not None:
        return model
    from precis.generation.model_location import default_model
    from precis.generation.model_metadata import DEFAULT
    from precis.generation.model_names import check_adapter

    check_adapter(adapter, [])

    default_model()  # fails early if it is not installed
    note(
        "no --model given: the model included with precis selects sentences of the document (--mode extract)"
    )
    return DEFAULT


def begin(threads: int | None = None, *, out: Path | None = None, recipe: str | None = None) -> None:
    """Import transformers without its messages, and limit torch to `threads` or to the default of the process.

    Raises:
        UserError: before the slow imports: the recipe for pairs is unknown, or `out` has files of others.
    """
    from precis.cli.framework.library_logging import quieten_transformers

    if recipe is not None and recipe not in RECIPE_NAMES:
        raise UserError(f"unknown recipe {recipe!r}{nearest(recipe, RECIPE_NAMES)}")
    if out is not None:
        claim_folder(out)
    quieten_transformers()
    use_threads(threads)
