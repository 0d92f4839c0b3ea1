"""`precis.finetune` in Python chooses, refuses and records what the command does."""

import json
from pathlib import Path
from typing import Any

import pytest

import precis
from precis.cli import main
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.plans.finetuning_plan import finetune, plan_finetuning
from precis.recipes.catalogue import FOR_PRETRAINED, FROM_DEFAULT
from precis_text.errors import UserError
from tests.tiny_models import SMALL_RUN, tiny

SHAPE = [word for word in SMALL_RUN if word.startswith("model.")]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    precis.write_synthetic(folder, {"train": 12, "dev": 4}, seed=0)
    return folder


def test_few_english_pairs_start_from_the_model_in_the_box_and_the_choice_is_logged(
    pairs: Path, tmp_path: Path
) -> None:
    said: list[str] = []
    planned = plan_finetuning(NamedPairs(data=str(pairs)), out=tmp_path / "run", notify=said.append)
    assert planned.plan.name == FROM_DEFAULT
    assert planned.request.start is not None
    assert "12 English pairs are few" in said[0]
    assert not (tmp_path / "run").exists()


def test_a_shape_asks_for_a_new_model(pairs: Path, tmp_path: Path) -> None:
    planned = plan_finetuning(NamedPairs(data=str(pairs)), out=tmp_path, settings=SHAPE, epochs=3)
    assert (planned.plan.name, planned.request.start) == ("zcodepp-few", None)
    assert planned.plan.train.epochs == 3


def test_a_given_model_brings_the_settings_that_suit_it(pairs: Path, tmp_path: Path) -> None:
    model, tokenizer = tiny("bart")
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / "bart")
    said: list[str] = []
    planned = plan_finetuning(
        NamedPairs(data=str(pairs)), out=tmp_path / "run", model=tmp_path / "bart", notify=said.append
    )
    assert planned.plan.name == FOR_PRETRAINED
    assert said == [f"no --recipe: the settings for pre-trained models (--recipe {FOR_PRETRAINED})"]


def test_a_search_has_the_space_that_the_settings_leave(pairs: Path, tmp_path: Path) -> None:
    planned = plan_finetuning(
        NamedPairs(data=str(pairs)),
        out=tmp_path,
        recipe="zcodepp-micro",
        search=True,
        trials=2,
        learning_rate=1e-3,
        space=["epochs=1,2"],
    )
    assert planned.space is not None
    assert (planned.space.learning_rate, planned.space.epochs, planned.trials) == ((), (1, 2), 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampling_seed": 1}, "sampling_seed selects the pairs for examples; add examples"),
        ({"sampling_seed": -1, "examples": 3}, "sampling_seed -1: use 0 to"),
        ({"trials": 3}, "trials is for a search; add search"),
        ({"space": ["beams=1"]}, "space is for a search; add search"),
        ({"recipe": "pretrained"}, "recipe pretrained is for an existing model"),
        ({"examples": 0, "model": "m"}, "precis evaluate --model m --data nowhere --out o/evaluation"),
        (
            {"steps": 3, "settings": ["train.epochs=1"]},
            "steps and settings train.epochs=1 exclude each other",
        ),
        ({"learning_rate": 1.0, "settings": ["train.learning_rate=1"]}, "learning_rate and settings"),
        ({"seed": -1}, "seed -1: use 0 to 4294967295"),
    ],
)
def test_contradictions_are_refused_before_the_pairs_are_looked_for(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        precis.finetune("nowhere", out="o", **options)


def test_an_unknown_keyword_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(TypeError, match=r"finetune\(\) got an unexpected keyword argument 'epoch'.*'epochs'"):
        precis.finetune("nowhere", out="o", epoch=3)  # type: ignore[call-overload]


def test_python_and_the_command_train_the_same_run_and_each_resumes_the_other(
    pairs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    command = ["finetune", "--data", str(pairs), "--out", str(out), *SMALL_RUN, "--steps", "2"]
    assert main(command) == 0
    recorded = json.loads((out / "settings.json").read_text())
    said: list[str] = []
    done = precis.finetune(
        pairs,
        out=out,
        recipe="zcodepp-micro",
        steps=2,
        max_source=96,
        batch_tokens=2000,
        settings=[*SHAPE, "generation.max_tokens=16", "generated_rows=4"],
        notify=said.append,
    )
    assert (done.result.step, done.model) == (2, out / "model")
    again = json.loads((out / "settings.json").read_text())
    assert {name: again[name] for name in ("run", "identity", "sources")} == {
        name: recorded[name] for name in ("run", "identity", "sources")
    }


@pytest.mark.parametrize("name", ["zcodepp-large", "prophetnet-large"])
def test_random_weights_at_a_rate_for_pre_trained_ones_need_a_rate_of_the_user(
    name: str, pairs: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"is for pre-trained weights.*name a model with --model, or a rate"):
        plan_finetuning(NamedPairs(data=str(pairs)), out=tmp_path, recipe=name)
    for asked in ({"learning_rate": 3e-4}, {"settings": ["train.learning_rate=3e-4"]}):
        planned = plan_finetuning(NamedPairs(data=str(pairs)), out=tmp_path, recipe=name, **asked)
        assert planned.plan.train.learning_rate == 3e-4


def test_a_large_model_is_fine_tuned_as_the_papers_say(pairs: Path, tmp_path: Path) -> None:
    layers = {"encoder_layers": 1, "decoder_layers": 1, "vocab_size": 300, "num_attention_heads": 16}
    config = precis.ZCodePPConfig(hidden_size=1024, intermediate_size=16, **layers)
    config.save_pretrained(tmp_path / "large")
    planned = plan_finetuning(NamedPairs(data=str(pairs)), out=tmp_path / "run", model=tmp_path / "large")
    train = planned.plan.train
    assert (train.learning_rate, train.epochs, planned.plan.label_smoothing) == (8e-6, 10, 0.0)


def test_a_recipe_in_the_place_of_the_pairs_is_explained() -> None:
    with pytest.raises(UserError, match=r"zcodepp-micro: is a recipe; .*recipe='zcodepp-micro'"):
        finetune("zcodepp-micro", out="runs/first")


def test_a_call_without_a_run_folder_says_how_to_name_one(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"document": "Ann sings.", "summary": "Ann."}\n')
    untyped: Any = finetune
    with pytest.raises(UserError, match=r"finetune\(PAIRS, out=RUN\)"):
        untyped(pairs)
