"""Data sets in the forms that other programs write: parallel files, JSON arrays, Excel's separators."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from precis.data.pairs.pair_reader import ReadReport, available_splits, read_pairs
from precis.data.rows import row_files
from precis.data.rows.row_files import read_rows
from precis.phases.use.input_documents import Reading, read_documents
from precis_text.errors import UserError

ROWS = [{"document": f"Ann sings in hall {n}.", "summary": f"Ann {n}."} for n in range(3)]


@pytest.mark.parametrize("endings", [(".source", ".target"), (".src", ".tgt"), (".source.gz", ".target")])
def test_two_files_with_a_text_in_each_line_are_pairs(tmp_path: Path, endings: tuple[str, str]) -> None:
    for split in ("train", "val"):
        texts = ["\n".join(row[side] for row in ROWS).encode() for side in ("document", "summary")]
        for ending, text in zip(endings, texts, strict=True):
            packed = gzip.compress(text) if ending.endswith(".gz") else text
            (tmp_path / f"{split}{ending}").write_bytes(packed)
    report = ReadReport()
    found = list(read_pairs(tmp_path, split="dev", report=report))
    assert [(pair.document, pair.summary) for pair in found] == [
        (row["document"], row["summary"]) for row in ROWS
    ]
    assert list(available_splits(tmp_path)) == ["train", "dev"]
    assert not report.unread


def test_files_of_different_lengths_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.source").write_text("One.\nTwo.\n")
    (tmp_path / "a.target").write_text("1\n")
    with pytest.raises(UserError, match=r"a\.source: line 2 lacks its partner: a\.target has 1 lines"):
        list(read_pairs(tmp_path / "a.source"))
    (tmp_path / "a.target").write_text("1\n2\n3\n")
    with pytest.raises(UserError, match=r"a\.target: line 3 lacks its partner: a\.source has 2 lines"):
        list(read_pairs(tmp_path / "a.source"))


def test_a_file_of_documents_alone_is_summarized_and_a_bad_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "test.source").write_bytes(b"One.\n\xff\nThree.\n")
    found = list(read_documents([str(tmp_path / "test.source")], Reading(keep_going=True)))
    assert [document.text for document in found] == ["One.", "", "Three."]
    assert "invalid UTF-8 (the document has byte 0xFF at byte 1" in found[1].problem


@pytest.mark.parametrize("indent", [None, 1])
def test_a_json_array_is_rows(tmp_path: Path, indent: int | None) -> None:
    (tmp_path / "a.json").write_text(json.dumps([*ROWS, 3], indent=indent))
    rows = list(read_rows(tmp_path / "a.json"))
    assert [row.values for row in rows[:-1]] == ROWS
    assert (rows[-1].place, rows[-1].problem) == ("item 4", "not a JSON object but a number")


def test_a_json_array_above_the_limit_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_files, "MAX_BYTES", 100)
    (tmp_path / "a.json").write_text(json.dumps(ROWS, indent=1))
    with pytest.raises(
        UserError, match=r"is a JSON array of more than 100 bytes, the limit; write one object per line"
    ):
        list(read_rows(tmp_path / "a.json"))


@pytest.mark.parametrize("content", [b'[{"text": "Ann."}]', b"[nonsense", b"\x1f\x8bnonsense"])
def test_a_file_of_rows_that_cannot_be_read_does_not_end_a_run_that_keeps_going(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "a.json").write_bytes(content)
    (tmp_path / "b.txt").write_text("Ann sings.")
    files = [str(tmp_path / "a.json"), str(tmp_path / "b.txt")]
    found = list(read_documents(files, Reading(keep_going=True)))
    assert found[0].problem
    assert found[-1].text == "Ann sings."
    with pytest.raises(UserError):
        list(read_documents(files))


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;", "\ufeffsep=;"])
def test_excels_first_line_names_the_separator(tmp_path: Path, first: str) -> None:
    lines = [first, "document;summary", "Ann sings, Bob listens.;Ann, Bob."]
    (tmp_path / "a.csv").write_text("\r\n".join(lines) + "\r\n", encoding="utf-8")
    row = next(read_rows(tmp_path / "a.csv"))
    assert row.values == {"document": "Ann sings, Bob listens.", "summary": "Ann, Bob."}
    assert row.place == "line 3"


def test_a_separator_that_the_header_would_not_show_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("sep=|\ndocument|summary\nAnn; Bob, Cem.|A\n")
    assert next(read_rows(tmp_path / "a.csv")).values["document"] == "Ann; Bob, Cem."
