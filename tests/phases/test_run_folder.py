"""Folders that a run exports: whole, or as they were."""

import errno
import os
from pathlib import Path

import pytest
from safetensors import SafetensorError

from precis.errors import RunError, UserError
from precis.phases.run_folder import write_folder


def full_disk(place: Path) -> None:
    (place / "half").write_text("half a model")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_disk_in_safetensors(place: Path) -> None:
    (place / "half").write_text("half a model")
    raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")


def full_disk_in_tokenizers(place: Path) -> None:
    (place / "half").write_text("half a tokenizer")
    raise Exception("No space left on device (os error 28)")


@pytest.mark.parametrize("write", [full_disk, full_disk_in_safetensors, full_disk_in_tokenizers])
def test_a_full_disk_leaves_what_was_there_and_says_so_in_one_line(write, tmp_path: Path) -> None:
    write_folder(tmp_path / "model", lambda place: (place / "whole").write_text("before"))
    with pytest.raises(
        RunError, match=r"model cannot be written: .*No space left on device.*; free some space"
    ) as told:
        write_folder(tmp_path / "model", write)
    assert "\n" not in str(told.value)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["seal.json", "whole"]


def test_what_somebody_put_into_a_folder_is_never_replaced(tmp_path: Path) -> None:
    place = tmp_path / "model"
    write_folder(place, lambda new: (new / "whole").write_text("before"))
    write_folder(place, lambda new: (new / "whole").write_text("after"))
    (place / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match=r"model: holds thesis\.txt, which was not written by this command"):
        write_folder(place, lambda new: (new / "whole").write_text("again"))
    assert {path.name: path.read_text() for path in place.iterdir() if path.name != "seal.json"} == {
        "thesis.txt": "mine",
        "whole": "after",
    }


@pytest.mark.parametrize("name", ["model.old", "model.new", "model.tmp-mine"])
def test_folders_of_others_beside_an_export_are_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis.txt").write_text("mine")
    for text in ("before", "after"):
        write_folder(tmp_path / "model", lambda new, text=text: (new / "whole").write_text(text))
    assert (tmp_path / name / "thesis.txt").read_text() == "mine"


def test_an_export_of_a_version_that_did_not_seal_is_replaced_in_a_run_folder_and_nowhere_else(
    tmp_path: Path,
) -> None:
    place = tmp_path / "model"
    place.mkdir()
    (place / "config.json").write_text("{}")
    with pytest.raises(UserError, match=r"holds config\.json"):
        write_folder(place, lambda new: (new / "whole").write_text("after"))
    (tmp_path / "settings.json").write_text("{}")
    write_folder(place, lambda new: (new / "whole").write_text("after"))
    assert (place / "whole").read_text() == "after"


@pytest.mark.skipif(os.name == "nt", reason="there are no such modes")
def test_files_have_the_mode_that_new_files_get(tmp_path: Path) -> None:
    def write(new: Path) -> None:
        (new / "weights").write_text("private")
        (new / "weights").chmod(0o600)

    write_folder(tmp_path / "model", write)
    (tmp_path / "usual").touch()
    usual = (tmp_path / "usual").stat().st_mode
    assert {path.stat().st_mode for path in (tmp_path / "model").iterdir()} == {usual}


def test_a_place_without_rights_is_not_called_full(tmp_path: Path) -> None:
    def refused(place: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))

    with pytest.raises(PermissionError):
        write_folder(tmp_path / "model", refused)
