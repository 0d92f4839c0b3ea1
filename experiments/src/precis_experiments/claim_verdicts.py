"""Verdicts on the claims of a paper, each with our difference and its interval.

"Decided" means that a 95% interval over runs and test rows is on the paper's side of zero, "contradicted" that it
is on the other side. One run decides nothing: its interval does not cover other seeds. Nor do two, which have a
range and no interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from precis.evaluation.significance import TOO_FEW_FOR_T, Interval
from precis_text.row import pluralize

Verdict = Literal["decided", "not decided", "contradicted", "never run"]
NOTE = """Claims: differences towards the paper's side, 95% intervals over runs and test rows, without correction for
multiple comparisons. Decided, contradicted: the interval leaves out zero. One or two runs decide nothing.
"""


@final
@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of a paper, as a difference that is above zero if the paper is right.

    Attributes:
        words: what is better than what, on which task and by which measure.
        source: the table or the section.
        theirs: the paper's difference, in its own measure; "" if it prints none.
        ours: our difference with its interval; None if it was never run.
        runs: the number of runs behind it.
        decimals: decimal places of the printed difference.
    """

    words: str
    source: str
    theirs: str
    ours: Interval | None
    runs: int
    decimals: int = 1

    @property
    def verdict(self) -> Verdict:
        """The result of our runs: see the module."""
        if self.ours is None:
            return "never run"
        if self.runs > TOO_FEW_FOR_T and self.ours.low > 0:
            return "decided"
        if self.runs > TOO_FEW_FOR_T and self.ours.high < 0:
            return "contradicted"
        return "not decided"


def verdict_rows(claims: Sequence[Claim], scale: str) -> list[list[str]]:
    """Return a row for each claim: what, theirs, ours, the scale with its runs, the verdict."""
    return [
        [
            f"{claim.words} ({claim.source})",
            claim.theirs or "not printed",
            "" if claim.ours is None else _signed(claim.ours, claim.decimals),
            f"{scale}, {pluralize(claim.runs, 'run')}" if claim.ours is not None else scale,
            claim.verdict,
        ]
        for claim in claims
    ]


def _signed(interval: Interval, decimals: int) -> str:
    mean, low, high = (f"{value:+.{decimals}f}" for value in (interval.mean, interval.low, interval.high))
    return f"{mean} [{low}, {high}]"


def between(better: str, worse: str) -> str:
    """Return the difference of two printed figures, such as "42.3" and "36.7"."""
    return f"{float(better) - float(worse):+.1f}"
