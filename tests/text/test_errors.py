"""The line that names a missing extra, and the extras that there are."""

import re
import tomllib
from pathlib import Path

from precis_text.errors import DISTRIBUTIONS, UserError, install_line, missing_extra

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "packages" / "precis" / "pyproject.toml").read_text())["project"]


def test_a_missing_extra_is_named_with_the_command_that_installs_it() -> None:
    error = missing_extra("serve", wanted_by="precis serve")
    assert isinstance(error, UserError)
    assert str(error).startswith("precis serve needs packages that are not installed: pip install 'fastapi>=")
    named = re.findall(r"'([\w-]+)", str(error))
    wanted = [re.match(r"[\w-]+", each) for each in PROJECT["optional-dependencies"]["serve"]]
    assert named == sorted(found[0] for found in wanted if found)


def test_every_extra_has_a_line_of_packages_and_none_is_our_own_name() -> None:
    """No index has our names yet: `pip install precis-summarizer` would run whatever a stranger puts there."""
    for extra in PROJECT["optional-dependencies"]:
        line = install_line(extra)
        assert line.startswith("pip install '"), extra
        assert "precis" not in line
    assert "evalica" in install_line("judge")
    assert "pypdfium2" in install_line("documents")
    assert install_line("nothing") == "install the extra nothing"


def test_every_extra_that_the_source_asks_for_exists() -> None:
    called = re.compile(r'missing_extra\("(\w+)"')
    asked = {
        extra
        for file in (ROOT / "packages").rglob("*.py")
        for extra in called.findall(file.read_text(encoding="utf-8"))
    }
    assert {"search", "peft"} <= asked <= set(PROJECT["optional-dependencies"])


def test_messages_and_pages_never_install_our_packages_by_name() -> None:
    """`pip install precis` would install another project, and no index has the other names yet."""
    wrong = re.compile(r"""pip install ['"]?precis""")
    places = [*(ROOT / "packages").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    assert [str(file) for file in places if wrong.search(file.read_text(encoding="utf-8"))] == []
    assert PROJECT["name"] in DISTRIBUTIONS
