"""The tasks that precis knows by name: where their data lie, how long they are, how to write for them.

Limits in tokens follow one rule, for the sources 1.2 times the 95th percentile rounded up to a multiple of
128, for the targets 1.5 times rounded up to a multiple of 32: a limit at the percentile itself would cut one
text in twenty, and a small vocabulary cuts text finer than the paper's 128,000 pieces do.

| task | 95th percentile, source/target | from |
|---|---|---|
| aeslc, samsum, cnndm | 440/13, 331/52, 1682/127 | Z-Code++ (arXiv:2208.09770), Table 2 |
| dialogsum, scitldr, e2e, webnlg | 385/66, 320/43, 40/39, 53/37 | measured, train split, 8,000 pieces |

The paper's Table 8 searches beams {2, 4, 5, 8}, length penalties 0.5 to 1.2 and n-gram blocking {0, 3} and
does not print what it chose; the settings here lie within these ranges and are ours.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from precis.config import Settings, nearest
from precis.data.hub import CONVERTED, PREFIX
from precis.data.sources import Columns, Pair, ReadReport, available_splits, merge_repeated, read_pairs
from precis.errors import UserError

DATA_VARIABLE = "PRECIS_DATA"


@dataclass(frozen=True, kw_only=True)
class GenerationSettings(Settings):
    """How a summary is searched for.

    Attributes:
        beams: width of the beam search; 1 is greedy.
        length_penalty: exponent of the length by which a beam's log probability is divided; above 1 favours
            longer summaries.
        no_repeat_ngram: n-grams of this length never occur twice in a summary; 0 allows all.
        min_tokens, max_tokens: bounds of the summary's length in new tokens, the end mark included.
        early_stopping: stop as soon as `beams` finished summaries are found.
    """

    beams: int = 1
    length_penalty: float = 1.0
    no_repeat_ngram: int = 0
    min_tokens: int = 0
    max_tokens: int = 128
    early_stopping: bool = True

    def __post_init__(self) -> None:
        for name, least in (("beams", 1), ("no_repeat_ngram", 0), ("min_tokens", 0), ("max_tokens", 1)):
            if getattr(self, name) < least:
                raise UserError(f"{name}={getattr(self, name)} must be {least} or more")
        if self.min_tokens > self.max_tokens:
            raise UserError(f"min_tokens={self.min_tokens} is more than max_tokens={self.max_tokens}")


@dataclass(frozen=True, kw_only=True)
class Task(Settings):
    """One data set and how precis treats it.

    Attributes:
        columns: of local files in this project's layout.
        hub: `owner/name[:config][@revision]` on the Hugging Face hub.
        hub_columns: of the hub's rows, whose names differ.
        hub_repeats: the hub has one row for each reference in dev and test; they are put together on reading.
        percentiles: 95th percentiles of source and target tokens, from `percentiles_from`.
        max_source, max_target: limits in tokens, control tokens included.
        instruction: put before the document where a model is trained on several tasks at once; fine-tuning on
            one task puts nothing there unless asked to, and `precis data list` shows it.
    """

    name: str
    description: str
    columns: Columns = field(default_factory=Columns)
    hub: str
    hub_columns: Columns
    hub_repeats: bool = False
    percentiles: tuple[int, int]
    percentiles_from: Literal["paper", "measured"]
    max_source: int
    max_target: int
    instruction: str
    generation: GenerationSettings
    language: str = "en"


_DIALOGUE = "Summarize the following dialogue:"
_SLOTS = "Describe the following facts in one or two sentences:"

_ALL = (
    Task(
        name="samsum",
        description="messenger chats to short third-person summaries (Gliwa et al. 2019)",
        hub="knkarthick/samsum",
        hub_columns=Columns(document="dialogue", references=None),
        percentiles=(331, 52),
        percentiles_from="paper",
        max_source=512,
        max_target=96,
        instruction=_DIALOGUE,
        generation=GenerationSettings(beams=5, length_penalty=1.0, no_repeat_ngram=3, max_tokens=96),
    ),
    Task(
        name="dialogsum",
        description="spoken everyday dialogues to summaries; three references in test (Chen et al. 2021)",
        hub="knkarthick/dialogsum",
        hub_columns=Columns(document="dialogue", references=None),
        hub_repeats=True,
        percentiles=(385, 66),
        percentiles_from="measured",
        max_source=512,
        max_target=128,
        instruction=_DIALOGUE,
        generation=GenerationSettings(beams=5, length_penalty=1.0, no_repeat_ngram=3, max_tokens=128),
    ),
    Task(
        name="aeslc",
        description="e-mails to subject lines (Zhang and Tetreault 2019); the hub has one reference only",
        hub="Yale-LILY/aeslc",
        hub_columns=Columns(document="email_body", summary="subject_line", references=None, id=None),
        percentiles=(440, 13),
        percentiles_from="paper",
        max_source=640,
        max_target=32,
        instruction="Write a subject line for the following e-mail:",
        generation=GenerationSettings(beams=5, length_penalty=0.8, max_tokens=32),
    ),
    Task(
        name="cnndm",
        description="news articles to highlights, CNN and Daily Mail (See et al. 2017)",
        hub="abisee/cnn_dailymail:3.0.0",
        hub_columns=Columns(document="article", summary="highlights", references=None),
        percentiles=(1682, 127),
        percentiles_from="paper",
        max_source=2048,
        max_target=192,
        instruction="Summarize the following news article:",
        generation=GenerationSettings(
            beams=5, length_penalty=1.0, no_repeat_ngram=3, min_tokens=30, max_tokens=192
        ),
    ),
    Task(
        name="scitldr",
        description="abstracts of papers to one sentence (Cachola et al. 2020)",
        hub=f"allenai/scitldr:Abstract@{CONVERTED}",
        hub_columns=Columns(
            document="source", summary="target", references="target", id="paper_id", join=" "
        ),
        percentiles=(320, 43),
        percentiles_from="measured",
        max_source=384,
        max_target=96,
        instruction="Summarize the following abstract in one sentence:",
        generation=GenerationSettings(beams=5, length_penalty=0.8, no_repeat_ngram=3, max_tokens=96),
    ),
    Task(
        name="e2e",
        description="restaurant facts to text (Novikova et al. 2017); on the hub the version cleaned in 2019",
        hub=f"GEM/e2e_nlg@{CONVERTED}",
        hub_columns=Columns(
            document="meaning_representation", summary="target", references="references", id="gem_id"
        ),
        percentiles=(40, 39),
        percentiles_from="measured",
        max_source=128,
        max_target=64,
        instruction=_SLOTS,
        generation=GenerationSettings(beams=5, length_penalty=1.0, max_tokens=64),
    ),
    Task(
        name="webnlg",
        description="one to seven DBpedia triples, a line each, to text (Gardent et al. 2017)",
        hub=f"GEM/web_nlg:en@{CONVERTED}",
        hub_columns=Columns(
            document="input", summary="target", references="references", id="gem_id", join="\n"
        ),
        percentiles=(53, 37),
        percentiles_from="measured",
        max_source=128,
        max_target=64,
        instruction=_SLOTS,
        generation=GenerationSettings(beams=5, length_penalty=1.0, max_tokens=64),
    ),
)

TASKS: Mapping[str, Task] = MappingProxyType({task.name: task for task in _ALL})


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
    """Where the splits of a task lie."""

    source: str | Path
    columns: Columns
    merge: bool = False

    def read(
        self,
        split: str | None,
        *,
        skip_bad: bool = False,
        limit: int | None = None,
        report: ReadReport | None = None,
    ) -> Iterator[Pair]:
        """Stream the pairs of one split, as `read_pairs` does; None where the source is a single file.

        `limit` counts rows of the source, before rows of one document are put together.
        """
        pairs = read_pairs(
            self.source, columns=self.columns, split=split, skip_bad=skip_bad, limit=limit, report=report
        )
        return merge_repeated(pairs) if self.merge and split != "train" else pairs


def resolve(task: Task, data: str | Path | None = None) -> TaskData:
    """Where to read a task from: local files where there are any, else the hub.

    Looked at in this order: `data` (a file, a folder with split files, or a folder that holds such a folder
    under the task's name; or `hub:owner/name`), $PRECIS_DATA/NAME, the hub.

    Raises:
        UserError: `data` is given and has no files for the task.
    """
    on_hub = TaskData(source=PREFIX + task.hub, columns=task.hub_columns, merge=task.hub_repeats)
    if data is None:
        shelf = os.environ.get(DATA_VARIABLE)
        folder = Path(shelf) / task.name if shelf else None
        if folder is not None and folder.is_dir() and available_splits(folder):
            return TaskData(source=folder, columns=task.columns)
        return on_hub
    if str(data).startswith(PREFIX):
        return on_hub if str(data) == on_hub.source else TaskData(source=str(data), columns=task.columns)
    path = Path(data)
    if path.is_file():
        return TaskData(source=path, columns=task.columns)
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    for folder in (path / task.name, path):
        if folder.is_dir() and available_splits(folder):
            return TaskData(source=folder, columns=task.columns)
    raise UserError(
        f"{path}: no train, dev or test file of task {task.name!r}, neither here nor in {path / task.name}"
    )
