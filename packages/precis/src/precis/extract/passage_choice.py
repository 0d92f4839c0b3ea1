"""The passages that a writer reads of a long document: those that the model that comes with precis chooses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from precis.extract.extractor import Extractor
from precis.extract.extractor_opening import open_extractor
from precis.generation.model_location import has_default_model
from precis.generation.model_metadata import DEFAULT
from precis.generation.writers.reading import Choose, by_centrality
from precis_text.language import language_of


def passage_choice() -> Choose:
    """Return the choice by the default model for English documents, and by centrality for others."""
    return _chosen if has_default_model() else by_centrality


def _chosen(document: str, words: int) -> Sequence[int]:
    if language_of(document) not in ("en", None):
        return by_centrality(document, words)
    (extract,) = _extractor().summarize([document], words=words, short="write", skip_empty=True)
    return [start for start, _ in extract.places]


@cache
def _extractor() -> Extractor:
    return open_extractor(DEFAULT)
