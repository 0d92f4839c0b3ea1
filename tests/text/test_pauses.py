"""What speakers say is quoted without pauses and sounds; what nobody said is never added."""

import pytest

from precis_text.pauses import Pauses
from precis_text.selection import shown_texts
from precis_text.support.marks import marks
from precis_text.units import extraction_units


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("The lights are turned on on the quay.", "The lights are turned on on the quay."),
        ("Keep the light on on Friday.", "Keep the light on on Friday."),
        ("You log in in the office.", "You log in in the office."),
        ("The boat is on on the quay.", "The boat is on the quay."),
        ("We meet in in the hall.", "We meet in the hall."),
    ],
)
def test_the_second_part_of_a_verb_is_no_repetition(said: str, left: str) -> None:
    assert Pauses("en").left_out(said) == left


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("Um, so we met on, uh, Monday.", "So we met on Monday."),
        ("We sold the boat, um.", "We sold the boat."),
        ("Um . So we sold the uh boat .", "So we sold the boat ."),
        ("{vocalsound} It costs , uh , twelve euros .", "It costs , twelve euros ."),
        ("So, um we sold it. [laughter] Good. (clears throat) Uh... maybe.", "So, we sold it. Good. Maybe."),
        ("What {disfmarker} the boat is sold.", "What – the boat is sold."),
        ("We sold the [inaudible] boat.", "We sold the [inaudible] boat."),
        ("We flew to the UM campus; 5 mm of rain fell.", "We flew to the UM campus; 5 mm of rain fell."),
        ("The [red] boat (ours) is sold.", "The [red] boat (ours) is sold."),
        ("And the the boat is is ours.", "And the boat is ours."),
        ("So this is th this is th the boat.", "So this is the boat."),
        ("It – it helps on – on the noises.", "It helps on the noises."),
        ("We w we sold it was it was late.", "We sold it was late."),
        ("A 5 m mast, plan b before noon, and knock knock.",) * 2,
        ("Again and again, on – the boat, we say bye bye.",) * 2,
        ("Yeah . So again we j jump to the boat . Well .", "So again we jump to the boat ."),
        ("Okay. Yep. Cool.",) * 2,
        ("It is a very very long way, and that that works is no no.",) * 2,
        ("we sold it. so did he, um, and she.", "we sold it. so did he and she."),
        ("– we sold it.",) * 2,
        ("um, we sold it. I, uh, said so.", "we sold it. I said so."),
        ("It was it was, we say.", "It was, we say."),
        ("So plan b – it was late.",) * 2,
        ("I, I, think my, my, my boat and, and so the, the mast .", "I think my boat and so the mast ."),
        ("I , I think the , the boat is sold.", "I think the boat is sold."),
        ("I like it, it works, is it, it was, was it.",) * 2,
        (
            "We 'll see , if we – if we sold the boat , if we sold the boat .",
            "We 'll see , if we sold the boat .",
        ),
        ("Going on, going on, and going on.",) * 2,
        ("Nobody knows that nobody knows that boat.", "Nobody knows that boat."),
        ("Knock knock come knock knock come in.", "Knock knock come in."),
        ("Sold out sold out, they say.",) * 2,
        ("We saw the boat, the quay and the mast.",) * 2,
        ("No no no no no no.", "No no no no no no."),
        *(
            (text, text)
            for text in (
                "We should add additional tests for that.",
                "The report reported a loss, so turn off office lights.",
                "Whatever it is, it is good for us.",
                "If you think you are, you are mistaken.",
                "Wherever he is , he is safe now .",
                "It was for you and I, I think.",
                "It was she, she said, who sold the boat.",
                "They told us what I, I alone, can do.",
            )
        ),
        ("The boat is in, the boat is in the dock.", "The boat is in the dock."),
        ("Uh.", "Uh."),
        ("[laughter]", "[laughter]"),
    ],
)
def test_pauses_repetitions_and_sounds_are_left_out(said: str, left: str) -> None:
    assert Pauses("en").left_out(said) == left


def test_an_agreement_that_answers_stays() -> None:
    chat = "Ann: Is the boat sold?\nBob: Yeah. It cost ten.\nAnn: Good.\nBob: Okay. We sail on Monday."
    texts = [unit.text for unit in extraction_units(chat)]
    assert texts == [
        "Ann: Is the boat sold?",
        "Bob: Yeah. It cost ten.",
        "Ann: Good.",
        "Bob: We sail on Monday.",
    ]


