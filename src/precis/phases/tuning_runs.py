"""What a run of `precis tune` attaches to its base, and what its finished adapter is on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase

from precis.config import Settings
from precis.data.batches.tokenized import TokenizedPairs
from precis.data.text.segments import UnitKind, kind_name
from precis.errors import UserError
from precis.generation.adapters import ADAPTER_FOLDER, place_of_base, write_base
from precis.generation.model_use import USE_FILE, ModelUse
from precis.generation.settings import generation_config
from precis.phases.pair_training import MODEL_FOLDER
from precis.phases.run_folder import export_model, write_folder
from precis.phases.trainable import TrainableModel
from precis.recipes.runs import RunPlan
from precis.telling import Tell
from precis.tuning import METHODS, Attachment, MethodSettings, NoPrefix, Prefix, Tuning, method
from precis.tuning.discourse import most_segments
from precis.tuning.prefix import (
    AllLayers,
    Direct,
    FromTokens,
    LowLayers,
    Reparametrized,
    SingleLayer,
    TopLayers,
)

Layers = AllLayers | TopLayers | LowLayers | SingleLayer
_LAYERS: Mapping[str, Callable[[int], Layers]] = {
    "top": lambda count: TopLayers(count=count),
    "low": lambda count: LowLayers(count=count),
    "single": lambda index: SingleLayer(index=index),
}


@dataclass(frozen=True, kw_only=True)
class TunePlan(Settings):
    """What is attached, said before base and data are known.

    Attributes:
        method: a name of `precis.tuning.METHODS`.
        prefix: its columns; `NoPrefix` trains the whole model under the method's sparse attention (Table 4).
        settings: of the method; its `target_length` is not read.
        initial_text: its words give the first keys and values; "": they are drawn at random.
        target_length: tokens that a summary is expected to have, for the decoder's segments; None: as many as the
            training summaries have on average.
        units: what the source's segments are made of; None: equal parts of its tokens.

    Raises:
        UserError: no such method, settings that it cannot have, or units for a method without blocks.
    """

    method: str
    prefix: Prefix | NoPrefix
    settings: MethodSettings = field(default_factory=MethodSettings)
    initial_text: str = ""
    target_length: int | None = None
    units: UnitKind | None = None

    def __post_init__(self) -> None:
        if self.target_length is not None and self.target_length < 1:
            raise UserError(f"target_length={self.target_length}: expect at least 1 token")
        if isinstance(self.prefix, NoPrefix):
            self._check_without_prefix()
        elif self.initial_text and isinstance(self.prefix.keys, Reparametrized):
            raise UserError("a prefix that a network makes cannot begin as given words; use one of the two")
        segments = most_segments(self.expected())  # which refuses what no base could carry
        if self.units is not None and segments < 2:
            raise UserError(
                f"units are what segments are made of, and {self.method} has one segment of the source here; use "
                "uniblock, hierblock or hierblock+softsa with two encoder_segments or more"
            )

    @property
    def segments(self) -> int:
        """Into how many segments a source is cut; 1: into none."""
        return most_segments(self.expected())

    def expected(self) -> Tuning:
        """What is attached, but for what the training pairs decide: the length of a target, the first words."""
        return method(self.method, self.prefix, self.settings)

    def _check_without_prefix(self) -> None:
        if self.method not in METHODS or self.method == "prefix" or "block" in self.method:
            raise UserError(
                f"method {self.method!r} is about a prefix, so it cannot tune the whole model; "
                "the sparse ones can: truncsa, softsa, htruncsa, hsoftsa"
            )
        if self.initial_text:
            raise UserError(
                "words to begin with belong to a prefix, and the whole model is tuned without one"
            )

    def tuning(self, train: TokenizedPairs, tokenizer: PreTrainedTokenizerBase) -> Tuning:
        """What is attached to a base that reads these pairs.

        Raises:
            UserError: an unknown method or impossible settings.
        """
        length = self.target_length
        if length is None:
            length = max(1, round(float(np.mean(train.target_lengths))))
        prefix = self.prefix
        if self.initial_text and isinstance(prefix, Prefix):
            ids = tokenizer(self.initial_text, add_special_tokens=False)["input_ids"]
            prefix = replace(prefix, keys=FromTokens(ids=tuple(ids)))
        tuning = method(self.method, prefix, replace(self.settings, target_length=length))
        return tuning if self.units is None else replace(tuning, units=kind_name(self.units))


def parse_layers(text: str) -> Layers:
    """`all`, `top:4`, `low:7` or `single:0` (the lowest; counted from 0) as a choice of layers.

    Raises:
        UserError: it is something else.
    """
    kind, _, count = text.partition(":")
    if text == "all":
        return AllLayers()
    if kind in _LAYERS and count.isdecimal():
        return _LAYERS[kind](int(count))
    raise UserError(
        f"--layers {text}: write all, top:4 (the last four), low:7 (the first seven) or single:0 (the lowest; counted "
        "from 0)"
    )


def parse_keys(
    *, reparametrize: bool | None, inner_width: int | None, initial_text: str
) -> Direct | Reparametrized:
    """How keys and values are parametrised; None: by a network, unless they are to begin as given words.

    The network is Li & Liang's, and the paper's rate of 5e-5 is theirs too: an entry that is a parameter itself would
    move by no more than that in a step of Adam.

    Raises:
        UserError: a width is given for a network that is not there.
    """
    if reparametrize or (reparametrize is None and not initial_text):
        return Reparametrized() if inner_width is None else Reparametrized(width=inner_width)
    if inner_width is not None:
        raise UserError("--inner-width belongs to the network, and --direct and --initial-text do without")
    return Direct()


def check_segments(plan: TunePlan, rows: TokenizedPairs, tell: Tell) -> None:
    """Say how many documents have fewer tokens, or units, than there are segments: some of the prefix is never seen
    with them.

    Raises:
        UserError: all of them have.
    """
    segments = plan.segments
    if segments < 2:
        return
    parts = "tokens" if rows.segments is None else "units"
    counts = (
        rows.source_lengths
        if rows.segments is None
        else np.array([len(np.unique(rows.segments[index])) for index in range(len(rows))])
    )
    short = int((counts < segments).sum())
    if short == len(counts):
        raise UserError(
            f"{segments} segments, but no training document has more than {counts.max()} {parts}; use fewer with "
            "--encoder-segments, or other --units"
        )
    if short:
        tell(
            f"{short:,} of {len(counts):,} training documents have fewer than {segments} {parts}: prefix columns of "
            "segments that are not there are not seen with them"
        )


def export_adapter(
    attachment: Attachment, trainable: TrainableModel, *, base: str, run: RunPlan, use: ModelUse, folder: Path
) -> Path:
    """Write FOLDER/adapter, and FOLDER/model too where the whole model was tuned; the base is as before, without it.

    Returns:
        The adapter's folder.
    """
    place = folder / ADAPTER_FOLDER
    adapter = attachment.adapter()
    attachment.detach()
    if isinstance(adapter.tuning.prefix, NoPrefix):
        export_model(trainable.model, trainable.tokenizer, run.generation, use, folder / MODEL_FOLDER)
        base = str(folder / MODEL_FOLDER)
    decoding = generation_config(run.generation, trainable.model, trainable.tokenizer)

    def write(into: Path) -> None:
        adapter.write_files(into)
        decoding.save_pretrained(into)
        write_base(place_of_base(base, place), into)
        (into / USE_FILE).write_text(json.dumps(use.to_dict(), indent=2) + "\n", encoding="utf-8")

    write_folder(place, write)
    return place
