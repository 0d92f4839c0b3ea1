"""Which units may be chosen: no asides, no announcement without what it announces, no sentence without its speaker."""

import math
from dataclasses import dataclass, replace

import pytest

from precis_text.length import Length, make_length
from precis_text.motions import votes_on_motions
from precis_text.partners import Partners
from precis_text.selection import (
    _Extract,
    _may_end,
    choose,
    expected_words,
    inputs_of,
    join_units,
    most_words,
    shown_texts,
)
from precis_text.units import TextUnit, extraction_units

pytestmark = pytest.mark.usefixtures("everybody_understands")


@dataclass(frozen=True)
class Read:
    units: list[TextUnit]

    @property
    def tokens(self) -> list[int]:
        return [len(unit.text.split()) for unit in self.units]


def extract(document: str, scores: list[float], *, words: int) -> str:
    units = extraction_units(document)
    assert len(units) == len(scores), [unit.text for unit in units]
    places = choose(Read(units), scores, make_length(words=words), words=words)
    return join_units(document, [units[place] for place in places])


def test_an_extract_without_a_limit_has_at_most_half_of_a_conversation() -> None:
    turn, title = TextUnit("Ann: it rains a lot", 0, 19, speaker="Ann"), TextUnit("Rain", 0, 4)
    assert most_words([turn, turn], 9.0) == 5.0
    assert most_words([turn, turn], 4.0) == 4.0
    assert most_words([turn, *[title] * 6], 9.0) == 9.0
    assert most_words([title, title], 9.0) == 9.0


def test_asides_are_not_chosen_while_there_are_sentences() -> None:
    document = (
        "Figure 1: The old wall of the town.\n\nThe wall moved by eleven centimetres.\n\nNorth | 12 | 14"
    )
    assert extract(document, [0.9, 0.2, 0.8], words=40) == "The wall moved by eleven centimetres."
    table = "Wall | Shift in millimetres\nNorth wall | 12 and 14"
    assert extract(table, [0.1, 0.9], words=6) == "North wall | 12 and 14"


def test_a_formality_is_not_chosen_while_there_are_sentences() -> None:
    opened, closed = "Mayor Holt called the meeting to order at 7 p.m.", "The meeting was adjourned at 9 p.m."
    text = f"{opened} The wall of the town moved. {closed}"
    assert extract(text, [0.9, 0.01, 0.2], words=40) == "The wall of the town moved."
    assert extract(f"{opened} {closed}", [0.9, 0.1], words=12) == opened


MINUTES = (
    "Ms. Ray moved, seconded by Mr. Po, to buy the old wall. All spoke of it. Motion failed 2-4. "
    "Mr. Po moved, seconded by Ms. Ray, to paint the quay. Motion carried 6-0."
)


def test_a_motion_is_shown_with_the_vote_on_it() -> None:
    shown = "Ms. Ray moved, seconded by Mr. Po, to buy the old wall. Motion failed 2-4."
    assert extract(MINUTES, [0.9, 0.1, 0.0, 0.2, 0.0], words=15) == shown
    assert extract(MINUTES, [0.9, 0.0, 0.0, 0.8, 0.0], words=30) == MINUTES.replace("All spoke of it. ", "")


def test_a_motion_whose_vote_does_not_fit_is_not_shown_alone() -> None:
    assert extract(MINUTES, [0.9, 0.3, 0.0, 0.8, 0.0], words=11) == "All spoke of it."


@pytest.mark.parametrize("told", ["All were in favor.", "The council voted 5-0 for it.", "He withdrew it."])
def test_a_motion_that_was_voted_on_in_other_words_has_not_the_vote_on_the_next_one(told: str) -> None:
    units = extraction_units(
        f"Mr. Po moved to buy the wall. {told} Ms. Ray moved to sell the quay. Motion failed 2-3."
    )
    assert votes_on_motions(units) == {2: 3}


def test_a_motion_that_was_not_carried_has_its_vote() -> None:
    units = extraction_units("Mr. Po moved to buy the wall. The motion was not carried. The quay is old.")
    assert votes_on_motions(units) == {0: 1}


def test_a_vote_in_another_section_is_not_about_a_motion() -> None:
    units = extraction_units(MINUTES.replace(" All spoke of it. ", "\n\nThe old quay\n\n"))
    assert [unit.heading for unit in units] == [False, True, False, False, False]
    assert votes_on_motions(units) == {3: 4}


