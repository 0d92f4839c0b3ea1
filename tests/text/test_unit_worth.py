"""A unit that a reader cannot use alone is worth less than its score, a decision more."""

from dataclasses import replace

import pytest

from precis_text.cohesion import formalities, holed, is_formal
from precis_text.exchanges import is_courtesy, questions_of_answers
from precis_text.partners import Partners
from precis_text.unit_worth import read_worth, worths
from precis_text.units import TextUnit, extraction_units
from precis_text.words import length_in_words


def worth(units: list[TextUnit], *, longer: float = 1.0) -> list[float]:
    sizes = [length_in_words(unit.text) for unit in units]
    return worths(units, [1.0] * len(units), sizes, Partners.of(units), longer=longer)


def of_message(message: str, *, longer: float = 1.0) -> float:
    document = (
        f"Ann: The old pump of the village costs money.\nBen: {message}\nAnn: The new wall is dry and high."
    )
    return worth(extraction_units(document), longer=longer)[1]


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("The pump lifts water from the well.", "Yeah, okay, that is really great, you know."),
        ("The pump lifts water from the well.", "The pump lifts water from the well and"),
        ("The pump lifts water from the well.", "The pump lifts [inaudible] from the well."),
        ("The pump lifts water from the well.", "The pump lifts."),
        ("We decided that the pump lifts water.", "We know that the pump lifts water."),
        ("We know that the pump lifts water.", "Yeah."),
        ("We know that the pump lifts water.", "The meeting is about a pump that lifts water."),
    ],
)
def test_a_message_is_worth_less_if_it_says_little(better: str, worse: str) -> None:
    assert of_message(better) > of_message(worse)


def test_a_sentence_without_its_formula_or_about_a_section_is_worth_less() -> None:
    text = "With , the wall of the harbour rises, and the water falls. This section describes the wall of the harbour. "
    whole = "The wall of the harbour rises, and the water falls, too. "
    assert worth(extraction_units(text + 6 * whole))[:3] == [0.1, 0.3, 1.0]


@pytest.mark.parametrize(
    ("text", "has_hole"),
    [
        ("The wall rises and falls with the water, as shown in .", True),
        ("The wall that rises with the water is depicted in.", True),
        ("As described previously by, the wall of the harbour rises.", True),
        ("The API library for provides the height of the wall.", True),
        ("The method of was used to find the height of the wall.", True),
        ("We change the wall in the to match the harbour of the town.", True),
        ("The wall of of the harbour rises with the water.", True),
        ("The steps show how to raise walls in the.", True),
        ("The wall rose by <dig> metres, and the water by <dig> metres.", True),
        ("The wall rises with @xmath0 in the harbour of the town.", True),
        ("The wall rises, as the reports say of it in <cit>.", True),
        ("The wall they wait for is in the harbour that we live in.", False),
        ("The wall to wait for is what they asked for, and rely on.", False),
        ("The wall asked for is to be found in the harbour.", False),
        ("The wall of the harbour is shown in red, and found by all.", False),
        ("The wall rose in the in vivo study of the to-do list.", False),
        ("The man most thought of was made of stone.", False),
        ("The harbour Ann spoke of is where the ships come in, too.", False),
        ("Is this the wall that they were looking for?", False),
    ],
)
def test_a_sentence_that_lost_a_name_a_source_or_a_number_has_a_hole(text: str, has_hole: bool) -> None:
    assert holed(extraction_units(f"{text}\n\nThe wall is dry.")) == [has_hole, False]
    custom = "\n\nThe wall , too , is dry , and high , and old ."
    assert holed(extraction_units(text + custom))[0] is has_hole


def test_a_space_before_each_comma_is_no_hole() -> None:
    text = "The wall of the harbour rises , and the water falls . The wall of the town is high , too ."
    assert worth(extraction_units(text)) == [1.0, 1.0]


@pytest.mark.parametrize(
    ("longer", "expected"), [(0.5, 1.0), (4.0, 1.0), (9.0, (4 / 6) ** 2), (16.0, 0.25), (100.0, 0.25)]
)
def test_the_longer_a_conversation_the_more_a_message_has_to_say(longer: float, expected: float) -> None:
    four = "The pump lifts water slowly."
    assert of_message(four, longer=longer) == pytest.approx(expected)
    eight = "The pump lifts clean water slowly through seven green pipes."
    assert of_message(eight, longer=longer) == 1.0


