"""Minutes find what short sentences, notes and other languages say, and take nothing else for it."""

import re
from importlib.resources import files
from itertools import pairwise

import pytest

from precis_text.documents.passages import Passages
from precis_text.documents.reader import read_content
from precis_text.forms.form import ScoredText
from precis_text.forms.form_choice import Formed, formed, make_form
from precis_text.forms.minutes import PARTS
from precis_text.forms.outline import Section, section_line
from precis_text.language import language_of
from precis_text.length import make_length
from precis_text.units import extraction_units


def minutes(document: str | Passages) -> Formed:
    passages = document if isinstance(document, Passages) else Passages(document)
    units = extraction_units(passages.text)
    source = ScoredText(passages, units, [1] * len(units), [0.5] * len(units), 100.0)
    return formed(make_form(type="minutes"), source, make_length(), len)


def lines(document: str | Passages, part: str) -> list[str]:
    return [line.shown for line in minutes(document).lines if line.part == part]


def parts_of(
    said: str, *, before: str = "Ann: The tea is cold.", after: str = "Cem: Hm, the tea."
) -> list[str]:
    return [line.part for line in minutes(f"{before}\n{said}\n{after}").lines if line.part != "topics"]


ENGLISH = "Ann: The tea in the kitchen is cold and the cake is gone."
GERMAN = "Anna: Der Tee in der Küche ist kalt und die Kekse sind alle."
FRENCH = "Anne: Le thé dans la cuisine est froid et les gâteaux sont finis."
SPANISH = "Ana: El té de la cocina está frío y las galletas se han terminado."


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (ENGLISH, "Bob: Okay, agreed, 250 invitations."),
        (ENGLISH, "Bob: agreed, garden"),
        (ENGLISH, "Bob: We'll put the chairs in the hall."),
        (ENGLISH, "Bob: We'll reschedule the workshop."),
        (ENGLISH, "Bob: Let's approve the budget."),
        (ENGLISH, "Bob: OK, we'll go ahead and order the chairs."),
        (ENGLISH, "Bob: Good, we'll bring forward the deadline to March."),
        (ENGLISH, "Bob: Let us meet on Monday at nine."),
        (ENGLISH, "Bob: Let's raise it to 30 euros."),
        (ENGLISH, "Bob: Let's do the barbecue on Saturday."),
        (ENGLISH, "Bob: OK, it stays at ten euros then."),
        (ENGLISH, "Bob: We'll drop the link to the old shop."),
        (ENGLISH, "Bob: We'll send the old boat to the yard."),
        (ENGLISH, "Bob: Fine, black stands then."),
        (ENGLISH, "Bob: ok garden it is."),
        (ENGLISH, "Bob: Okay, so we're going with the sixteenth."),
        (ENGLISH, "Bob: The launch is moved to 2 April."),
        (ENGLISH, "Bob: All right, then seven from May on."),
        (ENGLISH, "Bob: Okay, on Friday at the station."),
        (ENGLISH, "Bob: We'll now order the green chairs."),
        (ENGLISH, "Bob: Let's do both."),
        (ENGLISH, "Bob: OK, we'll do it that way."),
        (ENGLISH, "Bob: We will omit the second door."),
        (ENGLISH, "Bob: lets say 8pm until midnight"),
        (ENGLISH, "Bob: OK so we turn off the heating."),
        (ENGLISH, "Bob: OK garden it is 👍 Bring a torch"),
        (GERMAN, "Bernd: Der Umzug wird auf den 1. Juli verschoben."),
        (GERMAN, "Bernd: Passt, um 10 am Bahnhof"),
        (FRENCH, "Bruno: OK, samedi devant la gare."),
        (SPANISH, "Berta: Vale, a las dos en la plaza"),
        (GERMAN, "Bernd: Okay, einverstanden, 250 Einladungen."),
        (GERMAN, "Bernd: Ok, also Zug um 10:15"),
        (GERMAN, "Bernd: Wir nehmen die Goethestraße."),
        (FRENCH, "Bruno: D'accord, 250 invitations."),
        (SPANISH, "Berta: De acuerdo, 250 invitaciones."),
        (SPANISH, "Berta: Entonces alquilamos la carpa grande."),
        (GERMAN, "Bernd: Die Eltern einigen sich darauf, den Chat zu schließen."),
        (GERMAN, "Bernd: Die Eltern stimmen der Fahrt mit 20 Stimmen bei 2 Enthaltungen zu."),
        (
            GERMAN,
            "Bernd: Frau Lund wird mit 9 Stimmen zur Kassenwartin gewählt, Herr Ott ist Stellvertreter.",
        ),
        (FRENCH, "Bruno: Bon, on retient Batirenov pour 84 000 euros."),
        (FRENCH, "Bruno: On résilie le contrat."),
        (SPANISH, "Berta: Bueno, pues vamos a hacer la campaña en abril."),
        (SPANISH, "Berta: Vale, pues La Huerta."),
    ],
)
def test_a_short_sentence_carries_a_decision(before: str, said: str) -> None:
    assert parts_of(said, before=before) == ["decisions"]


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (ENGLISH, "Bob: Agreed, thanks."),
        (ENGLISH, "Bob: Agreed, but who pays?"),
        (ENGLISH, "Bob: Okay, see you then."),
        (ENGLISH, "Bob: Okay, talk to you then."),
        (ENGLISH, "Bob: Okay, let's think about it."),
        (ENGLISH, "Bob: Okay, agreed?"),
        (ENGLISH, "Bob: Okay, on the fence, I got two quotes."),
        (ENGLISH, "Bob: We moved to 16 Elm Street."),
        (GERMAN, "Bernd: Gut, dann danke."),
        (FRENCH, "Bruno: D'accord, merci."),
        (FRENCH, "Bruno: D'accord, on en parle demain."),
        (SPANISH, "Berta: De acuerdo, gracias."),
        (GERMAN, "Bernd: Die Eltern stimmen zum Teil mit uns überein."),
        (GERMAN, "Bernd: Mein Vorrat stimmt zum Glück."),
        (GERMAN, "Bernd: Wir müssen uns noch einigen."),
        (FRENCH, "Bruno: On annule souvent des cours en hiver."),
        (FRENCH, "Bruno: On retient que le toit est vieux."),
        (SPANISH, "Berta: Vale, pues mañana hablamos."),
        (SPANISH, "Berta: Vamos a hacer una pausa."),
        (SPANISH, "Berta: Vamos a hacer la ronda de siempre."),
    ],
)
def test_an_answer_of_courtesy_is_no_decision(before: str, said: str) -> None:
    assert "decisions" not in parts_of(said, before=before, after="")


@pytest.mark.parametrize(
    "said",
    [
        "We will now go to Ms. Vale.",
        "We'll continue with the second list.",
        "We will remember those who built the hall.",
        "We'll pause for a second.",
        "We'll get back to you on Monday.",
        "We'll take a short break.",
        "We'll move on to the garden.",
        "We will keep working with the villages.",
        "We'll stumble upon some problems.",
        "Let's take a short break.",
        "Let's try and keep to the time.",
        "Let's suppose that the roof holds.",
        "Let's go to the cooks and hear them.",
        "Let us take the fishing industry.",
        "Let's take the simple case of two boats.",
        "So let's go for lunch then.",
        "We'll keep this in mind.",
        "So we will close this meeting.",
        "That is the plan that we're going to use.",
        "So that is where it is.",
        "So it's well outside the budget then.",
        "As we agreed, the boat has a sail.",
        "Because they chose another way, the boat sank.",
        "Either we do it twice, or we simply adopt the old plan.",
        "The owner lets us use the yard.",
        "The boxes were carried up to the loft.",
        "It's basically what we agreed upon.",
        "She told me that they decided to give her a horse.",
        "Garden parties have been cancelled all over the country.",
    ],
)
def test_what_a_chair_a_speech_or_a_story_says_decides_nothing(said: str) -> None:
    assert "decisions" not in parts_of(f"Bob: {said}")


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ("After a debate it was resolved by four votes to none, with one abstention, to buy the mill.", 1),
        ("The recommendation of 2.7 per cent was then carried.", 1),
        ("It was further agreed to defer the painting of the stairs.", 1),
        ("An amendment to £50 was proposed by Mr Lund and carried by 21 votes to 12.", 1),
        ("The motion to exclude is denied.", 1),
        ("The objection was overruled by three votes to two.", 1),
        ("When the motion is denied, the case goes on.", 0),
        ("The appeal was dismissed in the end, he told us.", 0),
        ("The argument was resolved to the joy of all.", 0),
    ],
)
def test_resolutions_and_rulings_are_decisions(said: str, parts: int) -> None:
    assert lines(f"Minutes of the board\n\n{said}", "decisions") == [said] * parts


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (ENGLISH, "Bob: We did not agree on the colour."),
        (GERMAN, "Bernd: Über die Farbe haben wir uns nicht geeinigt."),
        (GERMAN, "Bernd: Offen ist, wer das Dach bezahlt."),
        (FRENCH, "Bruno: Nous n'avons pas décidé de la couleur des chaises."),
        (SPANISH, "Berta: No hemos acordado el color de las sillas."),
    ],
)
def test_what_is_not_agreed_is_an_open_question(before: str, said: str) -> None:
    assert parts_of(said, before=before) == ["questions"]


@pytest.mark.parametrize("said", ["I didn't agree to that, but fine.", "Well, we didn't agree on that."])
def test_a_protest_is_no_open_question(said: str) -> None:
    assert parts_of(f"Bob: {said}") == []


def test_a_proposal_that_the_reply_objects_to_is_no_decision() -> None:
    assert not parts_of(
        "Bob: Let's take the cheaper one.", after="Cem: I'd rather wait, their work was poor."
    )
    assert parts_of("Bob: Let's take the cheaper one.", after="Cem: Good.") == ["decisions"]


def test_a_yes_after_a_decision_word_agrees_to_the_proposal() -> None:
    meeting = "Ann: Should we buy the pump?\nBob: Yes.\nCem: Yes, agreed.\nAnn: Good, carried."
    assert lines(meeting, "decisions") == ["[turn 1] Ann: Should we buy the pump? (agreed: Cem)"]


@pytest.mark.parametrize(
    ("before", "said", "label"),
    [
        (ENGLISH, "Bob: The next meeting is on Thursday 4 May at ten.", "Next meeting"),
        (ENGLISH, "Bob: We meet again on 9 June at 18:30.", "Next meeting"),
        (ENGLISH, "Bob: And you and I meet on Friday at ten, with the plans.", "Next meeting"),
        (GERMAN, "Bernd: Die nächste Sitzung ist am Donnerstag um zehn Uhr.", "Nächster Termin"),
        (GERMAN, "Bernd: Der nächste Elternabend findet am 6. Februar statt.", "Nächster Termin"),
        (FRENCH, "Bruno: La prochaine réunion aura lieu le jeudi 4 mai à dix heures.", "Prochaine réunion"),
        (SPANISH, "Berta: La próxima reunión es el jueves 4 de mayo a las diez.", "Próxima reunión"),
    ],
)
def test_the_date_of_the_next_meeting_has_a_part_of_its_own(before: str, said: str, label: str) -> None:
    made = minutes(f"{before}\n{said}")
    assert [line.part for line in made.lines if line.part != "topics"] == ["next"]
    assert f"{label}\n- " in made.text


