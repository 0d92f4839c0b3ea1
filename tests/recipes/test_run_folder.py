"""Folders that a run exports: whole, or as they were."""

import errno
import os
from pathlib import Path

import pytest
from safetensors import SafetensorError

from precis.errors import RunError
from precis.recipes.run_folder import write_folder


def full_disk(place: Path) -> None:
    (place / "half").write_text("half a model")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_disk_in_safetensors(place: Path) -> None:
    (place / "half").write_text("half a model")
    raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")


@pytest.mark.parametrize("write", [full_disk, full_disk_in_safetensors])
def test_a_full_disk_leaves_what_was_there_and_says_so_in_one_line(write, tmp_path: Path) -> None:
    write_folder(tmp_path / "model", lambda place: (place / "whole").write_text("before"))
    with pytest.raises(
        RunError, match=r"model cannot be written: .*No space left on device.*; free some space"
    ) as told:
        write_folder(tmp_path / "model", write)
    assert "\n" not in str(told.value)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["whole"]
