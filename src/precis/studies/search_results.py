"""How a search is shown: a table for each of its stages, and search.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from precis.files import write_file
from precis.studies.grid_study import Trial
from precis.studies.search_space import SearchSpace

RESULTS_FILE = "search.json"


@dataclass(frozen=True, kw_only=True)
class Searched:
    """What came of a search: `model` is the best one's folder, None if it was interrupted.

    Attributes:
        trials, decodings: the finished trials of each stage, best first, failed ones last.
        metric, decoding_metric: what they are judged by.
    """

    folder: Path
    model: Path | None
    trials: list[Trial]
    decodings: list[Trial]
    metric: str
    decoding_metric: str

    def tables(self) -> list[Table]:
        """The stages that have trials, for the terminal."""
        stages = {"training": (self.trials, self.metric), "decoding": (self.decodings, self.decoding_metric)}
        return [_table(title, trials, metric) for title, (trials, metric) in stages.items() if trials]

    def write(self, *, space: SearchSpace) -> None:
        """Write search.json: both stages in the tables' order, and what was searched."""
        record: dict[str, Any] = {
            "metric": self.metric,
            "trials": [trial.to_dict() for trial in self.trials],
            "decoding_metric": self.decoding_metric,
            "decodings": [trial.to_dict() for trial in self.decodings],
            "space": space.to_dict(),
        }
        text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        write_file(self.folder / RESULTS_FILE, text)


def figure(value: float | None) -> str:
    """A score as text."""
    return "none" if value is None else f"{value:.4g}"


def _table(title: str, trials: Sequence[Trial], metric: str) -> Table:
    names = list(trials[0].values)
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    best_steps = any("best_step" in trial.facts for trial in trials)
    for name in ("trial", *names, metric, *(["step"] if best_steps else [])):
        table.add_column(name, justify="right", overflow="fold")
    for trial in trials:
        cells = [f"{trial.number:03d}", *(f"{trial.values[name]:g}" for name in names)]
        cells.append("failed" if trial.value is None else figure(trial.value))
        table.add_row(*cells, *([str(trial.facts.get("best_step", ""))] if best_steps else []))
    return table
