"""README and the guide, with the commands that they show."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide"
README = ROOT / "README.md"
PAGES = [README, *sorted(GUIDE.glob("*.md"))]

_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^ {4}(precis .*)$", re.MULTILINE)


def commands(page: Path) -> list[list[str]]:
    """The words of each line of an indented block that begins with `precis`."""
    return [shlex.split(line) for line in _COMMAND.findall(_BLOCK.sub("", page.read_text()))]
