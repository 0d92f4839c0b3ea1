"""The recipes are the sizes that they say, and a given model takes the settings of its kind and width."""

import json
from pathlib import Path

import pytest
from transformers import PreTrainedConfig

from precis.models.prophetnet.configuration_prophetnet import ProphetNetConfig
from precis.models.zcodepp.configuration_zcodepp import ZCodePPConfig
from precis.recipes.catalogue import (
    FEW,
    RECIPES,
    TRAINED_FROM_NOTHING,
    count_parameters,
    recipe,
    recipe_for_pairs,
    recipe_to_finetune,
    recipe_to_ground,
)
from precis.recipes.run_plan import RunPlan
from precis_text.errors import UserError
from tests.tiny_models import save

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
        (1024, "zcodepp-large", "zcodepp-large"),
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
        (1024, "prophetnet-large", "prophetnet-large"),
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
    rates = {name: recipe(name).train.learning_rate for name in RECIPES}
    assert {name for name, rate in rates.items() if rate > 5e-4} == set(TRAINED_FROM_NOTHING)


def test_few_pairs_take_a_small_model_that_reaches_its_rate_however_few_they_are() -> None:
    assert [recipe_for_pairs(count) for count in (1, 300, FEW - 1, FEW)] == [
        *["zcodepp-few"] * 3,
        "zcodepp-mini",
    ]
    train = recipe("zcodepp-few").train
    assert train.steps is not None
    assert train.warmup_steps * 10 == train.steps


def test_large_counts_the_papers_parameters() -> None:
    size = count_parameters(recipe("zcodepp-large").model)  # type: ignore[arg-type]
    assert size.without_embeddings == pytest.approx(705.6e6, rel=0.002)
    assert size.total == pytest.approx(837e6, rel=0.002)


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("zcodepp-few", 1.4),
        ("zcodepp-micro", 2.0),
        ("zcodepp-mini", 13.2),
        ("zcodepp-small", 60.7),
        ("zcodepp-base", 297.1),
    ],
)
def test_smaller_sizes_count_what_they_say(name: str, millions: float) -> None:
    size = count_parameters(recipe(name).model)  # type: ignore[arg-type]
    assert size.total / 1e6 == pytest.approx(millions, abs=0.05)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_survives_json(name: str) -> None:
    run = recipe(name)
    assert run.name == name
    assert RunPlan.from_dict(json.loads(json.dumps(run.to_dict()))) == run


@pytest.mark.parametrize("name", [n for n in RECIPES if n.startswith("zcodepp")])
def test_heads_divide_the_width_and_feed_forward_is_four_times_as_wide(name: str) -> None:
    shape = recipe(name).model
    assert shape.hidden_size == 64 * shape.num_attention_heads  # type: ignore[union-attr]
    assert shape.intermediate_size == 4 * shape.hidden_size  # type: ignore[union-attr]
    assert shape.encoder_layers == shape.decoder_layers  # type: ignore[union-attr]


def test_an_unknown_recipe_names_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'zcodepp-mini'"):
        recipe("zcodepp-mni")


def test_large_fine_tunes_with_table_8() -> None:
    run = recipe("zcodepp-large")
    train = run.train
    assert train.learning_rate in (5e-6, 8e-6, 9e-6, 1e-5)
    assert train.warmup_steps in (50, 100, 500, 1000, 1500)
    assert run.batch_size in (16, 32, 64)
    assert train.epochs in (10, 20)
    assert (train.weight_decay, train.eps, train.betas, train.clip_norm) == (0.01, 1e-6, (0.9, 0.999), 1.0)
    assert run.generation.beams in (2, 4, 5, 8)


def test_label_smoothing_is_only_where_the_papers_or_training_from_nothing_have_it() -> None:
    smoothed = {name for name in RECIPES if recipe(name).label_smoothing}
    assert not smoothed & {"zcodepp-small", "zcodepp-base", "zcodepp-large"}
    assert {"zcodepp-micro", "zcodepp-mini", "prophetnet-base", "prophetnet-large"} <= smoothed