def test_an_announcement_is_chosen_only_with_what_it_announces() -> None:
    document = "The board of the harbour decided two things on that day: 1. The wall is measured. 2. The quay is built."
    assert extract(document, [0.9, 0.1, 0.8], words=7) == "2. The quay is built."
    assert extract(document, [0.9, 0.8, 0.1], words=16) == document.rpartition(" 2. ")[0]
    alone = "The wall moved by eleven centimetres. To see it yourself on the next day, do this with the map:"
    assert extract(alone, [0.1, 0.9], words=40) == "The wall moved by eleven centimetres."


def test_a_sentence_that_points_below_is_chosen_only_with_what_follows() -> None:
    document = (
        "Clean the stove after use. Below are some other hints for the kitchen. Oil can catch fire in a pan."
    )
    assert extract(document, [0.1, 0.9, 0.01], words=8) == "Clean the stove after use."


def test_an_announcement_is_not_chosen_with_the_sentence_before_it_alone() -> None:
    document = (
        "A plan helps all who build. Here are some hints for you.\n\nThe roof\n\nThe roof is built last."
    )
    assert (
        extract(document, [0.5, 0.9, 0.8, 0.1], words=16)
        == "A plan helps all who build.\nThe roof is built last."
    )
    assert extract(document, [0.5, 0.9, 0.8, 0.1], words=6) == "A plan helps all who build."


def test_an_announcement_of_a_sentence_that_points_back_is_not_chosen_alone() -> None:
    old, rest = "The wall is old.", "Specifically, it takes a target."
    announced = "The syntax of dependencies in the file will include these:"
    document = f"{old} {announced}\n\n{rest}"
    assert extract(document, [0.1, 0.9, 0.2], words=7) == old
    assert extract(document, [0.1, 0.2, 0.9], words=16) == f"{announced}\n{rest}"


def test_a_sentence_that_blank_lines_cut_is_not_chosen_without_its_end() -> None:
    start, rest = "It rained. For the two men of the ship were", "marooned on a small island of the lake."
    document = f"The mill of the town is old.\n\n{start}\n\n{rest}\n\nNobody came to the lake then. The ice was thin."
    assert extract(document, [0.1, 0.02, 0.9, 0.2, 0.01, 0.01], words=9) == "The mill of the town is old."
    assert extract(document, [0.1, 0.02, 0.9, 0.9, 0.01, 0.01], words=16) == f"{start[11:]}\n{rest}"


@pytest.mark.parametrize("mark", ["- ", "* ", "• ", "(2) ", "12) "])
def test_an_item_of_a_list_has_its_mark_only_next_to_another_item(mark: str) -> None:
    document = f"The board met on Friday.\n\n{mark}The quay is built in May.\n{mark}The wall is measured."
    assert (
        extract(document, [0.9, 0.8, 0.1], words=12) == "The board met on Friday.\nThe quay is built in May."
    )
    both = f"{mark}The quay is built in May.\n{mark}The wall is measured."
    assert extract(document, [0.1, 0.9, 0.8], words=13) == both


@pytest.mark.parametrize(
    "said", ["Excellent, thanks for that, Ann.", "No worries!", "Well, let's begin.", "Cool, let's go!"]
)
def test_a_message_that_only_thanks_agrees_or_opens_is_not_chosen_while_there_are_others(said: str) -> None:
    chat = f"[10:30] <Ann> The quay is built in May.\n[10:31] <Ben> {said}\n[10:32] <Ann> The wall is old and grey."
    assert "Ben" not in extract(chat, [0.3, 0.9, 0.2], words=40)
    assert extract(f"[10:30] <Ann> Hi!\n[10:31] <Ben> {said}", [0.1, 0.9], words=40)


@pytest.mark.parametrize(
    "said", ["Yes, on Monday.", "Let's go to Paris.", "Okay, then, Monday!", "Great, Paris!"]
)
def test_a_short_message_with_a_day_or_a_place_is_no_courtesy(said: str) -> None:
    chat = f"[10:30] <Ann> The quay is built in May.\n[10:31] <Ben> {said}\n[10:32] <Ann> The wall is old and grey."
    assert f"Ben: {said}" in extract(chat, [0.3, 0.9, 0.2], words=40)


