"""A question is answered by the row of a table, in every form of a verb, or refused in the document's language."""

import math
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

import pytest

from precis_text.documents.passages import Passages
from precis_text.documents.reader import read_content
from precis_text.forms.form import FormType, ScoredText
from precis_text.forms.form_choice import Formed, formed, make_form
from precis_text.forms.question import LEAST, asked_of
from precis_text.forms.question_match import match
from precis_text.forms.table_rows import named_rows
from precis_text.length import make_length
from precis_text.units import TextUnit, extraction_units

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


def answer(document: str | Passages, question: str, kind: FormType = "paragraph") -> Formed:
    passages = document if isinstance(document, Passages) else Passages(document)
    units = extraction_units(passages.text)
    source = ScoredText(passages, units, [1] * len(units), [0.5] * len(units), 60.0)
    return formed(make_form(type=kind, about=question), source, make_length(), len)


@pytest.mark.parametrize(("content", "name"), [(MARKDOWN, "a.md"), (CSV, "a.csv"), (HTML, "a.html")])
@pytest.mark.parametrize("kind", ["paragraph", "key-points"])
def test_the_row_of_a_table_answers_with_the_names_of_its_columns(
    content: str, name: str, kind: FormType
) -> None:
    document = read_content(content.encode(), name=name)
    found = answer(document, "What does the large room cost?", kind)
    assert found.text.removeprefix("- ") == LARGE
    (line,) = found.lines
    assert document.text[line.start : line.stop] == "Large room | 40 people | 120 EUR"


def test_a_question_about_all_rows_has_all_of_them() -> None:
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
def test_a_first_row_with_values_names_no_columns(table: str, question: str, row: str) -> None:
    text = f"The club sells what it does not need. The tea is cold.\n\n{table}\n\nThe roof is old and dry."
    assert row in answer(text, question, "key-points").text.replace("- ", "").split("\n")


def test_a_price_answers_what_something_costs() -> None:
    text = "The tower is old. Entry to the tower is 4 euros. The stairs are steep. The view is wide."
    assert "Entry to the tower is 4 euros." in answer(text, "What does the tower cost?").text


REST = {
    "en": [
        "The roof is old and the door is in the garden.",
        "The children eat in the school and it is loud.",
    ],
    "it": ["Il tetto è vecchio e la porta è nel giardino.", "I bambini sono nella scuola e il cane dorme."],
    "cs": ["Dům je starý a dveře jsou ze dřeva.", "Děti jedí ve škole a je to hlučné."],
    "ru": ["Крыша старая, а дверь в саду.", "Дети обедают в школе, и там шумно."],
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
        ("es", "¿Quién recoge a la abuela?", "Yo recojo a mi abuela en la estación."),
        ("en", "How many homes will be built?", "Build 90 homes on the field."),
        ("it", "Ci sono feriti?", "Un uomo è ferito e la strada è chiusa."),
        ("cs", "Kdo opraví střechu?", "Oprava střechy je na jaře a je drahá."),
        ("ru", "Кто водит красную машину?", "Красная машина стоит у дома."),
    ],
)
def test_another_form_of_the_verb_answers(language: str, question: str, said: str) -> None:
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
def test_a_word_that_only_begins_alike_is_another_word(language: str, question: str, said: str) -> None:
    assert match(question, [*REST[language], said]).held < LEAST


@pytest.mark.parametrize(
    ("document", "question", "refusal"),
    [
        (
            " ".join(REST["de"]),
            "Was fressen Pinguine?",
            "Kein Satz hat genug Wörter mit „Was fressen Pinguine?“ gemeinsam.",
        ),
        (
            " ".join(REST["fr"]),
            "Que font les pingouins ?",
            "Aucune phrase n’a assez de mots en commun avec « Que font les pingouins ? ».",
        ),
        (
            " ".join(REST["es"]),
            "¿Qué hacen {los} pingüinos?",
            "Ninguna frase comparte suficientes palabras con «¿Qué hacen {los} pingüinos?».",
        ),
        (
            "The roof is old and the door is in the garden.",
            "What do penguins do?",
            'No sentence shares enough words with "What do penguins do?".',
        ),
    ],
)
def test_a_refusal_is_in_the_language_of_the_document(document: str, question: str, refusal: str) -> None:
    found = answer(document, question)
    assert not found.answered
    assert found.text == refusal


# ---- relevance


