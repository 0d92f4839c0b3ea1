"""Files are written whole or not at all, and errors say where."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from precis.storage import atomic
from precis.storage.atomic import (
    appending,
    is_there,
    leftovers,
    naming,
    refuse_link,
    remove_leftovers,
    remove_temporary_files,
    to_json,
    unfinished_names,
    write_file,
    write_whole,
)
from precis.storage.seal import check_seal, write_folder
from precis_text.errors import UserError


class _Full:
    """A disk on which so many bytes are left."""

    def __init__(self, left: int) -> None:
        self._left = left

    def write(self, data: bytes) -> int:
        if not self._left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._left = 0
        return 1


@pytest.mark.parametrize("left", [0, 1])
def test_a_line_that_does_not_fit_names_the_file(tmp_path: Path, left: int) -> None:
    with pytest.raises(OSError, match="No space left") as caught:
        write_whole(tmp_path / "lines", _Full(left), b"one\n")  # type: ignore[arg-type]
    assert caught.value.filename == str(tmp_path / "lines")


def test_what_is_appended_is_there_at_once(tmp_path: Path) -> None:
    with appending(tmp_path / "lines") as file:
        write_whole(tmp_path / "lines", file, b"one\n")
        assert (tmp_path / "lines").read_bytes() == b"one\n"


@pytest.mark.parametrize(
    "error", [OSError(errno.EFBIG, "File too large"), Exception("File too large (os error 27)")]
)
def test_a_library_that_cannot_write_is_an_error_of_the_system_with_its_place(
    tmp_path: Path, error: Exception
) -> None:
    def fail(_: Path) -> None:
        raise error

    with pytest.raises(OSError, match="File too large") as caught:
        write_folder(tmp_path / "model", fail)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(tmp_path / "model"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [ValueError("(os error 27)"), Exception("else"), UserError("one line")])
def test_other_errors_stay_what_they_are(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(type(error)) as caught, naming(tmp_path):
        raise error
    assert caught.value is error


def test_a_folder_is_sealed_and_a_file_is_replaced_whole(tmp_path: Path) -> None:
    write_folder(tmp_path / "model", lambda place: (place / "a").write_text("a"))
    check_seal(tmp_path / "model", thorough=True)
    write_file(tmp_path / "file", "old")
    write_file(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "model"]


@pytest.mark.parametrize("fails", ["the next writer", "nothing"])
def test_a_kill_between_the_two_renames_loses_neither_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    folder = tmp_path / "made"
    write_folder(folder, lambda place: (place / "a").write_text("old"))
    real, renames = Path.rename, []

    def rename(self: Path, target: Path) -> Path:
        renames.append(self)
        if len(renames) > 1:
            raise KeyboardInterrupt  # no more renames happen, as after a kill
        return real(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", rename)
        with pytest.raises(KeyboardInterrupt):
            write_folder(folder, lambda place: (place / "a").write_text("new"))
    assert not folder.exists()

    def write(place: Path) -> None:
        if fails == "the next writer":
            raise OSError("the disk is full")
        (place / "a").write_text("third")

    if fails == "the next writer":
        with pytest.raises(OSError, match="full"):
            write_folder(folder, write)
        assert (folder / "a").read_text() == "new"
    else:
        write_folder(folder, write)
        assert (folder / "a").read_text() == "third"
    assert [path.name for path in tmp_path.iterdir() if atomic.is_temporary(path.name)] == []


def test_an_interruption_between_the_two_renames_puts_a_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "made"
    write_folder(folder, lambda place: (place / "a").write_text("old"))
    real, renames = Path.rename, []

    def rename(self: Path, target: Path) -> Path:
        renames.append(self)
        if len(renames) == 2:
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        write_folder(folder, lambda place: (place / "a").write_text("new"))
    assert (folder / "a").read_text() in ("old", "new")


def test_json_of_run_folders_is_sorted_indented_and_readable_to_the_last_newline() -> None:
    assert to_json({"b": [1], "a": {"ü": None}}) == (
        '{\n  "a": {\n    "ü": null\n  },\n  "b": [\n    1\n  ]\n}\n'
    )


def test_only_a_regular_file_or_nothing_may_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "file", tmp_path / "none", tmp_path / "file" / "below"):
        refuse_link(path)
    for name, says in (("link", "is a link"), ("folder", "is a folder"), ("pipe", "is not a regular file")):
        with pytest.raises(UserError, match=says):
            write_file(tmp_path / name, "new")
        with pytest.raises(UserError, match=says):
            appending(tmp_path / name)
    assert (tmp_path / "file").read_text() == "old"


def test_a_file_is_there_only_if_it_is_a_regular_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert is_there(tmp_path / "file")
    assert is_there(tmp_path / "link")
    for path in (tmp_path, tmp_path / "none", tmp_path / "file" / "below"):
        assert not is_there(path)


def test_a_file_that_cannot_be_created_is_told_and_not_that_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(OSError, match="Too many open files"):
        write_file(tmp_path / "file", "new")


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_a_file_to_append_to_has_the_usual_mode(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        appending(tmp_path / "lines").close()
    finally:
        os.umask(before)
    assert (tmp_path / "lines").stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.fixture
def crowded(tmp_path: Path) -> Path:
    """A folder with temporary files of `a` and `b`, and with what only looks like one."""
    (tmp_path / "a.tmp-01234567").write_text("file of a")
    (tmp_path / "a.tmp-89abcdef").mkdir()
    (tmp_path / "a.tmp-89abcdef" / "inner").write_text("")
    (tmp_path / "b.tmp-01234567").write_text("file of b")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes").write_text("mine")
    (tmp_path / "a.tmp-ffffffff").symlink_to(tmp_path / "folder")
    for name in ("a", "a.tmp-notes", "a.tmp-0123456", "a.tmp-0123456X", "aa.tmp-x"):
        (tmp_path / name).write_text("mine")
    return tmp_path


def test_only_temporary_names_of_a_path_are_its_leftovers(crowded: Path) -> None:
    found = sorted(path.name for path in leftovers(crowded / "a"))
    assert found == ["a.tmp-01234567", "a.tmp-89abcdef", "a.tmp-ffffffff"]
    assert leftovers(crowded / "none" / "a") == []
    assert unfinished_names(crowded) == {"a", "b"}
    before = {path.name for path in crowded.iterdir()}
    remove_leftovers(crowded / "a")
    assert {path.name for path in crowded.iterdir()} == before - set(found)
    assert (crowded / "folder" / "notes").read_text() == "mine"


def test_of_a_held_folder_only_temporary_files_are_removed(crowded: Path) -> None:
    before = {path.name for path in crowded.iterdir()}
    remove_temporary_files(crowded)
    assert {path.name for path in crowded.iterdir()} == before - {"a.tmp-01234567", "b.tmp-01234567"}
    assert (crowded / "a.tmp-89abcdef" / "inner").exists()


def test_a_leftover_that_another_process_removed_first_or_that_nobody_can_remove_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, "not permitted")

    (tmp_path / "a.tmp-89abcdef").mkdir()
    monkeypatch.setattr(os, "rmdir", refuse)
    remove_leftovers(tmp_path / "a")
    monkeypatch.setattr(atomic, "leftovers", lambda path: [path.with_name("a.tmp-01234567")])
    remove_leftovers(tmp_path / "a")


def test_a_temporary_file_that_another_process_removes_meanwhile_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_file(path: Path) -> bool:
        path.unlink()
        return True

    (tmp_path / "a.tmp-01234567").touch()
    monkeypatch.setattr(Path, "is_file", is_file)
    remove_temporary_files(tmp_path)
    assert list(tmp_path.iterdir()) == []
