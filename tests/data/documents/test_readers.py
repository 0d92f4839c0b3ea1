"""Each format gives its text in order, with pages, headings and times, and says what it leaves out."""

from __future__ import annotations

from email.message import EmailMessage
from email.mime.application import MIMEApplication
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

import pytest
from document_files import archive, epub, lines_of, pdf, word

from precis.data.documents.passages import Passages
from precis.data.documents.reading import read_content
from precis.errors import UserError

BODY = [
    "Die Straße über die Brücke wird im Mai für zwei",
    "Wochen gesperrt, weil die Träger rosten. Die Zusam-",
    "menarbeit mit Köln geht weiter.",
]


def place_of(found: Passages, words: str):
    return found.at(found.text.index(words))


def refused(content: bytes, name: str) -> str:
    with pytest.raises(UserError) as error:
        read_content(content, name=name)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_pdf_gives_umlauts_whole_words_and_pages() -> None:
    found = read_content(pdf([lines_of(BODY), lines_of(["Second page (with marks)."])]), name="a.pdf")
    assert "über die Brücke" in found.text
    assert "Die Zusammenarbeit\nmit Köln" in found.text
    assert place_of(found, "Straße").page == 1
    assert place_of(found, "Second page (with marks).").page == 2


def test_columns_of_a_pdf_follow_one_another() -> None:
    left, right = ["The left column", "is read first."], ["The right column", "comes behind it."]
    text = read_content(pdf([lines_of(left, right)])).text
    assert text.split("\n") == [*left, *right]


def test_running_heads_and_page_numbers_are_left_out_and_said() -> None:
    pages = [lines_of(["Annual report", f"Point {word} is here.", str(n)]) for n, word in enumerate("abcd")]
    found = read_content(pdf(pages))
    assert found.text == "Point a is here.\n\nPoint b is here.\n\nPoint c is here.\n\nPoint d is here."
    assert found.notes == ["lines that stand on every page left out"]


def test_a_sentence_goes_on_over_a_page() -> None:
    found = read_content(pdf([lines_of(["Ann went home on"]), lines_of(["monday evening."])]))
    assert found.text == "Ann went home on\nmonday evening."


def test_the_outline_of_a_pdf_gives_headings() -> None:
    page = lines_of(["1 Brücken", "They rust.", "2 Budget", "It is 40 euros."])
    found = read_content(pdf([lines_of(["Foreword."]), page], outline=[("Brücken", 1), ("Budget", 1)]))
    assert place_of(found, "Foreword").heading == ""
    assert str(place_of(found, "rust")) == 'page 2, "Brücken"'
    assert str(place_of(found, "40")) == 'page 2, "Budget"'


def test_pages_without_text_are_named_and_a_scan_is_refused() -> None:
    found = read_content(pdf([lines_of(["Text."]), "", ""]))
    assert found.notes == ["no text on pages 2, 3"]
    assert "holds images only, no text, on 2 pages; " in refused(pdf(["", ""]), "a.pdf")


def test_locked_broken_and_empty_pdfs_say_so() -> None:
    locked = "/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O ({}) /U ({}) >> /ID [(a) (a)]".format(
        "x" * 32,
        "y" * 32,
    )
    assert "is locked; save it without a password" in refused(pdf([lines_of(BODY)], trailer=locked), "a.pdf")
    assert refused(b"%PDF-1.4\nnonsense", "a.pdf").startswith("is broken: ")
    assert refused(b"", "a.pdf") == "is empty"
    assert refused(pdf([lines_of(BODY)])[:300], "a.pdf").startswith("is broken: ")


def test_a_word_document_gives_headings_lists_and_tables() -> None:
    def fill(document) -> None:
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


def test_a_word_document_with_entities_or_a_password_is_refused() -> None:
    content = archive(
        {"word/document.xml": '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'}
    )
    assert "has a document type" in refused(content, "a.docx")
    assert "password" in refused(b"\xd0\xcf\x11\xe0" + b"\0" * 600, "a.docx")
    assert "is broken or not a Word document" in refused(b"PK\x03\x04....", "a.docx")
    assert refused(word(lambda _: None), "a.docx") == "holds no text"


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


def test_a_page_that_scripts_write_says_so() -> None:
    page = b"<!DOCTYPE html><html><body><div id=root></div><script>write()</script></body></html>"
    assert "holds no text, perhaps because scripts write it" in refused(page, "a.html")


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
    assert "is broken or no EPUB" in refused(archive({"a": "b"}), "a.epub")


def test_a_mail_gives_subject_and_own_words() -> None:
    message = EmailMessage()
    message["From"], message["Subject"] = "ann@example.org", "Prüfung der Brücke"
    quoted = "On Monday Bob wrote:\n> When is it?\n> Bob\n"
    message.set_content(f"Die Prüfung ist am Freitag.\n\n{quoted}\n-- \nAnn\n", cte="quoted-printable")
    message.add_attachment(b"x", maintype="application", subtype="pdf", filename="plan.pdf")
    found = read_content(message.as_bytes(), name="a.eml")
    assert found.text == "Prüfung der Brücke\n\nDie Prüfung ist am Freitag."
    assert place_of(found, "Freitag").heading == "Prüfung der Brücke"
    assert found.notes == ["5 quoted lines left out", "attachments not read: plan.pdf"]


def test_parts_of_a_mail_in_base64_and_html_are_read() -> None:
    mail = MIMEMultipart("alternative")
    mail["Subject"] = "Fest"
    mail.attach(MIMEText("<p>Das Fest fällt aus.</p><blockquote>OLD</blockquote>", "html", "utf-8"))
    found = read_content(mail.as_bytes(), name="a.eml")
    assert found.text == "Fest\n\nDas Fest fällt aus."
    assert found.notes == ["the quoted message left out"]
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
    assert refused(mail.as_bytes(), "a.eml").startswith("its body holds no text")
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
    assert "has no cue" in refused(b"Ann sings.", "a.srt")


def test_a_web_page_is_read_in_the_characters_that_it_declares() -> None:
    page = '<html><head><meta charset="%s"></head><body><article><p>Über die Träger. %s</p></article></body></html>'
    for charset in ("utf-8", "iso-8859-15", "utf-16"):
        found = read_content((page % (charset, SENTENCES)).encode(charset), name="a.htm")
        assert "Über die Träger." in found.text
        assert not any("character set" in note for note in found.notes)
