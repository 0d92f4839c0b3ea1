"""PAPERS.md points at things that exist."""

import ast
import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from precis.cli.application import parser

ROOT = Path(__file__).parent.parent
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "PAPERS.md").read_text().splitlines()
    if line.startswith("|") and "::" in line
]
VERDICTS = ("decided", "not decided", "contradicted", "never run")


def resolve(dotted: str) -> Any:
    """The object behind `package.module.Class.member`."""
    parts = dotted.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for name in parts[split:]:
            found = getattr(found, name)
        return found
    raise ModuleNotFoundError(dotted)


def test_there_are_rows() -> None:
    assert len(ROWS) >= 10


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_row_names_a_symbol_and_a_test_that_exist(row: list[str]) -> None:
    _, _, symbol, test, _ = (re.sub("`", "", cell) for cell in row)
    assert resolve(symbol) is not None
    path, function = test.split("::")
    tree = ast.parse((ROOT / path).read_text())
    assert function in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_row_says_what_our_runs_decide_and_by_which_command(row: list[str]) -> None:
    result = row[-1]
    if result == "its test":
        return
    assert result.startswith(VERDICTS)
    command = re.search(r"`(precis [^`]+)`", result)
    assert command is not None
    assert command[1].split()[1] in parser().commands
