"""Summarizes documents with any encoder-decoder.

A summary depends only on its document, the model and the settings, not on the other documents of its batch. Every
summary reports the number of tokens read, so truncation is never silent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Self, Unpack

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from precis.generation.decoder_batches import AUTOMATIC, BatchDecoder, Job, Loop, Written
from precis.generation.generation_settings import settings_of
from precis.generation.input_plan import (
    DocumentEncoder,
    Encoded,
    assumed_limit,
    choose,
    fusion_limit,
    input_limit,
    line_end_ids,
    pieces,
    sentence_end_ids,
    units_of_prefix,
    wanted_limit,
)
from precis.generation.model_loader import LoadedModel, load_model
from precis.generation.model_location import ModelLocation, locate
from precis.generation.partial_summaries import PartialSummaries
from precis.generation.summary import NOTHING as NOTHING
from precis.generation.summary import How, Long, several
from precis.generation.summary import Summary as Summary
from precis.generation.summary import keep_whole as kept
from precis.generation.written_forms import written_forms
from precis.messages import OnPartial, OnProgress
from precis_text.control_characters import UNIT_MARK, main_part, remove_marks
from precis_text.decoding_settings import GenerationSettings
from precis_text.documents.passages import Passages, text_of
from precis_text.documents.subtitles import as_read
from precis_text.errors import UserError
from precis_text.forms.form import Form, FormType
from precis_text.forms.form_choice import FormOptions, chosen_form
from precis_text.length import (
    Length,
    LengthOptions,
    Words,
    chosen_length,
    decoding_window,
    tokens_per_word,
    trim,
)
from precis_text.row import checked_documents
from precis_text.words import length_in_words

_LARGEST_BATCH = 4096
_WINDOW = 16  # batches sorted by length together


class StreamOptions(LengthOptions, FormOptions, total=False):
    """The options of `Summarizer.stream`."""

    form: Form | None
    length: Length | None
    instruction: str | None
    long: Long | None
    settings: GenerationSettings | None
    batch_size: int
    skip_empty: bool
    on_progress: OnProgress | None
    on_partial: OnPartial | None


class Summarizer:
    """An abstractive summarizer with one model.

    Args:
        model: an encoder-decoder in evaluation mode, on its device.
        tokenizer: the model's tokenizer.
        settings: default decoding settings; if None, those of its generation configuration.
        max_source: the longest input in tokens that it was trained on; if None, the limit of model and tokenizer.
        instruction: default text before every document.
        loop: the decoding loop; see `precis.generation.decoder_batches.Loop`.

    Attributes:
        max_source: the longest input in tokens that the model reads at once.
        fusion_limit: the longest input in tokens that it reads by fusion-in-encoder; 0 if it cannot.
        limit_is_assumed: True if `precis.generation.input_plan.assumed_limit` chose the limit, since none is declared.

    Examples:
        >>> summarizer = Summarizer.from_pretrained("runs/news")
        >>> (summary,) = summarizer.summarize(["Ann sings in the hall. Bob listens to her."], words=20)
        >>> summary.truncated
        False
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        settings: GenerationSettings | None = None,
        max_source: int | None = None,
        instruction: str = "",
        loop: Loop = AUTOMATIC,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.settings = settings or settings_of(model)
        self.instruction = instruction
        declared = input_limit(model.config, tokenizer, trained=max_source)
        self.limit_is_assumed = declared is None
        self.max_source = assumed_limit(model.config) if declared is None else declared
        self.fusion_limit = fusion_limit(model.config)
        self._decoder = BatchDecoder(model, tokenizer, loop=loop)
        self._ends = sentence_end_ids(tokenizer) | line_end_ids(tokenizer)

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path | ModelLocation,
        *,
        adapter: str | Path | None = None,
        device: str | torch.device | None = None,
        dtype: torch.dtype | None = None,
        settings: GenerationSettings | None = None,
        max_source: int | None = None,
        loop: Loop = AUTOMATIC,
    ) -> Self:
        """Load `default`, a run folder, a Hugging Face folder or a hub name; see
        `precis.generation.model_loader.load_model`.

        Args:
            adapter: a folder of `precis tune` or `Attachment.save`, for this model.
            max_source: the longest input in tokens that the model reads at once; if None, its own limit.

        Raises:
            UserError: if it is not an encoder-decoder that can be loaded safely, the adapter belongs to another model,
                or the model cannot read inputs of that length.
        """
        if not isinstance(model, str | Path | ModelLocation):
            raise UserError(f"model={model!r} is of type {type(model).__name__}; give a name or a path")
        found = locate(model, adapter)
        if "abstract" not in found.use.modes:
            raise UserError(
                f"{found.source}: this model chooses sentences and was not trained to write; use "
                "precis.summarize(text, model=...), or take a model that writes"
            )
        loaded = load_model(found, device=device, dtype=dtype)
        made = cls.of(loaded, settings=settings, loop=loop)
        if max_source is not None:
            made.max_source = wanted_limit(loaded.model.config, max_source)
            made.limit_is_assumed = False
        return made

    @classmethod
    def of(
        cls, loaded: LoadedModel, *, settings: GenerationSettings | None = None, loop: Loop = AUTOMATIC
    ) -> Self:
        """Use a loaded model with the defaults of its training; see the class for the arguments."""
        use = loaded.use
        return cls(
            loaded.model, loaded.tokenizer, settings=settings, max_source=use.max_source,
            instruction=use.instruction, loop=loop,
        )  # fmt: skip

    def summarize(
        self, documents: Sequence[str | Passages], **options: Unpack[StreamOptions]
    ) -> list[Summary]:
        """Return the summaries of `documents`, in their order. Options are those of `stream`."""
        return list(self.stream(several(documents), **options))

    def stream(
        self,
        documents: Iterable[str | Passages],
        *,
        settings: GenerationSettings | None = None,
        form: Form | None = None,
        type: FormType | None = None,  # noqa: A002  the name of the option
        about: str | None = None,
        length: Length | None = None,
        instruction: str | None = None,
        batch_size: int = 8,
        long: Long | None = None,
        skip_empty: bool = False,
        on_progress: OnProgress | None = None,
        on_partial: OnPartial | None = None,
        **lengths: Unpack[LengthOptions],
    ) -> Iterator[Summary]:
        """Yield the summaries in the order of the documents, as soon as they are written.

        Args:
            documents: read in windows of `16 * batch_size`; texts, or texts with headings and times.
            settings: decoding settings; if None, the summarizer's own.
            form: the form; if None, that of `type` and `about`; see `precis.generation.written_forms`.
            type, about: the form and the question; see `precis_text.forms.form_choice.FormOptions`.
            length: the requested length; if None, that of `lengths`.
            instruction: text before each document; if None, the summarizer's own.
            batch_size: documents at a time. It changes speed and memory, not the summaries (except with `Int8` weights,
                where a batch shares the scale of its hidden states).
            long: how to read a document longer than `max_source`: "fie" reads all of it by
                fusion-in-encoder (Z-Code++ only), "chunk" summarizes pieces and then their summaries,
                "truncate" truncates it. If None, "fie" if the model supports it, up to 32,768 tokens, else "chunk".
            skip_empty: give a document without tokens an empty summary, with 0 `document_tokens`, instead of an
                error. A text lacks tokens if the tokenizer drops all of its characters or knows none of them.
            on_progress: called with the number of inputs (or pieces) of the window that are done, their total, and the
                tokens written in the current batch.
            on_partial: called with the index of a document, from 0, and the first sentences of its summary, once they
                are final. Only greedy search on a CPU calls it, and only for a plain paragraph.
            lengths: the length as `words`, `sentences`, `tokens`, `min_words` and `short`; see
                `precis_text.length.LengthOptions`.

        Raises:
            UserError: if a document lacks tokens (the error gives its number), or an option does not fit the model.
        """
        if not 1 <= batch_size <= _LARGEST_BATCH:
            raise UserError(f"batch_size={batch_size} must be 1 to {_LARGEST_BATCH:,}")
        if not isinstance(settings, GenerationSettings | None):
            raise UserError(f"settings={settings!r}: use dataclasses.replace(summarizer.settings, ...)")
        wanted, documents = chosen_form(form, type, about), checked_documents(map(as_read, documents))
        if not wanted.is_plain:
            write = partial(
                self.stream, settings=settings, instruction=instruction, batch_size=batch_size, long=long,
                skip_empty=True, on_progress=on_progress,
            )  # fmt: skip
            own = chosen_length(length, lengths)
            together = _WINDOW * batch_size
            forms = written_forms(
                write, self._count, documents, wanted, own, together=together, skip_empty=skip_empty
            )
            yield from forms
            return
        before = self.instruction if instruction is None else instruction
        request = _Request(
            encode=DocumentEncoder(self.tokenizer, before, units=units_of_prefix(self.model)),
            settings=settings or self.settings, length=chosen_length(length, lengths), batch_size=batch_size,
            long=long, skip_empty=skip_empty, on_progress=on_progress, on_partial=on_partial,
        )  # fmt: skip
        numbered = enumerate(map(text_of, documents), start=1)
        while window := list(islice(numbered, _WINDOW * batch_size)):
            read = [self._read(number, text, request) for number, text in window]
            to_write = [document for document in read if isinstance(document, _Document)]
            written = iter(self._window(to_write, request))
            yield from (next(written) if isinstance(done, _Document) else done for done in read)

    def _count(self, text: str) -> int:
        return len(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def _read(self, number: int, text: str, request: _Request) -> _Document | Summary:
        """Tokenize a document and choose how to read it. If there is nothing to write, return its summary."""
        encoded = request.encode(text) if text.strip() else None
        if encoded is None or not request.encode.reads(encoded):
            if request.skip_empty:
                return NOTHING
            problem = "is empty" if encoded is None else "contains no tokens that the model knows"
            raise UserError(f"document {number} {problem}: there is nothing to summarize")
        tokens, own = len(encoded.body), remove_marks(main_part(text))
        if request.length.keeps(own, tokens=tokens):
            return kept(own, tokens)
        encoded.room(self.max_source)  # raise before decoding the others
        how = choose(len(encoded), self.max_source, long=request.long, fusion_limit=self.fusion_limit)
        return _Document(number - 1, own, encoded, how, tokens_per_word(tokens, text))

    def _window(self, documents: Sequence[_Document], request: _Request) -> list[Summary]:
        inputs = [self._input(document, request) for document in documents]
        jobs = [
            Job(input_.encoded, request.window(document), input_.how)
            for document, input_ in zip(documents, inputs, strict=True)
        ]
        asked = [(d.place, d.text, job.settings.max_tokens) for d, job in zip(documents, jobs, strict=True)]
        on_partial = request.on_partial and PartialSummaries(asked, request.length, request.on_partial)
        texts = self._decoder.decode(
            jobs, batch_size=request.batch_size, on_progress=request.on_progress, on_partial=on_partial
        )
        return [
            _summary(document, input_, written, request.length)
            for document, input_, written in zip(documents, inputs, texts, strict=True)
        ]

    def _input(self, document: _Document, request: _Request) -> _Input:
        """Return the model's final input: the document, truncated or not, or the summaries of its pieces."""
        whole = document.encoded
        if document.how in ("whole", "fie"):
            return _Input(whole, document.how, tokens_read=len(whole.body))
        if document.how == "truncate":
            cut = whole.part(0, whole.room(self.max_source))
            return _Input(cut, "whole", tokens_read=len(cut.body))
        parts = pieces(whole, self.max_source, ends=self._ends)
        return _Input(self._condense(parts, request), "whole", tokens_read=len(whole.body), pieces=len(parts))

    def _condense(self, parts: Sequence[Encoded], request: _Request) -> Encoded:
        """Return the pieces' summaries as one input that fits; summarize them again until they do."""
        half = max(1, parts[0].room(self.max_source) // 2)  # at most half a piece, so that the loop ends
        limits = request.settings
        least, most = (min(count, half) for count in (limits.min_tokens, limits.max_tokens))
        settings = replace(limits, max_tokens=most, min_tokens=least)
        while True:
            jobs = [Job(part, settings, "whole") for part in parts]
            texts = self._decoder.decode(jobs, batch_size=request.batch_size, on_progress=request.on_progress)
            found = (f"{UNIT_MARK}{written.text}" for written in texts if written.text)  # each may be a unit
            joined = request.encode("\n".join(found) or UNIT_MARK)
            joined = replace(joined, head=parts[0].head)  # includes the first part of a two-part document
            if len(joined) <= self.max_source:
                return joined
            shorter = pieces(joined, self.max_source, ends=self._ends)
            if len(shorter) >= len(parts):
                raise UserError(
                    f"the summaries of the document's {len(parts)} pieces are as long as the document; "
                    "use --long truncate, or request shorter summaries"
                )
            parts = shorter


@dataclass(frozen=True, kw_only=True)
class _Request:
    """The options of one call of `stream`."""

    encode: DocumentEncoder
    settings: GenerationSettings
    length: Length
    batch_size: int
    long: Long | None
    skip_empty: bool
    on_progress: OnProgress | None
    on_partial: OnPartial | None

    def window(self, document: _Document) -> GenerationSettings:
        """Return the decoding settings for a document."""
        size = len(document.encoded.body)
        return decoding_window(self.settings, self.length, ratio=document.ratio, document=size)


@dataclass(frozen=True)
class _Document:
    place: int  # index among all documents
    text: str
    encoded: Encoded
    how: How
    ratio: float  # tokens per word


@dataclass(frozen=True)
class _Input:
    encoded: Encoded
    how: How
    tokens_read: int
    pieces: int = 1


def _summary(document: _Document, input_: _Input, written: Written, length: Length) -> Summary:
    trimmed, most = trim(written.text, length.cap, ended=written.ended), length_in_words(document.text)
    if length.short == "keep" and length_in_words(trimmed.text) > most:
        if length.cap is None:
            return kept(document.text, len(document.encoded.body))
        # the document is beyond the cap
        trimmed = trim(trimmed.text, Words(count=most), ended=trimmed.finished)
    return Summary(
        text=trimmed.text, document_tokens=len(document.encoded.body), tokens_read=input_.tokens_read,
        summary_tokens=written.tokens, finished=trimmed.finished, how=document.how, pieces=input_.pieces,
    )  # fmt: skip
