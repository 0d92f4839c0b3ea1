"""Every command line of the table is refused in one useful line, and nothing is written."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.wrong_command_lines import WrongLine, problems_of, wrong_lines, wrong_place


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with wrong_place() as folder:
        yield folder


def test_the_table_has_three_hundred_different_lines() -> None:
    lines = wrong_lines()
    assert len({line.text for line in lines}) == len(lines) >= 300


@pytest.mark.parametrize("line", wrong_lines(), ids=lambda line: f"{line.number}")
def test_a_wrong_command_line_is_answered_in_one_useful_line(line: WrongLine, place: Path) -> None:
    assert problems_of(line, place) == []
