"""Rows within bounds: bombs end at once, and what is odd in a row is the problem of that row alone."""

import datetime
import gzip
import json
import lzma
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precis.data.pairs.pair import Columns
from precis.data.pairs.pair_reader import ReadReport, read_pairs
from precis.data.rows import row_files as rows
from precis_text import text_lines
from precis_text.errors import UserError
from precis_text.row import plain

ROW = b'{"document": "a b c", "summary": "a"}\n'


def refused(path: Path, *, skip_bad: bool = True, **options: Any) -> str:
    with pytest.raises(UserError) as caught:
        list(read_pairs(path, skip_bad=skip_bad, **options))
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv.gz", "a.tsv.xz", "a.jsonl.xz"])
@pytest.mark.parametrize("piece", [b"\n", b"x", ROW], ids=["blank lines", "one line", "rows"])
def test_an_archive_that_grows_beyond_text_is_refused_before_its_rows(
    name: str, piece: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_lines, "FREE", 100_000)
    packed = gzip.compress if name.endswith("gz") else lzma.compress
    (tmp_path / name).write_bytes(packed(piece * (2_000_000 // len(piece))))
    assert "bytes decompress to more than" in refused(tmp_path / name)


def test_an_archive_that_swells_later_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import random

    monkeypatch.setattr(text_lines, "FREE", 100_000)
    monkeypatch.setattr(text_lines, "_AHEAD", 1_000)
    rng = random.Random(0)
    rows = [{"document": "".join(rng.choices("abcdefgh ", k=400)), "summary": "s"} for _ in range(2_000)]
    path = tmp_path / "a.jsonl.gz"
    whole = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    path.write_bytes(gzip.compress(whole))
    assert len(list(read_pairs(path))) == 2_000
    path.write_bytes(gzip.compress(whole) + gzip.compress(b"x" * 5_000_000))
    reading = read_pairs(path)
    assert len([next(reading) for _ in range(2_000)]) == 2_000
    with pytest.raises(UserError, match="decompress to more than"):
        next(reading)


def test_an_archive_that_asks_for_much_memory_is_refused(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 400 << 20}]
    try:
        content = lzma.compress(ROW, filters=filters)
    except MemoryError:
        pytest.skip("not enough memory to make one")
    (tmp_path / "a.jsonl.xz").write_bytes(content)
    assert "needs more than 256 MiB of memory" in refused(tmp_path / "a.jsonl.xz")


def test_a_long_line_and_a_long_record_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (text_lines, rows):
        monkeypatch.setattr(module, "MAX_LINE", 300_000)
    path = tmp_path / "a.jsonl"
    path.write_bytes(ROW + b"x" * 1_000_000)
    assert "line 2 is longer than" in refused(path)
    path = tmp_path / "a.csv"
    path.write_bytes(b'document,summary\nd,s\n"' + b"x y\n" * 200_000)
    assert "the record that starts at line 3 exceeds the limit" in refused(path)


def test_streams_of_an_archive_follow_one_another(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.xz"
    path.write_bytes(lzma.compress(ROW) + b"\0" * 8 + lzma.compress(ROW))
    assert len(list(read_pairs(path))) == 2


def test_a_parquet_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_lines, "FREE", 1_000_000)
    path = tmp_path / "page.parquet"
    table = pa.table({"document": ["a" * 20_000_000], "summary": ["s"]})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    assert "row group 1:" in refused(path)
    path = tmp_path / "rows.parquet"
    column = pa.array(["words"] * 100_000)
    pq.write_table(pa.table({"document": column, "summary": column}), path)
    assert "100,000 rows in" in refused(path)
    path = tmp_path / "footer.parquet"
    length = 20 << 20
    path.write_bytes(b"PAR1" + b"\x19" * length + length.to_bytes(4, "little") + b"PAR1")
    assert "its footer is larger than the limit of 16 MiB" in refused(path)


ODD: dict[str, tuple[bytes, str]] = {
    "surrogate in id": (b'"id": "\\ud800"', "column 'id': invalid Unicode (lone surrogate U+D800"),
    "id is a list": (b'"id": [1]', "column 'id' must hold a name or a number, not a list"),
    "doubled key": (b'"document": "d"', "has the key 'document' twice"),
    "brackets in summaries": (
        b'"summaries": "' + b"[" * 100_000 + b'"',
        "'summaries' must hold a list of texts",
    ),
    "long number": (b'"n": ' + b"9" * 5_000, "an integer of more than 4,300 digits"),
    "deep column": (b'"x": ' + b"[" * 150 + b"]" * 150, "nested deeper than 100 levels"),
}


@pytest.mark.parametrize(("part", "says"), ODD.values(), ids=list(ODD))
def test_what_is_odd_is_the_problem_of_its_row(part: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(ROW + b'{"document": "d", "summary": "s", ' + part + b"}\n" + ROW)
    message = refused(path, skip_bad=False)
    assert "line 2: " in message
    assert says in message
    assert len(list(read_pairs(path, skip_bad=True))) == 2


def test_a_date_that_cannot_be_is_a_problem_only_where_its_column_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    days = pa.array([0, 10_000_000], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"document": ["a", "b"], "summary": ["s", "t"], "day": days}), path)
    assert [pair.document for pair in read_pairs(path)] == ["a", "b"]
    message = refused(path, skip_bad=False, columns=Columns(document="day"))
    assert "row 1: column 'day' must hold text, not a date or time" in message
    assert [pair.id for pair in read_pairs(path, columns=Columns(id="day"), skip_bad=True)] == ["1970-01-01"]


def test_every_value_of_a_row_can_be_written_as_json() -> None:
    values = {
        "a": "\ud800",
        "b": float("nan"),
        "c": datetime.date(2001, 2, 3),
        "d": b"x",
        "e": [1, {"f": None}],
    }
    written = json.dumps(plain(values), allow_nan=False, ensure_ascii=False).encode()
    assert json.loads(written) == {
        "a": "\\ud800",
        "b": None,
        "c": "2001-02-03",
        "d": "b'x'",
        "e": [1, {"f": None}],
    }


@pytest.mark.parametrize(
    ("name", "separator"), [("a.csv", ";"), ("a.csv", "\t"), ("a.tsv", "\t"), ("a.csv", ",")]
)
def test_a_header_says_what_separates_its_columns(name: str, separator: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(
        f'id{separator}document{separator}summary\n1{separator}"One, two; three.\tFour"{separator}s\n'
    )
    assert [(pair.id, pair.document) for pair in read_pairs(path)] == [("1", "One, two; three.\tFour")]


HINTS: list[tuple[dict[str, str], str]] = [
    ({"Document": "d", "summary": "s"}, "did you mean 'Document'? Use --document-column Document"),
    ({"article": "d", "highlights": "s"}, "did you mean 'article'? Use --document-column article"),
    ({"document": "d", "highlights": "s"}, "did you mean 'highlights'? Use --summary-column highlights"),
    ({"My Text": "d"}, "name one with --document-column NAME"),
    ({"The mill is shut until a new wheel has come.": "d"}, "the first row must name the columns"),
    ({"document": "d", "summaries": []}, "the summary (column 'summary') is empty"),  # type: ignore[dict-item]
]


@pytest.mark.parametrize(("row", "says"), HINTS)
def test_a_missing_column_comes_with_the_one_that_is_meant(
    row: dict[str, str], says: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row))
    assert says in refused(path)


OTHER_ENCODINGS: dict[str, tuple[Callable[[str], bytes], str]] = {
    "windows-1252": (lambda text: text.encode("windows-1252"), "iconv -f windows-1252 -t utf-8"),
    "utf-16": (lambda text: text.encode("utf-16"), "iconv -f utf-16 -t utf-8"),
    "utf-16le": (lambda text: text.encode("utf-16-le"), "perhaps UTF-16"),
}


@pytest.mark.parametrize(("encode", "says"), OTHER_ENCODINGS.values(), ids=list(OTHER_ENCODINGS))
def test_another_encoding_comes_with_the_command_that_mends_it(
    encode: Callable[[str], bytes], says: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    text = "document,summary\ncaf\xe9 \u2013 5 \u20ac,\u201cs\u201d\n"
    path.write_bytes(encode(text))
    message = refused(path)
    assert says in message
    if named := re.search("iconv -f ([^ ]+) -t utf-8", message):
        assert encode(text).decode(named[1]) == text


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            '{"document": "d", "summary": "s"},',
            "invalid JSON (Extra data: column 34 (char 33); remove the comma",
        ),
        ('{"document": "d", "summary": "s",}', "column 34 (char 33); remove the comma there)"),
        ('[{"document": "d", "summary": "s"},]', "remove the comma there"),
        ('{"document": "d", summary: "s"}', "column 19 (char 18))"),
    ],
)
def test_a_comma_too_many_comes_with_the_way_to_mend_it(content: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(content)
    assert says in refused(path)


def test_many_columns_are_not_all_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(",".join(f"c{number}" for number in range(5_000)) + "\n" + ",".join("x" * 5_000) + "\n")
    assert "and 4,988 more" in refused(path)
    assert len(refused(path)) < 500


def test_a_folder_says_what_was_not_read(tmp_path: Path) -> None:
    for name in ("a.txt", "a.summary.txt", "b.pdf", ".hidden"):
        (tmp_path / name).write_text("text")
    (tmp_path / "more").mkdir()
    report = ReadReport()
    assert len(list(read_pairs(tmp_path, report=report))) == 1
    assert report.told_unread() == "2 files not read: b.pdf, more/"
    splits = tmp_path / "more"
    for name in ("train.jsonl", "train.csv", "dev.jsonl", "notes.md"):
        (splits / name).write_bytes(ROW)
    report = ReadReport()
    list(read_pairs(splits, split="train", report=report))
    assert (report.unread, report.unread_count) == (["notes.md", "train.csv"], 2)


def test_a_pipe_in_a_folder_of_texts_is_named_and_nothing_waits(tmp_path: Path) -> None:
    import os

    (tmp_path / "a.txt").write_text("text")
    os.mkfifo(tmp_path / "pipe.txt")
    message = refused(tmp_path, skip_bad=False, need_summary=False)
    assert "pipe.txt: is a pipe, not a regular file" in message
