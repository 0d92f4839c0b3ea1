"""Summaries in a form by a model that writes.

paragraph, tldr, key points, headline   the model writes; the form sets the length and the shape
a question                              the model reads only the passages that say something about it
teaser                                  the model reads only the opening
outline, minutes                        sentences of the document by their centrality; the model is not used
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from precis.generation.summary import NOTHING, Summary
from precis_text.centrality import in_windows, lex_rank
from precis_text.control_characters import main_part, remove_marks
from precis_text.documents.passages import Passages, text_of
from precis_text.errors import UserError
from precis_text.forms.form import Count, Form, FormLine, ScoredText, fitted
from precis_text.forms.form_choice import formed, nothing_about
from precis_text.forms.minutes import Minutes
from precis_text.forms.outline import Outline
from precis_text.forms.question import asked_of
from precis_text.forms.short_forms import Headline, KeyPoints, Teaser, opening
from precis_text.forms.table_rows import named_rows
from precis_text.length import Length, Sentences
from precis_text.selection import join_units
from precis_text.sentences import split_sentences
from precis_text.units import extraction_units
from precis_text.words import unicode_words

Write = Callable[..., Iterator[Summary]]
"""Writes the summaries of texts: `Summarizer.stream` with its other options."""

_WORDS = 120.0  # of an extract by centrality without a requested length


def written_forms(
    write: Write,
    count: Count,
    documents: Iterable[str | Passages],
    form: Form,
    length: Length,
    *,
    together: int,
    skip_empty: bool,
) -> Iterator[Summary]:
    """Yield the summaries in the order of the documents.

    Args:
        count: returns the tokens of a text.
        together: documents that are read and written together.
        skip_empty: give a document without words an empty summary, with 0 `document_tokens`, instead of an error.

    Raises:
        UserError: if a document lacks words (the error gives its number).
    """
    own = form.length(length)
    if isinstance(form, Headline) and own.cap is None:
        own = replace(own, cap=Sentences(count=1))
    numbered = enumerate(documents, start=1)
    while window := list(islice(numbered, together)):
        sources = [_source(number, document, count, skip_empty=skip_empty) for number, document in window]
        ready = [_ready(source, form, length, count) for source in sources]
        texts = [each for each in ready if isinstance(each, str)]
        written = iter([*write(texts, length=own)] if texts else [])
        for each, source in zip(ready, sources, strict=True):
            if isinstance(each, Summary):
                yield each
            else:
                assert source is not None
                yield _shaped(next(written), source, form, own, count)


def _source(number: int, document: str | Passages, count: Count, *, skip_empty: bool) -> ScoredText | None:
    """Return a document with scores by centrality; None if it is empty."""
    text = text_of(document)
    if not isinstance(text, str):
        raise UserError(f"document {number} is of type {type(text).__name__}; give a str")
    own = remove_marks(main_part(text))
    units = extraction_units(own)
    if not units or not count(own):
        if skip_empty:
            return None
        problem = "is empty" if not own.strip() else "contains no tokens that the model knows"
        raise UserError(f"document {number} {problem}: there is nothing to summarize")
    passages = replace(document, text=own) if isinstance(document, Passages) else Passages(own)
    scores = in_windows(lex_rank, [unicode_words(unit.text) for unit in units])
    most = float(scores.max()) or 1.0
    tokens = [count(unit.text) for unit in units]
    return ScoredText(passages, units, tokens, [float(score) / most for score in scores], _WORDS)


def _ready(source: ScoredText | None, form: Form, length: Length, count: Count) -> Summary | str:
    """Return the text that the model summarizes, or the summary if there is nothing to write."""
    if source is None:
        return NOTHING
    if isinstance(form, Outline | Minutes):
        made = formed(form, source, length, count)
        return replace(
            _summary(source, made.text, form, count),
            lines=made.lines,
            finished=made.finished,
            places=tuple((line.start, line.stop) for line in made.lines),
            answered=made.answered,
        )
    asked = asked_of(source, form.about) if form.about else source
    if asked is None:
        refusal = nothing_about(form.about, source)
        return replace(_summary(source, refusal, form, count), answered=False)
    if isinstance(form, Teaser):
        asked = replace(asked, units=opening(asked))
    elif not form.about:
        return source.document
    told = [unit for unit in named_rows(asked).units if not (unit.aside or unit.heading)]
    return join_units(source.document, told)


def _summary(source: ScoredText, text: str, form: Form, count: Count) -> Summary:
    """Return a summary that rules made."""
    tokens = count(source.document)
    return Summary(
        text=text, document_tokens=tokens, tokens_read=tokens, summary_tokens=count(text), mode="extract",
        form=form.name,
    )  # fmt: skip


def _shaped(summary: Summary, source: ScoredText, form: Form, length: Length, count: Count) -> Summary:
    """Return a written summary in the shape of a form."""
    tokens = count(source.document)
    unread = summary.document_tokens - summary.tokens_read
    found = replace(summary, form=form.name, document_tokens=tokens, tokens_read=tokens - unread, kept=False)
    if not isinstance(form, KeyPoints) or not summary.text:
        return found
    lines = _as_lines(split_sentences(summary.text))
    kept, text = fitted(form, lines, source, length, count)
    return replace(found, text=text.text, finished=found.finished and (text.finished and len(kept) > 0))


def _as_lines(sentences: Sequence[str]) -> list[FormLine]:
    """Return written sentences as lines; the last ones go first if a length does not hold all."""
    return [FormLine(text, 0, 0, worth=float(-place)) for place, text in enumerate(sentences)]