@pytest.mark.parametrize(
    ("chair", "factor"),
    [
        ("Let's move on to the next item, the pump and the wall of the well.", 0.1),
        ("We'll see the next item, the pump and the wall of the well.", 0.5),
    ],
)
def test_who_leads_through_a_meeting_decides_nothing_and_says_little(chair: str, factor: float) -> None:
    assert of_message(chair) == factor * of_message(
        "They talk about the next item, the pump and the wall of the well."
    )
    assert of_message("Let's buy the pump and the wall of the well.") > of_message(chair)


@pytest.mark.parametrize(
    "said",
    [
        "The minutes of the last meeting were approved and signed.",
        "Lectura y aprobación del acta de la junta anterior.",
        "Das Protokoll vom 13. Februar wird einstimmig genehmigt.",
        "Le procès-verbal de la dernière séance est approuvé.",
        "Frau Vogt begrüßt die Anwesenden und stellt die Beschlussfähigkeit fest.",
        "More work on the pumps is needed in the village.",
        "Last week we looked at the wells of the village.",
        "Pump Hall Ltd is an equal opportunities employer.",
        "We welcome applications from all sections of the community regardless of age, gender or race.",
        "This release contains forward-looking statements that involve risks and uncertainties.",
        "Actual results may differ materially from our plans.",
        "Dafür danken wir Ihnen herzlich.",
        "Hope you're well, and thanks again for coming to the well - we all liked it.",
        "Thank you for your interest in our well and for the time you gave us on 20 May.",
        "Wir danken Ihnen für Ihr Interesse an unserer Pumpe und für die Zeit.",
        "Nous vous remercions de l'intérêt que vous portez à notre pompe.",
        "Nous faisons suite à la lettre que vous nous avez adressée le 4 mai.",
        "Le agradecemos su interés en la bomba.",
        "La ringraziamo per l'interesse dimostrato verso la pompa.",
        "Si ya ha pagado la bomba, no tenga en cuenta este escrito.",
        "See my answers below in blue.",
        "Minutes of the Board Meeting held on Tuesday 14 May at 6 pm in the hall.",
        "Apologies were received from Ann Lund.",
        "Ann Lund declared an interest in item 2 and left the room for that item.",
        "Frau Vogt begrüßt die Eltern und stellt die Tagesordnung vor.",
    ],
)
def test_what_all_texts_of_a_kind_say_is_worth_next_to_nothing(said: str) -> None:
    assert worth(extraction_units(f"{said} The pump lifts water from the well."))[0] == 0.03


@pytest.mark.parametrize(
    "said",
    [
        "Ms. Ray moved, seconded by Mr. Po, to approve the budget of the pumps.",
        "Herr Vogt eröffnet die Versammlung nicht.",
        "Er stellt fest, dass nicht fristgerecht eingeladen wurde.",
        "Die Gemeinde schließt die Lücke, die Versammlung dankt.",
        "The minutes of the bank's meeting show that all agreed to raise the rate.",
        "The minutes of the last meeting were not approved.",
        "The minutes of the last meeting were approved with the correction that the rent is 400 pounds.",
        "Das Protokoll der letzten Sitzung wird nicht genehmigt.",
        "Le procès-verbal de la séance n'est pas approuvé.",
        "Der Verband begrüßt die Mitgliedschaft der Schweiz.",
        "Frau Vogt begrüßt die Anwesenden und berichtet, dass der Vertrag gekündigt wurde.",
        "The pump halves the work, but further research on the wells is needed.",
        "No further work on the pumps is needed in the village.",
        "More work on the roof is needed and costs 40,000 pounds.",
        "Additional work is required to be agreed in writing by the client.",
        "Last week we discussed the merger and decided to close the shop in Leeds.",
        "Last month we finished the bridge and opened it to all.",
        "The court found that Pump Hall is an equal opportunities employer.",
        "Pump Hall is not an equal opportunities employer.",
        "Pump Hall is an equal opportunities employer, but it paid women 12 percent less.",
        "We welcome applications from engineers until May.",
        "This release contains forward-looking statements on 12 pumps and a loss of 3 million.",
        "Dafür danken wir Ihnen herzlich, und die Pumpe kostet 420 Euro.",
        "Last week we learned that the maker of the pump is bankrupt.",
        "Hope you're well, and I can offer you the pump for 20 pounds.",
        "I hope you are good enough to win.",
        "Thank you for your letter, but the pump will be closed.",
        "Thank you for your payment of 300 pounds.",
        "Vielen Dank für Ihr Schreiben, leider ist die Pumpe verkauft.",
        "Nous vous remercions de nous retourner l'accord avant le 12 mai.",
        "Nous faisons suite à votre lettre et vous confirmons la vente.",
        "La ringraziamo per l'interesse, ma la pompa è venduta.",
        "Apologies were received from the bank, and the fine was dropped; it paid 300 pounds.",
        "Der Minister begrüßt die Elternzeit für Väter.",
        "If you have already paid, please send us the receipt.",
        "Thank you for your application for the post, which was not successful on this occasion.",
        "Vielen Dank für Ihre Anfrage, die Pumpe ist schon an Herrn Hill vermietet.",
        "Die Ministerin begrüßt die Mitarbeiter und stellt den Plan zur Schließung des Werks vor.",
        "Minutes of the secret meeting held in Olm show that the company knew of it.",
    ],
)
def test_a_sentence_like_a_formality_that_says_more_keeps_its_worth(said: str) -> None:
    units = extraction_units(f"{said} The pump lifts water from the well. {SESSION[0]} {SESSION[2]}")
    assert not formalities(units)[0]
    assert not is_formal(units[0])


