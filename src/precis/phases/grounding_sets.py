"""The mixture that grounded pre-training reads: which sets, how much of each, and what stands before each document."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from precis.config import Settings, nearest
from precis.data.pairs.pair import Pair
from precis.data.pairs.sources import available_splits
from precis.data.rows.hub import PREFIX
from precis.data.tasks.instructions import wording_for
from precis.data.tasks.tasks import DATA_VARIABLE, TASKS, folder_of
from precis.data.text.encoding import with_instruction
from precis.errors import UserError
from precis.phases.sources import PairReader, PairSources, find_sources, hold_out
from precis.phases.training_pairs import Leaks
from precis.phases.validation import evenly_spaced

ALL = "all"
_UNKNOWN_KIND = "document"


@dataclass(frozen=True, kw_only=True)
class GroundingSet(Settings):
    """One set of the mixture: its name in the metrics, its kind of instruction, and where its pairs are."""

    name: str
    kind: str
    sources: PairSources


def find_sets(
    wanted: Sequence[str], *, data: str | None = None, leave_out: Sequence[str] = (), skip_bad: bool = False
) -> tuple[GroundingSet, ...]:
    """The sets that a user means.

    Args:
        wanted: each the name of a task; `TASK=PLACE`, a task whose files are there; a file, a folder or
            `hub:owner/name` of pairs, which are then instructed as documents of unknown kind; or "all": every task
            of the table that has a training file under `data`, of two that split the same pairs the first.
        data: the folder that holds a folder for each task; None: $PRECIS_DATA, else the hub.
        leave_out: names of sets that are not to be trained on.
        skip_bad: pass over rows that cannot be used.

    Raises:
        UserError: a name is unknown or stands twice, a set has no training pairs, or nothing is left.
    """
    entries = [e for entry in wanted for e in (_local_tasks(data) if entry == ALL else [entry])]
    names = [_name(entry) for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{name!r} is wanted twice; each set counts once")
    for name in leave_out:
        if name not in names and name not in TASKS:
            raise UserError(f"--leave-out {name}: no such set or task{nearest(name, names)}")
    kept = [entry for entry, name in zip(entries, names, strict=True) if name not in leave_out]
    if not kept:
        raise UserError("there is no set to train on; name tasks with --tasks (see: precis data list)")
    return tuple(_set(entry, data, skip_bad=skip_bad) for entry in kept)


def _local_tasks(data: str | None) -> list[str]:
    shelf = data or os.environ.get(DATA_VARIABLE)
    if not shelf or not Path(shelf).is_dir():
        raise UserError(f"--tasks {ALL}: name the folder that holds the tasks' folders with --data")
    found: dict[str, str] = {}
    for known in TASKS.values():
        folder = folder_of(known, Path(shelf))
        if folder is not None and "train" in available_splits(folder):
            found.setdefault(known.folder or known.name, known.name)
    return [*found.values()]


def _name(entry: str) -> str:
    """What a set is called: by its task, or like its file or folder without endings."""
    name, equals, _ = entry.partition("=")
    if name in TASKS:
        return name
    if entry.startswith(PREFIX):
        return re.split("[:@]", entry.removeprefix(PREFIX))[0].rpartition("/")[2]
    if Path(entry).exists():
        return Path(entry).resolve().name.partition(".")[0]
    near = nearest(name, [ALL, *TASKS])
    if equals:
        raise UserError(f"unknown task {name!r}{near} (pairs of your own are named by their place alone)")
    raise UserError(f"{entry!r} is neither a task nor a file or folder{near}")


def _set(entry: str, data: str | None, *, skip_bad: bool) -> GroundingSet:
    name, _, place = entry.partition("=")
    if name not in TASKS:
        sources = find_sources(data=entry, skip_bad=skip_bad)
        return GroundingSet(name=_name(entry), kind=_UNKNOWN_KIND, sources=sources)
    if not place and data is not None:
        folder = folder_of(TASKS[name], Path(data)) or Path(data) / name
        if not folder.is_dir():
            raise UserError(f"{folder}: no such folder; say where the task is with --tasks {name}=PLACE")
        place = str(folder)
    sources = find_sources(task_name=name, data=place or None, skip_bad=skip_bad)
    return GroundingSet(name=name, kind=TASKS[name].kind, sources=sources)


@dataclass(frozen=True)
class InstructedPairs:
    """The pairs of a set as a model reads them, an instruction before every document.

    Attributes:
        train: at most `cap` pairs drawn at random; training wordings.
        dev: some of the validation pairs; wordings that are kept from training.
        available: training pairs that the set has.
        shared: of `dev`, those whose document is among `train` too.
        readers: of the training pairs and, where the set has a dev split, of that.
    """

    set: GroundingSet
    train: list[Pair]
    dev: list[Pair]
    available: int
    readers: tuple[PairReader, ...]
    shared: int = 0


def read_set(chosen: GroundingSet, *, cap: int, dev_rows: int, seed: int) -> InstructedPairs:
    """Read a set and put instructions before its documents.

    What is drawn depends on the seed and the set alone, not on its company. A set without validation pairs has a
    part of its training pairs held out.

    Raises:
        UserError: the pairs cannot be read.
    """
    reader = PairReader(chosen.sources.train, skip_bad=chosen.sources.skip_bad)
    train: Iterable[Pair] = reader
    readers = [reader]
    if chosen.sources.dev is None:
        train, dev = hold_out(reader, seed=seed)
    else:
        readers.append(PairReader(chosen.sources.dev, skip_bad=chosen.sources.skip_bad))
        dev = list(readers[-1])
    rng = np.random.default_rng([seed, zlib.crc32(chosen.name.encode())])
    drawn, available = draw(train, cap, rng=rng)
    shown = evenly_spaced(dev, dev_rows)
    leaks = Leaks(shown)
    drawn = list(leaks.watch(drawn))
    return InstructedPairs(
        set=chosen,
        train=_instructed(drawn, chosen.kind, rng),
        dev=_instructed(shown, chosen.kind, rng, held_out=True),
        shared=leaks.count,
        available=available,
        readers=tuple(readers),
    )


def draw(pairs: Iterable[Pair], count: int, *, rng: np.random.Generator) -> tuple[list[Pair], int]:
    """(`count` of the pairs at random, or all where there are no more, in their old order; how many there are).

    The pairs are streamed and no more than `count` are kept (Vitter 1985, algorithm R).
    """
    kept: list[tuple[int, Pair]] = []
    seen = 0
    for index, pair in enumerate(pairs):
        seen = index + 1
        if index < count:
            kept.append((index, pair))
        elif (place := int(rng.integers(seen))) < count:
            kept[place] = (index, pair)
    return [pair for _, pair in sorted(kept, key=lambda item: item[0])], seen


def _instructed(
    pairs: Sequence[Pair], kind: str, rng: np.random.Generator, *, held_out: bool = False
) -> list[Pair]:
    uniforms = rng.random(len(pairs)).tolist()
    return [
        replace(
            pair,
            document=with_instruction(pair.document, wording_for(kind, pair, uniform, held_out=held_out)),
        )
        for pair, uniform in zip(pairs, uniforms, strict=True)
    ]
