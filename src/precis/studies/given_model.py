"""Studies that begin with a given model, beside the same model from nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import torch

from precis.generation.adapters import find_parts
from precis.generation.loading import load_model
from precis.generation.made_with import made_with
from precis.phases.run_folder import save_model, write_folder
from precis.studies.scales import GivenModelScale

GIVEN, NOTHING = "given", "nothing"
#: What a training begins with.
STARTS = (GIVEN, NOTHING)
S = TypeVar("S", bound=GivenModelScale)


def begin_with(scale: S, model: str) -> S:
    """The scale with the model to begin with, and the digest of its weights.

    Raises:
        UserError: there is no such model.
    """
    made = made_with(find_parts(model))
    return replace(scale, start=made["model"], weights=made["weights"])


def beginning(scale: GivenModelScale, start: str, folder: Path, *, seed: int) -> Path:
    """The model that a training begins with: the given one, or one from nothing that is written to `folder`."""
    return Path(scale.start) if start == GIVEN else untrained(scale.start, folder, seed=seed)


def untrained(start: str, folder: Path, *, seed: int) -> Path:
    """Write a model with the configuration and tokenizer of `start` and new weights to `folder`."""
    loaded = load_model(start, device="cpu")
    torch.manual_seed(seed)
    model = type(loaded.model)(loaded.model.config)
    write_folder(folder, lambda place: save_model(model, loaded.tokenizer, place))
    return folder
