"""Which recipe's settings a given model takes: by its kind and width."""

from pathlib import Path

import pytest
from tiny_models import save
from transformers import PreTrainedConfig

from precis.models.prophetnet.config import ProphetNetConfig
from precis.models.zcodepp.config import ZCodePPConfig
from precis.recipes.catalogue import (
    FEW,
    RECIPES,
    TRAINED_FROM_NOTHING,
    recipe_for_pairs,
    recipe_to_finetune,
    recipe_to_ground,
)

_LAYERS = {"encoder_layers": 1, "decoder_layers": 1}


def written(config: PreTrainedConfig, folder: Path) -> str:
    config.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize(
    ("width", "to_ground", "to_finetune"),
    [
        (32, "zcodepp-micro", "zcodepp-micro"),
        (128, "zcodepp-micro", "zcodepp-micro"),
        (256, "zcodepp-mini", "zcodepp-mini"),
        (512, "zcodepp-small", "pretrained"),
        (768, "zcodepp-base", "pretrained"),
        (1024, "zcodepp-large", "pretrained"),
    ],
)
def test_a_zcodepp_takes_the_settings_of_its_size(
    width: int, to_ground: str, to_finetune: str, tmp_path: Path
) -> None:
    config = ZCodePPConfig(hidden_size=width, num_attention_heads=2, intermediate_size=64, **_LAYERS)
    model = written(config, tmp_path)
    assert (recipe_to_ground(model), recipe_to_finetune(model)) == (to_ground, to_finetune)


@pytest.mark.parametrize(
    ("width", "to_ground", "to_finetune"),
    [
        (128, "prophetnet-micro", "prophetnet-micro"),
        (256, "prophetnet-mini", "prophetnet-mini"),
        (768, "prophetnet-base", "pretrained"),
        (1024, "prophetnet-large", "pretrained"),
    ],
)
def test_so_does_a_prophetnet(width: int, to_ground: str, to_finetune: str, tmp_path: Path) -> None:
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    model = written(ProphetNetConfig(hidden_size=width, **heads, **_LAYERS), tmp_path)
    assert (recipe_to_ground(model), recipe_to_finetune(model)) == (to_ground, to_finetune)


def test_models_of_others_take_those_for_pretrained_ones(tmp_path: Path) -> None:
    model = str(save("bart", tmp_path))
    assert recipe_to_ground(model) == recipe_to_finetune(model) == "pretrained"


def test_small_recipes_are_those_with_rates_for_small_models() -> None:
    rates = {name: make().train.learning_rate for name, make in RECIPES.items()}
    assert {name for name, rate in rates.items() if rate > 5e-4} == set(TRAINED_FROM_NOTHING)


def test_few_pairs_take_a_small_model_that_reaches_its_rate_however_few_they_are() -> None:
    assert [recipe_for_pairs(count) for count in (1, 300, FEW - 1, FEW)] == [
        *["zcodepp-few"] * 3,
        "zcodepp-mini",
    ]
    train = RECIPES["zcodepp-few"]().train
    assert train.steps is not None
    assert train.warmup_steps * 10 == train.steps
