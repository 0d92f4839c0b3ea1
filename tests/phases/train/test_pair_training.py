"""What cannot learn, or cannot be judged, is said before it starts, with what to do instead."""

from dataclasses import replace

import pytest

from precis.phases.train.pair_training import advise_on_rate, advise_on_size, advise_on_validation
from precis.recipes.catalogue import recipe


def size(name: str, *, parameters: int, pairs: int, steps: int) -> list[str]:
    told: list[str] = []
    advise_on_size(
        recipe(name), parameters=parameters, train_pairs=pairs, total_steps=steps, notify=told.append
    )
    return told


def test_millions_of_parameters_on_hundreds_of_pairs_are_told_what_to_take_instead() -> None:
    (few,) = size("zcodepp-mini", parameters=13_000_000, pairs=300, steps=900)
    assert few.startswith("warning: 300 pairs are few for 13.0 M new parameters; start from")
    for way in ("--model", "precis tune", "--recipe zcodepp-few"):
        assert way in few
    assert "--recipe" not in size("zcodepp-few", parameters=1_400_000, pairs=300, steps=2000)[0]


def test_a_run_of_few_steps_is_told_how_many_to_take() -> None:
    assert (
        "70 steps are few for a new model; use --steps 2000"
        in size("zcodepp-mini", parameters=13_000_000, pairs=9000, steps=70)[0]
    )
    (one,) = size("zcodepp-mini", parameters=13_000_000, pairs=9000, steps=1)
    assert "warning: 1 step is few for a new model" in one


@pytest.mark.parametrize(
    ("parameters", "pairs", "steps"), [(13_000_000, 20_000, 5000), (20_000, 40, 6)], ids=["enough", "a toy"]
)
def test_nothing_is_said_where_there_is_enough_or_nothing_to_hope_for(
    parameters: int, pairs: int, steps: int
) -> None:
    assert size("zcodepp-mini", parameters=parameters, pairs=pairs, steps=steps) == []


def test_a_rate_that_no_model_survives_is_named() -> None:
    told: list[str] = []
    run = recipe("zcodepp-micro")
    advise_on_rate(run, told.append)
    assert told == []
    advise_on_rate(replace(run, train=replace(run.train, learning_rate=1e9)), told.append)
    assert told == [
        "warning: a learning rate of 1e+09 is too large for a whole model; use 1e-5 to 1e-3 (--lr)"
    ]


def test_validation_on_training_documents_or_on_a_handful_is_named() -> None:
    told: list[str] = []
    advise_on_validation(dev_pairs=200, shared=0, notify=told.append)
    assert told == []
    advise_on_validation(dev_pairs=200, shared=12, notify=told.append)
    advise_on_validation(dev_pairs=6, shared=6, notify=told.append, name="samsum")
    assert [line.partition(";")[0] for line in told] == [
        "warning: training documents are among the validation documents (12 of 200), so their scores reward "
        "memorizing",
        "warning: training documents are among the validation documents of samsum (6 of 6), so their scores reward "
        "memorizing",
        "warning: 6 validation pairs of samsum are too few to choose the best model",
    ]
    assert ["--dev" in line for line in told] == [True, False, False]


@pytest.mark.parametrize(("name", "where"), [("", "with --dev"), ("samsum", "in its dev file")])
def test_advice_on_validation_names_an_option_of_its_command(name: str, where: str) -> None:
    told: list[str] = []
    advise_on_validation(dev_pairs=6, shared=2, notify=told.append, name=name)
    assert told[0].endswith(f"reward memorizing; give other pairs {where}, or omit it to hold some out")
    assert told[1].endswith(f"too few to choose the best model; give 20 or more {where}, 200 if possible")
