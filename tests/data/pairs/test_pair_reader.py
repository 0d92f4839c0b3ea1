"""Reading pairs: every format gives the same pairs, every bad input one line: what, where, how to mend it."""

import bz2
import contextlib
import csv
import gzip
import json
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precis.data.pairs.pair import Columns, Pair
from precis.data.pairs.pair_reader import ReadReport, available_splits, merge_repeated, read_pairs
from precis_text.errors import UserError

ROWS: list[dict[str, Any]] = [
    {"id": "r1", "document": "Ada: The ferry is late.\nBruno: I see.", "summary": "The ferry is late."},
    {"id": "r2", "document": 'A "quoted" word, a comma; žluťoučký 港 🙂', "summary": "Odd characters."},
    {
        "id": "r3",
        "document": "Three texts describe this.",
        "summary": "First.",
        "summaries": ["First.", "Second.", "Third."],
    },
]
PAIRS = [
    Pair(
        document=row["document"],
        summary=row["summary"],
        references=tuple(row.get("summaries", ())),
        id=row["id"],
    )
    for row in ROWS
]


def lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def write_csv(path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "document", "summary", "summaries"])
        for row in ROWS:
            more = json.dumps(row["summaries"]) if "summaries" in row else ""
            writer.writerow([row["id"], row["document"], row["summary"], more])


def write_parquet(path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([{"summaries": None, **row} for row in ROWS[::-1]][::-1]), path)


