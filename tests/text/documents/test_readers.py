"""Each format gives its text in order, with pages, headings and times, and says what it leaves out."""

from __future__ import annotations

import time
from email.message import EmailMessage
from email.mime.application import MIMEApplication
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from pathlib import Path

import pytest
from docx.document import Document as WordDocument

from precis_text.documents.mail_quotes import foreign_lines
from precis_text.documents.passages import Passages, Place
from precis_text.documents.reader import read_content
from precis_text.errors import UserError
from tests.document_files import archive, epub, with_footnotes, word


def place_of(found: Passages, words: str) -> Place:
    return found.at(found.text.index(words))


def refused(content: bytes, name: str) -> str:
    with pytest.raises(UserError) as error:
        read_content(content, name=name)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_word_document_gives_headings_lists_and_tables() -> None:
    def fill(document: WordDocument) -> None:
        document.sections[0].header.paragraphs[0].text = "HEADER"
        document.add_heading("Überblick", 1)
        document.add_paragraph("Die Straße wird gesperrt.")
        for text in ("eins", "zwei"):
            document.add_paragraph(text, style="List Bullet")
        table = document.add_table(2, 2)
        for number, text in enumerate(("Jahr", "Kosten", "2020", "40")):
            table.cell(number // 2, number % 2).text = text
        document.add_heading("Budget", 2)
        document.add_paragraph("It costs 40 euros.")

    found = read_content(word(fill), name="a.docx")
    assert found.text == (
        "Überblick\n\nDie Straße wird gesperrt.\n\n- eins\n- zwei\n\nJahr | Kosten\n2020 | 40\n\n"
        "Budget\n\nIt costs 40 euros."
    )
    assert place_of(found, "eins").heading == "Überblick"
    assert place_of(found, "40 euros").heading == "Budget"


def test_a_footnote_of_a_word_document_stands_behind_its_paragraph_under_its_heading() -> None:
    def fill(document: WordDocument) -> None:
        document.add_paragraph("Bridges", style="Title")
        document.add_paragraph("Contents........1", style=document.styles.add_style("toc 1", 1))
        document.add_heading("Cost", 1)
        document.add_paragraph("It costs NOTE1 40 euros.")
        document.add_table(1, 1).cell(0, 0).text = "NOTE2 A cell."
        document.add_heading("End", 1)
        document.sections[0].footer.paragraphs[0].text = "FOOTER"

    notes = {1: "Without tax.", 2: "In euros."}
    found = read_content(with_footnotes(word(fill), notes), name="a.docx")
    assert found.text == (
        "Bridges\n\nCost\n\nIt costs 40 euros.\n\n[1] Without tax.\n\nA cell.\n\n[2] In euros.\n\nEnd"
    )
    assert place_of(found, "Without tax").heading == place_of(found, "In euros").heading == "Cost"
    assert place_of(found, "Bridges").heading == "Bridges"
    assert found.notes == ["table of contents left out", "page headers and footers left out"]


def test_a_word_document_with_entities_is_refused() -> None:
    content = archive(
        {"word/document.xml": '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'}
    )
    assert "has a document type" in refused(content, "a.docx")


@pytest.mark.parametrize("coding", ["utf-8", "utf-16", "utf-32"])
def test_a_word_file_may_hide_a_document_type_neither_in_its_coding_nor_in_its_name(coding: str) -> None:
    main = f'<?xml version="1.0" encoding="{coding}"?><!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>'.encode(coding)
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    relations = f'<r><Relationship Id="1" Type="{kind}" Target="main.part"/></r>'
    content = archive({"_rels/.rels": relations, "main.part": main, "word/document.xml": "<a/>"})
    assert "has a document type in main.part" in refused(content, "a.docx")


@pytest.mark.parametrize("coding", ["utf-8", "utf-16"])
def test_an_epub_that_declares_entities_is_refused(coding: str) -> None:
    package = f'<?xml version="1.0" encoding="{coding}"?><!DOCTYPE p [<!ENTITY x "y">]><package>&x;</package>'
    book = epub({"a.xhtml": "<p>x</p>"}, more={"OEBPS/book.opf": package.encode(coding)})  # type: ignore[dict-item]
    assert "declares entities in OEBPS/book.opf" in refused(book, "a.epub")


def test_a_file_that_an_epub_names_as_an_entity_is_not_opened(tmp_path: Path) -> None:
    file = tmp_path / "part.xml"
    file.write_text("<not XML")  # an error if it were read
    package = f'<!DOCTYPE p [<!ENTITY x SYSTEM "{file.as_uri()}">]><package>&x;</package>'
    book = epub({"a.xhtml": "<p>x</p>"}, more={"OEBPS/book.opf": package.encode()})  # type: ignore[dict-item]
    assert "declares entities in OEBPS/book.opf" in refused(book, "a.epub")


def test_a_word_document_with_a_password_or_without_text_is_refused() -> None:
    assert "password" in refused(b"\xd0\xcf\x11\xe0" + b"\0" * 600, "a.docx")
    assert "is damaged or not a Word document" in refused(b"PK\x03\x04....", "a.docx")
    assert refused(word(lambda _: None), "a.docx") == "contains no text"


PAGE = """<!DOCTYPE html><html><head><title>t</title><script>var SCRIPT = 1</script></head><body>
<nav><a href="/">Home</a><a href="/x">Imprint</a></nav><main><article><h1>Die Brücke</h1>
<p>%s</p><h2>Kosten</h2><p>%s</p><ul><li>first point of them</li><li>second point</li></ul></article></main>
<footer>Cookies and imprint</footer></body></html>"""
SENTENCES = "The bridge over the river was built in the year 1904 and repaired two times since then. " * 3


@pytest.mark.parametrize("charset", ["utf-8", "latin-1"])
def test_a_web_page_gives_its_article_alone(charset: str) -> None:
    page = (PAGE % (SENTENCES + "Über die Träger.", SENTENCES.replace("bridge", "budget"))).encode(charset)
    found = read_content(page, name="a.html")
    for words in ("Über die Träger.", "second point"):
        assert words in found.text
    for words in ("SCRIPT", "Home", "Cookies"):
        assert words not in found.text
    assert place_of(found, "budget").heading == "Kosten"
    assert found.notes


def test_a_short_page_is_read_in_its_parts_without_menus_and_requests_for_consent() -> None:
    page = b"""<!DOCTYPE html><html><body><div id="cookie-banner"><div>x</div><p>Accept all.</p></div><nav>Home</nav>
    <div><h1>Notice</h1><p>The hall is closed.</p></div><footer>Imprint</footer></body></html>"""
    found = read_content(page, name="a.html")
    assert found.text == "Notice\n\nThe hall is closed."
    assert place_of(found, "hall").heading == "Notice"
    assert found.notes == [
        "a request for consent left out",
        "menus and other parts around the article left out",
    ]


def test_what_a_browser_hides_and_links_to_edit_are_no_text() -> None:
    more = (
        "<p style='display: none'>SECRET</p><div hidden>SECRET</div><p>%s<sup class='reference'>[1]</sup></p>"
    )
    page = (PAGE % (SENTENCES, SENTENCES)).replace(
        "Kosten</h2>", "Kosten<span class='mw-editsection'>[edit]</span></h2>"
    )
    found = read_content(page.replace("<ul>", more % SENTENCES + "<ul>").encode(), name="a.html")
    assert "SECRET" not in found.text
    assert "[1]" not in found.text
    assert "\n\nKosten\n\n" in found.text


def test_a_page_that_scripts_write_says_so() -> None:
    page = b"<!DOCTYPE html><html><body><div id=root></div><script>write()</script></body></html>"
    assert "contains no text, perhaps because scripts write it" in refused(page, "a.html")


def test_an_epub_gives_chapters_in_the_order_of_reading() -> None:
    book = epub(
        {"z.xhtml": "<h1>Eins</h1><p>Die Mühle&#160;brennt.</p>", "a.xhtml": "<h1>Zwei</h1><p>Ann sings.</p>"}
    )
    found = read_content(book, name="a.epub")
    assert found.text == "Eins\n\nDie Mühle brennt.\n\nZwei\n\nAnn sings."
    assert place_of(found, "Ann").heading == "Zwei"
    assert read_content(book).text == found.text


def test_a_locked_and_a_broken_epub_say_so() -> None:
    lock = '<encryption><EncryptedData><EncryptionMethod Algorithm="aes"/></EncryptedData></encryption>'
    assert "copy protection" in refused(
        epub({"a.xhtml": "<p>x</p>"}, more={"META-INF/encryption.xml": lock}), "a.epub"
    )
    assert "is damaged or not an EPUB" in refused(archive({"a": "b"}), "a.epub")


def test_a_mail_gives_subject_and_own_words() -> None:
    message = EmailMessage()
    message["From"], message["Subject"] = "ann@example.org", "Prüfung der Brücke"
    quoted = "On Monday Bob wrote:\n> When is it?\n> Bob\n"
    message.set_content(f"Die Prüfung ist am Freitag.\n\n{quoted}\n-- \nAnn\n", cte="quoted-printable")
    message.add_attachment(b"x", maintype="application", subtype="pdf", filename="plan.pdf")
    found = read_content(message.as_bytes(), name="a.eml")
    assert found.text == "Prüfung der Brücke\n\nDie Prüfung ist am Freitag."
    assert place_of(found, "Freitag").heading == "Prüfung der Brücke"
    assert found.notes == ["3 quoted lines left out", "signature left out", "attachments not read: plan.pdf"]


@pytest.mark.parametrize(
    "says",
    [
        "On Mon, May 11, 2026 at 9:12 AM Bob Builder of the Bridges <\nbob@example.org> wrote:",
        "Am 11.05.26 um 09:12 schrieb Bob:",
        "Le lun. 11 mai 2026 à 09:12, Bob <bob@example.org> a écrit :",
    ],
)
def test_who_said_a_quotation_is_left_out_with_it(says: str) -> None:
    text = f"Subject: Re: x\nContent-Type: text/plain; charset=utf-8\n\nFriday is fine.\n\n{says}\n\n> When?\n\nBye."
    assert read_content(text.encode(), name="a.eml").text == "x\n\nFriday is fine.\n\nBye."


def test_a_line_of_the_senders_own_before_a_quotation_stays() -> None:
    text = b"Subject: Re: x\n\nI agree with this point:\n> It rusts.\n\nBye."
    assert "I agree with this point:" in read_content(text, name="a.eml").text


OUTLOOK = {
    "en": f"{'_' * 32}\nFrom: Bob <bob@example.org>\nSent: Monday, May 11, 2026\nTo: Ann\nSubject: x\n\nOLD",
    "de": "Von: Bob <bob@example.org>\nGesendet: Montag, 11. Mai 2026\nAn: Ann\nBetreff: x\n\nOLD",
    "fr": "De : Bob\nEnvoyé : lundi 11 mai 2026\nÀ : Ann\nObjet : x\n\nOLD",
}


@pytest.mark.parametrize("language", OUTLOOK)
def test_what_outlook_puts_below_an_answer_is_left_out(language: str) -> None:
    head = "Subject: Re: x\nContent-Type: text/{}; charset=utf-8\n\n"
    plain = head.format("plain") + f"We meet on Friday.\n\n{OUTLOOK[language]}\n"
    assert read_content(plain.encode(), name="a.eml").text == "x\n\nWe meet on Friday."
    lines = OUTLOOK[language].removeprefix("_" * 32 + "\n").replace("<", "&lt;").split("\n")
    old = "<br>".join(f"<b>{line.replace(':', ':</b>', 1)}" for line in lines[:-2])
    page = f"<div><p>We meet on Friday.</p><div style='x'><p class=MsoNormal>{old}</p></div><p>OLD</p></div>"
    found = read_content((head.format("html") + page).encode(), name="a.eml")
    assert (found.text, found.notes) == ("x\n\nWe meet on Friday.", ["5 quoted lines left out"])


@pytest.mark.parametrize("body", ["\n" * 30_000, "own\n" * 20_000 + "> old\n" * 20_000])
def test_a_mail_of_many_lines_takes_no_longer_for_each(body: str) -> None:
    began = time.process_time()
    assert foreign_lines(body.split("\n"), forward=False)
    assert time.process_time() - began < 1.0  # took 2 to 7 seconds where each line looked at all others


def test_a_forwarded_mail_is_read_with_what_it_forwards() -> None:
    text = f"Subject: WG: x\n\nPlease read.\n\n{OUTLOOK['de']}\n"
    assert read_content(text.encode(), name="a.eml").text.endswith("OLD")


def test_parts_of_a_mail_in_base64_and_html_are_read() -> None:
    mail = MIMEMultipart("alternative")
    mail["Subject"] = "Fest"
    mail.attach(MIMEText("<p>Das Fest fällt aus.</p><blockquote>OLD</blockquote>", "html", "utf-8"))
    found = read_content(mail.as_bytes(), name="a.eml")
    assert found.text == "Fest\n\nDas Fest fällt aus."
    assert found.notes == ["1 quoted line left out"]
    both = MIMEMultipart("alternative")
    both["Subject"] = "Fest"
    both.attach(MIMEText("Das Fest fällt nicht aus.", "plain", "iso-8859-1"))
    both.attach(MIMEText("<p>html</p>", "html", "utf-8"))
    assert read_content(both.as_bytes(), name="a.eml").text == "Fest\n\nDas Fest fällt nicht aus."


def test_a_mail_of_quotations_alone_is_read_whole() -> None:
    found = read_content(b"Subject: Re\n\n> Ann sings.\n", name="a.eml")
    assert found.text == "Re\n\nAnn sings."


def test_a_mail_without_a_body_and_an_encrypted_one_say_so() -> None:
    mail = MIMEMultipart()
    mail["From"] = "ann@example.org"
    mail.attach(MIMEApplication(b"x", Name="plan.pdf"))
    assert refused(mail.as_bytes(), "a.eml").startswith("its body contains no text")
    encrypted = b"Subject: x\nContent-Type: multipart/encrypted; boundary=b\n\n--b\n\n--b--\n"
    assert "is encrypted; decrypt it" in refused(encrypted, "a.eml")


def test_markdown_gives_text_without_marks() -> None:
    text = "---\ntitle: x\n---\n# Die *Brücke*\n\nIt is [long](http://x).\n\n"
    text += "- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    found = read_content(text.encode(), name="a.md")
    assert found.text == "Die Brücke\n\nIt is long.\n\n- one\n- two\n\na | b\n1 | 2"
    assert place_of(found, "two").heading == "Die Brücke"


def test_subtitles_give_what_is_said_with_its_time() -> None:
    text = (
        "1\n00:00:01,000 --> 00:00:02,000\n<i>Die Brücke</i>\nist\n\n2\n00:00:02,000 --> 00:00:03,000\nist\nalt.\n\n"
        "3\n01:00:02,000 --> 01:00:03,000\n- Wirklich?\n- Ja.\n"
    )
    found = read_content(text.encode(), name="a.srt")
    assert found.text == "Die Brücke ist alt.\n- Wirklich?\n- Ja."
    assert found.at(0).time == "0:00:01"
    assert place_of(found, "Wirklich").time == "1:00:02"
    vtt = "WEBVTT\n\nNOTE x\n\n00:01.000 --> 00:02.000 align:start\n<v Ann>Hallo.\n"
    assert read_content(vtt.encode()).text == "Ann: Hallo."
    assert "lacks cues (" in refused(b"Ann sings.", "a.srt")


def cues(*texts: str) -> bytes:
    return "\n".join(
        f"{number + 1}\n00:00:{number:02},000 --> 00:00:{number + 1:02},000\n{text}\n"
        for number, text in enumerate(texts)
    ).encode()


def test_each_speaker_of_subtitles_begins_a_line_and_sounds_are_left_out() -> None:
    found = read_content(
        cues(
            "ANN: Welcome to\nthe hall.",
            "[applause]",
            ">> BOB LEE: Thank you.",
            ">> How much?",
            "♪ It is",
            "said: a lot ♪",
        ),
        name="a.srt",
    )
    assert found.text == "ANN: Welcome to the hall.\nBOB LEE: Thank you.\nHow much? It is said: a lot"
    assert found.notes == ["1 sound in brackets left out"]


def test_a_voice_is_named_when_it_changes() -> None:
    text = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann Lee>Tea &amp; cake,\n\n"
    text += "00:02.000 --> 00:03.000\n<v Ann Lee>please.\n\n00:03.000 --> 00:04.000\n<v Bob>No.\n"
    assert read_content(text.encode(), name="a.vtt").text == "Ann Lee: Tea & cake, please.\nBob: No."


def test_each_voice_of_a_cue_is_named_and_a_sound_gives_its_voice_to_nobody() -> None:
    both = cues("<v Ann>Hello.\n<v Bob>Bye.", "<v Bob>Soon.", "<v Cy>[laughs]\n<v Dan>Yes.")
    assert read_content(both, name="a.srt").text == "Ann: Hello.\nBob: Bye. Soon.\nDan: Yes."


def test_rolling_captions_have_the_time_at_which_their_words_begin() -> None:
    text = (
        "WEBVTT\n\n00:00.000 --> 00:02.000\n \nso<00:00.500><c> today</c>\n\n00:02.000 --> 00:02.010\nso today\n \n\n"
        "00:02.010 --> 00:04.000\nso today\nwe<00:03.000><c> talk</c>\n"
    )
    found = read_content(text.encode(), name="a.vtt")
    assert found.text == "so today we talk"
    assert [str(place) for place in found.places] == ["0:00:00", "0:00:02"]


def test_a_web_page_is_read_in_the_characters_that_it_declares() -> None:
    page = '<html><head><meta charset="%s"></head><body><article><p>Über die Träger. %s</p></article></body></html>'
    for charset in ("utf-8", "iso-8859-15", "utf-16"):
        found = read_content((page % (charset, SENTENCES)).encode(charset), name="a.htm")
        assert "Über die Träger." in found.text
        assert not any("character set" in note for note in found.notes)
