"""The plan of a study for `precis reproduce --plan`: its steps and those that are left, its data, a rough time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from precis.data.tasks.tasks import folder_of, task
from precis.table import Table
from precis_experiments.resumable_steps import Result, Step
from precis_text.row import pluralize

_ON_A_CPU = ("smoke", "micro")  # the other scale is for a GPU
_BESIDES = 10.0  # seconds of a step besides its training


@final
@dataclass(frozen=True, kw_only=True)
class Reads:
    """The data sets that a study reads from its folder of data.

    Attributes:
        texts: folders of raw text, of which one is enough.
        pairs: folders of pairs, of which one is enough.
        grounding: tasks whose pairs ground a model; all are needed.
        tasks: tasks to train and test on.
        needed: those of the tasks to train and test on without which the study stops; it leaves out the others.
    """

    texts: Sequence[str] = ()
    pairs: Sequence[str] = ()
    grounding: Sequence[str] = ()
    tasks: Sequence[str] = ()
    needed: Sequence[str] = ()

    def missing(self, data: Path) -> list[str]:
        """Return the tasks that the study needs and the folder lacks."""
        needed = dict.fromkeys((*self.grounding, *self.needed))
        return [name for name in needed if folder_of(task(name), data) is None]

    def table(self, data: Path) -> Table:
        """Return a row for each data set: what for, and whether it is there."""
        return Table(
            header=["read for", "data set", f"{data}"],
            rows=[*self._rows(data)],
            texts=("read for", "data set", f"{data}"),
        )

    def _rows(self, data: Path) -> Iterator[list[str]]:
        for use, names in (("pre-training, raw text", self.texts), ("pairs", self.pairs)):
            for name in names:
                place = data / name if (data / name).is_dir() else None
                yield [use, name, _state(place, data, needed=len(names) == 1)]
        for use, names in (("grounding", self.grounding), ("training and tests", self.tasks)):
            for name in names:
                place = folder_of(task(name), data)
                yield [use, name, _state(place, data, needed=name in {*self.grounding, *self.needed})]


def _state(place: Path | None, data: Path, *, needed: bool) -> str:
    if place is None:
        return "missing: the study stops without it" if needed else "missing: left out"
    return f"in {place.relative_to(data)}"


@final
@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """The steps of a study at a scale, with the results that its folder has.

    Attributes:
        name, scale: the study's, as on the command line.
        out: the folder of the results, which may not exist yet.
        update_seconds: the usual time of an update of the weights on a core, at the scales for a CPU; None if unknown.
    """

    name: str
    scale: str
    out: Path
    steps: Sequence[Step]
    results: Mapping[str, Result]
    reads: Reads = field(default_factory=Reads)
    update_seconds: float | None = None

    def table(self) -> Table:
        """Return a row for each kind of step: how many there are, done and left, and the minutes of those left."""
        kinds: dict[str, list[Step]] = {}
        for step in self.steps:
            kinds.setdefault(re.sub(r"-\d+(-\d+pairs)?$", "", step.name), []).append(step)
        return Table(
            header=["step", "number", "left", "updates each", "minutes left"],
            rows=[self._row(kind, steps) for kind, steps in kinds.items()],
            texts=("step",),
        )

    def summary(self) -> str:
        """Return a line about all steps and the time that they take."""
        left = [step for step in self.steps if step.name not in self.results]
        done = f"{len(self.steps) - len(left)} done in {self.out}, {len(left)} left"
        minutes = self._minutes(left)
        time = f"about {pluralize(round(minutes), 'minute')}" if minutes is not None and minutes < 90 else ""
        if minutes is not None and not time:
            time = f"about {pluralize(round(minutes / 60), 'hour')}"
        if not left:
            time = "the same command prints the table"
        elif not time:
            time = "no rough time before the first training is done"
        return f"{self.name}, scale {self.scale}: {pluralize(len(self.steps), 'step')}, {done} ({time})"

    def _row(self, kind: str, steps: Sequence[Step]) -> list[str]:
        left = [step for step in steps if step.name not in self.results]
        updates = sorted({step.updates for step in steps if step.updates})
        minutes = self._minutes(left)
        return [
            kind,
            f"{len(steps)}",
            f"{len(left)}",
            "-".join(f"{each:,}" for each in dict.fromkeys([updates[0], updates[-1]])) if updates else "",
            "?" if minutes is None else f"{minutes:.0f}" if left else "",
        ]

    def _minutes(self, left: Sequence[Step]) -> float | None:
        """Return the minutes that one process needs for steps; None if it is unknown."""
        found = [self._seconds(step) for step in left]
        known = [seconds for seconds in found if seconds is not None]
        return None if len(known) < len(found) else sum(known) / 60

    def _seconds(self, step: Step) -> float | None:
        """Return the time of a step by the pace of the finished ones, or else by the usual one of the scale."""
        done = [
            (each.updates or 0, self.results[each.name]["seconds"])
            for each in self.steps
            if "seconds" in self.results.get(each.name, {}) and bool(each.updates) == bool(step.updates)
        ]
        if done and step.updates:
            return step.updates * sum(seconds for _, seconds in done) / sum(updates for updates, _ in done)
        if done:
            return float(sum(seconds for _, seconds in done) / len(done))
        if self.scale not in _ON_A_CPU or self.update_seconds is None:
            return None
        return _BESIDES + self.update_seconds * step.updates
