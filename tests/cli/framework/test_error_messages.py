"""Errors that come from below our own checks are one line too, with the exit code that belongs to them."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Precis = Callable[..., Any]
PRECIS = [sys.executable, "-m", "precis"]


class PanicException(BaseException):  # as pyo3 calls it
    pass


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (
            PermissionError(errno.EACCES, "x", "/a/b"),
            2,
            "/a/b: permission denied; choose a place that you may write to",
        ),
        (OSError(errno.EROFS, "x", "/a/b"), 2, "/a/b: read-only file system; choose a writable place"),
        (OSError(errno.ENOSPC, "x", "/a/b"), 1, "/a/b: no space left on device; free some space there"),
        (OSError(errno.EIO, "x", b"/a/b"), 1, "/a/b: input/output error"),
        (OSError(errno.ENAMETOOLONG, "x", "/a"), 2, "/a: file name too long; choose a shorter name"),
        (FileNotFoundError(errno.ENOENT, "x", "/a", None, "/b"), 2, "/a -> /b: no such file or directory"),
        (OSError(errno.ENOSPC, "x"), 1, "No space left on device; free some space there"),
        (Exception("No space left on device (os error 28)"), 1, "No space left on device; free some"),
        (MemoryError(), 1, "not enough memory"),
        (PanicException("index out of bounds"), 1, "a library failed on this input: index out of bounds"),
        (ValueError("\x1b[31mred\x07"), 1, r"unexpected ValueError: \x1b[31mred\x07; run again with --debug"),
        (ValueError("x" * 10**6), 1, "[... 1,000,001 characters]"),
        (ValueError("no end " * 10**6), 1, "[...]"),
    ],
)
def test_an_error_from_below_is_one_line(
    error: BaseException, code: int, line: str, precis: Precis, monkeypatch: pytest.MonkeyPatch
) -> None:
    import precis.phases.data.pair_checks as check_data

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(check_data, "check_data", fail)
    outcome = precis("data", "check", "x")
    assert (outcome.code, line in outcome.error) == (code, True), outcome.error
    assert "Traceback" not in outcome.err
    assert len(outcome.error) < 1100


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
@pytest.mark.parametrize("words", [["data", "list"], ["--help"], ["--version"]])
def test_standard_output_that_is_full_is_named(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*PRECIS, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert done.stderr.startswith("error: standard output: no space left on device")


@pytest.mark.parametrize("words", [["data", "list"], ["--help"], ["data", "synthetic", "--help"]])
def test_a_reader_that_has_left_ends_a_command_as_sigpipe_does_and_is_nothing_to_tell(
    words: list[str],
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*PRECIS, *words], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_the_exit_codes_are_documented(precis: Precis) -> None:
    said = " ".join(precis("--help").out.split())
    assert "Exit codes: 0 done; 1 the run failed; 2 bad input" in said
    assert "130 interrupted" in said
