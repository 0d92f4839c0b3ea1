"""What others wrote is read within bounds, from regular files that lie where they should, and nothing of it is lost."""

import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from precis_text.bounded_io import (
    MAX_DEPTH,
    JsonError,
    check_inside,
    is_plain_name,
    names_in,
    open_regular,
    parse_json,
    read_bounded,
    read_json,
    suggest,
)
from precis_text.errors import UserError


def _bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


NOT_REGULAR: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a socket": _bind,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a folder": Path.mkdir,
}


@pytest.mark.parametrize(("kind", "make"), NOT_REGULAR.items(), ids=list(NOT_REGULAR))
def test_what_may_never_end_is_refused_at_once(
    kind: str, make: Callable[[Path], object], tmp_path: Path
) -> None:
    make(tmp_path / "x")
    with pytest.raises(UserError, match=f"x: is {kind}, not a regular file"):
        open_regular(tmp_path / "x")


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("x")
    assert read_bounded(tmp_path / "link", limit=3) == b"abc"
    with pytest.raises(UserError, match="x: is larger than 2 bytes"):
        read_bounded(tmp_path / "x", limit=2)


def test_what_the_system_refuses_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UserError, match="loop: cannot be read: Too many levels"):
        open_regular(tmp_path / "loop")
    with pytest.raises(UserError, match="none: no such file"):
        open_regular(tmp_path / "none")
    with pytest.raises(UserError, match="none: cannot be read"):
        names_in(tmp_path / "none")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_forbidden_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "x").touch(mode=0)
    with pytest.raises(UserError, match="x: cannot be read: Permission denied"):
        open_regular(tmp_path / "x")


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
        == f"{place}: is a link to a place outside the folder; replace it with the file itself"
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
    assert "is a link to a place outside the folder" in refused(snapshot)


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


BAD = {
    '{"a": 1, "a": 2}': "has the key 'a' twice",
    "[" * 200_000: "is nested deeper than 100 levels",
    '{"a":' * 100_000: "is nested deeper than 100 levels",
    "[" * 150 + "]" * 150: "is nested deeper than 100 levels",
    "1" * 5_000: "has an integer of more than 4,300 digits",
    "[0" + ",0" * 4_000_001 + "]": "has more than 4,000,000 values",
    "[NaN]": "contains NaN, which is not JSON",
    "-Infinity": "contains -Infinity, which is not JSON",
    "1e999": "contains 1e999, which is too large",
    "{": "Expecting property name",
}


@pytest.mark.parametrize(("text", "says"), BAD.items(), ids=list(BAD.values()))
def test_what_is_no_plain_json_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(JsonError) as caught:
        parse_json(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_plain_json_is_read() -> None:
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert parse_json(b'{"a": [1, 2.5, null, "[[["]}') == {"a": [1, 2.5, None, "[[["]}
    assert isinstance(parse_json(deep), list)
    assert parse_json("[NaN]", constants=True)[0] != 0


def test_a_file_is_one_object_of_bounded_size(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with pytest.raises(UserError, match=r"a\.json: no such file"):
        read_json(path)
    path.write_text('{"a": 1}')
    assert read_json(path) == {"a": 1}
    with pytest.raises(UserError, match=r"a\.json: is larger than 5 bytes"):
        read_json(path, limit=5)
    path.write_text("[1]")
    with pytest.raises(UserError, match=r"a\.json: is not a JSON object"):
        read_json(path)
    path.write_bytes(b"\xff")
    with pytest.raises(UserError, match=r"a\.json: is not valid JSON: is not UTF-8 at byte 1"):
        read_json(path)


def test_a_missing_file_names_the_one_that_is_meant(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    report = tmp_path / "documents" / "report.txt"
    for name in ("report.txt", "notes.md", "b.txt", ".reprot.txt"):
        (tmp_path / "documents" / name).touch()
    for wrong in ("reprot.txt", "Report.TXT", "report.md", "report", tmp_path / "docments" / "report.txt"):
        assert suggest(report.parent / wrong).endswith(f"; did you mean {report}?"), wrong
    (tmp_path / "documents" / "moved.txt").symlink_to("nowhere")
    assert suggest(report.with_name("moved.txt")) == "; it is a link that leads nowhere"
    for strange in ("a.txt", "invoice.txt", "no/such/folder"):
        assert suggest(report.parent / strange) == ""
    with pytest.raises(UserError, match=rf"no such file; did you mean {re.escape(str(report))}\?$"):
        open_regular(report.with_name("reports.txt"))


@pytest.mark.parametrize("place", ["https://example.org/a.txt", Path("https://example.org/a.txt")])
def test_an_address_is_no_missing_file(place: str | Path) -> None:
    assert "precis reads files only: download it first" in suggest(place)