def test_a_heading_says_that_a_date_is_that_of_the_next_meeting() -> None:
    notes = b"# Team\n\n## Office\n\n- Holt will ask the landlord.\n\n## Next meeting\n\n22 March, 10:00, room 4.\n"
    assert lines(read_content(notes, name="notes.md"), "next") == ["22 March, 10:00, room 4."]


@pytest.mark.parametrize(
    ("said", "is_action"),
    [
        ("Then let me ask two readers today.", True),
        ("Let me prepare a pull request for that.", True),
        ("Let me ask you about the boats.", False),
        ("If not, I will close this ticket.", False),
        ("I will explain it to the board by Friday.", True),
        ("I will explain it to you on the way.", False),
        ("I'll walk the new members through the mill on Friday.", True),
        ("Let me see the plan.", False),
        ("People will think that they have missed something.", False),
        ("We'll put a link to the study in the show notes.", True),
        ("We will add all the links in the description.", True),
        ("We will also share the links.", True),
        ("We'll send you the slides on Monday.", True),
        ("You'll have the offer by tomorrow noon.", True),
        ("You'll have the day off on Friday.", False),
        ("You'll get it on your screen.", False),
        ("I'll have the soup by the window.", False),
        ("I'll go over the figures by Friday.", True),
        ("I'll go over the figures.", False),
        ("I'll briefly describe the plan.", False),
        ("I'm going to talk about the plan.", False),
        ("I'll hand over to Cem.", False),
        ("I'll explain the plan.", False),
        ("I will remind you of the rules.", False),
        ("I'll give it a two.", False),
        ("I'll start off with the boats.", False),
        ("I don't know what I'm gonna write about.", False),
        ("I'll drive myself, from Glossop.", False),
        ("You take it, otherwise I'll just pick one.", False),
    ],
)
def test_what_a_speaker_offers_to_do_is_an_action(said: str, is_action: bool) -> None:
    assert parts_of(f"Bob: {said}", before=ENGLISH) == (["actions"] if is_action else [])


@pytest.mark.parametrize(
    "said",
    [
        "Bob: We will decide that at the next meeting.",
        "Bob: Is the next meeting on Thursday?",
        "Bob: The next meeting will be long.",
        "Bob: We meet on Fridays as a rule.",
    ],
)
def test_a_next_meeting_without_a_date_is_not_told(said: str) -> None:
    assert "next" not in parts_of(said)


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (ENGLISH, "Bob: The shops on Market Street stay open until nine."),
        (ENGLISH, "Bob: The library remains open during the works."),
        (ENGLISH, "Bob: The office is still open."),
        (ENGLISH, "Bob: Registration is open."),
        (GERMAN, "Bernd: Die Geschäfte in der Marktstraße bleiben bis 21 Uhr offen."),
        (GERMAN, "Bernd: Das Fenster ist noch offen."),
        (FRENCH, "Bruno: Les magasins restent ouverts jusqu'à 21 heures."),
        (SPANISH, "Berta: Las tiendas están abiertas hasta las nueve."),
    ],
)
def test_an_open_shop_is_no_open_question(before: str, said: str) -> None:
    assert parts_of(said, before=before) == []


def test_an_open_question_beside_open_hours_stays_one() -> None:
    said = "Bob: The price is still open; the museum shop stays open until six in any case."
    assert parts_of(said) == ["questions"]


@pytest.mark.parametrize(
    ("before", "said", "after"),
    [
        (ENGLISH, "Bob: Who pays for it?", "Cem: The church might help, but nothing is settled."),
        (ENGLISH, "Bob: Who pays for it?", "Cem: Next item, the chairs."),
        (ENGLISH, "Bob: who's picking up grandma?", "Cem: Bob can you bring a speaker?"),
        (ENGLISH, "Bob: And when do we send it out?", "Cem: That is it for today."),
        (ENGLISH, "Bob: Who pays?", ""),
        (ENGLISH, "Bob: The price is still open, Ann will ask the bank.", "Cem: Hm."),
        (ENGLISH, "Bob: Does it handle old accounts?", "Cem: I honestly don't know."),
        (ENGLISH, "Bob: Is the bridge safe?", "Cem: Okay, no idea."),
        (ENGLISH, "Bob: Who looks after the bridge? 🙂", "Cem: Yes. No idea."),
        (ENGLISH, "Bob: Who talks to the press?", "Cem: Nobody yet. We leave that open."),
        (GERMAN, "Bernd: Und wer kümmert sich um die Möbel?", "Cem: Das klären wir nächste Woche."),
        (FRENCH, "Bruno: Qui paie la musique ?", "Cem: On décidera plus tard."),
        (SPANISH, "Berta: ¿Quién paga la música?", "Cem: Lo vemos otro día."),
    ],
)
def test_a_short_question_that_nobody_answers_is_open(before: str, said: str, after: str) -> None:
    assert parts_of(said, before=before, after=after) == ["questions"]


@pytest.mark.parametrize(
    ("said", "after"),
    [
        ("Bob: How many copies do we print?", "Cem: 400, same as last time."),
        ("Bob: When do we meet?", "Cem: At ten at the station?"),
        ("Bob: How are you?", ""),
        ("Bob: Are there any complaints about the page?", "Cem: Nothing yet."),
        ("Bob: Should I close the ticket?", "Cem: No, leave it open until Friday."),
        ("Bob: Who brings the chairs?", "Cem: When is it?\nBob: On Sunday.\nCem: Then I bring the chairs."),
        ("Bob: Are the bridges safe?", "Cem: Mostly, yes. But nobody knows it for a third of them."),
        ("Bob: May I interrupt you?", "Cem: I don't know."),
        ("Bob: Mr. Lund?", "Cem: I don't know."),
        ("Bob: The court found for him, and they did not agree.", "Cem: Hm."),
    ],
)
def test_a_question_that_is_answered_is_not_open(said: str, after: str) -> None:
    assert "questions" not in parts_of(said, after=after)


def test_a_question_on_a_line_of_notes_is_open() -> None:
    notes = read_content(
        b"# Office\n\n- The lease ends in August.\n- Do we extend it?\n- Paint the door.\n", name="n.md"
    )
    assert lines(notes, "questions") == ["Do we extend it?"]


@pytest.mark.parametrize(
    ("before", "said", "owner"),
    [
        (ENGLISH, "Bob: Ms Weber will ask the bank.", "Ms Weber"),
        (ENGLISH, "Bob: Rosa asked whether the town could pay; Will is to write to the council.", "Will"),
        (ENGLISH, "Bob: Mr. Finch will fit it before Easter.", "Mr. Finch"),
        (ENGLISH, "Bob: Mr. Okafor takes care of the insurance.", "Mr. Okafor"),
        (ENGLISH, "Bob: Weber to update the imprint by Friday.", "Weber"),
        (ENGLISH, "Bob: I'm ordering the cake from the baker.", "Bob"),
        (ENGLISH, "Bob: And I order the chairs on Monday.", "Bob"),
        (GERMAN, "Bernd: Weber übernimmt die Plakate.", "Weber"),
        (GERMAN, "Bernd: Herr Weber macht das bis Freitag.", "Herr Weber"),
        (GERMAN, "Bernd: Frau Schulz wird die Versicherung anrufen.", "Frau Schulz"),
        (GERMAN, "Bernd: Ich bringe den Kuchen mit", "Bernd"),
        (FRENCH, "Bruno: M. Martin va vérifier le contrat.", "M. Martin"),
        (FRENCH, "Bruno: Je m'occupe des affiches avant vendredi.", "Bruno"),
        (SPANISH, "Berta: El señor Gómez va a revisar el seguro.", "señor Gómez"),
        (ENGLISH, "Bob: And please everybody send me your hours by Thursday.\nCem: Will do.", "everybody"),
        (ENGLISH, "Bob: Everyone, please sign the list by Thursday.", "Everyone"),
        (ENGLISH, "Bob: Can all of you bring a chair?\nCem: Sure.", "all of you"),
        (GERMAN, "Bernd: Und bitte alle bis Donnerstag die Zahlen prüfen.", "alle"),
        (FRENCH, "Bruno: Merci à tous de m'envoyer vos heures avant jeudi.", "tous"),
        (SPANISH, "Berta: Por favor, todos envíen sus horas antes del jueves.", "todos"),
    ],
)
def test_a_person_named_by_the_surname_owns_the_action(before: str, said: str, owner: str) -> None:
    assert [line.owner for line in minutes(f"{before}\n{said}").lines if line.part == "actions"] == [owner]


@pytest.mark.parametrize(
    ("said", "owner"),
    [
        ("ACTION: Fiona Craig to bring the list.", "Fiona Craig"),
        ("ACTION: Tess Byrne and Ivo Wood to visit the mill.", "Tess Byrne and Ivo Wood"),
        ("Ivo Wood will write to all tenants.", "Ivo Wood"),
        ("On Monday Ivo will write to all tenants.", "Ivo"),
        ("Tonight Ivo will write to all tenants.", "Ivo"),
        ("In London Ivo will write to all tenants.", "Ivo"),
        ("Hopefully Ivo will write to all tenants.", "Ivo"),
        ("ACTION: Ask Ivo to write to all tenants.", ""),
        ("The board met. Tess and Ivo will write to all tenants.", "Tess and Ivo"),
        ("The Chief Executive will seek a guarantee.", "Chief Executive"),
        ("The Head of Finance will seek a guarantee.", "Head of Finance"),
        ("The deputy clerk will write to all tenants.", "The deputy clerk"),
        ("LF to put up a notice at the gate.", "LF"),
    ],
)
def test_an_owner_has_the_whole_name_or_role(said: str, owner: str) -> None:
    (line,) = [line for line in minutes(f"Minutes of the board\n\n{said}").lines if line.part == "actions"]
    assert line.owner == owner


@pytest.mark.parametrize(
    "said",
    [
        "Attempts to call the mill failed.",
        "Ways to put it.",
        "Half of Canada will join us.",
        "The Welsh Government will take a different view.",
    ],
)
def test_a_thing_or_a_country_owns_no_action(said: str) -> None:
    assert not lines(f"Minutes of the board\n\n{said}", "actions")


def test_an_owner_who_speaks_has_the_name_of_the_speaker() -> None:
    meeting = "Mr Okafor: The account is empty.\nAnn: Okafor will ask the bank.\nMr Okafor: Hm."
    assert [line.owner for line in minutes(meeting).lines if line.part == "actions"] == ["Mr Okafor"]


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (ENGLISH, "Bob: Tickets will cost more next year."),
        (ENGLISH, "Bob: Monday will suit everybody."),
        (ENGLISH, "Bob: Please welcome Ann, everybody."),
        (ENGLISH, "Bob: Can everyone read the slide?\nCem: Yes."),
        (ENGLISH, "Bob: Can everybody make it on Tuesday?"),
        (ENGLISH, "Bob: Please, everybody, let's not shout."),
        (ENGLISH, "Bob: Could all of you please review the draft?\nCem: No, we can't."),
        (GERMAN, "Bernd: Ich bitte alle noch um Geduld bei der Heizung."),
        (GERMAN, "Bernd: Wir freuen uns, dass bitte alle noch Kuchen haben."),
        (FRENCH, "Bruno: Merci à tous de votre présence."),
        (FRENCH, "Bruno: Merci à tous de m'avoir aidé."),
        (ENGLISH, "Bob: I wonder if everyone read it, please."),
        (ENGLISH, "Bob: Did everyone read the draft?"),
        (GERMAN, "Bernd: Alle bis auf Anna haben es gelesen."),
        (GERMAN, "Bernd: Das Dach wird im Mai repariert."),
        (GERMAN, "Bernd: Das muss noch jemand prüfen."),
        (GERMAN, "Bernd: Die Frau von der Stadt wird am Montag kommen."),
        (GERMAN, "Bernd: Man muss die Tür reparieren."),
    ],
)
def test_a_thing_owns_no_action(before: str, said: str) -> None:
    assert "actions" not in parts_of(said, before=before, after="")