def test_a_sentence_from_a_long_message_names_its_speaker() -> None:
    long = " ".join(f"Sentence {number} of hers is here." for number in range(14))
    document = f"[10:30] <ann> {long}\n[10:31] <ben> Harbour is closed."
    scores = [0.1] * 15
    scores[4], scores[14] = 0.9, 0.8
    assert extract(document, scores, words=11) == "ann: Sentence 4 of hers is here.\nben: Harbour is closed."


def test_a_missing_space_is_put_between_two_sentences() -> None:
    document = "The board met on Friday.The quay costs 18 million.Work begins in May on the wall."
    found = extract(document, [0.9, 0.8, 0.1], words=10)
    assert found == "The board met on Friday. The quay costs 18 million."


def test_speech_without_full_stops_has_no_dependent_pieces() -> None:
    document = "so the board met on monday\n\npeople talked of the old wall\n\nthen the quay was built in may"
    assert extract(document, [0.1, 0.9, 0.2], words=8).endswith("talked of the old wall")


CHAT = """[10:30] <ann> Hello!
[10:31] <ben> Did the town close the mill for the winter this time?
[10:32] <cem> Yes. They agreed to close it on Monday.
[10:33] <ann> The wheel is older than the bridge and turns slowly.
[10:34] <ben> Ok, thanks!
"""


def test_a_decision_is_worth_half_as_much_again_and_is_chosen_with_its_question() -> None:
    wheel = "ann: The wheel is older than the bridge and turns slowly."
    assert extract(CHAT, [0.2, 0.1, 0.1, 0.6, 0.5], words=24) == wheel
    found = extract(CHAT, [0.2, 0.1, 0.5, 0.6, 0.5], words=24)
    assert found == (
        "ben: Did the town close the mill for the winter this time?\ncem: Yes. They agreed to close it on Monday."
    )


def test_a_message_that_only_greets_or_thanks_is_chosen_last() -> None:
    without = "".join(line for line in CHAT.splitlines(keepends=True) if line[1:6] not in ("10:31", "10:32"))
    found = extract(without, [0.9, 0.3, 0.9], words=11)
    assert found == "ann: The wheel is older than the bridge and turns slowly."


def test_a_question_that_names_a_decision_decides_nothing() -> None:
    asked = "[10:30] <ann> Was the mill approved?\n[10:31] <ben> The wheel turns every day."
    assert extract(asked, [0.4, 0.6], words=7) == "ben: The wheel turns every day."


def test_a_unit_is_said_when_more_than_three_tenths_of_its_word_pairs_are_chosen() -> None:
    units = extraction_units("A quay was built. The wall moved by far.")
    extract = _Extract(units, [4, 5], [4, 5], Partners())
    extract.add([0])
    pairs = sorted(extract._pairs(1))
    assert len(pairs) == 4
    said = []
    for count in (1, 2):
        extract._seen = set(pairs[:count])
        said.append(extract.repeats(1))
    assert said == [False, True]


def test_an_extract_may_end_with_the_least_words_and_half_of_the_cap() -> None:
    length = make_length(words=10, min_words=6)
    assert not _may_end(length, 5, 5, 3.0)
    assert _may_end(length, 6, 5, 3.0)
    assert not _may_end(length, 6, 4, 3.0)
    assert not _may_end(length, 6, 5, 7.0)


def test_beyond_the_expected_words_only_units_of_half_the_best_worth_fill_the_cap() -> None:
    document = (
        "The wall moved by eleven inches. A quay was built last summer. Many boats came in the night. "
        "Some birds sat on every mast."
    )
    units = extraction_units(document)
    places = choose(Read(units), [0.9, 0.6, 0.5, 0.2], make_length(words=20), words=6)
    assert places == [0, 1, 2]
    exactly_half = choose(Read(units), [0.8, 0.6, 0.4, 0.2], make_length(words=20), words=6)
    assert exactly_half == [0, 1, 2]


