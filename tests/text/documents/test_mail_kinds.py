"""Mails: all that the sender wrote is read, and nothing else.

| kind | where it shows |
|---|---|
| a quotation without its mark | "On ... wrote:" at the end, headers of Outlook, a line of a forwarded mail |
| the line above a quotation takes text with it | no blank line before it, on two lines, in any language |
| answers between quotations | plain text, HTML, format=flowed |
| the first text part is taken for the mail | text, picture, text; alternative and then text; a mail in a mail |
| the plain form is taken for the whole | a stub, and half of the text, next to HTML |
| a header that is nearly right | boundaries without quotation marks, UTF-8 as `us-ascii`, names of character sets |
| what a program adds | signature without its space, "Sent from", disclaimers, the frame of a newsletter |
| one file, several mails | mailbox, digest; and one page: `.mht` |
"""

from __future__ import annotations

from base64 import b64encode
from email.message import EmailMessage

import pytest

from precis_text.documents import mail
from precis_text.documents.mail_quotes import foreign_lines, is_stub, plain_subject
from precis_text.documents.passages import Passages
from precis_text.errors import UserError
from precis_text.units import extraction_units

OWN = "The mill opens on Friday, and I bring the key."
OLD = "Shall we meet at the mill?"


def read(
    body: str, *, subject: str = "Re: Mill", kind: str = "plain; charset=utf-8", more: str = ""
) -> Passages:
    found = mail.read(
        f"From: ann@example.org\nSubject: {subject}\n{more}Content-Type: text/{kind}\n\n{body}".encode()
    )
    assert isinstance(found, Passages)
    return found


def own(body: str, **header: str) -> str:
    """Read the body behind the subject."""
    return read(body, **header).text.partition("\n\n")[2]


@pytest.mark.parametrize(
    "says",
    [
        "On Tue, 7 Apr 2026 at 08:10, Bea <bea@example.org> wrote:",
        "On Tue, 7 Apr 2026 at 08:10, Bea Long of the Mill <\nbea@example.org> wrote:",
        "Am 07.04.26 um 08:10 schrieb Bea:",
        "Le mar. 7 avr. 2026 à 08:10, Bea <bea@example.org> a écrit :",
        "El mar, 7 abr 2026 a las 8:10, Bea (<bea@example.org>) escribió:",
        "Il giorno mar 7 apr 2026 alle ore 08:10 Bea <bea@example.org> ha scritto:",
        "Op di 7 apr. 2026 om 08:10 schreef Bea <bea@example.org>:",
        "Em ter., 7 de abr. de 2026 às 08:10, Bea escreveu:",
        "W dniu 7.04.2026 o 08:10, Bea napisała:",
        "07.04.2026 08:10, Бэа написала:",
        "Bea <bea@example.org>, 7 Nis 2026 Sal, 08:10 tarihinde şunu yazdı:",
        "Bea <bea@example.org> 于2026年4月7日周二 08:10写道：",
        "2026年4月7日(火) 8:10 Bea <bea@example.org>:",
    ],
)
@pytest.mark.parametrize("gap", ["\n\n", "\n"])
@pytest.mark.parametrize("mark", ["> ", ""])
def test_who_wrote_a_quotation_goes_with_it(says: str, gap: str, mark: str) -> None:
    assert own(f"Hi,\n\n{OWN}{gap}{says}\n{mark}{OLD}\n") == f"Hi,\n\n{OWN}"