def of_the_paper(question: str, texts: list[str]) -> list[float]:
    """BM25 as Robertson and Zaragoza give it, with k1 = 1.2 and b = 0.75, for texts without inflections."""
    words = [text.split() for text in texts]
    mean = sum(map(len, words)) / len(words)
    found = []
    for unit in words:
        score = 0.0
        for term in set(question.split()):
            holding = sum(term in other for other in words)
            rarity = math.log(1 + (len(words) - holding + 0.5) / (holding + 0.5))
            count = unit.count(term)
            score += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(unit) / mean))
        found.append(score)
    return found


TEXTS = ["zaba zaba kiku", "moro kiku luna rano", "moro", "peka tiri suru nami", "zaba peka"]


@pytest.mark.parametrize("question", ["zaba", "kiku moro", "zaba luna peka", "tiri none"])
def test_relevance_is_that_of_the_paper_and_neighbours_share_it(question: str) -> None:
    own = of_the_paper(question, TEXTS)
    before, after = [0.0, *own[:-1]], [*own[1:], 0.0]
    expected = [a + 0.4 * b + 0.2 * c for a, b, c in zip(own, before, after, strict=True)]
    assert match(question, TEXTS).relevance == pytest.approx(expected)


def test_units_that_follow_no_other_share_nothing() -> None:
    whole, rows = match("zaba", TEXTS).relevance, match("zaba", TEXTS, [None, None, 1, 2, 3]).relevance
    assert rows[0] == whole[0]
    assert rows[1] == pytest.approx(0.0)
    assert rows[3:] == pytest.approx(whole[3:])


def test_a_question_is_held_by_the_unit_with_most_of_its_weight() -> None:
    assert match("moro kiku", TEXTS).held == pytest.approx(1.0)
    assert match("moro none", TEXTS).held == pytest.approx(
        math.log(1 + 3.5 / 2.5) / (math.log(1 + 3.5 / 2.5) + math.log(1 + 5.5 / 0.5))
    )
    assert match("none", TEXTS).held == match("zaba", []).held == match("the", TEXTS).held == 0.0
    assert match("", TEXTS).relevance == [0.0] * 5


def asked(
    texts: Sequence[str], question: str, scores: list[float] | None = None, *, between: str = " "
) -> dict[str, float] | None:
    """The units that may answer a question, with their scores; None if the document says nothing about it."""
    document = Passages(between.join(texts))
    units, start = [], 0
    for text in texts:
        units.append(TextUnit(text, start, start + len(text)))
        start += len(text) + len(between)
    found = asked_of(
        ScoredText(document, units, [1] * len(units), scores or [0.5] * len(units), 60.0), question
    )
    if found is None:
        return None
    return {unit.text: score for unit, score in zip(found.units, found.scores, strict=True) if not unit.aside}


def test_units_with_three_tenths_of_the_best_relevance_may_answer() -> None:
    found = asked(TEXTS, "zaba", [0.5, 0.0, 1.0, 0.2, 0.9])
    assert found is not None
    relevance = match("zaba", TEXTS).relevance
    best = max(relevance)
    assert [*found] == [text for text, each in zip(TEXTS, relevance, strict=True) if each >= 0.3 * best]
    assert found[TEXTS[0]] == pytest.approx(1.5 / 2)
    assert found[TEXTS[4]] == pytest.approx(relevance[4] / best * 1.9 / 2)
    in_paragraphs = asked(TEXTS, "zaba", between="\n\n")
    assert in_paragraphs is not None
    assert [*in_paragraphs] == [TEXTS[0], TEXTS[4]]
    assert asked(TEXTS, "none") is None
    assert asked(TEXTS, "zaba none none2 none3 none4 none5") is None


