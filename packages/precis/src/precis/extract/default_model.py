"""`summarize`, the shortest way to a summary."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Unpack

from precis.extract.extractor import Extractor
from precis.generation.model_location import locate
from precis.generation.model_metadata import DEFAULT, Mode
from precis.generation.summarizer import Summarizer
from precis_text.documents.passages import Passages
from precis_text.forms.form import FormType
from precis_text.forms.form_choice import make_form
from precis_text.length import LengthOptions, make_length


def summarize(
    text: str | Passages,
    *,
    model: str | Path | None = None,
    mode: Mode | None = None,
    type: FormType | None = None,  # noqa: A002  the name of the option
    about: str | None = None,
    **lengths: Unpack[LengthOptions],
) -> str:
    """Return a summary of a text.

    Args:
        model: `default`, the model that comes with precis; a run folder, a Hugging Face folder or a hub name.
        mode: "abstract" writes, "extract" chooses sentences of the text; if None, the mode the model was trained for.
        type: "paragraph", "tldr", "key-points", "headline", "teaser", "outline" or "minutes"; if None, a paragraph.
        about: a question or topic; the summary is what the text says about it.
        lengths: `words`, `sentences` or `tokens`, `min_words` and `short`; without a cap the length suits the text.
            See `precis_text.length.LengthOptions`.

    Raises:
        UserError: if the text is empty, a length or form is invalid, or the model cannot be loaded or lacks the mode.

    Examples:
        >>> text = "Ann sings in the hall. Bob listens to her song for a long time. It rains."
        >>> summary = summarize(text, words=12)
        >>> len(summary.split()) <= 12
        True
    """
    length, form = make_length(**lengths), make_form(type=type, about=about)
    maker = _maker(DEFAULT if model is None else str(model), mode)
    (summary,) = maker.summarize([text], length=length, form=form)
    return summary.text


@lru_cache(maxsize=1)
def _maker(model: str, mode: Mode | None) -> Summarizer | Extractor:
    """Load a summarizer; the cache keeps the last one, since loading takes seconds."""
    location = locate(model)
    kind = Extractor if location.use.mode_for(mode) == "extract" else Summarizer
    return kind.from_pretrained(location)