@pytest.mark.parametrize(
    "news",
    [
        "I am sorry to tell you that we chose a pump.",
        "We are delighted to say that we offer you a pump.",
        "Leider müssen wir Ihnen mitteilen, dass die Pumpe steht.",
        "Siamo tuttavia spiacenti di comunicarLe la fine della pompa.",
        "Nous avons le regret de vous informer de la fin de la pompe.",
    ],
)
def test_what_a_letter_is_for_is_worth_more_than_the_rest_of_it(news: str) -> None:
    told = f"The pump lifts water from the well. {news} The well is deep and old."
    units = extraction_units(f"Dear Ann,\n\n{told}")
    found = worths(units, [0.0, 1.0, 0.1, 1.0], [2, 9, 9, 9], Partners.of(units), longer=4.0)
    assert found[1:] == [1.0, 1.4, 1.0]
    assert worth(extraction_units(told))[1] <= 1.0  # no letter
    assert worth(extraction_units(f"Dear Ann,\n\n{told.replace(news, f'“{news}”')}"))[2] <= 1.0  # a quotation
    said = extraction_units(f"Ann: {news}\nBen: The pump lifts water from the well.\nAnn: The well is deep.")
    assert worth(said)[0] <= 1.0


@pytest.mark.parametrize("said", ["She is sorry to tell him that.", "I am happy to help.", "We are sorry."])
def test_other_feelings_are_worth_what_they_were(said: str) -> None:
    assert worth(extraction_units(f"{said} The pump lifts water from the well."))[0] <= 1.0


@pytest.mark.parametrize("tag", ["And the pump ?", "Or water?", "So the wall?"])
def test_a_tag_question_is_worth_next_to_nothing(tag: str) -> None:
    assert of_message(tag) == pytest.approx(0.03 * of_message(tag.replace("?", ".")))


@pytest.mark.parametrize("asked", ["Dinner at the pump?", "And who built the pump?"])
def test_a_question_without_its_answer_is_worth_a_third(asked: str) -> None:
    assert of_message(asked) == pytest.approx(0.3 * of_message(asked.replace("?", ".")))


def test_a_line_without_an_end_is_worth_less_where_sentences_end() -> None:
    prose = "The pump lifts water. The wall keeps it in. The well is deep. "
    units = extraction_units(f"{prose}\nFor Ann and Ben of the club were\n- For Ann and Ben of the club")
    assert worth(units) == [0.3, 1.0, 0.3, 0.5, 1.0]


def test_these_samples_of_another_sentence_are_worth_less_than_named_ones() -> None:
    document = "We found that these samples fell. We found that samples of water fell in our well."
    assert worth(extraction_units(document)) == [0.5, 1.0]


def test_a_short_answer_without_its_question_is_worth_three_tenths() -> None:
    chat = "Ann: Did they close the old mill?\nBen: Not yet, they said to everybody.\nAnn: The wheel turns."
    answer = extraction_units(chat)[1]
    alone = worth([answer])[0]
    assert worth(extraction_units(chat))[1] == pytest.approx(0.3 * alone)
    assert alone > 0


def test_what_readers_understand_counts_less_in_a_short_summary_of_prose() -> None:
    def worth(asked_words: float, *, is_spoken: bool = False, share: float = 0.5) -> float:
        return read_worth(0.8, share, asked_words=asked_words, is_spoken=is_spoken)

    assert (worth(49), worth(50), worth(49, is_spoken=True)) == (0.2, 0.05, 0.05)
    assert worth(49, share=1.0) == 0.8


