"""A question is answered by the row of a table, in every form of a verb, or refused in the document's language."""

import pytest

from precis_text.documents.passages import Passages
from precis_text.documents.reader import read_content
from precis_text.forms.form import ScoredText
from precis_text.forms.form_choice import formed, make_form
from precis_text.forms.question import LEAST, match
from precis_text.length import make_length
from precis_text.units import extraction_units

MARKDOWN = """# Hire of rooms

Our house has three rooms for hire. Tea is made in the kitchen on the ground floor.

| Room | Size | Price per day |
|---|---|---|
| Small room | 12 people | 45 EUR |
| Large room | 40 people | 120 EUR |
| Cellar | 25 people | 60 EUR |

Please call us in the morning. The caretaker hands out the keys.
"""
CSV = "Room,Size,Price per day\nSmall room,12 people,45 EUR\nLarge room,40 people,120 EUR\nCellar,25 people,60 EUR\n"
CELLS = [line.split(",") for line in CSV.splitlines()]
ROWS = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in CELLS)
HTML = f"<html><body><h1>Rooms</h1><p>We hire rooms to clubs.</p><table>{ROWS}</table></body></html>"
LARGE = "Room: Large room | Size: 40 people | Price per day: 120 EUR"


def answer(document, question, kind="paragraph"):
    passages = document if isinstance(document, Passages) else Passages(document)
    units = extraction_units(passages.text)
    source = ScoredText(passages, units, [1] * len(units), [0.5] * len(units), 60.0)
    return formed(make_form(type=kind, about=question), source, make_length(), len)


@pytest.mark.parametrize(("content", "name"), [(MARKDOWN, "a.md"), (CSV, "a.csv"), (HTML, "a.html")])
@pytest.mark.parametrize("kind", ["paragraph", "key-points"])
def test_the_row_of_a_table_answers_with_the_names_of_its_columns(content, name, kind):
    document = read_content(content.encode(), name=name)
    found = answer(document, "What does the large room cost?", kind)
    assert found.text.removeprefix("- ") == LARGE
    (line,) = found.lines
    assert document.text[line.start : line.stop] == "Large room | 40 people | 120 EUR"


def test_a_question_about_all_rows_has_all_of_them():
    found = answer(
        read_content(MARKDOWN.encode(), name="a.md"), "What do the rooms cost per day?", "key-points"
    )
    rows = [line.shown for line in found.lines if line.shown.startswith("Room: ")]
    assert [row.rpartition(": ")[2] for row in rows][:2] == ["45 EUR", "120 EUR"]


@pytest.mark.parametrize(
    ("table", "question", "row"),
    [
        (
            "Contact | Ann Lee\nPhone | 123 456\nOpening hours | 9 to 5",
            "What is the phone?",
            "Phone | 123 456",
        ),
        (
            "Item | Price\nChair | 20 EUR\nTable | 50 EUR",
            "What does a table cost?",
            "Item: Table | Price: 50 EUR",
        ),
        ("Chair | 20 EUR | oak\nTable | 50 EUR | pine", "What does a table cost?", "Table | 50 EUR | pine"),
    ],
)
def test_a_first_row_with_values_names_no_columns(table, question, row):
    text = f"The club sells what it does not need. The tea is cold.\n\n{table}\n\nThe roof is old and dry."
    assert row in answer(text, question, "key-points").text.replace("- ", "").split("\n")


def test_a_price_answers_what_something_costs():
    text = "The tower is old. Entry to the tower is 4 euros. The stairs are steep. The view is wide."
    assert "Entry to the tower is 4 euros." in answer(text, "What does the tower cost?").text


REST = {
    "fr": [
        "Les enfants mangent dans la cantine de l'école.",
        "Le toit est vieux et la porte est dans le jardin.",
    ],
    "de": ["Die Kinder essen in der Kantine und es ist laut.", "Das Dach ist alt und die Tür ist im Garten."],
    "es": [
        "Los niños comen en la escuela y es tarde.",
        "El techo es viejo y la puerta está en el jardín de la casa.",
    ],
}


@pytest.mark.parametrize(
    ("language", "question", "said"),
    [
        ("fr", "Qui décidera ?", "Les parents décident de la couleur avec le conseil."),
        ("fr", "Combien coûteront les bateaux ?", "Les nouveaux bateaux coûtent deux millions."),
        ("de", "Wer öffnet das Tor?", "Das Tor wird von der Wache um acht Uhr geöffnet."),
        ("de", "Wer bezahlt die Brücke?", "Die Stadt und das Land müssen die Brücke bezahlen."),
        ("de", "Was wurde gebaut?", "Die Stadt baut mit dem Land eine Brücke."),
        ("es", "¿Quién contará los votos?", "La secretaria cuenta los votos en la sala."),
    ],
)
def test_another_form_of_the_verb_answers(language, question, said):
    found = match(question, [*REST[language], said, *REST[language]])
    assert found.held >= LEAST
    assert max(range(5), key=lambda place: found.relevance[place]) == 2


@pytest.mark.parametrize(
    ("language", "question", "said"),
    [
        ("fr", "Qui porte le chapeau ?", "Le portail est dans la rue de la gare."),
        ("de", "Wer handelt mit Obst?", "Die Handlung ist in der Stadt und spielt im Herbst."),
        ("es", "¿Quién canta?", "El cántaro es de la casa de los padres."),
    ],
)
def test_a_word_that_only_begins_alike_is_another_word(language, question, said):
    assert match(question, [*REST[language], said]).held < LEAST


@pytest.mark.parametrize(
    ("document", "question", "refusal"),
    [
        (
            " ".join(REST["de"]),
            "Was fressen Pinguine?",
            "Das Dokument sagt nichts zu „Was fressen Pinguine?“.",
        ),
        (
            " ".join(REST["fr"]),
            "Que font les pingouins ?",
            "Le document ne dit rien sur « Que font les pingouins ? ».",
        ),
        (
            " ".join(REST["es"]),
            "¿Qué hacen {los} pingüinos?",
            "El documento no dice nada sobre «¿Qué hacen {los} pingüinos?».",
        ),
        (
            "The roof is old and the door is in the garden.",
            "What do penguins do?",
            'The document says nothing about "What do penguins do?".',
        ),
    ],
)
def test_a_refusal_is_in_the_language_of_the_document(document, question, refusal):
    found = answer(document, question)
    assert not found.answered
    assert found.text == refusal
