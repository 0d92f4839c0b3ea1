"""A journal keeps each appended line, resumes after any cut, and notices what others do to its file."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from precis.storage.journal import Journal, JournalFormat, LongRecordError, is_journal, read_journal
from precis_text.bounded_io import MAX_DEPTH
from precis_text.errors import RunError, UserError

KIND = JournalFormat(name="precis-test-1", remedy="delete it")
DURABLE = JournalFormat(name="precis-test-1", remedy="delete it", durable=True)
MADE_BY = {"model": "m", "settings": {"beams": 4}}


def opened(path: Path, found: list[dict[str, Any]] | None = None, kind: JournalFormat = KIND) -> Journal:
    seen = [] if found is None else found
    return Journal(path, kind, made_by=MADE_BY, replay=lambda _, record: seen.append(record))


def filled(path: Path, count: int) -> list[dict[str, Any]]:
    """Append up to `count` records; return those that were there."""
    found: list[dict[str, Any]] = []
    with opened(path, found) as journal:
        for number in range(journal.count, count):
            journal.append({"number": number, "text": "ü\n\"}'" * number})
    return found


@pytest.mark.parametrize("kind", [KIND, DURABLE])
def test_what_is_appended_is_there_at_once_and_read_again(tmp_path: Path, kind: JournalFormat) -> None:
    path = tmp_path / "new" / "j"
    with opened(path, kind=kind) as journal:
        for number in range(3):
            journal.append({"number": number})
            assert [record["number"] for _, record in read_journal(path, kind)] == [*range(number + 1)]
        assert list(journal.records()) == [{"number": number} for number in range(3)]
    assert json.loads(path.read_text().splitlines()[0])["made_by"] == MADE_BY
    assert [one.name for one in path.parent.iterdir()] == ["j"]


def test_people_can_read_the_letters_of_a_journal(tmp_path: Path) -> None:
    filled(tmp_path / "j", 2)
    assert "ü" in (tmp_path / "j").read_text("utf-8")


def test_a_file_cut_at_any_byte_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "j"
    filled(path, 3)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert len(filled(path, 3)) == max(0, whole[:size].count(b"\n") - 1)
        assert path.read_bytes() == whole, size


def test_any_changed_bit_is_found(tmp_path: Path) -> None:
    path = tmp_path / "j"
    filled(path, 3)
    whole = path.read_bytes()
    draw = random.Random(0)
    for place in draw.sample(range(8 * len(whole) - 8), 400):
        broken = bytearray(whole)
        broken[place // 8] ^= 1 << place % 8
        path.write_bytes(broken)
        with pytest.raises(UserError, match=r"j, line \d: .*; delete it$"):
            opened(path)
        assert path.read_bytes() == broken


@pytest.mark.parametrize("change", ["removed", "exchanged", "repeated"])
def test_a_line_in_another_place_is_found(tmp_path: Path, change: str) -> None:
    path = tmp_path / "j"
    filled(path, 4)
    lines = path.read_bytes().splitlines(keepends=True)
    if change == "removed":
        del lines[2]
    elif change == "exchanged":
        lines[2], lines[3] = lines[3], lines[2]
    else:
        lines.insert(2, lines[2])
    path.write_bytes(b"".join(lines))
    line = 4 if change == "repeated" else 3
    with pytest.raises(
        UserError, match=f"line {line}: has changed since it was written, or an earlier line is"
    ):
        list(read_journal(path, KIND))


def test_other_values_are_refused_by_name(tmp_path: Path) -> None:
    filled(tmp_path / "j", 2)
    whole = (tmp_path / "j").read_bytes()
    with pytest.raises(UserError, match=r"j was started with settings\.beams=4, now 1; delete it$"):
        Journal(tmp_path / "j", KIND, made_by={**MADE_BY, "settings": {"beams": 1}})
    assert (tmp_path / "j").read_bytes() == whole


@pytest.mark.parametrize(
    "content", [b"my notes", b"my notes\n", b'{"format": "other"}\n', b"[]\n", b"\xef\xbb\xbf{"]
)
def test_the_file_of_somebody_else_is_refused_and_stays(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "j"
    path.write_bytes(content)
    assert not is_journal(path, KIND)
    with pytest.raises(UserError, match=r"line 1: .*; delete it$"):
        opened(path)
    assert path.read_bytes() == content
    assert [one.name for one in tmp_path.iterdir()] == ["j"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "thesis").write_text("")
    (tmp_path / "j").symlink_to(tmp_path / "thesis")
    with pytest.raises(UserError, match="is a link"):
        opened(tmp_path / "j")
    assert (tmp_path / "thesis").read_text() == ""


def _replaced(path: Path) -> None:
    (path.parent / "copy").write_bytes(path.read_bytes())
    (path.parent / "copy").replace(path)


def _by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "change", [_replaced, Path.unlink, lambda path: path.rename(path.with_name("away")), _by_a_folder]
)
@pytest.mark.parametrize("action", ["append", "records", "remove", "leave"])
def test_a_file_that_lost_its_name_stops_the_work_and_its_records_are_kept(
    tmp_path: Path, change: Callable[[Path], object], action: str
) -> None:
    path = tmp_path / "j"
    journal = opened(path)
    journal.append({"number": 0})
    journal.append({"number": 1})
    change(path)
    there = os.path.lexists(path)
    said = []
    for _ in range(2):
        with pytest.raises(
            RunError, match=r"j: was replaced or deleted by another program; its 2 records"
        ) as told:
            _act(journal, action)
        said.append(str(told.value))
        if action == "leave":
            break
    assert "\n" not in said[0]
    assert len(set(said)) == 1
    journal.close()
    kept = [one for one in tmp_path.iterdir() if ".kept-" in one.name]
    assert [record["number"] for _, record in read_journal(kept[0], KIND)] == [0, 1]
    assert len(kept) == 1
    assert kept[0].name in said[0]
    assert os.path.lexists(path) == there


def _act(journal: Journal, action: str) -> None:
    if action == "append":
        journal.append({"number": 2})
    elif action == "records":
        list(journal.records())
    elif action == "leave":
        journal.__exit__(None, None, None)
    else:
        journal.remove()


def test_what_was_kept_goes_on_under_the_old_name(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = opened(path)
    journal.append({"number": 0})
    path.unlink()
    with pytest.raises(RunError):
        journal.append({"number": 1})
    journal.close()
    kept = next(tmp_path.glob("j.kept-*"))
    kept.rename(path)
    assert [record["number"] for record in filled(path, 3)] == [0]
    assert [record["number"] for _, record in read_journal(path, KIND)] == [0, 1, 2]


@pytest.mark.parametrize("size", ["truncated", "longer"])
def test_a_file_of_another_size_stops_the_work(tmp_path: Path, size: str) -> None:
    path = tmp_path / "j"
    journal = opened(path)
    journal.append({"number": 0})
    journal.append({"number": 1})
    if size == "truncated":
        os.truncate(path, path.stat().st_size - 5)
    else:
        with path.open("a") as file:
            file.write("more\n")
    changed = r"j: was changed by another program and has [\d,]+ bytes instead of [\d,]+; delete it$"
    for _ in range(2):
        with pytest.raises(RunError, match=changed):
            journal.append({"number": 2})
    journal.close()
    assert [one.name for one in tmp_path.iterdir()] == ["j"]
    if size == "truncated":
        assert len(filled(path, 3)) == 1


def test_a_folder_that_is_gone_is_named_with_what_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "out" / "j"
    journal = opened(path)
    journal.append({"number": 0})
    path.unlink()
    for rest in path.parent.iterdir():
        rest.unlink()
    path.parent.rmdir()
    with pytest.raises(RunError, match=r"its 1 records could not be kept \(No such file or directory\)"):
        journal.append({"number": 1})
    journal.close()


def test_a_line_that_a_full_disk_tore_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j"

    def half(_: Path, file: Any, data: bytes) -> None:
        file.write(data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    with opened(path) as journal:
        journal.append({"number": 0})
        with monkeypatch.context() as patched:
            patched.setattr("precis.storage.journal.write_whole", half)
            for _ in range(2):
                with pytest.raises(OSError, match="No space left"):
                    journal.append({"number": 1})
        assert journal.count == 1
        journal.append({"number": 2})
    assert [record["number"] for _, record in read_journal(path, KIND)] == [0, 2]


def test_a_record_longer_than_a_line_is_refused_and_the_work_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("precis.storage.journal.MAX_LINE", 1000)
    with opened(tmp_path / "j") as journal:
        with pytest.raises(LongRecordError, match="a record is larger than 1,000 bytes"):
            journal.append({"text": "x" * 2000})
        journal.append({"text": "x"})
    assert len(list(read_journal(tmp_path / "j", KIND))) == 1


def test_an_error_in_the_work_is_told_and_not_that_the_file_was_replaced_too(tmp_path: Path) -> None:
    def work() -> None:
        with opened(tmp_path / "a.jsonl"):
            _replaced(tmp_path / "a.jsonl")
            raise KeyError("of the work")

    with pytest.raises(KeyError, match="of the work"):
        work()


def test_a_journal_that_was_closed_or_removed_inside_its_block_is_not_checked_again(tmp_path: Path) -> None:
    with opened(tmp_path / "a.jsonl") as journal:
        journal.append({"id": 1})
        journal.close()
        _replaced(tmp_path / "a.jsonl")


def test_a_journal_is_known_by_its_beginning_and_only_as_a_file(tmp_path: Path) -> None:
    path = tmp_path / "j"
    filled(path, 1)
    whole = path.read_bytes()
    for size in (0, 1, len(KIND.beginning), len(whole)):
        path.write_bytes(whole[:size])
        assert is_journal(path, KIND), size
    (tmp_path / "link").symlink_to(path)
    for name in ("link", "none", "."):
        assert not is_journal(tmp_path / name, KIND), name


@pytest.mark.parametrize(("kind", "durable"), [(KIND, False), (DURABLE, True)])
def test_only_a_durable_journal_syncs_each_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: JournalFormat, durable: bool
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with opened(tmp_path / "j", kind=kind) as journal:
        assert len(synced) == (2 if durable else 0)  # the first line, and the name in the folder
        synced.clear()
        for number in range(3):
            journal.append({"number": number})
            assert len(synced) == (number + 1 if durable else 0)


def test_the_largest_record_is_as_long_as_the_longest_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path / "j", 1)
    with opened(tmp_path / "j") as journal:
        record = {"text": "x" * 1000}
        journal.append(record)
        monkeypatch.setattr(
            "precis.storage.journal.MAX_LINE", len((tmp_path / "j").read_bytes().splitlines(True)[-1])
        )
        journal.append(record)
        with pytest.raises(LongRecordError):
            journal.append({"text": "x" * 1001})
        assert journal.count == 3


def test_a_journal_locks_its_own_path_or_the_place_that_is_given(tmp_path: Path) -> None:
    with opened(tmp_path / "j"):
        assert (tmp_path / "j.lock").exists()
    with Journal(tmp_path / "j", KIND, made_by=MADE_BY, place=tmp_path / "work"):
        assert (tmp_path / "work.lock").exists()
        assert not (tmp_path / "j.lock").exists()


def test_what_another_program_adds_to_a_resumed_journal_stops_the_first_append(tmp_path: Path) -> None:
    filled(tmp_path / "j", 2)
    with opened(tmp_path / "j") as journal:
        with (tmp_path / "j").open("a") as file:
            file.write("more\n")
        with pytest.raises(RunError, match="was changed by another program"):
            journal.append({"number": 2})
        assert (tmp_path / "j").read_text().endswith("more\n")
        os.truncate(tmp_path / "j", (tmp_path / "j").stat().st_size - 5)
        journal.close()


def test_records_that_were_exchanged_for_others_of_the_same_length_are_noticed(tmp_path: Path) -> None:
    for name, number in (("j", 1), ("k", 2)):
        with opened(tmp_path / name) as other:
            other.append({"number": number})
    journal = opened(tmp_path / "j")
    assert list(journal.records()) == [{"number": 1}]
    (tmp_path / "j").write_bytes((tmp_path / "k").read_bytes())
    with pytest.raises(RunError, match=r"j: was changed by another program; delete it$"):
        list(journal.records())
    journal.close()


@pytest.mark.parametrize("made_by", ["", ', "made_by": 3', ', "made_by": []'])
def test_a_first_line_without_settings_is_not_of_a_journal(tmp_path: Path, made_by: str) -> None:
    (tmp_path / "j").write_bytes(KIND.beginning + made_by.encode() + b"}\n")
    with pytest.raises(UserError, match=r"line 1: is not a precis-test-1 file; delete it$"):
        opened(tmp_path / "j")


def test_values_are_compared_only_if_they_are_given(tmp_path: Path) -> None:
    filled(tmp_path / "j", 2)
    lines = [(2, 0), (3, 1)]
    for made_by in (None, MADE_BY):
        found = read_journal(tmp_path / "j", KIND, made_by=made_by)
        assert [(number, record["number"]) for number, record in found] == lines
    with pytest.raises(UserError, match="was started with model='m', now 'other'"):
        list(read_journal(tmp_path / "j", KIND, made_by={**MADE_BY, "model": "other"}))


@pytest.mark.parametrize("wrapping", [0, 1])
def test_a_record_is_nested_as_deep_as_json_may_be_and_by_what_its_format_adds(
    tmp_path: Path, wrapping: int
) -> None:
    plain = JournalFormat(name="precis-test-1", remedy="delete it")
    kind = JournalFormat(name="precis-test-1", remedy="delete it", wrapping=1) if wrapping else plain
    for levels, fits in ((MAX_DEPTH + wrapping, True), (MAX_DEPTH + wrapping + 1, False)):
        record = {"value": json.loads("[" * (levels - 1) + "]" * (levels - 1))}
        with Journal(tmp_path / str(levels), kind, made_by=MADE_BY) as journal:
            journal.append(record)
            if fits:
                assert list(journal.records()) == [record]
            else:
                with pytest.raises(UserError, match=r"line 2: not JSON \(is nested deeper than 100 levels\)"):
                    list(journal.records())
