"""Claims about places to write to: a folder that can be made passes, a file in its way is named."""

from pathlib import Path

import pytest

from precis.phases.output_folders import claim_folder, folder_to_be
from precis_text.errors import UserError


@pytest.mark.parametrize("name", [".", "new", "new/deeper"])
def test_a_folder_may_be_there_or_be_made(name: str, tmp_path: Path) -> None:
    assert folder_to_be(str(tmp_path / name)) == tmp_path / name
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["file.txt", "file.txt/x", "file.txt/x/y"])
def test_a_file_or_a_place_in_one_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("mine")
    with pytest.raises(UserError, match=r"file\.txt: is a file; name a folder with --out$"):
        folder_to_be(tmp_path / name)


def test_a_place_in_the_folder_where_we_are_needs_no_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert folder_to_be("new") == Path("new")


def test_a_folder_of_others_is_refused_for_its_files_and_not_for_a_link_among_them(tmp_path: Path) -> None:
    """`--out .` in a home: the remedy is another folder, not another link."""
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "a link").symlink_to("nowhere")
    with pytest.raises(UserError, match=r"contains a link and 1 more, which precis did not write"):
        claim_folder(tmp_path)
    with pytest.raises(UserError, match="a link: is a link"):
        claim_folder(tmp_path, is_ours=lambda _: True)
