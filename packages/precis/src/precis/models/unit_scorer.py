"""A scorer of a document's units: from an encoder's hidden states, how well each suits an extract.

    states of a unit's tokens -> their mean and the last of them    } sum -> Transformer over units -> one logit a unit
    features of the unit's words (`UNIT_FEATURES` numbers)          }                              -> log of the words

The encoder is frozen. All units of a document are read together, so a better unit can lower another's score.
Sines encode the positions of units; the features contain them too.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Bool, Float
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from precis_text.bounded_io import read_json
from precis_text.config import Settings
from precis_text.errors import UserError, first_line

UNIT_FEATURES = 18
"""Number of features that `precis_text.unit_features` computes for a unit."""

SHAPE_FILE = "scorer.json"
WEIGHTS_FILE = "scorer.safetensors"
_MOST_BYTES = 1 << 30  # of the weights


@dataclass(frozen=True, kw_only=True)
class UnitScorerShape(Settings):
    """The dimensions of a scorer.

    Attributes:
        states: width of the encoder's hidden states.
        width: width of the scorer, divisible by `heads`.
        layers: Transformer layers over units.
        heads: attention heads.
        dropout: dropout probability in training.
    """

    states: int
    width: int = 256
    layers: int = 2
    heads: int = 4
    dropout: float = 0.2

    def __post_init__(self) -> None:
        sizes = (self.states, self.width, self.layers, self.heads)
        if not all(type(size) is int and 0 < size <= 16_384 for size in sizes) or self.width % (
            2 * self.heads
        ):
            raise UserError(
                f"a scorer of states={self.states}, width={self.width}, layers={self.layers}, heads={self.heads} "
                "cannot be built: use whole numbers above 0, and a width divisible by twice the heads"
            )
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout={self.dropout} must be 0 or more and below 1")


class UnitScorer(nn.Module):
    """The scorer of the module's docstring."""

    def __init__(self, shape: UnitScorerShape) -> None:
        super().__init__()
        self.shape, width = shape, shape.width
        self.norm = nn.LayerNorm(2 * shape.states)
        self.dropout = nn.Dropout(shape.dropout)
        self.states = nn.Linear(2 * shape.states, width)
        self.facts = nn.Sequential(nn.Linear(UNIT_FEATURES, width), nn.GELU(), nn.Linear(width, width))
        layer = nn.TransformerEncoderLayer(
            width, shape.heads, 2 * width, shape.dropout, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, shape.layers, enable_nested_tensor=False)
        self.score = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1))
        self.words = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1))

    def forward(
        self, vectors: Float[Tensor, "b u dd"], features: Float[Tensor, "b u f"], valid: Bool[Tensor, "b u"]
    ) -> tuple[Float[Tensor, "b u"], Float[Tensor, " b"]]:
        """Return a logit for each unit, and the log of the predicted word count of a summary.

        Args:
            vectors: the mean of each unit's token states and the state of its last token.
            features: see `precis_text.unit_features`.
            valid: False at padding.
        """
        hidden = self.states(self.dropout(self.norm(vectors))) + self.facts(features)
        hidden = hidden + sines(hidden.shape[1], self.shape.width).to(hidden)
        hidden = self.layers(hidden, src_key_padding_mask=~valid)
        mean = (hidden * valid[..., None]).sum(1) / valid.sum(1, keepdim=True).clamp(min=1)
        return self.score(hidden)[..., 0], self.words(mean)[:, 0]


def sines(places: int, width: int) -> Float[Tensor, "p w"]:
    """Return sinusoidal positions (Vaswani et al. 2017, section 3.5)."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000) / width))
    angles = torch.arange(places)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


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
