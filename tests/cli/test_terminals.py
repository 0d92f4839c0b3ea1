"""What documents, names and models contain is shown on a terminal, not sent to it; JSON keeps its meaning."""

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from tests.outcomes import Run

STEERING = "\x1b]0;owned\x07council\x1b[2J\x9b31m"
TEXT = (
    f"The {STEERING} met on Monday. It rained all day. Nobody came to the hall, and the meeting ended early."
)


def controls(text: str) -> set[str]:
    return {letter for letter in text if unicodedata.category(letter) == "Cc"} - {"\n"}


def test_a_document_and_its_name_cannot_steer_the_terminal(precis: Run, tmp_path: Path) -> None:
    name = f"a\x1b[2J\nerror: all lost\r{STEERING}.txt"
    files = [tmp_path / name, tmp_path / "b.txt"]
    for file in files:
        file.write_text(TEXT)
    outcome = precis("summarize", *map(str, files), "--words", "8", "--support", "--model", "default")
    assert outcome.code == 0, outcome.err
    assert r"\x1b]0;owned\x07council\x1b[2J\x9b31m" in outcome.out
    assert controls(outcome.out + outcome.err) == set()
    assert not any(line.startswith("error: all lost") for line in (outcome.out + outcome.err).splitlines())
    lines = precis("summarize", str(files[0]), "--words", "8", "--json").out
    assert controls(lines) == set()
    assert STEERING in json.loads(lines)["summary"]


def test_rows_that_are_shown_cannot_either(precis: Run, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"document": TEXT, "summary": STEERING, "id": STEERING}))
    outcome = precis("data", "show", str(tmp_path / "a.jsonl"))
    assert outcome.code == 0, outcome.err
    assert outcome.out.count(r"\x1b]0;owned") == 3
    assert controls(outcome.out + outcome.err) == set()


def test_tables_have_colours_of_rich_alone(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    from rich.table import Table

    from precis.cli.framework.console import show
    from precis.cli.framework.standard_output import named_output

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    table = Table(f"a{STEERING}", title=STEERING)
    table.add_row(f"[red]b[/red]{STEERING}")
    with named_output():
        show(table)
    out = capsys.readouterr().out
    assert "\x1b[31mb" in out
    assert "\x1b]" not in out
    assert "\x1b[2J" not in out
    assert out.count(r"\x1b]0;ownedcouncil\x1b[2J") == 3  # Rich itself leaves the bell out
