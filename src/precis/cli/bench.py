"""`precis bench`: our code beside the libraries that people use, timed in turn."""

from __future__ import annotations

import importlib
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from precis.errors import RunError, UserError

if TYPE_CHECKING:
    from precis.bench.comparisons import Bench, Ratio


class Subject(StrEnum):
    """What can be measured: the modules of `precis.bench` that have a function `bench`, or all of them in turn."""

    attention = "attention"
    decode = "decode"
    encoder = "encoder"
    fie = "fie"
    tune = "tune"
    prophetnet = "prophetnet"
    train = "train"
    everything = "all"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "bench",
        epilog=(
            "Examples:\n\n"
            "precis bench attention --quick\n\n"
            "precis bench fie --out runs/bench\n\n"
            "precis bench all --quick --out runs/bench\n\n"
            "precis bench encoder --quick --write-baseline runs/baseline.json\n\n"
            "precis bench encoder --quick --against runs/baseline.json"
        ),
    )(bench)


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
    memory: Annotated[bool, typer.Option("--memory/--no-memory", help="Measure memory too.")] = True,
    against: Annotated[
        Path | None, typer.Option("--against", help="Fail if a ratio fell below that of this file.")
    ] = None,
    tolerance: Annotated[
        float, typer.Option("--tolerance", min=0.0, max=1.0, help="How far a ratio may fall with --against.")
    ] = 0.25,
    baseline_file: Annotated[
        Path | None, typer.Option("--write-baseline", help="Put this run's ratios into this file.")
    ] = None,
) -> None:
    """Time and memory of our code and of others', interleaved, each in its own process, as ratios with their spread.

    Run it on a quiet machine; samples taken beside other work are counted and shown.
    """
    from precis.bench.baseline import read_baseline, regressions, write_baseline

    planned = [
        _with(each, rounds=rounds, threads=threads, memory=memory) for each in _planned(subject, quick=quick)
    ]
    before = read_baseline(against, planned) if against is not None else None
    _check_places(out, baseline_file)
    fallen = []
    for each in planned:
        found = _measured(each, out)
        if baseline_file is not None:
            write_baseline(each.name, found, baseline_file)
            print(f"written: {baseline_file}")
        if before is not None:
            lower = regressions(each.name, found, before, tolerance=tolerance)
            fallen += [f"{each.name}: {ratio}" for ratio in lower]
    if fallen:
        raise RunError("; ".join(fallen))
    if before is not None:
        print(f"no ratio fell by more than {tolerance:.0%} below {against}")


def _check_places(out: Path | None, baseline_file: Path | None) -> None:
    """Refuse files that could not be written, before the time is spent."""
    from precis.bench.baseline import read_baseline

    if baseline_file is not None and baseline_file.exists():
        read_baseline(baseline_file)
    if out is not None and out.exists() and not out.is_dir():
        raise UserError(f"{out}: is a file; --out names a folder")


def _measured(planned: Bench, out: Path | None) -> list[Ratio]:
    """Measure one subject, print its tables and write its files."""
    from precis.bench import report
    from precis.bench.comparisons import growths, ratios
    from precis.bench.harness import measure
    from precis.cli.console import note, show

    results = measure(
        planned.contenders,
        planned.cells,
        planned.settings,
        tell=lambda line: note(f"{planned.name}: {line}"),
    )
    found = ratios(planned, results)
    show(report.times_table(planned, results))
    show(report.ratios_table(found))
    for line in report.growth_lines(growths(planned, results)):
        print(line)
    for name, cell, reason in results.left_out:
        note(f"left out: {name}{f', {cell}' if cell else ''}: {reason}")
    if out is not None:
        report.write(planned, results, out)
        print(f"written: {out}/bench-{planned.name}.json, {out}/bench-{planned.name}.png")
    return found


def _planned(subject: Subject, *, quick: bool) -> list[Bench]:
    every = [each for each in Subject if each is not Subject.everything]
    chosen = every if subject is Subject.everything else [subject]
    modules: list[Any] = [importlib.import_module(f"precis.bench.{each.value}") for each in chosen]
    return [module.bench(quick=quick) for module in modules]


def _with(planned: Bench, *, rounds: int | None, threads: int | None, memory: bool) -> Bench:
    settings = planned.settings
    return replace(
        planned,
        settings=replace(
            settings,
            rounds=rounds if rounds is not None else settings.rounds,
            threads=threads if threads is not None else settings.threads,
            memory=memory,
        ),
    )
