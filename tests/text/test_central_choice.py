"""The scores without a model: headings and asides have none, and each of the three reasons raises a score."""

from precis_text.central_choice import central_scores, scores_in_language
from precis_text.units import extraction_units

GERMAN = """Die Fähre auf dem See

Am Morgen war es kalt und die Leute warteten. Die Fähre auf dem See fährt bald mit Strom und nicht mit Diesel.
Der Strom für die Fähre kommt aus dem Wasser. Im Hafen gibt es einen Kiosk. Der Diesel war teuer."""


def scores(document: str) -> dict[str, float]:
    units = extraction_units(document)
    return {unit.text: score for unit, score in zip(units, central_scores(units), strict=True)}


def test_a_heading_has_no_worth_and_the_title_and_the_shared_words_raise_it() -> None:
    found = scores(GERMAN)
    assert found["Die Fähre auf dem See"] == 0
    assert found["Der Strom für die Fähre kommt aus dem Wasser."] > found["Im Hafen gibt es einen Kiosk."]
    plain = scores(GERMAN.partition("\n\n")[2])
    sentence = "Die Fähre auf dem See fährt bald mit Strom und nicht mit Diesel."
    assert found[sentence] > plain[sentence]


def test_of_equal_sentences_the_first_is_worth_most() -> None:
    words = ["rot", "grün", "blau", "gelb"]
    found = [*scores(" ".join(f"Ein {word}es Haus steht." for word in words)).values()]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1]


ENGLISH = "The mill turns on Friday. The council closed the old bridge, and the ferry carries the people."
RUSSIAN = "Мельница работает в пятницу. Совет закрыл старый мост, и паром перевозит людей через реку."


def test_a_scorer_is_used_for_its_languages_and_one_of_several_for_their_scripts() -> None:
    for text, languages, is_used in (
        (ENGLISH, (), True), (RUSSIAN, (), True), (ENGLISH, ("en",), True), (RUSSIAN, ("en",), False),
        (RUSSIAN, ("en", "de"), False), (RUSSIAN, ("en", "ru"), True), (ENGLISH, ("de", "fr"), True),
    ):  # fmt: skip
        units = extraction_units(text)
        scores = [0.1 + place for place in range(len(units))]
        assert (scores_in_language(units, scores, languages) == scores) is is_used, (text, languages)
        assert is_used or scores_in_language(units, scores, languages) == central_scores(units)
