"""The settings of a checkpoint are read, and those that a search cannot use are refused."""

from typing import Any

import pytest
from transformers import GenerationConfig

from precis.generation.generation_settings import _check_ids, _check_rules, settings_of
from precis_text.errors import UserError
from tests.tiny_models import tiny


@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [
        ("eos_token_id", 0, None),
        ("eos_token_id", 9, None),
        ("eos_token_id", None, None),
        ("bad_words_ids", [[1, 2], [9]], None),
        ("eos_token_id", 10, "10"),
        ("pad_token_id", -1, "-1"),
        ("eos_token_id", [1, 10], "10"),
        ("bad_words_ids", [[1, 2], [9, -1]], "-1"),
        ("suppress_tokens", [True], "True"),
        ("suppress_tokens", [1.0], "1.0"),
        ("forced_bos_token_id", "2", "'2'"),
    ],
)
def test_ids_are_whole_numbers_of_the_models_tokens(name: str, value: Any, wrong: str | None) -> None:
    given = GenerationConfig()
    setattr(given, name, value)
    if wrong is None:
        _check_ids(given, rows=10)
    else:
        with pytest.raises(UserError, match=rf"^{name}={wrong} is not one of the 10 tokens of this model$"):
            _check_ids(given, rows=10)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("length_penalty", -50.0, 50.0),
        ("repetition_penalty", 1e-6, 1e6),
        ("no_repeat_ngram_size", 0, None),
        ("temperature", 1e-6, None),
    ],
)
def test_rules_of_a_search_have_bounds(name: str, least: float, most: float | None) -> None:
    def check(value: Any) -> None:
        given = GenerationConfig()
        setattr(given, name, value)
        _check_rules(given)

    check(least)
    with pytest.raises(UserError, match=rf"{name}=.* must be {least} or more"):
        check(least - 1)
    if most is not None:
        check(most)
        with pytest.raises(UserError, match=rf"{name}=.* must be .* or less"):
            check(most * 1.1)
    for value in (True, "1", float("nan"), float("inf")):
        with pytest.raises(UserError, match=rf"{name}=.* must be a number"):
            check(value)


@pytest.mark.parametrize(
    ("given", "most", "least"),
    [
        ({}, 128, 0),
        ({"max_length": 20}, 128, 0),
        ({"max_length": 21}, 20, 0),
        ({"max_length": 142, "min_length": 56}, 141, 55),
        ({"max_length": 142, "max_new_tokens": 60}, 60, 0),
        ({"min_length": 56, "min_new_tokens": 3}, 128, 3),
        ({"min_length": 1}, 128, 0),
    ],
)
def test_lengths_with_the_start_token_become_lengths_without_it(
    given: dict[str, int], most: int, least: int
) -> None:
    model, _ = tiny("t5")
    model.generation_config = GenerationConfig(**given)
    found = settings_of(model)
    assert (found.max_tokens, found.min_tokens, found.beams) == (most, least, 1)
