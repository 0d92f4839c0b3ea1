"""What an extract is made of."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precis_text.units import extraction_units, without_item_mark


def texts(document: str) -> list[str]:
    return [unit.text for unit in extraction_units(document)]


def test_prose_is_cut_into_sentences() -> None:
    assert texts("Ann came. Bob left at 3.5 p.m. today.\n\nNobody saw it.") == [
        "Ann came.",
        "Bob left at 3.5 p.m. today.",
        "Nobody saw it.",
    ]


def test_a_turn_is_one_unit_with_its_speaker() -> None:
    assert texts("Ann: Hello. Where are you?\nBob: At home.") == [
        "Ann: Hello. Where are you?",
        "Bob: At home.",
    ]


def test_a_long_turn_is_cut_into_sentences() -> None:
    turn = "Ann: " + " ".join(f"This is sentence number {number} of what she said." for number in range(20))
    assert len(texts(turn)) == 20


def test_a_wrapped_paragraph_is_joined() -> None:
    wrapped = (
        "The committee met on Monday to discuss\nthe budget of the coming year. It\nagreed on nothing at all."
    )
    assert texts(wrapped) == [
        "The committee met on Monday to discuss the budget of the coming year.",
        "It agreed on nothing at all.",
    ]


def test_a_line_that_breaks_within_a_sentence_is_joined_at_any_width() -> None:
    cut = "This lets you make spans and\nmetrics for your code without doing too\nmany changes. See the page for\nmore."
    assert texts(cut) == [
        "This lets you make spans and metrics for your code without doing too many changes.",
        "See the page for more.",
    ]


@pytest.mark.parametrize(
    "document",
    [
        "milk and bread\neggs and cheese\nsalt",
        "ann: we eat at eight then\nbob: see you there",
        "if nobody comes to help us\n    return at once",
    ],
)
def test_short_lines_turns_and_indented_lines_stay_apart(document: str) -> None:
    assert texts(document) == [line.strip() for line in document.splitlines()]


def test_a_wrapped_item_ends_where_the_next_begins() -> None:
    text = (
        "- the first item is long enough to be wrapped by\n"
        "  an editor somewhere. It has two sentences.\n"
        "- the second is not"
    )
    assert texts(text) == [
        "- the first item is long enough to be wrapped by an editor somewhere.",
        "It has two sentences.",
        "- the second is not",
    ]


def test_a_wide_line_without_an_end_is_not_joined_with_an_item() -> None:
    lines = ["The committee met on Monday to discuss this", "- the budget of the coming year", "It agreed."]
    assert texts("\n".join(lines)) == lines


def test_invisible_characters_are_not_in_the_text_of_a_unit() -> None:
    assert texts("The qu\u00aday is new.\u200b The wall is old.") == ["The quay is new.", "The wall is old."]


def test_prose_before_a_dialogue_loses_its_references_and_a_turn_its_pauses() -> None:
    document = (
        "The wall moved [3], um, far.\n\nAnn: Um, the wall moved [3].\nBen: It did.\nAnn: Good.\nBen: Yes."
    )
    assert texts(document)[:2] == ["The wall moved, um, far.", "Ann: The wall moved [3]."]


def test_a_paragraph_ends_with_a_line_that_is_not_full() -> None:
    text = "The committee met on Monday to discuss\nthe budget\nThe second part begins here and is long"
    assert texts(text) == [
        "The committee met on Monday to discuss the budget",
        "The second part begins here and is long",
    ]


@pytest.mark.parametrize(
    "document", ["Budget\nThe committee met on Monday and agreed.", "- milk and butter\n- bread and cheese"]
)
def test_headings_and_items_stay_apart(document: str) -> None:
    assert texts(document) == document.splitlines()


@given(st.text(alphabet="Ab .!?:\n-\tü。", max_size=80))
def test_units_hold_all_letters_in_order(document: str) -> None:
    units = extraction_units(document)
    assert "".join("".join(unit.text for unit in units).split()) == "".join(document.split())
    for unit in units:
        assert " ".join(document[unit.start : unit.stop].split()) == unit.text
    assert all(a.stop <= b.start for a, b in pairwise(units))


def headings(document: str) -> list[str]:
    return [unit.text for unit in extraction_units(document) if unit.heading]


def test_titles_headings_and_signatures_are_marked() -> None:
    document = """THE WATER WORKS
Report to the council

