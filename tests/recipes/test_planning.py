"""What few examples change in a recipe, what they leave alone, and which pairs are drawn."""

import json
from pathlib import Path
from typing import Any

import pytest

from precis.data.pairs.pair import Pair
from precis.phases.data.run_pairs import NamedPairs
from precis.phases.train import training_pairs as module
from precis.phases.train.finetuning import finetune
from precis.phases.train.pair_training import PairRequest
from precis.recipes.catalogue import RECIPES, recipe
from precis.recipes.planning import few_shot, in_words, resolve_run, zero_shot
from precis_text.errors import UserError
from tests.tiny_models import save

TINY = ("max_source=48", "max_target=8", "generated_rows=0", "train.select=loss", "train.validate_every=1")


@pytest.fixture
def data(tmp_path: Path) -> str:
    rows = [{"document": f"Ann sings the song number {n}.", "summary": "Ann sings."} for n in range(40)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(tmp_path / "pairs.jsonl")


@pytest.mark.parametrize("examples", [1, 10, 100, 1000])
@pytest.mark.parametrize("name", RECIPES)
def test_validation_ends_the_run_and_no_batch_is_larger_than_the_set(name: str, examples: int) -> None:
    before = recipe(name)
    run = few_shot(before, examples)
    train = run.train
    assert (train.steps, train.epochs, train.validate_every, train.patience) == (2000, None, 50, 5)
    assert (run.batch_size, run.batch_tokens) == (min(16, before.batch_size or 16, examples), None)
    assert train.warmup_steps <= min(100, before.train.warmup_steps)
    kept = ("learning_rate", "select", "weight_decay", "seed", "precision")
    assert [getattr(train, name) for name in kept] == [getattr(before.train, name) for name in kept]
    assert (run.model, run.max_source, run.generation) == (before.model, before.max_source, before.generation)


def test_what_was_asked_for_wins() -> None:
    run = resolve_run(
        "zcodepp-micro",
        examples=10,
        changes={"train.epochs": 3, "batch_tokens": 500},
        assignments=["train.patience=none", "train.warmup_steps=400"],
        select="loss",
    )
    train = run.train
    assert (train.steps, train.epochs, train.patience, train.warmup_steps) == (None, 3, None, 400)
    assert (run.batch_size, run.batch_tokens, train.select.metric) == (None, 500, "loss")
    assert train.validate_every == 50
    assert in_words(run) == "few-shot: at most 3 epochs in batches of 500 tokens"


@pytest.mark.parametrize("examples", [0, -3])
def test_nothing_cannot_be_trained_on(examples: int) -> None:
    with pytest.raises(UserError, match=f"--examples {examples}: nothing to train on"):
        few_shot(recipe("pretrained"), examples)


def test_zero_shot_names_the_command_that_scores_the_model() -> None:
    line = str(zero_shot(model="m", data="--task samsum", instruction="In short:", out="o"))
    assert "`precis evaluate --model m --task samsum --instruction 'In short:' --out o`" in line
    spaced = str(zero_shot(model="my model", data="--data d", instruction="", out="my run/evaluation"))
    assert "`precis evaluate --model 'my model' --data d --out 'my run/evaluation'`" in spaced
    assert "--model" in str(zero_shot(model=None, data="--data d", instruction="", out="o"))


def test_the_run_ends_when_validation_no_longer_improves(data: str, tmp_path: Path) -> None:
    model = str(save("zcodepp", tmp_path / "tiny"))
    still = ("train.learning_rate=1e-30", "train.warmup_steps=0")
    run = resolve_run(None, examples=4, pretrained=True, assignments=(*TINY, *still))
    done = finetune(
        run,
        PairRequest(
            sources=NamedPairs(data=data).sources(),
            out=tmp_path / "run",
            start=model,
            examples=4,
            callbacks=[],
        ),
    )
    assert (done.result.stopped_early, done.result.best_step, done.result.step) == (
        True,
        6,
        6,
    )  # a tie: the later


def test_the_sampling_seed_alone_says_which_pairs(
    data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = str(save("zcodepp", tmp_path / "tiny"))
    drawn: list[list[Pair]] = []

    def sample(*arguments: Any, **options: Any) -> list[Pair]:
        drawn.append(original(*arguments, **options))
        return drawn[-1]

    original = module.sample  # type: ignore[attr-defined]
    monkeypatch.setattr(module, "sample", sample)
    weights = []
    for seed, sampling_seed in ((0, 7), (1, 7), (0, 8)):
        out = tmp_path / f"run-{seed}-{sampling_seed}"
        brief = (*TINY, "train.steps=2", "train.warmup_steps=1", f"train.seed={seed}")
        finetune(
            resolve_run(None, examples=8, pretrained=True, assignments=brief),
            PairRequest(
                sources=NamedPairs(data=data, dev=data).sources(),
                out=out,
                start=model,
                examples=8,
                sampling_seed=sampling_seed,
                callbacks=[],
            ),
        )
        weights.append((out / "model" / "model.safetensors").read_bytes())
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(weights)) == 3
