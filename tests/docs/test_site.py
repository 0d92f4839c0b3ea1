"""The pages of the site: every page is in its menu, links lead somewhere, and nothing is fetched from elsewhere."""

import re
import subprocess
import sys
import tomllib
from importlib import util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _build():
    spec = util.spec_from_file_location("docs_build", ROOT / "docs" / "build.py")
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _listed(entry) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    return [
        page for inner in (entry.values() if isinstance(entry, dict) else entry) for page in _listed(inner)
    ]


def test_every_page_is_in_the_menu():
    config = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    assert sorted(_listed(config["nav"])) == sorted([*_build().sources().values(), "api.md"])


def test_links_to_pages_are_turned_and_links_to_nothing_are_refused():
    build = _build()
    places = build.sources()
    page = ROOT / "docs" / "guide" / "README.md"
    assert build.turned("[a](../../README.md#install)", page, places) == "[a](../index.md#install)"
    assert build.turned("[b](../../src/precis/errors.py)", page, places) == "b (`src/precis/errors.py`)"
    with pytest.raises(build.BrokenLinkError, match=r"README\.md: links to gone\.md"):
        build.turned("[c](gone.md)", page, places)
    for file in places:
        build.turned(file.read_text(encoding="utf-8"), file, places)


@pytest.mark.slow
def test_the_site_builds_strictly_and_names_no_other_host():
    pytest.importorskip("zensical")
    done = subprocess.run([sys.executable, "docs/build.py"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    loaded = re.compile(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="?(https?:[^" >]+)')
    found = {
        host
        for page in (ROOT / "build" / "site").rglob("*.html")
        for host in loaded.findall(page.read_text(encoding="utf-8"))
    }
    assert found == set()
