"""Opens the extractor of a model: with a ranker if it has one, else with its encoder and a scorer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from precis.extract.extractor import Extractor
from precis.extract.ranked_extractor import RankedExtractor
from precis.generation.model_location import ModelLocation, locate
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
