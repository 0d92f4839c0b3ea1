"""Documents come from texts, folders and rows, in order, and nothing is left out without a word."""

import io
import os
from pathlib import Path

import pytest

from precis.phases.use.input_documents import Document, Reading, holds_many, read_documents, with_first
from precis_text.errors import UserError


def test_a_text_is_one_document_and_a_folder_one_for_each_text(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "a.summary.txt"):
        (tmp_path / name).write_text(name)
    found = list(read_documents([str(tmp_path / "b.txt"), str(tmp_path)]))
    assert [document.text for document in found] == ["b.txt", "a.txt", "b.txt"]
    assert found[0].name == str(tmp_path / "b.txt")


def test_rows_are_documents_and_skipped_ones_are_told(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"document": "one"}\n{"document": ""}\n{"document": "three", "id": "x7"}\n')
    with pytest.raises(UserError, match="line 2"):
        list(read_documents([str(file)]))
    notes: list[str] = []
    found = list(read_documents([str(file)], Reading(skip_bad=True), notify=notes.append))
    assert [document.name for document in found] == [f"{file}: line 1", f"{file}: x7"]
    assert "1 row skipped" in notes[0]
    assert "line 2" in notes[0]


def test_another_column_can_hold_the_document(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("body,title\none,two\n")
    assert [d.text for d in read_documents([str(file)], Reading(column="body"))] == ["one"]


def test_a_file_that_cannot_be_opened_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("Ann sings.")

    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(UserError, match=r"a\.txt: cannot be read: Permission denied"):
        list(read_documents([str(tmp_path / "a.txt")]))
    (found,) = read_documents([str(tmp_path)])  # a folder goes on
    assert found.problem == "cannot be read: Permission denied"


def test_an_address_is_refused_with_the_command_that_reads_it() -> None:
    with pytest.raises(
        UserError, match=r"^https://example\.org/a: is an address, .* curl -sL https://example\.org/a \| "
    ):
        read_documents(["https://example.org/a"])
    with pytest.raises(UserError, match=r"curl -sL 'https://example\.org/\?a=1&b=2' \| precis summarize -$"):
        read_documents(["https://example.org/?a=1&b=2"])


def test_a_mailbox_is_a_document_for_each_mail(tmp_path: Path) -> None:
    mails = "".join(
        f"From {name}@example.org Tue Apr  7 08:0{number}:00 2026\nSubject: {name}\n\nThe {name} is shut.\n\n"
        for number, name in enumerate(("mill", "lock"))
    )
    (tmp_path / "a.mbox").write_text(mails)
    found = list(read_documents([str(tmp_path / "a.mbox")]))
    assert [document.text for document in found] == ["mill\n\nThe mill is shut.", "lock\n\nThe lock is shut."]
    assert [document.name.rpartition(": ")[0][-6:] for document in found] == ["mail 1", "mail 2"]


def test_a_table_is_one_document_when_asked(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("sep=;\nplace;cost\nmill;12,5\n")
    (found,) = read_documents([str(tmp_path / "a.csv")], Reading(whole_tables=True))
    assert found.text == "place | cost\nmill | 12,5"


BOATS = "boat,berth,fee\nWave,7,120\nGull,9,85\n"
POSTS = "title,body\nMill,The mill is shut until a new wheel has come from the town.\nLock,\n"


def test_a_table_without_texts_is_one_document_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(BOATS)
    (tmp_path / "b.tsv").write_text(BOATS.replace(",", "\t"))
    told: list[str] = []
    for name in ("a.csv", "b.tsv"):
        assert not holds_many(str(tmp_path / name))
        (found,) = read_documents([str(tmp_path / name)], notify=told.append)
        assert found.text == "boat | berth | fee\nWave | 7 | 120\nGull | 9 | 85"
    assert told[0].startswith(f"{tmp_path / 'a.csv'}: read as one table, as no column holds sentences; ")
    assert told[0].endswith("--document-column NAME reads each row as a document")


def test_a_question_is_asked_of_a_table_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(POSTS)
    told: list[str] = []
    (found,) = read_documents([str(tmp_path / "a.csv")], Reading(about=True), notify=told.append)
    assert found.text.startswith("title | body\nMill | The mill")
    assert told[0].startswith(f"{tmp_path / 'a.csv'}: read as one table, for --about; ")
    named = Reading(about=True, column="body", keep_going=True)
    first, second = read_documents([str(tmp_path / "a.csv")], named, notify=told.append)
    assert (first.text[:8], bool(second.problem), len(told)) == ("The mill", True, 1)


def test_a_question_is_asked_of_each_document_of_a_file_of_documents(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(POSTS.replace("body", "document").replace("Lock,", "Lock,It is open."))
    told: list[str] = []
    found = list(read_documents([str(tmp_path / "a.csv")], Reading(about=True), notify=told.append))
    assert [document.text[:10] for document in found] == ["The mill i", "It is open"]
    assert told == [
        f"{tmp_path / 'a.csv'}: each row is read as a document (column 'document'); --whole-tables reads one table"
    ]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (
            POSTS,
            "no column 'document'.*; --whole-tables reads the file as one document$",
        ),  # perhaps the wrong name
        ("document,fee\nMill,3\n", ""),
        ("boat,berth\n", "is empty, it contains no rows"),
        ("boat,boat\nWave,7\n", "names column 'boat' twice"),
        ('boat,berth\n"Wave,7\n', "never closed"),
    ],
)
def test_other_tables_keep_a_document_for_each_row(tmp_path: Path, content: str, why: str) -> None:
    (tmp_path / "a.csv").write_text(content)
    assert holds_many(str(tmp_path / "a.csv"))
    if why:
        with pytest.raises(UserError, match=why):
            list(read_documents([str(tmp_path / "a.csv")]))
    else:
        assert [document.text for document in read_documents([str(tmp_path / "a.csv")])] == ["Mill"]


def test_a_folder_without_texts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no document in this folder"):
        list(read_documents([str(tmp_path)]))


@pytest.mark.parametrize(
    ("name", "many"),
    [("a.txt", False), ("-", False), ("a.jsonl.gz", True), ("a.CSV", True), ("a.mbox", True), (".", True)],
)
def test_what_may_hold_several_documents(name: str, many: bool) -> None:
    assert holds_many(name) == many


def test_what_a_folder_holds_and_is_not_read_is_named_and_counted(tmp_path: Path) -> None:
    for name in ("a.txt", "b.doc", "c.png", "in/d.txt", "in/e.md", "in/deep/f.txt", ".hidden.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "in" / "again").symlink_to(tmp_path)
    told: list[str] = []
    assert [d.text for d in read_documents([str(tmp_path)], notify=told.append)] == ["a.txt"]
    remedy = "b.doc is a Word document of the old format, not plain text; save it as .docx, or run: soffice "
    assert told[0].startswith(f"{tmp_path}: 3 files not read: b.doc, c.png, in/; {remedy}")
    deep = read_documents([str(tmp_path)], Reading(recursive=True), notify=told.append)
    assert [d.text for d in deep] == ["a.txt", "in/d.txt", "in/e.md", "in/deep/f.txt"]
    assert told[1].startswith(f"{tmp_path}: 3 files not read: b.doc, c.png, in/again/; {remedy}")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.pdf", b"text all the same", "is damaged: "),
        ("a.txt", b"%PDF-1.7 ...", "is damaged: "),
        ("a.txt", b"\xef\xbb\xbf\n<!DOCTYPE html><html>", "contains no text, perhaps because scripts"),
        ("a.docx", b"PK\x03\x04", "is damaged or not a Word document"),
        ("a.txt", b"PK\x03\x04", "is an office file or an archive"),
        ("a.rtf", b"rtf1", "is damaged or not rich text|does not start with"),
        (
            "a.doc",
            b"\xd0\xcf\x11\xe0",
            "is a Word document of the old format.* soffice --headless --convert-to docx",
        ),
        ("a.txt.gz", b"\x1f\x8b\x08", "is a compressed file, not plain text; unpack it first"),
        ("a.eml", b"Ann sings.", "lacks an e-mail header"),
        ("a.odt", b"PK\x03\x04", "is damaged or not an OpenDocument file"),
        ("a.ppt", b"\xd0\xcf\x11\xe0", "is a presentation of the old format.* save it as .pptx"),
        ("a.msg", b"\xd0\xcf\x11\xe0", "is an e-mail of Outlook.* save it as .eml"),
        ("a.pdf", b"", "is empty"),
        ("a", b"\0\1\2", "is not text"),
        ("a.txt", b"\xff\xfeA\0\0", "begins as UTF-16 but is damaged"),
        ("a.txt", b"caf\xe9", "invalid UTF-8 at byte 4 .* iconv"),
    ],
)
def test_what_is_no_plain_text_is_never_read_as_such(
    name: str, content: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=rf"^{tmp_path / name}: ({message})"):
        list(read_documents([str(tmp_path / name)]))
    (kept,) = read_documents([str(tmp_path / name)], Reading(keep_going=True))
    assert kept.problem
    assert not kept.problem.startswith(str(tmp_path))
    if name == "a.txt":
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        with pytest.raises(UserError, match=rf"^standard input: ({message})"):
            list(read_documents(["-"]))


