"""Claims about reading unlabelled text: every kind of file, in a stated order, with bad rows named."""

import gzip
import subprocess
from pathlib import Path

import pytest

from precis.data.packs.text_sources import TextReport, read_texts, text_files
from precis.storage.seal import write_folder
from precis_text.errors import UserError


def test_files_of_every_kind_are_read_in_order(tmp_path: Path) -> None:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    (tmp_path / "a.txt").write_text("A text file.\nIs one document.")
    (tmp_path / "a.summary.txt").write_text("not a document")
    with gzip.open(tmp_path / "b.jsonl.gz", "wt") as file:
        file.write('{"text": "zipped"}\n{"text": "  "}\n')
    parquet.write_table(arrow.table({"text": ["a row"]}), tmp_path / "c.parquet")
    (tmp_path / "d.csv").write_text("text,other\ncomma,1\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "e.txt").write_text("below")
    report = TextReport()
    found = list(read_texts(text_files([tmp_path]), report=report))
    assert found == ["A text file.\nIs one document.", "zipped", "a row", "comma", "below"]
    assert report.empty == 1


def test_a_pattern_gives_its_files_sorted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["b.txt", "a.txt", "sub/c.txt", "other.jsonl"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert text_files([f"{tmp_path}/*.txt"]) == [tmp_path / "a.txt", tmp_path / "b.txt"]
    monkeypatch.chdir(tmp_path)
    assert text_files(["**/*.txt"]) == [Path("a.txt"), Path("b.txt"), Path("sub/c.txt")]
    with pytest.raises(UserError, match=r"\*\.csv: no file matches this pattern"):
        text_files(["*.csv"])
    (tmp_path / "odd[1].txt").write_text("x")
    assert text_files(["odd[1].txt"]) == [Path("odd[1].txt")]


def test_sources_that_cannot_be_meant_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "a.pdf").write_text("x")
    (tmp_path / "empty").mkdir()
    for sources, message in (
        ([tmp_path / "none.txt"], "none.txt: no such file or folder"),
        ([tmp_path / "a.pdf"], "a.pdf: unknown kind of file; known endings: .txt, .jsonl"),
        ([tmp_path / "empty"], "empty: contains no readable file"),
        ([tmp_path, tmp_path / "a.txt"], "a.txt: is named twice"),
    ):
        with pytest.raises(UserError) as caught:
            text_files(sources)
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("{", "line 2: invalid JSON"),
        (
            '{"body": "x"}',
            "line 2: no column 'text' for the document; the columns are 'body'; did you mean 'body'? Use "
            "--document-column body",
        ),
        ('{"text": null}', "line 2: column 'text' must hold text, not null"),
        ('{"text": 3}', "line 2: column 'text' must hold text, not a number"),
        ('{"text": "\\ud800"}', "line 2: column 'text': invalid Unicode"),
    ],
)
def test_a_bad_row_stops_and_is_named_or_is_passed_over(tmp_path: Path, row: str, problem: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"text": "good"}}\n{row}\n{{"text": "too"}}\n')
    with pytest.raises(UserError) as caught:
        list(read_texts([path]))
    assert problem in str(caught.value)
    assert str(path) in str(caught.value)
    assert ("--skip-bad" in str(caught.value)) != ("--document-column" in str(caught.value))
    report = TextReport()
    assert list(read_texts([path], skip_bad=True, report=report)) == ["good", "too"]
    assert report.skipped_count == len(report.skipped) == 1


def test_a_text_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"ok\xff")
    with pytest.raises(UserError, match=r"a\.txt: invalid UTF-8 at byte 3"):
        list(read_texts([tmp_path / "a.txt"]))


def test_a_report_counts_every_bad_row_and_keeps_the_first(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("{\n" * 500)
    report = TextReport()
    assert list(read_texts([path], skip_bad=True, report=report)) == []
    assert (report.skipped_count, len(report.skipped)) == (500, 20)
    assert "line 1: " in report.skipped[0]


def test_files_of_a_folder_that_are_not_read_are_counted(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("a.txt", "a.summary.txt", "b.pdf", "deep/c.docx", "deep/d.tsv"):
        (tmp_path / name).write_text("text\nx\n")
    report = TextReport()
    assert [path.name for path in text_files([tmp_path], report=report)] == ["a.txt", "d.tsv"]
    assert report.told_unread() == "3 files not read: a.summary.txt, b.pdf, deep/c.docx"


def test_the_seal_of_a_folder_that_precis_wrote_is_no_text(tmp_path: Path) -> None:
    write_folder(tmp_path / "texts", lambda place: (place / "a.jsonl").write_text('{"text": "Ann sings."}\n'))
    assert text_files([tmp_path / "texts"]) == [tmp_path / "texts" / "a.jsonl"]


@pytest.mark.long
def test_folders_of_any_depth_are_searched_and_links_in_a_circle_are_named(tmp_path: Path) -> None:
    deep = tmp_path / "x"
    deep = deep.joinpath(*["d"] * 1_100)
    here = tmp_path / "x"
    here.mkdir()
    for _ in range(1_100):
        here = here / "d"
        here.mkdir()
    (here / "a.txt").write_text("text")
    try:
        assert text_files([tmp_path / "x"]) == [deep / "a.txt"]
    finally:  # too deep for Python's own way of removing
        subprocess.run(["rm", "-rf", str(tmp_path / "x")], check=True)
    loop = tmp_path / "loop"
    loop.mkdir()
    (loop / "up").symlink_to(loop)
    (loop / "a.txt").write_text("text")
    assert text_files([loop]) == [loop / "a.txt"]
    (loop / "b.txt").symlink_to("b.txt")
    with pytest.raises(UserError, match=r"b\.txt: cannot be read: Too many levels"):
        text_files([loop])
