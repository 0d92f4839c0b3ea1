"""`precis reproduce`: reproduce a table of a paper at a chosen scale."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from precis.cli.framework.command_class import describe_command
from precis.cli.framework.options import ModeName, PrecisionName, Threads, begin
from precis.phases.output_folders import existing_folder
from precis_text.errors import RunError, UserError

if TYPE_CHECKING:
    from precis_experiments.experiment import Experiment
    from precis_experiments.small_model import Writing
    from precis_experiments.study_plan import StudyPlan


class PaperTable(StrEnum):
    """The tables that can be reproduced."""

    fewshot = "zcodepp-fewshot"
    ablation = "zcodepp-ablation"
    prophetnet = "prophetnet"
    prefix = "discourse-prefix"
    facts = "structure-to-text"
    glue = "glue"
    multilingual = "multilingual"
    default_model = "default-model"


_WITH_MODEL = (PaperTable.default_model, PaperTable.facts, PaperTable.glue)
_MAY_HAVE_MODEL = (PaperTable.fewshot, PaperTable.prefix, PaperTable.multilingual)
_MAY_HAVE_BESIDE = (PaperTable.fewshot, PaperTable.multilingual, PaperTable.glue)


class ScaleName(StrEnum):
    """The scales of `precis_experiments.scales` as a choice on the command line."""

    smoke = "smoke"
    micro = "micro"
    mini = "mini"


@describe_command(
    "reproduce",
    rich_help_panel="Data and experiments",
    epilog=(
        "Example:  precis reproduce zcodepp-fewshot --scale micro --data DIR --out runs/fewshot\n\n"
        "To resume, repeat the command: finished steps do not run again. Commands in several terminals, or on "
        "several machines that share the folder, share the work. OUT/table.md shows the results so far. The micro "
        "scale takes some hours on two CPU cores; mini is for a GPU; smoke takes a few minutes and tests the "
        "pipeline.\n\n"
        "DIR contains the folders samsum, e2e, pretrain_wikinews and so on; docs/guide/reproduce.md lists those that "
        "each table needs at each scale, and their columns. Missing pretrain_* folders are skipped and recorded. "
        "Processes that share the work need the same absolute DIR and hardware that computes in the same precision."
    ),
)
def reproduce(
    table: Annotated[PaperTable, typer.Argument(help="The table to reproduce.", show_default=False)],
    data: Annotated[
        Path,
        typer.Option(
            "--data",
            help="Folder with one folder per data set (samsum, ...); see docs/guide/reproduce.md.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for all results.", show_default=False)],
    scale: Annotated[ScaleName, typer.Option("--scale", help="Size of the experiments.")] = ScaleName.micro,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help=(
                "The pre-trained model to start from: default-model, structure-to-text and glue need one; "
                "zcodepp-fewshot, discourse-prefix and multilingual pre-train their own without it."
            ),
        ),
    ] = None,
    mode: Annotated[
        ModeName,
        typer.Option(
            "--mode",
            help="For default-model: extract trains it to select sentences; abstract, also to write (takes hours).",
        ),
    ] = ModeName.extract,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps",
            min=1,
            help="For default-model --mode abstract: total training steps for writing; may be changed on resuming.",
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds",
            min=1,
            help="Use seeds 0 to N-1 instead of the scale's; N may grow later. Intervals pool them.",
            show_default=False,
        ),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(
            "--beside",
            help=(
                "For zcodepp-fewshot, multilingual and glue: add rows for another model, such as "
                "google/pegasus-large or a folder. Repeatable."
            ),
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            help=(
                "For tables: run only the steps whose names match a pattern, such as 'tuned-2gram-*', and the steps "
                "that they need. Repeatable."
            ),
        ),
    ] = None,
    precision: Annotated[
        PrecisionName | None,
        typer.Option(
            "--precision", help="Number format. Default: bf16 if the hardware supports it natively."
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print the steps, the data sets and a rough time, and exit.")
    ] = False,
    latex: Annotated[
        bool, typer.Option("--latex", help="Print the tables as LaTeX (booktabs), as in OUT/table.tex.")
    ] = False,
    threads: Threads = None,
) -> None:
    """Run the experiments behind a paper's table, at a scale of your choice, and print the results next to the paper's.

    default-model builds the model included with precis, from a pre-trained one and openly licensed pairs.
    """
    existing_folder(data)
    is_default = table is PaperTable.default_model
    _check_together(
        table, model=model, mode=mode, steps=steps, beside=beside, is_table=bool(seeds or latex or only)
    )
    if precision is not None:
        from precis.recipes.run_plan import PRECISION

        os.environ[PRECISION] = precision.value
    from precis.cli.framework.console import note

    begin(threads)
    if model is not None and is_default:
        from precis_experiments.small_model import default_model_plan

        writing = _writing(mode, scale, steps)
        if plan:
            _print_plan(default_model_plan(scale.value, data=data, out=out, writing=writing), data)
        else:
            _make_default_model(model, data, out, writing)
        return
    from precis_experiments.experiment import LATEX_FILE, TABLE_FILE
    from precis_experiments.initial_model import begin_with
    from precis_experiments.resumable_steps import Interrupted
    from precis_experiments.scales import with_seeds

    study = _experiment(table)
    size = study.scales[scale.value]
    if model is not None:
        size = begin_with(size, model)
    if seeds is not None:
        size = with_seeds(size, seeds)
    if beside:
        size = replace(size, beside=tuple(beside))
    if plan:
        _print_plan(study.plan(size, data=data, out=out, notify=note, only=only or ()), data)
        return
    try:
        text = study(size, data=data, out=out, notify=note, only=only or ())
    except (Interrupted, KeyboardInterrupt):
        note("repeat the command to resume")
        raise typer.Exit(130) from None
    print((out / LATEX_FILE).read_text() if latex else text)
    print(f"written: {out / TABLE_FILE}, {out / LATEX_FILE}", file=sys.stderr if latex else sys.stdout)


def _print_plan(plan: StudyPlan, data: Path) -> None:
    from precis.cli.framework.console import show

    print(plan.summary())
    show(plan.table())
    show(plan.reads.table(data))


def _check_together(
    table: PaperTable,
    *,
    model: str | None,
    mode: ModeName,
    steps: int | None,
    beside: list[str] | None,
    is_table: bool,
) -> None:
    """Refuse options that belong to another table."""
    if table is PaperTable.default_model and is_table:
        raise UserError("default-model is a model, not a table; omit --seeds, --only and --latex")
    if table in _WITH_MODEL and model is None:
        raise UserError(f"{table} needs a pre-trained model; name one with --model")
    if model is not None and table not in (*_WITH_MODEL, *_MAY_HAVE_MODEL):
        takes = ", ".join((*_WITH_MODEL, *_MAY_HAVE_MODEL))
        raise UserError(f"{table} pre-trains its own models; omit --model, which is for {takes}")
    if beside and table not in _MAY_HAVE_BESIDE:
        raise UserError(f"--beside is only for {', '.join(_MAY_HAVE_BESIDE)}; omit it")
    if table is not PaperTable.default_model and mode is not ModeName.extract:
        raise UserError(f"--mode {mode} is only for default-model; omit it")
    if steps is not None and mode is not ModeName.abstract:
        raise UserError("--steps is only for default-model --mode abstract; omit it")


def _experiment(table: PaperTable) -> Experiment[Any]:
    """Return the experiments of a table."""
    from precis_experiments.glue_study import glue
    from precis_experiments.languages_study import multilingual
    from precis_experiments.ngram_study import prophetnet
    from precis_experiments.prefix_study import discourse_prefix
    from precis_experiments.structure_study import structure_to_text
    from precis_experiments.zcodepp_studies import ablation, fewshot

    known: tuple[Experiment[Any], ...] = (
        fewshot,
        ablation,
        prophetnet,
        discourse_prefix,
        structure_to_text,
        glue,
        multilingual,
    )
    return {study.name: study for study in known}[table.value]


def _writing(mode: ModeName, scale: ScaleName, steps: int | None) -> Writing | None:
    """Return the plan that trains the default model to write; None for extract."""
    from precis_experiments.small_model import WRITING

    if mode is ModeName.extract:
        return None
    known = WRITING[scale.value]
    train = replace(known.ground.train, steps=steps or known.ground.train.steps)
    return replace(known, ground=replace(known.ground, train=train))


def _make_default_model(model: str, data: Path, out: Path, writing: Writing | None) -> None:
    from precis.cli.framework.console import note
    from precis_experiments.resumable_steps import in_a_study
    from precis_experiments.small_model import RELEASE, RELEASE_FOLDER, default_model

    def told(text: str) -> None:
        note(in_a_study(text))

    try:
        done = default_model(RELEASE, data=data, start=model, out=out, writing=writing, notify=told)
    except (UserError, RunError) as problem:
        remedy = f"; delete that folder in {out} and repeat the command"
        raise type(problem)(in_a_study(str(problem), remedy=remedy)) from problem
    if done.model is None:
        note("repeat the command to resume")
        raise typer.Exit(130)
    print(f"written: {out / RELEASE_FOLDER}")
