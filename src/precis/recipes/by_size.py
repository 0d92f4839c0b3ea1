"""Which recipe suits: a new model by how many pairs there are, a model that is given by its kind and width."""

from __future__ import annotations

from collections.abc import Mapping

from precis.generation.loading import model_config
from precis.models.prophetnet.config import ProphetNetConfig
from precis.models.zcodepp.config import ZCodePPConfig

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
"""Pairs below which the default recipe is the one for few."""

_ZCODEPP = {128: "zcodepp-micro", 256: "zcodepp-mini", 512: "zcodepp-small", 768: "zcodepp-base"}
_PROPHETNET = {128: "prophetnet-micro", 256: "prophetnet-mini", 768: "prophetnet-base"}


def recipe_for_pairs(pairs: int) -> str:
    """The recipe of a new model that learns from so many pairs: a small one and many small steps where they are few.

    `python -m benchmarks.few_pairs` measures what either learns from 300.
    """
    return "zcodepp-few" if pairs < FEW else "zcodepp-mini"


def recipe_to_ground(start: str) -> str:
    """The recipe of the size of `start`, where it is one of our models, else the one for pre-trained models.

    Raises:
        UserError: there is no such model.
    """
    config = model_config(start)
    if isinstance(config, ZCodePPConfig):
        return _of_width(config.hidden_size, _ZCODEPP, largest="zcodepp-large")
    if isinstance(config, ProphetNetConfig):
        return _of_width(config.hidden_size, _PROPHETNET, largest="prophetnet-large")
    return FOR_PRETRAINED


def recipe_to_finetune(start: str) -> str:
    """The recipe of the size of `start` for our smallest models, which 3e-5 teaches next to nothing in a few epochs;
    the one for pre-trained models for all others.

    Raises:
        UserError: there is no such model.
    """
    name = recipe_to_ground(start)
    return name if name in TRAINED_FROM_NOTHING else FOR_PRETRAINED


def _of_width(width: int, recipes: Mapping[int, str], *, largest: str) -> str:
    return next((name for limit, name in recipes.items() if width <= limit), largest)
