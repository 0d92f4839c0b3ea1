"""What is not a statement is marked, and statements are not."""

import pytest

from precis_text.units import extraction_units

PROSE = "The club bought a pump on Monday. It costs 420 euros and replaces one of 1987."


def chosen(*lines: str) -> list[str]:
    document = "\n\n".join([PROSE, *lines, PROSE])
    return [unit.text for unit in extraction_units(document)[2:-2] if not (unit.aside or unit.heading)]


@pytest.mark.parametrize(
    "line",
    [
        "Figure 1: The old pump in its house, which stood until May.",
        "Table 2. Litres of two pumps in a dry year.",
        "Abbildung 3: Die alte Pumpe im Jahr 1987.",
        "Photo: Ann Ode of the club took this picture.",
        "Pump | Litres a minute | Price in euros in 2026.",
        "North\t12\t340\nSouth\t14\t420\nEast\t9\t210",
        "A 12    300 litres    420 euros",
        "2024 12.4 18.6 340 and 7",
        "1 The pump .......... 3\n2 The price ......... 7",
        "Duties of the board 11 The old wall and its movement 27 The new quay 41 Money 55",
        "From: Karen Vik\nSent: 11 March 2026 16:42\nTo: Ben Lee\nSubject: RE: The pump.",
        "Posted: Thursday 12 March at noon.",
        "Mooring: 420 euros a year",
        "\u00a9 Copyright Pump Corp. 2014.",
        "Copyright 2014 by the pump club.",
        "ISBN 978-3-00-000000-0.",
        "Dear members of the club,",
        "Sehr geehrte Frau Vik,",
        "With kind regards, Ann Ode.",
        "Mit freundlichen Gr\u00fc\u00dfen.",
        "pumps@club.example or www.club.example",
        "Members: Ann Ode, Ben Lee, Cem Kaya, Dora Vik and Eli Moe.",
        "if pump.level > 3 then\n  pump.stop();\nend",
        "$ pip install pump",
        "def start(pump): pump.run(level=3)",
        "Smith, J. A pump for a village. Journal of Wells 12, 8 (1969).",
        "[2] Ode, A. Pumps that last. Harbour Press, 2011.",
        "Produced by Ann Ode and the Online Distributed Proofreading Team at https://pump.example",
        "Transcriber's Note: the pump was printed as pomp.",
        "Open it in your browser.",
        "You get this letter as a member of the club.",
        "You can unsubscribe at any time.",
        "Skip to main content",
        "We use cookies to make this page better.",
        "All rights reserved.",
        "Anwesend waren Frau Vik und Herr Lee.",
        "Apologies were: Ann Ode and Ben Lee.",
        "Thank you very much for the talk yesterday.",
        "Vielen Dank für das Gespräch gestern.",
        "Merci beaucoup pour la réunion d'hier.",
        "Muchas gracias por la reunión de ayer.",
    ],
)
def test_what_is_not_a_statement_is_not_chosen(line: str) -> None:
    assert chosen(line) == []


@pytest.mark.parametrize(
    "line",
    [
        "Figure 1 shows that the pump ran for nine weeks.",
        "Note: The pump house is closed on Monday and opens on Tuesday.",
        "Ann, Ben, Cem and Dora chose the pump, and the club paid for it in May.",
        "The browser of the pump house opens in May.",
        "In 2024 it ran for 340 hours, in 2025 for 420, and in 2026 for 510.",
        "Return the form by Monday.",
        "Thanks to the new pump, the village has water.",
        "Present at the start were nine members of the club.",
        "If the level rises, then the pump stops by itself.",
        "Copyright law protects the plan of the pump.",
        "The club thanks Ann Ode (ann@club.example) for the plan of the pump.",
        "The pump knows `start | stop | wait` and nothing else.",
        "Open the lid before you start the pump.",
    ],
)
def test_statements_are_not_asides(line: str) -> None:
    assert chosen(line) == [line]


def test_a_list_of_sources_ends_with_the_next_heading() -> None:
    found = chosen(
        "References", "The wells of Olm. Ostrand Press, 2009.", "Thanks", "Ann drew the plans of 2009."
    )
    assert found == ["Ann drew the plans of 2009."]


def test_a_list_of_contents_has_no_statements() -> None:
    assert (
        chosen(
            "Contents",
            "How the pump was chosen, paid and built in a single year by nine members and a half of the town, p. 3",
        )
        == []
    )


def test_where_nothing_else_is_there_asides_are_units_like_others() -> None:
    document = "Pump | Litres\nA 12 | 300"
    assert [unit.text for unit in extraction_units(document)] == document.split("\n")