def test_the_unit_before_one_that_points_to_it_may_answer_too() -> None:
    texts = [
        "The harbour has an old wall of stone.",
        "It leaks.",
        "Boats turn here.",
        "That ferry rusts badly.",
    ]
    found = asked(texts, "Which ferry rusts badly?")
    assert found is not None
    assert "Boats turn here." in found
    assert "The harbour has an old wall of stone." not in found


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (
            ["Room | Size", "Hall | 12 people", "Bar | 30 people"],
            ["Room: Hall | Size: 12 people", "Room: Bar | Size: 30 people"],
        ),
        (["Room | Size", "Hall | 12 people", "Bar | 30 m"], None),  # two units of measure: a list
        (["Room | Size", "Hall | large", "Bar | small"], None),
        (["Room | 2020", "Hall | 12", "Bar | 30"], None),
        (
            ["Plan | Cost (5 y) | Wait", "K | £9m | long", "L | £8m | short"],
            ["Plan: K | Cost (5 y): £9m | Wait: long", "Plan: L | Cost (5 y): £8m | Wait: short"],
        ),
        (["Laden | Umsatz Q1 | Lage", "Ulm | 1.200 | Nord"], ["Laden: Ulm | Umsatz Q1: 1.200 | Lage: Nord"]),
        (["Room 1 | oak | old", "Room 2 | pine | new"], None),
        (["Room | Size"], None),
        (["Room | Size | Tea", "Hall | large | yes"], ["Room: Hall | Size: large | Tea: yes"]),
        (["Room | Size | Tea", "Hall | | yes"], ["Room: Hall | Tea: yes"]),
        (["Room | Size | Tea", "Hall | large"], ["Room: Hall | Size: large"]),
        (["Room | | Tea", "Hall | large | yes | 12"], ["Room: Hall | large | Tea: yes | 12"]),
    ],
)
def test_cells_are_named_by_a_first_row_without_values(rows: list[str], shown: list[str] | None) -> None:
    rows = [row.replace("| |", "|  |") for row in rows]
    document, units, start = "\n".join(rows), [], 0
    for row in rows:
        units.append(TextUnit(row, start, start + len(row), aside=True))
        start += len(row) + 1
    source = ScoredText(Passages(document), units, [1] * len(units), [0.5] * len(units), 60.0)
    assert [unit.text for unit in named_rows(source).units][1:] == (shown or rows[1:])


def test_rows_apart_are_two_tables_and_turns_with_bars_are_none() -> None:
    text = "Room | Size | Tea\nHall | large | yes\n\nBoat | Crew | Sail\nCod | two | no"
    document = Passages(text)
    units = [
        TextUnit(row, text.index(row), text.index(row) + len(row), aside=True)
        for row in text.split("\n")
        if row
    ]
    source = ScoredText(document, units, [1] * 4, [0.5] * 4, 60.0)
    shown = [unit.text for unit in named_rows(source).units]
    assert shown[1::2] == ["Room: Hall | Size: large | Tea: yes", "Boat: Cod | Crew: two | Sail: no"]
    spoken = replace(source, units=[replace(unit, speaker="Ann") for unit in units])
    assert [unit.text for unit in named_rows(spoken).units] == [unit.text for unit in units]


def test_the_answer_below_a_question_is_chosen_and_not_the_question() -> None:
    page = (
        "<details><summary>Can I cancel?</summary><p>Until May you can cancel free of charge.</p></details>"
    )
    found = read_content(
        f"<html><body>{page}<p>The boats are blue.</p></body></html>".encode(), name="a.html"
    )
    assert answer(found, "Can I cancel?").text == "Until May you can cancel free of charge."


def test_an_answer_with_letters_of_the_heading_above_it_may_be_chosen() -> None:
    page = (
        "<details><summary>Are all boats blue?</summary><p>The quay is cold.</p><p>boats blue</p></details>"
    )
    found = read_content(f"<html><body>{page}<p>It is late.</p></body></html>".encode(), name="a.html")
    units = extraction_units(found.text)
    source = ScoredText(found, units, [1] * len(units), [0.5] * len(units), 100.0)
    asked_units = asked_of(source, "Are boats blue?")
    assert asked_units is not None
    assert "boats blue" in [unit.text for unit in asked_units.units if not unit.aside]


def test_a_short_answer_is_shown_with_the_turn_that_asks() -> None:
    chat = (
        "Ann: We print. Will the flyers be ready on time?\nBob: Yes, on Friday.\n"
        "Cem: The tent of the choir leaks at the seam.\nAnn: We need the repair kit from the cellar."
    )
    assert answer(chat, "When will the flyers be ready?").text == "\n".join(chat.split("\n")[:2])


