"""Our code against the libraries that people use, timed in turn: `python -m benchmarks.compare attention --quick`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.main import get_command

from precis.cli import run_app
from precis.cli.framework.command_class import Commands
from precis.phases.output_folders import claim_folder
from precis_text.errors import RunError, UserError

if TYPE_CHECKING:
    from benchmarks.compare.baseline import Baseline, Guarded
    from benchmarks.compare.comparisons import Bench
    from benchmarks.compare.results import Results


_AGAIN = 2  # how often a subject is measured again whose ratios fell


class Subject(StrEnum):
    """A benchmark to run: a module here with a function `bench`, or all of them in turn."""

    attention = "attention"
    busy = "busy"
    decode = "decode"
    encoder = "encoder"
    fie = "fie"
    tune = "tune"
    prophetnet = "prophetnet"
    train = "train"
    everything = "all"


app = Commands(
    name="compare",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(
    epilog=(
        "Examples:\n\n"
        "python -m benchmarks.compare attention --quick\n\n"
        "python -m benchmarks.compare fie --out runs/bench\n\n"
        "python -m benchmarks.compare all --quick --out runs/bench\n\n"
        "python -m benchmarks.compare encoder --quick --write-baseline runs/baseline.json\n\n"
        "python -m benchmarks.compare encoder --quick --against runs/baseline.json"
    )
)
def bench(
    subject: Annotated[
        Subject, typer.Argument(help="What to measure; all: every subject in turn.", show_default=False)
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Short inputs and few rounds: under 2 minutes a subject.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for bench-NAME.json and bench-NAME.png.")
    ] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", min=1, help="Turns of each contender.")] = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="CPU threads; default: 2.")] = None,
    memory: Annotated[
        bool | None,
        typer.Option("--memory/--no-memory", help="Measure memory too; default: yes, with --quick no."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", help="Fail if a ratio falls below that of this file in three runs."),
    ] = None,
    tolerance: Annotated[
        float, typer.Option("--tolerance", min=0.0, max=1.0, help="How far a ratio may fall with --against.")
    ] = 0.25,
    baseline_file: Annotated[
        Path | None, typer.Option("--write-baseline", help="Put this run's ratios into this file.")
    ] = None,
) -> None:
    """Measure the time and memory of our code and of others' in turn, and print ratios with their spread.

    Each contender has its own process. Run it on a quiet machine: samples taken under other load are counted and shown.
    A contender that fails is named, the rest is measured, and the command ends with 1.
    """
    from benchmarks.compare.baseline import read_baseline
    from benchmarks.compare.machine import describe

    planned = [
        _with(each, rounds=rounds, threads=threads, memory=memory) for each in _planned(subject, quick=quick)
    ]
    before = read_baseline(against, planned) if against is not None else None
    _check_places(out, baseline_file)
    outputs = _Outputs(
        folder=out, baseline=baseline_file, before=before, tolerance=tolerance, machine=describe()
    )
    _run(planned, outputs)


@dataclass(frozen=True, kw_only=True)
class _Outputs:
    """The output folder, the baseline and its tolerance, and the machine as it was before the first measurement."""

    folder: Path | None
    baseline: Path | None
    before: Baseline | None
    tolerance: float
    machine: Mapping[str, Any]


def _check_places(out: Path | None, baseline_file: Path | None) -> None:
    """Refuse files that could not be written, before the time is spent."""
    from benchmarks.compare import report
    from benchmarks.compare.baseline import read_baseline

    if baseline_file is not None and baseline_file.exists():
        read_baseline(baseline_file)
    if out is not None:
        claim_folder(out, is_ours=report.is_ours)


def _run(planned: Sequence[Bench], outputs: _Outputs) -> None:
    problems: list[str] = []
    errors: list[Exception] = []
    for each in planned:
        try:
            problems += _problems(each, outputs)
        except Exception as error:  # the other subjects are still to be measured
            errors.append(error)
            text = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            problems.append(f"{each.name}: {text}")
    if problems:
        can_be_mended = len(errors) == len(problems) and all(isinstance(e, UserError) for e in errors)
        kind = UserError if can_be_mended else RunError
        raise kind("; ".join(problems)) from (ExceptionGroup("what was raised", errors) if errors else None)
    if outputs.before is not None:
        print(f"no ratio fell by more than {outputs.tolerance:.0%} below {outputs.before.file}")


def _problems(planned: Bench, outputs: _Outputs) -> list[str]:
    """Measure one subject, say what came out, and give what went wrong, a line each.

    What fell below the old baseline is measured again: only what falls each time counts.
    """
    from precis.cli.framework.console import note

    results = _measured(planned, outputs)
    problems = [f"{planned.name}: {failure}" for failure in results.failed]
    _write_baseline(planned, results, outputs)
    if outputs.before is None:
        return problems
    guarded = _guarded(planned, results, outputs.before, outputs.tolerance)
    for _ in range(_AGAIN):
        if not guarded.fallen:
            break
        note(f"{planned.name}: measured again, since a ratio fell: {len(guarded.fallen)} in all")
        again = _measured(planned, replace(outputs, folder=None))
        guarded = guarded.confirmed_by(_guarded(planned, again, outputs.before, outputs.tolerance))
    for line in guarded.problems:
        note(line)
    return problems + guarded.problems


def _measured(planned: Bench, outputs: _Outputs) -> Results:
    """Measure one subject, print its tables and write its files."""
    from benchmarks.compare import report
    from benchmarks.compare.harness import measure
    from precis.cli.framework.console import note

    def keep(results: Results) -> None:
        if outputs.folder is not None:
            report.write_json(planned, results, outputs.folder, machine=outputs.machine, whole=False)

    results = measure(
        planned.contenders,
        planned.cells,
        planned.settings,
        notify=lambda line: note(f"{planned.name}: {line}"),
        keep=keep,
    )
    if outputs.folder is not None:
        report.write(planned, results, outputs.folder, machine=outputs.machine)
    _show(planned, results)
    if outputs.folder is not None:
        print(
            f"written: {outputs.folder}/bench-{planned.name}.json, {outputs.folder}/bench-{planned.name}.png"
        )
    return results


def _show(planned: Bench, results: Results) -> None:
    """Print tables and lines of growth to standard output, and everything else to standard error."""
    from benchmarks.compare import report
    from benchmarks.compare.comparisons import ratios
    from benchmarks.compare.growth import growths, marginal_costs
    from precis.cli.framework.console import note, show

    show(report.times_table(planned, results))
    show(report.ratios_table(ratios(planned, results)))
    for line in (*growths(planned, results), *marginal_costs(planned, results)):
        print(line)
    for name, cell, reason in results.left_out:
        note(f"left out: {name}{f', {cell}' if cell else ''}: {reason}")
    for failure in results.failed:
        note(f"failed: {failure}")
        for line in failure.log:
            note(f"    {line}")


def _write_baseline(planned: Bench, results: Results, outputs: _Outputs) -> None:
    from benchmarks.compare.baseline import write_baseline
    from benchmarks.compare.comparisons import ratios

    if outputs.baseline is not None:
        write_baseline(planned, ratios(planned, results), outputs.baseline)
        print(f"written: {outputs.baseline}")


def _guarded(planned: Bench, results: Results, before: Baseline, tolerance: float) -> Guarded:
    """Hold a run against the old baseline, and say what was compared."""
    from benchmarks.compare.baseline import guard
    from benchmarks.compare.comparisons import ratios

    guarded = guard(planned, ratios(planned, results), before, tolerance=tolerance)
    print(guarded)
    return guarded


def _planned(subject: Subject, *, quick: bool) -> list[Bench]:
    every = [each for each in Subject if each is not Subject.everything]
    chosen = every if subject is Subject.everything else [subject]
    modules: list[Any] = [importlib.import_module(f"benchmarks.compare.{each.value}") for each in chosen]
    return [module.bench(quick=quick) for module in modules]


def _with(planned: Bench, *, rounds: int | None, threads: int | None, memory: bool | None) -> Bench:
    settings = planned.settings
    return replace(
        planned,
        settings=replace(
            settings,
            rounds=rounds if rounds is not None else settings.rounds,
            threads=threads if threads is not None else settings.threads,
            memory=memory if memory is not None else settings.memory,
        ),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (that of the process when `argv` is None); the exit code."""
    return run_app("python -m benchmarks.compare", lambda: get_command(app), argv)


if __name__ == "__main__":
    raise SystemExit(main())