def test_a_request_that_is_declined_belongs_to_who_does_it() -> None:
    asked = "Ann: Bob, can you get a third quote?\nBob: I can't this week, sorry."
    assert lines(asked, "actions") == []
    assert lines(f"{asked}\nCem: I'll do it then.", "actions") == [
        "[turn 1] Ann: Bob, can you get a third quote? (owner: Cem)"
    ]


def test_a_request_to_tell_others_is_an_action() -> None:
    asked = "Ann: Bob, can you tell the staff?\nBob: Yes, I'll talk to them on Monday."
    assert lines(asked, "actions") == [
        "[turn 1] Ann: Bob, can you tell the staff? (owner: Bob; due: on Monday)"
    ]


TABLES = """# Minutes

## Decisions

| # | Decision |
|---|---|
| D1 | The roof is repaired in June. |

## Actions

| No. | Action | Owner | Due | Status |
|---|---|---|---|---|
| 1 | Order the tiles. Two sorts. | Bob Day | 20 May | open |
| 2 | Ask the town | Ann Lee | 1 June | done |

- [ ] Send the offer
- [x] Pay the plumber, as Bob will call him

## Next meeting

9 June 2026, 19:00 in the library
"""
PLAIN = """Board meeting, 3 March 2026

1. Roof
The roof leaks above the stage. Three firms sent offers to the board.
Decision: The firm Holt repairs the roof in June.
Action: Bob to order the tiles by 20 May.

Actions
[x] Ann: pay the plumber
[ ] Bob: send the offer to the treasurer
\u2611 Sweep the hall
\u2610 Paint the door

Task | Who | By when
Book the band | Cem Kaya | 15 June
"""


def test_tables_and_boxes_of_written_minutes_have_owners_and_dates() -> None:
    passages = read_content(TABLES.encode(), name="a.md")
    assert lines(passages, "decisions") == ["The roof is repaired in June."]
    assert lines(passages, "actions") == [
        "Order the tiles. Two sorts. (owner: Bob Day; due: 20 May)", "Send the offer",
    ]  # fmt: skip
    assert lines(passages, "next") == ["9 June 2026, 19:00 in the library"]
    order = minutes(passages).lines[1]
    assert passages.text[order.start : order.stop].startswith("1 | Order the tiles.")


def test_boxes_labels_and_tables_of_minutes_in_plain_text() -> None:
    assert lines(PLAIN, "decisions") == ["Decision: The firm Holt repairs the roof in June."]
    assert lines(PLAIN, "actions") == [
        "Action: Bob to order the tiles by 20 May. (owner: Bob; due: by 20 May)",
        "Bob: send the offer to the treasurer",
        "Paint the door",
        "Book the band (owner: Cem Kaya; due: 15 June)",
    ]


def test_a_table_without_a_row_of_names_keeps_its_first_row_below_the_heading_of_a_part() -> None:
    found = lines("Actions\n\n- Paint the door\n\nWash the curtains | Ann\nSweep | Bob\n", "actions")
    assert found == ["Paint the door", "Wash the curtains", "Sweep"]


def test_other_tables_and_bars_in_speech_are_no_rows_of_minutes() -> None:
    table = "The fee rose again this year.\n\nYear | Fee\n2024 | 30\n2025 | 35\n"
    assert {line.part for line in minutes(table).lines} == {"topics"}
    said = "Ann: We decided on tea | coffee.\nBob: Good.\nAnn: And we go home at noon."
    assert lines(said, "decisions") == ["[turn 1] Ann: We decided on tea | coffee."]


def test_short_minutes_have_the_language_of_their_headings() -> None:
    notes = b"# Protokoll\n\n## Aufgaben\n\n| Was | Wer | Bis |\n|---|---|---|\n| Ziegel bestellen | Bernd | Mai |\n"
    found = minutes(read_content(notes, name="a.md"))
    assert found.text == "Aufgaben\n- Ziegel bestellen (zust\u00e4ndig: Bernd; Termin: Mai)"


def test_who_agrees_to_a_decision_agrees_to_nothing_before_it() -> None:
    talk = (
        "Ann: If the cook can't, let's order from the bakery.\nBob: We agreed last year that we never do that.\n"
        "Ann: Right. Then we drop the warm lunch on Sunday.\nCem: Agreed.\n"
        "Bob: The next meeting is on the ninth of June."
    )
    assert lines(talk, "decisions") == ["[turn 3] Ann: Then we drop the warm lunch on Sunday."]
    assert lines(talk, "next") == ["[turn 5] Bob: The next meeting is on the ninth of June."]


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        ("please send me the list by Friday", "sure"),
        ("pls send me the list by Friday", "k"),
        ("Bob, plz send me the list by Friday", "np, will do"),
        ("Bob, u send me the list pls, by Friday", "yup"),
        ("can u send me the list by Friday?", "kk"),
        ("could u pls send me the list by Friday", "yes"),
        ("send me the list by Friday pls!", "on it"),
        ("@bob send me the list by Friday, please", "ok"),
    ],
)
def test_requests_of_chats_are_actions_as_written_ones_are(asked: str, reply: str) -> None:
    chat = f"Ann: hi all\nAnn: {asked}\nBob: {reply}\nAnn: it rains a lot here"
    (action,) = [line for line in minutes(chat).lines if line.part == "actions"]
    assert asked in action.shown
    assert (action.owner, action.due) == ("Bob", "by Friday")


@pytest.mark.parametrize("said", ["can u hear me?", "black pls", "pls", "she found it hard to please"])
def test_a_test_of_the_line_or_a_wish_of_a_chat_is_no_action(said: str) -> None:
    assert minutes(f"Ann: hi all\nAnn: {said}\nBob: sure\nAnn: it rains here").text.find("Actions") < 0


@pytest.mark.parametrize(
    ("asked", "is_task"),
    [
        ("Bob, can your team paint the wall?", True),
        ("How would you paint the wall?", False),
        ("Bob, you painted the wall?", False),
        ("So, you can still paint the wall.", False),
        ("Well, you can you can paint the wall.", False),
        ("Would you like to paint the wall?", False),
        ("Can you go to the next wall?", False),
        ("Can you give the committee an assurance about the wall?", False),
    ],
)
def test_a_question_about_what_was_or_would_be_done_is_no_request(asked: str, is_task: bool) -> None:
    said = f"Ann: {asked}\nBob: Yes.\nAnn: The tea is cold."
    assert lines(said, "actions") == [f"[turn 1] Ann: {asked} (owner: Bob)"] * is_task


@pytest.mark.parametrize(
    ("asked", "answer", "due"),
    [
        ("Bernd, du sagst dem Dachdecker zu?", "Mach ich, gleich morgen.", "morgen"),
        ("Und Bernd, du kümmerst dich bitte um das Dach.", "Das kriege ich hin, bis Mai.", "bis Mai"),
        ("Kann jemand die Kinder mitnehmen?", "Klar, ich nehm sie mit.", ""),
        ("Bernd, du hast das Dach gesehen?", "Ja, klar.", None),
        ("Kann mich jemand hören?", "Ja, klar.", None),
        ("Kann jemand von euch schwimmen?", "Ja, klar.", None),
        (
            "Bernd, kannst du den Bericht bis Freitag schicken?",
            "Ja, ich schicke den Bericht morgen.",
            "morgen",
        ),
    ],
)
def test_a_spoken_request_in_german_meets_its_answer(asked: str, answer: str, due: str | None) -> None:
    told = f"zuständig: Bernd; Termin: {due}" if due else "zuständig: Bernd"
    found = [] if due is None else [f"[Beitrag 2] Anna: {asked} ({told})"]
    assert lines(f"{GERMAN}\nAnna: {asked}\nBernd: {answer}", "actions") == found


@pytest.mark.parametrize(
    ("said", "due"),
    [
        ("Please pay Dev by the end of January.", "by the end of January"),
        ("Vote by next Sunday please, otherwise I'll just pick one.", "by next Sunday"),
        ("Please pay Dev.", ""),
        ("Please hold your questions until the end of the day.", ""),
        ("Could you please pay Dev by Sunday?", ""),
    ],
)
def test_a_dated_request_to_a_group_is_an_action_of_nobody(said: str, due: str) -> None:
    group = f"{ENGLISH}\nBob: {said}\nCem: The hall is cold."
    assert lines(group, "actions") == ([f"[turn 2] Bob: {said} (due: {due})"] if due else [])
    assert lines(group.replace("Cem:", "Cem: No, I can't."), "actions") == []
    assert lines(group.replace("Cem", "Ann"), "actions") == []  # two persons ask each other


def test_a_wish_is_no_request() -> None:
    assert parts_of("Bob: Black, please.", after="Cem: Yes.") == []


@pytest.mark.parametrize(
    ("meeting", "told"),
    [
        (f"{GERMAN}\nBernd: Ich kümmere mich bis Freitag um die Musik.",
         "[Beitrag 2] Bernd: Ich kümmere mich bis Freitag um die Musik. (zuständig: Bernd; Termin: bis Freitag)"),
        (f"{FRENCH}\nBruno: Je m'occupe des affiches avant vendredi.",
         "[intervention 2] Bruno: Je m'occupe des affiches avant vendredi. "
         "(responsable: Bruno; échéance: avant vendredi)"),
        (f"{SPANISH}\nBerta: Me encargo de los carteles antes del viernes.",
         "[intervención 2] Berta: Me encargo de los carteles antes del viernes. "
         "(responsable: Berta; plazo: antes del viernes)"),
    ],
)  # fmt: skip
def test_owner_date_and_turn_are_told_in_the_language_of_the_document(meeting: str, told: str) -> None:
    assert lines(meeting, "actions") == [told]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Il ponte è vecchio e la strada è chiusa da maggio per i lavori.", "Temi"),
        ("De brug is oud en de weg is dicht tot mei voor het werk van de stad.", "Onderwerpen"),
        ("A ponte é velha e a rua está fechada até maio para as obras da cidade.", "Temas"),
        ("Most jest stary i droga nie jest otwarta do maja, bo są na niej prace.", "Tematy"),
        ("Most je starý a silnice je zavřená do května, protože se na ní pracuje.", "Témata"),
        ("Мост старый, и дорога закрыта до мая, потому что её ремонтируют.", "Темы"),
    ],
)
def test_languages_without_patterns_have_their_labels(text: str, label: str) -> None:
    assert minutes(text).text.split("\n")[0] == label


