"""Key points grow with the document, unless a length is requested."""

from typing import Any

import pytest

from precis_text.documents.passages import Passages
from precis_text.forms.form import ScoredText
from precis_text.forms.form_choice import formed, make_form
from precis_text.length import make_length
from precis_text.units import extraction_units

NAMES = [
    "Ann",
    "Bert",
    "Cem",
    "Dora",
    "Emil",
    "Fay",
    "Gus",
    "Hana",
    "Ivo",
    "Jana",
    "Kurt",
    "Lou",
    "Mia",
    "Nils",
    "Olga",
]
THINGS = ["apples", "bolts", "chairs", "drums", "eggs", "forks", "gates", "hats", "irons", "jars", "kites"]


def document(sentences: int) -> str:
    made = []
    for number in range(sentences):
        name, thing = NAMES[number % len(NAMES)], THINGS[number % len(THINGS)]
        made.append(
            f"{name} brought {number} {thing} to shed {number * 7 % 1000} near gate {number * 3 % 1000}."
        )
    return " ".join(made)


def points(text: str, words: float = 30.0, **options: Any) -> int:
    units = extraction_units(text)
    scores = [1 / (1 + place) for place in range(len(units))]
    source = ScoredText(Passages(text), units, [1] * len(units), scores, words)
    lengths = (
        {"words": options["most"]}
        if "most" in options
        else {n: v for n, v in options.items() if n != "about"}
    )
    form = make_form(type="key-points", about=options.get("about"))
    return len(formed(form, source, make_length(**lengths), len).lines)


@pytest.mark.parametrize(("sentences", "fewest"), [(12, 3), (60, 5), (300, 7), (1200, 9)])
def test_a_longer_document_has_more_points(sentences: int, fewest: int) -> None:
    assert fewest <= points(document(sentences)) <= fewest + 1


def test_a_requested_length_decides() -> None:
    text = document(300)
    assert points(text, most=20) <= 2
    assert points(text, sentences=2) == 2
    assert points(text, about="What did Ann bring to shed 112?") < 7


def test_a_scorer_that_expects_more_gets_more() -> None:
    assert points(document(60), words=200.0) > 9
