"""The sets of pairs that `--tasks` names: tasks, files and folders of pairs, mixtures, or all tasks of a folder.

Finding them loads no library of models, so that a wrong name is refused at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from precis.data.pairs.pair_reader import available_splits
from precis.data.rows.hub import PREFIX
from precis.data.tasks.tasks import DATA_VARIABLE, MIXTURES, TASKS, folder_of
from precis.phases.data.run_pairs import USUAL_COLUMNS, NamedPairs, PairSources, read_first
from precis_text.config import Settings, nearest
from precis_text.errors import UserError

ALL = "all"
_UNKNOWN_KIND = "document"


@dataclass(frozen=True, kw_only=True)
class GroundingSet(Settings):
    """One set of the mixture.

    Attributes:
        name: its name in the metrics.
        kind: its kind of instruction.
        sources: the source of its pairs.
        mixture: the paper's mixture whose instructions it has, of `MIXTURES`; if "", those of its kind.
    """

    name: str
    kind: str
    sources: PairSources
    mixture: str = ""

    @property
    def wordings(self) -> tuple[str, ...]:
        """The instructions of its mixture; empty without one."""
        return MIXTURES[self.mixture].sets[self.name] if self.mixture else ()


def find_sets(
    wanted: Sequence[str],
    *,
    data: str | None = None,
    leave_out: Sequence[str] = (),
    skip_bad: bool = False,
    columns: NamedPairs = USUAL_COLUMNS,
) -> tuple[GroundingSet, ...]:
    """Find the sets that the user names.

    Args:
        wanted: each the name of a task; `TASK=PLACE`, a task whose files are there; a file, a folder or
            `hub:owner/name` of pairs, which are then instructed as documents of unknown kind; a mixture of
            `MIXTURES`, its tasks with a paper's instructions; or "all": every task of the table that has a training
            file under `data`; if two split the same pairs, the first.
        data: the folder that contains a folder for each task; if None, $PRECIS_DATA or the hub.
        leave_out: names of sets to exclude from training.
        skip_bad: skip unusable rows.
        columns: columns of files and folders of pairs; a task of the table keeps its own.

    Raises:
        UserError: columns are named without a file or a folder of pairs, a name is unknown or given twice, a set lacks
            training pairs, or no set is left.
    """
    entries = [pair for entry in wanted for pair in _entries(entry, data)]
    names = [_name(entry) for entry, _ in entries]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{name!r} is given twice; name each set once")
    for name in leave_out:
        if name not in names and name not in TASKS:
            raise UserError(f"--leave-out {name}: no such set or task{nearest(name, names)}")
    kept = [entry for entry, name in zip(entries, names, strict=True) if name not in leave_out]
    if not kept:
        raise UserError("no set to train on; name tasks with --tasks (see: precis data list)")
    if columns != USUAL_COLUMNS and all(name in TASKS for name in names):
        raise UserError(
            "--document-column and --summary-column are for files and folders of pairs, and --tasks names none; "
            "omit them: a task has its own columns"
        )
    return tuple(
        replace(_set(entry, data, skip_bad=skip_bad, columns=columns), mixture=mixture)
        for entry, mixture in kept
    )


def check_sets(
    wanted: str | Iterable[str],
    *,
    data: str | None = None,
    leave_out: str | Sequence[str] = (),
    skip_bad: bool = False,
    columns: NamedPairs = USUAL_COLUMNS,
) -> None:
    """Find local sets and read the first pair of each, to refuse wrong input before libraries are imported.

    Args:
        wanted: as the user typed it; see `split_names`. The other arguments are those of `find_sets`.

    Raises:
        UserError: see `find_sets`, or a first pair is unusable.
    """
    names = split_names(wanted)
    if not names or any(PREFIX in name for name in names):
        return  # the reader of the hub queries it later
    for chosen in find_sets(
        names, data=data, leave_out=split_names(leave_out), skip_bad=skip_bad, columns=columns
    ):
        read_first(chosen.sources.train, skip_bad=skip_bad)


def split_names(values: str | Iterable[str]) -> list[str]:
    """Split names at commas."""
    texts = [values] if isinstance(values, str) else values
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def _entries(entry: str, data: str | None) -> list[tuple[str, str]]:
    """Return the sets that an entry stands for, each with its mixture; "" without one."""
    if entry in MIXTURES:
        return [(name, entry) for name in MIXTURES[entry].sets]
    return [(each, "") for each in (_local_tasks(data) if entry == ALL else [entry])]


def _local_tasks(data: str | None) -> list[str]:
    place = data or os.environ.get(DATA_VARIABLE)
    if not place or not Path(place).is_dir():
        raise UserError(f"--tasks {ALL}: name the folder that contains the tasks' folders with --data")
    found: dict[str, str] = {}
    for known in TASKS.values():
        folder = folder_of(known, Path(place))
        if folder is not None and "train" in available_splits(folder):
            found.setdefault(known.folder or known.name, known.name)
    return [*found.values()]


def _name(entry: str) -> str:
    """Return the name of a set: its task, or its file or folder without endings."""
    name, equals, _ = entry.partition("=")
    if name in TASKS:
        return name
    if entry.startswith(PREFIX):
        return re.split("[:@]", entry.removeprefix(PREFIX))[0].rpartition("/")[2]
    if Path(entry).exists():
        return Path(entry).resolve().name.partition(".")[0]
    near = nearest(name, [ALL, *TASKS, *MIXTURES])
    if equals:
        raise UserError(f"unknown task {name!r}{near} (name your own pairs by their path only)")
    raise UserError(f"{entry!r} is neither a task nor a file or folder{near}")


def _set(entry: str, data: str | None, *, skip_bad: bool, columns: NamedPairs) -> GroundingSet:
    name, _, place = entry.partition("=")
    if name not in TASKS:
        sources = replace(columns, data=entry, skip_bad=skip_bad).sources()
        return GroundingSet(name=_name(entry), kind=_UNKNOWN_KIND, sources=sources)
    if not place and data is not None:
        folder = folder_of(TASKS[name], Path(data)) or Path(data) / name
        if not folder.is_dir():
            raise UserError(f"{folder}: no such folder; name the task's place with --tasks {name}=PLACE")
        place = str(folder)
    sources = NamedPairs(task=name, data=place or None, skip_bad=skip_bad).sources()
    return GroundingSet(name=name, kind=TASKS[name].kind, sources=sources)