1. The year

Water was there in every week. Nobody complained.

- less was lost
- more was paid for
- pumps were bought
- a well was dug

Marta Wiik, director
"""
    assert headings(document) == [
        "THE WATER WORKS", "Report to the council", "1. The year", "Marta Wiik, director",
    ]  # fmt: skip


def test_a_line_over_its_sentences_is_a_heading_without_a_blank_line() -> None:
    document = """RESULTS
the water of the whole year was counted in every single week. it was late.
New features
The pumps were bought in May, and a well was dug behind the works.

You need:
salt
sugar
Mix everything well in a large bowl until it is smooth.
"""
    assert headings(document) == ["RESULTS", "New features"]


@pytest.mark.parametrize(
    ("line", "below", "is_heading"),
    [
        ("New pumps", "They were bought in May for the works.", True),  # 8 words
        ("They pump.", "They were bought in May for the works.", False),
        ("New pumps", "They were bought in May for us.", False),
        ("New pumps of the works", "They were bought in May since the old ones broke.", True),  # 5 and 10
        ("New pumps of the works", "They were bought in May since others broke.", False),
        ("New pumps", "They were all bought in May for it", False),
    ],
)
def test_a_line_is_a_heading_over_a_sentence_of_8_words_that_is_twice_as_long(
    line: str, below: str, is_heading: bool
) -> None:
    assert headings(f"{line}\n{below}\nEverybody came. It rained.") == [line] * is_heading


@pytest.mark.parametrize(
    ("first", "second"), [("- ", "- "), ("1. ", "2. "), ("a) ", "b) "), ("[ ] ", "[ ] ")]
)
def test_two_short_items_are_a_list_and_no_heading(first: str, second: str) -> None:
    items = [f"{first}Sell the boat", f"{second}Buy a mast"]
    units = extraction_units("The quay was closed.\n\n" + "\n".join(items))
    assert not any(unit.heading for unit in units)
    units = extraction_units(f"The quay was closed.\n\nTo do\n{items[0]}")
    assert not any(unit.heading for unit in units)
    units = extraction_units("The quay was closed.\n\nThe boat\nThe mast")
    assert [unit.heading for unit in units] == [False, True, True]


def test_a_line_over_a_date_and_its_sentences_is_a_heading() -> None:
    text = "Ann opens the new hall\nFriday, May 8, 2009\nThe hall of the town was opened by Ann on Friday. It rained.\n"
    assert headings(text) == ["Ann opens the new hall"]
    assert headings(text.replace("Friday, May 8, 2009", "Friday it rained in town")) == []


WRAPPED = (
    "It was a long way to the old harbour, and nobody knew whether the\nboats would wait for us there.\n\n"
    * 8
)


def test_a_wide_line_with_an_address_hides_no_wrapped_line() -> None:
    block = """Just a few months ago, we wrote about the next phase of the United
