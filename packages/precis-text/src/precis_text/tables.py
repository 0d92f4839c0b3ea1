"""Words and patterns of the rules, from the TOML files of this package.

A long pattern has several lines there. A line that is indented continues the line before it.
"""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import Any

_CONTINUED = re.compile(r"(?:\A|\n) {2,}")


def read_table(name: str) -> dict[str, Any]:
    """Return a TOML file of this package, such as "forms/minutes.toml", with the lines of its patterns joined."""
    table: dict[str, Any] = _joined(tomllib.loads(files(__package__).joinpath(name).read_text("utf-8")))
    return table


def _joined(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _joined(each) for key, each in value.items()}
    if isinstance(value, list):
        return [*map(_joined, value)]
    return _CONTINUED.sub("", value) if isinstance(value, str) else value
