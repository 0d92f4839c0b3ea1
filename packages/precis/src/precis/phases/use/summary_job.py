"""A summarization job: the model, its mode and its options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precis.data.text.prompts import prompts_digest
from precis.extract.extractor_opening import is_ranked, open_extractor, passage_choice
from precis.generation.model_location import ModelLocation, locate
from precis.generation.model_metadata import DEFAULT, NO_ADAPTER, PACKAGES, Mode
from precis.generation.model_names import refuse_writing_options
from precis.generation.writers.endpoint import checked_address
from precis.phases.use.summaries_file import SummariesFile
from precis.phases.use.summarization import Result, extract_documents, summarize_documents
from precis_text.errors import UserError
from precis_text.forms.form import Form
from precis_text.forms.form_choice import PARAGRAPH
from precis_text.length import ANY_LENGTH, Length
from precis_text.support.write_or_quote import rules_digest

if TYPE_CHECKING:
    import torch

    from precis.generation.summarizer import Summarizer
    from precis.generation.writers.writer import Writer
    from precis.phases.use.summary_format import Render


@dataclass(frozen=True)
class LoadedJob:
    """A summarization job with its model in memory.

    Attributes:
        results: yields the results of documents, in their order; calls `on_progress` and `on_partial`.
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
        model: `default` for the model that comes with precis on each machine, a folder, or a name on the hub.
        length: the requested length of a summary.
        form: its form, and the question that it answers.
        writing: `instruction`, `long`, `beams`, `max_source`, `draft`, and for writers `language`, `free` and
            `allow_remote`; all must be None or False for extracts.
    """

    model: str = DEFAULT
    adapter: str | None = None
    device: str | None = None
    mode: Mode | None = None
    length: Length = ANY_LENGTH
    form: Form = PARAGRAPH
    writing: Mapping[str, Any] = field(default_factory=dict)

    def on_every_machine(self) -> SummaryJob:
        """Return the job with absolute paths, and only the options that were given: the same on every worker."""

        def absolute(place: str) -> str:
            is_name = place in (*PACKAGES, NO_ADAPTER) or not Path(place).exists()
            return place if is_name else str(Path(place).absolute())

        adapter = None if self.adapter is None else absolute(self.adapter)
        asked = {
            name: value for name, value in self.writing.items() if value is not None and value is not False
        }
        return replace(self, model=absolute(self.model), adapter=adapter, writing=asked)

    def locate_model(self) -> LocatedJob:
        """Find the model on this machine, and choose the mode: the requested one, or the model's first.

        Raises:
            UserError: the model does not exist, it was not trained for the mode, or an option does not fit the mode.
        """
        model = locate(self.model, self.adapter)
        mode = model.use.mode_for(self.mode)
        if mode == "extract":
            refuse_writing_options({**self.writing, "adapter": self.adapter})
        elif model.is_writer:
            self._refuse(
                ("beams", "draft"), "a causal language model or an endpoint, which writes by greedy search"
            )
            if model.is_endpoint:
                checked_address(str(model.place), allow_remote=bool(self.writing.get("allow_remote")))
        else:
            self._refuse(
                ("language", "free", "allow_remote"), "an encoder-decoder, which writes as it was trained"
            )
        return LocatedJob(self, model, mode)

    def _refuse(self, names: Sequence[str], kind: str) -> None:
        """Refuse options that do not apply to a kind of model."""
        for name in names:
            if self.writing.get(name) not in (None, False):
                raise UserError(f"--{name.replace('_', '-')} does not apply to {kind}; omit it")


@dataclass(frozen=True)
class LocatedJob:
    """A summarization job with the model that was found on this machine, and its mode."""

    options: SummaryJob
    model: ModelLocation
    mode: Mode

    @property
    def is_ranked(self) -> bool:
        """True if a ranker chooses the sentences, which needs neither torch nor transformers."""
        return self.mode == "extract" and is_ranked(self.model)

    def made_by(self) -> dict[str, Any]:
        """Return everything that determines the summaries, JSON-ready."""
        options = self.options
        form = {} if options.form.is_plain else {"type": options.form.name, "about": options.form.about}
        made = {**options.length.options(), **form, **options.writing, "mode": self.mode}
        rules = {"prompts": prompts_digest(), "rules": rules_digest()}
        is_written = self.mode == "abstract" and self.model.is_writer
        return {**made, **(rules if is_written else {}), **self.model.fingerprint}

    def summaries_file(self, path: Path, *, render: Render, keep_going: bool, support: bool) -> SummariesFile:
        """Return the file of the summaries; it resumes only with the same model, options and flags."""
        made_by = {**self.made_by(), "keep_going": keep_going, **({"support": True} if support else {})}
        return SummariesFile(path, made_by=made_by, render=render)

    def load(self, *, keep_going: bool, batch_size: int = 8) -> LoadedJob:
        """Load the model.

        Args:
            keep_going: return a result with the reason for a document without a summary; else raise the error.
            batch_size: documents that a writing model summarizes at a time.

        Raises:
            UserError: the model cannot be loaded.
        """
        job = self.options
        device = None if job.device is None else _device(job.device)
        if self.mode == "extract":
            extractor = open_extractor(self.model, device=device)
            choose = partial(
                extract_documents, extractor, length=job.length, form=job.form, keep_going=keep_going
            )
            return LoadedJob(choose, extractor.max_source)
        asked = {name: value for name, value in job.writing.items() if value is not None}
        summarizer = self._writer(asked, device) if self.model.is_writer else self._summarizer(asked, device)
        write = partial(
            summarize_documents, summarizer, length=job.length, form=job.form, keep_going=keep_going,
            batch_size=batch_size, **asked,
        )  # fmt: skip
        return LoadedJob(write, summarizer.max_source, summarizer.limit_is_assumed)

    def _summarizer(self, asked: dict[str, Any], device: torch.device | None) -> Summarizer:
        """Load an encoder-decoder, and take its options out of `asked`."""
        from precis.generation.decoder_batches import AUTOMATIC, Drafting
        from precis.generation.summarizer import Summarizer

        for name in ("language", "free", "allow_remote"):
            asked.pop(name, None)
        return Summarizer.from_pretrained(
            self.model, device=device, max_source=asked.pop("max_source", None),
            loop=Drafting() if asked.pop("draft", False) else AUTOMATIC,
        )  # fmt: skip

    def _writer(self, asked: dict[str, Any], device: torch.device | None) -> Writer:
        """Open a writer, and take its options out of `asked`."""
        from precis.generation.writers.writer_opening import open_writer

        asked.pop("draft", None)
        return open_writer(
            self.model, choose=passage_choice(), check="free" if asked.pop("free", False) else "strict",
            language=asked.pop("language", None), allow_remote=asked.pop("allow_remote", False),
            context=asked.pop("max_source", None), device=device,
        )  # fmt: skip


def _device(name: str) -> torch.device:
    from precis.generation.model_loader import named_device

    return named_device(name)
