"""The pages of the site: every page is in its menu, links lead somewhere, and nothing is fetched from elsewhere."""

import json
import re
import subprocess
import sys
import tomllib
from importlib import util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def _build() -> Any:
    return _module("build")


def _module(name: str) -> Any:
    spec = util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def _listed(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    return [
        page for inner in (entry.values() if isinstance(entry, dict) else entry) for page in _listed(inner)
    ]


def test_every_page_is_in_the_menu() -> None:
    config = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    assert sorted(_listed(config["nav"])) == sorted(
        [*_build().sources().values(), *_build().notebooks().values(), "api.md"]
    )


def test_links_to_pages_are_turned_and_links_to_nothing_are_refused() -> None:
    build = _build()
    places = build.sources()
    page = ROOT / "docs" / "guide" / "README.md"
    assert build.turned("[a](../../README.md#install)", page, places) == "[a](../index.md#install)"
    assert (
        build.turned("[b](../../packages/precis-text/src/precis_text/errors.py)", page, places)
        == "b (`packages/precis-text/src/precis_text/errors.py`)"
    )
    with pytest.raises(build.BrokenLinkError, match=r"README\.md: links to gone\.md"):
        build.turned("[c](gone.md)", page, places)
    for file in places:
        build.turned(file.read_text(encoding="utf-8"), file, places)


def test_the_page_of_a_notebook_holds_its_texts_and_its_code() -> None:
    build = _build()
    for file in build.notebooks():
        page = build.from_notebook(file)
        for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
            assert "".join(cell["source"]) in page


def test_the_gallery_shows_every_picture_with_the_commands_that_make_it() -> None:
    gallery = _module("gallery")
    assert (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8") == gallery.page()
    pictures = {file.stem for file in gallery.PLACE.glob("*.png")}
    assert pictures == {one.name for one in gallery.PICTURES}
    assert sum(file.stat().st_size for file in gallery.PLACE.glob("*.png")) < 1_500_000


@pytest.mark.slow
def test_the_site_builds_strictly_and_names_no_other_host() -> None:
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
    empty_place = (
        ".md-header__source:not(:has(*)) { display: none; }"  # else the head is narrower than the page
    )
    assert empty_place in (ROOT / "build" / "site" / "site.css").read_text(encoding="utf-8")
