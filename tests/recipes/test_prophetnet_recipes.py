"""ProphetNet is trained and decoded on each task of its paper as sections 3.2 and 3.3 say."""

import pytest

from precis.data.tasks.tasks import TASKS, task
from precis.phases.measure.model_scores import Decoding
from precis.recipes.planning import resolve_run
from precis.recipes.prophetnet_recipes import FINE_TUNED, PROPHETNET_TASKS, prophetnet_decoding
from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError


def test_the_settings_are_those_of_sections_3_2_and_3_3_and_of_the_scripts() -> None:
    assert prophetnet_decoding("cnndm") == GenerationSettings(
        beams=5, length_penalty=1.2, no_repeat_ngram=3, min_tokens=45, max_tokens=110
    )
    for name in ("gigaword", "reuters21578"):
        found = prophetnet_decoding(name)
        assert (found.beams, found.length_penalty, found.no_repeat_ngram) == (4, 1.0, 0)
    for name in ("squad-qg", "squad-qg-zhao"):
        assert prophetnet_decoding(name) == task(name).generation


def test_no_limit_is_above_the_tasks_own_and_the_table_keeps_its_settings() -> None:
    for name, settings in PROPHETNET_TASKS.items():
        assert settings.decoding.max_tokens <= task(name).max_target
    assert task("cnndm").generation.length_penalty == 1.0
    assert set(PROPHETNET_TASKS) < set(TASKS)


@pytest.mark.parametrize("name", ["samsum", None])
def test_other_tasks_have_none(name: str | None) -> None:
    with pytest.raises(UserError, match="need --task with one of its tasks: cnndm, gigaword"):
        prophetnet_decoding(name)


def test_what_is_asked_for_besides_wins() -> None:
    own = GenerationSettings(beams=2, max_tokens=9)
    base = prophetnet_decoding("cnndm")
    assert Decoding(base=base).applied_to(own) == base
    assert Decoding(base=base, beams=1).applied_to(own).beams == 1
    assert Decoding(beams=1).applied_to(own) == GenerationSettings(beams=1, max_tokens=9)


@pytest.mark.parametrize("name", FINE_TUNED)
@pytest.mark.parametrize(
    ("task_name", "rate", "batch"),
    [
        ("cnndm", 1e-4, 512),
        ("gigaword", 1e-4, 128),
        ("reuters21578", 1e-4, 128),
        ("squad-qg", 1e-5, 28),
        ("squad-qg-zhao", 1e-5, 28),
    ],
)
def test_rate_batch_warm_up_epochs_and_decoding_are_the_papers(
    name: str, task_name: str, rate: float, batch: int
) -> None:
    run = resolve_run(name, pretrained=True, task_name=task_name)
    assert run.batch_size is not None
    assert run.batch_size * run.train.gradient_accumulation == batch
    assert run.train.learning_rate == rate
    assert (run.train.warmup_steps, run.train.epochs, run.train.steps) == (1000, 10, None)
    assert run.generation == PROPHETNET_TASKS[task_name].decoding
    assert run.max_source == task(task_name).max_source


def test_what_is_asked_for_wins_and_other_tasks_and_recipes_are_as_they_were() -> None:
    asked = resolve_run(
        "prophetnet-large", task_name="squad-qg", changes={"train.learning_rate": 3e-5, "batch_size": 8}
    )
    assert (asked.train.learning_rate, asked.batch_size, asked.train.gradient_accumulation) == (3e-5, 8, 1)
    other = resolve_run("prophetnet-large", task_name="samsum")
    assert (other.train.learning_rate, other.batch_size, other.train.gradient_accumulation) == (1e-4, 32, 16)
    for name in ("prophetnet-micro", "zcodepp-large"):
        plain, on_task = resolve_run(name), resolve_run(name, task_name="squad-qg")
        assert on_task.train == plain.train
        assert on_task.generation == task("squad-qg").generation
