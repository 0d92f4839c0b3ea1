"""The tables of words and patterns: their long lines are written as short ones."""

from pathlib import Path

import pytest

import precis_text
from precis_text import tables
from precis_text.tables import read_table

TABLES = sorted(Path(precis_text.__file__).parent.rglob("*.toml"))
SOME = """
one = '''
  a|b
  |c d'''
lines = '''
x
  |y
z'''
listed = [['''
    (?:e
    |f)''', 'g']]
count = 3
"""
WIDEST = 120  # characters of a line


def test_an_indented_line_continues_the_one_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "some.toml").write_text(SOME)
    monkeypatch.setattr(tables, "files", lambda _: tmp_path)
    assert read_table("some.toml") == {
        "one": "a|b|c d",
        "lines": "x|y\nz",
        "listed": [["(?:e|f)", "g"]],
        "count": 3,
    }


@pytest.mark.parametrize("file", TABLES, ids=lambda file: file.stem)
def test_a_table_is_read_in_the_width_of_a_page(file: Path) -> None:
    wide = [line for line in file.read_text(encoding="utf-8").splitlines() if len(line) > WIDEST]
    assert not wide
