"""A writer: summaries by a chat model, each sentence supported by the document or quoted from it.

document -> the part that fits the context, reported -> prompt -> reply -> write or quote -> length -> Summary
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Unpack, cast

from precis.data.text.prompts import Message, Prompt
from precis.generation.summarizer import StreamOptions
from precis.generation.summary import NOTHING, How, Long, Summary, keep_whole, several
from precis.generation.writers.chat import ChatModel, plain_reply
from precis.generation.writers.writer_input import Choose, Readable, by_centrality, longest_start
from precis.generation.written_forms import written_forms
from precis.messages import OnProgress
from precis_text.control_characters import main_part, remove_marks
from precis_text.decoding_settings import GenerationSettings
from precis_text.documents.passages import Passages, text_of
from precis_text.documents.subtitles import as_read
from precis_text.errors import UserError
from precis_text.forms.form import Count
from precis_text.forms.form_choice import chosen_form
from precis_text.language import language_of
from precis_text.length import (
    ANY_LENGTH,
    LENGTH_OPTIONS,
    Length,
    LengthOptions,
    Sentences,
    Words,
    chosen_length,
    decoding_window,
    first_words,
    tokens_per_word,
    trim,
)
from precis_text.row import checked_documents
from precis_text.sentences import split_sentences
from precis_text.support.injections import for_readers
from precis_text.support.marks import SourceText
from precis_text.support.write_or_quote import SummarySentence, as_written, quotations, write_or_quote
from precis_text.units import extraction_units
from precis_text.words import length_in_words

Check = Literal["strict", "free"]
"""Whether unsupported sentences are replaced ("strict") or stay ("free")."""

_LONGEST = 256  # tokens of a summary without a requested length
_USUAL_WORDS = 80  # of quotations that replace a whole summary without a requested length
_LEAST_ROOM = 32  # tokens of the document that must fit


class Writer:
    """A summarizer with any chat model; it has the methods of `precis.generation.summarizer.Summarizer`.

    Args:
        chat: the model.
        short: the same model with an adapter for short summaries, which writes where `Prompt.is_short`.
        choose: chooses the passages of a long document, and the quotations where nothing written stays.
        check: "strict" replaces sentences that the document does not support; "free" lets all stay.
        closeness: how close a sentence must be to one of the document; see `write_or_quote`.
        language: ISO 639-1 code of the summaries; if None, each document's own.
        instruction: replaces the prompt's sentence that names the form, unless it is "".

    Attributes:
        max_source: the longest prompt and reply together, in tokens.
        limit_is_assumed: True if neither the model nor the caller declares that limit.

    Raises:
        UserError: if the model's context is shorter than 128 tokens.
    """

    def __init__(
        self,
        chat: ChatModel,
        *,
        short: ChatModel | None = None,
        choose: Choose = by_centrality,
        check: Check = "strict",
        closeness: float = -1.0,
        language: str | None = None,
        instruction: str = "",
    ) -> None:
        if chat.context < 4 * _LEAST_ROOM:
            raise UserError(f"a context of {chat.context} tokens is too short for a prompt; use 128 or more")
        self.chat, self.check, self.language, self.instruction = chat, check, language, instruction
        self.settings = GenerationSettings(max_tokens=_LONGEST)
        self.max_source, self.limit_is_assumed = chat.context, chat.context_is_assumed
        self.short, self._choose, self.closeness = short, choose, closeness

    @property
    def models(self) -> list[Any]:
        """The models in memory, which share weights; none for an endpoint."""
        return [chat.parts for chat in (self.chat, self.short) if chat is not None]

    def summarize(
        self, documents: Sequence[str | Passages], **options: Unpack[StreamOptions]
    ) -> list[Summary]:
        """Return the summaries of `documents`, in their order. Options are those of `stream`."""
        return list(self.stream(several(documents), **options))

    def stream(
        self, documents: Iterable[str | Passages], **options: Unpack[StreamOptions]
    ) -> Iterator[Summary]:
        """Yield the summaries in the order of the documents; `batch_size` does not matter.

        Args:
            documents: texts, or texts with headings and times.
            settings: only `max_tokens` applies, for summaries without a requested length.
            form, type, about, length, lengths: see `precis.generation.summarizer.Summarizer.stream`. Caps in words
                and sentences are never exceeded.
            instruction: replaces the prompt's sentence that names the form; if None, the writer's own does.
            long: how to read a document that does not fit the context: the best "passages" in their order (the
                default), in pieces ("chunk"), whose summaries are summarized, or its start ("truncate").
            skip_empty: give a document without words an empty summary, with 0 `document_tokens`.
            on_progress: called with 0, 1, and the tokens written so far.
            on_partial: called once for each document, with its index and its summary.

        Raises:
            UserError: if a document is empty or no text (the error gives its number), an option does not fit, or the
                prompt does not fit the context.
            RunError: if the model cannot answer.
        """
        if unknown := options.keys() - StreamOptions.__annotations__.keys():
            raise TypeError(f"stream does not have the option {min(unknown)!r}")
        get, skip_empty = cast(dict[str, Any], options).get, options.get("skip_empty", False)
        if get("long") == "fie":
            raise UserError("only Z-Code++ models read by fusion-in-encoder; use --long passages or chunk")
        lengths = cast(LengthOptions, {name: options[name] for name in LENGTH_OPTIONS if name in options})  # type: ignore[literal-required]
        wanted = chosen_form(get("form"), get("type"), get("about"))
        documents = map(as_read, checked_documents(documents))
        own = chosen_length(get("length"), lengths)
        given = get("instruction")
        instruction = self.instruction if given is None else given
        prompt = Prompt(form=wanted.name, question=wanted.about, instruction=instruction)
        settings = get("settings") or self.settings
        asked = _Asked(prompt, settings, get("long") or "passages", get("on_progress"))
        on_partial = get("on_partial")
        if wanted.is_plain:
            made = self._plain(documents, asked, own, skip_empty=skip_empty)
        else:
            write = partial(self._plain, asked=asked, skip_empty=True)
            made = written_forms(
                lambda texts, *, length: write(texts, length=length),
                self.chat.count, documents, wanted, own, together=1, skip_empty=skip_empty,
            )  # fmt: skip
        for number, summary in enumerate(made):
            shown = _still_shown(summary)
            if on_partial and shown.text:
                on_partial(number, shown.text)
            yield shown

    def _plain(
        self, documents: Iterable[str | Passages], asked: _Asked, length: Length, *, skip_empty: bool
    ) -> Iterator[Summary]:
        for number, document in enumerate(map(text_of, documents), start=1):
            text = remove_marks(main_part(document))
            if not text.strip():
                if not skip_empty:
                    raise UserError(f"document {number} is empty: there is nothing to summarize")
                yield NOTHING
                continue
            tokens = self.chat.count(text)
            if length.keeps(text, tokens=tokens):
                yield keep_whole(text, tokens)
                continue
            yield self._written(text, tokens, asked, length)

    def _written(self, text: str, tokens: int, asked: _Asked, length: Length) -> Summary:
        """Return the summary of one document."""
        source, turn = self._begun(text, tokens, asked, length)
        read = self._read(source, turn, asked.long)
        reply, written, ended = turn.reply(read.text)
        language = turn.prompt.language
        whole = trim(reply, _UNCUT, ended=ended)  # without a sentence that the model did not end
        sentences = self._checked(source, whole.text, language=language, length=length)
        fitted, finished = _fitted(sentences, length, self.chat.count)
        finished &= whole.finished or all(each.origin == "quoted" for each in fitted)
        separator = "\n" if turn.prompt.form == "key-points" else " "
        made = separator.join(each.text for each in fitted)
        if length.short == "keep" and length_in_words(made) > length_in_words(text):
            return keep_whole(text, tokens)
        return Summary(
            text=made, document_tokens=tokens, tokens_read=min(tokens, read.tokens), summary_tokens=written,
            finished=finished, how=read.how, pieces=read.pieces, sentences=tuple(fitted),
            adapted=turn.chat is self.short,
        )  # fmt: skip

    def _begun(self, text: str, tokens: int, asked: _Asked, length: Length) -> tuple[Readable, _Turn]:
        """Return a document with the units that may be read, and the prompts about it."""
        prompt = replace(asked.prompt, language=self._language(text), length=length)
        window = decoding_window(asked.settings, length, ratio=tokens_per_word(tokens, text), document=tokens)
        chat = self.short if self.short is not None and prompt.is_short else self.chat
        turn = _Turn(chat, prompt, min(window.max_tokens, chat.context // 4), asked.on_progress)
        return Readable(text, for_readers(text, extraction_units(text))), turn

    def prompt_for(self, document: str) -> DocumentPrompt:
        """Return the prompt of a document without options, to train on; raise `UserError` if it does not fit."""
        text = remove_marks(main_part(document))
        asked = _Asked(Prompt(instruction=self.instruction), self.settings, "passages", None)
        source, turn = self._begun(text, self.chat.count(text), asked, ANY_LENGTH)
        read = self._read(source, turn, "passages")
        return DocumentPrompt(
            turn.messages(read.text), turn.prompt.answer, read.how == "whole", bool(read.text.strip())
        )

    def _language(self, text: str) -> str | None:
        """Return the code of the summary's language; raise `UserError` if strict mode needs the document's."""
        found = language_of(text)
        if self.language is None:
            return found
        if self.check == "strict" and found is not None and found != self.language:
            raise UserError(
                f"language {self.language!r}: the document is in {found!r}, and support is not checked across "
                "languages; use --free, or leave the language out"
            )
        return self.language

    def _read(self, source: Readable, turn: _Turn, long: Long) -> _Read:
        """Return what the model reads, which fits its context."""
        whole, fits = source.whole, turn.fits
        if not fits("word " * _LEAST_ROOM):
            raise UserError(
                f"a prompt of {turn.size('')} tokens and a reply of {turn.most} leave no room for a document in a "
                f"context of {self.chat.context}; ask for a shorter summary, or use a longer context (--max-source)"
            )
        count = self.chat.count
        if fits(whole):
            return _Read(whole, "whole", count(whole))
        if long == "truncate":
            text = source.start(fits)
            return _Read(text, "truncate", count(text))
        if long == "chunk":
            text, pieces = self._condensed(source, turn)
            return _Read(text, "chunk", count(whole), pieces)
        words = length_in_words(whole) * turn.room // count(whole)
        text = source.passages(self._choose, fits, words=words)
        return _Read(text, "passages", count(text))

    def _condensed(self, source: Readable, turn: _Turn) -> tuple[str, int]:
        """Return the summaries of pieces as one text that fits, and the number of pieces of the document."""
        whole = replace(turn.prompt, form="paragraph", length=ANY_LENGTH)
        part = replace(turn, chat=self.chat, prompt=whole)
        texts = first = source.pieces(part.fits)
        while True:
            joined = "\n".join(filter(None, (part.reply(text)[0] for text in texts)))
            if turn.fits(joined):
                return joined, len(first)
            shorter = Readable(joined, extraction_units(joined)).pieces(part.fits)
            if len(shorter) >= len(texts):
                return Readable(joined, extraction_units(joined)).start(turn.fits), len(first)
            texts = shorter

    def _checked(
        self, source: Readable, reply: str, *, language: str | None, length: Length
    ) -> list[SummarySentence]:
        """Return the sentences that stay and the quotations; only the chosen units if nothing written stays."""
        document = SourceText(source.text)
        if self.check == "free":
            return as_written(document, reply)
        found = write_or_quote(
            document, reply, language=language, closeness=self.closeness, readable=source.units
        )
        if not all(each.reason for each in found):
            return found
        cap = length.cap
        words = cap.count if isinstance(cap, Words) else _USUAL_WORDS
        return quotations(source.best(self._choose, words), reason="nothing that the model wrote stays")


_UNCUT = Sentences(count=1000)


@dataclass(frozen=True)
class DocumentPrompt:
    """The prompt of a document.

    Attributes:
        messages: its messages.
        answer: the words before the answer of a model without a chat template.
        is_whole: True if it holds the whole document.
        has_words: True if it holds some of the document.
    """

    messages: Sequence[Message]
    answer: str
    is_whole: bool
    has_words: bool


@dataclass(frozen=True)
class _Asked:
    """The options of one call of `stream`."""

    prompt: Prompt
    settings: GenerationSettings
    long: Long
    on_progress: OnProgress | None


@dataclass(frozen=True)
class _Read:
    """The text that the model reads, how it was taken, and its tokens."""

    text: str
    how: How
    tokens: int
    pieces: int = 1


@dataclass(frozen=True)
class _Turn:
    """Prompts of one document, and the most tokens of each reply."""

    chat: ChatModel
    prompt: Prompt
    most: int
    on_progress: OnProgress | None

    def messages(self, text: str) -> list[Message]:
        """Return the prompt with a text."""
        return self.prompt.messages(text, control=self.chat.control)

    def size(self, text: str) -> int:
        """Return the tokens of the prompt with a text."""
        return self.chat.size(self.messages(text), self.prompt.answer)

    @property
    def room(self) -> int:
        """The tokens of the document that fit."""
        return self.chat.context - self.most - self.size("")

    def fits(self, text: str) -> bool:
        """Return whether the prompt with a text and the reply fit the context."""
        return self.size(text) + self.most <= self.chat.context

    def reply(self, text: str) -> tuple[str, int, bool]:
        """Return the reply as plain text, its tokens, and whether the model ended it."""
        on_progress = self.on_progress
        reply = self.chat.reply(
            self.messages(text),
            self.prompt.answer,
            most=self.most,
            on_tokens=None if on_progress is None else lambda tokens: on_progress(0, 1, tokens),
        )
        return plain_reply(reply.text), reply.tokens, reply.ended


def _joined(sentences: Sequence[SummarySentence]) -> str:
    return " ".join(each.text for each in sentences)


def _fitted(
    sentences: list[SummarySentence], length: Length, count: Count
) -> tuple[list[SummarySentence], bool]:
    """Return the first sentences that the cap holds, and whether the last is whole."""
    cap = length.cap
    if cap is None or not sentences:
        return sentences, True
    held = [*sentences]
    while len(held) > 1 and not cap.holds(_joined(held), tokens=count(_joined(held))):
        held.pop()
    text = held[0].text
    if cap.holds(_joined(held), tokens=count(_joined(held))):
        return held, True
    if isinstance(cap, Sentences):
        return [replace(held[0], text=split_sentences(text)[0])], True
    if isinstance(cap, Words):
        return [replace(held[0], text=first_words(text, cap.count))], False
    most = cap.count
    start = longest_start(text, lambda part: count(part) <= most).rstrip()
    return [replace(held[0], text=start)], False


def _still_shown(summary: Summary) -> Summary:
    """Return a summary with those of its sentences that a form left in the text."""
    text = " ".join(summary.text.split())
    return replace(summary, sentences=tuple(each for each in summary.sentences if each.text in text))