@pytest.mark.parametrize(
    "labels",
    [
        ("From", "Sent"),
        ("Von", "Gesendet"),
        ("De", "Envoyé"),
        ("De", "Enviado el"),
        ("Da", "Inviato"),
        ("Van", "Verzonden"),
        ("Från", "Skickat"),
        ("Lähettäjä", "Lähetetty"),
        ("Od", "Wysłano"),
        ("От", "Отправлено"),
        ("Від", "Надіслано"),
        ("Kimden", "Gönderildi"),
        ("发件人", "发送时间"),
        ("寄件者", "寄件日期"),
        ("差出人", "送信日時"),
        ("보낸 사람", "보낸 날짜"),
        ("Από", "Στάλθηκε"),
        ("מאת", "נשלח"),
        ("من", "تاريخ الإرسال"),
        ("Từ", "Đã gửi"),
        ("Feladó", "Elküldve"),
        ("Odesílatel", "Odesláno"),
        ("Xyz", "Zyx"),  # a language that nobody knows: the subject tells
    ],
)
def test_all_below_the_header_of_an_answered_mail_is_quoted(labels: tuple[str, str]) -> None:
    header = f"{labels[0]}: Bea <bea@example.org>\n{labels[1]}: 7.4.2026 08:10\nQqq: Ann\nRrr: Mill\n"
    found = read(f"{OWN}\n\n{header}\n{OLD}\n\nBea\n")
    assert found.text == f"Mill\n\n{OWN}"
    assert found.notes == ["6 quoted lines left out"]
    assert OLD in read(f"{OWN}\n\n{header}\n{OLD}\n", subject="Fwd: Mill").text


@pytest.mark.parametrize(
    "body",
    [
        "From: the mill, which is on the Arn.\n\nIt turns.",
        "Name: Ann\nPlace: the mill\n\nIt turns.",
        "As she wrote in 1931: the mill turns.\n\nIt turns.",
        "Ann wrote:\n\nIt turns.",
        "The list --\n\nIt turns.",
        "A table:\n--\nIt turns." + "\n\nA line of text." * 20,
    ],
)
def test_what_only_looks_like_a_quotation_stays(body: str) -> None:
    assert own(body, subject="Mill") == body


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (f"> {OLD}\nOn Friday.\n\n> Who has the key?\nI do.\n", "plain"),
        (
            f"<blockquote type=cite>{OLD}</blockquote><p>On Friday.</p><blockquote>Who has the key?</blockquote><p>"
            f"I do.",
            "html",
        ),
        (f"> {OLD} \nOn Friday.\n\n> Who has \n> the key? \nI do.\n", "plain; format=flowed"),
    ],
)
def test_answers_between_quotations_stay(body: str, kind: str) -> None:
    assert own(body, kind=kind) == "On Friday.\n\nI do."


@pytest.mark.parametrize(
    ("body", "more", "text"),
    [
        ("The mill \nturns.\n", "", "The mill turns."),
        ("The mi \nll turns.\n", "; delsp=yes", "The mill turns."),
        (" From the mill.\n", "", "From the mill."),
        ("The mill turns.\n-- \nAnn\n", "", "The mill turns."),
    ],
)
def test_lines_that_flow_are_joined(body: str, more: str, text: str) -> None:
    assert own(body, kind=f"plain; format=flowed{more}") == text


@pytest.mark.parametrize("mark", ["-- ", "--", "—"])
def test_a_signature_is_left_out(mark: str) -> None:
    found = read(f"{OWN}\n\n{mark}\nAnn Arn\nMill Street 4\n")
    assert (found.text, found.notes) == (f"Mill\n\n{OWN}", ["signature left out"])


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("Sent from my iPhone", "line of the mail program left out"),
        ("Von meinem Telefon gesendet", "line of the mail program left out"),
        ("Get Outlook for Android", "line of the mail program left out"),
        (
            "This mail is confidential and intended only for its addressee. If you got it in error, delete it.",
            "disclaimer left out",
        ),
        (
            "Diese Nachricht ist vertraulich und nur für den Adressaten. Bitte löschen Sie sie.",
            "disclaimer left out",
        ),
    ],
)
def test_what_a_program_adds_is_left_out(line: str, note: str) -> None:
    found = read(f"{OWN}\n\n{line}\n")
    assert (found.text, found.notes) == (f"Mill\n\n{OWN}", [note])


def test_one_word_of_a_disclaimer_makes_none() -> None:
    text = "The plan of the mill is confidential until Friday."
    assert own(text) == text


