"""Each line of a mail is its sender's own, or quoted, a signature, a program's, a disclaimer, a newsletter's frame."""

from __future__ import annotations

from typing import Any

import pytest

from precis_text.documents.mail_quotes import (
    as_mail,
    described,
    foreign_lines,
    is_forward,
    is_reply,
    is_stub,
    plain_subject,
)
from precis_text.documents.passages import CUT
from precis_text.documents.reader import read_content


def own(text: str, **more: Any) -> str:
    """The sender's own lines of a mail, with "/" between them."""
    lines = text.split("\n")
    kinds = foreign_lines(lines, **{"forward": False, **more})
    assert len(kinds) == len(lines)
    return "/".join(line for line, kind in zip(lines, kinds, strict=True) if not kind and line.strip())


@pytest.mark.parametrize(
    ("mail", "left"),
    [
        ("Yes.\n> Is it late?\nSo it is.", "Yes./So it is."),
        ("Yes.\n   > Is it late?\n    > of four", "Yes./    > of four"),
        ("Hi.\n\nAnn wrote:\n> Is it late?\nYes.", "Hi./Yes."),
        ("Hi.\n\nAnn wrote:\n\n\n> Is it late?\nYes.", "Hi./Yes."),
        (
            "So it\nis now\nand here\nAnn wrote:\n> Is it late?",
            "So it/is now/and here/Ann wrote:",
        ),  # in the middle of a text
        ("Hi.\nOn Monday Ann wrote:\n> Is it late?", "Hi."),
        ("Hi.\n\nOn Monday\nAnn of Olm\nwrote:\n> Is it late?", "Hi."),
        ("Hi.\n\nOn Monday\nAnn of\nOlm\nwrote:\n> Is it late?", "Hi./On Monday/Ann of/Olm/wrote:"),
        ("Hi.\n\nOn Monday\n\nwrote:\n> Is it late?", "Hi./On Monday"),
        ("Hi.\n\nLook:\n> Is it late?", "Hi./Look:"),
        ("Ann wrote:\n> Is it late?", ""),
        ("> Is it late?\n> Ann wrote:\n> No.", ""),
        ("a\n\nAnn wrote:\n> b\nc\n\nBen wrote:\n> d", "a/c"),
    ],
)
def test_a_quotation_goes_with_the_line_that_names_its_author(mail: str, left: str) -> None:
    assert own(mail) == left


@pytest.mark.parametrize(
    ("opening", "is_quoted"),
    [
        ("On 3 May 2020 Ann wrote:", True),
        ("On 3/05 Ann wrote:", True),
        ("On 2020 wrote:", False),  # of three words, without an address
        ("On 2020 ann@olm wrote:", True),
        ("On Monday Ann of Olm wrote:", False),  # without a date: prose
        ("We read on 3 May 2020 what Ann wrote:", False),
        ("On 3 May 2020\nAnn of Olm\nwrote:", True),
        ("On 3 May 2020\nAnn\nof Olm\nwrote:", False),
        ("On 3 May 2020\n\nAnn wrote:", False),
    ],
)
def test_all_behind_on_a_day_somebody_wrote_is_quoted(opening: str, is_quoted: bool) -> None:
    assert own(f"Yes.\n\n{opening}\nIs it late?\nBye.") == (
        "Yes." if is_quoted else "/".join(["Yes.", *filter(None, opening.split("\n")), "Is it late?", "Bye."])
    )
    assert own(f"Yes.\n\n{opening}\n\n").endswith("wrote:")  # nothing is behind it
    assert "Is it late?" in own(f"Yes.\n\n{opening}\nIs it late?\n> So.")  # the marks show what is quoted


HEADER = "From: Ann\nSent: Monday"


@pytest.mark.parametrize(
    ("header", "is_quoted"),
    [
        (HEADER, True),
        ("*From:* Ann\n*Date:* Monday", True),
        ("From: Ann\nTo: Ben\nCc: Cem\nTopic: the mill\nSent: Monday", True),
        ("From: Ann\nTo: Ben\nCc: Cem\nBcc: Dan\nTopic: the mill\nSent: Monday", False),
        ("From: Ann\nTo: Ben", False),
        ("Sent: Monday\nFrom: Ann", False),
        ("From: Ann\n\nSent: Monday", True),
        ("From: Ann\nand Ben\n\nSent: Monday", False),
        ("Name: Ann\nWhen: 2020\nWhat: Re: The mill", True),
        ("Name: Ann\nWhen: 2020\nWhat: The wall", False),
        ("Name: Ann\nWhen: now\nWhat: The mill", False),
        ("When: 2020\nWhat: The mill", False),
        ("-----Original Message-----\nIs it late?", True),
        ("Original message\nIs it late?", False),
        (f"{CUT}\nIs it late?", True),
    ],
)
def test_all_behind_the_header_of_an_answered_mail_is_quoted(header: str, is_quoted: bool) -> None:
    mail = f"Yes.\n\n{header}\n\nIs it late?"
    assert (own(mail, subject="The mill") == "Yes.") == is_quoted
    assert "Is it late?" in own(mail, subject="The mill", forward=True)
    kinds = foreign_lines(mail.split("\n"), forward=True)
    assert "quoted" not in kinds


