"""Every recipe by its name: which one suits, the model of its shape, and how large that is.

`recipes.toml` has the values. A variant is another value, `replace(recipe("zcodepp-mini"), max_source=256)`, or on the
command line `--recipe zcodepp-mini --set max_source=256 --set train.learning_rate=3e-4`.
`python -m precis.recipes.catalogue` prints the sizes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import torch
from transformers import PreTrainedModel

from precis.config import nearest
from precis.errors import UserError
from precis.generation.loading import model_config
from precis.models import FAMILIES
from precis.models.family import FamilyConfig
from precis.models.prophetnet.config import ProphetNetConfig
from precis.models.zcodepp.config import ZCodePPConfig
from precis.recipes.runs import ProphetNetShape, RunPlan, Shape, ZCodePPShape, native_precision

_RECORDS: dict[str, dict[str, Any]] = tomllib.loads(
    files(__package__).joinpath("recipes.toml").read_text("utf-8")
)
RECIPES = tuple(_RECORDS["pairs"])
PRETRAINING = tuple(_RECORDS["pretraining"])


def record(kind: str, name: str) -> dict[str, Any]:
    """The values of a recipe in `recipes.toml`, under its name, with the precision of the hardware.

    Args:
        kind: `pairs` or `pretraining`.
    """
    found = _resolved(_RECORDS[kind], name)
    return {**found, "name": name, "train": {"precision": native_precision(), **found["train"]}}


def _resolved(records: Mapping[str, Any], name: str) -> dict[str, Any]:
    own = dict(records[name])
    return _merged(_resolved(records, own.pop("like")), own) if "like" in own else own


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` under `changes`, table by table; a table with a type replaces the whole."""
    merged = dict(base)
    for name, value in changes.items():
        part_of_base = isinstance(value, dict) and "type" not in value and name in base
        merged[name] = _merged(base[name], value) if part_of_base else value
    return merged


def recipe(name: str) -> RunPlan:
    """The recipe called `name`.

    Raises:
        UserError: there is none; the nearest names are given.
    """
    if name not in RECIPES:
        raise UserError(f"unknown recipe {name!r}{nearest(name, RECIPES)}")
    return RunPlan.from_dict(record("pairs", name))


FOR_PRETRAINED = "pretrained"
FROM_DEFAULT = "pretrained-few"
"""The recipe that begins with the model that comes with precis, unless another one is named."""
_SIZES = ("micro", "mini", "small", "base", "large")
TRAINED_FROM_NOTHING = (
    "zcodepp-few",
    "zcodepp-demo",
    "zcodepp-micro",
    "zcodepp-mini",
    "prophetnet-micro",
    "prophetnet-mini",
)
"""Recipes with learning rates for models of a few million parameters, which those of large models leave as they are."""

FEW = 5000
"""With fewer pairs the default recipe is the one for few pairs."""

CONFIGS: dict[type[Shape], type[FamilyConfig]] = {
    ZCodePPShape: ZCodePPConfig,
    ProphetNetShape: ProphetNetConfig,
}


def recipe_for_pairs(pairs: int) -> str:
    """The recipe of a new model by its number of pairs; few pairs get a small model and many small steps.

    `python -m benchmarks.few_pairs` measures what either learns from 300, and `FROM_DEFAULT` beside them.
    """
    return "zcodepp-few" if pairs < FEW else "zcodepp-mini"


def recipe_to_ground(start: str) -> str:
    """The recipe of `start`'s size if it is one of our models, else the one for pre-trained models.

    Raises:
        UserError: there is no such model.
    """
    config = model_config(start)
    family = config.model_type.removeprefix("precis-")
    names = [name for size in _SIZES if (name := f"{family}-{size}") in RECIPES]
    fitting = (name for name in names if config.hidden_size <= recipe(name).shape.hidden_size)
    return next(fitting, names[-1]) if names else FOR_PRETRAINED


def recipe_to_finetune(start: str) -> str:
    """The recipe of `start`'s size for our smallest models, else the one for pre-trained models.

    A learning rate of 3e-5 teaches our smallest models next to nothing in a few epochs.

    Raises:
        UserError: there is no such model.
    """
    name = recipe_to_ground(start)
    return name if name in TRAINED_FROM_NOTHING else FOR_PRETRAINED


def shaped_config(shape: Shape, **ids: int | None) -> FamilyConfig:
    """The configuration of a shape.

    Args:
        ids: control tokens by the configuration's names.

    Raises:
        UserError: the shape is impossible.
    """
    try:
        return CONFIGS[type(shape)](**shape.to_dict(), **ids)
    except ValueError as error:
        raise UserError(f"the model's shape is impossible: {error}") from error


def model_of(config: FamilyConfig) -> PreTrainedModel:
    """A new model of a configuration."""
    return next(family.writer for family in FAMILIES if family.config is type(config))(config)


@dataclass(frozen=True, kw_only=True)
class Size:
    """Parameters of a model; `embeddings` are those of the (tied) token table."""

    total: int
    embeddings: int

    @property
    def without_embeddings(self) -> int:
        """What papers of encoder-decoders usually print."""
        return self.total - self.embeddings


def count_parameters(shape: Shape) -> Size:
    """Count the parameters of a shape without taking memory for them."""
    with torch.device("meta"):
        model = model_of(shaped_config(shape))
        model.tie_weights()
    return Size(
        total=sum(parameter.numel() for parameter in model.parameters()),
        embeddings=shape.vocab_size * shape.hidden_size,
    )


if __name__ == "__main__":
    print(f"{'recipe':<17}{'without embeddings':>20}{'with':>12}")
    for run in (recipe(name) for name in RECIPES if name != FOR_PRETRAINED):
        size = count_parameters(run.shape)
        print(f"{run.name:<17}{size.without_embeddings / 1e6:>18.1f} M{size.total / 1e6:>10.1f} M")
