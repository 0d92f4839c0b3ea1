"""Words that go into a reader come out, or are named: counted by another way than the reader's."""

from __future__ import annotations

import base64

import pytest
from docx.document import Document as WordDocument

from precis_text.documents import conservation, file_kinds
from precis_text.documents.conservation import LOW, counted
from precis_text.documents.passages import Passages, Share
from precis_text.documents.plain_text import with_words_joined
from precis_text.documents.reader import read_content, read_contents
from tests.document_files import epub, word

TEXT = "The mill on the Arn was built in 1841 and ground rye for nine villages until the flood came."
PAGE = (
    f"<html><head><title>GONE</title><style>GONE</style></head><body><h1>Mill</h1><p>{TEXT}<sup>3</sup></p><ul><li>"
    f"W<b>heel</b></li></ul>"
    "<p hidden>Left out.</p></body></html>"
)


def filled(document: WordDocument) -> None:
    document.add_paragraph(TEXT)
    document.add_table(1, 1).cell(0, 0).text = "The wheel"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.html", PAGE.encode()),
        (
            "a.md",
            f"---\na: b\n---\n# Mill\n\n{TEXT} [here](https://example.org) <b>bold</b> List<Object>\n".encode(),
        ),
        ("a.eml", f"Subject: x\n\n{TEXT}\n> Old words.\n-- \nAnn\n".encode()),
        (
            "a.eml",
            b"Subject: x\nContent-Type: multipart/mixed; boundary=-=b\n\n---=b\n\nThe mill turns.\n---=b--\n",
        ),
        ("a.epub", epub({"a.xhtml": f"<p>{TEXT}</p>"})),
        ("a.docx", word(filled)),
        ("a.rtf", rf"{{\rtf1{{\fonttbl{{\f0 Mill;}}}}{TEXT}\par}}".encode()),
        ("a.tex", rf"\section{{Mill}} {TEXT} \emph{{Yes}}~\cite{{a}}".encode()),
        (
            "a.ipynb",
            b'{"cells": [{"cell_type": "code", "source": "a = b"}, {"cell_type": "markdown", "source": "# The '
            b'mill"}]}',
        ),
    ],
)
def test_every_word_is_read_or_named(name: str, content: bytes) -> None:
    share = read_content(content, name=name).share
    assert share is not None
    assert share.words > 2
    assert share.kept == 1.0


def test_words_that_a_reader_loses_are_counted_and_said() -> None:
    lost = Passages(TEXT.rpartition(" until")[0], left=[("", "flood")])
    (found,) = counted("web_page", f"<p>{TEXT}</p>".encode(), [lost])
    assert found.share == Share(words=19, read=15, named=1)
    assert found.share.kept < LOW
    assert found.notes == ["only 84% of the file's 19 words were read or named; compare it with the file"]


def test_the_count_of_a_file_with_several_documents_is_that_of_the_file() -> None:
    box = "".join(
        f"From a@example.org Tue Apr  7 08:1{n}:00 2026\nSubject: {n}\n\n{TEXT}\n\n" for n in range(2)
    )
    first, second = read_contents(box.encode(), name="a.mbox")
    assert first.share == Share(words=38, read=38, named=0)
    assert second.share is None
    assert read_content(box.encode(), name="a.mbox").share == first.share


def test_every_format_but_pdf_pictures_subtitles_and_plain_text_has_a_count() -> None:
    modules = {kind.module for kind in file_kinds.KINDS}
    assert modules - set(conservation._WAYS) == {"pdf", "picture", "slack_export", "subtitles"}


@pytest.mark.parametrize(
    ("given", "text", "count"),
    [
        ("The mill of Arn-\nstead was ground-\ned.\n", "The mill of Arnstead\nwas\ngrounded.\n", 2),
        (
            "A well-known mill, well-\nknown and well-\nloved, and wellloved.",
            "A well-known mill, well-known\nand wellloved,\nand wellloved.",
            2,
        ),
        ("The Arn-\nStead and the Arn-\nBridge.", "The Arn-\nStead and the Arn-\nBridge.", 0),
        (
            "We lay the impact-\nabsorbing floor of the park and the step-\nfree path to it.",
            "We lay the impact-absorbing\nfloor of the park and the step-free\npath to it.",
            2,
        ),
        ("Alle Vor-\nund Nachteile des Arn-\nwegs.", "Alle Vor- und\nNachteile des\nArnwegs.", 2),
        ("Only one pre-\npost here.", "Only one pre-\npost here.", 0),
        ("- one\n- two", "- one\n- two", 0),
    ],
)
def test_words_that_were_divided_at_line_ends_are_joined(given: str, text: str, count: int) -> None:
    assert with_words_joined(given) == (text, count)
    assert text.count("\n") == given.count("\n")


