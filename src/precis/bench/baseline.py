"""The regression guard: ratios of a run against those of a file that an earlier run wrote.

The file maps a benchmark's name to its ratios by name. Times are compared by CPU seconds, which other work on the
machine disturbs least; memory by the ratio itself. Ratios and not times: they hold on other machines too, roughly.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from precis.bench.comparisons import Bench, Ratio
from precis.errors import UserError

TOLERANCE = 0.25


@dataclass(frozen=True, kw_only=True)
class Regression:
    """A ratio that fell by more than the tolerance."""

    name: str
    before: float
    now: float

    def __str__(self) -> str:
        return f"{self.name}: {self.now:.2f}, was {self.before:.2f} ({self.now / self.before - 1.0:+.0%})"


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What a file holds: benchmark -> name of a ratio -> ratio."""

    file: Path
    ratios: Mapping[str, Mapping[str, float]]

    def refuse_without(self, bench: str, names: Sequence[str]) -> None:
        """Raise `UserError` unless at least one of these ratios of a benchmark is there."""
        if not set(names) & set(self.ratios.get(bench, {})):
            raise UserError(
                f"{self.file} holds no ratio of this run of 'bench {bench}'; write one with "
                f"--write-baseline {self.file}"
            )


def read_baseline(file: Path, planned: Sequence[Bench] = ()) -> Baseline:
    """The file, looked at before anything is measured.

    Raises:
        UserError: it cannot be read, or holds no ratio of one of the planned benchmarks.
    """
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: not a baseline ({error}); write one with --write-baseline {file}") from None
    if not isinstance(content, dict) or not all(isinstance(part, dict) for part in content.values()):
        raise UserError(f"{file}: not a baseline (no ratios by benchmark); write one to another file")
    baseline = Baseline(file=file, ratios=content)
    for bench in planned:
        baseline.refuse_without(bench.name, [comparison.name for comparison in bench.comparisons])
    return baseline


def regressions(
    bench: str, found: Sequence[Ratio], baseline: Baseline, *, tolerance: float = TOLERANCE
) -> list[Regression]:
    """What fell below (1 - tolerance) times its ratio in the file.

    Raises:
        UserError: the file holds none of this run's ratios.
    """
    baseline.refuse_without(bench, [ratio.name for ratio in found])
    known = baseline.ratios[bench]
    both = [(ratio, known[ratio.name]) for ratio in found if ratio.name in known]
    return [
        Regression(name=ratio.name, before=before, now=_guarded(ratio))
        for ratio, before in both
        if _guarded(ratio) < (1.0 - tolerance) * before
    ]


def write_baseline(bench: str, found: Sequence[Ratio], baseline: Path) -> None:
    """Put a run's ratios into the file; those of other benchmarks, and of cells not run, stay."""
    content = {**read_baseline(baseline).ratios} if baseline.exists() else {}
    now = {ratio.name: float(f"{_guarded(ratio):.3g}") for ratio in found}
    content[bench] = {**content.get(bench, {}), **now}
    baseline.parent.mkdir(parents=True, exist_ok=True)
    baseline.write_text(json.dumps(content, indent=1) + "\n")


def _guarded(ratio: Ratio) -> float:
    return ratio.value if ratio.cpu is None else ratio.cpu