def test_the_rest_of_a_turn_comes_before_what_others_say() -> None:
    document = (
        "Ann: The old wall moves by far.\nAnn: A new quay costs eighteen euros.\nBen: Dora paints harbour boats red."
        "\nAnn: Nobody measured water levels."
    )
    assert extract(document, [0.9, 0.4, 0.5, 0.4], words=16).count("Ann:") == 2
    assert "Ben" in extract(document, [0.9, 0.1, 0.5, 0.2], words=16)


def sentences_of(*sizes: int) -> Read:
    """Return sentences of so many words, all different."""
    texts = (
        f"The {' '.join(f'w{place}x{word}' for word in range(size - 2))} ends."
        for place, size in enumerate(sizes)
    )
    return Read([TextUnit(text, 0, 0) for text in texts])


def test_a_pair_of_half_the_best_worth_is_chosen_beyond_the_expected_words() -> None:
    pair = [TextUnit(text, 0, 0) for text in ("The mill turns every day.", "It was built by Ann.")]
    read = Read([*sentences_of(10).units, *pair])
    assert choose(read, [0.8, 0.1, 0.5], make_length(words=20), words=6) == [0, 1, 2]  # it counts as 0.4
    assert choose(read, [0.8, 0.1, 0.49], make_length(words=20), words=6) == [0]


@pytest.mark.parametrize(
    ("length", "places"),
    [
        (make_length(words=40), [0, 1]),
        (make_length(words=39), [0]),
        (make_length(tokens=56), [0, 1]),
        (make_length(tokens=55), [0]),
    ],
)
def test_a_cap_of_40_words_or_56_tokens_is_filled_with_what_is_worse(
    length: Length, places: list[int]
) -> None:
    assert choose(sentences_of(30, 10), [0.9, 0.3], length, words=10) == places


def test_the_best_of_what_was_passed_fills_a_cap_and_what_scores_nothing_comes_last() -> None:
    assert choose(sentences_of(24, 20, 20), [0.9, 0.1, 0.2], make_length(words=44), words=0) == [0, 2]
    assert choose(sentences_of(24, 20), [0.9, 0.0], make_length(words=44), words=0) == [0, 1]


def test_a_cap_is_filled_until_85_percent_are_used() -> None:
    assert choose(sentences_of(20, 14, 5), [0.9, 0.2, 0.1], make_length(words=40), words=0) == [0, 1]
    assert choose(sentences_of(20, 13, 5), [0.9, 0.2, 0.1], make_length(words=40), words=0) == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "fills"),
    [
        ("- Expand export opportunities", False),
        ("- Heat pump instead of gas", True),
        ("The bridge is closed.", True),
        ("closed until may", False),
    ],
)
def test_a_fragment_of_few_words_fills_no_cap(text: str, fills: bool) -> None:
    read = Read([sentences_of(30).units[0], TextUnit(text, 0, 0)])
    assert choose(read, [0.9, 0.3], make_length(words=40), words=0) == ([0, 1] if fills else [0])


def test_messages_that_say_almost_nothing_do_not_fill_a_cap_also_where_prose_is() -> None:
    read = sentences_of(24, 12, 12)
    message = TextUnit(f"Ann: {read.units[1].text}", 0, 0, speaker="Ann")
    mixed = Read([read.units[0], message, read.units[2]])
    assert choose(mixed, [0.9, 0.04, 0.0], make_length(words=44), words=0) == [0]
    assert choose(mixed, [0.9, 0.05, 0.0], make_length(words=44), words=0) == [0, 1]
    assert choose(read, [0.9, 0.04, 0.0], make_length(words=44), words=0) == [0, 1]


def test_where_all_else_is_a_heading_an_announcement_is_chosen() -> None:
    units = [TextUnit("Old walls of the harbour", 0, 0, heading=True), TextUnit("In a clone of it:", 0, 0)]
    assert choose(Read(units), [0.9, 0.1], make_length(sentences=1), words=0) == [1]
    assert choose(Read(units[:1]), [0.9], make_length(sentences=1), words=0) == [0]


