"""The plans of adapters: LoRA, and a prefix by task, as in the paper's Table 7 and its low-resource sets.

The prefix paper trains BART-large. Its rate of 5e-5, Li & Liang's for their network, suits a base of that size; a
smaller base needs a larger rate: for models of a few million parameters 0.001 to 0.003 for the network, 0.1 to 0.3
where keys and values are parameters themselves. The table gives searched ranges of block sizes, top-p and temperatures,
not the chosen values; `MethodSettings` has our defaults. The meaning of "tau (top-p)" is our interpretation; see
`precis.nn.normalizers.TopP`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerBase

from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.tasks.tasks import task
from precis.data.text.segments import UNIT_KINDS, Sentences, UnitKind, kind_name
from precis.recipes.catalogue import FOR_PRETRAINED, FOR_WRITERS, recipe
from precis.recipes.overrides import as_asked, with_overrides
from precis.recipes.run_plan import RunPlan
from precis.training.training_settings import Highest, TrainSettings
from precis.tuning import METHODS, MethodSettings, NoPrefix, Prefix, Tuning, method
from precis.tuning.discourse import READERS, most_segments
from precis.tuning.low_rank import LowRank
from precis.tuning.prefix import (
    AllLayers,
    Direct,
    FromTokens,
    LowLayers,
    Reparametrized,
    SingleLayer,
    TopLayers,
)
from precis_text.config import Settings, nearest
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError

Layers = AllLayers | TopLayers | LowLayers | SingleLayer
_LAYERS: Mapping[str, Callable[[int], Layers]] = {
    "top": lambda count: TopLayers(count=count),
    "low": lambda count: LowLayers(count=count),
    "single": lambda index: SingleLayer(index=index),
}

LORA = "lora"
"""The method of `precis tune` for causal language models."""
LOW_RESOURCE = (0.05, 0.10, 0.25, 0.50)
"""Section 6.6: shares of the training set, drawn at random."""


@dataclass(frozen=True, kw_only=True)
class TaskSettings(Settings):
    """A column of Table 7."""

    prefix_length: int
    epochs: float
    batch_size: int
    learning_rate: float = 5e-5
    beams: int = 5


TABLE_7: Mapping[str, TaskSettings] = MappingProxyType({
    "xsum": TaskSettings(prefix_length=100, epochs=30, batch_size=8),
    "cnndm": TaskSettings(prefix_length=50, epochs=30, batch_size=8),
    "pubmed": TaskSettings(prefix_length=50, epochs=30, batch_size=8),
    "wikihow": TaskSettings(prefix_length=100, epochs=30, batch_size=8),
    "samsum": TaskSettings(prefix_length=10, epochs=20, batch_size=16),
    "e2e": TaskSettings(prefix_length=10, epochs=10, batch_size=16),
    "dart": TaskSettings(prefix_length=10, epochs=10, batch_size=16),
})  # fmt: skip
_LIKE = {"facts": "e2e", "dialogue": "samsum"}  # kinds of tasks


def settings_for(task_name: str | None) -> TaskSettings:
    """Return the task's column of Table 7, or the column of its kind: E2E for facts, SAMSum for dialogues, else
    CNN/DailyMail.

    Raises:
        UserError: the task is unknown.
    """
    if task_name is None:
        return TABLE_7["cnndm"]
    kind = task(task_name).kind
    return TABLE_7[task_name if task_name in TABLE_7 else _LIKE.get(kind, "cnndm")]


@dataclass(frozen=True, kw_only=True)
class TunePlan(Settings):
    """The attachment to a base, before base and data are known. `precis tune --set` changes it by these names.

    Attributes:
        method: a name of `precis.tuning.METHODS`.
        prefix: its columns. With `NoPrefix` the whole model is trained with the method's sparse attention (Table 4).
        attention: settings of the method; its `target_length` is ignored.
        initial_text: text whose words initialize keys and values; if "", they are random.
        target_length: expected tokens of a summary, for the decoder's segments; if None, the mean length of the
            training summaries.
        units: the units of the source's segments; if None, equal parts of its tokens.

    Raises:
        UserError: an unknown method, settings that it does not support, or units for a method without blocks.
    """

    method: str
    prefix: Prefix | NoPrefix
    attention: MethodSettings = field(default_factory=MethodSettings)
    initial_text: str = ""
    target_length: int | None = None
    units: UnitKind | None = None

    def __post_init__(self) -> None:
        if self.target_length is not None and self.target_length < 1:
            raise UserError(f"target_length={self.target_length}: expect at least 1 token")
        if isinstance(self.prefix, NoPrefix):
            self._check_without_prefix()
        elif self.initial_text and isinstance(self.prefix.keys, Reparametrized):
            raise UserError("a prefix made by a network cannot be initialized with words; use one of the two")
        segments = most_segments(self.expected())  # refuses settings that no base supports
        if self.units is not None and segments < 2:
            raise UserError(
                f"units needs two or more segments of the source, but {self.method} has one here; use "
                "uniblock, hierblock or hierblock+softsa with attention.encoder_segments=2 or more"
            )

    @property
    def segments(self) -> int:
        """The number of segments of a source; 1 if it stays whole."""
        return most_segments(self.expected())

    def expected(self) -> Tuning:
        """Return the attachment without values from the training pairs: the length of a target, the initial words."""
        return method(self.method, self.prefix, self.attention)

    def _check_without_prefix(self) -> None:
        sparse = [name for name, each in METHODS.items() if not (each.sparse.is_softmax or each.blocked)]
        if self.method not in sparse:
            raise UserError(
                f"method {self.method!r} needs a prefix, so it cannot tune the whole model; "
                f"use a sparse method: {', '.join(sparse)}"
            )
        if self.initial_text:
            raise UserError(
                "initial_text initializes a prefix, but the whole model is tuned without one; omit it"
            )

    def tuning(self, train: TokenizedPairs, tokenizer: PreTrainedTokenizerBase) -> Tuning:
        """Return the attachment to a base that reads these pairs.

        Raises:
            UserError: an unknown method or impossible settings.
        """
        length = self.target_length
        if length is None:
            length = max(1, round(float(np.mean(train.targets.lengths))))
        prefix = self.prefix
        if self.initial_text and isinstance(prefix, Prefix):
            ids = tokenizer(self.initial_text, add_special_tokens=False)["input_ids"]
            prefix = replace(prefix, keys=FromTokens(ids=tuple(ids)))
        tuning = method(self.method, prefix, replace(self.attention, target_length=length))
        return tuning if self.units is None else replace(tuning, units=kind_name(self.units))


def layers_named(text: str) -> Layers:
    """Parse a choice of layers: `all`, `top:4`, `low:7` or `single:0` (the lowest; counted from 0).

    Raises:
        UserError: the text is something else.
    """
    kind, _, count = text.partition(":")
    if text == "all":
        return AllLayers()
    if kind in _LAYERS and count.isdecimal():
        return _LAYERS[kind](int(count))
    raise UserError(
        f"prefix.layers={text}: write all, top:4 (the last four), low:7 (the first seven) or single:0 (the lowest; "
        "counted from 0)"
    )


def _keys_named(text: str) -> Direct | Reparametrized:
    if text not in ("network", "direct"):
        raise UserError(f"prefix.keys={text}: write network or direct")
    return Reparametrized() if text == "network" else Direct()


def _prefix_named(text: str) -> NoPrefix:
    if text != "none":
        raise UserError(f"prefix={text}: write none, or one of its settings, for example prefix.length=50")
    return NoPrefix()


def _units_named(text: str) -> UnitKind | None:
    if text != "equal" and text not in UNIT_KINDS:
        raise UserError(f"units={text}: unknown units{nearest(text, ['equal', *UNIT_KINDS])}")
    return UNIT_KINDS.get(text)


_KINDS: Mapping[type, Callable[[str], Any]] = {
    AllLayers: layers_named, Direct: _keys_named, NoPrefix: _prefix_named, Sentences: _units_named,
}  # fmt: skip
PLAN_SETTINGS = tuple(each.name for each in fields(TunePlan) if each.name != "method")
"""The settings of a `TunePlan`; any other name in `precis tune --set` is a setting of the run."""


def split_assignments(assignments: Iterable[str]) -> tuple[list[str], list[str]]:
    """Split `NAME=VALUE` texts into those for the prefix and those for the run."""
    of_prefix: list[str] = []
    of_run: list[str] = []
    for text in assignments:
        head = text.partition("=")[0].partition(".")[0].strip()
        (of_prefix if head in PLAN_SETTINGS else of_run).append(text)
    return of_prefix, of_run


def wants_a_rate(plan: TunePlan) -> bool:
    """Return whether keys and values are parameters themselves, which the paper's learning rate hardly moves."""
    return isinstance(plan.prefix, Prefix) and not isinstance(plan.prefix.keys, Reparametrized)


