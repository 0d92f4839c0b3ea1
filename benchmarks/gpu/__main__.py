"""One command for a machine with a card: is everything right there, and how fast is precis compared with others?

    make gpu            or: python -m benchmarks.gpu [--out FILE] [--minutes 8] [--only STAGE ...]
    make gpu DRY=1      or: python -m benchmarks.gpu --dry: the same stages at toy sizes on the CPU

Stages: machine (versions, matmul peak), tests (those marked gpu), exactness (every way of attention against fp64),
attention, encoder, decoding, training. Each runs in its own process with its own time limit; one that breaks is named
and the others continue. The table of goals comes last. After every stage the JSON is written again: hardware, versions,
commit, seed, all rounds. Nothing is fetched from the network.

Exit status: 0; 1 if something failed or was wrong (a missed goal is not: the table reports it); 2 without a card.
"""

import argparse
import shlex
import sys
import time
from pathlib import Path

import torch
from rich.console import Console

from benchmarks.gpu import report
from benchmarks.gpu.stages import STAGES, Outcome, Stage, run

_EIGHT = 8.0
_MINUTES, _DRY_MINUTES = _EIGHT, 10.0
_FOLDER = Path("runs/gpu")
_END = 20.0  # seconds kept for starting and for the tables
_WIDTH = 120  # of a table without a terminal
_NO_CARD = 2


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    began = time.monotonic()
    options = _options(arguments)
    if not options.dry and not torch.cuda.is_available():
        print(
            f"no CUDA device: torch {torch.__version__} sees none here; to walk through it at toy sizes on the CPU: "
            "make gpu DRY=1",
            file=sys.stderr,
        )
        return _NO_CARD
    out = options.out or _FOLDER / ("dry.json" if options.dry else "results.json")
    minutes = options.minutes or (_DRY_MINUTES if options.dry else _MINUTES)
    chosen = [stage for stage in STAGES if options.only is None or stage.name in options.only]
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    found: dict[str, Outcome] = {}
    about = {"command": shlex.join(sys.argv), "minutes": minutes, "date": time.strftime("%Y-%m-%d %H:%M")}
    for number, stage in enumerate(chosen):
        limit = deadline(chosen, number, began=began, minutes=minutes)
        seconds = limit - time.monotonic()
        console.print(f"{number + 1}/{len(chosen)} {stage.name} (up to {seconds:.0f} s)", markup=False)
        found[stage.name] = run(stage, out.parent / f"{out.stem}-stages", deadline=limit, dry=options.dry)
        report.write(out, found, dry=options.dry, whole=number + 1 == len(chosen), **about)
        console.print(report.stage_table(stage.name, found[stage.name]))
    console.print(report.goals_table(report.goals_of(found, dry=options.dry)))
    return _ending(found, out, console, seconds=time.monotonic() - began)


def deadline(stages: list[Stage], number: int, *, began: float, minutes: float) -> float:
    """Compute when a stage must end so that the later stages keep their shares.

    A stage also gets the time that earlier ones left.
    """
    whole = 60 * minutes - _END
    later = sum(stage.share for stage in stages[number + 1 :])
    return began + whole * (1 - later / sum(stage.share for stage in stages))


def _ending(found: dict[str, Outcome], out: Path, console: Console, *, seconds: float) -> int:
    failures = [f"{name}: {line}" for name, stage in found.items() for line in stage.failures()]
    for line in failures:
        console.print(f"FAILED {line}", markup=False)
    console.print(
        f"{seconds:.0f} s; everything is in {out}, what the stages wrote in {out.parent}/{out.stem}-stages"
    )
    return 1 if failures else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--dry", action="store_true", help="toy sizes on the CPU")
    parser.add_argument("--out", type=Path, help=f"the JSON; default: in {_FOLDER}")
    parser.add_argument("--minutes", type=float, help=f"for everything; default: {_MINUTES:g}")
    parser.add_argument("--only", nargs="+", choices=[s.name for s in STAGES], help="some stages")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