def test_the_frame_of_a_newsletter_is_left_out_when_it_is_one() -> None:
    above, below = "<p>Trouble? View it in your browser.</p>", "<p>© 2026 Mill. All rights reserved.</p>"
    frame = f"{above}{{}}{below}<p>Unsubscribe</p>"
    found = read(frame.format(f"<p>{OWN}</p>"), kind="html", subject="News")
    assert (found.text, found.notes) == (f"News\n\n{OWN}", ["frame of the newsletter left out"])
    plain = "All rights reserved, says the board of the mill."
    assert own(plain, subject="News") == plain


def multipart(*parts: EmailMessage, kind: str = "mixed") -> EmailMessage:
    message = EmailMessage()
    message["Subject"] = "Mill"
    message.set_type(f"multipart/{kind}")
    for part in parts:
        message.attach(part)
    return message


def part(text: str, kind: str = "plain") -> EmailMessage:
    message = EmailMessage()
    message.set_content(text, subtype=kind)
    return message


def picture() -> EmailMessage:
    message = EmailMessage()
    message.set_content(b"x", maintype="image", subtype="png", filename="wheel.png", disposition="inline")
    return message


def test_every_text_of_a_mail_is_read() -> None:
    found = mail.read(multipart(part("One."), picture(), part("Two.")).as_bytes())
    assert isinstance(found, Passages)
    assert (found.text, found.notes) == ("Mill\n\nOne.\n\nTwo.", ["attachments not read: wheel.png"])
    both = multipart(part("One."), part("<p>One.</p>", "html"), kind="alternative")
    assert mail.read(multipart(both, part("Two.")).as_bytes()).text == "Mill\n\nOne.\n\nTwo."  # type: ignore[union-attr]
    inner = EmailMessage()
    inner.set_content(multipart(part("Two.")))
    assert mail.read(multipart(part("One."), inner).as_bytes()).text == "Mill\n\nOne.\n\nMill\n\nTwo."  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("plain", "is_read"),
    [
        ("This mail is in HTML. Please use a program that shows HTML.", False),
        ("The mill.", False),
        ("To view this e-mail, open it in a browser." + " so" * 10, False),  # 19 words, of 40 on the page
        ("The mill turns, so open it in a browser." + " so" * 10, True),
        ("The mill turns on Friday " * 8, True),
    ],
)
def test_a_stub_gives_way_to_the_page_beside_it(plain: str, is_read: bool) -> None:
    page = f"<p>{'The wheel turns on Friday. ' * 8}</p>"
    found = mail.read(multipart(part(plain), part(page, "html"), kind="alternative").as_bytes())
    assert ("The wheel" in found.text) is not is_read  # type: ignore[union-attr]
    assert found.notes == ([] if is_read else ["a shorter plain form of the mail left out"])  # type: ignore[union-attr]


def test_a_boundary_without_quotation_marks_is_one() -> None:
    body = "------=_Part_1.2\nContent-Type: text/plain\n\nOne.\n------=_Part_1.2--\n"
    content = f"Subject: Mill\nContent-Type: multipart/mixed;\n boundary=----=_Part_1.2\n\n{body}".encode()
    assert mail.read(content).text == "Mill\n\nOne."  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("charset", "codec", "text"),
    [
        ("iso-8859-1", "cp1252", "the “mill” – it’s…"),
        ("us-ascii", "utf-8", "Mühle"),
        ("gb2312", "gb18030", "镕基路的磨坊"),
        ("iso-2022-jp", "iso-2022-jp", "水車小屋"),
    ],
)
def test_the_character_set_of_a_mail_is_what_programs_take_it_for(
    charset: str, codec: str, text: str
) -> None:
    content = f"Subject: Mill\nContent-Type: text/plain; charset={charset}\n\n".encode() + text.encode(codec)
    found = mail.read(content)
    assert (found.text, found.notes) == (f"Mill\n\n{text}", [])  # type: ignore[union-attr]


