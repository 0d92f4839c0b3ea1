"""A model of the service, in each mode that it was trained for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypedDict, Unpack

import torch

from precis.extract.extractor import ExtractOptions, Extractor
from precis.extract.extractor_opening import extractor_of, is_ranked, open_extractor, passage_choice
from precis.generation.model_loader import load_model, named_device
from precis.generation.model_location import is_default, locate
from precis.generation.model_metadata import Mode
from precis.generation.summarizer import Summarizer, Summary
from precis.generation.writers.writer import Writer
from precis.generation.writers.writer_opening import open_writer
from precis.messages import OnPartial, OnProgress
from precis.server.engine import Ask
from precis.server.model_pool import ModelPool
from precis.server.token_counter import ByBytes, TokenCounter, counter_of
from precis_text.documents.passages import Passages
from precis_text.errors import UserError

_DOES = {"abstract": "write", "extract": "choose sentences"}


@dataclass(frozen=True)
class ServedModel:
    """One model that writes, chooses sentences, or both.

    Attributes:
        name: its name in requests.
        modes: the modes that it was trained for, the default first.
        batch: documents at a time.
        languages: those in which it chooses well; if empty, no text is noted as another language.
    """

    name: str
    modes: tuple[Mode, ...]
    writer: Summarizer | Writer | None
    chooser: Extractor | None
    batch: int
    languages: tuple[str, ...] = ()

    @classmethod
    def load(
        cls,
        model: str,
        *,
        name: str,
        adapter: str | None = None,
        device: torch.device | None = None,
        mode: Mode | None = None,
        batch: int = 8,
        beams: int | None = None,
    ) -> ServedModel:
        """Load a model once for all of its modes.

        Args:
            mode: the only mode to serve; if None, all.
            beams: width of the search of requests that name none; if None, the model's own.

        Raises:
            UserError: if the model cannot be loaded, was not trained for `mode`, or does not use `beams`.
        """
        found = locate(model, adapter)
        if beams is not None and (found.is_writer or "abstract" not in found.use.modes or mode == "extract"):
            raise UserError(
                f"--beams does not apply to {model}, which does not write by beam search; omit it"
            )
        if found.is_writer:
            writer = open_writer(found, choose=passage_choice(), device=device)
            return cls(name, (found.use.mode_for(mode),), writer, None, batch)
        modes = found.use.modes if mode is None else (found.use.mode_for(mode),)
        languages = found.use.languages if is_default(found.folder) else ()
        if modes == ("extract",) and is_ranked(found):
            return cls(name, modes, None, open_extractor(found), batch, languages=languages)
        loaded = load_model(found, device=device)
        summarizer = Summarizer.of(loaded) if "abstract" in modes else None
        if summarizer is not None and beams is not None:
            summarizer.settings = replace(summarizer.settings, beams=beams)
        return cls(
            name,
            modes,
            summarizer,
            extractor_of(loaded) if "extract" in modes else None,
            batch,
            languages=languages,
        )

    @property
    def size(self) -> int:
        """Bytes of its weights; what decoding packs or caches comes on top."""
        owner = self.writer or self.chooser
        assert owner is not None
        models = owner.models if isinstance(owner, Writer) else [getattr(owner, "model", None)]
        found = [tensor for model in models if model for tensor in (*model.parameters(), *model.buffers())]
        return sum(each.numel() * each.element_size() for each in {id(each): each for each in found}.values())

    def counter(self) -> TokenCounter:
        """Return a counter of its tokens."""
        owner = self.writer or self.chooser
        assert owner is not None
        if isinstance(owner, Extractor):
            return counter_of(owner.open_tokenizer())
        tokenizer = owner.chat.tokenizer if isinstance(owner, Writer) else owner.tokenizer
        return ByBytes() if tokenizer is None else counter_of(tokenizer)

    def make(
        self, texts: Sequence[str | Passages], ask: Ask, on_progress: OnProgress, on_partial: OnPartial | None
    ) -> list[Summary]:
        """Return the summaries of `texts`; one with 0 `document_tokens` for a text without tokens.

        `on_partial` receives the first sentences of written summaries (`Summarizer.stream`); extracts come all at once.

        Raises:
            UserError: if a document cannot be summarized with these options.
        """
        asked = ExtractOptions(length=ask.length, form=ask.form, skip_empty=True, on_progress=on_progress)
        if ask.mode == "extract":
            assert self.chooser is not None
            return self.chooser.summarize(texts, **asked)
        assert self.writer is not None
        settings: dict[str, Any] = {}
        if ask.beams is not None:
            if isinstance(self.writer, Writer):
                raise UserError(
                    "beams does not apply to this model, which writes by greedy search; omit beams"
                )
            settings["settings"] = replace(self.writer.settings, beams=ask.beams)
        return self.writer.summarize(
            texts, **asked, **settings, instruction=ask.instruction, batch_size=self.batch,
            on_partial=on_partial,
        )  # fmt: skip


def mode_of(modes: Sequence[Mode], wanted: Mode | None) -> Mode:
    """Return the mode for a request; raise `UserError` if the model was not trained for the requested mode."""
    if wanted is None:
        return modes[0]
    if wanted not in modes:
        raise UserError(f"mode={wanted}: this model was not trained to {_DOES[wanted]}; omit mode")
    return wanted


class ServingOptions(TypedDict):
    """Options of `ServedModel.load` that all models of a service share."""

    adapter: str | None
    mode: Mode | None
    batch: int
    beams: int | None


def pool_of(
    models: Mapping[str, str], *, memory: int | None, device: str | None, **options: Unpack[ServingOptions]
) -> ModelPool:
    """Return the pool of these models, name -> place; nothing is loaded yet."""
    on = None if device is None else named_device(device)
    loaders = {
        name: partial(ServedModel.load, place, name=name, device=on, **options)
        for name, place in models.items()
    }
    return ModelPool(loaders, memory=memory)
