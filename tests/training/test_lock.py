"""A folder that is held and a folder that cannot be locked are two things."""

import errno
import fcntl
from pathlib import Path
from typing import Any

import pytest

from precis.errors import UserError
from precis.training.lock import HeldError, locked


@pytest.mark.parametrize(
    ("number", "held"), [(errno.EAGAIN, True), (errno.EACCES, True), (errno.ENOLCK, False)]
)
def test_a_file_system_without_locks_is_not_taken_for_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, held: bool
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    message = "another process is training" if held else r"cannot be locked \(no\)"
    with pytest.raises(UserError, match=message) as error, locked(tmp_path):
        pass
    assert isinstance(error.value, HeldError) == held
