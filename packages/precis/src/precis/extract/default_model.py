"""`summarize`, the shortest way to a summary."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from precis.extract.extractor import Extractor
from precis.generation.model_location import locate
from precis.generation.model_metadata import DEFAULT, Mode
from precis.generation.summarizer import Summarizer


def summarize(
    text: str,
    *,
    words: int | None = None,
    sentences: int | None = None,
    model: str | Path | None = None,
    mode: Mode | None = None,
) -> str:
    """Return a summary of a text.

    Args:
        words: at most this many words.
        sentences: at most this many sentences; give one of the two, or neither for a length that suits the text.
        model: `default`, the model that comes with precis; a run folder, a Hugging Face folder or a hub name.
        mode: "abstract" writes, "extract" chooses sentences of the text; if None, the mode the model was trained for.

    Raises:
        UserError: if the text is empty, the model cannot be loaded, or it was not trained for the mode.

    Examples:
        >>> text = "Ann sings in the hall. Bob listens to her song for a long time. It rains."
        >>> summary = summarize(text, words=12)
        >>> len(summary.split()) <= 12
        True
    """
    maker = _maker(DEFAULT if model is None else str(model), mode)
    (summary,) = maker.summarize([text], words=words, sentences=sentences)
    return summary.text


@lru_cache(maxsize=1)
def _maker(model: str, mode: Mode | None) -> Summarizer | Extractor:
    """Load a summarizer; the cache keeps the last one, since loading takes seconds."""
    location = locate(model)
    kind = Extractor if location.use.mode_for(mode) == "extract" else Summarizer
    return kind.from_pretrained(location)
