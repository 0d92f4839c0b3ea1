"""The settings of a checkpoint are read, and those that a search cannot use are refused."""

from dataclasses import replace
from typing import Any

import pytest
from transformers import GenerationConfig

from precis.generation.generation_settings import (
    _check_ids,
    _check_rules,
    control_tokens,
    generation_config,
    limit_decoding,
    settings_of,
)
from precis_text.decoding_settings import GenerationSettings
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
        ("encoder_no_repeat_ngram_size", 0, None),
        ("top_k", 0, None),
        ("top_p", 0.0, None),
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


def test_a_greedy_search_has_no_rules_of_beams() -> None:
    model, tokenizer = tiny("bart")
    asked = GenerationSettings(beams=2, length_penalty=2.0, early_stopping=True, min_tokens=3, max_tokens=9)
    for beams, rules in ((2, (2, 2.0, True)), (1, (1, None, False))):
        found = generation_config(replace(asked, beams=beams), model, tokenizer)
        assert (found.num_beams, found.length_penalty, found.early_stopping) == rules
        assert (found.min_new_tokens, found.max_new_tokens, found.do_sample) == (3, 9, False)
    model.generation_config = GenerationConfig(num_beams=2, early_stopping=False)
    assert settings_of(model).early_stopping is False
    model.generation_config = GenerationConfig(num_beams=1, early_stopping=False)
    assert settings_of(model).early_stopping is GenerationSettings().early_stopping is True


def test_only_models_of_ours_are_kept_from_writing_control_tokens() -> None:
    for kind, is_kept in (("zcodepp", True), ("bart", False)):
        model, tokenizer = tiny(kind)
        found = generation_config(GenerationSettings(), model, tokenizer)
        assert bool(found.suppress_tokens) == is_kept
        control = control_tokens(tokenizer)
        assert tokenizer.eos_token_id not in control
        assert {tokenizer.pad_token_id, tokenizer.unk_token_id} < {*control}


def test_settings_without_effect_are_dropped_and_only_those_that_are_on_are_named() -> None:
    model, _ = tiny("bart")
    model.generation_config = GenerationConfig(
        num_beams=2, guidance_scale=3.0, output_scores=False, use_cache=False, renormalize_logits=True
    )
    assert limit_decoding(model) == ["guidance_scale"]
    found = model.generation_config
    assert (found.guidance_scale, found.use_cache, found.renormalize_logits) == (
        GenerationConfig().guidance_scale,
        False,
        True,
    )
    model.generation_config = None
    assert limit_decoding(model) == []
