"""ProphetNet's decoding settings, beside the task table's own."""

import pytest

from precis.data.tasks.tasks import TASKS, task
from precis.decoding import GenerationSettings
from precis.errors import UserError
from precis.phases.evaluate import Decoding
from precis.recipes.prophetnet_decoding import PROPHETNET_DECODING, prophetnet_decoding


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
    for name, settings in PROPHETNET_DECODING.items():
        assert settings.max_tokens <= task(name).max_target
    assert task("cnndm").generation.length_penalty == 1.0
    assert set(PROPHETNET_DECODING) < set(TASKS)


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