def test_what_answers_a_question_is_chosen_without_the_sentence_that_it_points_to() -> None:
    before, answer, other = (
        TextUnit(text, 0, 0)
        for text in ("The mill turns every day.", "It was built by Ann.", "A quay opens here soon.")
    )
    for is_answer, places in ((True, [1]), (False, [2])):
        read = Read([before, replace(answer, answers=is_answer), other])
        assert choose(read, [0.1, 0.9, 0.3], make_length(words=5), words=0) == places
    read = Read([before, replace(answer, answers=True), other])
    assert choose(read, [0.1, 0.9, 0.8], make_length(words=5), words=0) == [2]  # the answer counts as 0.71
    aside = replace(answer, answers=True, aside=True)
    assert choose(Read([before, aside, other]), [0.1, 0.9, 0.3], make_length(words=5), words=0) == [2]


def test_in_a_summary_of_half_a_conversation_a_short_message_keeps_its_worth() -> None:
    chat = (
        "Ann: The pump lifts water slowly.\nBen: The wall keeps clean water in eleven deep green wells there."
        "\nAnn: Boats came.\nBen: Birds sang."
    )
    assert extract(chat, [0.9, 0.5, 0.0, 0.0], words=12) == "Ann: The pump lifts water slowly."


def test_units_are_read_together_while_they_fit_and_a_longer_one_is_cut() -> None:
    rows = [[1] * 3, [2] * 3, [3], [4] * 9]
    assert [*inputs_of(rows, 6)] == [[[1] * 3, [2] * 3], [[3]], [[4] * 6]]
    assert [*inputs_of([], 6)] == []


def test_an_extract_without_a_limit_has_the_words_of_the_longest_window_and_at_most_400() -> None:
    assert expected_words([math.log(8), math.log(80)]) == pytest.approx(100)
    assert expected_words([math.log(8), math.log(4000)]) == 400


def test_the_first_and_the_last_item_of_a_summary_have_no_mark_alone() -> None:
    item, said = TextUnit("- The quay is built in May.", 0, 0), TextUnit("The board met.", 0, 0)
    assert shown_texts([item, said]) == ["The quay is built in May.", "The board met."]
    assert shown_texts([said, item]) == ["The board met.", "The quay is built in May."]


def test_what_opens_a_message_takes_no_room_of_a_summary() -> None:
    chat = (
        "Ann: Good morning. We decided to sell the boat on Monday.\n"
        "Ben: The board pays ten thousand euros for the old boat.\nAnn: Good.\nBen: The quay is dry again today."
    )
    units = extraction_units(chat)
    assert choose(Read(units), [0.9, 0.8, 0.1, 0.1], make_length(sentences=2), words=0) == [0, 1]
    assert choose(Read(units), [0.9, 0.8, 0.1, 0.1], make_length(words=20), words=20) == [0, 1]


def test_a_decision_before_a_question_is_chosen_without_its_answer() -> None:
    chat = (
        "Ann: We decided to rent the stage. Can you call?\n"
        "Ben: Yes, I will call them by Friday.\nCem: The band has no contract."
    )
    units = extraction_units(chat)
    assert choose(Read(units), [0.9, 0.1, 0.5], make_length(words=11), words=11) == [0]
    asked = extraction_units(
        "Ann: Do we rent the smaller stage?\nBen: Yes, decided.\nCem: The band has no contract."
    )
    assert choose(Read(asked), [0.9, 0.1, 0.5], make_length(words=8), words=8) == [2]


FLYERS = """Ann: Bob has the text. Are the flyers on time?
Bob: Yes, on Friday.
Cem: The tent of the choir leaks at the left seam.
Ann: The power costs forty euros. Do we pay that?
Bob: I asked the town hall about it and they told me to wait for the letter.
"""


def test_a_turn_that_ends_with_a_question_is_shown_with_its_short_answer() -> None:
    first, second, third, fourth, _ = FLYERS.splitlines()
    assert extract(FLYERS, [0.9, 0.0, 0.5, 0.1, 0.0], words=14) == f"{first}\n{second}"
    assert extract(FLYERS, [0.9, 0.0, 0.0, 0.0, 0.0], words=13) == first
    assert extract(FLYERS, [0.1, 0.0, 0.9, 0.0, 0.0], words=21) == third
    assert extract(FLYERS, [0.1, 0.0, 0.1, 0.9, 0.0], words=14) == fourth
    for other in ("Ann: Yes, on Friday.", "Bob: Yes, why on Friday?"):
        chat = FLYERS.replace("Bob: Yes, on Friday.", other)
        assert extract(chat, [0.9, 0.0, 0.0, 0.0, 0.0], words=12) == first