@pytest.mark.parametrize(
    ("document", "question", "told"),
    [
        (
            "Der Umzug des Lagers findet am 5. Mai statt. Alle Kisten sind schon gepackt.",
            "Wann ist der Umzug?",
            "Der Umzug",
        ),
        (
            "Le déménagement de la mairie est le 5 mai. Les cartons sont prêts.",
            "Pourquoi le déménagement ?",
            "Le déménagement",
        ),
        (
            "La mudanza de la oficina es el 5 de mayo. Las cajas ya están listas.",
            "¿Cuándo es la mudanza?",
            "La mudanza",
        ),
        ("El puente es viejo. Hay que aportar un carné. El cine es nuevo.", "¿Qué debo aportar?", "Hay que"),
        (
            "Le pont est vieux. Il faut apporter la carte. La mairie est là.",
            "Que dois-je apporter ?",
            "Il faut",
        ),
        (
            "Il teatro è vicino alla stazione. Chi viene con noi porta un panino. La strada è chiusa.",
            "Che cosa posso portare?",
            "Chi viene",
        ),
        (
            "De straat is dicht. Het werk duurt tot juni. De bakker is op het plein.",
            "Hoe lang duurt het werk?",
            "Het werk",
        ),
        (
            "A ponte é velha. As obras são longas e duram até maio. O mercado fica na praça.",
            "Quanto tempo podem durar as obras?",
            "As obras",
        ),
        ("Ulice vede k řece. Práce trvají čtyři týdny. Autobus čeká.", "Jak dlouho trvají práce?", "Práce"),
        (
            "Ulica jest długa. Prace trwają cztery tygodnie. Autobus czeka.",
            "Jak długo trwają prace?",
            "Prace",
        ),
        ("Мост старый. Работы продлятся до мая. Рынок рядом.", "Сколько продлятся работы?", "Работы"),
    ],
)
def test_the_word_that_asks_need_not_be_in_the_document(document: str, question: str, told: str) -> None:
    assert answer(document, question).text.startswith(told)


@pytest.mark.parametrize(
    ("document", "question", "answered"),
    [
        ("The band won't play outside. The hall seats ninety.", "Who won?", False),
        ("Entry to the mill ends at five. The mill is old.", "What does entry to the mill cost?", False),
        ("Entry to the mill is free. The wheel is old.", "What does entry to the mill cost?", True),
        ("You pay for entry to the mill at the door. It is old.", "What does entry to the mill cost?", True),
        (
            "Bake it for forty minutes. Cool the cake. Keep the cake cold.",
            "How long does the cake bake?",
            True,
        ),
        ("The fair was in the old hall. It rained.", "Where was the fair held?", True),
        ("Beat two eggs. Add the milk. Pour it into the tin.", "How many eggs are needed?", True),
        ("Entry to the mill is ten pounds. It is old.", "What does entry to the mill cost?", True),
        ("Entry to the mill: EUR 5. It is old.", "What does entry to the mill cost?", True),
        ("The trip takes two hours. It is cold.", "How long does it take?", True),
        ("Two eggs are needed. The cake is old.", "What is needed?", True),
        ("The boat is called Ann. It is old.", "What is it called?", True),
        ("Each stall gets 90 pounds. " + "It is cold. " * 20, "What does parking cost?", False),
    ],
)
def test_a_question_is_refused_if_the_document_lacks_what_it_asks(
    document: str, question: str, answered: bool
) -> None:
    filling = "The road bends there. Trees stand on both sides. A dog barks all day. Nobody swims in winter."
    assert answer(f"{document} {filling}", question).answered == answered


def test_the_best_answer_is_chosen_although_it_needs_its_question_to_be_understood() -> None:
    told = "They told us that the ones outlined on the page about the vulnerability are low at this point."
    passages = Passages(
        f"The release is a maintenance release with a page about the fixes. {told} It is cold."
    )
    units = extraction_units(passages.text)
    source = ScoredText(passages, units, [1] * len(units), [1.0, 0.0, 0.0], 20.0)
    found = formed(
        make_form(about="What does the page say about the vulnerability?"), source, make_length(), len
    )
    assert told in found.text


def test_an_item_of_a_list_without_a_full_stop_may_answer() -> None:
    text = "Density has three forms.\n\n- sigma is charge on a surface\n\n- rho is charge in a volume\n\nIt is old."
    assert "rho is charge in a volume" in answer(text, "What is rho?").text


def test_a_long_run_of_digits_takes_no_time() -> None:
    start = perf_counter()
    match("What does it cost?", ["1" * 4000])
    assert perf_counter() - start < 0.5


RENT = (
    "Die Miete ist am ersten Tag des Monats fällig. Der Hof wird im Mai neu gepflastert. "
    "Die Vermieterin wohnt in der Nähe. Damit beträgt die neue Kaltmiete 640 EUR. Die Tür ist alt. "
    "Bitte schicken Sie den Bogen bis zum 4. Mai an uns zurück. Das Dach wurde im Jahr davor neu gedeckt."
)


