"""Lines of a PDF form a paragraph where a line was wrapped, and part where the page sets them apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from precis_text.documents.pdf_lines import Line
from precis_text.documents.pdf_paragraphs import Joiner, paragraphs_of


def line(text: str, y: float, *, x: float = 0, end: float | None = None, **more: Any) -> Line:
    """A line in letters that are 10 points high and 5 wide."""
    word = 5.0 * len((text.split() or [""])[0])
    return Line(
        **{
            "text": text,
            "left": x,
            "right": x + 5 * len(text) if end is None else end,
            "base": y,
            "first_word": word,
            **more,
        }
    )


def page(
    *texts: str, ends: dict[int, float] | None = None, step: float = 12, top: float = 700, **more: Any
) -> list[Line]:
    """Lines from an edge at 300 points, as if all were wrapped; `ends` has the other ends."""
    return [line(text, top - step * k, end=(ends or {}).get(k, 300), **more) for k, text in enumerate(texts)]


def changed(lines: list[Line], at: int, **more: Any) -> list[Line]:
    return [replace(each, **more) if k == at else each for k, each in enumerate(lines)]


def told(*pages: list[Line]) -> str:
    """Paragraphs by their breaks, with their lines between slashes."""
    text = "".join(p.between + " / ".join(each.text for each in p.lines) for p in paragraphs_of(pages))
    return text.removeprefix("\n\n")


def test_nothing_is_no_paragraph() -> None:
    assert paragraphs_of([]) == paragraphs_of([[]]) == []


@pytest.mark.parametrize(("word", "joined"), [(43.0, False), (43.1, True)])
def test_a_line_was_wrapped_if_the_next_word_would_not_have_fitted(word: float, joined: bool) -> None:
    lines = changed(page("The ferry", "leaks", "again", ends={0: 250}), 1, first_word=word)
    assert told(lines) == ("The ferry / leaks / again" if joined else "The ferry\nleaks / again")


@pytest.mark.parametrize(
    ("end", "text", "first", "joined"),
    [
        (225, "because the sea has been rising", "It leaks since the spring of", True),
        (224, "because the sea has been rising", "It leaks since the spring of", False),  # a quarter shorter
        (225, "because the sea has been", "It leaks since the spring", False),  # five words a line
        (225, "Because the sea has been rising", "It leaks since the spring of", False),
        (225, "12 times the sea has been rising", "It leaks since the spring of", False),
        (225, "because the sea has been rising", "It leaks since the spring of 20.", False),
    ],
)
def test_ragged_lines_of_prose_go_on_in_the_middle_of_a_sentence(
    end: float, text: str, first: str, joined: bool
) -> None:
    lines = changed(page(first, text, text, ends={0: end}), 1, first_word=5.0)
    assert ("/" in told(lines).split(text, 1)[0]) == joined
    assert "/" not in told(lines[:2])  # two lines are too few to be prose


@pytest.mark.parametrize(
    ("line_0", "line_1", "break_"),
    [
        ({}, {}, " / "),
        ({"right": 100}, {}, "\n"),
        ({"right": 100, "text": "It leaks."}, {}, "\n\n"),
        ({"right": 100, "parted": "-"}, {}, " / "),
        ({"is_row": True}, {}, "\n"),
        ({}, {"is_row": True}, "\n"),
        ({}, {"text": "• a boat"}, "\n"),
        ({}, {"text": "- a boat"}, " / "),
        ({"right": 100}, {"text": "- a boat"}, "\n"),
        ({"text": "It leaks."}, {"text": "- a boat"}, "\n"),
        ({}, {"text": "2. a boat"}, " / "),
        ({"right": 100}, {"text": "2. a boat"}, "\n"),
        ({"text": "It leaks."}, {"text": "(b) a boat"}, "\n"),
        ({"text": "It leaks."}, {"text": "[12] a boat"}, "\n"),
        ({"text": "It leaks."}, {"text": "1234. a boat"}, " / "),
        ({"text": "It leaks."}, {"left": 5.0}, " / "),
        ({"text": "It leaks."}, {"left": 5.1}, "\n\n"),
        ({}, {"left": 20.0}, " / "),
        ({"text": "It leaks.", "left": 20.0}, {}, " / "),  # only the first line was indented
    ],
)
def test_what_follows_a_line_decides_the_break_behind_it(line_0: dict, line_1: dict, break_: str) -> None:
    lines = page("The ferry", "boats", "and quays")
    lines = changed(changed(lines, 0, **line_0), 1, **line_1)
    assert told(lines) == f"{lines[0].text}{break_}{lines[1].text} / and quays".replace(
        " / and", "\nand" if line_1.get("is_row") else " / and"
    )


def test_a_line_further_left_than_a_paragraph_of_two_lines_begins_another() -> None:
    lines = page("The ferry", "leaks.", "It rusts.", "And sinks")
    shifted = [replace(each, left=20.0) for each in lines[:2]]
    assert told([*shifted, *lines[2:]]) == "The ferry / leaks.\n\nIt rusts. / And sinks"
    assert told([*shifted, *changed(lines, 2, left=15.0)[2:]]).startswith("The ferry / leaks. / It rusts.")


@pytest.mark.parametrize(
    ("gap", "first", "second", "break_"),
    [
        (13.8, "The ferry", "Boats", " / "),
        (13.9, "The ferry", "Boats", "\n\n"),
        (13.9, "The ferry", "boats", " / "),  # the sentence goes on
        (13.9, "It leaks.", "boats", "\n\n"),
        (20.3, "The ferry", "boats", " / "),
        (20.5, "The ferry", "boats", "\n\n"),  # another block
    ],
)
def test_more_space_than_usual_parts_lines(gap: float, first: str, second: str, break_: str) -> None:
    lines = [*page("Cod", "eel", first), *page(second, "and eel", "and ray", top=676 - gap)]
    assert told(lines) == f"Cod / eel / {first}{break_}{second} / and eel / and ray"


def test_a_wide_gap_before_a_line_that_fits_parts_them() -> None:
    lines = page("Cod", "eel", "the ferry", ends={2: 100})
    lines += page("boats", "and eel", top=676 - 13.9)
    assert told(lines) == "Cod / eel / the ferry\n\nboats / and eel"
    rows = [replace(each, is_row=True) for each in lines]
    assert told(rows) == "Cod\neel\nthe ferry\n\nboats\nand eel"


@pytest.mark.parametrize(
    ("more", "joined"),
    [
        ({"page": 0}, True),
        ({"direction": 90}, False),
        ({"base": 695.0}, False),  # beside it
        ({"base": 694.9}, True),
        ({"base": 660.0}, False),
        ({"base": 660.1}, True),
        ({"base": 712.0, "left": 290.0}, False),
        ({"left": 300.0, "right": 301.0}, False),
        ({"left": 299.0, "right": 301.0}, True),
        ({"size": 11.1}, True),
        ({"size": 11.3}, False),
        ({"size": 9.0}, True),
        ({"size": 8.9}, False),
        ({"is_bold": True, "text": "leaks"}, True),
        ({"is_bold": True}, False),
    ],
)
def test_a_line_goes_on_below_it_in_its_column_and_size(more: dict, joined: bool) -> None:
    lines = changed(page("Ferry", "Leaks"), 1, **more)
    assert ("/" in told(lines)) == joined


def test_a_narrow_block_holds_lines_and_a_wide_one_text() -> None:
    wide = page("Cod", "eel", "ray", "bream", "Hake")
    for width, break_ in ((179, "\n"), (180, " / ")):
        block = [replace(each, right=float(width)) for each in page("Ann Ode", "Ben Lee", top=400)]
        assert told([*wide, *block]).endswith(f"\n\nAnn Ode{break_}Ben Lee")
        goes_on = changed(block, 1, text="and Ben")
        assert told([*wide, *goes_on]).endswith("\n\nAnn Ode / and Ben")
    assert told([*wide[:2], *block]).endswith("Ann Ode / Ben Lee")
    short = [replace(each, right=160.0) for each in page("Ann Ode", "Ben Lee", top=400)]
    assert told([*wide[:2], *short]).endswith("Ann Ode / Ben Lee")  # two lines show no usual width


HEAD = line("The quay", 660, size=12.0)


@pytest.mark.parametrize(
    ("more", "is_heading"),
    [
        ({}, True),
        ({"size": 11.3}, True),
        ({"size": 11.1}, False),
        ({"size": 10.0, "is_bold": True}, True),
        ({"size": 9.0, "is_bold": True}, True),
        ({"size": 8.9, "is_bold": True}, False),
        ({"text": "The quay."}, False),
        ({"text": "The quay;"}, False),
        ({"text": "The quay,"}, False),
        ({"text": "The quay?"}, True),
        ({"text": "• quay"}, False),
        ({"text": "12 A"}, False),
        ({"text": "12 Ab"}, True),
        ({"text": "a" * 200}, True),
        ({"text": "a" * 201}, False),
    ],
)
def test_a_heading_stands_out_is_short_and_ends_no_sentence(more: dict, is_heading: bool) -> None:
    body = page(*["The ferry over the sound leaks again, and nobody mends it."] * 8, top=600)
    found = paragraphs_of([[replace(HEAD, **more), *body]])
    assert [each.is_heading for each in found] == [is_heading, False]
    bold = [replace(each, is_bold=True) for each in body]
    assert next(each.is_heading for each in paragraphs_of([[replace(HEAD, **more), *bold]])) == (
        is_heading and more.get("size", 12) > 11
    )


@pytest.mark.parametrize(("count", "is_heading"), [(1, True), (3, True), (4, False)])
def test_a_heading_has_up_to_three_lines(count: int, is_heading: bool) -> None:
    body = page(*["The ferry over the sound leaks again, and nobody mends it."] * 8, top=500)
    head = page(*["The quay"] * count, top=660, step=14, size=12.0)
    found = paragraphs_of([[*head, *body]])
    assert [len(each.lines) for each in found] == [count, 8]
    assert found[0].is_heading == is_heading


# ---- from column to column


def columns(first: list[Line], second: list[Line]) -> str:
    return told([*first, *second])


UP = page("The ferry", "over the sound", top=300)
ON = page("leaks", "again", top=700, x=320)
ON = [replace(each, right=620.0) for each in ON]


@pytest.mark.parametrize(
    ("more", "joined"),
    [
        ({}, True),
        ({"right": 100}, False),  # the next word fitted
        ({"right": 268}, False),
        ({"right": 268.1}, True),
        ({"right": 100, "parted": "-"}, True),
        ({"text": "over the sound."}, False),
        ({"is_row": True}, False),
        ({"is_bold": True}, False),
        ({"size": 9.0}, True),
    ],
)
def test_a_paragraph_goes_on_in_the_next_column_if_its_last_line_was_wrapped(
    more: dict, joined: bool
) -> None:
    assert columns(changed(UP, 1, **more), ON).endswith("sound / leaks / again") == joined


@pytest.mark.parametrize(
    ("more", "joined"),
    [
        ({"is_row": True}, False),
        ({"text": "• leaks"}, False),
        ({"text": "Leaks"}, True),
        ({"is_bold": True}, False),
        ({"size": 11.1}, True),
        ({"size": 8.0}, False),
        ({"page": 1, "base": 100.0}, True),
        ({"page": 2}, False),
        ({"base": 100.0, "left": 299.0}, False),  # further down in the same column
        ({"base": 100.0, "left": 300.0}, True),
        ({"base": 300.0, "left": 0.0, "right": 1.0}, True),  # further up
    ],
)
def test_what_begins_a_column_goes_on_if_it_is_such_a_text(more: dict, joined: bool) -> None:
    first = replace(ON[0], **more)
    assert ("sound / " in columns(UP, [first])) == joined


def test_one_line_goes_on_only_by_its_words() -> None:
    assert columns(UP[1:], ON) == "over the sound / leaks / again"
    assert columns(UP[1:], changed(ON, 0, text="Leaks")) == "over the sound\n\nLeaks / again"


def test_a_paragraph_goes_on_behind_footnotes_and_not_behind_headings() -> None:
    note = line("1 See there", 60, size=8.0)
    assert columns([*UP, note], ON) == "The ferry / over the sound / leaks / again\n\n1 See there"
    assert "sound / leaks" not in columns([*UP, replace(note, size=9.0)], ON)
    head = line("The quay", 100, size=12.0)
    body = page("The ferry over the sound leaks again", "and nobody mends it.", top=200)
    assert "quay\n\nleaks" in told([*body, head, *ON])
    assert told([*UP], [replace(each, page=1) for each in [note, *ON]]).startswith(
        "The ferry / over the sound / leaks"
    )


def test_where_a_paragraph_went_on_its_last_lines_decide_where_it_goes_next() -> None:
    third = [replace(each, left=640.0, right=940.0) for each in page("and", "rusts", top=700)]
    assert "again / and / rusts" in told([*UP, *ON, *third])
    low = [replace(each, base=each.base - 500) for each in ON]
    short = changed(low, 1, right=500.0)
    assert "again\n\nAnd" in told([*UP, *short, *changed(third, 0, text="And")])


# ---- words


def test_lines_join_with_a_space_and_without_one_between_characters_of_words_without_spaces() -> None:
    def text(*texts: str) -> str:
        lines = [Line(each) for each in texts]
        return Joiner(lines).text(lines)

    assert text("The ferry", "leaks") == "The ferry leaks"
    assert text("渡し", "船") == "渡し船"
    assert text("渡し", "ferry") == "渡し ferry"
    assert text("ferry", "船") == "ferry 船"
    assert (text("K渡", "船"), text("渡K", "船"), text("渡", "船K")) == ("K渡船", "渡K 船", "渡船K")


@pytest.mark.parametrize(
    ("first", "second", "hyphen", "others", "read"),
    [
        ("a steam", "boat", "-", "", "a steamboat"),
        ("a steam", "boat", "\u00ad", "steam-boat", "a steamboat"),
        ("a steam", "boat", "-", "The Steam-Boat of 1904", "a steam-boat"),
        ("a steam", "boat", "-", "a steam-boat, no steamboat", "a steamboat"),
        ("a steam", "boat", "-", "one steam-boat, a steam-boat or a steamboat", "a steam-boat"),
        ("a steam", "Boat", "-", "", "a steam-Boat"),
        ("the impact", "absorbing floor", "-", "", "the impact-absorbing floor"),
        ("the long", "term plan", "-", "", "the long-term plan"),
        ("they do under", "stand it", "-", "", "they do understand it"),
        ("the govern", "ment of it", "-", "the govern-ors", "the government of it"),
        ("the flood", "prone land", "-", "It is the flood that they are prone to.", "the flood-prone land"),
        ("all pre", "and postwar", "-", "", "all pre- and postwar"),
        ("die Vor", "und Nachteile", "-", "", "die Vor- und Nachteile"),
        ("the US", "led plan", "-", "", "the US-led plan"),
        ("the US", "led plan", "-", "a usled man", "the USled plan"),
        ("a steam", "12", "-", "", "a steam-12"),
        ("in 1904", "built", "-", "", "in 1904-built"),
        ("a state-of-the", "art", "-", "", "a state-of-the-art"),
    ],
)
def test_the_other_words_of_a_document_decide_on_a_hyphen(
    first: str, second: str, hyphen: str, others: str, read: str
) -> None:
    lines = [Line(first, parted=hyphen), Line(second)]
    assert Joiner([*lines, Line(others)]).text(lines) == read


@pytest.mark.parametrize(
    ("first", "second", "others"),
    [
        (
            "Der Aus",
            "schuss hat den Plan beraten",
            "Das Geld kommt aus dem Haushalt, und der Rat ist nicht da.",
        ),
        ("El nuevo con", "sejero", "Es la fiesta de los vecinos, con datos que no son del alcalde."),
        (
            "ont su pour",
            "suivre les travaux",
            "Le maire est là pour les gens et pour la ville, et non pour lui.",
        ),
        ("the sea", "side wall of it", "This is the sea of the town and that is the side of it."),
    ],
)
def test_a_divided_word_has_no_hyphen_where_its_parts_are_words_by_chance(
    first: str, second: str, others: str
) -> None:
    lines = [Line(first, parted="-"), Line(second)]
    assert Joiner([*lines, Line(others)]).text(lines) == first + second


def test_a_hyphen_at_the_very_end_stays() -> None:
    for hyphen in ("-", "\u00ad"):
        assert Joiner([]).text([Line("a steam", parted=hyphen)]) == "a steam-"
