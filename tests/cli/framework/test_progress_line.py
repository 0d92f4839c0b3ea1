"""The progress bar on a terminal; elsewhere a line now and then."""

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


def test_a_large_file_is_known_by_its_size_and_opening_it_fast_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(summarize_command, "MIB", 4)
    (tmp_path / "a.txt").write_text("Ann sings in the hall.")
    assert summarize_command._is_large(str(tmp_path / "a.txt"))
    assert not summarize_command._is_large("-")
    with ProgressLine() as progress:
        progress("opening a.txt", 0, 0)
    assert capsys.readouterr().err == ""


def test_without_a_terminal_a_line_appears_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    """500 documents of three seconds each: a line after 30 seconds, then the pauses double, up to ten minutes."""
    now = [0.0]
    shown = {}
    with ProgressLine(clock=lambda: now[0]) as progress:
        for done in range(1, 501):
            now[0] += 3
            progress(f"{done} documents done", done, 0)
            if line := capsys.readouterr().err:
                shown[now[0]] = line
    assert list(shown) == [30, 90, 210, 450, 930]
    assert shown[30] == "10 documents done\n"


def test_a_line_gives_the_total_and_never_a_control_character(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    with ProgressLine(clock=lambda: now[0]) as progress:
        now[0] = 40.0
        progress("reading \x1b[2J", 3, 1200)
    err = capsys.readouterr().err
    assert "(3 of 1,200)" in err
    assert "\x1b" not in err
    assert err.count("\n") == 1
