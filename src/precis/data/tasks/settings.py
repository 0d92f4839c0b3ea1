"""What is said of a task: where its data lie, how long they are, how its summaries are written."""

from dataclasses import dataclass, field
from typing import Literal

from precis.config import Settings
from precis.data.pairs.pair import Columns
from precis.errors import UserError

# Beyond these a search takes hours and writes nothing better.
_BOUNDS = {
    "beams": (1, 128),
    "no_repeat_ngram": (0, 128),
    "min_tokens": (0, 32_768),
    "max_tokens": (1, 32_768),
}


@dataclass(frozen=True, kw_only=True)
class GenerationSettings(Settings):
    """How a summary is searched for.

    Attributes:
        beams: width of the beam search; 1 is greedy.
        length_penalty: exponent of the length by which a beam's log probability is divided; above 1 favours
            longer summaries.
        no_repeat_ngram: n-grams of this length never occur twice in a summary; 0 allows all.
        min_tokens, max_tokens: bounds of the summary's length in new tokens, the end mark included.
        early_stopping: stop as soon as `beams` finished summaries are found; False: when no better one is to be
            expected; "never": when none can come.
    """

    beams: int = 1
    length_penalty: float = 1.0
    no_repeat_ngram: int = 0
    min_tokens: int = 0
    max_tokens: int = 128
    early_stopping: bool | Literal["never"] = True

    def __post_init__(self) -> None:
        for name, (least, most) in _BOUNDS.items():
            if not least <= getattr(self, name) <= most:
                raise UserError(f"{name}={getattr(self, name)} must be {least} to {most:,}")
        if self.min_tokens > self.max_tokens:
            raise UserError(f"min_tokens={self.min_tokens} is more than max_tokens={self.max_tokens}")


@dataclass(frozen=True, kw_only=True)
class Task(Settings):
    """One data set and how precis treats it.

    Attributes:
        kind: of document and summary, a key of `precis.data.tasks.instructions.KINDS`.
        columns: of local files: those of this project's layout, or of the files that the authors give out.
        hub: `owner/name[:config][@revision]` on the Hugging Face hub, with splits for training, validation and
            test; "" where the hub has none that can be read without running a script or asking its authors.
        hub_columns: of the hub's rows, whose names differ.
        hub_repeats: the hub has one row for each reference in dev and test; they are put together on reading.
        empty_documents: rows of a published split that have no document, at most. So many are passed over, counted and
            said; one more stops the reading, and so does the first in files that are named as somebody's own.
        scheme: put before the place of the data where its rows are no pairs: how `data.pairs.sources` reads them.
        folder: under which its files may lie besides that of the task's own name.
        percentiles: 95th percentiles of source and target tokens, from `percentiles_from`; None where neither
            the paper nor a measurement gives them.
        max_source, max_target: limits in tokens, control tokens included.
        instruction: one of the kind's training wordings, the one that a model of several tasks is asked with;
            fine-tuning on one task puts nothing there unless asked to, and `precis data list` shows it.
    """

    name: str
    description: str
    kind: str
    columns: Columns = field(default_factory=Columns)
    hub: str = ""
    hub_columns: Columns = field(default_factory=Columns)
    hub_repeats: bool = False
    empty_documents: int = 0
    scheme: str = ""
    folder: str = ""
    percentiles: tuple[int, int] | None
    percentiles_from: Literal["paper", "measured", "pegasus", "none"]
    max_source: int
    max_target: int
    instruction: str
    generation: GenerationSettings
    language: str = "en"