def resolve_prefix(task_name: str | None, method: str, assignments: Iterable[str] = ()) -> TunePlan:
    """Return the prefix that options describe: by default with Table 7's length for the task.

    A network makes keys and values, unless words initialize them. The network and the paper's rate of 5e-5 are Li &
    Liang's: a step of Adam would move an entry that is a parameter itself by no more than that.

    Args:
        assignments: texts of `--set`: `prefix.length=50`, `prefix=none`, `attention.temperature=0.1`.

    Raises:
        UserError: an unknown method or setting, an unsupported value, or a setting that `method` does not use.
    """
    assignments = [*assignments]
    parts = (text.partition("=") for text in assignments)
    named = {path.strip(): value.strip() for path, _, value in parts}
    for path in named:
        readers = READERS.get(path.rpartition(".")[2])
        if readers is not None and method in METHODS and method not in readers:
            raise UserError(
                f"--set {path} does not apply to --method {method}; only {', '.join(readers)} use it"
            )
        if path.startswith("prefix.") and "prefix" in named:
            raise UserError(
                f"--set {path} needs a prefix, but prefix=none tunes the whole model without one; omit one of them"
            )
    words = named.get("initial_text") and not any(path.startswith("prefix.keys") for path in named)
    length = settings_for(task_name).prefix_length
    prefix = Prefix(length=length, keys=Direct() if words else Reparametrized())
    return with_overrides(TunePlan(method=method, prefix=prefix), assignments, kinds=_KINDS)


