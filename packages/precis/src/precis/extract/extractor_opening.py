"""Opens the extractor of a model: with a ranker if it has one, else with its encoder and a scorer.

`passage_choice` chooses with it the passages that a writer reads of a long document.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from precis.extract.extractor import Extractor
from precis.extract.ranked_extractor import RankedExtractor
from precis.generation.model_location import ModelLocation, has_default_model, locate
from precis.generation.model_metadata import DEFAULT
from precis.generation.writers.writer_input import Choose, by_centrality
from precis_text.language import language_of
from precis_text.unit_ranker import has_ranker

if TYPE_CHECKING:
    import torch

    from precis.generation.model_loader import LoadedModel


def open_extractor(
    model: str | Path | ModelLocation, *, device: str | torch.device | None = None
) -> Extractor:
    """Load a model trained for extraction, such as `default`; see `precis.generation.model_loader.load_model`.

    Raises:
        UserError: if it cannot be loaded, or was not trained for extraction.
    """
    location = locate(model)
    if is_ranked(location):
        return RankedExtractor.at(location)
    from precis.extract.encoder_extractor import EncoderExtractor
    from precis.generation.model_loader import load_model

    return EncoderExtractor.of(load_model(location, device=device))


def extractor_of(loaded: LoadedModel) -> Extractor:
    """Use a loaded model trained for extraction; raise `UserError` if it was not trained for extraction."""
    from precis.extract.encoder_extractor import EncoderExtractor

    if loaded.folder is not None and has_ranker(loaded.folder):
        return open_extractor(loaded.folder)
    return EncoderExtractor.of(loaded)


def is_ranked(location: ModelLocation) -> bool:
    """Return whether a ranker chooses a model's sentences, so that its weights are not needed for it."""
    return location.folder is not None and location.adapter is None and has_ranker(location.folder)


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
