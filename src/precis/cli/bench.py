"""`precis bench`: our code beside the libraries that people use, timed in turn."""

from __future__ import annotations

import importlib
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from precis.errors import RunError

if TYPE_CHECKING:
    from precis.bench.comparisons import Bench


class Subject(StrEnum):
    """What can be measured: the modules of `precis.bench` that have a function `bench`."""

    attention = "attention"
    decode = "decode"
    encoder = "encoder"
    fie = "fie"
    tune = "tune"
    prophetnet = "prophetnet"
    train = "train"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "bench",
        epilog=(
            "Examples:\n\n"
            "precis bench attention --quick\n\n"
            "precis bench fie --out runs/bench\n\n"
            "precis bench encoder --quick --against benchmarks/baseline.json"
        ),
    )(bench)


def bench(
    subject: Annotated[Subject, typer.Argument(help="What to measure.", show_default=False)],
    quick: Annotated[
        bool, typer.Option("--quick", help="Short inputs and few rounds: under 2 minutes.")
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
    write_baseline: Annotated[
        Path | None, typer.Option("--write-baseline", help="Put this run's ratios into this file.")
    ] = None,
) -> None:
    """Time and memory of our code and of others', interleaved, each in its own process, as ratios with their spread.

    Run it on a quiet machine; samples taken beside other work are counted and shown.
    """
    from precis.bench import baseline, report
    from precis.bench.comparisons import growths, ratios
    from precis.bench.harness import measure
    from precis.cli.console import note, show

    planned = _with(_planned(subject, quick=quick), rounds=rounds, threads=threads, memory=memory)
    results = measure(planned.contenders, planned.cells, planned.settings, tell=note)
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
    if write_baseline is not None:
        baseline.write_baseline(planned.name, found, write_baseline)
        print(f"written: {write_baseline}")
    if against is not None:
        fallen = baseline.regressions(planned.name, found, against, tolerance=tolerance)
        if fallen:
            raise RunError("; ".join(str(regression) for regression in fallen))
        print(f"no ratio fell by more than {tolerance:.0%} below {against}")


def _planned(subject: Subject, *, quick: bool) -> Bench:
    module: Any = importlib.import_module(f"precis.bench.{subject.value}")
    planned: Bench = module.bench(quick=quick)
    return planned


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
