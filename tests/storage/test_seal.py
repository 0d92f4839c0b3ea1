"""A sealed folder is whole, its seal has one spelling, and what came later is named."""

from pathlib import Path

import pytest

from precis.storage.seal import SEAL, check_sealed, checking_sealed, write_folder
from precis_text.errors import UserError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "model"
    write_folder(place, lambda new: (new / "config.json").write_text("{}"))
    return place


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
