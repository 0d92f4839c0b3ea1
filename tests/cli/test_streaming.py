"""In a terminal a summary is shown sentence by sentence while it is written, and is the same in the end."""

import sys
from pathlib import Path

import pytest

from precis.cli import main
from precis.cli.framework.console import Screen
from precis.generation import partial_summaries as streaming
from precis_text.terminal_text import escape_controls as as_shown
from tests.tiny_models import documents, save


def by_fours(text: str) -> list[str]:
    """ "Sentences" of a random model, which writes no full stops."""
    words = text.split()
    return [" ".join(words[start : start + 4]) for start in range(0, len(words), 4)]


@pytest.mark.parametrize("options", [[], ["--support"]])
def test_a_terminal_gets_the_sentences_as_they_are_written(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save("zcodepp", tmp_path / "model")
    (tmp_path / "a.txt").write_text(documents(1)[0])
    words = ["summarize", str(tmp_path / "a.txt"), "--model", str(tmp_path / "model"), "--beams", "1"]
    words += ["--device", "cpu", "--short", "write", "--min-words", "20", *options]
    monkeypatch.setattr(streaming, "split_sentences", by_fours)
    begun: list[str] = []
    begin = Screen.begin
    monkeypatch.setattr(Screen, "begin", lambda self, text: (begun.append(text), begin(self, text))[1])  # type: ignore[func-returns-value]

    assert main(words) == 0
    piped = capsys.readouterr().out
    assert begun == []

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(words) == 0
    shown = capsys.readouterr()
    assert shown.out == piped
    assert len(begun) > 2
    assert all(piped.startswith(as_shown(text)) for text in begun)
    assert "read all" in shown.err