def test_a_header_begins_with_its_first_label_and_goes_with_the_rule_above_it() -> None:
    assert own(f"Yes.\n_____\n\n{HEADER}\nLate?") == "Yes."
    assert own(f"Yes.\n____\n\n{HEADER}\nLate?") == "Yes./____"
    assert own(f"To: Ben\n{HEADER}\nLate?") == "To: Ben/From: Ann/Sent: Monday/Late?"
    assert own(f"To: Ben\n\n{HEADER}\nLate?") == "To: Ben"
    assert own(f"_____\n{HEADER}\nLate?") == ""
    assert own("Name: Ann\nWhen: 2020\nWhat: \nLate?", subject="") == "Name: Ann/When: 2020/What: /Late?"


@pytest.mark.parametrize(
    ("mark", "behind", "is_signature"),
    [
        ("-- ", 12, True),
        ("-- ", 40, True),
        ("--", 12, True),
        ("--", 13, False),
        ("—", 3, True),
        ("---", 1, False),
    ],
)
def test_a_signature_follows_two_dashes(mark: str, behind: int, is_signature: bool) -> None:
    lines = ["Yes.", "", mark, *["Ann"] * behind]
    kinds = foreign_lines(lines, forward=False)
    assert kinds == ["", "", *["signature" if is_signature else ""] * (behind + 1)]
    first = foreign_lines(lines[2:], forward=False)
    assert first == ["signature" if mark == "-- " else ""] * (behind + 1)


@pytest.mark.parametrize(
    ("below", "is_signature"),
    [
        ("Ann Ode | Olm\nT +44 117 496 0123", True),
        ("Ann\nTel. 0117 496", True),
        ("The second part\nis short.", False),
    ],
)
def test_a_longer_rule_begins_a_signature_only_above_a_contact(below: str, is_signature: bool) -> None:
    assert own(f"The crane is old.\n\n---\n{below}").count("/") == (0 if is_signature else 3)


def test_a_signature_ends_no_quotation() -> None:
    assert own("Yes.\n-- \nAnn\n> Late?") == "Yes."
    assert foreign_lines(["Yes.", "-- ", "Ann", "> a"], forward=False) == [
        "",
        "signature",
        "signature",
        "quoted",
    ]
    assert own("Yes.\n-- \nAnn\n\n-- \nBen") == "Yes."


def test_lines_of_programs_are_whole_lines() -> None:
    assert foreign_lines(["Yes.", " Sent from my phone "], forward=False) == ["", "line of the mail program"]
    assert own("He sent from my phone a mail.") != ""
    assert foreign_lines(["a", CUT, "b"], forward=True) == ["", "line of the mail program", ""]


SECRET = "This mail is confidential.\nIt is meant for Ann.\nTell the sender if you got it in error."


def test_three_sentences_of_a_disclaimer_in_one_paragraph_make_it_one() -> None:
    assert foreign_lines(["Yes.", "", *SECRET.split("\n")], forward=False) == ["", "", *["disclaimer"] * 3]
    assert own("This mail is confidential.\nIt is meant for Ann.") != ""
    assert own(SECRET.replace("\nIt", "\n\nIt").replace("\nTell", "\n\nTell")) != ""
    words = len(SECRET.split())
    assert own(SECRET + " so" * (249 - words)) == ""
    assert own(SECRET + " so" * (250 - words)) != ""
    kinds = foreign_lines([*SECRET.split("\n"), "> a", "b"], forward=False)
    assert kinds == [*["disclaimer"] * 3, "quoted", ""]


def test_the_frame_of_a_newsletter_is_short_and_in_newsletters_alone() -> None:
    frame = "Unsubscribe here."
    assert foreign_lines([frame, "", "Yes."], forward=False, newsletter=True) == [
        "frame of the newsletter", "", "",
    ]  # fmt: skip
    assert own(frame) == frame
    assert own(frame + " so" * 58, newsletter=True) == ""
    assert own(frame + " so" * 59, newsletter=True) != ""


