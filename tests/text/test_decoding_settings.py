"""Decoding settings have bounds, and each bound itself is allowed."""

from typing import Any

import pytest

from precis_text.decoding_settings import GenerationSettings
from precis_text.errors import UserError


def with_(**values: Any) -> GenerationSettings:
    return GenerationSettings(**values)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("beams", 1, 128), ("no_repeat_ngram", 0, 128), ("min_tokens", 0, 32_768), ("max_tokens", 1, 32_768)],
)
def test_a_setting_may_have_its_least_and_its_largest_value_and_none_beyond(
    name: str, least: int, most: int
) -> None:
    room = {"max_tokens": most} if name == "min_tokens" else {}
    for value in (least, most):
        assert getattr(with_(**{**room, name: value}), name) == value
    for value in (least - 1, most + 1):
        with pytest.raises(UserError, match=f"^{name}={value} must be {least} to {most:,}$"):
            with_(**{**room, name: value})


def test_a_length_penalty_is_at_most_50_of_either_sign() -> None:
    for value in (-50.0, 50.0):
        assert GenerationSettings(length_penalty=value).length_penalty == value
    for value in (-50.5, 50.5, float("nan"), float("inf")):
        with pytest.raises(UserError, match="must be -50 to 50"):
            GenerationSettings(length_penalty=value)


def test_the_least_tokens_may_be_as_many_as_the_most() -> None:
    assert GenerationSettings(min_tokens=9, max_tokens=9).min_tokens == 9
    with pytest.raises(UserError, match="min_tokens=10 is more than max_tokens=9"):
        GenerationSettings(min_tokens=10, max_tokens=9)


def test_without_settings_decoding_is_greedy_and_ends_after_128_tokens() -> None:
    usual = GenerationSettings()
    assert (usual.beams, usual.length_penalty, usual.no_repeat_ngram) == (1, 1.0, 0)
    assert (usual.min_tokens, usual.max_tokens, usual.early_stopping) == (0, 128, True)