@pytest.mark.parametrize(
    ("document", "question", "told"),
    [
        (RENT, "Wie hoch ist die neue Miete?", "Damit beträgt die neue Kaltmiete 640 EUR."),
        (RENT, "Bis wann muss ich antworten?", "Bitte schicken Sie den Bogen bis zum 4. Mai an uns zurück."),
        (
            "The kiln is hot. Return the form by 4 May. The clay is wet. The shed is cold. The wheel turns.",
            "By when must I answer?",
            "Return the form by 4 May.",
        ),
        (
            "Der Endbetrag ist 90 EUR. Der Hof ist neu und die Tür ist alt. Die Rohre sind neu und die Wand ist kalt.",
            "Wie viel muss ich bezahlen?",
            "Der Endbetrag ist 90 EUR.",
        ),
        (
            "The market of the club is loud. The market of the club is on 3 May. The clay is wet. It rains.",
            "When is the market?",
            "The market of the club is on 3 May.",
        ),
        (
            "The club rents the shed. The club rents the shed for nine weeks. The clay is wet. It rains.",
            "How long is the shed rented?",
            "The club rents the shed for nine weeks.",
        ),
    ],
)
def test_a_question_for_an_amount_or_a_date_finds_it_also_in_a_compound(
    document: str, question: str, told: str
) -> None:
    units = [unit.text for unit in extraction_units(document)]
    found = match(question, units)
    assert found.held >= LEAST
    assert units[max(range(len(units)), key=lambda place: found.relevance[place])] == told


def test_a_verb_with_a_prefix_is_no_compound_and_a_deadline_of_something_else_no_answer() -> None:
    assert match("Wer zahlt die Miete?", ["Die Vermieterin ist in der Stadt.", *REST["de"]]).held == 0.0
    assert match("Bis wann werden die Pinguine gefüttert?", RENT.split(". ")).held < LEAST


@pytest.mark.parametrize("kind", ["paragraph", "minutes"])
def test_a_refusal_claims_only_that_words_were_compared_and_shows_the_closest_sentence(
    kind: FormType,
) -> None:
    text = "The pump of the mill is loud. A dog barks all day. Nobody swims in winter. Trees stand on both sides."
    found = answer(text, "Who repairs the pump on Sundays?", kind)
    assert (found.answered, found.lines) == (False, ())
    assert found.text == (
        'No sentence shares enough words with "Who repairs the pump on Sundays?". '
        "The closest sentence is: The pump of the mill is loud."
    )


def test_a_form_without_a_line_about_it_does_not_deny_the_sentence() -> None:
    text = "The pump of the mill is loud. A dog barks all day. Nobody swims in winter. Trees stand on both sides."
    found = answer(text, "the mill", "minutes")
    assert found.answered or found.text == (
        'No line of this form is about "the mill". The closest sentence is: The pump of the mill is loud.'
    )


@pytest.mark.parametrize(
    ("document", "question", "told"),
    [
        (
            "Plan K is slow. Plan L is fast. It rains. The tea is cold.",
            "What about plan K?",
            "Plan K is slow.",
        ),
        (
            "Plan 3 is slow. Plan 4 is fast. It rains. The tea is cold.",
            "What about plan 4?",
            "Plan 4 is fast.",
        ),
        (
            "Die Schließung des Bads ist im Mai. Das Dach ist alt und dicht.",
            "Wer schließt das Bad?",
            "Die Schließung",
        ),
        (
            "Das Bad wird im Mai geschlossen. Das Dach ist alt und dicht.",
            "Wer schließt das Bad?",
            "Das Bad wird",
        ),
    ],
)
def test_letters_that_name_something_and_other_forms_of_strong_verbs_are_compared(
    document: str, question: str, told: str
) -> None:
    units = [unit.text for unit in extraction_units(document)]
    found = match(question, units)
    assert found.held > 0.9
    assert units[max(range(len(units)), key=lambda place: found.relevance[place])].startswith(told)


def test_the_word_for_oneself_is_no_letter_that_names_something() -> None:
    told = ["The plan is cold and I am late.", "The plan of the kiln is old.", "It rains."]
    assert match("Can I see the kiln?", told).relevance[0] < match("Can I see the kiln?", told).relevance[1]
    assert match("Can I?", told).held == 0.0


