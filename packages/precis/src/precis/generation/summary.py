"""A summary, with details of how it was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from precis.generation.model_metadata import Mode
from precis_text.errors import UserError
from precis_text.forms.form import FormLine, FormType
from precis_text.support.write_or_quote import SummarySentence

Long = Literal["fie", "chunk", "truncate", "passages"]
"""How a model is asked to read a long document; see `precis.generation.input_plan`."""

How = Literal["whole", "fie", "chunk", "truncate", "passages"]
"""How a model read a document."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One summary, with details of how the model made it.

    Attributes:
        text: without control tokens; empty if the model wrote only its end mark.
        document_tokens: tokens of the document, without instruction and control tokens.
        tokens_read: the number of these that the model read; all of a document that is its own summary.
        summary_tokens: tokens that the model wrote, before excess sentences were dropped.
        finished: False if the text stops mid-sentence: at the token limit, or truncated to the word limit.
        how: read "whole", by "fie" (fusion-in-encoder), in "chunk"s, "truncate"d, or "passages" in their order.
        pieces: number of inputs that the document was read in; 1 unless `how` is "chunk".
        kept: True if the text is the document itself, since a summary would not be shorter.
        mode: "abstract" if the model wrote it, "extract" if it chose sentences of the document.
        places: (start, stop) offsets of each chosen sentence in the document; stop is exclusive. They count in what is
            read of subtitles, which `precis_text.documents.subtitles.as_read` returns.
        form: the form of the summary; see `precis_text.forms.form_choice.FormOptions`.
        lines: the lines of a form that chooses sentences, each with its place, time or heading.
        sentences: the sentences of a `Writer`'s summary, each written or quoted; else empty.
        answered: False if no sentence answers the question; the text then says so.
        adapted: True if a `Writer` used the adapter for short summaries that comes with its model.
    """

    text: str
    document_tokens: int
    tokens_read: int
    summary_tokens: int
    finished: bool = True
    how: How = "whole"
    pieces: int = 1
    kept: bool = False
    mode: Mode = "abstract"
    places: tuple[tuple[int, int], ...] = ()
    form: FormType = "paragraph"
    lines: tuple[FormLine, ...] = ()
    answered: bool = True
    sentences: tuple[SummarySentence, ...] = ()
    adapted: bool = False

    @property
    def truncated(self) -> bool:
        """True if the model did not read the whole document."""
        return self.tokens_read < self.document_tokens


NOTHING = Summary(text="", document_tokens=0, tokens_read=0, summary_tokens=0)


def several(documents: Sequence[T]) -> Sequence[T]:
    """Return the documents of a `summarize` method; raise `UserError` if they are one string."""
    if isinstance(documents, str):
        raise UserError("summarize takes a list of documents; for a single one write [document]")
    return documents


def keep_whole(text: str, tokens: int) -> Summary:
    """Return a document as its own summary."""
    return Summary(
        text=text.strip(), document_tokens=tokens, tokens_read=tokens, summary_tokens=tokens, kept=True
    )