def test_marks_of_items_are_left_out() -> None:
    notes = read_content(
        b"# Web\n\n- Decision: we use the blue logo.\n- [ ] Holt to fix the page.\n", name="n.md"
    )
    assert lines(notes, "decisions") == ["Decision: we use the blue logo."]
    assert lines(notes, "actions") == ["Holt to fix the page. (owner: Holt)"]


def test_a_day_or_an_ordinal_is_no_mark_of_an_item() -> None:
    text = (
        "Wir haben beschlossen, das Dach im Mai zu reparieren.\n\n3. Oktober um 10 Uhr ist das nächste Treffen.\n\n"
        "1. FC Adler bekommt den Platz, so haben wir beschlossen."
    )
    assert "1. FC Adler bekommt den Platz, so haben wir beschlossen." in lines(text, "decisions")
    assert not any(
        line.startswith("Oktober") for part in ("topics", "next", "questions") for line in lines(text, part)
    )


def test_neither_a_greeting_nor_a_line_of_another_part_is_a_topic() -> None:
    assert lines("Ann: Good morning and welcome to all of you here.", "topics") == []
    text = "We agreed to open the show on 3 June.\n"
    assert lines(text, "topics") == []
    assert len(lines(text, "decisions")) == 1


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("When do we sell it?", "Ann: We sell the old boat at the quay."),
        ("The mast is at the yard.", "Bob: On the 14th of March. Cem agreed."),
    ],
)
def test_a_topic_is_told_by_a_sentence_that_needs_no_question(asked: str, told: str) -> None:
    meeting = f"Ann: {asked}\nBob: On the 14th of March. Cem agreed.\nAnn: We sell the old boat at the quay."
    units = extraction_units(meeting)
    source = ScoredText(Passages(meeting), units, [1] * 3, [0.2, 0.9, 0.6], 100.0)
    line = section_line(source, Section("", 0, 3))
    assert line is not None
    assert line.shown == told


def test_labelled_items_are_the_topics() -> None:
    text = (
        "Anwesend waren Frau Weber und Herr Kaya.\n\nTop 1: Sommerfest\nDas Fest ist im Juli und das Budget ist klein."
        "\n\nTop 2: Dach\nDas Dach ist undicht und die Reparatur ist teuer."
    )
    assert lines(text, "topics") == ["Top 1: Sommerfest", "Top 2: Dach"]


def test_the_page_of_the_service_names_every_part() -> None:
    page = files("precis").joinpath("server/page/page.js").read_text("utf-8")
    (names,) = re.findall(r"const PARTS = \{(.*?)\};", page)
    assert tuple(re.findall(r"(\w+): \"", names)) == PARTS


@pytest.mark.parametrize(
    ("before", "said", "reply"),
    [
        (ENGLISH, "Bob: Morning everyone, can you all hear me?", "Ann: Yes, we can."),
        (ENGLISH, "Bob: Can anybody still see the plan?", "Ann: Yes."),
        (ENGLISH, "Bob: Cem, can you hear us?", "Cem: Yes, I can. The train has a tunnel soon."),
        (GERMAN, "Bernd: Können Sie mich alle gut hören?", "Anna: Ja."),
        (FRENCH, "Bruno: Vous pouvez tous m'entendre ?", "Anne: Oui."),
        (SPANISH, "Berta: ¿Pueden oírme?", "Ana: Sí."),
    ],
)
def test_a_test_of_the_microphone_is_no_action(before: str, said: str, reply: str) -> None:
    assert parts_of(said, before=before, after=reply) == []


NOTES = """# Garden club

## Discussion

The hedge along the road is ill. Ruth would rather remove it.

## Decisions

The hedge is removed in October.

## Action items

1. Omar: ask two firms by 20 May
2. Ruth to inform the neighbours

- [ ] Order 80 plants

| Who | What |
|---|---|
| Ines | Paint |

## Open questions

- Fence along the path

## Budget

We have 400 crowns.
"""


def test_what_is_below_the_heading_of_a_part_belongs_to_it() -> None:
    passages = read_content(NOTES.encode(), name="a.md")
    assert lines(passages, "decisions") == ["The hedge is removed in October."]
    assert lines(passages, "actions") == [
        "Omar: ask two firms by 20 May (due: by 20 May)",
        "Ruth to inform the neighbours (owner: Ruth)",
        "Order 80 plants",
        "Paint (owner: Ines)",
    ]
    assert lines(passages, "questions") == ["Fence along the path"]
    assert lines(passages, "topics") == ["Discussion", "Budget"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("Resolved:\n- new lamps for the hall\n\nThe hall is cold in winter.", "decisions"),
        ("Key decisions\n- new lamps for the hall\n\nThe hall is cold in winter.", "decisions"),
        (
            "Der Verein tagte.\n\nEntscheidung:\n- neue Lampen für die Halle\n\nDie Halle ist kalt.",
            "decisions",
        ),
        ("Who does what\n- Bob: new lamps\n\nThe hall is cold in winter.", "actions"),
        ("Actions:\n- Bob: new lamps\n\nThe hall is cold in winter and warm in summer.", "actions"),
        (
            "3. Action points\n\nThe hall gets new lamps.\n\n4. Budget\n\nThe hall is cold in winter.",
            "actions",
        ),
        (
            "Der Verein hat sich am Montag getroffen.\n\nOffene Punkte:\n- Neue Lampen für die Halle",
            "questions",
        ),
        ("Le club a parlé de la salle avec la mairie.\n\nÀ faire :\n- Des lampes pour la salle", "actions"),
        ("El club habló de la sala con la alcaldía.\n\nTareas:\n- Lámparas para la sala", "actions"),
        ("Il comitato ha parlato della sala con il comune.\n\nAzioni:\n- Lampade per la sala", "actions"),
        (
            "Actions:\n1. Bob buys the new lamps.\n\nThe hall is cold.\n\n2. The hall gets old soon.",
            "actions",
        ),
    ],
)
def test_a_line_that_names_a_part_has_the_list_below_it(text: str, part: str) -> None:
    assert [line.part for line in minutes(text).lines if line.part != "topics"] == [part]


def test_a_sentence_that_announces_decisions_has_the_list_below_it() -> None:
    text = "The tea was cold.\n\nAfter the break we agreed:\na) the hall gets new lamps;\nb) Bob sells the old ones."
    assert lines(text, "decisions") == ["the hall gets new lamps;", "Bob sells the old ones."]


@pytest.mark.parametrize("head", ["To do", "To-do", "To dos", "TODO"])
def test_english_has_several_spellings_of_to_do(head: str) -> None:
    text = f"The hall is cold in winter and warm in summer.\n\n{head}\n- [ ] Bob: new lamps\n- Ann: paint"
    assert lines(text, "actions") == ["Bob: new lamps", "Ann: paint"]


def test_the_date_of_the_next_meeting_is_no_action() -> None:
    text = "Action items\n\n1. Bob buys a lamp.\n2. Ann buys the paint.\n\nNext meeting: 6 June, 7 pm."
    assert lines(text, "next") == ["Next meeting: 6 June, 7 pm."]
    assert lines(text, "actions") == ["Bob buys a lamp. (owner: Bob)", "Ann buys the paint. (owner: Ann)"]


def test_a_speaker_who_names_a_part_lists_nothing() -> None:
    assert lines("Ann: Decisions:\nBob: The tea is cold.\nAnn: And the cake.", "decisions") == []


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Ann: Where will the school do sports in October?", "Bob: That's still open."),
        ("Anna: Wohin geht die Schule im Oktober zum Sport?", "Bernd: Das ist noch offen."),
        ("Anne: Où est-ce que les enfants vont jouer en octobre ?", "Bruno: C'est encore à voir."),
        ("Ana: ¿Dónde van a jugar los niños en el mes de octubre?", "Berta: Eso sigue abierto."),
    ],
)
def test_a_question_that_is_said_to_be_open_is_told_itself(said: str, answer: str) -> None:
    assert any(said in line for line in lines(f"{said}\n{answer}", "questions"))


def test_a_vote_without_objections_is_a_decision() -> None:
    meeting = "Ann: The roof leaks.\nBob: All in favour of repairing it in May?\nBob: Okay, that's unanimous."
    assert lines(meeting, "decisions") == [
        "[turn 2] Bob: All in favour of repairing it in May? (agreed: Bob)"
    ]


@pytest.mark.parametrize(
    "said", ["Bob: Except to find out what is useful.", "Bob: Need to check the old oven."]
)
def test_a_sentence_without_a_subject_names_no_owner(said: str) -> None:
    assert parts_of(said) == []


def test_that_is_no_topic() -> None:
    said = (
        "Ann: The tea is cold again.\nBob: Let's talk about that next week.\nAnn: Let's talk about the oven."
    )
    assert lines(said, "topics") == ["[turn 3] Ann: Let's talk about the oven."]


def test_quote_marks_and_references_are_left_out_as_in_other_forms() -> None:
    text = "> Hi all,\n> can we move the review to Tuesday?\n\nWe decided to keep the old oven (see Table 2) for now."
    assert lines(text, "questions") == ["can we move the review to Tuesday?"]
    assert lines(text, "decisions") == ["We decided to keep the old oven for now."]


@pytest.mark.parametrize(
    "said",
    [
        "Nach kurzer Aussprache beschließt die Versammlung mit 31 zu 12 Stimmen, den Beitrag auf 108 € zu erhöhen.",
        "Die Mitglieder genehmigen den Haushalt für das neue Jahr.",
        "Der Vorstand wird einstimmig entlastet.",
        "L'assemblée générale adopte le budget de la nouvelle année à l'unanimité.",
        "La junta directiva aprueba por unanimidad las cuentas del año pasado.",
        "The committee unanimously approves the budget of the new year.",
        "At the general meeting, members voted 61 to 9 to raise the rent of the plots.",
    ],
)
def test_written_minutes_say_in_the_present_what_is_decided(said: str) -> None:
    code = "es" if "junta" in said else language_of(said)
    before = {
        "de": "Es regnet und die Halle ist kalt.",
        "fr": "Il pleut et la salle est froide.",
        "es": "La lluvia es fría y la sala no es grande.",
    }.get(code or "", "The rain is cold and the hall is not warm.")
    assert "decisions" in {line.part for line in minutes(f"{before}\n{said}\n{before}").lines}


@pytest.mark.parametrize(
    "said",
    ["Wann beschließt die Versammlung das?", "Does the committee approve it?", "The board approves nothing."],
)
def test_a_question_or_a_denial_in_the_present_decides_nothing(said: str) -> None:
    more = (
        "Es regnet und die Halle ist kalt."
        if said[0] == "W"
        else "The rain is cold and the hall is not warm."
    )
    assert "decisions" not in {line.part for line in minutes(f"{more}\n{said}\n{more}").lines}


RAIN = {
    "en": "The rain is cold and the hall is not warm.",
    "de": "Es regnet und die Halle ist kalt.",
    "fr": "Il pleut et la salle est froide.",
    "es": "Hoy llueve mucho, pero los vecinos están en una sala con puertas y no es muy tarde.",
}


