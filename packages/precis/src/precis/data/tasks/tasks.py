"""The tasks that precis knows by name, and the location of their data.

The records are in `tasks.toml`, which states the rules for their limits in tokens and their decoding.

The licences of the sets decide which may train a published model; no table records that.
"""

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

from precis.data.pairs.dataset_adapters import GLUE_FOLDER, prefix_of
from precis.data.pairs.pair import Columns, Pair
from precis.data.pairs.pair_reader import ReadReport, available_splits, columns_of, merge_repeated, read_pairs
from precis.data.rows.hub import PREFIX
from precis.data.tasks.instructions import GENERAL, KINDS, Records
from precis_text.bounded_io import suggest
from precis_text.config import Settings, nearest
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError

DATA_VARIABLE = "PRECIS_DATA"
_Percentiles = Literal["paper", "measured", "pegasus", "none"]


@dataclass(frozen=True, kw_only=True)
class Task(Settings):
    """One data set and how precis treats it.

    Attributes:
        kind: kind of document and summary, a key of `precis.data.tasks.instructions.KINDS`.
        columns: columns of local files, in this project's layout or in that of the authors' files.
        layouts: columns of further published files; see `local_layouts`.
        hub: `owner/name[:config][@revision]` on the Hugging Face hub, with splits for training, validation and
            test; "" if the hub has none that is readable without running a script or asking its authors.
        hub_columns: columns of the hub's rows.
        empty_documents: most rows without a document in a published split. They are skipped, counted and
            reported. One more is an error, and so is the first in a user's own files.
        scheme: prefix of the source, for `data.pairs.schemes`, if its rows are not pairs.
        folder: an alternative name of the folder with its files.
        percentiles: 95th percentiles of source and target tokens, from `percentiles_from`; if None, neither
            the paper nor a measurement gives them.
        max_source, max_target: limits in tokens, control tokens included.
        instruction: the training wording that prompts a model of several tasks. Fine-tuning on one task uses none
            by default. `precis data list` shows it.
        metrics: names in `precis.evaluation.scores.TASK_SCORES` that `precis evaluate` prints; () for ROUGE.
    """

    name: str
    description: str
    kind: str
    columns: Columns = field(default_factory=Columns)
    layouts: tuple[Columns, ...] = ()
    hub: str = ""
    hub_columns: Columns = field(default_factory=Columns)
    empty_documents: int = 0
    scheme: str = ""
    folder: str = ""
    percentiles: tuple[int, int] | None = None
    percentiles_from: _Percentiles
    max_source: int
    max_target: int
    instruction: str
    metrics: tuple[str, ...] = ()
    generation: GenerationSettings
    language: str = "en"

    @property
    def local_layouts(self) -> tuple[Columns, ...]:
        """Possible columns of a local file, in the order of trial: the task's, this project's, the hub's, others."""
        return tuple(dict.fromkeys((self.columns, Columns(), self.hub_columns, *self.layouts)))


def _build(name: str, table: dict[str, Any], tables: Mapping[str, Any]) -> Task:
    """Build a task from its table; raise `UserError` if a field or its value is unknown, missing or of a wrong type."""
    record = {**_with_fields_of_others(table, tables), "name": name}
    for columns in ("columns", "hub_columns"):
        record[columns] = _named_columns(record.get(columns, {}))
    record["layouts"] = [_named_columns(named) for named in record.get("layouts", ())]
    made = Task.from_dict(record)
    _check_types(made)
    for choice, known in (("percentiles_from", get_args(_Percentiles)), ("kind", KINDS)):
        value = getattr(made, choice)
        if value not in known:
            raise UserError(f"{choice}={value!r} is unknown{nearest(value, known)}")
    if made.instruction not in {wording.text for wording in KINDS[made.kind].training}:
        raise UserError(f"instruction={made.instruction!r} is not a training wording of kind {made.kind!r}")
    return made


def _named_columns(table: Mapping[str, Any]) -> dict[str, Any]:
    """Read a table of columns: `false` means that the set lacks the column, except for the flag `repeated`."""
    return {
        what: None if column is False and what != "repeated" else column for what, column in table.items()
    }


def _with_fields_of_others(table: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, Any]:
    """Merge a table over the earlier table named in its `like`, and so on recursively."""
    like = table.get("like")
    if like is None:
        return dict(table)
    earlier = dict(itertools.takewhile(lambda item: item[1] is not table, tables.items()))
    if like not in earlier:
        raise UserError(f"like={like!r} is not an earlier task{nearest(like, tables)}")
    own = {field: value for field, value in table.items() if field != "like"}
    return {**_with_fields_of_others(tables[like], tables), **own}


def _check_types(settings: Settings) -> None:
    for known in fields(settings):
        value = getattr(settings, known.name)
        if isinstance(value, Settings):
            _check_types(value)
        elif known.type in (str, int, bool) and type(value) is not known.type:
            raise UserError(f"{known.name}={value!r} must be of type {known.type.__name__}")


TASKS: Mapping[str, Task] = Records("tasks.toml", _build)