def test_pipes_and_devices_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "endless.txt").symlink_to("/dev/zero")
    for name, kind in (("pipe.txt", "a pipe"), ("endless.txt", "a device")):
        with pytest.raises(UserError, match=f"is {kind}"):
            list(read_documents([str(tmp_path / name)]))


def test_rows_keep_their_id_and_other_columns(tmp_path: Path) -> None:
    file = tmp_path / "rows.tsv"
    file.write_text("id\tdocument\ttitle\n7\tAnn sings.\tChoir\n")
    assert list(read_documents([str(file)])) == [
        Document(f"{file}: 7", "Ann sings.", id="7", row={"title": "Choir"})
    ]


def test_a_bad_row_ends_the_reading_is_left_out_or_is_named(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"document": "one"}\n{"document": 5, "id": "x"}\n[\n')
    with pytest.raises(UserError, match=r"line 2: .* --skip-bad, or continue with --keep-going"):
        list(read_documents([str(file)]))
    found = list(read_documents([str(file)], Reading(keep_going=True)))
    assert [bool(document.problem) for document in found] == [False, True, True]
    assert found[1].row == {}
    (tmp_path / "other.jsonl").write_text('{"text": "one"}\n')
    with pytest.raises(UserError, match="--document-column"):
        list(read_documents([str(tmp_path / "other.jsonl")], Reading(keep_going=True)))


def test_the_first_document_is_read_before_anything_else_is_done(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xff")
    with pytest.raises(UserError, match="UTF-8"):
        with_first(read_documents([str(tmp_path / "a.txt")]))
    texts = (Document(str(number), "x") for number in range(3))
    assert [document.name for document in with_first(texts)] == ["0", "1", "2"]