def test_a_plain_text_of_divided_words_says_so() -> None:
    found = read_content(b"The mill of Arn-\nstead was ground-\ned by rye.\n", name="a.txt")
    assert found.notes == ["2 words joined that were divided at line ends"]


def test_words_of_a_flat_open_document_are_those_of_its_body() -> None:
    office = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
    text = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
    content = (
        f'<office:document xmlns:office="{office}" xmlns:text="{text}"><office:settings>GONE</office:settings>'
        f"<office:body><office:text><text:p>{TEXT}</text:p></office:text></office:body></office:document>"
    )
    found = read_content(content.encode(), name="a.fodt")
    assert found.text == TEXT
    assert found.share == Share(len(TEXT.split()), len(TEXT.split()), 0)


def test_addresses_and_pictures_of_markdown_are_no_words() -> None:
    given = f"{TEXT} [wheel](https://example.org/a\\(b\\)) ![photo of it](a.png) [old][1]\n\n   [1]: https://example.org\n"
    found = read_content(given.encode(), name="a.md")
    assert found.share is not None
    assert found.share.words == found.share.read == len(TEXT.split()) + 2


@pytest.mark.parametrize(
    ("module", "content", "words"),
    [
        ("web_page", "<p>one<script>GONE</script> two<sup>3</sup></p>", "one two"),
        ("web_page", "<p><style>GONE</style><b>o</b>ne <i>two</i></p><p>three", "one two three"),
        ("web_page", "<head><title>GONE</title><body>one</body>", "one"),
        ("web_page", "<script><b>GONE</b></script>one</b> two", "one two"),
        ("web_page", "<p>one</p><p>two</p>", "one two"),
        ("web_page", "<svg><![CDATA[one]]></svg> two", "one two"),
        ("web_page", "<style><![CDATA[GONE]]></style> two", "two"),
        ("notebook", '{"cells": [{"cell_type": "markdown", "source": "one [two](http://gone.org)"}]}', "one two"),
        ("notebook", '{"cells": [{"cell_type": "code", "source": ["one ", "[two](there.org)"]}]}', "one two there org"),
        ("notebook", '{"cells": [7, {"cell_type": "markdown"}, {"cell_type": "code", "source": "one"}]}', "one"),
        ("markdown", "one ![two](gone.png) `three`\n[gone]: http://gone.org\n", "one three"),
    ],
)  # fmt: skip
def test_the_words_of_a_file_are_those_that_a_reader_would_see(module: str, content: str, words: str) -> None:
    (found,) = counted(module, content.encode(), [Passages(words)])
    assert found.share == Share(words=len(words.split()), read=len(words.split()), named=0)
    (found,) = counted(module, content.encode(), [Passages("")])
    assert found.share == Share(words=len(words.split()), read=0, named=0)


def test_a_share_of_95_percent_is_not_told() -> None:
    page = f"<p>{'word ' * 100}</p>".encode()
    for read, told in ((95, False), (94, True)):
        (found,) = counted("web_page", page, [Passages("word " * read)])
        assert bool(found.notes) == told
        (found,) = counted("web_page", page, [Passages("word " * (read - 9), left=[("x", "word " * 9)])])
        assert found.share is not None
        assert (found.share.read, found.share.named, bool(found.notes)) == (read - 9, 9, told)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Two words", 2),
        ("水車小屋", 4),
        ("the 3rdMill", 4),
        ("x² and m³", 3),
        ("soft\u00adly", 1),
        ("a_b", 2),
        ("", 0),
    ],
)
def test_words_are_counted_by_letters_and_signs(text: str, count: int) -> None:
    assert conservation.words([text]).total() == count


def test_words_of_a_mail_are_those_of_all_its_texts_once() -> None:
    inner = base64.encodebytes(b"Subject: gone\n\nThree four.\n").decode()
    packed = f"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{inner}"
    attached = 'Content-Type: text/plain\nContent-Disposition: attachment; filename="a.txt"\n\nGone.\n'
    parts = ["Content-Type: text/plain\n\nOne two.\n", packed, attached]
    body = "".join(f"--b\n{part}\n" for part in parts)
    mail = f"Subject: gone\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n{body}--b--\n"
    (found,) = counted("mail", mail.encode(), [Passages("One two three four")])
    assert found.share == Share(words=4, read=4, named=0)
    twins = "".join(
        f"--b\nContent-Type: text/{kind}\n\n{text}\n" for kind, text in (("plain", TEXT), ("html", PAGE))
    )
    mail = f"MIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=b\n\n{twins}--b--\n"
    (found,) = counted("mail", mail.encode(), [Passages("")])
    assert found.share is not None
    assert 19 <= found.share.words <= 24