WRITERS: dict[str, Callable[[Path], Any]] = {
    "a.jsonl": lambda path: path.write_bytes(lines(ROWS)),
    "a.json": lambda path: path.write_bytes(lines(ROWS)),
    "a.jsonl.gz": lambda path: path.write_bytes(gzip.compress(lines(ROWS))),
    "a.jsonl.xz": lambda path: path.write_bytes(lzma.compress(lines(ROWS))),
    "a.csv": write_csv,
    "a.parquet": write_parquet,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_pairs(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    report = ReadReport()
    assert list(read_pairs(tmp_path / name, report=report)) == PAIRS
    assert (report.rows, report.kept, report.skipped_count) == (3, 3, 0)


def test_compressed_csv_is_read(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    assert list(read_pairs(tmp_path / "b.csv.gz")) == PAIRS


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_the_data(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    plain = (tmp_path / name).read_bytes().replace(b"\r\n", b"\n")
    separated = plain.replace(b"late.\nBruno", b"late.@@Bruno").replace(b"\n", b"\r\n")
    (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + separated.replace(b"late.@@Bruno", b"late.\nBruno"))
    assert list(read_pairs(tmp_path / name)) == PAIRS


def test_blank_lines_are_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n" + lines(ROWS[:1]) + b"\n  \n" + lines(ROWS[1:]) + b"\n\n")
    assert list(read_pairs(path)) == PAIRS


def test_split_files_of_a_folder_are_chosen_by_split(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl.gz").write_bytes(gzip.compress(lines(ROWS[:1])))
    (tmp_path / "validation.jsonl").write_bytes(lines(ROWS[1:2]))
    (tmp_path / "test.jsonl.xz").write_bytes(lzma.compress(lines(ROWS[2:])))
    (tmp_path / "extra.jsonl").write_bytes(lines(ROWS))
    for split, expected in {
        "train": PAIRS[:1],
        "dev": PAIRS[1:2],
        "validation": PAIRS[1:2],
        "test": PAIRS[2:],
    }.items():
        assert list(read_pairs(tmp_path, split=split)) == expected
    assert list(read_pairs(tmp_path, split="extra")) == PAIRS
    assert list(available_splits(tmp_path)) == ["train", "dev", "test"]


def test_a_folder_of_texts_gives_a_pair_a_file(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("Second text.")
    (tmp_path / "a.txt").write_text("\ufeffFirst text.\n")
    (tmp_path / "a.summary.txt").write_text("First.\n")
    documents = list(read_pairs(tmp_path, need_summary=False))
    assert documents == [Pair("First text.\n", "First.", id="a"), Pair("Second text.", "", id="b")]
    with pytest.raises(UserError, match=r"b\.txt: no column 'summary'|b\.txt: the summary"):
        list(read_pairs(tmp_path))


def test_columns_can_be_renamed_and_lists_joined(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines([{"source": ["One.", "Two."], "target": ["Best.", "Other."], "key": 7}]))
    columns = Columns(document="source", summary="target", references=None, id="key", join=" ")
    assert list(read_pairs(path, columns=columns)) == [Pair("One. Two.", "Best.", ("Best.", "Other."), "7")]


def test_references_serve_as_summary_where_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines([{"document": "d", "summaries": ["one", "two"]}]))
    assert list(read_pairs(path)) == [Pair("d", "one", ("one", "two"))]


def test_all_references_falls_back_on_the_summary() -> None:
    assert Pair("d", "s").all_references == ("s",)
    assert Pair("d", "s", ("s", "t")).all_references == ("s", "t")


def test_repeated_documents_are_merged_with_all_their_references() -> None:
    pairs = [Pair("a", "1", id="x"), Pair("a", "2"), Pair("b", "3"), Pair("a", "4")]
    assert list(merge_repeated(pairs)) == [Pair("a", "1", ("1", "2"), "x"), Pair("b", "3"), Pair("a", "4")]


def test_limit_counts_pairs_and_stops_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(ROWS[:2]) + b"broken")
    assert list(read_pairs(path, limit=2)) == PAIRS[:2]


# Bad rows: (bytes of the row, what the message says)
BAD_ROWS = {
    "invalid json": (b'{"document": "x"', "invalid JSON"),
    "not an object": (b'["a", "b"]', "not a JSON object but an array"),
    "a number": (b"12", "not a JSON object but a number"),
    "invalid utf-8": (b'{"document": "caf\xe9", "summary": "s"}', "invalid UTF-8 (byte 0xE9 at byte 18"),
    "lone surrogate": (b'{"document": "\\ud800", "summary": "s"}', "lone surrogate U+D800"),
    "raw nul byte": (b'{"document": "a\x00b", "summary": "s"}', "invalid JSON"),
    "empty document": (b'{"document": " ", "summary": "s"}', "the document (column 'document') is empty"),
    "null document": (b'{"document": null, "summary": "s"}', "the document (column 'document') is empty"),
    "empty summary": (b'{"document": "d", "summary": ""}', "the summary (column 'summary') is empty"),
    "document of wrong type": (b'{"document": 3, "summary": "s"}', "'document' must hold text, not a number"),
    "document is a list": (b'{"document": ["d"], "summary": "s"}', "'document' must hold text, not a list"),
    "references no list": (
        b'{"document": "d", "summary": "s", "summaries": 1}',
        "'summaries' must hold a list",
    ),
    "reference of wrong type": (b'{"document": "d", "summary": "s", "summaries": [1]}', "must hold text"),
    "no summary column": (b'{"document": "d", "title": "t"}', "the columns are 'document', 'title'"),
    "deep nesting": (b"[" * 200_000, "invalid JSON"),
}


@pytest.mark.parametrize(("row", "says"), BAD_ROWS.values(), ids=list(BAD_ROWS))
def test_a_bad_row_is_named_with_file_and_line_or_skipped(tmp_path: Path, row: bytes, says: str) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(lines(ROWS[:1]) + row + b"\n" + lines(ROWS[1:]))
    with pytest.raises(UserError) as caught:
        list(read_pairs(path))
    message = str(caught.value)
    assert message.startswith(f"{path}: line 2: ")
    assert says in message
    assert "--skip-bad" in message
    assert "\n" not in message
    report = ReadReport()
    assert list(read_pairs(path, skip_bad=True, report=report)) == PAIRS
    assert (report.rows, report.kept, report.skipped_count) == (4, 3, 1)
    assert report.empty_documents == ("the document" in says)
    assert len(report.skipped) == 1
    assert says in report.skipped[0]


def test_only_the_first_twenty_skipped_rows_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"broken\n" * 50 + lines(ROWS))
    report = ReadReport()
    assert list(read_pairs(path, skip_bad=True, report=report)) == PAIRS
    assert (len(report.skipped), report.skipped_count, report.rows) == (20, 50, 53)


BAD_FILES: dict[str, tuple[str, bytes, str]] = {
    "empty": ("a.jsonl", b"", "is empty, it contains no rows"),
    "blank": ("a.jsonl", b"\n \n", "is empty, it contains no rows"),
    "csv with a header alone": ("a.csv", b"document,summary\n", "is empty, it contains no rows"),
    "empty gz": ("a.jsonl.gz", b"", "is empty, it contains no rows"),
    "truncated gz": ("a.jsonl.gz", gzip.compress(lines(ROWS))[:-20], "truncated or damaged after line"),
    "truncated xz": ("a.jsonl.xz", lzma.compress(lines(ROWS))[:-20], "truncated or damaged after line"),
    "no gz at all": ("a.jsonl.gz", lines(ROWS), "truncated or damaged after line 0"),
    "no xz at all": ("a.jsonl.xz", lines(ROWS), "truncated or damaged after line 0"),
    "no parquet at all": ("a.parquet", lines(ROWS), "damaged or not Parquet"),
    "empty parquet": ("a.parquet", b"", "damaged or not Parquet"),
    "utf-16": ("a.jsonl", lines(ROWS).decode().encode("utf-16"), "is UTF-16"),
    "a json array that is cut off": ("a.json", json.dumps(ROWS).encode()[:-1], "is not valid JSON"),
    "an empty json array": ("a.json", b"[]", "is empty, it contains no rows"),
    "wrong columns": ("a.jsonl", lines([{"text": "x", "title": "y"}]), "the columns are 'text', 'title'"),
    "wrong columns in csv": ("a.csv", b"text,title\nx,y\n", "--document-column text"),
    "a header that repeats": ("a.csv", b"document,document\nx,y\n", "names column 'document' twice"),
    "unknown ending": ("a.docx", b"x", "unknown file extension"),
    "other compression": ("a.jsonl.bz2", bz2.compress(lines(ROWS)), "unknown file extension"),
}


@pytest.mark.parametrize(("name", "content", "says"), BAD_FILES.values(), ids=list(BAD_FILES))
@pytest.mark.parametrize("skip_bad", [False, True])
def test_a_file_that_is_bad_as_a_whole_is_one_line(
    tmp_path: Path, name: str, content: bytes, says: str, skip_bad: bool
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        list(read_pairs(path, skip_bad=skip_bad))
    message = str(caught.value)
    assert message.startswith(str(path))
    assert says in message
    assert "\n" not in message


def test_wrong_columns_are_not_called_a_bad_row(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines([{"text": "x", "title": "y"}]))
    with pytest.raises(UserError) as caught:
        list(read_pairs(path))
    assert "--skip-bad" not in str(caught.value)


def test_a_damaged_parquet_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_parquet(path)
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56
    path.write_bytes(content)
    with pytest.raises(UserError, match="damaged or not Parquet") as caught:
        list(read_pairs(path))
    assert "\n" not in str(caught.value)


def test_text_in_parquet_that_is_not_utf8_is_a_bad_row(tmp_path: Path) -> None:
    documents = pa.array([b"good", b"caf\xe9", b"fine"]).view(pa.string())
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"document": documents, "summary": ["1", "2", "3"]}), path)
    with pytest.raises(UserError, match="row 2: column 'document': invalid UTF-8"):
        list(read_pairs(path))
    assert [pair.summary for pair in read_pairs(path, skip_bad=True)] == ["1", "3"]


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path / "none"):
        with pytest.raises(UserError, match=f"^{path}: no such file$"):
            list(read_pairs(path))
    with pytest.raises(UserError, match=r"contains nothing to read; looked for \*\.txt and for train"):
        list(read_pairs(tmp_path))
    (tmp_path / "train.jsonl").write_bytes(lines(ROWS))
    with pytest.raises(UserError, match=r"no split 'test'; it has train"):
        list(read_pairs(tmp_path, split="test"))
    with pytest.raises(UserError, match="name the split to read: train"):
        list(read_pairs(tmp_path))
    with pytest.raises(UserError, match="is one file, without a split 'dev'"):
        list(read_pairs(tmp_path / "train.jsonl", split="dev"))


