"""Regular files alone are read, within a bound, and nothing waits."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from precis.bounded import names_in, open_regular, read_bounded
from precis.errors import UserError


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