States Transparency Initiative of the board, one of our oldest projects
with the lofty goal of educating and informing public debate around
natural resources that are produced on public land. This week, the
United States joined it. See [the report](https://example.org/a/long/address/of/the/report/that/no/program/could/break.html)
and tell us what you think of it.
"""
    first, second = (unit.text for unit in extraction_units(WRAPPED + block)[8:10])
    assert first.startswith(
        "Just a few months ago, we wrote about the next phase of the United States Transparency"
    )
    assert second == "This week, the United States joined it."
    first, second = (
        unit.text
        for unit in extraction_units(WRAPPED + re.sub(r"\(https\S*\)", "of May, if you like", block))[8:10]
    )
    assert second == "This week, the United States joined it."


def test_a_wide_line_of_words_in_a_wrapped_text_joins_no_lines() -> None:
    verse = """The harbour sleeps beneath the moon and all the boats are dark and still, while far away a bell rings out
And nobody will hear the bell that calls the sailors home
And nobody will see the light upon the western hill again
The morning comes, the boats go out
"""
    assert [unit.text for unit in extraction_units(WRAPPED + verse)[8:]] == verse.splitlines()


def test_a_long_line_alone_is_a_heading_and_a_long_item_is_none() -> None:
    title = "Contributions of wind and of rain to the height of the water in the harbour of the old town"
    text = (
        f"The year was wet. Nobody complained.\n\n{title}\n\nThe water rose by a metre in May.\n\n- {title}\n"
    )
    assert headings(text) == [title]


def test_the_number_of_an_item_in_a_list_goes_and_a_day_stays() -> None:
    listed = "1. The quay was closed for three weeks.\n\n2. The wall moved by eleven of the centimetres that we know."
    assert [unit.text[:3] for unit in extraction_units(listed)] == ["The", "The"]
    for text in (
        "1. The quay was closed for three whole weeks, since nobody was there.",
        "3. Oktober ist ein Feiertag in Bayern.\n4. Oktober ist ein Tag, an dem die Leute nicht in der Stadt sind.",
        "1. FC Adler\n2. FC Biber\n3. FC Dachs",
        "We met.\n1. The quay of the town\n2. The wall of the mill\n3. The well of the inn\n4. The rest of it all",
    ):
        assert "\n".join(unit.text for unit in extraction_units(text)) == text


def test_the_lines_of_a_list_without_bullets_are_not_joined() -> None:
    medicines = [
        "Aspirin 75 mg once daily, lifelong",
        "Ticagrelor 90 mg twice daily until 5 February 2027",
        "Bisoprolol 2.5 mg once daily (new)",
        "Ramipril 2.5 mg once daily (increased from 1.25 mg)",
        "Atorvastatin 80 mg at night (new)",
    ]
    assert texts("\n".join(medicines)) == medicines


def test_a_wrapped_paragraph_below_short_lines_is_joined() -> None:
    address = "Ann Lee\n3 Mill Lane\n"
    assert texts(
        address
        + "The harbour was closed on Monday after a storm had\nDamaged both of its cranes on the old quay and\n"
        "Two boats of the rowing club, which were moored at\nPier nine."
    )[2:] == [
        "The harbour was closed on Monday after a storm had Damaged both of its cranes on the old quay and "
        "Two boats of the rowing club, which were moored at Pier nine."
    ]


@pytest.mark.parametrize(
    ("document", "heading"),
    [
        ("1. Services\n1.1 The printer prints the magazine.\n1.2 It comes in May.", "1. Services"),
        ("TOP 2: Kassenbericht\nHerr Lehmann stellt ihn vor. Es gibt keine Fragen.", "TOP 2: Kassenbericht"),
        ("Punto 1: Cuentas\nLa junta aprueba las cuentas.", "Punto 1: Cuentas"),
        ("Protokoll des TSV Grünau e. V.\n\nEs kamen alle Mitglieder.", "Protokoll des TSV Grünau e. V."),
    ],
)
def test_a_part_of_minutes_or_of_a_contract_has_a_heading(document: str, heading: str) -> None:
    first, *others = extraction_units(document)
    assert (first.text, first.heading) == (heading, True)
    assert not any(unit.heading for unit in others)


@pytest.mark.parametrize(
    ("line", "is_heading"),
    [
        ("We will not pay the debt of Smith & Co.", False),
        ("Ann Lee leaves the board of Uber Technologies Inc.", False),
        (
            "The study, which the city ordered in May after a long debate about fares and the safety of its "
            "streets at night, was written by two professors of a well known school and paid for by Uber "
            "Technologies Inc.",
            False,
        ),
        (" ".join(["Paper"] * 16) + " Inc.", False),
        ("Die Stadt zahlt nicht für den TSV Grünau e. V.", False),
        ("Report of the Board of Smith & Co.", True),
        ("Annual Report 2024 of Harbour Print Ltd.", True),
    ],
)
def test_a_title_that_ends_in_the_name_of_a_company_has_capitals(line: str, is_heading: bool) -> None:
    first, *_ = extraction_units(f"{line}\n\nThe boats came home on Monday. They stay there.")
    assert (first.text, first.heading) == (line, is_heading)


def test_numbered_lines_that_open_blocks_are_headings_if_their_numbers_follow_each_other() -> None:
    first, second = (
        "1. Last meeting\nThe minutes were approved.",
        "2. Footpath 14\nThe stile is broken and old.",
    )
    assert [unit.text for unit in extraction_units(f"{first}\n\n{second}") if unit.heading] == [
        "1. Last meeting",
        "2. Footpath 14",
    ]
    for other in (second.replace("2.", "3."), second.replace("14\n", "14.\n"), second.split("\n")[0]):
        assert not [unit for unit in extraction_units(f"{first}\n\n{other}")[:2] if unit.heading]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("3 Results\nHeat | Rate\n10 | 2.1\n20 | 3.5\n30 | 4.2", "4 Discussion\nThe heat was as expected."),
        (
            "3 Results\nHeat           Rate\nWall           2.1\nOld quay       3.5\nNew quay       4.2",
            "4 Discussion\nThe heat was as expected.",
        ),
        ("1. Minutes of the last meeting\nThey were read.", "2. Date of next meeting\nMonday at noon."),
    ],
)
def test_numbered_lines_above_a_table_or_without_a_full_stop_or_with_of_are_headings(
    first: str, second: str
) -> None:
    document = f"{first}\n\n{second}"
    assert headings(document) == [first.split("\n")[0], second.split("\n")[0]]


def test_a_wide_line_of_an_agenda_ends_where_it_ends() -> None:
    line = "TOP 1: Begrüßung und Feststellung der Beschlussfähigkeit"
    text = f"{line}\nFrau Vogt begrüßt alle, die in den Saal gekommen sind."
    assert headings(f"{text}\n\nDer Saal ist voll.") == [line]
    wrapped = (
        "Item 3 shows that the wells of the village are deep and that the mayor of\nAyton paid for them."
    )
    assert headings(f"{wrapped} It is an old town.") == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1. Mix the flour with the water\nStir it well.", "2. Bake the bread for an hour\nLet it cool."),
        ("1. Ann brings the tent\nIt is old.", "2. Ben pays the bill\nThe money is in the box."),
        ("1. Smith J, Moe B\nThe harbour of Bath.", "2. Moe B, Smith J\nThe quay of Bath."),
        ("1 In the beginning was the word\nIt was old.", "2 And the word was there\nIt was new."),
        ("1. Take out of the box\nIt is old.", "2. Buy some of the red paint for it\nIt is new."),
    ],
)
def test_steps_references_and_verses_with_numbers_are_no_headings(first: str, second: str) -> None:
    assert not [unit.text for unit in extraction_units(f"{first}\n\n{second}") if unit.heading]


@pytest.mark.parametrize(
    "name", ["Club members", "TV sets", "Golf club members", "TC Electronics", "KFC", "NFC tags"]
)
def test_an_item_that_names_no_club_has_no_number(name: str) -> None:
    items = [f"{name} must pay the fee in May.", "Others of us pay it in June."]
    assert texts(f"1. {items[0]}\n\n2. {items[1]}") == items


@pytest.mark.parametrize("line", ["1. Buy milk\n2. Buy bread.", "I work for Harbour Print Ltd."])
def test_an_item_and_a_sentence_are_no_headings(line: str) -> None:
    assert not any(unit.heading for unit in extraction_units(line))


def test_the_number_in_the_name_of_a_club_or_a_league_stays() -> None:
    document = (
        "1. FC Köln won the match on Saturday evening. 2. Bundesliga clubs were watching in the stadium."
    )
    assert texts(document) == [
        "1. FC Köln won the match on Saturday evening.",
        "2. Bundesliga clubs were watching in the stadium.",
    ]


@pytest.mark.parametrize(
    "clubs", [("HFC Ode", "VfB Moe"), ("Judo Club Moe", "TSV Lind"), ("SC Ode", "MSV Moe")]
)
def test_the_numbers_of_two_clubs_stay(clubs: tuple[str, str]) -> None:
    one, other = clubs
    told = [
        f"1. {one} won the match on Saturday evening.",
        f"2. {other} lost at home on the Sunday after it.",
    ]
    assert texts("\n\n".join(told)) == told
    assert texts(" ".join(told)) == told


def test_a_section_may_begin_with_the_name_of_a_currency() -> None:
    document = "2.1 European law applies to all of it.\n\n2.2 Grading is done by the master in May."
    assert texts(document) == ["European law applies to all of it.", "Grading is done by the master in May."]


def test_numbers_of_sections_and_glued_ones_of_a_list_go_and_amounts_stay() -> None:
    rules = (
        "2. RULES: 2.1 All boats report to the master at once.\n\n2.2 Boats sail at three knots in here.\n\n"
        "1.Fishing is allowed from the quay.\n\n2.Tents are allowed behind the dyke only.\n\n"
        "3. WASTE\n\n3.1.1 Oil is brought to the gate.\n\n3.1.2. Paints go to the gate, too."
    )
    assert [unit.text.split()[0] for unit in extraction_units(rules) if not unit.heading] == [
        "All", "Boats", "Fishing", "Tents", "Oil", "Paints",
    ]  # fmt: skip
    for text in (
        "3.5 Million people live in the two towns.\n\nThey have 4.1 Million cars.",
        "2.5 Millionen Euro zahlt der Staat.\n\n2.4 Millionen Euro zahlt die Stadt für die Brücke.",
        "2.5 Millionen Euro zahlt der Staat.\n\n2.4 Das Land zahlt die Brücke.",
        "2.5 Prozent der Leute kommen.\n\n2.4 Percent of them stay.\n\n2.6 Tonnen Stahl kommen.",
        "2.4 GHz is the band of most of them.\n\n5.1 Sound has six speakers in a room.",
        "3.Liga ist die Liga, in der die Leute aus der Stadt nicht sind.\n\n2.Liga ist die, in der sie sind.",
    ):
        assert "\n\n".join(unit.text for unit in extraction_units(text)) == text


@pytest.mark.parametrize("mark", ["(a)", "b)", "(iv)", "ii)", "(12)", "[x]", "\u2610", "- \u2611"])
def test_the_mark_of_an_item_goes(mark: str) -> None:
    assert without_item_mark(f"{mark} Glass goes to the yard.") == "Glass goes to the yard."


@pytest.mark.parametrize("text", ["(a) is first", "A) Glass", "(see b) Glass", "I) Glass", "[y] Glass"])
def test_other_brackets_are_no_marks_of_items(text: str) -> None:
    assert without_item_mark(text) == (text if text != "(a) is first" else "is first")


def test_where_nothing_ends_like_a_sentence_nothing_is_a_heading() -> None:
    assert headings("milk and bread\n\neggs, if there are any") == []


def test_turns_are_no_headings() -> None:
    assert headings("Ann: see you\n\nBob: later\n\nAnn: We eat at eight.") == []


def test_a_wrapped_line_that_goes_on_with_a_small_letter_and_a_colon_is_no_turn() -> None:
    document = (
        "Third, the council has to choose between two plans for the treatment\n"
        "plant: to rebuild it in its place, or to join the one in the next town,\n"
        "which costs less."
    )
    assert len(extraction_units(document)) == 1


def test_a_citation_mark_has_the_place_of_its_sentence_and_is_not_in_its_text() -> None:
    document = (
        "Byron went to Dulwich. [17] He stayed for two years.[3][4] He read. [5]\n\n[2] is his book of poems."
    )
    units = extraction_units(document)
    assert [unit.text for unit in units] == [
        "Byron went to Dulwich.",
        "He stayed for two years.",
        "He read.",
        "[2] is his book of poems.",
    ]
    assert not any(unit.heading for unit in units)
    assert [document[unit.start : unit.stop] for unit in units] == [
        "Byron went to Dulwich. [17]",
        "He stayed for two years.[3][4]",
        "He read. [5]",
        "[2] is his book of poems.",
    ]


def test_rows_of_a_table_are_asides_however_wide_the_header_is() -> None:
    table = (
        "Supplier | Response time | Spare device | Rating by customers\nInkwell | 2 working days | no | 3.1\n"
        "Papyra | 4 hours | yes | 4.4"
    )
    units = extraction_units(
        f"{table}\n\nLast year a printer was out of order on 57 days in total. We chose Papyra."
    )
    assert [unit.aside for unit in units] == [True, True, True, False, False]


def wide(width: int) -> str:
    """A line of words without an end mark."""
    return ("Word " * width)[: width - 1].rstrip().ljust(width, "s")


def test_a_turn_of_20_words_is_one_unit() -> None:
    turns = "Ann: {} We left.\nBob: Yes.\nAnn: Fine.\nBob: Bye."
    for spoken, count in ((18, 1), (19, 2)):  # and the last two words
        said = " ".join(["Go", *["on"] * (spoken - 2), "now."])
        assert len(texts(turns.format(said))) == 3 + count
    stamped = "[10:01] Ann: {} We left.\n[10:02] Bob: Yes.\n[10:03] Ann: Fine."
    for spoken, count in ((18, 1), (19, 2)):  # a name in a chat is no word of the message
        said = " ".join(["Go", *["on"] * (spoken - 2), "now."])
        found = extraction_units(stamped.format(said))
        assert len(found) == 2 + count
        assert {unit.speaker for unit in found[:count]} == {"Ann"}
        assert not any(unit.heading or unit.aside or unit.answers for unit in found)
        assert found[0].text.startswith("Ann: Go on")
    document = stamped.format(said)
    places = [(document[unit.start : unit.stop], unit.text) for unit in found[:2]]
    assert places == [(f"[10:01] Ann: {said}", f"Ann: {said}"), ("We left.", "We left.")]


def test_a_notice_of_a_chat_has_no_speaker_and_leaves_the_others_theirs() -> None:
    chat = (
        "[10:01] <ann> Hello to all of you there\n[10:02] * ben has joined\n[10:03] <ben> The wall moved by far\n"
        "[10:04] <ann> Good to know that"
    )
    units = extraction_units(chat)
    assert [unit.speaker for unit in units] == ["ann", "", "ben", "ann"]
    assert [unit.aside for unit in units] == [False, True, False, False]


@pytest.mark.parametrize(
    ("block", "is_heading"),
    [
        (" ".join(["Word"] * 24), True),
        (" ".join(["Word"] * 25), False),
        ("\n".join(["Some Words"] * 3), True),
        ("\n".join(["Some Words"] * 4), False),
    ],
)
def test_a_heading_has_at_most_24_words_in_a_line_and_three_lines(block: str, is_heading: bool) -> None:
    found = extraction_units(f"{block}\n\nHe came home. She left.")
    assert {unit.heading for unit in found[:-2]} == {is_heading}
    assert not any(unit.heading for unit in found[-2:])


@pytest.mark.parametrize(
    ("widths", "is_one"),
    [
        ((36, 20), True),
        ((35, 20), False),
        ((128, 20), True),
        ((129, 20), False),
        ((75, 100), True),
        ((74, 100), False),
    ],
)
def test_a_line_was_wrapped_that_is_36_to_128_wide_and_three_quarters_of_the_widest(
    widths: tuple[int, int], is_one: bool
) -> None:
    first, second = wide(widths[0]), f"{wide(widths[1])[:-1]}."
    assert texts(f"{first}\n{second}") == ([f"{first} {second}"] if is_one else [first, second])


@pytest.mark.parametrize(
    ("first", "second", "is_one"),
    [
        ("THE TOWN BUYS TWELVE NEW BOATS OF IRON", "The plan is the largest one since the war", False),
        ("THE TOWN BUYS TWELVE NEW BOATS OF IRON", "AND THE HARBOUR PAYS FOR MOST OF THEM", True),
        ("THE TOWN BUYS TWELVE NEW BOATS OF IRON", "and the harbour pays for most of them", True),
        ("The town buys twelve new boats of iron", "By Ann Ode at the quay of the harbour", False),
        ("The town buys twelve new boats of iron", "Lake Harbour pays for most of them now", True),
    ],
)
def test_a_title_ends_above_small_letters_and_above_its_author(first: str, second: str, is_one: bool) -> None:
    assert (len(extraction_units(f"{first}\n{second}\n\nThe boat is old.")) == 2) == is_one


@pytest.mark.parametrize(
    ("first", "second", "is_one"),
    [
        (
            "10:00 procession of the boats from the church",
            "11:00 show of the old pump behind the school",
            False,
        ),
        ("The boats leave the quay of the town and at", "11:00 they reach the old pump of the school", True),
        (
            "Harbour of Olm         12 Quay Road of the town",
            "Office of Boats        Telephone of the office",
            False,
        ),
        (
            "The harbour of Olm         has twelve old boats",
            "and they were all built in the war by the town",
            True,
        ),
        (
            "11:15 is the time at which the trains leave for Olm, and at",
            "11:45 on each day of the week except on a Sunday in winter.",
            True,
        ),
    ],
)
def test_lines_of_a_timetable_and_of_two_columns_were_not_wrapped(
    first: str, second: str, is_one: bool
) -> None:
    lines = [" ".join(first.split()), " ".join(second.split())]
    assert texts(f"{first}\n{second}") == ([" ".join(lines)] if is_one else lines)


@pytest.mark.parametrize(("words", "is_one"), [("we went on", False), ("then we went on", True)])
def test_a_line_of_four_words_was_wrapped_before_a_small_letter(words: str, is_one: bool) -> None:
    assert texts(f"{words}\nto the sea.") == ([f"{words} to the sea."] if is_one else [words, "to the sea."])


@pytest.mark.parametrize(("lines", "is_heading"), [(4, False), (5, True)])
def test_a_block_like_a_heading_is_one_among_lines_without_full_stops_if_it_is_less_than_a_fifth(
    lines: int, is_heading: bool
) -> None:
    text = "\n".join(["we all went on then"] * lines)
    title, said = extraction_units(f"A Title of Five Words\n\n{text}")
    assert (title.heading, said.heading) == (is_heading, False)


@pytest.mark.parametrize(
    "document",
    [
        "The test had two chips. 5.0 Gigahertz is the clock of the old one. 5.1 Gigahertz is what the new one reaches.",
        "# 18. Mai 2024\n\n18.30 Uhr beginnt das Konzert in der alten Mühle am Fluss. Es ist kalt in der Mühle.",
    ],
)
def test_quantities_and_times_at_the_start_of_a_sentence_stay(document: str) -> None:
    assert " ".join(unit.text for unit in extraction_units(document)).split()[-9:] == document.split()[-9:]
    assert all(
        word in " ".join(unit.text for unit in extraction_units(document)) for word in document.split()[1:]
    )


@pytest.mark.parametrize(
    ("first", "starts"),
    [("22. April frei, wie die Stadt sagt.", False), ("22. Boote zählen, sagt die Stadt.", True)],
)
def test_a_date_at_the_start_of_a_wrapped_line_is_no_item(first: str, starts: bool) -> None:
    text = f"Der Raum im zweiten Stock des alten Hauses am Hafen ist nach dem Plan ab dem\n{first}"
    assert (len(extraction_units(text)) == 2) == starts


def test_marks_without_a_word_are_no_heading() -> None:
    units = extraction_units("The crane is old.\n\n> >\n\nIt creaks.")
    assert not any(unit.heading for unit in units)
    assert [unit.aside for unit in units] == [False, True, False]


@pytest.mark.parametrize(
    "heading", ["11. EARLY END.", "3. Rent and Deposit.", "§ 4 Kaution.", "Article 5 – Loyer.", "2.1 Term."]
)
def test_a_heading_in_front_of_its_clause_is_a_heading(heading: str) -> None:
    clause = "Either side may end the hire of the boat. The fee is two months of hire."
    units = extraction_units(f"{heading} {clause}")
    assert [unit.heading for unit in units] == [True, False, False]
    assert [unit.text for unit in units] == [heading[:-1], *clause.replace("boat. ", "boat.|").split("|")]


@pytest.mark.parametrize("said", ["STOP THE WAR.", "12 Monkeys.", "BREAKING NEWS TODAY."])
def test_a_short_sentence_without_a_numbered_mark_is_no_heading(said: str) -> None:
    units = extraction_units(f"{said} We shout it every day in the old town.")
    assert not units[0].heading


@pytest.mark.parametrize(
    "first", ["It rained.", "11. It rained in the north.", "NASA.", "OK THEN.", "1. Select Boat."]
)
def test_other_short_sentences_stay_alone(first: str) -> None:
    text = f"{first} Either side may end the hire of the boat. The fee is two months of hire."
    assert "Either side may end the hire of the boat." in [unit.text for unit in extraction_units(text)]


@pytest.mark.parametrize("invisible", ["\u200b", "\u2060", "\u200b\n\u200b"])
def test_a_paragraph_of_invisible_characters_is_none(invisible: str) -> None:
    units = extraction_units(f"The quay was closed.\n\n{invisible}\n\nIt opens in June.")
    assert [unit.text for unit in units] == ["The quay was closed.", "It opens in June."]
    assert extraction_units(invisible) == []


@pytest.mark.parametrize(
    "wrapped",
    [
        "أعلنت الشركة اليوم أنها ستستخدم تقنية GPU في\nجميع مراكز البيانات وتطبيق WhatsApp قبل نهاية\n"
        "العام القادم.",
        "The union of workers spoke with the heads of\nNATO, IMF, WHO, UNESCO, OECD, ILO, IAEA, EU,\n"
        "World Bank and Unicef about food for refugees.",
        "The ministers met for two days in the old town hall of the city to discuss the new treaty with\n"
        "By Design Ltd and other makers of small boats from the north coast.",
    ],
)
def test_a_wrapped_line_with_capitals_or_a_name_ends_no_sentence(wrapped: str) -> None:
    assert texts(wrapped) == [" ".join(wrapped.split())]
