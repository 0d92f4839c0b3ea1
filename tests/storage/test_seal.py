"""A sealed folder is whole, its seal has one spelling, and what came later is named."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from precis.storage import seal
from precis.storage.atomic import to_json, write_file
from precis.storage.seal import (
    SEAL,
    DamagedError,
    check_seal,
    check_sealed,
    checking_sealed,
    finish_or_remove,
    replace_folder,
    seal_text,
    write_folder,
)
from precis_text.errors import UserError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "model"
    write_folder(place, lambda new: (new / "config.json").write_text("{}"))
    return place


def test_a_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    replace_folder(tmp_path / "new" / "model", lambda new: (new / "config.json").write_text("{}"))
    check_sealed(tmp_path / "new" / "model")


def test_any_bit_of_the_seal_counts(folder: Path) -> None:
    content = (folder / SEAL).read_bytes()
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        (folder / SEAL).write_bytes(changed)
        with pytest.raises(UserError, match=r"seal\.json|config\.json"):
            check_sealed(folder)
    (folder / SEAL).write_bytes(content)
    check_sealed(folder)


@pytest.mark.parametrize(
    "name", ["chat_template.jinja", "special_tokens_map.json", "more.safetensors", "vocab.txt"]
)
def test_a_later_file_that_would_be_read_is_refused(folder: Path, name: str) -> None:
    (folder / name).write_text("{}")
    with pytest.raises(UserError, match=f"{name} was added after sealing"):
        check_sealed(folder)


def test_a_later_file_that_nobody_reads_is_named(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "notes.txt").write_text("mine")
    (folder / ".hidden").write_text("")
    check_sealed(folder)
    assert caplog.messages == [f"{folder}: notes.txt was added after sealing and is ignored"]


def test_a_change_is_found_while_the_folder_is_read_and_said_before_what_failed_by_it(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    write_folder(folder, lambda place: (place / "config.json").write_text("{}"))
    with checking_sealed(folder):
        pass
    (folder / "config.json").write_text("{]")
    with (
        pytest.raises(UserError, match=r"config\.json has changed since it was written"),
        checking_sealed(folder),
    ):
        raise ValueError("no JSON")
    with pytest.raises(UserError, match=r"config\.json has changed"), checking_sealed(folder):
        pass


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["b"], "contains b, which"),
        (["b", "a"], "contains a and 1 more, which"),
        ([*"cdba"], "contains a and 3 more, which"),
    ],
)
def test_files_of_others_are_refused_by_the_first_name_and_their_number(
    folder: Path, names: list[str], says: str
) -> None:
    for name in names:
        (folder / name).write_text("mine")
    with pytest.raises(UserError, match=says):
        write_folder(folder, lambda new: (new / "config.json").write_text("{}"))
    assert all((folder / name).read_text() == "mine" for name in names)
    write_folder(folder, lambda new: (new / "config.json").write_text("{}"), declared=names)


def test_a_link_and_a_file_are_not_replaced_by_a_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "file").write_text("mine")
    for name, says in (("link", "is a link, which would be replaced"), ("file", "is a file; name a folder")):
        with pytest.raises(UserError, match=says):
            write_folder(tmp_path / name, lambda new: (new / "config.json").write_text("[]"))
    assert (folder / "config.json").read_text() == "{}"
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_sealed_files_have_the_usual_mode_whatever_their_writer_chose(tmp_path: Path, umask: int) -> None:
    def write(new: Path) -> None:
        (new / "weights").touch()
        (new / "weights").chmod(0o700)

    before = os.umask(umask)
    try:
        write_folder(tmp_path / "model", write)
    finally:
        left = os.umask(before)
    assert left == umask
    assert (tmp_path / "model" / "weights").stat().st_mode & 0o777 == 0o666 & ~umask


def test_what_cannot_be_deleted_hides_neither_the_new_folder_nor_the_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, "not permitted")

    def fail(_: Path) -> None:
        raise ValueError("of the writer")

    monkeypatch.setattr(os, "rmdir", refuse)
    write_folder(folder, lambda new: (new / "config.json").write_text("[]"))
    assert (folder / "config.json").read_text() == "[]"
    with pytest.raises(ValueError, match="of the writer"):
        write_folder(folder, fail)
    check_seal(folder)


@pytest.mark.parametrize("newest", [0, 1, 2])
def test_of_several_whole_folders_the_newest_gets_the_name(folder: Path, newest: int) -> None:
    for number in range(3):
        write_folder(place := folder.with_name(f"made{number}"), lambda new: (new / "a").touch())
        os.utime(place / SEAL, ns=(0, 10**9 * (10 if number == newest else number)))
        place.rename(folder.with_name(f"next.tmp-0000000{number}"))
    inode = folder.with_name(f"next.tmp-0000000{newest}").stat().st_ino
    finish_or_remove(folder.with_name("next"))
    assert folder.with_name("next").stat().st_ino == inode
    assert sorted(path.name for path in folder.parent.iterdir()) == ["model", "next"]


def test_a_leftover_takes_the_place_of_no_link(folder: Path) -> None:
    place = folder.with_name("next")
    place.symlink_to(folder.with_name("gone"))
    folder.rename(folder.with_name("next.tmp-01234567"))
    finish_or_remove(place)
    assert place.is_symlink()
    finish_or_remove(folder.with_name("no") / "such")


def test_only_a_thorough_check_compares_sha_256(folder: Path) -> None:
    files = json.loads((folder / SEAL).read_text())["files"]
    files["config.json"]["sha256"] = "0" * 64
    write_file(folder / SEAL, seal_text(files))
    assert check_seal(folder) == {"config.json"}
    with pytest.raises(DamagedError, match=r"config\.json has changed since it was written"):
        check_seal(folder, thorough=True)


def test_the_seal_of_a_later_format_is_named(folder: Path) -> None:
    record = json.loads((folder / SEAL).read_text())
    assert record["format"] == 1
    write_file(folder / SEAL, to_json({**record, "format": 2}))
    with pytest.raises(DamagedError, match="has format 2, which this version of precis cannot read"):
        check_seal(folder)


def test_the_order_of_files_does_not_change_a_seal(folder: Path) -> None:
    entry = json.loads((folder / SEAL).read_text())["files"]["config.json"]
    assert seal_text({"a": entry, "b": entry}) == seal_text({"b": entry, "a": entry})


@pytest.mark.parametrize("name", ["../config.json", "a/../../config.json", "{parent}/config.json"])
def test_a_seal_names_no_file_outside_its_folder(folder: Path, name: str) -> None:
    files = json.loads((folder / SEAL).read_text())["files"]
    outside = name.format(parent=folder.parent)
    write_file(folder / SEAL, seal_text({outside: files["config.json"]}))
    with pytest.raises(DamagedError, match="which is outside the folder"):
        check_seal(folder)


def test_a_seal_of_the_largest_size_is_read_and_one_beyond_is_damaged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = (folder / SEAL).stat().st_size
    monkeypatch.setattr(seal, "MAX_BYTES", most)
    check_seal(folder)
    monkeypatch.setattr(seal, "MAX_BYTES", most - 2)
    with pytest.raises(DamagedError, match=r"seal\.json is damaged"):
        check_seal(folder)
