"""One process holds a folder, and a lock never touches what is not its own."""

import errno
import fcntl
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from precis.storage import locks
from precis.storage.locks import HeldError, is_file_of, is_marked, locked, locked_place
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
    remedy = "wait for it, stop it, or use another --out"
    message = f"^another process is training in {tmp_path}; {remedy}$" if held else r"cannot be locked \(no\)"
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


def test_a_folder_stays_ours_if_its_next_holder_dies_or_finds_the_disk_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with locked(tmp_path):
        pass
    (tmp_path / "lock").write_text(f"1234567890 {'h' * 255}\n")  # longer than what the next one writes

    def stop(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    for call in ("ftruncate", "lseek", "write"):
        with monkeypatch.context() as patch, suppress(OSError):
            patch.setattr(os, call, stop)
            with locked(tmp_path):
                pass
        assert is_marked(tmp_path), call
    with locked(tmp_path):
        assert (tmp_path / "lock").read_text().split() == [str(os.getpid()), socket.gethostname()]
    with locked(tmp_path):
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


def test_a_folder_without_a_lock_file_of_ours_is_not_marked(tmp_path: Path) -> None:
    assert not is_marked(tmp_path)
    assert not is_marked(tmp_path / "none")
    for content in ("", "12", "12 host", "x host\n", "12 host\n\n", f"12 {'h' * 256}\n"):
        (tmp_path / "lock").write_text(content)
        assert not is_marked(tmp_path), content
    (tmp_path / "lock").write_text(f"1234567890 {'h' * 255}\n")
    assert is_marked(tmp_path)


def test_the_inner_of_two_locks_leaves_the_place_held(tmp_path: Path) -> None:
    place = tmp_path / "new" / "folders" / "words"
    with locked_place(place, doing="writing"):
        with locked_place(place, doing="writing"):
            pass
        assert (place.parent / "words.lock").exists()
    assert list(place.parent.iterdir()) == []


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_a_lock_file_has_the_usual_mode_and_only_the_last_holder(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with locked(tmp_path):
            pass
    finally:
        os.umask(before)
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o666 & ~umask
    (tmp_path / "lock").write_text(f"1234567890 {'h' * 255}\n")
    with locked(tmp_path):
        assert (tmp_path / "lock").read_text().split() == [str(os.getpid()), socket.gethostname()]


def test_an_open_file_has_its_name_until_it_is_deleted_renamed_or_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("w") as file:
        assert is_file_of(path, file.fileno())
        assert not is_file_of(path / "below", file.fileno())
        path.rename(tmp_path / "b")
        assert not is_file_of(path, file.fileno())
        path.touch()
        assert not is_file_of(path, file.fileno())
        assert is_file_of(tmp_path / "b", file.fileno())