def test_a_mailbox_gives_its_mails() -> None:
    box = (
        "From ann@example.org Tue Apr  7 08:10:00 2026\nSubject: Re: Mill\n\nOne.\n>From here on.\n\nFrom now on, "
        "too.\n\n"
        "From bea@example.org Tue Apr  7 09:10:00 2026\nSubject: Lock\n\nTwo.\n\n"
        "From cyd@example.org Tue Apr  7 09:10:00 2026\nSubject: Empty\n\n\n"
    )
    found = mail.read(box.encode())
    assert isinstance(found, list)
    assert [each.text for each in found] == [
        "Mill\n\nOne.\nFrom here on.\n\nFrom now on, too.",
        "Lock\n\nTwo.",
    ]
    assert [each.title for each in found] == ["mail 1: Mill", "mail 2: Lock"]
    assert found[0].notes == ["mail 3 not read: its body contains no text"]


def test_a_digest_gives_its_mails() -> None:
    mails = "".join(
        f"--b\n\nFrom: ann@example.org\nSubject: {name}\n\nThe {name}.\n\n" for name in ("mill", "lock")
    )
    found = mail.read(
        f"Subject: Digest\nContent-Type: multipart/digest; boundary=b\n\n{mails}--b--\n".encode()
    )
    assert isinstance(found, list)
    assert [each.text for each in found] == ["mill\n\nThe mill.", "lock\n\nThe lock."]


def test_a_saved_page_gives_its_article() -> None:
    page = "<html><head><title>t</title></head><body><h1>The mill</h1><p>It t=75rns.</p></body></html>"
    head = "From: <Saved by Blink>\nSnapshot-Content-Location: https://example.org\n"
    head += "Content-Type: multipart/related; boundary=b\n\n"
    part_head = "--b\nContent-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n"
    assert mail.read(f"{head}{part_head}{page}\n--b--\n".encode()).text == "The mill\n\nIt turns."  # type: ignore[union-attr]
    with pytest.raises(UserError, match="contains no page; save it again"):
        mail.read(f"{head}--b\nContent-Type: image/png\n\nx\n--b--\n".encode())


@pytest.mark.parametrize(
    "subject",
    [
        "Re: Mill",
        "AW: WG: Mill",
        "回复: Mill",
        "回复：Mill",
        "YNT: Mill",
        "SV: Mill",
        "Re[2]: Mill",
        "Odp: Re: Mill",
        "RE : Mill",
        "Mill",
    ],
)
def test_signs_of_an_answer_are_no_part_of_the_subject(subject: str) -> None:
    assert plain_subject(subject) == "Mill"


@pytest.mark.parametrize(("end", "is_heading"), [("", True), ("!", True), (" !!", True), ("?", False)])
def test_a_subject_is_a_heading_and_the_name_with_an_exclamation_mark_too(end: str, is_heading: bool) -> None:
    found = read(f"{OWN} {OWN}", subject=f"Re: Trip to Olm, please read{end}")
    (title, *told) = extraction_units(found.text)
    assert title.heading == is_heading
    assert title.text == found.name == found.at(0).heading == f"Trip to Olm, please read{end.rstrip(' !')}"
    assert [unit.text for unit in told] == [OWN, OWN]


def test_the_armour_of_a_signed_mail_is_no_text() -> None:
    body = (
        f"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n{OWN}\n"
        "-----BEGIN PGP SIGNATURE-----\n\niQEzBAEB\n=abcd\n-----END PGP SIGNATURE-----\n"
    )
    assert own(body) == OWN


def parts(*given: str, boundary: str = "b", header: str = "mixed") -> Passages:
    """Read a mail of parts, each with its own header."""
    body = "".join(f"--{boundary}\n{part}\n" for part in given)
    head = f"From: ann@example.org\nSubject: Mill\nContent-Type: multipart/{header}"
    found = mail.read(f"{head}; boundary=b\n\n{body}--{boundary}--\n".encode())
    assert isinstance(found, Passages)
    return found


FIRST = f"Content-Type: text/plain\n\n{OWN}"
INNER = "From: bea@example.org\nSubject: Wheel\n\nIt turns.\n"


@pytest.mark.parametrize(
    ("coding", "inner"),
    [("8bit", INNER), ("base64", b64encode(INNER.encode()).decode()), ("quoted-printable", INNER)],
)
@pytest.mark.parametrize("kind", ["rfc822", "global"])
def test_a_mail_in_a_mail_is_read_however_it_is_encoded(kind: str, coding: str, inner: str) -> None:
    part = f"Content-Type: message/{kind}\nContent-Transfer-Encoding: {coding}\n\n{inner}"
    assert parts(FIRST, part).text == f"Mill\n\n{OWN}\n\nWheel\n\nIt turns."


