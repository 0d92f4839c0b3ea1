"""Speech without full stops and commas is divided where a clause may begin."""

import pytest

from precis_text.units import extraction_units

TALKS = {
    "en": "okay so good morning everyone today we look at the old harbour crane it was built by the town in nineteen "
    "fifty and then it lifted grain for forty years but the wheel broke last winter because of the frost so the board "
    "wants a new one from the north and that's expensive now the question is who pays for it",
    "de": "also guten morgen heute geht es um den alten kran am hafen der kran wurde von der stadt gebaut und dann hat "
    "er vierzig jahre lang getreide gehoben aber das rad ist im letzten winter gebrochen deshalb will der rat einen "
    "neuen kran aus dem norden kaufen und das ist teuer jetzt ist die frage wer ihn bezahlt",
    "fr": "alors bonjour à tous on parle de la vieille grue du port elle a été construite par la ville et puis elle a "
    "levé du grain pendant quarante ans mais la roue a cassé cet hiver donc le conseil veut une nouvelle grue du nord "
    "et ça coûte cher maintenant la question est de savoir qui va la payer pour nous",
    "es": "bueno buenos días hoy hablamos de la vieja grúa del puerto la grúa fue construida por la ciudad y luego "
    "levantó grano durante cuarenta años pero la rueda se rompió este invierno entonces el consejo quiere una nueva "
    "grúa del norte y eso es muy caro ahora la pregunta es quién la paga para todos",
}
OPENINGS = {
    "en": {"and then", "but the", "now the", "so the"},
    "de": {"und dann", "aber das", "deshalb will"},
    "fr": {"et puis", "mais la", "donc le", "maintenant la"},
    "es": {"y luego", "pero la", "entonces el", "ahora la"},
}


@pytest.mark.parametrize("language", TALKS)
def test_it_is_divided_before_words_that_open_a_thought(language: str) -> None:
    units = extraction_units(TALKS[language])
    begins = {" ".join(unit.text.split()[:2]) for unit in units[1:]}
    assert len(begins & OPENINGS[language]) >= 2
    assert all(7 <= len(unit.text.split()) <= 40 for unit in units)
    assert " ".join(TALKS[language][unit.start : unit.stop] for unit in units) == TALKS[language]


def test_a_long_turn_without_marks_is_divided_and_keeps_its_speaker() -> None:
    said = f"Ann: {TALKS['en']}\nBob: the town should pay for it\nAnn: that is what i think"
    units = extraction_units(said)
    assert len(units) > 4
    assert [unit.speaker for unit in units] == ["Ann"] * (len(units) - 2) + ["Bob", "Ann"]
    assert units[1].start == said.index(units[1].text)


@pytest.mark.parametrize(
    "text",
    [
        f"{TALKS['en']}, which is a lot. It is late.",  # marks
        " ".join(TALKS["en"].split()[:40]),  # short enough
        "xu li ".join(["mo ta ke ni"] * 30),  # no known language
        TALKS["en"].replace("crane", "crane ,").replace("frost", "frost ."),  # marks behind a space
    ],
)
def test_other_text_is_not_divided(text: str) -> None:
    assert len(extraction_units(text)) <= 2
