"""One process holds a folder, and a lock never touches what is not its own."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from precis.storage import locks
from precis.storage.locks import HeldError, is_marked, locked, locked_place
from precis_text.errors import UserError


@pytest.mark.parametrize(
    ("number", "held"), [(errno.EAGAIN, True), (errno.EACCES, True), (errno.ENOLCK, False)]
)
def test_a_file_system_without_locks_is_not_taken_for_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, held: bool
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    message = "another process is training" if held else r"cannot be locked \(no\)"
    with pytest.raises(UserError, match=message) as error, locked(tmp_path):
        pass
    assert isinstance(error.value, HeldError) == held


def test_a_lock_neither_follows_a_link_nor_empties_a_file_nor_waits_for_a_pipe(tmp_path: Path) -> None:
    thesis = tmp_path / "thesis"
    thesis.write_text("three years")
    for number, (put, message) in enumerate(
        (
            (lambda place: place.symlink_to(thesis), "is a link"),
            (lambda place: os.link(thesis, place), "was not written by precis"),
            (lambda place: place.mkdir(), "is a folder"),
            (os.mkfifo, "is not a regular file"),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        put(folder / "lock")
        with pytest.raises(UserError, match=message), locked(folder):
            pass
        assert not is_marked(folder)
    assert thesis.read_text() == "three years"


def test_the_second_process_is_told_who_holds_the_place(tmp_path: Path) -> None:
    place = tmp_path / "words"
    program = (
        "import sys; from pathlib import Path; from precis.storage.locks import locked_place\n"
        "with locked_place(Path(sys.argv[1]), doing='writing'): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(place)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(HeldError, match=rf"writing {place} \({holder.pid} on "),
            locked_place(place, doing="writing"),
        ):
            pass
        holder.kill()
    with locked_place(place, doing="writing"):  # what a killed holder left is taken over
        assert (tmp_path / "words.lock").exists()
    assert not list(tmp_path.iterdir())


def test_a_folder_that_was_held_is_known_as_ours(tmp_path: Path) -> None:
    with locked(tmp_path), locked(tmp_path):
        pass
    assert is_marked(tmp_path)


def test_a_lock_whose_file_its_last_holder_removed_meanwhile_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    really = locks._open

    def slow(file: Path) -> int:
        descriptor = really(file)
        if not opened:
            file.unlink()  # as the last holder does after we opened it
        opened.append(file)
        return descriptor

    monkeypatch.setattr(locks, "_open", slow)
    with locked_place(tmp_path / "words", doing="writing"):
        assert len(opened) == 2
        assert (tmp_path / "words.lock").read_text().startswith(f"{os.getpid()} ")
