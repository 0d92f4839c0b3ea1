"""A sealed folder is whole and unchanged, or it is noticed; a kill leaves the old one or the new one."""

import os
import random
import shutil
from pathlib import Path

import pytest

from precis.storage.atomic import write_file
from precis.storage.seal import (
    DamagedError,
    check_seal,
    finish_or_remove,
    refuse_foreign,
    remove_folder,
    replace_folder,
    write_folder,
)
from precis_text.errors import UserError

FILES = {"weights.bin": bytes(range(256)) * 4, "state.json": b'{"step": 3}\n'}


def _write(folder: Path) -> None:
    for name, content in FILES.items():
        (folder / name).write_bytes(content)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    replace_folder(tmp_path / "sealed", _write)
    return tmp_path / "sealed"


def test_what_was_written_is_found_and_verified(folder: Path) -> None:
    check_seal(folder)

    assert {path.name for path in folder.iterdir()} == {*FILES, "seal.json"}
    assert [path.name for path in folder.parent.iterdir()] == ["sealed"]


@pytest.mark.parametrize("name", ["weights.bin", "state.json", "seal.json"])
def test_a_deleted_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()

    with pytest.raises(DamagedError, match=f"{name} is missing"):
        check_seal(folder)


def test_a_truncated_file_is_named_with_both_sizes(folder: Path) -> None:
    (folder / "weights.bin").write_bytes(FILES["weights.bin"][:-1])

    with pytest.raises(DamagedError, match=r"weights\.bin has 1023 bytes instead of 1024"):
        check_seal(folder)


def test_any_single_flipped_bit_in_any_file_is_detected(folder: Path) -> None:
    rng = random.Random(0)
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for place in rng.sample(range(8 * len(whole)), min(8 * len(whole), 300)):
            broken = bytearray(whole)
            broken[place // 8] ^= 1 << place % 8
            path.write_bytes(bytes(broken))
            with pytest.raises(DamagedError):
                check_seal(folder)
        path.write_bytes(whole)
    check_seal(folder)


def test_a_failed_write_leaves_nothing_and_an_older_folder_untouched(folder: Path) -> None:
    def fail(temporary: Path) -> None:
        (temporary / "half").write_bytes(b"x")
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        replace_folder(folder, fail)

    check_seal(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["sealed"]


def test_the_files_and_both_folders_are_flushed_before_the_rename_is_relied_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    real_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{descriptor}").resolve().name.partition(".tmp-")[0])
        real_fsync(descriptor)

    real_rename = Path.rename

    def rename(self: Path, target: Path) -> Path:
        flushed.append("renamed")
        return real_rename(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "rename", rename)
    replace_folder(tmp_path / "sealed", _write)

    *before, renamed, last = flushed
    assert (renamed, last) == ("renamed", tmp_path.name)
    assert sorted(before) == sorted([*FILES, "seal.json", "sealed"])


def test_an_unfinished_folder_is_removed(folder: Path) -> None:
    unfinished = folder.parent / "next.tmp-01234567"
    unfinished.mkdir()
    (unfinished / "weights.bin").write_bytes(b"half")

    finish_or_remove(folder.parent / "next")

    assert [path.name for path in folder.parent.iterdir()] == ["sealed"]


def test_a_folder_that_lacks_only_its_name_gets_it(folder: Path) -> None:
    folder.rename(folder.with_name("sealed.tmp-01234567"))

    finish_or_remove(folder)

    check_seal(folder)


def test_a_leftover_never_replaces_a_folder(folder: Path) -> None:
    shutil.copytree(folder, folder.with_name("sealed.tmp-01234567"))
    (folder / "marker").touch()

    finish_or_remove(folder)

    assert (folder / "marker").exists()
    assert [path.name for path in folder.parent.iterdir()] == ["sealed"]


def test_removing_takes_the_name_away_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        remove_folder(folder)

    assert not folder.exists()


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "best.json"
    write_file(path, "old")

    def fail(_descriptor: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write_file(path, "new")

    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["best.json"]


@pytest.mark.parametrize(
    ("names", "said"),
    [(["a.txt"], "contains a.txt, which"), (["c", "a.txt", "b"], "contains a.txt and 2 more, which")],
)
def test_a_folder_with_files_of_others_is_not_replaced(folder: Path, names: list[str], said: str) -> None:
    refuse_foreign(folder)
    for name in names:
        (folder / name).write_text("mine")
    with pytest.raises(UserError, match=said):
        write_folder(folder, _write)
    assert {path.name for path in folder.iterdir()} == {*FILES, "seal.json", *names}
    refuse_foreign(folder, declared=names)


def test_a_link_and_a_file_are_not_replaced_by_a_folder(folder: Path) -> None:
    link, file = folder.parent / "link", folder.parent / "file"
    link.symlink_to(folder)
    file.write_text("mine")
    with pytest.raises(UserError, match="is a link, which would be replaced"):
        refuse_foreign(link)
    with pytest.raises(UserError, match="is a file; name a folder"):
        refuse_foreign(file)
    refuse_foreign(folder.parent / "absent")


@pytest.mark.skipif(os.name == "nt", reason="modes of files")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_files_of_a_sealed_folder_have_the_mode_of_new_files(tmp_path: Path, umask: int, mode: int) -> None:
    def write(place: Path) -> None:
        (place / "weights.bin").write_bytes(b"x")
        (place / "weights.bin").chmod(0o400)

    before = os.umask(umask)
    try:
        write_folder(tmp_path / "model", write)
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "model").iterdir()} == {mode}