@pytest.mark.parametrize(
    "said",
    [
        "People wait three days for an answer at the moment.",
        "Then we went home with ten tents.",
        "She pays so sober a price.",
        "Paint one onesie per person.",
    ],
)
def test_a_word_of_grammar_or_a_number_is_whole_although_the_next_word_starts_with_it(said: str) -> None:
    assert extraction_units(f"Ann: {said}\nBob: Is that right?")[0].text == f"Ann: {said}"


@pytest.mark.parametrize(
    ("said", "opening"),
    [
        ("Okay alright so we sold it all.", "Okay alright so"),
        ("Okay , so , then it rained .", "Okay , so ,"),
        ("So the boat is sold.", "So"),
        ("so i feel like it", "so"),
        ("Well, then it rained hard.", "Well,"),
        ("'Kay we go to sea.", "'Kay"),
        ("Okay, then, Monday!", ""),
        ("Done. The shop keeps ten percent of it.", ""),
        ("No. My brother wants the old boat.", ""),
        ("Will do. The boat is sold by Friday.", ""),
        ("– we sold the boat.", ""),
        ("Right, we sold the boat.", "Right,"),
        ("Right okay so the boat is sold.", "Right okay so"),
        ("Cool the soup before you eat it.", ""),
        ("Cool, dry weather is expected tomorrow.", ""),
        ("Right, left and centre were all full.", ""),
        ("Right you are, my dear friend Bob.", ""),
        ("So you can understand it, we wrote a guide.", ""),
        ("So it doesn't break, we oiled it twice.", ""),
        (
            "Good morning. Thank you, Mr. Chair. The boat is sold.",
            "Good morning. Thank you, Mr. Chair.",
        ),
        ("Thanks, Ann! Okay, so we sold the boat.", "Thanks, Ann! Okay, so"),
        ("Good morning. Thanks, Ann. It rains.", ""),
        ("We met. Thanks, Ann. It rained.", ""),
        ("Okay, so, well, right, so.", ""),
        *(
            (text, "")
            for text in ("Well designed boats.", "So far it rains.", "Right after noon.", "Okay is fine.")
        ),
        *((text, "") for text in ("Okay", "So, well.", "Sold, it is.", "")),
    ],
)
def test_what_only_opens_a_statement_is_found(said: str, opening: str) -> None:
    assert Pauses("en").opening(said) == opening


def test_a_summary_shows_what_opens_a_statement_only_after_a_question() -> None:
    talk = (
        "Ann: Okay, so the boat is sold.\nBen: Who paid?\nAnn: Well, we all did.\nBen: so we all wait there."
    )
    units = extraction_units(talk)
    assert [unit.text for unit in units] == talk.split("\n")
    assert not marks(talk, "Ann: The boat is sold.")
    assert shown_texts(units) == [
        "Ann: The boat is sold.",
        "Ben: Who paid?",
        "Ann: Well, we all did.",
        "Ben: we all wait there.",
    ]


def test_a_pause_of_one_language_is_a_word_of_another() -> None:
    assert Pauses("de").left_out("Wir gehen um drei, äh, los.") == "Wir gehen um drei los."
    assert Pauses(None).left_out("Um três barco.") == "Um três barco."


def test_turns_lose_their_pauses_and_prose_keeps_its_words() -> None:
    document = "Ann: Um, so the boat is uh sold.\nBen: {laugh} Good. And the old one?\nAnn: Uh, the same."
    units = extraction_units(document)
    assert [unit.text for unit in units] == [
        "Ann: So the boat is sold.",
        "Ben: Good. And the old one?",
        "Ann: The same.",
    ]
    assert [document[unit.start : unit.stop] for unit in units] == document.split("\n")
    prose = "He wrote uh and um on the wall of the house. [laughter] is a tag of the film."
    assert " ".join(unit.text for unit in extraction_units(prose)) == prose


def test_a_sound_between_sentences_of_a_long_turn_parts_them() -> None:
    said = " ".join(f"Sentence {number} of hers is here." for number in range(14))
    units = extraction_units(
        f"Ann: {said} [laughter] The boat is sold.\nBen: Good.\nAnn: So it is.\nBen: Yes."
    )
    assert [unit.text for unit in units][13:15] == ["Sentence 13 of hers is here.", "The boat is sold."]