@pytest.mark.parametrize(
    ("chat", "question", "corrected", "told"),
    [
        (
            "Ann: Hello all, when was the regatta again?\nBob: 3 May I think\n"
            "Cem: no, 3 May is the fair. They row on the 17th\n"
            "Dora: The boat shed leaks at the door.\nCem: no, that is the gutter",
            "When is the regatta?",
            "3 May I think",
            "They row on the 17th",
        ),
        (
            "Anna: Hallo, wann war noch mal die Regatta?\nBernd: am 3. Mai glaube ich\n"
            "Cem: nee, da ist der Markt. Wir rudern am 17. Mai\n"
            "Dora: Das Bootshaus ist undicht an der Tür.\nCem: nein, das ist die Rinne",
            "Wann ist die Regatta?",
            "am 3. Mai glaube ich",
            "Wir rudern am 17. Mai",
        ),
    ],
)
def test_a_message_that_corrects_an_answer_is_shown_rather_than_that_answer(
    chat: str, question: str, corrected: str, told: str
) -> None:
    found = answer(chat, question, "key-points").text
    assert told in found
    assert corrected not in answer(chat, question, "headline").text
    assert "gutter" not in found
    assert "Rinne" not in found


@pytest.mark.parametrize(
    ("page", "question", "told"),
    [
        (
            "The kiln is hot. Does it fire porcelain? Not yet. See page 9. Does it fire raku? Yes.\n\nIt is late.",
            "Does it fire porcelain?",
            "Does it fire porcelain? Not yet. See page 9.",
        ),
        (
            "Der Ofen ist heiß. Brennt er auch Porzellan? Noch nicht. Mehr dazu im Mai.\n\nEs ist spät.",
            "Brennt er Porzellan?",
            "Brennt er auch Porzellan? Noch nicht. Mehr dazu im Mai.",
        ),
    ],
)
def test_a_written_question_is_shown_with_its_answer(page: str, question: str, told: str) -> None:
    assert told in answer(page, question).text


@pytest.mark.parametrize(
    ("question", "answer_of_it"),
    [
        ("What did the fire chief want?", "The fire chief wanted wider lorries."),
        (
            "Was the ban on Elm Street approved?",
            "Ms Lee moved to ban stalls on Elm Street. Motion failed 2-4.",
        ),
    ],
)
def test_what_is_said_between_a_motion_and_its_vote_stays_and_the_vote_is_told_once(
    question: str, answer_of_it: str
) -> None:
    told = "Ms Lee moved to ban stalls on Elm Street. The fire chief wanted wider lorries. Motion failed 2-4."
    found = answer(f"Minutes\n\n{told}\n\nThe library opens at nine. The roof is dry again.", question).text
    assert answer_of_it in found
    assert found.count("Motion failed") <= 1


TASKS = """# Harbour

## Money

The crane was repaired in March. The harbour has money for one more repair.

| Item | Cost | Year |
|---|---|---|
| Crane repair | 4,000 euros | 2025 |
| New light | 900 euros | 2026 |

## Action items

| Task | Owner | Due |
|---|---|---|
| Call the bank about the crane | Ann | 3 May |
| Paint the light | Bob | 4 June |
"""


@pytest.mark.parametrize(
    ("kind", "question", "told"),
    [
        (
            "minutes",
            "Who calls the bank about the crane?",
            "Call the bank about the crane (owner: Ann; due: 3 May)",
        ),
        ("outline", "What did the crane cost?", "Money: Item: Crane repair | Cost: 4,000 euros | Year: 2025"),
        ("key-points", "What did the crane cost?", "Item: Crane repair | Cost: 4,000 euros | Year: 2025"),
    ],
)
def test_a_form_keeps_what_it_says_of_a_row(kind: FormType, question: str, told: str) -> None:
    read = read_content(TASKS.encode(), name="a.md")
    assert told in [line.shown for line in answer(read, question, kind).lines]


FAQ = "<h2>May I bring my dog?</h2><p>Dogs travel free, on a lead, on the outer deck.</p><h2>Can I charge my car?</h2>"
RECIPE = "Bake the cake for 50 minutes. Let it cool in the tin.\n\nDid you make this? Tag me, I love to see your bakes!"
MATCH = (
    "Northern League Division Two\nSaturday 12 October\nAttendance: 1,107\nReferee: M. Pashley\n\n"
    "Ray scored as the Rovers beat Tarn. Tarn hit the post twice. The Rovers play away next Saturday."
)
TRIP = (
    "The trip is in May. Please hand in the following things by Friday 26 April:\n- the health form\n"
    "- a copy of the insurance card\n- the permission to swim\n\nWe look forward to the trip."
)
LETTER = (
    "# Letter\n\nMr Ray had a stroke in March.\n\n## Actions for GP\n\n- Restart metformin in May.\n"
    "- Stop aspirin on 13 April.\n- Recheck lipids.\n\n## Follow-up\n\nThe clinic sees him in June."
)
NOTES = (
    "# Changes\n\n## 3.0.0\n\n- Crash at midnight is gone.\n- The menu is new.\n\n## 2.9.3\n\n"
    "- Fonts are loaded once.\n- A typo in the help is mended."
)
EXCLUDED = (
    "2.1 The work includes the lawns.\n2.2 The following are excluded from the contract:\n(a) tests of swings;\n"
    "(b) winter work; and\n(c) felling of trees with a trunk that is above sixty inches wide.\n"
    "2.3 The present staff of nine is expected to move.\n\n"
    "3. TENDERS\n3.1 Tenders must be sent by post. Late ones are sent back."
)
BUS = (
    "The bus stops at the market. Ms Lund leads the project. The bus is nine years old. The town has a new square. "
    "Two trees were cut there in May."
)
LAMPS = (
    "Fill the machine in the evening. The amber lamp flashes at noon.\n\n| Problem | Cause | Remedy |\n|---|---|---|\n"
    "| Cold tea | Old coal | Light it again |\n| Red lamp | No water | Fill the tank |"
)
FIRE = "Nobody was injured. The firemen pulled two slightly injured cats and a very angry parrot out of the house."


