"""A document made to break its reader is refused in time, and the next one is read."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import pytest

from precis_text.documents import reader
from precis_text.documents.file_kinds import kind_of
from precis_text.documents.passages import Writer
from precis_text.documents.reader import TooLateError, read_content, read_document, read_documents
from precis_text.errors import UserError
from tests.document_files import archive, epub, lines_of, pdf

GOOD = b"# Head\n\nAnn sings."


def refused(content: bytes, name: str) -> str:
    with pytest.raises(UserError) as error:
        read_content(content, name=name)
    assert "\n" not in str(error.value)
    assert read_content(GOOD, name="a.md").text == "Head\n\nAnn sings."
    return str(error.value)


def test_a_finished_document_does_not_grow_with_its_builder() -> None:
    writer = Writer()
    writer.heading("Mill")
    found, before = writer.finished(), writer.finished().to_dict()
    writer.leave_out("notes", "The wheel turns.")
    writer.heading("Wheel")
    assert (found.to_dict(), found.left) == (before, [])


def test_one_document_is_read_and_several_are_refused(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("The mill turns.")
    assert read_document(tmp_path / "one.txt").text == "The mill turns."
    letter = "From ann@example.org Mon Nov  2 10:00:00 2026\nFrom: ann@example.org\nSubject: {0}\n\nThe {0} turns.\n\n"
    (tmp_path / "two.mbox").write_text(letter.format("mill") + letter.format("wheel"))
    with pytest.raises(UserError, match=r"two\.mbox: holds 2 documents; precis\.read_documents reads them"):
        read_document(tmp_path / "two.mbox")
    assert len(read_documents(tmp_path / "two.mbox")) == 2
    with pytest.raises(UserError, match="is a folder; name one file"):
        read_documents(tmp_path)


def test_archives_that_grow_without_end_are_refused() -> None:
    page = "<p>" + " " * (70 << 20)
    assert "unpacks to 70 MiB; the limit is 64 MiB" in refused(epub({"a.xhtml": page}), "a.epub")
    assert "unpacks to 70 MiB" in refused(archive({"word/document.xml": page}), "a.docx")


def slow_pdf() -> bytes:
    packed = zlib.compress(lines_of(["word"] * 200_000).encode("cp1252"), 9).decode("latin-1")
    return pdf([""]).replace(
        b"<< /Length 0 >>\nstream\n\n",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\n" % (len(packed), packed.encode("latin-1")),
    )


@pytest.mark.long
def test_what_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_SECONDS", 1.0)
    monkeypatch.setattr(reader, "_MOST_SECONDS", 1.0)
    used = os.times()
    assert "takes more than 1 seconds" in refused(slow_pdf(), "a.pdf")
    assert os.times().children_user - used.children_user < 5


def test_a_document_that_is_ended_early_is_not_said_to_be_malicious() -> None:
    content = slow_pdf()
    with pytest.raises(TooLateError, match=r"^was not read within 0\.5 seconds$"):
        read_content(content, name="a.pdf", within=0.5)
    assert read_content(GOOD, name="a.md").text  # the next process is there
    stop = threading.Timer(0.5, reader.stop_reading)
    stop.start()
    assert "its reader was ended, perhaps for lack of memory" in refused(content, "a.pdf")
    stop.join()


def test_a_reader_has_no_network_no_processes_and_no_files_to_write() -> None:
    code = (
        "import sys; from precis_text.documents import reading_process as worker; sys.addaudithook(worker._watch);"
        "exec(sys.argv[1])"
    )
    for line in (
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.system('true')",
        "open('made', 'w')",
    ):
        ended = subprocess.run(
            [sys.executable, "-c", code, line], capture_output=True, text=True, check=False
        )
        assert "PermissionError: reading a document attempted" in ended.stderr


def test_a_module_in_the_current_folder_is_not_taken_for_a_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "markdown_it.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    reader._WORKER.end()
    assert read_content(GOOD, name="a.md").text


def test_a_missing_extra_is_one_line_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "find_spec", lambda _: None)
    message = r"is a PDF, not plain text; .* pip install .*'pypdfium2>=5.15'"
    with pytest.raises(UserError, match=message):
        read_content(b"%PDF-1.4", name="a.pdf")
    assert read_content(GOOD, name="a.md").text


def test_a_fork_reads_with_a_process_of_its_own() -> None:
    assert read_content(GOOD, name="a.md").text
    child = os.fork()
    if not child:
        os._exit(0 if read_content(b"# Other", name="a.md").text == "Other" else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert read_content(GOOD, name="a.md").text == "Head\n\nAnn sings."


@pytest.mark.parametrize(
    ("name", "beginning", "kind"),
    [
        ("a.txt", b"%PDF-1.7", "a PDF"),
        ("", b"\xef\xbb\xbf\n<!DOCTYPE html>", "a web page"),
        ("a.md", b"<html>", "Markdown"),
        ("a.PDF", b"", "a PDF"),
        ("", b"PK\x03\x04....word/document.xml", "a Word document"),
        ("a.xlsx", b"PK\x03\x04....word/", "a spreadsheet"),
        ("a.zip", b"PK\x03\x04....word/", "a Slack export"),
        ("", b"PK\x03\x04....ppt/presentation.xml", "a presentation"),
        ("", b"PK\x03\x04....mimetypeapplication/vnd.oasis.opendocument.text", "an OpenDocument file"),
        ("a.txt", b"From ann@example.org Mon Mar  2 09:00:00 2026\nSubject: x\n", "a mailbox"),
        ("a.txt", b"From the harbour of Veldmouth.", None),
        ("a.txt", b"{\\rtf1", "rich text"),
        ("a.txt", b"From: <Saved by Blink>\n", "a saved page"),
        ("a.txt", b"Ann sings.", None),
        ("", b"WEBVTT\n", "subtitles"),
    ],
)
def test_the_beginning_tells_the_kind_then_the_name(name: str, beginning: bytes, kind: str | None) -> None:
    found = kind_of(name, beginning)
    assert (found.name if found else None) == kind


GERMAN = "Der Kai über der Brücke ist gesperrt, sagt die Bürgermeisterin.\r\nGrüße aus 12 m² in Olm – und „viel Glück“."


@pytest.mark.parametrize(
    "text",
    [
        GERMAN,
        "L'été à la crèche, dit l'élève.",
        "El año pasado llegó el señor. ¿Mañana?",
        "A câmara não é a dona da estação.",
        "It’s the café of the town, and it is £3 – or less.",
        "Det är en bro för alla i byn, och den är ny.",
    ],
)
def test_a_text_of_windows_is_read_and_the_note_says_so(text: str) -> None:
    found = read_content(text.encode("cp1252"), name="a.txt")
    assert found.text == text.replace("\r\n", "\n")
    assert found.notes == ["not UTF-8; read as Western European (cp1252)"]


@pytest.mark.parametrize(
    "content",
    [
        b"Ann \xff sings",
        GERMAN.encode("cp1252") + b"\0",
        GERMAN.encode("cp1252") + b"\x90",
        "Кошка спит, а собака нет.".encode("cp1251"),
        "Łódź leży nad wodą, a życie płynie.".encode("cp1250"),
        "Gradsko vijeće otvorilo je most. Kuća je mala, noć je duga i svi će doći.".encode("cp1250"),
        "Primăria a deschis podul vineri, după ce a fost gata.".encode("cp1250"),
        "Rada otworzyła drogę. Mróz trzymał. Mała łódz stała w porcie.".encode("cp1250"),
        "Den Łukasz und die Mała sah er in der Stadt, aber sie sah ihn für den Tag.".encode("cp1250"),
        "Das Haus des Żyła ist in der Bożena bei der Straße für die Stadt.".encode("cp1250"),
        "Sillä on uusi katto, mutta sitä ei näy.".encode("cp1252"),
        bytes(range(160, 256)),
    ],
)
def test_other_bytes_are_no_text_of_windows(content: bytes) -> None:
    with pytest.raises(UserError, match=r"invalid UTF-8|is not text"):
        read_content(content, name="a.txt")