def decides(code: str, said: str) -> bool:
    return "decisions" in {line.part for line in minutes(f"{RAIN[code]}\n{said}\n{RAIN[code]}").lines}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("en", "The board votes on Monday."),
        ("en", "The board decides on Monday."),
        ("en", "The board votes tomorrow."),
        ("en", "The team agrees with Tom."),
        ("en", "The team agreed with Tom."),
        ("en", "No member of the board agrees."),
        ("en", "No member of the board approved it."),
        ("en", "Neither the board nor the council approves it."),
        ("en", "Neither plan was approved."),
        ("en", "None of the plans were adopted."),
        ("en", "The company denied that the board approves it."),
        ("en", "The company denies that the plan was approved."),
        ("de", "Der Bundesrat billigt keine Steuer."),
        ("de", "Die Versammlung beschließt keinen Haushalt."),
        ("de", "Es wurde kein neuer Haushalt beschlossen."),
        ("de", "Weder genehmigt der Rat das Haus."),
        ("de", "Der Vorstand genehmigt weder das Haus noch das Dach."),
        ("de", "Über das Geld entscheidet der Rat im Mai."),
        ("de", "Ein Konzert beschließt die Konferenz."),
        ("de", "Die Straße wird durch die Brücke entlastet."),
        ("de", "Der Vorstand wird durch die neue Halle entlastet."),
        ("fr", "Le conseil vote demain."),
        ("fr", "Le conseil décide demain."),
        ("fr", "Le groupe vote contre."),
        ("fr", "Le maire nie que le conseil approuve le plan."),
        ("es", "La junta decide mañana."),
        ("es", "La junta aprueba mañana el plan de la sala."),
        ("es", "Ningún grupo dice que la junta aprueba el plan."),
        ("es", "La vecina se acuerda de su abuela."),
        ("es", "Se acuerda de la vieja sala."),
        ("es", "Mi abuela se acuerda siempre del plan."),
        ("es", "No se acuerda nada sobre la sala."),
        ("es", "Se aprueba cada año el presupuesto de la sala."),
        ("es", "Siempre se acuerda comprar pan."),
        ("es", "Los vecinos saben que se acuerda comprar pan."),
        ("es", "El presupuesto se aprueba en mayo."),
        ("es", "Cuando llueve, se aprueban pocas cuentas."),
        ("es", "Se decide cada mes quién limpia la sala."),
        ("es", "La vecina se decide a comprar la sala."),
        ("es", "La vecina se acordó de su abuela."),
        ("es", "La vecina se decidió por la puerta verde."),
        ("es", "Nos acordamos de la abuela."),
        ("es", "Se nombra a la abuela en el libro."),
        ("es", "Así se rechaza el frío de la sala."),
        ("es", "Se rechaza el frío con una puerta."),
        ("fr", "Le budget est approuvé chaque année."),
        ("fr", "Le maire est élu président tous les ans."),
        ("fr", "La salle est nommée sur le plan."),
        ("fr", "Il n'est pas décidé de vendre la salle."),
        ("fr", "Le conseil nomme la pluie dans le livre."),
    ],
)
def test_facts_customs_the_future_and_denials_decide_nothing(code: str, said: str) -> None:
    assert not decides(code, said)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("en", "The board votes to sell the hall."),
        ("en", "The board agrees to sell the hall."),
        ("en", "With no objections the plan was approved."),
        ("en", "It was decided to deny the request."),
        ("de", "Wir haben beschlossen, keine Hunde in die Halle zu lassen."),
        ("de", "Einstimmig genehmigt die Versammlung das Protokoll."),
        ("de", "Die Versammlung beschließt den Haushalt."),
        ("de", "Der Vorstand wurde ohne Gegenstimme entlastet."),
        ("fr", "Le conseil vote le budget de la salle."),
        ("fr", "Le conseil décide de vendre la salle."),
        ("es", "La junta decide vender la sala."),
        ("es", "La junta acuerda por unanimidad vender la sala."),
        ("es", "Se acuerda vender la sala."),
        ("es", "En la reunión se acordó vender la sala."),
        ("es", "En la reunión se decidió por unanimidad la venta de la sala."),
        ("es", "Tras un largo debate, se acuerda por mayoría vender la sala."),
        ("es", "Se acuerda no vender la sala."),
        ("es", "Tras el debate se acuerda vender la sala."),
        ("es", "Se acuerda por 5 votos a favor y 2 en contra vender la sala."),
        ("es", "Se faculta al presidente para vender la sala."),
        ("es", "Se acuerda que la sala se venda en mayo."),
        ("es", "Se acuerda de forma unánime la venta de la sala."),
        ("es", "Se aprueban las cuentas con el voto en contra del segundo piso."),
        ("es", "Las cuentas se aprueban por unanimidad."),
        ("es", "Se aprueba pagar 20 euros cada mes."),
        ("es", "Leída el acta, se aprueba por unanimidad."),
        ("es", "Se decide cerrar la sala en mayo."),
        ("es", "Se nombra presidenta por turno a la Sra. Ruiz."),
        ("es", "Se rechaza la propuesta de vender la sala."),
        ("fr", "L'assemblée approuve les comptes."),
        ("fr", "L'assemblée nomme Mme Roy présidente."),
        ("fr", "Le conseil rejette la vente de la salle."),
        ("fr", "Il est décidé de vendre la salle."),
        ("fr", "Il est décidé de ne pas vendre la salle."),
        ("fr", "Mme Roy est nommée présidente du conseil."),
        ("fr", "M. Roy est élu trésorier à l'unanimité."),
        ("fr", "Nous décidons de vendre la salle."),
        ("fr", "L'assemblée mandate le syndic pour vendre la salle."),
        ("fr", "Le devis de la société Martin est retenu."),
    ],
)
def test_decisions_in_the_present_and_about_what_is_not_done_stay(code: str, said: str) -> None:
    assert decides(code, said)


def test_the_headings_of_questions_and_answers_are_no_open_questions() -> None:
    page = (
        "<details><summary>Can I cancel?</summary><p>Until May you can cancel free of charge.</p></details>"
    )
    found = minutes(
        read_content(f"<html><body>{page}<p>Who pays for the boat?</p></body></html>".encode(), name="a.html")
    )
    assert [line.shown for line in found.lines if line.part == "questions"] == ["Who pays for the boat?"]


def test_a_question_with_letters_of_the_heading_above_it_is_open() -> None:
    page = "<details><summary>So who pays?</summary><p>Nobody knows the price.</p><p>who pays?</p></details>"
    found = minutes(read_content(f"<html><body>{page}</body></html>".encode(), name="a.html"))
    assert "who pays?" in [line.shown for line in found.lines if line.part == "questions"]


def test_a_question_of_a_heading_with_two_is_no_open_question() -> None:
    page = "<details><summary>Who pays? And when?</summary><p>Ann pays in May.</p></details>"
    found = minutes(read_content(f"<html><body>{page}</body></html>".encode(), name="a.html"))
    assert [line.shown for line in found.lines if line.part == "questions"] == []


@pytest.mark.parametrize(
    ("asked", "answer", "line"),
    [
        (
            "The tent is here. Do we pay it from the club account?",
            "Yes, we decided that in May.",
            "[turn 2] Ann: Do we pay it from the club account? – Bob: Yes, we decided that in May.",
        ),
        (
            "The seam still leaks. When is the kit here?",
            "Sure. I'll do it on Tuesday.",
            "[turn 2] Ann: When is the kit here? – Bob: I'll do it on Tuesday. (owner: Bob; due: on Tuesday)",
        ),
        (
            "Which colour does the board want?",
            "Agreed, green then.",
            "[turn 2] Ann: Which colour does the board want? – Bob: Agreed, green then.",
        ),
        (
            "Which colour does the board want?",
            "The board decided to paint the boat green before the summer.",
            "[turn 2] Bob: The board decided to paint the boat green before the summer.",
        ),
        (
            "Which colour? We need it today.",
            "Yes, we decided that in May.",
            "[turn 2] Bob: Yes, we decided that in May.",
        ),
    ],
)
def test_an_answer_that_says_little_alone_has_its_question(asked: str, answer: str, line: str) -> None:
    meeting = f"Ann: {asked}\nBob: {answer}\nCem: It rains on the quay and the boat is wet."
    found = [each for each in minutes(meeting).lines if each.part in ("decisions", "actions")]
    assert [each.shown for each in found] == [line]
    place = meeting[found[0].start : found[0].stop]
    assert place.startswith(line.split(": ")[1].split(" – ")[0].split(" (")[0][:12])
    assert place.endswith(answer.rpartition(". ")[2])


def test_an_answer_is_not_shown_with_a_question_of_its_own_speaker() -> None:
    meeting = "Ann: It rains.\nBob: Do we pay it? Yes, we decided that in May.\nCem: The boat is wet."
    assert lines(meeting, "decisions") == ["[turn 2] Bob: Yes, we decided that in May."]


def test_the_minutes_of_a_council_name_offices_and_titles() -> None:
    found = minutes(
        "Minutes of the parish council\n\nThe stile is broken. It was resolved to replace it with a gate.\n"
        "The clerk will order the gate by 20 November. Cllr Ferris to ask the district for a grant. "
        "The secretary will be away. The treasurer will not pay."
    )
    told = [(line.part, line.owner or line.shown) for line in found.lines if line.part != "topics"]
    assert told == [
        ("decisions", "It was resolved to replace it with a gate."),
        ("actions", "The clerk"),
        ("actions", "Cllr Ferris"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "Date of next meeting: 1 December 2026, 7 pm.",
        "Nächste Sitzung: 1. Dezember 2026",
        "Prochaine réunion : 1er mai",
    ],
)
def test_the_date_of_the_next_meeting_may_be_a_label_with_a_value(line: str) -> None:
    before = {"D": ENGLISH, "N": GERMAN, "P": FRENCH}[line[0]].partition(": ")[2]
    found = minutes(f"{before} {before}\n\n{line}\n")
    assert [each.shown for each in found.lines if each.part == "next"] == [line]


@pytest.mark.parametrize(
    "item",
    [
        "Ask Bob - he knows the price",
        "Buy 2 + 3 tables of oak",
        "Meet on 5 - 7 May at the quay",
        "Send it – today",
    ],
)
def test_an_item_below_a_heading_keeps_the_marks_within_it(item: str) -> None:
    found = lines(
        f"It rained on the old quay all day.\n\nAction items\n\n- {item}\n- Sell the old boat\n", "actions"
    )
    assert found[0].startswith(item)


@pytest.mark.parametrize(
    "answer", ["We agreed to buy the tent.", "We decided on green.", "Dee will order the tent."]
)
def test_an_answer_with_a_subject_and_a_verb_needs_no_question(answer: str) -> None:
    found = minutes(f"Ann: Is it raining?\nBob: {answer}\nCem: The boat is wet and the quay is old.").lines
    shown = [line.shown for line in found if line.part in ("decisions", "actions")]
    assert len(shown) == 1
    assert shown[0].startswith(f"[turn 2] Bob: {answer}")


@pytest.mark.parametrize(
    ("meeting", "told"),
    [
        ("Dee: Shall we meet again?\nAnn: Yes, the next meeting is on 4 May.", {"next": 1}),
        ("Bob: Do we approve the plan for the boat?\nCem: Yes, we approved it on Monday.", {"decisions": 1}),
        (
            "Bob: Is Dee coming on Friday?\nDee: No idea yet, but I will send you the slides by Thursday.",
            {"actions": 1, "questions": 1},
        ),
    ],
)
def test_minutes_say_nothing_twice(meeting: str, told: dict[str, int]) -> None:
    found = minutes(meeting).lines
    assert {part: sum(line.part == part for line in found) for part in told} == told
    spans = sorted((line.start, line.stop) for line in found)
    assert all(stop <= start for (_, stop), (start, _) in pairwise(spans))


