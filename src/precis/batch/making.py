"""What one worker of a batch makes summaries with: what `precis summarize` would, from the same settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from precis.errors import RunError, UserError, first_line
from precis.generation.adapters import find_parts
from precis.generation.default_model import default_model
from precis.generation.extraction import Extractor
from precis.generation.loading import model_use, named_device
from precis.generation.model_use import Mode
from precis.generation.summarizer import Summarizer
from precis.phases.documents import Document
from precis.phases.evaluate import made_with
from precis.phases.summarize import Result, extract_documents, summarize_documents

_ABOUT_WRITING = ("instruction", "long", "beams", "max_source")


@dataclass(frozen=True, kw_only=True)
class Making:
    """How summaries are made.

    Attributes:
        model: a folder, or a name on the hub; if None, the model that comes with precis on each machine.
        length: `words`, `sentences`, `tokens`, `min_words`, `short`; see `Summarizer.stream`.
        writing: `instruction`, `long`, `beams`, `max_source`, where they are asked for; no choice for extracts.
    """

    model: str | None = None
    adapter: str | None = None
    device: str | None = None
    mode: Mode | None = None
    length: dict[str, Any] = field(default_factory=dict)
    writing: dict[str, Any] = field(default_factory=dict)

    def found_model(self) -> str:
        """The model of this machine."""
        return str(default_model()) if self.model is None else self.model

    def made_by(self) -> dict[str, Any]:
        """What decides the summaries, JSON-ready.

        Raises:
            UserError: there is no such model, or an option does not go with its mode.
        """
        mode = model_use(self.found_model(), self.adapter).mode_for(self.mode)
        if mode == "extract":
            for name in (name for name in _ABOUT_WRITING if self.writing.get(name) is not None):
                option = f"--{name.replace('_', '-')}"
                raise UserError(
                    f"{option} has no effect with --mode extract, which writes nothing; leave it out"
                )
        return {
            **self.length,
            **self.writing,
            "mode": mode,
            **made_with(find_parts(self.found_model(), self.adapter)),
        }

    def load(self) -> Callable[[Iterable[Document]], Iterator[Result]]:
        """Load the model; the result gives the summaries of documents, in order, and ends at no document."""
        device = None if self.device is None else named_device(self.device)
        if model_use(self.found_model(), self.adapter).mode_for(self.mode) == "extract":
            extractor = Extractor.from_pretrained(self.found_model(), device=device)
            return partial(extract_documents, extractor, keep_going=True, **self.length)
        options = dict(self.writing)
        summarizer = Summarizer.from_pretrained(
            self.found_model(),
            adapter=self.adapter,
            device=device,
            max_source=options.pop("max_source", None),
        )
        return partial(summarize_documents, summarizer, keep_going=True, **self.length, **options)


def results_of(
    make: Callable[[Iterable[Document]], Iterator[Result]], documents: Sequence[Document]
) -> list[tuple[Result, str]]:
    """Each document's result and, where it has none, what went wrong; no document ends the work for others."""
    try:
        return [(result, result.problem) for result in make(documents)]
    except (UserError, RunError) as error:
        if len(documents) == 1:
            return [(Result(documents[0], None), first_line(error))]
    return [found for document in documents for found in results_of(make, [document])]