@dataclass(frozen=True, slots=True)
class Mixture:
    """Sets that a paper mixes, with its own instructions.

    Attributes:
        sets: name of a task -> the instructions before its documents, word for word.
        instruction: the instruction for documents of other kinds.
    """

    sets: Mapping[str, tuple[str, ...]]
    instruction: str


def _build_mixture(_name: str, table: dict[str, Any], _tables: Mapping[str, Any]) -> Mixture:
    """Build a mixture from its table in the file; raise `UserError` if a set is not a task."""
    for name in table["sets"]:
        if name not in TASKS:
            raise UserError(f"unknown task {name!r}{nearest(name, TASKS)}")
    sets = {name: tuple(wordings) for name, wordings in table["sets"].items()}
    return Mixture(sets=sets, instruction=table["instruction"])


MIXTURES: Mapping[str, Mixture] = Records("mixtures.toml", _build_mixture)


def task(name: str) -> Task:
    """Look up a task by name; raise `UserError` if the task is unknown; the message names the nearest."""
    if name not in TASKS:
        raise UserError(f"unknown task {name!r}{nearest(name, TASKS)}")
    return TASKS[name]


@dataclass(frozen=True, kw_only=True)
class Part(Settings):
    """One readable set of pairs: a source for `read_pairs`, its split if it has several, and its columns.

    Attributes:
        also: other columns that its rows may have; the first row decides.
        empty_documents: number of rows without a document to skip in each split.
    """

    source: str
    split: str | None = None
    columns: Columns = field(default_factory=Columns)
    also: tuple[Columns, ...] = ()
    empty_documents: int = 0

    def __str__(self) -> str:
        return self.source if self.split is None else f"{self.source} ({self.split})"

    def read(
        self, *, skip_bad: bool = False, limit: int | None = None, report: ReadReport | None = None
    ) -> Iterator[Pair]:
        """Stream the pairs, as `read_pairs` does.

        Args:
            limit: most pairs, counted after rows of one document are merged, so that no reference is missing.

        Raises:
            UserError: the data cannot be read, or `limit` is below 1.
        """
        if limit is not None and limit < 1:
            raise UserError(f"limit={limit} must be 1 or more")
        columns = columns_of(self.source, self.split, (self.columns, *self.also))
        merging = columns.repeated and self.split != "train"
        pairs = read_pairs(
            self.source,
            columns=columns,
            split=self.split,
            skip_bad=skip_bad,
            empty_documents=self.empty_documents,
            limit=None if merging else limit,
            stream=limit is not None,
            report=report,
        )
        return islice(merge_repeated(pairs), limit) if merging else pairs


def resolve(task: Task, data: str | Path | None = None) -> Part:
    """Find the data of a task: local files if there are any, otherwise the hub.

    The first match of these is used: `data` (a file, a folder with split files, a folder that contains one under the
    task's name, or `hub:owner/name`), $PRECIS_DATA/NAME, the hub.

    Raises:
        UserError: `data` lacks files for the task, or is not given and the hub lacks the task.
    """
    on_hub = Part(
        source=task.scheme + PREFIX + task.hub, columns=task.hub_columns, empty_documents=task.empty_documents
    )
    if data is None:
        parent = os.environ.get(DATA_VARIABLE)
        folder = folder_of(task, Path(parent)) if parent else None
        if folder is not None:
            return _local(task, folder, published=True)
        if not task.hub:
            raise UserError(
                f"task {task.name!r} cannot be read from the hub; name the folder of its files with --data"
            )
        return on_hub
    if str(data).startswith(PREFIX):
        source = f"{task.scheme}{data}"
        return on_hub if source == on_hub.source else Part(source=source, columns=task.columns)
    path = Path(data)
    if path.is_file():
        return _local(task, path)
    if not path.exists():
        raise UserError(f"{path}: no such file or folder{suggest(path)}")
    if (folder := folder_of(task, path)) is not None:
        return _local(task, folder, published=True)
    if available_splits(path, task.scheme):
        return _local(task, path)
    raise UserError(
        f"{path}: no train, dev or test file of task {task.name!r}, neither here nor in {path / task.name}"
    )


def _local(task: Task, place: Path, *, published: bool = False) -> Part:
    """Describe local files; `published` marks the data set as its authors published it."""
    first, *others = task.local_layouts
    return Part(
        source=f"{task.scheme}{place}",
        columns=first,
        also=tuple(others),
        empty_documents=task.empty_documents if published else 0,
    )


def folder_of(task: Task, parent: Path) -> Path | None:
    """Return the folder with the task's files in a parent folder, or None."""
    shared = GLUE_FOLDER if prefix_of(task.scheme) else ""
    folders = (parent / name for name in (task.name, task.folder, shared) if name)
    return next(
        (folder for folder in folders if folder.is_dir() and available_splits(folder, task.scheme)), None
    )


def instruction_of_first(names: Iterable[str]) -> str:
    """Return the instruction of the first name that is a task; the general one if none is."""
    return next((TASKS[name].instruction for name in names if name in TASKS), GENERAL)