@pytest.mark.parametrize(
    ("subject", "plain", "forward", "reply"),
    [
        ("The mill", "The mill", False, False),
        ("Re: The mill", "The mill", False, True),
        ("FWD: AW: Re[2]: The mill", "The mill", True, False),
        ("re (3): The mill", "The mill", False, True),
        ("Regarding: The mill", "Regarding: The mill", False, False),
    ],
)
def test_signs_of_answers_are_no_part_of_a_subject(
    subject: str, plain: str, forward: bool, reply: bool
) -> None:
    assert (plain_subject(subject), is_forward(subject), is_reply(subject)) == (plain, forward, reply)


def test_a_stub_is_short_and_speaks_of_html() -> None:
    assert is_stub("This mail is in HTML." + " so" * 54)
    assert not is_stub("This mail is in HTML." + " so" * 55)
    assert not is_stub("This mail is late.")


def test_what_is_left_out_is_told_in_a_fixed_order() -> None:
    kinds = ["frame of the newsletter", "", "quoted", "disclaimer", "signature", "line of the mail program"]
    assert described(kinds) == [
        "1 quoted line left out",
        "signature left out",
        "line of the mail program left out",
        "disclaimer left out",
        "frame of the newsletter left out",
    ]
    assert described(["quoted"] * 1200) == ["1,200 quoted lines left out"]
    assert described([""]) == []


HEADERS = {
    "de": "Von: Ann Ode <ann@olm.example>\nGesendet: Montag, 3. Mai 2026 16:42\nAn: Ben Lee\nBetreff: AW: Der Kran",
    "en": "From: Ann Ode\nSent: Monday 3 May 2026 16:42\nTo: Ben Lee\nCc: Cem Vik\nSubject: RE: Der Kran",
    "fr": "De : Ann Ode\nEnvoyé : lundi 3 mai 2026 16:42\nÀ : Ben Lee\nObjet : TR : Der Kran",
    "es": "De: Ann Ode\nEnviado: lunes, 3 de mayo de 2026\nPara: Ben Lee\nAsunto: RV: Der Kran",
}


@pytest.mark.parametrize("language", HEADERS)
@pytest.mark.parametrize("name", ["a.txt", "a.eml"])
def test_a_pasted_mail_is_read_like_a_file_of_a_mail(language: str, name: str) -> None:
    said = "\n\nDer Kran ist alt.\n\n--\nAnn Ode\nTel. 12\n\nOn 2 May 2026 Ben wrote:\n> How old\n> is it?\n"
    found = read_content((HEADERS[language] + said).encode(), name=name)
    assert found.text == "Der Kran\n\nDer Kran ist alt."
    assert {"3 quoted lines left out", "signature left out"} <= {*found.notes}
    assert ("read as a mail" in found.notes) == (name == "a.txt")


@pytest.mark.parametrize(
    "old",
    [
        "-----Original Message-----\nFrom: Ben\nSent: today\n\nHow old is it?",
        f"{HEADERS['de']}\n\nWie alt ist er?",
        "On 2 May 2026 Ben wrote:\n> How old is it?",
        "Am 2.5.2026 um 9:15 schrieb Ben:\n\n> Wie alt?",
        "On Tuesday at 9:15 Ben wrote:\n> How old is it?",
        "On Tuesday Ben <ben@olm.example> wrote:\n> How old is it?\n> Is it the crane of the year we came?\n> So\n"
        "> it is.\n\nOn Monday I wrote:\n> It is new.",
        "From: Ben\nTo: Ann\nDate: 2 May 2026 9:15\nSubject: The crane\n\nHow old is it?",
        "From: Ben <ben@olm.example>\nTo: Ann\nDate: 2 May\n\nHow old is it?",
    ],
)
def test_a_text_with_an_answered_mail_in_it_is_a_mail(old: str) -> None:
    found = read_content(f"Der Kran ist alt.\n\n{old}\n".encode(), name="a.txt")
    assert found.text == "Der Kran ist alt."
    assert found.notes[-1] == "read as a mail"


FIRST = "From: Ann Ode <ann@olm.example>\nTo: all\nDate: Mon, 3 Feb 2025 19:12:40 +0000\nSubject: Re: The pipe\n\n"
SECOND = "From: Ben Lee <ben@olm.example>\nDate: {}\nSubject: Re: The pipe\n\n"


