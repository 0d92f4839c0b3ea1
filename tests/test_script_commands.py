"""Every script that a page or a docstring names by `python -m` can be imported from the repository."""

import re
from importlib import import_module

import pytest

from tests.docs.pages import ROOT, tracked

_COMMAND = re.compile(r"python3? -m ((?:benchmarks|faults|experiments\.scripts)[.a-z_]*)\b(?!\.?[A-Z])")
_BY_FILE = re.compile(r"python3? (?:benchmarks|faults|experiments)/[\w/]+\.py")
_TEXTS = [
    ROOT / name for name in tracked() if name.endswith((".md", ".py")) and not name.startswith("tests/")
]


def commands() -> list[str]:
    """Return the modules that pages and docstrings tell people to run."""
    return sorted({name for file in _TEXTS for name in _COMMAND.findall(file.read_text("utf-8"))})


def test_no_page_tells_people_to_run_a_script_by_its_file() -> None:
    # A script that is run by its file does not find the packages beside it.
    by_file = {str(file.relative_to(ROOT)): _BY_FILE.findall(file.read_text("utf-8")) for file in _TEXTS}
    assert not {name: found for name, found in by_file.items() if found}


@pytest.mark.parametrize("name", commands())
def test_a_script_finds_what_it_imports(name: str) -> None:
    import_module(name)
