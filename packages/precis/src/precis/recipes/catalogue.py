"""Recipes by name, the choice of a suitable one, models of their shapes, and the models' sizes.

`recipes.toml` has the values. Change one with `replace(recipe("zcodepp-mini"), max_source=256)`, or on the
command line with `--recipe zcodepp-mini --set max_source=256 --set train.learning_rate=3e-4`.
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

from precis.generation.model_location import ModelLocation, locate
from precis.models import FAMILIES
from precis.models.family import FamilyConfig
from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.recipes.run_plan import ProphetNetShape, RunPlan, Shape, ZCodePPShape, native_precision
from precis_text.config import nearest
from precis_text.errors import UserError

_RECORDS: dict[str, dict[str, Any]] = tomllib.loads(
    files(__package__).joinpath("recipes.toml").read_text("utf-8")
)
RECIPES = tuple(_RECORDS["pairs"])
PRETRAINING = tuple(_RECORDS["pretraining"])


def record(kind: str, name: str) -> dict[str, Any]:
    """Return a recipe's values in `recipes.toml`, for `pairs` or `pretraining`, with the hardware's precision."""
    found = _resolved(_RECORDS[kind], name)
    return {**found, "name": name, "train": {"precision": native_precision(), **found["train"]}}


def _resolved(records: Mapping[str, Any], name: str) -> dict[str, Any]:
    own = dict(records[name])
    return _merged(_resolved(records, own.pop("like")), own) if "like" in own else own


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge `changes` into `base`, table by table; a table with a type replaces the whole table."""
    merged = dict(base)
    for name, value in changes.items():
        part_of_base = isinstance(value, dict) and "type" not in value and name in base
        merged[name] = _merged(base[name], value) if part_of_base else value
    return merged


def recipe(name: str) -> RunPlan:
    """Return the recipe `name`; raise `UserError` if the name is unknown; the message suggests the nearest names."""
    if name not in RECIPES:
        raise UserError(f"unknown recipe {name!r}{nearest(name, RECIPES)}")
    return RunPlan.from_dict(record("pairs", name))


FOR_PRETRAINED = "pretrained"
FOR_WRITERS = "pretrained-writer"
"""The training settings of causal language models."""
FROM_DEFAULT = "pretrained-few"
"""The recipe that starts from the model that comes with precis, unless the user names another."""
_SIZES = ("micro", "mini", "small", "base", "large")
TRAINED_FROM_NOTHING = (
    "zcodepp-few", "zcodepp-demo", "zcodepp-micro", "zcodepp-mini", "prophetnet-micro", "prophetnet-mini",
)  # fmt: skip
"""Recipes with learning rates for models of a few million parameters; rates of large models hardly change these."""
_OF_THE_PAPERS = ("zcodepp-large", "prophetnet-large")

FEW = 5000
"""With fewer pairs, the default recipe is the one for few pairs."""

CONFIGS: dict[type[Shape], type[FamilyConfig]] = {
    ZCodePPShape: ZCodePPConfig,
    ProphetNetShape: ProphetNetConfig,
}


def recipe_for_pairs(pairs: int) -> str:
    """Return the recipe of a new model for a number of pairs; few pairs get a small model and many small steps.

    `python -m experiments.scripts.few_pairs` compares both and `FROM_DEFAULT` on 300 pairs.
    """
    return "zcodepp-few" if pairs < FEW else "zcodepp-mini"


def recipe_to_ground(start: str | ModelLocation) -> str:
    """Return the recipe of `start`'s size if it is a precis model, else the one for pre-trained models.

    Raises:
        UserError: the model does not exist.
    """
    config = locate(start).configuration
    family = config.model_type.removeprefix("precis-")
    names = [name for size in _SIZES if (name := f"{family}-{size}") in RECIPES]
    fitting = (name for name in names if config.hidden_size <= recipe(name).shape.hidden_size)
    return next(fitting, names[-1]) if names else FOR_PRETRAINED


def recipe_to_finetune(start: str | ModelLocation) -> str:
    """Return the recipe of `start`'s size for the smallest and the papers' large models, else the one for pre-trained
    models. Causal language models have a recipe of their own.

    With a learning rate of 3e-5 the smallest models learn next to nothing in a few epochs. For the large models the
    papers print a schedule: Z-Code++ in Table 8, ProphetNet in sections 3.2 and 3.3.

    Raises:
        UserError: the model does not exist.
    """
    location = locate(start)
    if location.is_writer:
        return FOR_WRITERS
    name = recipe_to_ground(location)
    return name if name in (*TRAINED_FROM_NOTHING, *_OF_THE_PAPERS) else FOR_PRETRAINED


def shaped_config(shape: Shape, **ids: int | None) -> FamilyConfig:
    """Return the configuration of a shape.

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
    """Make a new model of a configuration."""
    return next(family.writer for family in FAMILIES if family.config is type(config))(config)


@dataclass(frozen=True, kw_only=True)
class Size:
    """The number of a model's parameters; `embeddings` counts those of the (tied) token table."""

    total: int
    embeddings: int

    @property
    def without_embeddings(self) -> int:
        """The number that papers on encoder-decoders usually print."""
        return self.total - self.embeddings


def count_parameters(shape: Shape) -> Size:
    """Count the parameters of a shape without allocating them."""
    with torch.device("meta"):
        model = model_of(shaped_config(shape))
        model.tie_weights()
    return Size(
        total=sum(parameter.numel() for parameter in model.parameters()),
        embeddings=shape.vocab_size * shape.hidden_size,
    )


if __name__ == "__main__":
    print(f"{'recipe':<17}{'without embeddings':>20}{'with':>12}")
    for run in (recipe(name) for name in RECIPES if name not in (FOR_PRETRAINED, FOR_WRITERS)):
        size = count_parameters(run.shape)
        print(f"{run.name:<17}{size.without_embeddings / 1e6:>18.1f} M{size.total / 1e6:>10.1f} M")
