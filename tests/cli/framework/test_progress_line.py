"""The progress bar on a terminal; elsewhere nothing is shown."""

import sys
from pathlib import Path

import pytest

from precis.cli.commands import summarize_command
from precis.cli.framework.console import ProgressLine


def test_an_unknown_total_shows_what_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with ProgressLine() as progress:
        progress("500 documents done", 500, 0)
    err = capsys.readouterr().err
    assert "500 documents done" in err
    assert "100%" not in err


def test_a_large_file_is_known_by_its_size_and_without_a_terminal_nothing_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(summarize_command, "MIB", 4)
    (tmp_path / "a.txt").write_text("Ann sings in the hall.")
    assert summarize_command._is_large(str(tmp_path / "a.txt"))
    assert not summarize_command._is_large("-")
    with ProgressLine() as progress:
        progress("opening a.txt", 0, 0)
    assert capsys.readouterr().err == ""