def test_a_mail_whose_parts_are_not_where_its_header_says_is_read() -> None:
    assert parts(FIRST, boundary="another").text == f"Mill\n\n{OWN}"
    bare = mail.read(f"From: ann@example.org\nContent-Type: multipart/mixed\n\n{OWN}\n".encode())
    assert bare.text == OWN  # type: ignore[union-attr]
    picture = "Content-Type: image/png\nContent-Transfer-Encoding: base64\n\naGk="
    root = f"Content-Type: text/html\nContent-ID: <root>\n\n<p>{OWN}</p>"
    assert parts(picture, root, header='related; start="<root>"').text == f"Mill\n\n{OWN}"


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("enriched", "<bold>It</bold>\n<color><param>red</param>turns</color> <<so>.", "It turns <so>."),
        ("x-unknown", "It turns.", "It turns."),
        (
            "calendar",
            "BEGIN:VEVENT\nSUMMARY:The mill\nDESCRIPTION:It turns\\, and it\n  grinds.\nUID:GONE\nEND:VEVENT",
            "The mill\n\nIt turns, and it grinds.",
        ),
    ],
)
def test_rare_forms_of_text_are_read(kind: str, body: str, text: str) -> None:
    assert own(body, kind=kind) == text


@pytest.mark.parametrize(
    ("packed", "note"),
    [
        ("begin 644 wheel.txt\n#0V%T\n`\nend", "attachments not read: wheel.txt"),
        ("=ybegin line=128 size=3 name=wheel.bin\nGONE\n=yend size=3", "attachments not read: wheel.bin"),
        ("-----BEGIN PGP MESSAGE-----\n\nGONE\n-----END PGP MESSAGE-----", "encrypted text left out"),
    ],
)
def test_what_is_packed_into_plain_text_is_named(packed: str, note: str) -> None:
    found = read(f"{OWN}\n\n{packed}\n\nAnn")
    assert (found.text, found.notes) == (f"Mill\n\n{OWN}\n\nAnn", [note])


def test_what_is_around_the_parts_is_named() -> None:
    report = "Content-Type: message/delivery-status\n\nStatus: 5.1.1\n"
    assert parts(FIRST, report).notes == ["reports of mail servers left out"]
    head = "From: ann@example.org\nContent-Type: multipart/mixed; boundary=b\n\n"
    around = mail.read(f"{head}GONE\n--b\n{FIRST}\n--b--\nGONE too\n".encode())
    assert around.text == OWN  # type: ignore[union-attr]
    assert around.notes == ["text around the parts of the mail left out"]  # type: ignore[union-attr]
    usual = mail.read(f"{head}This is a multi-part message in MIME format.\n--b\n{FIRST}\n--b--\n".encode())
    assert usual.notes == []  # type: ignore[union-attr]
    encoded = (
        f"From: ann@example.org\nContent-Transfer-Encoding: base64\n\n{b64encode(OWN.encode()).decode()}\n"
    )
    footer = mail.read(f"{encoded}\n____\nGONE\n".encode())
    assert (footer.text, footer.notes) == (OWN, ["text behind an encoded part left out"])  # type: ignore[union-attr]


def test_a_mail_that_apple_mail_saved_is_read_without_its_settings() -> None:
    inner = f"From: ann@example.org\nSubject: Mill\n\n{OWN}\n".encode()
    found = mail.read(b"%d      \n%s<plist>GONE</plist>" % (len(inner), inner))
    assert found.text == f"Mill\n\n{OWN}"  # type: ignore[union-attr]


