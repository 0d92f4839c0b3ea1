"""The regression guard: ratios of a run against those of a file, `benchmarks/baseline.json`.

The file maps a benchmark's name to its ratios by name. Times are compared by CPU seconds, which other work on the
machine disturbs least; memory by the ratio itself. Ratios and not times: they hold on other machines too, roughly.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from precis.bench.comparisons import Ratio
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


def regressions(
    bench: str, found: Sequence[Ratio], baseline: Path, *, tolerance: float = TOLERANCE
) -> list[Regression]:
    """What fell below (1 - tolerance) times its ratio in the file.

    Raises:
        UserError: the file cannot be read, or holds none of this run's ratios.
    """
    known = _read(baseline).get(bench, {})
    both = [(ratio, known[ratio.name]) for ratio in found if ratio.name in known]
    if not both:
        raise UserError(
            f"{baseline} holds no ratio of this run of 'bench {bench}'; write one with --write-baseline {baseline}"
        )
    return [
        Regression(name=ratio.name, before=before, now=_guarded(ratio))
        for ratio, before in both
        if _guarded(ratio) < (1.0 - tolerance) * before
    ]


def write_baseline(bench: str, found: Sequence[Ratio], baseline: Path) -> None:
    """Put a run's ratios into the file; those of other benchmarks, and of cells not run, stay."""
    content = _read(baseline) if baseline.exists() else {}
    known = content.setdefault(bench, {})
    known.update({ratio.name: float(f"{_guarded(ratio):.3g}") for ratio in found})
    baseline.parent.mkdir(parents=True, exist_ok=True)
    baseline.write_text(json.dumps(content, indent=1) + "\n")


def _guarded(ratio: Ratio) -> float:
    return ratio.value if ratio.cpu is None else ratio.cpu


def _read(path: Path) -> dict[str, dict[str, float]]:
    try:
        content: dict[str, dict[str, float]] = json.loads(path.read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise UserError(f"{path}: not a baseline ({error}); write one with --write-baseline") from None
    return content
