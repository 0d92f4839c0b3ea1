"""Files are written whole or not at all, and errors say where."""

import errno
import os
from pathlib import Path

import pytest

from precis.storage import atomic
from precis.storage.atomic import (
    appending,
    leftovers,
    naming,
    remove_leftovers,
    temporary_name,
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
def test_a_kill_between_the_two_renames_loses_neither_folder(tmp_path: Path, monkeypatch, fails: str) -> None:
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


def test_an_interruption_between_the_two_renames_puts_a_folder_back(tmp_path: Path, monkeypatch) -> None:
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


def test_only_the_temporary_files_of_a_name_are_its_leftovers(tmp_path: Path) -> None:
    mine, other = tmp_path / "model.json", tmp_path / "other.json"
    left = temporary_name(mine)
    left.write_text("left by a killed writer")
    kept = [temporary_name(other), tmp_path / "model.json.tmp-notes.txt", tmp_path / "model.json.old"]
    for file in kept:
        file.write_text("not of this writer")
    assert leftovers(mine) == [left]
    remove_leftovers(mine)
    assert sorted(tmp_path.iterdir()) == sorted(kept)
    assert leftovers(tmp_path / "absent" / "model.json") == []
