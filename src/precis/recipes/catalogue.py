"""Every recipe by its name, and how large the models of each are: `python -m precis.recipes.catalogue`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from precis.config import nearest
from precis.decoding import GenerationSettings
from precis.errors import UserError
from precis.recipes.prophetnet import prophetnet_base, prophetnet_large, prophetnet_micro, prophetnet_mini
from precis.recipes.runs import RunPlan, Shape, native_precision
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
    """For any model that is given with `--model`: settings that serve BART, T5 and their like."""
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
        "zcodepp-few": zcodepp_few,
        "zcodepp-demo": zcodepp_demo,
        "zcodepp-micro": zcodepp_micro,
        "zcodepp-mini": zcodepp_mini,
        "zcodepp-small": zcodepp_small,
        "zcodepp-base": zcodepp_base,
        "zcodepp-large": zcodepp_large,
        "prophetnet-micro": prophetnet_micro,
        "prophetnet-mini": prophetnet_mini,
        "prophetnet-base": prophetnet_base,
        "prophetnet-large": prophetnet_large,
        "pretrained": pretrained,
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
    import torch

    from precis.recipes.shapes import model_of, shaped_config

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
