"""A summarization job: the model, its mode and its options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from precis.extract.default_model import default_model
from precis.extract.extractor import Extractor
from precis.generation.adapters import find_parts
from precis.generation.decoder_batches import AUTOMATIC, Drafting
from precis.generation.model_fingerprint import made_with
from precis.generation.model_loader import model_use, named_device
from precis.generation.model_metadata import Mode
from precis.generation.summarizer import Summarizer
from precis.phases.use.summarization import Result, extract_documents, summarize_documents
from precis_text.errors import UserError
from precis_text.length import ANY_LENGTH, Length


@dataclass(frozen=True)
class SummaryMaker:
    """A loaded model.

    Attributes:
        results: yields the results of an iterable of documents, in order; calls `watch` and `hear` with the progress.
        max_source: the longest input in tokens that the model reads at once.
        limit_is_assumed: whether that limit of a writing model is assumed and not declared.
    """

    results: Callable[..., Iterator[Result]]
    max_source: int
    limit_is_assumed: bool = False


@dataclass(frozen=True, kw_only=True)
class SummaryJob:
    """The options of a summarization job.

    Attributes:
        model: a folder, or a name on the hub; if None, the model that comes with precis on each machine.
        length: the requested length of a summary.
        writing: `instruction`, `long`, `beams`, `max_source`, `draft`; all must be None or False for extracts.
    """

    model: str | None = None
    adapter: str | None = None
    device: str | None = None
    mode: Mode | None = None
    length: Length = ANY_LENGTH
    writing: Mapping[str, Any] = field(default_factory=dict)

    def found_model(self) -> str:
        """Return the model's folder or name on this machine."""
        return str(default_model()) if self.model is None else self.model

    def chosen_mode(self) -> Mode:
        """Return the requested mode, or the model's first.

        Raises:
            UserError: the model does not exist, it was not trained for the mode, or an option does not fit the mode.
        """
        mode = model_use(self.found_model(), self.adapter).mode_for(self.mode)
        if mode == "extract":
            for name, value in {**self.writing, "adapter": self.adapter}.items():
                if value is not None and value is not False:
                    option = f"--{name.replace('_', '-')}"
                    raise UserError(
                        f"{option} does not apply to --mode extract, which writes nothing; omit it"
                    )
        return mode

    def made_by(self) -> dict[str, Any]:
        """Return everything that determines the summaries, JSON-ready.

        Raises:
            UserError: see `chosen_mode`.
        """
        made = made_with(find_parts(self.found_model(), self.adapter))
        return {**self.length.options(), **self.writing, "mode": self.chosen_mode(), **made}

    def load(self, *, keep_going: bool, batch_size: int = 8) -> SummaryMaker:
        """Load the model.

        Args:
            keep_going: return a result with the reason for a document without a summary; else raise the error.
            batch_size: documents that a writing model summarizes at a time.

        Raises:
            UserError: the model cannot be loaded, or see `chosen_mode`.
        """
        mode, model = self.chosen_mode(), self.found_model()
        device = None if self.device is None else named_device(self.device)
        if mode == "extract":
            extractor = Extractor.from_pretrained(model, device=device)
            choose = partial(extract_documents, extractor, length=self.length, keep_going=keep_going)
            return SummaryMaker(choose, extractor.max_source)
        asked = {name: value for name, value in self.writing.items() if value is not None}
        summarizer = Summarizer.from_pretrained(
            model,
            adapter=self.adapter,
            device=device,
            max_source=asked.pop("max_source", None),
            loop=Drafting() if asked.pop("draft", False) else AUTOMATIC,
        )
        write = partial(
            summarize_documents,
            summarizer,
            length=self.length,
            keep_going=keep_going,
            batch_size=batch_size,
            **asked,
        )
        return SummaryMaker(write, summarizer.max_source, summarizer.limit_is_assumed)
