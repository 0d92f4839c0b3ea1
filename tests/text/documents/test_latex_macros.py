"""Commands that a LaTeX document defines become the text of their definitions."""

import pytest

from precis_text.documents.latex_macros import expanded, macros_of


@pytest.mark.parametrize(
    ("definition", "use", "shown"),
    [
        (r"\newcommand{\olm}{the mill}", r"\olm turns", "{the mill} turns"),
        (r"\newcommand*\olm{the mill}", r"\olm{} turns", "{the mill}{} turns"),
        (r"\providecommand{\olm}{the {old} mill}", r"\olm", "{the {old} mill}"),
        (r"\def\olm{the \{ mill}", r"\olm", r"{the \{ mill}"),
        (r"\newcommand{\olm}{the mill}", r"\olms turn", r"\olms turn"),
        (r"\newcommand{\by}[2]{#2 by #1}", r"\by{Ann} {paid}.", "{paid by Ann}."),
        (r"\newcommand{\by}[2]{#2 by #1}", r"\by{{A} B} paid.", "{ by {A} B} paid."),
        (r"\def\by#1#2{#2 by #1}", r"\by{Ann}{paid}.", "{paid by Ann}."),
        (r"\newcommand{\by}[2][Ann]{#2 by #1}", r"\by{paid}.", "{paid by Ann}."),
        (r"\newcommand{\by}[2][Ann]{#2 by #1}", r"\by[Ben]{paid}.", "{paid by Ben}."),
        (r"\newcommand{\by}[1]{#1, #2, #0}", r"\by{Ann}.", "{Ann, , }."),
        (r"\newcommand{\olm}{the \mill}\newcommand{\mill}{MILL}", r"\olm, \mill", "{the {MILL}}, {MILL}"),
        (r"\newcommand{\by}[1]{by #1}", r"\by{\by{Ann}}", "{by {by Ann}}"),
    ],
)
def test_a_use_becomes_the_text_of_its_definition(definition: str, use: str, shown: str) -> None:
    macros, wholes = macros_of(f"{definition} {use}")
    assert "".join(wholes) == definition
    assert expanded(use, macros) == shown


def test_definitions_that_multiply_each_other_stop_at_four_times_the_text_and_a_page() -> None:
    macros, _ = macros_of(r"\def\x{\x\x\x\x\x\x\x\x\x\x\x\x\x\x\x\x\x\x\x\x}")
    found = expanded(r"\x" * 1000, macros)
    assert 4 * 2000 < len(found) < 4 * 2000 + 10_000 + 100
    for length, used in ((16_000, 2), (16_001, 1)):  # 18,000 letters after the first use, or one more
        macros, _ = macros_of(r"\def\x{" + "y" * length + "}")
        assert expanded(r"\x\x" + " " * 1996, macros).count("y") == used * length


def test_without_definitions_nothing_changes() -> None:
    assert macros_of(r"\olm") == ({}, [])
    assert expanded(r"\olm", {}) == r"\olm"
