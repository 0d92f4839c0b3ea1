"""Makes a form from its name and a question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypedDict, get_args

from precis_text.config import nearest
from precis_text.errors import UserError
from precis_text.forms.form import Count, Form, FormLine, FormType, ScoredText, fitted
from precis_text.forms.meeting_cues import cues_of
from precis_text.forms.minutes import Minutes
from precis_text.forms.outline import Outline
from precis_text.forms.question import asked_of
from precis_text.forms.short_forms import Headline, KeyPoints, Paragraph, Teaser, Tldr
from precis_text.forms.table_rows import named_rows
from precis_text.length import Length
from precis_text.units import without_item_mark

_FORMS: tuple[type[Form], ...] = (Paragraph, Tldr, KeyPoints, Headline, Teaser, Outline, Minutes)
_BY_NAME: dict[str, Callable[..., Form]] = {form.name: form for form in _FORMS}
FORM_TYPES: tuple[FormType, ...] = get_args(FormType)
_LONGEST_QUESTION = 2000  # characters


class FormOptions(TypedDict, total=False):
    """A form as keyword arguments; `make_form` turns them into a `Form`.

    Attributes:
        type: "paragraph", "tldr", "key-points", "headline", "teaser", "outline" or "minutes"; if None, a paragraph.
        about: a question or topic, to which the summary is restricted; if None, the whole document.
    """

    type: FormType | None
    about: str | None


def make_form(*, type: str | None = None, about: str | None = None) -> Form:  # noqa: A002  the name of the option
    """Return the requested form as a value.

    Raises:
        UserError: if the type is unknown, or the question is not a text, empty or longer than 2,000 characters.
    """
    name = "paragraph" if type is None else type
    if name not in _BY_NAME:
        raise UserError(f"type={name!r} is not a form of a summary{nearest(name, _BY_NAME)}")
    if not isinstance(about, str | None):
        raise UserError(f"about={about!r} is not a text; write a question or a topic")
    question = "" if about is None else " ".join(about.split())
    if about is not None and not any(map(str.isalnum, question)):
        raise UserError(f"about={about!r} does not ask anything; write a question or a topic")
    if len(question) > _LONGEST_QUESTION:
        raise UserError(
            f"about has {len(question):,} characters, more than {_LONGEST_QUESTION:,}; shorten the question"
        )
    return _BY_NAME[name](about=question)


def chosen_form(form: Form | None, type: str | None, about: str | None) -> Form:  # noqa: A002
    """Return a form that is given as a value, or as a name and a question.

    Raises:
        UserError: if both are given, or an option is invalid.
    """
    if form is None:
        return make_form(type=type, about=about)
    if type is not None or about is not None:
        raise UserError("form excludes type and about; give one of them")
    return form


PARAGRAPH = Paragraph()


@dataclass(frozen=True)
class Formed:
    """A summary in a form.

    Attributes:
        lines: what is shown, in order; each has its place in the document.
        finished: False if the only line was cut to the requested length.
        answered: False if no line answers the question; the text then says so.
    """

    text: str
    lines: tuple[FormLine, ...]
    finished: bool = True
    answered: bool = True


def formed(form: Form, source: ScoredText, length: Length, count: Count) -> Formed:
    """Return the summary of a document in a form.

    Args:
        count: returns the tokens of a text, for a cap in tokens.
    """
    asked = asked_of(source, form.about) if form.about else source
    own = form.length(length)
    lines = [] if asked is None else form.lines(asked, own)
    if asked is None or (form.about and not lines):
        refusal = nothing_about(form.about, source, is_answered=asked is not None)
        return Formed(refusal, (), answered=False)
    if form.about:
        bare, asked = asked, named_rows(asked)
        rows = zip(bare.units, asked.units, strict=True)
        named = {one.start: (one.text, two.text) for one, two in rows if one.text != two.text}
        lines = [replace(one, shown=one.shown.replace(*named.get(one.start, ("", "")))) for one in lines]
    kept, text = fitted(form, lines, asked, own, count)
    return Formed(text.text, tuple(kept), text.finished)


def nothing_about(question: str, source: ScoredText, *, is_answered: bool = False) -> str:
    """Return a line in place of an answer, in the document's language, with the closest sentence. No length cuts it.

    Args:
        is_answered: whether sentences answer, and only the form lacks a line about it.
    """
    labels, near = cues_of(source.document).labels, asked_of(source, question, least=0.0)
    told = [unit for unit in named_rows(near).units if unit.answers and not unit.aside] if near else []
    closest = [labels["closest"].format(closest=without_item_mark(unit.text)) for unit in told[:1]]
    return " ".join([labels["unlisted" if is_answered else "nothing"].format(question=question), *closest])
