"""The ranges: the paper's by default, changed by options, and never about a setting that was asked for."""

from dataclasses import replace

import pytest

from precis.phases.search.search_space import SearchSpace, at_point, points, resolve_space, with_ranges
from precis.recipes.catalogue import RECIPES, recipe
from precis.recipes.planning import few_shot
from precis_text.errors import UserError


def test_the_defaults_are_table_8() -> None:
    space = SearchSpace()
    assert space.training_grid == {
        "warmup_steps": (50, 100, 500, 1000, 1500),
        "learning_rate": (5e-6, 8e-6, 9e-6, 1e-5),
        "batch_size": (16, 32, 64),
        "epochs": (10, 20),
    }
    assert (space.beams, space.no_repeat_ngram) == ((2, 4, 5, 8), (0, 3))
    assert (space.length_penalty[0], space.length_penalty[-1], len(space.length_penalty)) == (0.5, 1.2, 8)
    assert (len(points(space.training_grid)), len(points(space.decoding_grid))) == (120, 64)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_can_be_put_at_a_point(name: str) -> None:
    run = at_point(recipe(name), points(SearchSpace().training_grid)[-1])
    assert (run.batch_size, run.batch_tokens) == (64, None)
    train = run.train
    assert (train.warmup_steps, train.learning_rate, train.epochs, train.steps) == (1500, 1e-5, 20, None)


@pytest.mark.parametrize("name", ["prophetnet-base", "prophetnet-large"])
def test_a_searched_batch_is_all_that_a_step_takes(name: str) -> None:
    run = recipe(name)
    assert run.train.gradient_accumulation > 1
    for size in SearchSpace().batch_size:
        there = at_point(run, {"batch_size": size, "learning_rate": 1e-4})
        assert there.batch_size is not None
        assert there.batch_size * there.train.gradient_accumulation == size
    assert at_point(run, {"learning_rate": 1e-4}).train == replace(run.train, learning_rate=1e-4)


def test_ranges_are_changed_by_name() -> None:
    space = with_ranges(SearchSpace(), ["learning_rate=1e-3, 3e-3", "epochs=none", "beams=1"])
    assert space.training_grid["learning_rate"] == (1e-3, 3e-3)
    assert "epochs" not in space.training_grid
    assert space.decoding_grid["beams"] == (1,)
    assert space.batch_size == SearchSpace().batch_size


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("learning_rate", "write NAME=VALUE,VALUE"),
        ("lerning_rate=1", "did you mean 'learning_rate'"),
        ("batch_size=1.5", "write whole numbers"),
        ("learning_rate=fast", "write numbers"),
        ("learning_rate=nan", "finite"),
        ("epochs=1,1", "a value is given twice"),
    ],
)
def test_a_wrong_range_is_one_clear_line(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        with_ranges(SearchSpace(), [text])


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("train.learning_rate", "learning_rate"),
        ("train.steps", "epochs"),
        ("batch_tokens", "batch_size"),
        ("train.gradient_accumulation", "batch_size"),
        ("generation.beams", "beams"),
    ],
)
def test_a_setting_that_was_asked_for_is_not_searched(path: str, name: str) -> None:
    run = recipe("pretrained")
    space = resolve_space(run, asked=[path, "max_source"])
    assert getattr(space, name) == ()
    assert len(space.training_grid) + len(space.decoding_grid) == 6
    with pytest.raises(UserError, match=f"--space {name}: {path} was also given"):
        resolve_space(run, asked=[path], ranges=[f"{name}=1,2"])


@pytest.mark.parametrize("name", ["zcodepp-micro", "prophetnet-mini"])
def test_small_models_are_searched_around_their_own_rate(name: str) -> None:
    run = recipe(name)
    rate = run.train.learning_rate
    space = resolve_space(run)
    assert space.learning_rate == (rate / 4, rate / 2, rate, 2 * rate)
    assert replace(space, learning_rate=SearchSpace().learning_rate) == SearchSpace()
    assert resolve_space(run, ranges=["learning_rate=1"]).learning_rate == (1.0,)
    assert resolve_space(run, asked=["train.learning_rate"]).learning_rate == ()
    assert resolve_space(few_shot(run, 20), examples=20).learning_rate == space.learning_rate


@pytest.mark.parametrize("name", ["pretrained", "zcodepp-small", "prophetnet-large"])
def test_larger_models_are_searched_as_the_paper_does(name: str) -> None:
    assert resolve_space(recipe(name)) == SearchSpace()


def test_few_examples_narrow_the_grid_but_not_what_was_asked_for() -> None:
    run = few_shot(recipe("pretrained"), 20)
    space = resolve_space(run, examples=20)
    assert (space.batch_size, space.epochs) == ((16, 20), ())
    assert at_point(run, points(space.training_grid)[0]).train.steps == 2000
    short = at_point(run, {})
    assert resolve_space(short, examples=20, ranges=["batch_size=64"]).batch_size == (64,)
    assert resolve_space(few_shot(run, 5), examples=5).batch_size == (5,)