def resolve_tuning(
    task_name: str | None,
    *,
    changes: Mapping[str, Any] | None = None,
    assignments: Iterable[str] = (),
    select: str | None = None,
) -> RunPlan:
    """Return the training plan of a prefix: Table 7 for the task, its lengths and decoding, and the user's options.

    As in Li & Liang's code, the rate falls linearly from the first step, without warm-up, weight decay and label
    smoothing. ROUGE-L on validation pairs determines the best checkpoint.

    Args:
        changes, assignments, select: the user's options, which win; see `precis.recipes.overrides.as_asked`.

    Raises:
        UserError: an unknown task or setting, or a value of another type.
    """
    paper = settings_for(task_name)
    train = TrainSettings(
        epochs=paper.epochs,
        learning_rate=paper.learning_rate,
        warmup_steps=0,
        weight_decay=0.0,
        select=Highest(metric="rougeL"),
    )
    generation = GenerationSettings(beams=paper.beams)
    run = replace(
        recipe(FOR_PRETRAINED), name="tune", model=None, train=train, batch_size=paper.batch_size,
        label_smoothing=0.0, generation=generation,
    )  # fmt: skip
    if task_name is not None:
        known = task(task_name)
        decoding = replace(known.generation, beams=paper.beams)
        run = replace(run, max_source=known.max_source, max_target=known.max_target, generation=decoding)
    return as_asked(run, changes=changes, assignments=assignments, select=select)


@dataclass(frozen=True, kw_only=True)
class _Named(Settings):
    """The names of an adapter's settings, such as `lora.rank`."""

    lora: LowRank = field(default_factory=LowRank)


def resolve_low_rank(
    task_name: str | None,
    *,
    changes: Mapping[str, Any] | None = None,
    assignments: Iterable[str] = (),
    select: str | None = None,
) -> tuple[LowRank, RunPlan]:
    """Return the low-rank adapter and the training plan that options describe, for a causal language model.

    The plan is the recipe `pretrained-writer` with a larger learning rate. Hu et al. (2022) train GPT-2 at 2e-4,
    linearly decayed, and GPT-3 at 2e-4 or less; 2e-4 is the default here.

    Args:
        changes, assignments, select: the user's options, which win; see `precis.recipes.overrides.as_asked`.

    Raises:
        UserError: an unknown task or setting, a value of another type, or a setting of a prefix.
    """
    of_prefix, others = split_assignments(assignments)
    if of_prefix:
        raise UserError(f"--set {of_prefix[0]} is for a prefix; --method {LORA} has lora.rank and lora.alpha")
    of_adapter = [text for text in others if text.partition(".")[0].strip() == LORA]
    of_run = [text for text in others if text not in of_adapter]
    plan = recipe(FOR_WRITERS)
    train = replace(plan.train, learning_rate=2e-4, precision="fp32")
    plan = replace(plan, name="tune", model=None, train=train)
    if task_name is not None:
        known = task(task_name)
        plan = replace(plan, max_source=known.max_source, max_target=known.max_target)
    adapter = with_overrides(_Named(), of_adapter).lora
    return adapter, as_asked(plan, changes=changes, assignments=of_run, select=select)
