"""The recipes are the sizes that they say, and settings survive a trip through JSON."""

import json

import pytest

from precis.errors import UserError
from precis.recipes.catalogue import RECIPES, count_parameters, recipe
from precis.recipes.runs import RunPlan
from precis.recipes.zcodepp import zcodepp_large


def test_large_counts_the_papers_parameters() -> None:
    size = count_parameters(zcodepp_large().model)
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
    assert count_parameters(recipe(name).model).total / 1e6 == pytest.approx(millions, abs=0.05)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_survives_json(name: str) -> None:
    run = recipe(name)
    assert run.name == name
    assert RunPlan.from_dict(json.loads(json.dumps(run.to_dict()))) == run


@pytest.mark.parametrize("name", [n for n in RECIPES if n.startswith("zcodepp")])
def test_heads_divide_the_width_and_feed_forward_is_four_times_as_wide(name: str) -> None:
    shape: Shape = recipe(name).model
    assert shape.hidden_size == 64 * shape.num_attention_heads
    assert shape.intermediate_size == 4 * shape.hidden_size
    assert shape.encoder_layers == shape.decoder_layers


def test_an_unknown_recipe_names_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'zcodepp-mini'"):
        recipe("zcodepp-mni")


def test_large_fine_tunes_with_table_8() -> None:
    run = zcodepp_large()
    train = run.train
    assert train.learning_rate in (5e-6, 8e-6, 9e-6, 1e-5)
    assert train.warmup_steps in (50, 100, 500, 1000, 1500)
    assert run.batch_size in (16, 32, 64)
    assert train.epochs in (10, 20)
    assert (train.weight_decay, train.eps, train.betas, train.clip_norm) == (0.01, 1e-6, (0.9, 0.999), 1.0)
    assert run.generation.beams in (2, 4, 5, 8)
