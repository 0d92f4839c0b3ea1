"""The default model, and `summarize`, the shortest way to a summary."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Unpack

from precis.extract.extractor import Extractor
from precis.generation.model_loader import model_use
from precis.generation.model_metadata import Mode
from precis.generation.summarizer import Summarizer
from precis_text.errors import UserError
from precis_text.length import LengthOptions, make_length

PACKAGE = "precis_model_small"
_FOLDER = "weights"


def has_default_model() -> bool:
    """Return whether the default model is installed."""
    return _found() is not None


def default_model() -> Path:
    """Return the folder of the default model.

    Raises:
        UserError: if its package is not installed.
    """
    if (found := _found()) is None:
        raise UserError(
            "no --model is given and the default model is not installed; give one, or run `pip install ./model` in "
            "the folder of precis"
        )
    return found


def _found() -> Path | None:
    spec = find_spec(PACKAGE)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / _FOLDER


def summarize(
    text: str,
    *,
    model: str | Path | None = None,
    mode: Mode | None = None,
    **lengths: Unpack[LengthOptions],
) -> str:
    """Return a summary of a text.

    Args:
        model: a run folder, a Hugging Face folder or a hub name; if None, the default model.
        mode: "abstract" writes, "extract" chooses sentences of the text; if None, the mode the model was trained for.
        lengths: `words`, `sentences` or `tokens`, `min_words` and `short`; without a cap the length suits the text.
            See `precis_text.length.LengthOptions`.

    Raises:
        UserError: if the text is empty, a length is invalid, or the model cannot be loaded or lacks the mode.

    Examples:
        >>> text = "Ann sings in the hall. Bob listens to her song for a long time. It rains."
        >>> summary = summarize(text, words=12)
        >>> len(summary.split()) <= 12
        True
    """
    length = make_length(**lengths)
    maker = _maker(str(default_model() if model is None else model), mode)
    (summary,) = maker.summarize([text], length=length)
    return summary.text


@lru_cache(maxsize=1)
def _maker(model: str, mode: Mode | None) -> Summarizer | Extractor:
    """Load a summarizer; the cache keeps the last one, since loading takes seconds."""
    kind = Extractor if model_use(model).mode_for(mode) == "extract" else Summarizer
    return kind.from_pretrained(model)