@pytest.mark.parametrize(
    "said",
    [
        "The chair will retire in May.",
        "The architect will die rich.",
        "The director will leave us in June.",
        "The manager will speak about roses at the fair.",
        "The director has agreed to step down.",
        "The secretary will get married in May.",
    ],
)
def test_what_somebody_in_an_office_does_may_be_no_task(said: str) -> None:
    assert lines(f"Minutes of the club\n\nThe stile is broken. {said} It rains.", "actions") == []


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("es", "La administradora no firmará el contrato."),
        ("es", "La presidenta firmará el contrato si llueve."),
        ("es", "La puerta de la administradora pedirá una llave."),
        ("es", "El director hablará de rosas."),
        ("es", "El director deberá estar en la sala."),
        ("es", "Se pagará con el dinero de los vecinos."),
        ("fr", "La syndique ne signera pas le contrat."),
        ("fr", "La présidente fera partie du jury."),
        ("fr", "La porte de la syndique demandera une clé."),
    ],
)
def test_what_an_office_does_not_do_or_does_elsewhere_is_no_task_in_other_languages(
    code: str, said: str
) -> None:
    assert lines(f"{RAIN[code]}\n\n{said}", "actions") == []


def test_a_list_of_actions_ends_where_the_next_numbered_part_begins() -> None:
    part = "{}. {}\n\nThe hall is cold.\n\nActions\n- {}\n\n"
    text = (
        part.format(1, "Hall", "Buy a lamp")
        + part.format(2, "Money", "Ask the bank")
        + "3. Other\n\nIt is late."
    )
    assert lines(text, "actions") == ["Buy a lamp", "Ask the bank"]


@pytest.mark.parametrize("end", ["The meeting closed", "There being no further business the meeting closed"])
@pytest.mark.parametrize("head", ["7. Date of next meeting", "Next Meeting Date/Time"])
def test_the_next_meeting_is_the_date_below_its_heading_and_not_the_end_of_this_one(
    head: str, end: str
) -> None:
    other = "Hall\n\nThe hall is cold.\n\n6. Any other business\nThe wall is old in winter."
    text = f"{other}\n\n{head}\n\nMonday 3 June at noon.\n\n"
    text = f"{text}{end} at 8.55 pm."
    assert lines(text, "next") == ["Monday 3 June at noon."]
    assert head not in lines(text, "topics")


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ("Bob: I have passed the pictures to the carrier.", []),
        ("Bob: The budget was passed by the board.", ["decisions"]),
        ("Bob: It was passed on to the caretaker.", []),
        ("Bob: The bill was passed on to the customers.", []),
        ("Ann: How are you all, ok?\nBob: Fine.", []),
        ("Bob: I'll take the opportunity to open the floor.", []),
        ("Bob: The next standup is on Monday.", ["next"]),
        ("Bob: The retro moves to Thursday, agreed?\nDora: Fine.", ["decisions"]),
    ],
)
def test_what_is_handed_on_is_not_decided_and_what_is_asked_and_agreed_is(said: str, part: list[str]) -> None:
    assert parts_of(said) == part


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (
            "Der Verein tagte im Saal.\n\nHerr Brandl mahnt die Mitglieder bis Ende März an.",
            "zuständig: Herr Brandl; Termin: bis Ende März",
        ),
        (
            "Der Verein tagte im Saal.\n\nFrau Vogt stellt bis zum 15. April den Antrag.",
            "zuständig: Frau Vogt; Termin: bis zum 15. April",
        ),
        (
            "The club met in the hall.\n\nSue will order it before the June holiday.",
            "owner: Sue; due: before the June holiday",
        ),
        (
            f"{RAIN['es']}\n\nLa administradora firmará el contrato antes del 22 de marzo.",
            "responsable: La administradora; plazo: antes del 22 de marzo",
        ),
        (
            f"{RAIN['es']}\n\nUn vecino pregunta si se puede; la administradora consultará los requisitos.",
            "responsable: la administradora",
        ),
        (
            f"{RAIN['es']}\n\nD. Eusebio pedirá tres ofertas antes del 2 de mayo de 2024.",
            "responsable: D. Eusebio; plazo: antes del 2 de mayo de 2024",
        ),
        (
            f"{RAIN['es']}\n\nMañana Dña. Maribel Torres se encargará de las llaves.",
            "responsable: Dña. Maribel Torres; plazo: Mañana",
        ),
        (
            f"{RAIN['es']}\n\nEl presidente y la secretaria deberán firmar el acta.",
            "responsable: El presidente y la secretaria",
        ),
        (f"{RAIN['es']}\n\nLos Sres. Nicolás reclamarán el dinero.", "responsable: Sres. Nicolás"),
        (
            f"{RAIN['fr']}\n\nLa syndique signera le contrat avant le 22 mars.",
            "responsable: La syndique; échéance: avant le 22 mars",
        ),
        (
            f"{RAIN['fr']}\n\nLe toit fuit, et le syndic fera établir un devis avant le 2 mai 2024.",
            "responsable: le syndic; échéance: avant le 2 mai 2024",
        ),
        (f"{RAIN['fr']}\n\nLe syndic est chargé de demander un devis.", "responsable: Le syndic"),
        (f"{RAIN['fr']}\n\nMme Anne Roy demandera trois devis.", "responsable: Mme Anne Roy"),
    ],
)
def test_who_does_what_until_when_is_an_action_with_its_whole_date(document: str, told: str) -> None:
    (line,) = lines(document, "actions")
    assert line.endswith(f" ({told})")


@pytest.mark.parametrize(
    "said",
    [
        "Frau Vogt bleibt bis zum 15. April im Amt.",
        "Frau Vogt berichtet, dass die Brücke bis Ende März gesperrt ist.",
        "Frau Vogt schätzt die Kosten auf 200 bis 300 Euro.",
        "Frau Vogt fährt bis Mainz mit.",
        "Das Auto von Frau Vogt steht bis Mai im Hof.",
        "Frau Vogt stellt bis Mai keinen Antrag.",
    ],
)
def test_who_stays_or_reports_until_a_date_does_nothing(said: str) -> None:
    assert lines(f"Der Verein tagte im Saal.\n\n{said}", "actions") == []


def test_a_numbered_list_of_actions_does_not_end_at_the_number_of_the_next_part() -> None:
    tasks = ["Buy two lamps", "Ask the bank", "Paint the door"]
    items = "\n\n".join(f"{number}. {task}" for number, task in enumerate(tasks, 1))
    assert lines(f"1. Hall\n\nThe hall is cold.\n\nActions\n\n{items}", "actions") == tasks


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (
            "Verein\n\nDer Saal ist kalt.\n\nNächste Sitzung\n\nAlle sind da.",
            "Die Sitzung wird im Juni sein.",
        ),
        ("Club\n\nThe hall is cold.\n\nNext meeting\n\nAll may come.", "The meeting was adjourned to noon."),
    ],
)
def test_the_next_meeting_may_be_said_like_the_end_of_this_one(head: str, said: str) -> None:
    assert said in lines(f"{head} {said}", "next")


# ---- votes


AGENDA = (
    "Members of the board came at six and the hall was warm.\n\n"
    "A. Bus shelter\n\nMs Odell moved, seconded by Mr Pike, to rebuild the shelter in June. "
    "Odell yes, Pike yes, Reyes no, Stone no, Webb no. Motion failed 2-3.\n\n"
    "B. Swings\n\nMr Pike said that the swings are old. Motion carried 5-0.\n\n"
)
ANTRAG = (
    "Die Mitglieder kamen um sechs und der Saal war warm.\n\n"
    "A. Wartehaus\n\nDer Vorstand beantragt, das Wartehaus im Juni zu bauen. Herr Pohl ist dagegen. "
    "Der Antrag wird mit 4 zu 9 Stimmen abgelehnt.\n\n"
    "B. Schaukeln\n\nFrau Ott nennt die Schaukeln alt. Einstimmig angenommen.\n\n"
)


@pytest.mark.parametrize(
    ("document", "decisions"),
    [
        (
            AGENDA,
            [
                "Ms Odell moved, seconded by Mr Pike, to rebuild the shelter in June. Motion failed 2-3.",
                "Mr Pike said that the swings are old. Motion carried 5-0.",
            ],
        ),
        (
            ANTRAG,
            [
                "Der Vorstand beantragt, das Wartehaus im Juni zu bauen. "
                "Der Antrag wird mit 4 zu 9 Stimmen abgelehnt.",
                "Frau Ott nennt die Schaukeln alt. Einstimmig angenommen.",
            ],
        ),
    ],
)
def test_a_vote_is_shown_with_its_motion(document: str, decisions: list[str]) -> None:
    assert lines(document, "decisions") == decisions
    first = next(line for line in minutes(document).lines if line.part == "decisions")
    assert document[first.start :].startswith(decisions[0][:20])
    assert document[: first.stop].endswith(decisions[0][-9:])


def test_a_motion_that_failed_is_a_decision() -> None:
    assert lines(f"{AGENDA}It rained. The motion to close the pool failed 3-4.", "decisions")[2:] == [
        "The motion to close the pool failed 3-4."
    ]


def test_a_second_vote_takes_neither_the_motion_of_the_first_nor_that_of_another_item() -> None:
    told = "Ms Odell moved to paint the hall in June. Motion carried 4-1. The main motion carried 3-2."
    apart = f"{AGENDA}C. Lamps\n\nMr Pike moved to buy lamps for the hall.\n\nD. Oars\n\nMotion carried 5-0."
    assert lines(f"{AGENDA}{told}", "decisions")[-1] == "The main motion carried 3-2."
    assert lines(apart, "decisions")[-1] == "Motion carried 5-0."


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Se aprueba por unanimidad.", "Se lee el acta de mayo. Se aprueba por unanimidad."),
        ("Se aprueban con 4 votos a favor.", "Se lee el acta de mayo. Se aprueban con 4 votos a favor."),
        ("Se aprueba la compra de la puerta.", "Se aprueba la compra de la puerta."),
    ],
)
def test_a_spanish_vote_has_the_sentence_before_it_if_it_does_not_say_what_it_is_about(
    said: str, told: str
) -> None:
    assert lines(f"{RAIN['es']}\n\nSe lee el acta de mayo. {said}", "decisions") == [told]


@pytest.mark.parametrize(
    "said",
    [
        "En Murcia, siendo las 19:30 horas, se reúnen los vecinos en la sala de la casa.",
        "Y no habiendo más asuntos que tratar, se levanta la sesión a las 21:10 horas.",
    ],
)
def test_the_formal_beginning_and_end_of_spanish_minutes_are_no_topics(said: str) -> None:
    assert said not in lines(f"{said}\n\n{RAIN['es']}", "topics")


def test_a_vote_on_two_motions_has_both() -> None:
    told = (
        "Ms Odell moved to paint the hall. Mr Pike moved to amend it to read 'the bar'. Motion carried 4-1."
    )
    assert lines(f"{AGENDA}{told}", "decisions")[-1] == told


