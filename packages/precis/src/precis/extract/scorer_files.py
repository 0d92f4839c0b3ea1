"""Saves and loads the unit scorer of a model, next to its weights: `scorer.json` and `scorer.safetensors`."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from precis.models.unit_scorer import UnitScorer, UnitScorerShape
from precis_text.bounded_io import read_json
from precis_text.errors import UserError, first_line

SHAPE_FILE = "scorer.json"
WEIGHTS_FILE = "scorer.safetensors"
_MOST_BYTES = 1 << 30


def has_scorer(folder: Path) -> bool:
    """Return whether the model in a folder has a unit scorer."""
    return (folder / SHAPE_FILE).is_file()


def save_scorer(scorer: UnitScorer, folder: Path) -> None:
    """Write a scorer into a model's folder, its weights in half precision."""
    (folder / SHAPE_FILE).write_text(json.dumps(scorer.shape.to_dict(), indent=2) + "\n", encoding="utf-8")
    weights = {name: weight.detach().half().contiguous() for name, weight in scorer.state_dict().items()}
    save_file(weights, folder / WEIGHTS_FILE, metadata={"format": "pt"})


def load_scorer(folder: Path, *, states: int) -> UnitScorer:
    """Read the scorer in a model's folder.

    Args:
        states: width of the hidden states of the model's encoder.

    Raises:
        UserError: if it is missing, belongs to another encoder, or is damaged.
    """
    if not has_scorer(folder):
        raise UserError(
            f"{folder}: this model was not trained to choose sentences; omit --mode, or train it with precis extractor"
        )
    try:
        shape = UnitScorerShape.from_dict(read_json(folder / SHAPE_FILE))
        if shape.states != states:
            raise UserError(f"it expects states of width {shape.states}, but the model's are {states}")
        if (folder / WEIGHTS_FILE).stat().st_size > _MOST_BYTES:
            raise UserError("its weights are larger than 1 GiB")
        scorer = UnitScorer(shape)
        scorer.load_state_dict(
            {name: weight.float() for name, weight in load_file(folder / WEIGHTS_FILE).items()}
        )
    except Exception as error:  # safetensors and torch raise several types
        raise UserError(f"{folder / SHAPE_FILE}: invalid scorer: {first_line(error)}") from error
    if not all(torch.isfinite(weight).all() for weight in scorer.state_dict().values()):
        raise UserError(f"{folder / WEIGHTS_FILE}: contains NaN or infinity; copy it again")
    return scorer.eval()