@pytest.mark.parametrize(
    ("name", "document", "question", "told"),
    [
        (
            "a.html",
            f"{FAQ}<p>No. There are two chargers on the pier at Corran.</p>",
            "Can I charge my car?",
            "No. There are two chargers on the pier at Corran.",
        ),
        (
            "a.txt",
            RECIPE,
            "How long must the cake bake?",
            "Bake the cake for 50 minutes. Let it cool in the tin.",
        ),
        ("a.txt", MATCH, "What was the attendance?", "Attendance: 1,107"),
        ("a.txt", MATCH, "Who was the referee?", "Referee: M. Pashley"),
        (
            "a.txt",
            TRIP,
            "What must we hand in by Friday?",
            "Please hand in the following things by Friday 26 April: the health form; a copy of the insurance card; "
            "the permission to swim",
        ),
        (
            "a.md",
            LETTER,
            "What should the GP do?",
            "- Restart metformin in May.\n- Stop aspirin on 13 April.\n- Recheck lipids.",
        ),
        (
            "a.md",
            NOTES,
            "What changed in 2.9.3?",
            "- Fonts are loaded once.\n- A typo in the help is mended.",
        ),
        ("a.txt", FIRE, "Was anybody injured?", FIRE),
        (
            "a.txt",
            EXCLUDED,
            "What is excluded from the contract?",
            "2.2 The following are excluded from the contract: tests of swings; winter work; "
            "felling of trees with a trunk that is above sixty inches wide.",
        ),
        (
            "a.txt",
            "Ann must bring these papers to the town hall by 3 May:\n\na) The contract.\nb) A map of the wall.\n\nBye.",
            "Which papers must Ann bring?",
            "Ann must bring these papers to the town hall by 3 May: The contract; A map of the wall.",
        ),
        (
            "a.txt",
            "The bus hit a wall in Elgin. Nobody saw it.\n\nYou might also like: Two injured at Moray",
            "Was anyone injured?",
            "",
        ),
        ("a.txt", BUS, "Where does the bus stop?", "The bus stops at the market."),
        (
            "a.txt",
            "Is parking free?\nOnly for guests of the hotel.\n\nDo you ship to Norway?\nNo. We serve Sweden.",
            "Is parking free?",
            "Is parking free?\nOnly for guests of the hotel.",
        ),
        (
            "a.txt",
            "Im Garten darf man grillen. Aber nicht im August. Die Bäume sind alt. Der Weg ist neu.",
            "Darf ich im Garten grillen?",
            "Im Garten darf man grillen. Aber nicht im August.",
        ),
        (
            "a.txt",
            "The hall is old. We lease it. The lease is 480 a month.",
            "What does the lease cost?",
            "We lease it. The lease is 480 a month.",
        ),
        (
            "a.csv",
            "Name,Grade,Room\nKim,5,12\nBen,3,14\nAnn,4,15\nLei,2,16",
            "Ben",
            "Name: Ben | Grade: 3 | Room: 14",
        ),
        (
            "a.txt",
            "You find the club at 12 Mill Road. The club has 40 members. Mary Hill founded the club in 1901.",
            "When was the club founded?",
            "Mary Hill founded the club in 1901.",
        ),
        ("a.txt", BUS, "How old is the bus?", "The bus is nine years old."),
        (
            "a.md",
            LAMPS,
            "What do I do if the red lamp flashes?",
            "The amber lamp flashes at noon.\nProblem: Red lamp | Cause: No water | Remedy: Fill the tank",
        ),
        (
            "a.txt",
            "Stadt senkt den Strompreis und der Gaspreis steigt\n\nDie Stadt Ulm senkt den Preis für Licht. "
            "Der Rat ist froh.",
            "Steigt der Gaspreis?",
            "Stadt senkt den Strompreis und der Gaspreis steigt\nDie Stadt Ulm senkt den Preis für Licht.",
        ),
        ("a.txt", "Ci sono i soldi. Mancano le firme per il ponte.", "Quanti morti ci sono stati?", ""),
    ],
)
def test_what_a_page_a_list_or_a_label_says_answers(
    name: str, document: str, question: str, told: str
) -> None:
    found = answer(read_content(document.encode(), name=name), question)
    assert (found.text if found.answered else "") == told


