"""The extracts of the study of languages keep to their words."""

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.languages import central, covering
from precis_text.words import length_in_words

GERMAN = (
    "Am Morgen war es kalt und die Leute warteten. Die Fähre auf dem See fährt bald mit Strom und nicht mit Diesel. "
    "Der Strom für die Fähre kommt aus dem Wasser. Im Hafen gibt es einen Kiosk. Der Diesel war teuer."
)


@pytest.mark.parametrize("system", [central, covering])
@pytest.mark.parametrize("words", [3, 12, 30])
def test_an_extract_keeps_to_its_words(system: Callable[..., Any], words: int) -> None:
    text = system(GERMAN, words)
    assert text
    assert length_in_words(text) <= words