@pytest.mark.parametrize(
    ("reports", "motion"),
    [
        (
            "Die Ärztin empfiehlt allen im Verein eine Kur.\n\nFrau Ott schlägt im Bericht den Steg vor.\n\n",
            "Herr Pohl beantragt, den Weg zu sperren. Der Antrag wird mit 4 zu 2 Stimmen angenommen.",
        ),
        (
            "Ms Odell proposed that all should swim.\n\nMr Pike moved to buy a boat in 2010.\n\n",
            "Ms Webb moved to mend the roof. Motion carried 5-1.",
        ),
        ("", "The board proposes to mend the roof. All spoke of it. Motion carried 5-1."),
        ("Ms Odell proposed that all should swim.\n\n", "Ms Webb spoke of the roof. Motion carried 5-1."),
    ],
)
def test_reports_and_motions_of_other_paragraphs_are_not_voted_on(reports: str, motion: str) -> None:
    begin = "Der Tee im Saal ist kalt." if "Antrag" in motion else "The tea in the hall is cold."
    assert lines(f"{begin}\n\n{reports}{motion}", "decisions") == [motion.replace("All spoke of it. ", "")]


@pytest.mark.parametrize(("document", "failed"), [(AGENDA, "Motion failed 2-3."), (ANTRAG, "abgelehnt.")])
def test_outlines_and_answers_tell_that_a_motion_failed(document: str, failed: str) -> None:
    units = extraction_units(document)
    scores = [1.0 if "moved" in unit.text or "beantragt" in unit.text else 0.1 for unit in units]
    source = ScoredText(Passages(document), units, [1] * len(units), scores, 30.0)
    outline = formed(make_form(type="outline"), source, make_length(), len)
    line = next(line for line in outline.lines if line.heading[:2] == "A.")
    assert line.shown.endswith(failed)
    assert document[line.start : line.stop].endswith((" June.", " bauen."))  # others are between
    question = "Was the shelter approved?" if document == AGENDA else "Wurde das Wartehaus beschlossen?"
    assert failed in formed(make_form(about=question), source, make_length(), len).text


@pytest.mark.parametrize(
    ("before", "said", "due"),
    [
        (ENGLISH, "I'll print the list by noon tomorrow.", "by noon tomorrow"),
        (ENGLISH, "I'll print the list tomorrow, by noon.", "tomorrow, by noon"),
        (ENGLISH, "I'll print the list by Monday next week.", "by Monday next week"),
        (ENGLISH, "I'll print the list by Monday, 3 June 2024.", "by Monday, 3 June 2024"),
        (ENGLISH, "I'll print the list by 5pm on Monday.", "by 5pm on Monday"),
        (ENGLISH, "I'll print the list by the end of next week.", "by the end of next week"),
        (ENGLISH, "I'll print the list by Monday or Tuesday.", ""),
        (ENGLISH, "I'll print the list by Monday and the rest by Friday.", ""),
        (ENGLISH, "I'll print the list by the month end.", ""),
        (GERMAN, "Ich drucke die Liste bis morgen Mittag.", "bis morgen Mittag"),
        (GERMAN, "Ich drucke die Liste bis Freitag nächster Woche.", "bis Freitag nächster Woche"),
        (GERMAN, "Ich drucke die Liste bis Montag, den 3. Juni 2024.", "bis Montag, den 3. Juni 2024"),
        (GERMAN, "Ich drucke die Liste bis 16 Uhr.", "bis 16 Uhr"),
        (GERMAN, "Ich drucke die Liste bis Montag oder Dienstag.", ""),
    ],
)
def test_a_date_is_told_whole_or_not_at_all(before: str, said: str, due: str) -> None:
    (action,) = (line for line in minutes(f"{before}\nBob: {said}").lines if line.part == "actions")
    assert action.due == due


@pytest.mark.parametrize(
    ("answer", "due"),
    [
        ("Sure, by Tuesday.", "by Tuesday"),
        ("Sure, one copy by Tuesday.", "by Tuesday"),
        ("Sure, we are closed on Tuesday.", "by Monday"),
        ("Sure. I'll do it by Tuesday.", "by Tuesday"),
        ("Sure. I could not get ink before Tuesday, but it is here.", "by Monday"),
        ("Sure, I was ill today.", "by Monday"),
        ("Sure. The shop is closed until Tuesday.", "by Monday"),
        ("Sure, you will have it on Tuesday.", "on Tuesday"),
        ("Sure, I'll do it, but not before Tuesday.", ""),
        ("Sure, I'll buy the ink this afternoon.", "by Monday"),
        ("Sure, I'll have that by Tuesday.", "by Tuesday"),
        ("Yeah, we'll do that by the end of April.", "by the end of April"),
    ],
)
def test_who_accepts_a_task_says_when_it_is_done(answer: str, due: str) -> None:
    told = f"owner: Bob; due: {due}" if due else "owner: Bob"
    said = f"Ann: Can you print the list by Monday, Bob?\nBob: {answer}"
    assert lines(said, "actions")[:1] == [f"[turn 1] Ann: Can you print the list by Monday, Bob? ({told})"]


@pytest.mark.parametrize(("end", "due"), [("(1.2)", ""), ("(1/2)", "1/2"), ("– 1.2.", "1.2.")])
def test_a_number_of_a_version_is_no_date(end: str, due: str) -> None:
    (action,) = minutes(f"The tea is cold.\n\nActions\n\n- Notes of version 2.0 {end}").lines[-1:]
    assert (action.part, action.due) == ("actions", due)


@pytest.mark.parametrize(
    ("before", "said", "parts"),
    [
        (ENGLISH, "Bob: The picnic is cancelled.", ["decisions"]),
        (ENGLISH, "Bob: So the two trips in May are postponed.", ["decisions"]),
        (ENGLISH, "Bob: During the storm, nine boats were cancelled.", []),
        (ENGLISH, "Bob: Nine boats were cancelled.", []),
        (ENGLISH, "Bob: The ferry was cancelled because of the storm.", []),
        (GERMAN, "Bernd: Der Ausflug im Mai ist abgesagt.", ["decisions"]),
        (GERMAN, "Bernd: Während des Sturms wurden neun Fahrten abgesagt.", []),
        (GERMAN, "Bernd: Es wurden neun Fahrten abgesagt.", []),
        (ENGLISH, "Bob: The bus trip is cancelled.", ["decisions"]),
        (ENGLISH, "Bob: The picnic is cancelled and we need another date.", ["decisions"]),
        (ENGLISH, "Bob: Our bus was cancelled.", []),
        (ENGLISH, "Bob: My flight is postponed to Friday.", []),
        (ENGLISH, "Bob: The play was postponed, so we drank tea.", []),
        (ENGLISH, "Bob: The play was cancelled and we walked home.", []),
        (GERMAN, "Bernd: Unser Flug wurde abgesagt.", []),
        (GERMAN, "Bernd: Das Spiel wurde abgesagt und wir tranken Tee.", []),
        (GERMAN, "Bernd: Das Spiel wurde verschoben, also warteten wir.", []),
    ],
)
def test_what_a_storm_cancelled_is_no_decision(before: str, said: str, parts: list[str]) -> None:
    assert parts_of(said, before=before) == parts


@pytest.mark.parametrize(
    ("present", "head", "items", "actions"),
    [
        (
            "Attendees: Ines, Otto (remote), Ruth Oder",
            "AIs",
            "- Ines – paint the hall – Thu 5/9\n- Ruth Oder and Otto: call the firm (by Fri)\n- Kiln – clean it",
            [
                "Ines – paint the hall – Thu 5/9 (owner: Ines; due: Thu 5/9)",
                "Ruth Oder and Otto: call the firm (by Fri) (owner: Ruth Oder and Otto; due: by Fri)",
                "Kiln – clean it",
            ],
        ),
        (
            "Anwesend: Ines, Otto, Ruth Oder",
            "Offene Aufgaben",
            "- Ines – den Saal streichen – Do, 5.9.\n- Ruth Oder: die Firma anrufen\n- Ofen – alles putzen",
            [
                "Ines – den Saal streichen – Do, 5.9. (zuständig: Ines; Termin: Do, 5.9.)",
                "Ruth Oder: die Firma anrufen (zuständig: Ruth Oder)",
                "Ofen – alles putzen",
            ],
        ),
    ],
)
def test_a_name_before_a_task_is_its_owner_if_it_is_among_those_present(
    present: str, head: str, items: str, actions: list[str]
) -> None:
    language = "Der Tee ist kalt." if head[0] == "O" else "The tea is cold."
    text = f"{present}\n\nNews\n\n{language}\n\n{head}\n\n{items}"
    assert lines(text, "actions") == actions


@pytest.mark.parametrize(
    ("before", "said", "parts"),
    [
        (GERMAN, "Frau Ott wird als Kassenwartin vorgeschlagen und einstimmig gewählt.", ["decisions"]),
        (GERMAN, "Dem Vorstand wird bei zwei Enthaltungen die Entlastung erteilt.", ["decisions"]),
        (
            GERMAN,
            "Der Antrag der Ruderer auf einen zweiten Steg am alten Hafen wird mit 38 Ja-Stimmen, 6 Nein-Stimmen "
            "und 3 Enthaltungen angenommen.",
            ["decisions"],
        ),
        (GERMAN, "Frau Ott wurde 1998 in den Rat gewählt.", []),
        (GERMAN, "Das Amt des Zeugwarts bleibt vorerst unbesetzt.", ["questions"]),
        (ENGLISH, "Ms Ode was unanimously elected treasurer.", ["decisions"]),
        (ENGLISH, "Ms Ode was elected to the senate in 1998.", []),
        (ENGLISH, "Ms Ode was elected treasurer with 53 votes.", ["decisions"]),
        (ENGLISH, "Ms Ode was elected treasurer when the sailors founded the club.", []),
        (ENGLISH, "Ms Ode was elected with 30 votes and served it well.", []),
        (ENGLISH, "Delegates are elected by 4 towns.", []),
        (ENGLISH, "In 2011 a motion to sell the boats was made by Pike. The motion failed.", []),
        (ENGLISH, "In 2011 the motion to sell the boats failed.", []),
        (ENGLISH, "A motion to sell the boats was made by Pike. The motion failed.", ["decisions"]),
        (GERMAN, "Frau Ott wurde zur Kassenwartin gewählt, als der Verein noch klein war.", []),
        (GERMAN, "Im Jahr 2011 beantragte Herr Pohl den Verkauf der Boote. Der Antrag wurde abgelehnt.", []),
    ],
)
def test_elections_and_votes_in_long_sentences_are_decisions(
    before: str, said: str, parts: list[str]
) -> None:
    assert [
        line.part for line in minutes(f"{before.partition(': ')[2]}\n\n{said}").lines if line.part != "topics"
    ] == parts


