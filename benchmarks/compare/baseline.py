"""The regression guard: ratios of a run against those of a file that an earlier run wrote.

The file maps a benchmark's name to its figures by name. A time has two figures. The ratio of CPU seconds is the one
that other work on the machine disturbs least. The ratio of wall seconds includes idle threads; it is kept only if no
sample was loaded. Memory has one figure, the ratio itself. Ratios also hold on other machines, roughly; times do not.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.compare.comparisons import Bench, Figure, Ratio
from precis.storage.atomic import write_file
from precis_text.bounded_io import parse_json
from precis_text.errors import UserError

TOLERANCE = 0.25
_CPU, _WALL = ", CPU", ", wall"


@dataclass(frozen=True, kw_only=True)
class Regression:
    """A figure that fell by more than the tolerance."""

    name: str
    before: float
    now: float

    def __str__(self) -> str:
        return f"{self.name}: {self.now:.2f}, was {self.before:.2f} ({self.now / self.before - 1.0:+.0%})"


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The content of a baseline file: benchmark -> name of a figure -> ratio."""

    file: Path
    ratios: Mapping[str, Mapping[str, float]]

    def of(self, bench: Bench) -> dict[str, float]:
        """Return the ratios of a benchmark's comparisons, without memory if the benchmark does not measure it."""
        known = self.ratios.get(bench.name, {})
        return {name: ratio for name, ratio in known.items() if _is_measured(name, bench)}


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """A run compared with the file.

    Args:
        known: figures of the file that this run compares too.
        compared: the known figures that the run has too.
        fallen: the compared figures that fell by more than the tolerance.
        absent: figures that the run should have, and lacks: whether they fell is unknown.
        loaded: wall times that were not compared because of other load.
    """

    bench: str
    known: int
    compared: int
    fallen: tuple[Regression, ...]
    absent: tuple[str, ...]
    loaded: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"{self.bench}: compared {self.compared} of {self.known} figures of the baseline"]
        if self.absent:
            parts.append(f"absent: {'; '.join(self.absent)}")
        if self.loaded:
            parts.append(f"not compared, under other load: {'; '.join(self.loaded)}")
        return "; ".join(parts)

    def confirmed_by(self, again: "Guarded") -> "Guarded":
        """Drop the figures that fell in this run but not in the other one.

        A pass takes another time in another process, with our code and with the libraries, by up to a half in short
        cells. Close rounds within one process do not prevent this. Figures that the other run could not compare stay.
        """
        names = {each.name for each in again.fallen} | {*again.absent, *again.loaded}
        return replace(self, fallen=tuple(each for each in self.fallen if each.name in names))

    @property
    def problems(self) -> list[str]:
        """List the reasons why the run is worse than the file, a line each; none if it is as good."""
        fallen = [f"{self.bench}: {each}" for each in self.fallen]
        return fallen + [f"{self.bench}: {name}: absent from this run" for name in self.absent]


def read_baseline(file: Path, planned: Sequence[Bench] = ()) -> Baseline:
    """Read the file and check it, before any measurement.

    Raises:
        UserError: it cannot be read, or lacks the ratios of one of the planned benchmarks.
    """
    try:
        content = parse_json(file.read_bytes())
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: not a baseline ({error}); write one with --write-baseline {file}") from None
    if not isinstance(content, dict) or not all(isinstance(part, dict) for part in content.values()):
        raise UserError(f"{file}: not a baseline (no ratios by benchmark); write one to another file")
    baseline = Baseline(file=file, ratios=content)
    for bench in planned:
        if not baseline.of(bench):
            raise UserError(
                f"{file} holds no ratio of this run of 'bench {bench.name}'; write one with "
                f"--write-baseline {file}"
            )
    return baseline


def guard(
    bench: Bench, found: Sequence[Ratio], baseline: Baseline, *, tolerance: float = TOLERANCE
) -> Guarded:
    """Hold a run's ratios against the file's: fallen is what is below (1 - tolerance) times what it was."""
    now = {name: figure for ratio in found for name, figure in _figures(ratio).items()}
    known = baseline.of(bench)
    both = [Regression(name=name, before=known[name], now=now[name]) for name in known if name in now]
    loaded = [name for name in known if name not in now and name.removesuffix(_WALL) + _CPU in now]
    return Guarded(
        bench=bench.name,
        known=len(known),
        compared=len(both),
        fallen=tuple(each for each in both if each.now < (1.0 - tolerance) * each.before),
        absent=tuple(name for name in known if name not in now and name not in loaded),
        loaded=tuple(loaded),
    )


def write_baseline(bench: Bench, found: Sequence[Ratio], file: Path) -> None:
    """Put a run's figures into the file.

    Those of other benchmarks, of cells not run, and of what this run could not measure stay; those that the benchmark
    compares no more go.
    """
    content = {**read_baseline(file).ratios} if file.exists() else {}
    now = {name: float(f"{r:.3g}") for ratio in found for name, r in _figures(ratio).items()}
    old = content.get(bench.name, {})
    kept = {name: r for name, r in old.items() if _cell_of(name, bench) is None or _is_asked(name, bench)}
    content[bench.name] = {**kept, **now}
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, json.dumps(content, indent=1) + "\n")


def _figures(ratio: Ratio) -> dict[str, float]:
    """Return the guarded figures of a ratio, by name."""
    if ratio.rounds == 0:
        return {ratio.name: ratio.value}
    cpu = {} if ratio.cpu is None else {ratio.name + _CPU: ratio.cpu}
    wall = {ratio.name + _WALL: ratio.value} if ratio.loaded == 0 else {}
    return {**cpu, **wall}


def _is_measured(name: str, bench: Bench) -> bool:
    """Test whether a run of the benchmark should have this figure."""
    cell = _cell_of(name, bench)
    is_timed = bench.settings.memory or name.startswith(f"{cell}: {Figure.time} ")
    return cell is not None and is_timed and _is_asked(name, bench)


def _is_asked(name: str, bench: Bench) -> bool:
    """Test whether one of the benchmark's comparisons gives this figure."""
    return name.removesuffix(_CPU).removesuffix(_WALL) in {
        comparison.name for comparison in bench.comparisons
    }


def _cell_of(name: str, bench: Bench) -> str | None:
    return next((cell.name for cell in bench.cells if name.startswith(f"{cell.name}: ")), None)