@pytest.mark.parametrize(("between", "is_quoted"), [(0, True), (5, True), (6, False)])
def test_the_header_of_an_answered_mail_has_its_subject_and_three_labels_within_eight_lines(
    between: int, is_quoted: bool
) -> None:
    header = ["Aan: Bob", "Onderwerp: Re: the pier", *["of Velmark"] * between, "Datum: 3.4.2024"]
    kinds = foreign_lines(["Hello.", "", *header, "", "Text"], forward=False, subject="the pier")
    assert kinds[-1] == ("quoted" if is_quoted else "")
    for lacking in header[:2] + header[-1:]:
        rest = [line for line in header if line != lacking]
        assert "quoted" not in foreign_lines(
            ["Hello.", "", *rest, "", "Text"], forward=False, subject="the pier"
        )


@pytest.mark.parametrize("subject", ["", "another"])
def test_labels_without_the_subject_are_no_header(subject: str) -> None:
    header = ["Aan: Bob", "Onderwerp: the pier", "Datum: 3.4.2024", "", "Text"]
    assert foreign_lines(["Hello.", "", *header], forward=False, subject=subject) == [""] * 7


@pytest.mark.parametrize(("behind", "is_signature"), [(12, True), (13, False)])
def test_a_mark_without_its_space_begins_a_signature_of_twelve_lines(behind: int, is_signature: bool) -> None:
    lines = ["Hello.", "--", *["Bob"] * behind]
    assert (foreign_lines(lines, forward=False)[1] == "signature") == is_signature
    assert foreign_lines(["--", *["Bob"] * 3], forward=False) == [""] * 4
    assert foreign_lines(["Hello.", "-- ", *["Bob"] * 20], forward=False)[1:] == ["signature"] * 21


@pytest.mark.parametrize(
    ("says", "kinds"),
    [
        (["On 3 May Ann", "wrote:"], ["quoted"] * 2),
        (["On 3 May Ann", "of the pier", "wrote:"], ["quoted"] * 3),
        (["On 3 May Ann", "of the old", "pier now", "wrote:"], [""] * 4),
        (["I came", "On 3 May Ann", "wrote:"], ["", "quoted", "quoted"]),
        (["I came", "and Ann", "wrote:"], ["quoted"] * 3),
        (["On 3 May Ann wrote:", ""], ["quoted", ""]),
        (["I came.", "", "On 3 May Ann wrote:", "", ""], ["", "", "quoted", "", ""]),
        ([""], [""]),
        (["On 3 May Ann wrote:"], ["quoted"]),
        (["Ann came"], [""]),
    ],
)
def test_up_to_three_lines_name_who_wrote_the_quotation_below(says: list[str], kinds: list[str]) -> None:
    found = foreign_lines([*says, "> Hello", "Yes."], forward=False)
    assert found == [*kinds, "quoted", ""]


@pytest.mark.parametrize(
    ("lines", "is_quoted"),
    [
        (["On 3.5.2024 Ann Lee wrote:", "Hello"], True),
        (["On 3.5.2024 Ann", "Lee and Bob", "wrote:", "Hello"], True),
        (["On 3.5.2024 Ann", "Lee and Bob", "and Cem", "wrote:", "Hello"], False),
        (["On 3.5.2024 Ann", "", "wrote:", "Hello"], False),
        (["On 3.5.2024 wrote:", "Hello"], False),
        (["On Monday Ann Lee wrote:", "Hello"], False),
        (["On 3.5.2024 Ann Lee wrote:", ""], False),
    ],
)
def test_all_is_quoted_below_a_dated_line_that_says_who_wrote_it(lines: list[str], is_quoted: bool) -> None:
    kinds = foreign_lines(["Fine.", "", *lines], forward=False)
    assert kinds[:2] == ["", ""]
    assert kinds[2:] == (["quoted"] * len(lines) if is_quoted else [""] * len(lines))


def test_a_plain_text_of_60_words_is_no_stub() -> None:
    stub = "To view this e-mail, open it elsewhere."
    assert [is_stub(f"{stub} {'word ' * more}") for more in (0, 52, 53)] == [True, True, False]


def test_a_mail_of_more_parts_than_anybody_attaches_is_refused_before_it_is_parsed() -> None:
    part = b'Content-Type: multipart/mixed; boundary="a"\n\n--a\n'
    with pytest.raises(UserError, match="has more than 5,000 parts"):
        mail.read(b"Subject: x\n" + 50_000 * part)