@pytest.mark.parametrize(
    ("chat", "actions"),
    [
        (
            "Ann: Cem, can you mend the pump today?\nDora: It is the old one.\nAnn: Mind the seal.\nCem: yes, by 4pm",
            ["[turn 1] Ann: Cem, can you mend the pump today? (owner: Cem; due: by 4pm)"],
        ),
        (
            "Ann: Cem, can you mend the pump today?\nDora: It is the old one.\nAnn: Mind the seal.\nCem: No, sorry.",
            [],
        ),
        (
            "Ann: Can you mend the pump today?\nDora: It is the old one.\nAnn: Mind the seal.\nCem: yes, by 4pm",
            [],
        ),
        (
            f"{GERMAN}\nAnna: Cem, kannst du die Pumpe heute richten?\nDora: Die Pumpe ist alt.\nCem: ja, bis 16 Uhr",
            [
                "[Beitrag 2] Anna: Cem, kannst du die Pumpe heute richten? (zuständig: Cem; Termin: bis 16 Uhr)"
            ],
        ),
    ],
)
def test_who_is_asked_by_name_may_answer_after_others(chat: str, actions: list[str]) -> None:
    assert lines(chat, "actions") == actions


@pytest.mark.parametrize(
    ("chat", "decisions"),
    [
        (
            "Ann: Should we close the pool until May?\nBob: Agreed. We drain it and lock the gate.",
            ["[turn 2] Ann: Should we close the pool until May? – Bob: We drain it and lock the gate."],
        ),
        (
            "Ann: Should we close the pool until May?\nBob: Agreed. We have done so before.",
            ["[turn 1] Ann: Should we close the pool until May? (agreed: Bob)"],
        ),
        (
            "Ann: Should we close the pool until May?\nBob: Agreed. We live far from it.",
            ["[turn 1] Ann: Should we close the pool until May? (agreed: Bob)"],
        ),
        (
            "Ann: Should we close the pool until May?\nBob: Agreed. We bought it too late.",
            ["[turn 1] Ann: Should we close the pool until May? (agreed: Bob)"],
        ),
        (
            "Ann: Should we close the pool until May?\nBob: Agreed. We always meet in the hall.",
            ["[turn 1] Ann: Should we close the pool until May? (agreed: Bob)"],
        ),
        (
            f"{GERMAN}\nBernd: Sollen wir das Bad bis Mai schließen?\nCem: Einverstanden. Wir wohnen weit weg.",
            ["[Beitrag 2] Bernd: Sollen wir das Bad bis Mai schließen? (einverstanden: Cem)"],
        ),
        (
            f"{GERMAN}\nBernd: Sollen wir das Bad bis Mai schließen?\nCem: Einverstanden. Wir leeren es im Januar.",
            ["[Beitrag 3] Bernd: Sollen wir das Bad bis Mai schließen? – Cem: Wir leeren es im Januar."],
        ),
        (
            f"{ENGLISH}\nBob: Then let's not print any flyers.",
            ["[turn 2] Bob: Then let's not print any flyers."],
        ),
        (f"{ENGLISH}\nBob: Then let's not rush into it.", []),
    ],
)
def test_a_decision_is_shown_by_the_sentence_that_says_it(chat: str, decisions: list[str]) -> None:
    assert lines(chat, "decisions") == decisions


def test_a_question_within_a_message_stays_open_and_its_reply_is_no_topic() -> None:
    chat = "Bob: who tells the bank? they close the desk on Monday\nCem: not sure, Ann is away until the 17th\nBob: ok"
    assert lines(chat, "questions") == ["[turn 1] Bob: who tells the bank? they close the desk on Monday"]
    assert not any("not sure" in line for line in lines(chat, "topics"))


@pytest.mark.parametrize(
    ("before", "said", "owner", "due"),
    [
        (GERMAN, "ok dann bestell ich das Zelt morgen", "Bernd", "morgen"),
        (GERMAN, "ich ruf Montag beim Verleih an", "Bernd", "Montag"),
        (GERMAN, "ich ruf Montag an und hol das Zelt am 28.", "Bernd", ""),
        (GERMAN, "Ich kann zwei Kuchen backen", "Bernd", ""),
        (GERMAN, "klar, ich nehm sie mit zu uns", "Bernd", ""),
        (GERMAN, "Ich sprech ihn morgen an.", "Bernd", "morgen"),
        (GERMAN, "Die Bestellung der Bücher übernimmt Frau Lund.", "Frau Lund", ""),
        (FRENCH, "Je leur demande une attestation avant vendredi.", "Bernd", "avant vendredi"),
        (FRENCH, "Je vais poser la question au syndic.", "Bernd", ""),
        (FRENCH, "Je les aurai pour la prochaine réunion.", "Bernd", "pour la prochaine réunion"),
        (SPANISH, "Les escribo mañana a los vecinos, y ya está.", "Bernd", "mañana"),
        (SPANISH, "La organizo para la semana que viene.", "Bernd", "para la semana que viene"),
        (SPANISH, "Yo la recojo con el coche.", "Bernd", ""),
        (SPANISH, "Yo reservo mañana", "Bernd", "mañana"),
        (ENGLISH, "I can bring two cakes", "Bernd", ""),
        (ENGLISH, "I can get the keys tomorrow", "Bernd", "tomorrow"),
        (ENGLISH, "I'll write the names on this wall", "Bernd", ""),
        (ENGLISH, "I'll write the names by this evening", "Bernd", "by this evening"),
        (ENGLISH, "I can bring some soup", "Bernd", ""),
        (ENGLISH, "ill call the baker", "Bernd", ""),
        (ENGLISH, "ill order the tent tomorrow", "Bernd", "tomorrow"),
    ],
)
def test_a_promise_of_a_chat_is_an_action(before: str, said: str, owner: str, due: str) -> None:
    found = [line for line in minutes(f"{before}\nBernd: {said}").lines if line.part == "actions"]
    assert [(line.owner, line.due) for line in found] == [(owner, due)]


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (GERMAN, "Ich kann leider nicht kommen"),
        (GERMAN, "Ich kann nur am Abend backen"),
        (GERMAN, "Ich kann da nichts machen"),
        (GERMAN, "Ich nehm immer Wasser mit"),
        (GERMAN, "Die Kosten übernimmt Frau Lund nicht."),
        (GERMAN, "Das macht Frau Lund traurig."),
        (FRENCH, "Je lui demande pourquoi."),
        (FRENCH, "Je les aurai vus."),
        (SPANISH, "Lo compro en la plaza."),
        (SPANISH, "Lo compro siempre el lunes."),
        (SPANISH, "Te mando un abrazo"),
        (GERMAN, "Ich kann mit dem Bus fahren"),
        (ENGLISH, "I can get here by tram, it is near."),
        (ENGLISH, "I can make it."),
        (ENGLISH, "I can make Monday but not Friday."),
        (ENGLISH, "I can make the meeting."),
        (ENGLISH, "I can get a bit cold at night."),
        (ENGLISH, "I can bring nothing, alas."),
        (ENGLISH, "I can take the bus."),
        (ENGLISH, "It is near, so that I can bring the cat."),
        (ENGLISH, "I'll call in sick."),
        (ENGLISH, "ill call in sick on Monday"),
        (ENGLISH, "ill get home late"),
        (ENGLISH, "I can see you"),
    ],
)
def test_what_a_person_cannot_do_is_no_promise(before: str, said: str) -> None:
    assert parts_of(f"Bernd: {said}", before=before) == []


@pytest.mark.parametrize(
    ("letter", "told"),
    [
        (
            "Liebe Eltern der 3a,\n\ndie Fahrt ist im Juni und kostet 218 Euro. "
            "Bitte überweisen Sie den Betrag bis zum 15. Mai auf das Konto.",
            "Bitte überweisen Sie den Betrag bis zum 15. Mai auf das Konto. (Termin: bis zum 15. Mai)",
        ),
        (
            "Sehr geehrte Frau Ott,\n\ndie Halle ist kalt. Wir bitten Sie, uns bis Freitag den Schlüssel zu geben.",
            "Wir bitten Sie, uns bis Freitag den Schlüssel zu geben. (Termin: bis Freitag)",
        ),
        (
            "Liebe Eltern,\n\nder Bus ist alt und fährt nicht. Bitte geben Sie bis Freitag, den 26. April, ab:\n"
            "- den Bogen\n- eine Kopie der Karte\n\nDer Bus ist neu.",
            "Bitte geben Sie bis Freitag, den 26. April, ab: den Bogen; eine Kopie der Karte "
            "(Termin: bis Freitag, den 26. April)",
        ),
        (
            "Dear parents,\n\nThe trip is in June. Please pay the fee by 15 May.",
            "Please pay the fee by 15 May. (due: by 15 May)",
        ),
        (
            f"Chers parents,\n\n{RAIN['fr']} Merci de payer le bus avant le 2 mai.",
            "Merci de payer le bus avant le 2 mai. (échéance: avant le 2 mai)",
        ),
        (
            f"Estimados vecinos:\n\n{RAIN['es']} Les rogamos que paguen la cuota antes del 2 de mayo.",
            "Les rogamos que paguen la cuota antes del 2 de mayo. (plazo: antes del 2 de mayo)",
        ),
    ],
)
def test_a_letter_that_asks_for_something_until_a_date_tells_an_action(letter: str, told: str) -> None:
    assert lines(letter, "actions") == [told]


@pytest.mark.parametrize(
    "text",
    [
        "Liebe Eltern,\n\ndie Halle ist kalt. Bitte überweisen Sie den Betrag auf das Konto.",
        "Liebe Eltern,\n\ndie Halle ist kalt. Bitte beachten Sie, dass sie bis zum 15. Mai geschlossen ist.",
        "Liebe Eltern,\n\ndie Halle ist kalt. Bitte überweisen Sie bis zum 15. Mai nichts.",
        "Liebe Eltern,\n\ndie Halle ist kalt. Bitte warten Sie bis zum 15. Mai.",
        "Die Halle ist kalt und der Tee ist alle. Bitte überweisen Sie den Betrag bis zum 15. Mai.",
        f"{GERMAN}\nBernd: Das steht da:\nLiebe Anna,\nBitte überweisen Sie den Betrag bis zum 15. Mai.\n{GERMAN}",
        "Liebe Eltern,\n\ndie Halle ist kalt. Bitte überweisen Sie den Betrag bis auf den letzten Cent.",
        "Dear parents,\n\nThe hall is cold. Please note that it is closed until 15 May.",
        f"Chers parents,\n\n{RAIN['fr']} Merci de patienter jusqu'au 2 mai, et pas avant le 1er mai.",
        f"Estimados vecinos:\n\n{RAIN['es']} Les rogamos paciencia hasta el 2 de mayo.",
    ],
)
def test_a_request_without_a_date_or_outside_a_letter_is_no_action(text: str) -> None:
    assert lines(text, "actions") == []


def test_a_loose_promise_takes_the_task_before_it_and_a_question_asked_twice_stays_open() -> None:
    chat = (
        f"{GERMAN}\nBernd: Bitte druckt bis Freitag den Plan.\nCem: jo passt, mach ich\n"
        "Bernd: Und Stühle?\nBernd: niemand?\nAnna: Können wir das später klären?"
    )
    assert lines(chat, "actions") == [
        "[Beitrag 2] Bernd: Bitte druckt bis Freitag den Plan. (zuständig: Cem; Termin: bis Freitag)"
    ]
    assert lines(chat, "questions")[0] == "[Beitrag 4] Bernd: Und Stühle?"
    assert not any("niemand" in line for line in lines(chat, "topics"))
