"""The line that names a missing extra, and the extras that there are."""

import re
import tomllib
from pathlib import Path

from precis_text.errors import DISTRIBUTION, UserError, missing_extra

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "packages" / "precis" / "pyproject.toml").read_text())["project"]


def test_a_missing_extra_is_named_with_the_command_that_installs_it() -> None:
    error = missing_extra("serve", wanted_by="precis serve")
    assert isinstance(error, UserError)
    assert str(error) == (
        f"precis serve needs packages that are not installed: pip install '{PROJECT['name']}[serve]'"
    )


def test_every_extra_that_the_source_asks_for_exists() -> None:
    called = re.compile(r'missing_extra\("(\w+)"')
    asked = {
        extra
        for file in (ROOT / "packages").rglob("*.py")
        for extra in called.findall(file.read_text(encoding="utf-8"))
    }
    assert {"search", "peft"} <= asked <= set(PROJECT["optional-dependencies"])


def test_messages_and_pages_spell_the_distribution_and_not_the_package() -> None:
    """`pip install precis` would install another project."""
    wrong = re.compile(r"""pip install ['"]?precis(?![-_])""")
    places = [*(ROOT / "packages").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    assert [str(file) for file in places if wrong.search(file.read_text(encoding="utf-8"))] == []
    assert PROJECT["name"] == DISTRIBUTION