@pytest.mark.parametrize(
    ("date", "is_own"),
    [
        ("Tue, 4 Feb 2025 08:30:02 +0000", True),
        ("Mon, 3 Feb 2025 20:00:00 +0000", True),
        ("Mon, 3 Feb 2025 20:00:00 +0100", False),  # 19:00 in the other zone
        ("Sun, 2 Feb 2025 08:30:02 +0000", False),
        ("Tue, 4 Feb 99999 08:30:02 +0000", False),
        ("Tue, 4 Feb 2025 08:30", False),  # of a zone that is not known
        ("Tuesday, 4 February 2025 8:30 AM", False),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a.eml"])
def test_a_later_mail_below_is_no_quotation(date: str, is_own: bool, name: str) -> None:
    thread = (
        f"{FIRST}We dig it ourselves.\n\n--\nAnn Ode\nPlot 17\n\n{SECOND.format(date)}Ann wrote:\n"
        "> We dig it ourselves.\n\nAgreed, on Monday at nine.\n\n--\nBen Lee\n"
    )
    found = read_content(thread.encode(), name=name)
    later = "\n\nAgreed, on Monday at nine." if is_own else ""
    assert found.text == f"The pipe\n\nWe dig it ourselves.{later}"
    assert "signature left out" in found.notes


def test_lines_of_a_head_that_no_mail_has_stay() -> None:
    memo = "To: All\nFrom: Ann Lee\nSummary: It opens at eight.\nDate: 2 May\nSubject: The quay\nAction: Ben paints it."
    found = read_content(f"{memo}\n\nIt is new.".encode(), name="a.txt")
    assert found.text == "The quay\n\nSummary: It opens at eight.\nAction: Ben paints it.\n\nIt is new."
    assert read_content(memo.encode(), name="a.txt").text.endswith("Action: Ben paints it.")


@pytest.mark.parametrize(
    "text",
    [
        "From: Olm\nTo: the north\n\nThe boat leaves at nine.",
        "It was late.\n\nOn 3 May 1820 he wrote:\n\nThe crane is old. It creaks.",
        "The rule:\n\n> Nobody sleeps on the quay.\n\nIt is old.",
        "Ann: From here?\nBen: To the north.\nAnn: Subject to rain.",
        "A list\n---\n- original message",
        "The trip has two legs.\n\nFrom: Olm\nTo: Rome\nDate: 12 May 2024\n\nThe boat leaves at nine.",
        "Plants are sold.\n\nFrom: 10 am\nTo: 4 pm\nDate: 12 May 2024, 9:30\nSubject: roses\n\nPay half.",
        "Report: the well\nFrom: Ann Lee\nSubject: The well\nDate: 12 May 2024 9:15\n\nIt is dry.",
        "The well\n\nFrom: Ann Lee\nSubject: The well\nDate: 12 May 2024 9:15\n\nIt is dry.",
        "Is it dry?\n\nFrom: Ann <ann@olm.example>\nSubject: The well\nDate: 12 May\n\nIt is dry.",
        "Vertrag\n\nVon: Ann <ann@olm.example>\nAn: Ben\nDatum: 12.5.2024\nBetreff: Kran\n\nEr ist alt.",
        "We met.\n\nFrom: Ann\nTo: Ben\nSubject: The well\nDate: 12 May 1921\n\nIt is dry.\n\nSo she said.",
        "No: 4711\nDate: 12 May 2024\nTo: Ann Lee, Olm\nSubject: pump\nPay by: May\n\nThe pump was sent.",
        "No: 4711\nDate: 12 May 2024\nTo: Ann Lee, Olm\nAmount due: 400 euros\n\nThe pump was sent.",
        "Date: 12 May\nFrom: 10 am\nTo: 4 pm\nSubject: roses\nPrice: 4 euros\n\nMembers pay half.",
        "From: Ann Lee\nTo: Ben\nDate: 12 May 2024\n\nThe pump was sent.",
        "From: Ann Lee\nTo: Ben\nSubject: The pump\nDate: 12 May 2024",
        "The wars\n\nOn 4 May 2022 at 9:15 Ann <ann@olm.example> wrote:\n> The river is high.",
        "We read.\n\nOn 4 May 1862 at 9:15 Ann wrote:\n> The river is high.",
        "We read.\n\nOn 4 May Ann wrote:\n> The river is high.",
        "We read.\n\nOn 4 May 2022 Ann wrote:\n> The river is very high today.\n\nIt fell.",
        "We read.\n\nOn 4 May 2022 Ann <ann@olm.example> wrote:\n> It is high.\n\nIt fell in June.",
        "The club met.\n\n---- Original message ----\nThe club was poor.\n\nIt is rich now.",
        "The club\n\n---- Original message ----\nFrom: Ben\nSent: today\n\nIt is rich now.",
    ],
)
def test_other_text_is_no_mail(text: str) -> None:
    assert as_mail(text) == ""
    assert read_content(text.encode(), name="a.txt").text == text
