"""A folder from somebody else names nothing outside of itself, and nothing that does not end."""

import os
import socket
from pathlib import Path

import pytest

from precis.errors import UserError
from precis.inside import check_inside, is_plain_name


def refused(folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        check_inside(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_files_folders_and_links_inside_are_taken(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.json").write_text("{}")
    (tmp_path / "b.json").symlink_to("sub/a.json")
    check_inside(tmp_path)


@pytest.mark.parametrize("target", ["/etc/passwd", "/dev/zero", "../outside", "/etc"])
def test_a_link_that_leads_out_is_named(target: str, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret")
    folder = tmp_path / "model"
    (folder / "deep").mkdir(parents=True)
    place = folder / "deep" / "x"
    place.symlink_to(f"../{target}" if target.startswith("..") else target)
    assert (
        refused(folder)
        == f"{place}: is a link that leads out of the folder; put the file itself in its place"
    )


def test_a_folder_of_the_hubs_cache_may_name_its_blobs(tmp_path: Path) -> None:
    snapshot, blobs = tmp_path / "models--o--n" / "snapshots" / "f00", tmp_path / "models--o--n" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "abc").write_text("{}")
    (snapshot / "config.json").symlink_to("../../blobs/abc")
    check_inside(snapshot)
    (snapshot / "other").symlink_to("../../../x")
    (tmp_path / "x").write_text("")
    assert "leads out" in refused(snapshot)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX")
@pytest.mark.parametrize("kind", ["pipe", "socket", "circle", "nowhere"])
def test_what_is_no_regular_file_is_named(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = Path("x")
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind("x")
    else:
        place.symlink_to("x" if kind == "circle" else "none")
    assert str(tmp_path / "x") in refused(tmp_path)


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("a.safetensors", True),
        ("..", False),
        ("../a", False),
        ("a/b", False),
        ("/a", False),
        ("C:\\a", False),
        ("a\0b", False),
        ("", False),
        (5, False),
    ],
)
def test_a_plain_name_names_a_file_in_the_folder(name: object, plain: bool) -> None:
    assert is_plain_name(name) is plain
