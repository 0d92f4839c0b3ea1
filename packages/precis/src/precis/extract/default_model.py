"""`summarize`, the shortest way to a summary."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, get_args

from precis.extract.extractor import Extractor
from precis.extract.extractor_opening import open_extractor, passage_choice
from precis.generation.model_location import locate
from precis.generation.model_metadata import DEFAULT, Mode
from precis_text.config import nearest
from precis_text.documents.passages import Passages
from precis_text.documents.reader import read_document
from precis_text.errors import UserError
from precis_text.forms.form import FormType
from precis_text.forms.form_choice import make_form
from precis_text.length import LengthOptions, make_length

if TYPE_CHECKING:
    from precis.generation.summarizer import Summarizer
    from precis.generation.writers.writer import Writer


def summarize(
    text: str | Path | Passages,
    *,
    model: str | Path | None = None,
    mode: Mode | None = None,
    type: FormType | None = None,  # noqa: A002  the name of the option
    about: str | None = None,
    **lengths: Unpack[LengthOptions],
) -> str:
    """Return a summary of a text, or of the document in a file.

    Args:
        text: the text, or that of a .vtt or .srt file; or the path of a file, which `precis.read_document` reads.
        model: `default`, the model that comes with precis; a run folder, a Hugging Face folder or a hub name.
        mode: "abstract" writes, "extract" chooses sentences of the text; if None, the mode the model was trained for.
        type: "paragraph", "tldr", "key-points", "headline", "teaser", "outline" or "minutes"; if None, a paragraph.
        about: a question or topic; the summary is what the text says about it.
        lengths: `words`, `sentences` or `tokens`, `min_words` and `short`; without a cap the length suits the text.
            See `precis_text.length.LengthOptions`.

    Raises:
        UserError: if the text is empty or names an existing file, the file cannot be read, a length or form is
            invalid, or the model cannot be loaded or lacks the mode.

    Examples:
        >>> text = "Ann sings in the hall. Bob listens to her song for a long time. It rains."
        >>> summary = summarize(text, words=12)
        >>> len(summary.split()) <= 12
        True
    """
    length, form = make_length(**lengths), make_form(type=type, about=about)
    known = get_args(Mode)
    if mode is not None and mode not in known:
        raise UserError(f"mode={mode!r} is unknown{nearest(mode, known)}")
    if isinstance(text, Path):
        text = read_document(text)
    elif isinstance(text, str):
        _refuse_name(text)
    summarizer = _summarizer_of(DEFAULT if model is None else str(model), mode)
    (summary,) = summarizer.summarize([text], length=length, form=form)
    return summary.text


def _refuse_name(text: str) -> None:
    """Raise `UserError` if a text is the name of an existing file."""
    if os.path.isfile(text):  # noqa: PTH113  False for a text that can be no name; Path.is_file raises
        raise UserError(
            f"{text!r} is the name of a file, not a text; to summarize the file, write summarize(Path({text!r}))"
        )


@lru_cache(maxsize=1)
def _summarizer_of(model: str, mode: Mode | None) -> Summarizer | Extractor | Writer:
    """Load a summarizer; the cache keeps the last one, since loading takes seconds."""
    location = locate(model)
    if location.use.mode_for(mode) == "extract":
        return open_extractor(location)
    if location.is_writer:
        from precis.generation.writers.writer_opening import open_writer

        return open_writer(location, choose=passage_choice())
    from precis.generation.summarizer import Summarizer

    return Summarizer.from_pretrained(location)
