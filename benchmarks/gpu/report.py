"""The run's JSON, and its tables for people."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.gpu import exactness
from benchmarks.gpu.goals import Outcome as GoalOutcome
from benchmarks.gpu.goals import outcomes
from benchmarks.gpu.notes import Row
from benchmarks.gpu.stages import Outcome
from precis.storage.atomic import write_file

# Stages with too many rows to print.
_SUMMARIES = {"exactness": exactness.summary}


def card_of(stages: Mapping[str, Outcome]) -> str | None:
    """Return the card's name from stage "machine"."""
    rows = stages["machine"].rows if "machine" in stages else []
    return next((row["card"] for row in rows if "card" in row), None)


def goals_of(stages: Mapping[str, Outcome], *, dry: bool) -> list[GoalOutcome]:
    """Return the outcomes of the goals for these stages."""
    return outcomes({name: s.rows for name, s in stages.items()}, card=card_of(stages), dry=dry)


def write(path: Path, stages: Mapping[str, Outcome], *, dry: bool, whole: bool, **about: Any) -> None:
    """Write everything that was measured so far, in place of an earlier file.

    Args:
        whole: False: stages are still to come.
    """
    record = {
        "dry": dry,
        "whole": whole,
        **about,
        "stages": {name: stage.to_json() for name, stage in stages.items()},
        "failures": [f"{name}: {line}" for name, stage in stages.items() for line in stage.failures()],
        "goals": [goal.to_json() for goal in goals_of(stages, dry=dry)],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, json.dumps(record, indent=1) + "\n")


def stage_table(name: str, stage: Outcome) -> Table:
    """Build the table of a stage's rows."""
    table = Table(title=f"{name}: {stage.status} in {stage.seconds:.0f} s", title_justify="left")
    for head in ("cell", "contender", ""):
        table.add_column(head, overflow="fold")
    summary = _SUMMARIES.get(name)
    lines = [_line(row) for row in stage.rows if summary is None or _notable(row)]
    shown = None
    for cell, contender, said in [*(summary(stage.rows) if summary is not None else []), *lines]:
        table.add_row("" if cell == shown else cell, contender, said)
        shown = cell
    return table


def _notable(row: Row) -> bool:
    return bool(row.get("failed") or row.get("wrong"))


def _line(row: Row) -> tuple[str, str, str]:
    reasons = {"failed": row.get("failed"), "left out": row.get("left_out"), "wrong": row.get("wrong")}
    said = [f"{name}: {reason}" for name, reason in reasons.items() if reason]
    return row["cell"], row["contender"], "; ".join([*([row["said"]] if "said" in row else []), *said])


def goals_table(found: Sequence[GoalOutcome]) -> Table:
    """Build the table of figures and goals."""
    table = Table(title="goals for an H100 or H200 (a figure must reach its goal)", title_justify="left")
    for head in ("goal", "wanted", "figure", "rounds", "", "why"):
        table.add_column(head, justify="right" if head in ("wanted", "figure", "rounds") else "left")
    reasons = {goal.why for goal in found}
    for goal in found:
        ratio = goal.ratio
        table.add_row(
            goal.goal.name,
            f"{goal.goal.wanted:.3g}",
            "" if ratio is None else f"{ratio.value:.3g}",
            "" if ratio is None or ratio.low == ratio.high else f"{ratio.low:.3g}-{ratio.high:.3g}",
            goal.verdict,
            goal.why if len(reasons) > 1 else "",
        )
    if len(reasons) == 1 and (reason := reasons.pop()):
        table.caption = f"all wait: {reason}"
    return table
