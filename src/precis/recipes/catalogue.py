"""Every recipe by its name: which one suits, the model of its shape, and how large that is.

`python -m precis.recipes.catalogue` prints the sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from transformers import PreTrainedModel

from precis.config import nearest
from precis.decoding import GenerationSettings
from precis.errors import UserError
from precis.generation.loading import model_config
from precis.models import FAMILIES
from precis.models.family import FamilyConfig
from precis.models.prophetnet.config import ProphetNetConfig
from precis.models.zcodepp.config import ZCodePPConfig
from precis.recipes.prophetnet import prophetnet_base, prophetnet_large, prophetnet_micro, prophetnet_mini
from precis.recipes.runs import ProphetNetShape, RunPlan, Shape, ZCodePPShape, native_precision
from precis.recipes.zcodepp import (
    zcodepp_base,
    zcodepp_demo,
    zcodepp_few,
    zcodepp_large,
    zcodepp_micro,
    zcodepp_mini,
    zcodepp_small,
)
from precis.training.settings import Highest, TrainSettings


def pretrained() -> RunPlan:
    """Training settings for any model that is given with `--model`: BART, T5 and similar ones."""
    train = TrainSettings(
        epochs=3,
        learning_rate=3e-5,
        warmup_steps=200,
        precision=native_precision(),
        select=Highest(metric="rougeL"),
    )
    return RunPlan(
        name="pretrained",
        model=zcodepp_mini().model,  # of a new model; one that is given has its own
        train=train,
        batch_size=16,
        max_source=1024,
        max_target=128,
        generation=GenerationSettings(beams=4),
    )


RECIPES: Mapping[str, Callable[[], RunPlan]] = MappingProxyType(
    {
        make.__name__.replace("_", "-"): make
        for make in (
            *(
                zcodepp_few,
                zcodepp_demo,
                zcodepp_micro,
                zcodepp_mini,
                zcodepp_small,
                zcodepp_base,
                zcodepp_large,
            ),
            *(prophetnet_micro, prophetnet_mini, prophetnet_base, prophetnet_large),
            pretrained,
        )
    }
)


def recipe(name: str) -> RunPlan:
    """The recipe called `name`.

    Raises:
        UserError: there is none; the nearest names are given.
    """
    if name not in RECIPES:
        raise UserError(f"unknown recipe {name!r}{nearest(name, RECIPES)}")
    return RECIPES[name]()


FOR_PRETRAINED = "pretrained"
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

_BY_WIDTH: dict[
    str, dict[int, str]
] = {  # model type -> widest model of each recipe; the last is for all beyond
    ZCodePPConfig.model_type: {
        128: "zcodepp-micro",
        256: "zcodepp-mini",
        512: "zcodepp-small",
        768: "zcodepp-base",
        1024: "zcodepp-large",
    },
    ProphetNetConfig.model_type: {
        128: "prophetnet-micro",
        256: "prophetnet-mini",
        768: "prophetnet-base",
        1024: "prophetnet-large",
    },
}
CONFIGS: dict[type[Shape], type[FamilyConfig]] = {
    ZCodePPShape: ZCodePPConfig,
    ProphetNetShape: ProphetNetConfig,
}


def recipe_for_pairs(pairs: int) -> str:
    """The recipe of a new model by its number of pairs; few pairs get a small model and many small steps.

    `python -m benchmarks.few_pairs` measures what either learns from 300.
    """
    return "zcodepp-few" if pairs < FEW else "zcodepp-mini"


def recipe_to_ground(start: str) -> str:
    """The recipe of `start`'s size if it is one of our models, else the one for pre-trained models.

    Raises:
        UserError: there is no such model.
    """
    config = model_config(start)
    recipes = _BY_WIDTH.get(config.model_type)
    if recipes is None:
        return FOR_PRETRAINED
    *_, largest = recipes.values()
    return next((name for width, name in recipes.items() if config.hidden_size <= width), largest)


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
    for make in RECIPES.values():
        run = make()
        if run.name == "pretrained":
            continue
        size = count_parameters(run.shape)
        print(f"{run.name:<17}{size.without_embeddings / 1e6:>18.1f} M{size.total / 1e6:>10.1f} M")
