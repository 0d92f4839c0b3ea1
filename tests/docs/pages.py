"""The pages and docstrings of the repository, with the commands that README and the guide show."""

import ast
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide"
README = ROOT / "README.md"
PAGES = [README, *sorted(GUIDE.glob("*.md"))]

_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^ {4}(precis .*)$", re.MULTILINE)
_INDENTED = re.compile(r"^ {4,}\S.*$", re.MULTILINE)
_CONTINUED = re.compile(r"\\\n\s*")
_CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    """The words of each line of an indented block that begins with `precis`."""
    return [shlex.split(line) for line in _COMMAND.findall(_BLOCK.sub("", page.read_text()))]


@dataclass(frozen=True)
class Text:
    """A page, or a docstring."""

    file: Path
    body: str

    @property
    def name(self) -> str:
        return self.file.relative_to(ROOT).as_posix()

    @property
    def prose(self) -> str:
        """The text without its blocks, and without what is in backticks."""
        return _CODE.sub("", self._without_blocks())

    @property
    def spans(self) -> list[str]:
        """What is in backticks, outside blocks."""
        return [" ".join(code.split()) for _, code in _CODE.findall(self._without_blocks())]

    @property
    def lines(self) -> list[str]:
        """The lines of the blocks. A line that ends with a backslash goes on in the next one."""
        fenced = [line for block in _BLOCK.findall(self.body) for line in block.splitlines()[1:-1]]
        indented = _INDENTED.findall(_CONTINUED.sub("", _BLOCK.sub("", self.body)))
        return [line.strip() for line in (*_CONTINUED.sub("", "\n".join(fenced)).splitlines(), *indented)]

    def _without_blocks(self) -> str:
        return _INDENTED.sub("", _CONTINUED.sub("", _BLOCK.sub("", self.body)))


@cache
def tracked() -> list[str]:
    """The files of the repository."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def markdown() -> list[Text]:
    return [Text(ROOT / name, (ROOT / name).read_text()) for name in tracked() if name.endswith(".md")]


def docstrings(*folders: str) -> list[Text]:
    """The docstrings of the modules in these folders, and of their classes and functions."""
    return [
        Text(ROOT / name, text)
        for name in tracked()
        if name.endswith(".py") and name.startswith(tuple(f"{folder}/" for folder in folders))
        for text in _documented(ast.parse((ROOT / name).read_text()))
    ]


def _documented(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield ast.get_docstring(node) or ""
        for inner in node.body:
            yield from _documented(inner)
