"""The tasks that precis knows by name: where their data lie, how long they are, how to write for them.

Limits in tokens follow one rule, for the sources 1.2 times the 95th percentile rounded up to a multiple of
128, for the targets 1.5 times rounded up to a multiple of 32: a limit at the percentile itself would cut one
text in twenty, and a small vocabulary cuts text finer than the paper's 128,000 pieces do. No limit is above
16,384 and 1,024 tokens, the most that published systems for long documents read and write.

| 95th percentiles | tasks |
|---|---|
| of Z-Code++ (arXiv:2208.09770), Table 2 | aeslc, samsum, cnndm and the paper's other sets |
| measured, train split, 8,000 pieces | dialogsum, scitldr, e2e, webnlg, squad-qg and what is in local files only |
| none; limits of PEGASUS (arXiv:1912.08777) | gigaword |
| none; limits are WebNLG's with room for more triples | dart |

Structure to text is read as text, facts in the order of the data. E2E: `name[The Oak], food[Thai]`, as its authors
write it. WebNLG and DART: a triple a line, `subject | predicate | object`.

The paper's Table 8 searches beams {2, 4, 5, 8}, length penalties 0.5 to 1.2 and n-gram blocking {0, 3} and
does not print what it chose; the settings here lie within these ranges and are ours, but for question generation's,
which are those of ProphetNet's released scripts (`precis.recipes.prophetnet` has that paper's others).

Which of the sets may train a model that is given away is a question of their licences, which no table answers.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from precis.config import nearest
from precis.data.pairs.sources import Columns, Pair, ReadReport, available_splits, merge_repeated, read_pairs
from precis.data.rows.hub import PREFIX
from precis.data.tasks.settings import GenerationSettings, Task
from precis.data.tasks.table import STANDARD
from precis.data.tasks.table_long import LONG
from precis.data.tasks.table_questions import QUESTIONS
from precis.errors import UserError

__all__ = ["DATA_VARIABLE", "TASKS", "GenerationSettings", "Task", "TaskData", "folder_of", "resolve", "task"]

DATA_VARIABLE = "PRECIS_DATA"

TASKS: Mapping[str, Task] = MappingProxyType({task.name: task for task in (*STANDARD, *LONG, *QUESTIONS)})


def task(name: str) -> Task:
    """The task of that name.

    Raises:
        UserError: there is none; the message names the nearest.
    """
    if name not in TASKS:
        raise UserError(f"unknown task {name!r}{nearest(name, TASKS)}")
    return TASKS[name]


@dataclass(frozen=True, kw_only=True)
class TaskData:
    """Where the splits of a task lie; of each, `empty_documents` rows without a document are passed over."""

    source: str | Path
    columns: Columns
    merge: bool = False
    empty_documents: int = 0

    def read(
        self,
        split: str | None,
        *,
        skip_bad: bool = False,
        limit: int | None = None,
        report: ReadReport | None = None,
    ) -> Iterator[Pair]:
        """Stream the pairs of one split, as `read_pairs` does; None where the source is a single file.

        `limit` counts pairs, after rows of one document were put together: none of them lacks a reference.
        """
        if limit is not None and limit < 1:
            raise UserError(f"limit={limit} must be 1 or more")
        merging = self.merge and split != "train"
        pairs = read_pairs(
            self.source,
            columns=self.columns,
            split=split,
            skip_bad=skip_bad,
            empty_documents=self.empty_documents,
            limit=None if merging else limit,
            stream=limit is not None,
            report=report,
        )
        return islice(merge_repeated(pairs), limit) if merging else pairs


def resolve(task: Task, data: str | Path | None = None) -> TaskData:
    """Where to read a task from: local files where there are any, else the hub.

    Looked at in this order: `data` (a file, a folder with split files, or a folder that holds such a folder
    under the task's name; or `hub:owner/name`), $PRECIS_DATA/NAME, the hub.

    Raises:
        UserError: `data` is given and has no files for the task, or is not given and the hub has none.
    """
    on_hub = TaskData(
        source=task.scheme + PREFIX + task.hub,
        columns=task.hub_columns,
        merge=task.hub_repeats,
        empty_documents=task.empty_documents,
    )
    if data is None:
        shelf = os.environ.get(DATA_VARIABLE)
        folder = folder_of(task, Path(shelf)) if shelf else None
        if folder is not None:
            return _local(task, folder, published=True)
        if not task.hub:
            raise UserError(
                f"task {task.name!r} cannot be read from the hub; name the folder of its files with --data"
            )
        return on_hub
    if str(data).startswith(PREFIX):
        source = f"{task.scheme}{data}"
        return on_hub if source == on_hub.source else TaskData(source=source, columns=task.columns)
    path = Path(data)
    if path.is_file():
        return _local(task, path)
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    if (folder := folder_of(task, path)) is not None:
        return _local(task, folder, published=True)
    if available_splits(path):
        return _local(task, path)
    raise UserError(
        f"{path}: no train, dev or test file of task {task.name!r}, neither here nor in {path / task.name}"
    )


def _local(task: Task, place: Path, *, published: bool = False) -> TaskData:
    """Files on this machine; a folder of the task's name among others holds the set as it was published."""
    return TaskData(
        source=f"{task.scheme}{place}" if task.scheme else place,
        columns=task.columns,
        empty_documents=task.empty_documents if published else 0,
    )


def folder_of(task: Task, shelf: Path) -> Path | None:
    """The folder with the task's files in a folder of folders; None: there is none."""
    folders = (shelf / name for name in (task.name, task.folder) if name)
    return next((folder for folder in folders if folder.is_dir() and available_splits(folder)), None)