@pytest.mark.parametrize(("words", "taken"), [(3, True), (29, True), (30, True), (31, False), (60, False)])
def test_a_question_of_more_than_30_words_is_not_taken_with_its_answer(words: int, taken: bool) -> None:
    asked = "Did " + "really " * (words - 3) + "they close?"
    units = extraction_units(f"Ann: {asked}\nBen: Yes. We decided to close the mill on Monday.\nAnn: Good.")
    assert len(units[0].text.removeprefix("Ann: ").split()) == words
    assert questions_of_answers(units) == ({1: 0} if taken else {})


@pytest.mark.parametrize(
    ("answer", "taken"),
    [
        ("We agreed to close the mill on Monday.", False),  # 8 words
        ("We agreed to close it on Monday.", True),
        ("Yes, we agreed to close the mill on Monday.", True),
        ("Yes. Was it agreed to close?", False),
        ("The mill turns slowly.", False),
        ("Okay, thanks!", False),
    ],
)
def test_only_a_short_or_dependent_decision_of_another_speaker_needs_its_question(
    answer: str, taken: bool
) -> None:
    found = []
    for speaker in ("Ben", "Ann"):
        document = (
            f"Ann: The mill is old.\nAnn: What of the mill?\n{speaker}: {answer}\nBen: Fine by us all then."
        )
        found.append(questions_of_answers(extraction_units(document)).get(2))
    assert found == [1 if taken else None, None]


@pytest.mark.parametrize(
    ("message", "courtesy"),
    [
        ("Thanks!", True),
        ("okay " * 8, True),
        ("okay " * 9, False),
        ("Thanks for the pump.", False),
        ("!!", False),
    ],
)
def test_a_courtesy_has_at_most_8_words_that_all_greet_thank_or_agree(message: str, courtesy: bool) -> None:
    unit = extraction_units(f"Ann: {message.strip()}\nBen: It is new.")[0]
    assert is_courtesy(unit) == courtesy


def test_a_sentence_of_what_was_done_and_a_piece_of_a_message_are_worth_less() -> None:
    text = "To test the new pump, the water of the well was measured. The pump lifts the water of the well to the wall."
    assert worth(extraction_units(text)) == [0.3, 1.0]
    talk = "".join(f"Ann: The pump lifts the water of well {number}.\n" for number in range(24))
    said = worth(extraction_units(f"{talk}Ben: It does.\nAnn: and lifts the water of the old well.\n"))
    assert said[-1] < 0.5 * said[0]


def test_a_motion_whose_vote_is_told_is_worth_half_of_the_best_sentence() -> None:
    text = "THE PUMPS OF THE VILLAGE\n\nThe pump lifts water from it. Ms. Ray moved to buy a second pump for the well. "
    end = (
        "Motion failed 2-4. Mr. Po moved to adjourn. Motion carried 6-0. The meeting was adjourned at 9 p.m."
    )
    units = extraction_units(text + end)
    sizes = [length_in_words(unit.text) for unit in units]
    found = worths(units, [1.0, 0.8, *5 * [0.01]], sizes, Partners(votes={2: 3, 4: 5}), longer=1.0)
    assert found[2] == 0.4
    assert max(found[3:]) <= 0.01


SESSION = (
    "Mayor Holt called the regular meeting to order at 7 p.m. and thanked all.",
    "Ms. Ray moved, seconded by Mr. Po, to approve the agenda as presented.",
    "There being no further business, the meeting was adjourned at 9:43 p.m.",
    "There being no further business the meeting closed at 8.05 pm.",
    "Herr Vogt eröffnet die Versammlung um 19.30 Uhr und begrüßt alle.",
    "Er stellt fest, dass fristgerecht eingeladen wurde.",
    "La séance est levée à 21 heures.",
    "En Murcia, siendo las 19:30 horas del día 12 de marzo, se reúnen los propietarios de la casa.",
    "Y no habiendo más asuntos, se levanta la sesión a las 21:10 horas, de lo que doy fe.",
)


@pytest.mark.parametrize("said", SESSION)
def test_what_opens_or_closes_a_meeting_is_a_formality_next_to_another_one(said: str) -> None:
    pump = "The pump lifts water from the well."
    assert formalities(extraction_units(f"{said} {pump}")) == [False, False]
    assert formalities(extraction_units(f"{said} {pump} {SESSION[0]}")) == [True, False, True]


def test_a_short_answer_keeps_its_worth_and_a_short_question_does_not() -> None:
    said = [replace(unit, answers=True) for unit in extraction_units("Who was hurt?\n\nNobody was hurt.")]
    question, answer = worth(said)
    assert answer == 1.0
    assert question < 0.01
