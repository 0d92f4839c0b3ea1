"""Studies that start from a given model, and compare it with the same model trained from scratch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import torch

from precis.generation.model_loader import load_model
from precis.generation.model_location import locate
from precis.phases.run_folder import export_folder, save_model
from precis_experiments.scales import InitialModelScale

GIVEN, NOTHING = "given", "nothing"
#: The starting points of a training run.
STARTS = (GIVEN, NOTHING)
S = TypeVar("S", bound=InitialModelScale)


def begin_with(scale: S, model: str) -> S:
    """Return the scale with the model to start from, and the digest of its weights.

    Raises:
        UserError: the model does not exist.
    """
    made = locate(model).fingerprint
    return replace(scale, start=made["model"], weights=made["weights"])


def starting_model(scale: InitialModelScale, start: str, folder: Path, *, seed: int) -> Path:
    """Return the model to start from: the given one, or an untrained one that is written to `folder`."""
    return Path(scale.start) if start == GIVEN else untrained(scale.start, folder, seed=seed)


def untrained(start: str, folder: Path, *, seed: int) -> Path:
    """Write a model with the configuration and tokenizer of `start` and new weights to `folder`."""
    loaded = load_model(start, device="cpu")
    torch.manual_seed(seed)
    model = type(loaded.model)(loaded.model.config)
    export_folder(folder, lambda place: save_model(model, loaded.tokenizer, place))
    return folder
