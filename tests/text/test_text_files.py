"""Plain text is decoded, the documents of a folder are found, and files of other kinds are named with a remedy."""

from pathlib import Path

import pytest

from precis_text import text_files
from precis_text.errors import UserError
from precis_text.text_files import (
    NOT_TEXT,
    NotTextError,
    decode_marked,
    decode_text,
    document_files,
    orphaned_summaries,
    other_kind,
    read_text,
    summary_file,
    unread_names,
)


def test_every_line_ends_in_a_line_feed_and_a_byte_order_mark_is_no_text() -> None:
    assert decode_text("\ufeffä\r\nb\rc\n".encode()) == "ä\nb\nc\n"
    assert decode_marked("ä\r\nb\rc".encode("utf-16")) == "ä\nb\nc"
    assert decode_marked("ä".encode()) == ""


def test_a_byte_that_is_not_utf_8_is_named_with_its_place_and_line_counted_from_1() -> None:
    with pytest.raises(NotTextError, match=r"^invalid UTF-8 at byte 1 \(0xFF, line 1\); "):
        decode_text(b"\xffa\n")
    with pytest.raises(NotTextError, match=r"^invalid UTF-8 at byte 6 \(0xE9, line 3\); "):
        decode_text(b"a\nb\nc\xe9 \n")
    with pytest.raises(NotTextError, match=r"^is UTF-16; "):
        decode_text("a".encode("utf-16"))


def test_a_file_of_the_largest_size_is_read_and_a_larger_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "MAX_LINE", 3)
    (tmp_path / "a.txt").write_bytes(b"abc")
    assert read_text(tmp_path / "a.txt") == "abc"
    (tmp_path / "a.txt").write_bytes(b"abcd")
    with pytest.raises(UserError, match="is larger than 3 bytes"):
        read_text(tmp_path / "a.txt")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.txt", "a.txt", "a.summary.txt", "c.summary.txt", ".hidden.txt", ".hidden", "notes.md"):
        (tmp_path / name).write_text("text")
    (tmp_path / "old").mkdir()
    return tmp_path


def test_the_documents_of_a_folder_are_its_texts_without_summaries_and_hidden_files(folder: Path) -> None:
    assert document_files(folder) == [folder / "a.txt", folder / "b.txt"]
    with pytest.raises(UserError, match="cannot be read"):
        document_files(folder / "none")


def test_what_was_not_read_is_named_without_hidden_files(folder: Path) -> None:
    read = document_files(folder)
    assert unread_names(folder, read) == ["a.summary.txt", "c.summary.txt", "notes.md", "old/"]


def test_a_summary_without_its_document_is_named_with_the_missing_file(folder: Path) -> None:
    assert summary_file(folder / "a.txt") == folder / "a.summary.txt"
    assert orphaned_summaries(folder) == [(folder / "c.summary.txt", "c.txt")]


@pytest.mark.parametrize(
    ("name", "beginning", "kind"),
    [
        ("a.txt", b"Ann sings.", ""),
        ("", b"Ann sings.", ""),
        ("docx", b"Ann sings.", ""),
        ("a.txt", b"Ann\0sings.", NOT_TEXT),
        ("a.PDF", b"Ann", "is a PDF, not plain text; convert it to text first, for instance with pdftotext"),
        ("a.b.docx", b"", "is a Word document, not plain text; convert it to text first"),
        ("a.dot", b"", "is a Word document of the old format, not plain text; save it as .docx"),
        ("a.txt", b"\xef\xbb\xbf \r\n\t<HTML lang", "is a web page, not plain text; "),
        ("", b"%pdf-1.7", "is a PDF, not plain text; "),
        ("a.txt", b"PK\x03\x04", "is an office file or an archive, not plain text; convert it to text first"),
        ("a.docx", b"PK\x03\x04", "is a Word document, not plain text; "),
        ("a.gz", b"\x1f\x8b\0", "is a compressed file, not plain text; unpack it first"),
    ],
)
def test_a_file_of_another_kind_is_known_by_its_ending_else_by_its_beginning(
    name: str, beginning: bytes, kind: str
) -> None:
    found = other_kind(name, beginning)
    assert found.startswith(kind) if kind else not found