def test_a_summary_file_without_its_document_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "b.summary.txt").write_text("summary")
    with pytest.raises(UserError, match=r"b\.summary\.txt: a summary without its document; add b\.txt"):
        list(read_pairs(tmp_path, need_summary=False))


def test_csv_rows_are_named_by_the_line_they_begin_on(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'document,summary\n"two\nlines",s\nx\n"caf\xe9",s\nfine,s\n')
    report = ReadReport()
    assert [pair.document for pair in read_pairs(path, skip_bad=True, report=report)] == [
        "two\nlines",
        "fine",
    ]
    assert f"{path}: line 4: 1 field where the header has 2" in report.skipped[0]
    assert f"{path}: line 5: column 'document': invalid UTF-8 (byte 0xE9" in report.skipped[1]


def test_an_unclosed_quotation_mark_in_csv_is_named_where_it_opens(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'document,summary\ngood,s\n"never closed,s\nx,y\n')
    with pytest.raises(UserError, match=r"line 3: invalid CSV .a quotation mark is opened here and never"):
        list(read_pairs(path))
    assert [pair.document for pair in read_pairs(path, skip_bad=True)] == ["good"]


def test_long_csv_fields_are_read_and_the_global_limit_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("document,summary\n" + "word " * 100_000 + ",s\n")
    before = csv.field_size_limit()
    reading = read_pairs(path)
    assert len(next(reading).document) == 500_000
    assert csv.field_size_limit() == before


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_line_of_ten_megabytes_is_read(tmp_path: Path, name: str) -> None:
    content = lines([{"document": "word " * 2_000_000, "summary": "long"}])
    (tmp_path / name).write_bytes(gzip.compress(content, 1) if name.endswith("gz") else content)
    assert [len(pair.document) for pair in read_pairs(tmp_path / name)] == [10_000_000]


def test_files_are_streamed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(lines([{"document": "word " * 2000, "summary": "s"}]) * 2000, 1))  # 20 MB
    tracemalloc.start()
    assert sum(1 for _ in read_pairs(path)) == 2000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


@settings(max_examples=60, deadline=None)
@given(
    content=st.binary(max_size=300),
    name=st.sampled_from(["a.jsonl", "a.csv", "a.jsonl.gz", "a.jsonl.xz", "a.parquet"]),
)
def test_no_bytes_whatever_raise_anything_but_a_user_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / name
    path.write_bytes(content)
    for skip_bad in (False, True):
        with contextlib.suppress(UserError):
            list(read_pairs(path, skip_bad=skip_bad))
