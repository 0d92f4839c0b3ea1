"""README and guide are short, their links lead somewhere, and their commands have options that exist."""

import re
from pathlib import Path

import pytest

from precis.cli.application import parser
from tests.docs.pages import GUIDE, PAGES, README, ROOT, commands

_LINK = re.compile(r"\[[^]]*\]\(([^)#]+)\)")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_the_readme_has_at_most_600_words() -> None:
    assert len(README.read_text().split()) <= 600


@pytest.mark.parametrize("page", PAGES[1:], ids=name)
def test_a_page_of_the_guide_has_at_most_900_words(page: Path) -> None:
    assert len(page.read_text().split()) <= 900


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")], ids=name)
def test_links_lead_to_files_that_exist(page: Path) -> None:
    places = [place for place in _LINK.findall(page.read_text()) if "://" not in place]
    assert [place for place in places if not (page.parent / place).exists()] == []


def test_every_page_is_in_the_index() -> None:
    listed = set(_LINK.findall((GUIDE / "README.md").read_text()))
    assert {page.name for page in PAGES[1:]} - {"README.md"} <= listed


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=name)
def test_commands_have_options_that_exist(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "first").mkdir(parents=True)
    (tmp_path / "runs" / "first" / "run.toml").write_text("")
    for words in commands(page):
        group, command, rest = parser(), words[1], words[2:]
        if command in ("data", "probe", "judge"):
            group, command, rest = group.commands[command], rest[0], rest[1:]
        group.commands[command].make_context(command, list(rest))


_CODE = re.compile(r"`((?:[a-z_]+/)*[a-z_]+(?:\.py|/))`|^ +((?:[a-z_]+/)+|[a-z_/]+\.py)\s{2,}", re.MULTILINE)


def test_the_places_that_the_architecture_names_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    named = [one or other for one, other in _CODE.findall(text)]
    roots = (
        ROOT,
        ROOT / "packages" / "precis-text" / "src",
        ROOT / "packages" / "precis" / "src" / "precis",
        ROOT / "packages" / "precis" / "src" / "precis" / "nn",
        ROOT / "packages" / "precis" / "src" / "precis" / "models",
    )
    missing = [place for place in named if not any((root / place).exists() for root in roots)]
    assert len(named) > 40
    assert missing == []


def test_the_table_of_requests_has_every_field() -> None:
    from precis.server.schemas import SummarizeRequest

    rows = [row for row in (GUIDE / "serve.md").read_text().splitlines() if row.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert set(SummarizeRequest.model_fields) - named == set()