def units_asked(document: str, question: str) -> list[str]:
    """The units that may answer a question."""
    units = extraction_units(document)
    found = asked_of(
        ScoredText(Passages(document), units, [1] * len(units), [0.5] * len(units), 60.0), question
    )
    return [unit.text for unit in found.units if not unit.aside] if found else []


def test_a_list_is_one_unit_with_what_announces_it_and_a_long_one_is_not() -> None:
    head, items = "Bring these things on the trip:", ["- the form", "- a copy of the card", "- a towel"]
    document = f"{head}\n" + "\n".join(items) + "\n\nThe bus is late."
    assert units_asked(document, "What do we bring on the trip?") == [
        f"{head} the form; a copy of the card; a towel"
    ]
    long = "\n".join([head, *(f"- a towel of {n} feet" for n in range(15))])
    assert units_asked(long, "What do we bring on the trip?")[0] == head


def test_a_question_on_the_line_of_its_answer_is_one_unit_with_two_sentences() -> None:
    document = "The mill is old. Who feeds the ducks? Ann does. She is ten. It rained.\nThe wheel turns."
    assert units_asked(document, "Who feeds the ducks?") == ["Who feeds the ducks? Ann does. She is ten."]
    assert units_asked("The mill is old. Who feeds the ducks?", "Who feeds the ducks?") == [
        "Who feeds the ducks?"
    ]


def test_a_short_answer_below_its_question_is_one_unit_with_the_next_sentence() -> None:
    document = "May I feed the ducks?\n\nNo. They eat grass. It rained.\n\nThe mill is old."
    assert units_asked(document, "May I feed the ducks?")[1:] == ["No. They eat grass."]
    document = "May I feed the ducks?\n\nThey eat grass only. It rained.\n\nThe mill is old."
    assert units_asked(document, "May I feed the ducks?")[1:] == ["They eat grass only.", "It rained."]


@pytest.mark.parametrize(
    ("document", "question", "told"),
    [
        ("Trains leave at 8.15. The fare is high.", "Which trains leave at 8:15?", "Trains leave at 8.15."),
        (
            "The court ruled on 3.10.2023. The fine is high.",
            "What happened on 3.10.?",
            "The court ruled on 3.10.2023.",
        ),
        (
            "Section 4.2.1 forbids dogs. Cats enter.",
            "What does section 4.2 forbid?",
            "Section 4.2.1 forbids dogs.",
        ),
    ],
)
def test_times_and_parts_of_sections_are_found(document: str, question: str, told: str) -> None:
    assert answer(document, question).text.startswith(told)


def test_a_long_list_takes_no_time() -> None:
    listed = "Items:\n" + "\n".join(f"- item {i} is about topic {i % 7}" for i in range(1500))
    units = extraction_units(listed)
    start = perf_counter()
    asked_of(ScoredText(Passages(listed), units, [1] * len(units), [0.5] * len(units), 60.0), "topic 3")
    assert perf_counter() - start < 2.0


def test_in_a_talk_who_asks_may_decide_and_a_turn_continues() -> None:
    talk = (
        "Ann: The clerks for the spring sale. Do we hire four clerks or six?\nBob: Last year four were too few.\n"
        "Ann: Then six. I call them.\nBob: The gutter leaks.\nAnn: The tent is torn."
    )
    found = " ".join(units_asked(talk, "How many clerks do we hire?"))
    assert "Then six." in found
    assert "torn" not in found
    talk = (
        "Ann: The roof leaks, you know. I have three offers. The best one is 900 euros from Ray.\n"
        "Bob: The lamp is broken.\nCem: What does that cost?\nAnn: No idea, 20 euros maybe."
    )
    assert "900 euros from Ray" in answer(talk, "What does the roof cost?", "headline").text
