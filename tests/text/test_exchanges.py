"""Greetings, short answers and decisions of a conversation are known by their words and by who speaks."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from precis_text.courtesies import is_courteous, is_frame, only_greets
from precis_text.exchanges import (
    asks_alone,
    chairs,
    contents,
    decides,
    is_courtesy,
    leads,
    needs_question,
    pieces,
    questions_of_answers,
    short_answers,
    speaks_of_meeting,
)
from precis_text.units import TextUnit, extraction_units


def said(text: str, speaker: str = "Ann", **more: Any) -> TextUnit:
    shown = f"{speaker}: {text}" if speaker else text
    return TextUnit(**{"text": shown, "start": 0, "stop": len(shown), "speaker": speaker, **more})


def units_of(*turns: tuple[str, str]) -> list[TextUnit]:
    return [said(text, speaker) for speaker, text in turns]


ASKED = said("Is the mill closed?", "Ben")


@pytest.mark.parametrize(
    ("answer", "before", "depends"),
    [
        (said("No."), ASKED, True),
        (said("No, one two three four five six."), ASKED, True),
        (said("No, one two three four five six seven."), ASKED, False),
        (said("Only on Friday."), ASKED, True),
        (said("I think so."), ASKED, True),
        (said("Ann did."), ASKED, True),
        (said("I think that it is."), ASKED, False),
        (said("The owners closed it on Friday."), ASKED, False),
        (said("Die Besitzer haben sie am Freitag geschlossen."), ASKED, False),
        (said("❤️"), ASKED, False),
        (said("A single one, with a bath."), ASKED, True),
        (said("That one turns in the wind, and it has for a hundred years."), ASKED, True),
        (
            said("They found the missing girl alive in a hut near the lake after six days of search."),
            ASKED,
            False,
        ),
        (said("The mill of the harbour has turned there for a hundred years."), ASKED, False),
        (said("Is it?"), ASKED, False),
        (said("!"), ASKED, False),
        (said("No.", "Ben"), ASKED, False),
        (said("No."), said("The mill is closed.", "Ben"), False),
        (said("No."), said("L'hôtel est fermé ？", "Ben"), True),
        (said("No."), said("Is it closed?", ""), False),
        (said("No."), said("Is it closed?", "Ben", aside=True), False),
        (said("No."), None, False),
        (said("No.", aside=True), ASKED, False),
    ],
)
def test_an_answer_that_needs_its_question_is_no_sentence_or_agrees_or_points_back(
    answer: TextUnit, before: TextUnit | None, depends: bool
) -> None:
    assert needs_question(answer, before) == depends


def test_a_question_has_the_short_answer_of_the_next_speaker() -> None:
    asked, other = ("Ben", "Who closed the mill?"), ("Cem", "The wall of the harbour is wet.")
    assert short_answers(units_of(asked, ("Ann", "Ann."), other, asked, ("Ann", "The two of us."))) == {
        0: 1,
        3: 4,
    }
    long = "The one near the harbour turns in the wind, as it did for a hundred years."
    assert short_answers(units_of(("Ben", "Can you close the mill?"), ("Ann", "Will do."))) == {0: 1}
    assert short_answers(units_of(("Ben", "What can we close?"), ("Ann", "Oh yes!"))) == {}
    assert short_answers(units_of(("Ben", "Do you know who closed it?"), ("Ann", "Yes."))) == {0: 1}
    assert short_answers(units_of(("Ben", "What about Friday?"), ("Ann", "Sure."))) == {0: 1}
    for answer in (("Ben", "Ann."), ("Ann", long), ("Ann", "Who knows?"), ("Ann", "Thanks, Ben.")):
        assert short_answers(units_of(asked, answer)) == {}


@pytest.mark.parametrize(
    ("text", "goes_on"),
    [
        ("Let's move on to the next item.", True),
        ("Let’s move on, then.", True),
        ("Okay, so we will move down now to the last two items.", True),
        ("In the meantime, we can continue, since the next one is also a wall.", True),
        ("This is agenda number 69.", True),
        ("We got five minutes more to talk about this.", True),
        ("We'll move the pump to the wall.", False),
        ("We will go ahead, and sell the boat.", False),
        ("We will continue, but the bank does not pay.", False),
        ("We will move down to the second floor in May.", False),
        ("We lost forty minutes for this.", False),
        ("We can continue the work on the wall in May.", False),
        ("The pump runs ten minutes.", False),
        ("Ann said that we'll move on to Rome.", False),
        ("We approved the minutes of the last meeting.", False),
        ("We lost thirty minutes because of the fire.", False),
        ("Let's go ahead with the purchase of the boat.", False),
        ("We should turn to the bank for a loan.", False),
        ("Let's go to the beach on Friday.", False),
        ("We'll kick off the campaign on 3 May.", False),
    ],
)
def test_a_chair_goes_on_to_the_next_part(text: str, goes_on: bool) -> None:
    assert chairs(said(text)) == goes_on


def test_a_question_without_a_short_answer_of_the_next_speaker_asks_alone() -> None:
    asked, long = (
        ("Ben", "Who closed the mill?"),
        ("Ann", "The owners of the harbour closed it in the spring of 1999."),
    )
    both = ("Ben", "The mill is closed. Who closed it?")
    units = units_of(asked, ("Ann", "Only Ben."), asked, long, both, long, ("Ben", "And Cem?"), asked)
    assert asks_alone(units, short_answers(units)) == [False, False, True, False, False, False, False, True]


def test_a_decision_is_taken_with_the_question_right_before_it() -> None:
    asked, answer = ("Ben", "Do we close the mill?"), ("Ann", "Yes, we decided to close it.")
    other = ("Cem", "The wall of the harbour is wet.")
    assert questions_of_answers(units_of(asked, answer)) == {1: 0}
    assert questions_of_answers(units_of(other, asked, answer, other, asked, answer)) == {2: 1, 5: 4}
    for turns in (
        [asked, other, answer],
        [answer, asked],
        [asked, ("Ben", answer[1])],
        [("", asked[1]), answer],
        [asked, ("", answer[1])],
        [asked, ("Ann", "Yes, we know of it.")],
        [asked, ("Ann", "Yes, was it decided?")],
        [("Ben", "We close the mill."), answer],
        [asked],
        [],
    ):
        assert questions_of_answers(units_of(*turns)) == {}


@pytest.mark.parametrize(
    ("text", "is_said"),
    [
        ("Thanks, Berta!", True),
        ("Thanks, Berta, for the oats.", False),
        ("Okay, Berta!", False),  # a name only with a greeting
        ("Thanks, berta!", False),
        ("okay " * 8, True),
        ("okay " * 9, False),
        ("Okay , so now we are on the conceptual design meeting .", True),
        ("OK , so we are recording .", True),
        ("Welcome everyone.", True),
        ("Okay any other comments?", True),
        ("And that's all .", True),
        ("There we go .", True),
        ("Thank you very much, Mr.Chair.", True),
        ("Who first ?", True),
        ("Who wants to go first?", True),
        ("Hello, Barbara, welcome back.", True),
        ("Thanks , Berta .", True),
        ("So it's lovely to see you again.", True),
        ("Thanks again for a great weekend!!", True),
        ("I know right", True),
        ("hahahaha", True),
        ("Okay , so now we are here at the functional design meeting .", True),
        ("Next slide please .", True),
        ("Paper to note 2.", True),
        ("Rod, it's lovely to see you again.", False),  # no name before a greeting: "Fire, that's it."
        ("Moving on to Notable mill changes, we have three.", False),
        ("Next mill please.", False),
        ("Any other mill?", False),
        ("Who sold the mill first?", False),
        ("We are at the mill.", False),
        ("We are at the meeting of mills.", False),
        ("We are on holiday until the meeting.", False),
        ("That's all the oats we have.", False),
        ("Thanks for the oats and the mill.", False),
        ("Let's start the mill.", False),
        ("It's lovely to see the mill again.", False),
        ("…", False),
        ("", False),
    ],
)
def test_a_courtesy_greets_or_thanks_by_name(text: str, is_said: bool) -> None:
    assert is_courtesy(said(text.strip())) == is_said
    assert not is_courtesy(said(text.strip(), ""))
    assert not is_courtesy(said(text.strip(), aside=True))


def test_only_what_somebody_says_decides_or_leads() -> None:
    for decision in ("We agreed to close the mill.", "The mill turns. We agreed to close it. Is it late?"):
        assert decides(said(decision))
        assert not decides(said(decision, ""))
        assert not decides(said(decision, aside=True))
    for other in ("Have we agreed to close the mill?", "The mill turns.", "我们同意了？"):
        assert not decides(said(other))
    assert decides(said("Monday."), said("When have we agreed to close?", "Ben"))
    assert not decides(said("When?"), said("When have we agreed to close?", "Ben"))
    assert leads(said("Let's move on to the mill."))
    assert not leads(said("Let's move on to the mill.", ""))
    assert not leads(said("The mill moves on to us."))


@pytest.mark.parametrize(
    ("text", "is_led"),
    [
        ("Next segment from the newsletter this week is our monthly one.", True),
        ("Next section of the old wall is wet.", False),
        ("Great, so first item on the agenda is the mill.", True),
        ("This is agenda number 69 and is all about the mill.", True),
        ("This is agenda news to the mill.", False),
        ("Next topic, the mill. Ben, how are we doing?", True),
        ("Okay, item number two.", True),
        ("Let's move to the mill.", True),
        ("Let's move the feast to June.", False),
        ("Next year the mill closes.", False),
        ("Okay, can everybody hear me?", True),
        ("Can you see my screen?", True),
        ("Can you see the mill?", False),
        ("The first mill burned down.", False),
    ],
)
def test_who_names_the_next_topic_leads(text: str, is_led: bool) -> None:
    assert leads(said(text)) is is_led


@pytest.mark.parametrize(
    ("text", "is_decision"),
    [
        ("So we had 300 guests.", False),
        ("So we still have them.", False),
        ("So we close the mill.", True),
        ("The board can make a decision on the mill in May.", False),
        ("The board has to decide on the mill in May.", False),
        ("The decision of the board was to close the mill.", True),
        ("The board decided to close the mill.", True),
    ],
)
def test_what_we_had_and_what_is_still_to_be_decided_is_no_decision(text: str, is_decision: bool) -> None:
    assert decides(said(text)) is is_decision


def test_different_words_with_content_count_and_fillers_do_not() -> None:
    few, more = (
        said("Yeah, the mill, the mill, you know.", ""),
        said("The mill grinds oats for villages.", ""),
    )
    assert contents([few, more]) == [1, 4]


@pytest.mark.parametrize(
    "text",
    [
        "Cancelled, thank you.",
        "Rejected, thank you all.",
        "Approved, that's all for today.",
        "Nobody, that's it.",
        "Denied, let's move on.",
        "Ten, that's all.",
        "Thanks, No.",
        "Hi, Done.",
        "Hello, Fire!",
        "Danke, Abgelehnt.",
        "Gracias, Rechazado.",
        "Danke, Stromausfall.",  # a noun of German looks like a name
        "We'll wait.",
        "Moving on to the trial, we have lost.",
        "Moving on to Plan B, we have lost.",
        "Let's go to the bank and hear what they offer us.",
        "We are here for our cancelled annual meeting.",
        "We're on the wrong budget meeting.",
        "We can continue.",
        "We can go ahead.",
        "We'll go ahead.",
        "Let's go ahead.",
        "No, we can continue.",
        "It's all on me.",
        "That's all on us.",
        "This is everything.",
        "We are live.",
        "Thanks for a terrible day.",
        "Thank you for a missed opportunity.",
        "Ich begrüße den Plan der Stadt.",
    ],
)
def test_what_answers_decides_or_tells_is_no_greeting(text: str) -> None:
    assert not only_greets(text)


@pytest.mark.parametrize(
    "text",
    [
        "That's all from me.",
        "That is it for today.",
        "Okay, let's continue.",
        "We are on the budget meeting.",
        "Thanks for a lovely dinner.",
        "Hello everyone.",
        "Thanks, Berta.",
        "Thank you very much.",
        "Mr. Chair, I'd like to thank the honourable member for his question.",
        "Well, thank you all for joining us, taking the time out of your day to talk about your ideas.",
        "Ja, dann begrüße ich euch alle ganz herzlich.",
    ],
)
def test_what_only_greets_or_leads_goes(text: str) -> None:
    assert only_greets(text)


@pytest.mark.parametrize(
    "text",
    [
        "Thanks for joining and taking time with the vote, which we lost.",
        "Cancelled, thank you.",
        "Thanks, Cancelled.",
        "Danke, Abgelehnt.",
        "Gracias, Rechazado.",
    ],
)
def test_a_decision_is_no_name(text: str) -> None:
    assert not is_courteous(text)


def test_a_long_sentence_is_known_at_once() -> None:
    long = "so, " * 25_000
    start = time.process_time()
    assert not is_frame(long)
    assert not only_greets(long)
    assert time.process_time() - start < 1
    assert is_frame("so, " * 37 + "that's all")


def of_two(first: str, count: int = 20) -> list[TextUnit]:
    """Units of two speakers, of whom Ben says `first` and then whole sentences."""
    whole = "".join(f"Ben: Boat {number} is dry.\nAnn: So is boat {number}.\n" for number in range(count))
    return extraction_units(f"Ann: We keep the boats.\nBen: {first}\n{whole}")


@pytest.mark.parametrize(
    ("first", "is_piece"),
    [
        ("so you can use the boat here.", True),
        ("The boat that we bought from the", True),
        ("So you can use the boat here.", False),
    ],
)
def test_a_piece_of_a_sentence_starts_small_or_has_no_end_where_its_speaker_writes_otherwise(
    first: str, is_piece: bool
) -> None:
    assert pieces(of_two(first)) == [False, is_piece, *40 * [False]]
    assert not any(pieces(of_two(first, count=8)))  # too few messages to know


def test_who_writes_small_does_not_break_off() -> None:
    small = "".join(f"Ben: boat {number} is dry\nAnn: So is boat {number}.\n" for number in range(24))
    assert not any(pieces(extraction_units(small)))


@pytest.mark.parametrize(
    ("text", "is_said"),
    [
        ("The meeting is going to follow our agenda.", True),
        ("Are we supposed to read the digits now?", True),
        ("I will take the minutes and share my screen.", True),
        ("The next slide has the boats.", True),
        ("The meeting agreed to sell the boats.", False),
        ("We present the boats and sign the contract.", False),
        ("The meeting is going to be moved to Friday.", False),
        ("The agenda of the new mayor is to close the pool.", False),
    ],
)
def test_a_message_may_speak_of_the_meeting_itself(text: str, is_said: bool) -> None:
    unit = TextUnit(f"Ann: {text}", 0, 1, speaker="Ann")
    assert speaks_of_meeting(unit) is is_said
    assert not speaks_of_meeting(replace(unit, speaker=""))


def test_a_message_of_two_courtesies_is_one() -> None:
    units = extraction_units(
        "Ann: Hello. How are you doing today?\nBen: Hello. My leg hurts.\nAnn: The boat is dry."
    )
    assert [is_courtesy(unit) for unit in units] == [True, False, False]
